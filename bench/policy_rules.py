"""Measures how long the policy takes with many rules, compared with an empty one in the same run: medians and spread.

Run it with `make bench`, or alone: `python bench/policy_rules.py`.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable

from signoff.approvals.model import Actor, CallKey, Place, ToolCall, Verdict
from signoff.approvals.policy import Context, Layer, Policy, Rule

PLACE = Place("1", "2", "2")
CONTEXT = Context(PLACE, Actor("3", "Max", "1"))
CALL = ToolCall(CallKey("2", 1, "call_0"), "write_file", {"path": "config/app.env", "content": "PORT=8080"}, "schema")
ROUNDS = 200


def rules(count: int, tool: str) -> tuple[Rule, ...]:
    """Return rules with different patterns; every tenth matches the call."""
    return tuple(
        Rule(
            tool.format(n=n),
            Verdict.ASK,
            when={"path": (f"folder-{n}/*", "config/*.env" if n % 10 == 0 else f"*.{n}")},
            approvers=("role:5",),
        )
        for n in range(count)
    )


async def measure(work: Callable[[], Awaitable[object]]) -> list[float]:
    await work()
    taken: list[float] = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        await work()
        taken.append((time.perf_counter() - start) * 1000)
    return taken


async def main() -> None:
    cases = {
        "no rules": Policy(),
        "1,000 rules for other tools": Policy(rules(1000, "tool_{n}")),
        "1,000 rules for globs of tools": Policy(rules(1000, "write_*")),
        "1,000 rules for this very tool": Policy(rules(1000, "write_file")),
    }
    results = {name: await measure(lambda p=policy: p.decide(CALL, None, CONTEXT)) for name, policy in cases.items()}
    half = rules(500, "write_file")
    layered, own = Policy(half), Layer(half)
    results["500 of the operator, 500 of the server"] = await measure(lambda: layered.decide(CALL, None, CONTEXT, own))
    base = statistics.median(results["no rules"])
    print("| one decision | median | least | 95 of 100 under | times no rules |")
    print("| --- | --- | --- | --- | --- |")
    for name, taken in results.items():
        median, least, most = statistics.median(taken), min(taken), statistics.quantiles(taken, n=20)[-1]
        print(f"| {name} | {median:.3f} ms | {least:.3f} ms | {most:.3f} ms | {median / base:.0f} |")


if __name__ == "__main__":
    asyncio.run(main())
