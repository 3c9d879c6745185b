"""The log of the real bot as JSON: every line is an object, and requests, decisions, runs and failures are lines."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import ClientSession
from prometheus_client.parser import text_string_to_metric_families

from tests.rigs.live_bot import Rig, rig

pytestmark = pytest.mark.asyncio(loop_scope="module")

with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    PORT = probe.getsockname()[1]

BANNER = "WELCOME TO THE LOUDEST SERVER"
SERVER = f"""
import sys
print({BANNER!r}, file=sys.stderr, flush=True)
sys.exit("it cannot start")
"""
CONFIG = f"""
[mcp.loud]
command = ["{sys.executable}", "loud.py"]

[limits]
model_requests_per_turn = 1
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    folder: Path = tmp_path_factory.mktemp("log")
    (folder / "loud.py").write_text(SERVER, encoding="utf-8")
    async with rig(folder, CONFIG, start=False) as running:
        await running.start(SIGNOFF_LOG_FORMAT="json", SIGNOFF_HTTP=f"127.0.0.1:{PORT}")
        yield running


def said(live: Rig) -> list[dict[str, Any]]:
    return [json.loads(line) for line in live.output.splitlines()]


async def test_every_line_is_an_object_and_a_failed_turn_tells_its_whole_story(live: Rig) -> None:
    asked = await live.ask('call record {"value": "a private value"}')
    card = await live.card(asked.id)
    await live.people["Ada"].click(card, "Accept")
    state = "SELECT 1 FROM turns WHERE message = ? AND state = 'failed' AND reply_posted"
    await live.until(lambda: live.rows(state, str(asked.id)), "the end of the turn")
    lines = said(live)
    about = [line for line in lines if line.get("turn", "").endswith(f"-{asked.id}")]
    story = ["turn_started", "request_opened", "decision", "tool_ended", "turn_ended"]
    assert [line["event"] for line in about] == story
    started, opened, decision, tool, ended = about
    assert started["person"] == str(live.people["Max"].id)
    assert decision["person"] == str(live.people["Ada"].id)
    assert opened["request"] == decision["request"] == tool["request"]
    assert (ended["state"], ended["level"], ended["model_requests"], ended["tools"]) == ("failed", "ERROR", 1, 1)
    assert "UsageLimitExceeded" in ended["traceback"]
    assert all("a private value" not in json.dumps(line) for line in about)


async def test_no_banner_of_an_mcp_server_gets_into_the_log_but_the_reason_does(live: Rig) -> None:
    warnings = [line["message"] for line in said(live) if line["level"] == "WARNING"]
    assert any("the MCP server loud does not answer" in line and "it cannot start" in line for line in warnings)
    assert BANNER not in live.output


async def test_the_running_bot_serves_its_health_and_its_metrics(live: Rig) -> None:
    async with ClientSession(f"http://127.0.0.1:{PORT}") as session:
        await live.until(lambda: "signed in as" in live.output, "the end of the start")
        async with session.get("/healthz") as response:
            assert (response.status, await response.json()) == (200, {"status": "ok", "problems": []})
        async with session.get("/metrics") as response:
            text = await response.text()
    numbers = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert numbers["signoff_decisions_total", "approved", "ui"] == 1
    assert numbers["signoff_tool_runs_total", "record", "done"] == 1
    assert numbers["signoff_turns_ended_total", "failed"] == 1
    assert numbers["signoff_model_requests_total",] == 1
    assert numbers["signoff_gateway_connected",] == numbers["signoff_store_up",] == 1
    assert numbers["signoff_store_job_seconds_count",] > 5
    assert not any(person.name in text or str(person.id) in text for person in live.people.values())


async def test_a_second_bot_is_told_that_the_port_is_taken(live: Rig, tmp_path: Path) -> None:
    live.environment["SIGNOFF_HTTP"] = f"127.0.0.1:{PORT}"
    live.environment["SIGNOFF_DATABASE_URL"] = f"sqlite:///{tmp_path}/other.db"
    code, output = await live.launch_another()
    assert code == 1
    assert output.splitlines()[-1].startswith(f"signoff: SIGNOFF_HTTP: cannot listen on 127.0.0.1:{PORT} (")
