"""What is measured: decisions, turns, tools, the model and the store. No names of people, no texts, no arguments.

It listens to the activity of turns, to the desk and to the store. The names of the metrics are in docs/operations.md;
dashboards depend on them.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from signoff.dataclass import dataclass
from signoff.telemetry.metrics import Counter, Gauge, Histogram, render
from signoff.turns.activity import BatchOpened, CallEnded, Event, ModelUsed, TurnEnded, TurnStarted

DECISION_BOUNDS = (1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 21600, 86400)
JOB_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)


@dataclass(frozen=True, slots=True)
class Now:
    """What is known when somebody asks. `work` is empty if the store did not answer."""

    connected: bool
    running_tools: int
    work: Mapping[str, int]
    """`open_requests`, or a state of turns -> how many there are."""


@dataclass
class Measures:
    version: str
    started: float = field(default_factory=time.time)
    decisions: Counter = field(
        default_factory=lambda: Counter(
            "signoff_decisions_total", "Settled requests, by state and by how they were settled.", ("state", "how")
        )
    )
    waited: Histogram = field(
        default_factory=lambda: Histogram(
            "signoff_decision_seconds", "Seconds from the card to a person's decision.", DECISION_BOUNDS
        )
    )
    requests: Counter = field(default_factory=lambda: Counter("signoff_requests_total", "Requests that were opened."))
    turns_started: Counter = field(
        default_factory=lambda: Counter("signoff_turns_started_total", "Turns that were started.")
    )
    turns_ended: Counter = field(
        default_factory=lambda: Counter("signoff_turns_ended_total", "Turns that ended, by their state.", ("state",))
    )
    model_requests: Counter = field(
        default_factory=lambda: Counter("signoff_model_requests_total", "Requests to the model.")
    )
    tokens: Counter = field(
        default_factory=lambda: Counter("signoff_model_tokens_total", "Tokens of the model.", ("direction",))
    )
    tool_runs: Counter = field(
        default_factory=lambda: Counter(
            "signoff_tool_runs_total", "Calls that ran, by tool and result.", ("tool", "result")
        )
    )
    jobs: Histogram = field(
        default_factory=lambda: Histogram(
            "signoff_store_job_seconds", "Seconds from handing a job to the store until it is durable.", JOB_BOUNDS
        )
    )

    def heard(self, event: Event) -> None:
        """Listen to the activity of turns."""
        match event:
            case TurnStarted():
                self.turns_started.add()
            case BatchOpened(batch):
                self.requests.add(by=len(batch.requests))
            case CallEnded(tool=tool, result=result):
                self.tool_runs.add(tool, result)
            case ModelUsed():
                self.model_requests.add(by=event.requests)
                self.tokens.add("input", by=event.input_tokens)
                self.tokens.add("output", by=event.output_tokens)
            case TurnEnded(state=state):
                self.turns_ended.add(state.value)

    def decided(self, event: dict[str, Any]) -> None:
        """Listen to the desk."""
        self.decisions.add(str(event["state"]), str(event["how"]))
        if event["by"] is not None and event.get("waited") is not None:
            self.waited.observe(float(event["waited"]))

    def render(self, now: Now) -> str:
        build = Gauge(
            "signoff_build_info",
            "The version that runs.",
            [((self.version, platform.python_version()), 1)],
            ("version", "python"),
        )
        gauges = [
            build,
            Gauge("process_start_time_seconds", "When the process started.", [((), self.started)]),
            Gauge("signoff_gateway_connected", "1 if Discord's gateway is connected.", [((), int(now.connected))]),
            Gauge("signoff_store_up", "1 if the store answered in time.", [((), int(bool(now.work)))]),
            Gauge("signoff_running_tools", "Tools that run now.", [((), now.running_tools)]),
        ]
        if now.work:
            states = [((name,), count) for name, count in now.work.items() if name != "open_requests"]
            gauges.append(Gauge("signoff_turns", "Turns that have not ended, by their state.", states, ("state",)))
            opened = [((), now.work["open_requests"])]
            gauges.append(Gauge("signoff_open_requests", "Requests that nobody has decided yet.", opened))
        counted = [
            *(self.requests, self.decisions, self.waited, self.turns_started, self.turns_ended),
            *(self.model_requests, self.tokens, self.tool_runs, self.jobs),
        ]
        return render([*gauges, *counted])
