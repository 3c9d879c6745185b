"""MCP servers behind the gate: real ones, in their own processes, over stdio and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from dataclasses import replace
from typing import Any

import pytest

from signoff.agent.mcp import build_servers
from signoff.agent.runner import AgentRunner
from signoff.agent.setup import Brain
from signoff.approvals.model import CallKey, Remember, RequestKind
from signoff.bot.admin.record_wording import what
from signoff.errors import ConfigError
from signoff.gate.tool_slots import ToolSlots
from signoff.turns.model import CallRecord, CallState, Finished
from tests.conftest import PLACE
from tests.rigs.mcp_shop import Shop, batch_of, shop  # noqa: F401 - a fixture
from tests.rigs.scripted import calls

pytestmark = pytest.mark.slow

# ruff: noqa: F811 - a fixture is asked for by its name


@pytest.mark.long
async def test_a_call_of_a_server_that_a_provider_would_run_waits_for_a_person(shop: Shop) -> None:
    async with shop.served("shop_server.py") as url:
        shop.open(f'[mcp.shop]\nurl = "{url}"\n')
        step = await shop.ask(calls(("shop_refund", {"order": "A-1", "amount": 7})), "paid")
        request = batch_of(step).requests[0]
        assert request.call.tool == "shop_refund"
        assert request.call.args == {"order": "A-1", "amount": 7}
        assert request.why == "a tool of an MCP server asks, unless a rule says otherwise"
        assert not shop.done
        assert isinstance(await shop.accept(step), Finished)
        assert shop.done == [{"tool": "refund", "order": "A-1", "amount": 7}]
        assert "refunded 7 for A-1" in shop.script.results["call_0"]


async def test_a_server_of_our_own_is_started_once_and_asked_about_each_time(shop: Shop) -> None:
    shop.open(f"[mcp.shop]\ncommand = {shop.command}\n")
    step = await shop.ask(calls(("shop_refund", {"order": "A-1"})), "paid")
    await shop.accept(step)
    step = await shop.ask(calls(("shop_list_orders", {})), "there are two")
    request = batch_of(step).requests[0]
    assert request.call.tool == "shop_list_orders"  # its read-only claim proves nothing
    said = request.description
    assert (said.sentence, said.hints, said.from_mcp) == ("The orders of today.", ("read-only",), True)
    assert (said.trusted, said.defaults) == (False, {})
    await shop.accept(step)
    assert [entry["tool"] for entry in shop.done] == ["refund", "list_orders"]
    assert sum("started" in entry for entry in shop.ledger) == 1


async def test_what_only_reads_on_a_trusted_server_does_not_ask_and_the_rest_does(shop: Shop) -> None:
    shop.open(f"[mcp.shop]\ncommand = {shop.command}\ntrusted = true\n")
    assert isinstance(await shop.ask(calls(("shop_list_orders", {})), "two"), Finished)
    step = await shop.ask(calls(("shop_refund", {"order": "A-1"})), "paid")
    assert batch_of(step).requests[0].description.trusted
    assert [entry["tool"] for entry in shop.done] == ["list_orders"]


async def test_rules_count_before_what_a_server_says(shop: Shop) -> None:
    rules = '[[rules]]\ntool = "shop_list*"\nverdict = "deny"\n[[rules]]\ntool = "shop_refund"\nverdict = "allow"\n'
    shop.open(f"{rules}[mcp.shop]\ncommand = {shop.command}\ntrusted = true\n")
    asked = calls(("shop_list_orders", {}), ("shop_refund", {"order": "A-2"}))
    assert isinstance(await shop.ask(asked, "done"), Finished)
    assert [entry["tool"] for entry in shop.done] == ["refund"]
    assert "Not allowed" in shop.script.results["call_0"]


async def test_tools_that_were_not_named_are_not_there(shop: Shop) -> None:
    shop.open(f'[mcp.shop]\ncommand = {shop.command}\ntools = ["list_*"]\n')
    assert isinstance(await shop.ask(calls(("shop_refund", {"order": "A-1"})), "no such tool"), Finished)
    assert not shop.done


async def test_an_mcp_toolset_of_a_plugin_or_an_imported_agent_asks_too(shop: Shop) -> None:
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai.mcp import MCPToolset

    command, *arguments = json.loads(shop.command)
    toolset = MCPToolset[Any](StdioTransport(command, arguments))
    shop.use([toolset.prefixed("any").filtered(lambda ctx, tool_def: True)])
    step = await shop.ask(calls(("any_list_orders", {})), "two")
    assert batch_of(step).requests[0].call.tool == "any_list_orders"
    assert not shop.done


async def test_a_decision_is_not_inherited_by_another_server_of_the_same_name(shop: Shop) -> None:
    asked = calls(("shop_refund", {"order": "A-1"}))
    shop.open(f"[mcp.shop]\ncommand = {shop.command}\n")
    await shop.accept(await shop.ask(asked, "paid"), Remember.SESSION)
    step = await shop.ask(asked, "paid")
    again = await shop.store.run(lambda tx: tx.batch(batch_of(step).id))
    assert again
    assert again.settled
    await shop.advance(again.turn)
    other = json.dumps([*json.loads(shop.command)[:2], str(shop.folder / "elsewhere")])
    shop.open(f"[mcp.shop]\ncommand = {other}\n")
    step = await shop.ask(asked, "paid")
    fresh = await shop.store.run(lambda tx: tx.batch(batch_of(step).id))
    assert fresh
    assert not fresh.settled


async def test_a_server_gets_what_it_is_given_and_none_of_our_own_secrets(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISCORD_TOKEN", "ours")
    monkeypatch.setenv("SHOP_TOKEN", "theirs")
    rule = '[[rules]]\ntool = "*"\nverdict = "allow"\n'
    shop.open(f'{rule}[mcp.shop]\ncommand = {shop.command}\nenv = {{ KEY = "Bearer ${{SHOP_TOKEN}}" }}\n')
    await shop.ask(calls(("shop_environment", {})), "done")
    names = shop.script.results["call_0"].split()
    assert "KEY" in names
    assert "PATH" in names
    assert "DISCORD_TOKEN" not in names
    assert "SHOP_TOKEN" not in names


def test_a_name_that_the_environment_lacks_is_said_at_the_start(shop: Shop) -> None:
    config = shop.config('[mcp.shop]\nurl = "http://127.0.0.1:9/mcp"\nheaders = { Authorization = "${NO_SUCH}" }\n')
    with pytest.raises(ConfigError, match=r"\[mcp\.shop\] headers names \$\{NO_SUCH\}, which is not set; set it"):
        build_servers(config, {})


async def test_a_server_that_cannot_be_reached_costs_its_tools_and_not_the_turn(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    shop.open('[mcp.shop]\nurl = "http://127.0.0.1:9/mcp"\n[mcp.gone]\ncommand = ["no-such-program-here"]\n')
    assert isinstance(await shop.ask("I have no tools"), Finished)
    assert "the MCP server shop does not answer" in caplog.text
    assert "the MCP server gone does not answer" in caplog.text


@pytest.mark.long
async def test_a_server_that_never_answers_is_not_waited_for(shop: Shop) -> None:
    silent = json.dumps([sys.executable, "-c", "import time; time.sleep(60)"])
    shop.open(f'[mcp.shop]\ncommand = {silent}\nstart = "1s"\n')
    async with asyncio.timeout(20):
        assert isinstance(await shop.ask("I have no tools"), Finished)


async def test_a_server_that_is_gone_when_its_call_was_accepted_runs_nothing_and_says_so(shop: Shop) -> None:
    async with shop.served("shop_server.py") as url:
        shop.open(f'[mcp.shop]\nurl = "{url}"\nstart = "3s"\n')
        step = await shop.ask(calls(("shop_refund", {"order": "A-1"})), "it did not work")
    assert isinstance(await shop.accept(step), Finished)
    assert "Not run: the MCP server shop does not answer." in shop.script.results["call_0"]
    assert not shop.done


async def test_a_server_that_dies_or_fails_in_a_call_leaves_the_turn_alive_and_is_started_again(shop: Shop) -> None:
    rule = '[[rules]]\ntool = "*"\nverdict = "allow"\n'
    shop.open(f"{rule}[mcp.shop]\ncommand = {shop.command}\n")
    assert isinstance(await shop.ask(calls(("shop_fail", {})), "it failed"), Finished)
    assert "out of stock" in shop.script.results["call_0"]
    assert isinstance(await shop.ask(calls(("shop_die", {})), "it died"), Finished)
    assert isinstance(await shop.ask(calls(("shop_refund", {"order": "A-3"})), "paid"), Finished)
    assert shop.done == [{"tool": "refund", "order": "A-3", "amount": 5}]
    started = [entry["started"] for entry in shop.ledger if "started" in entry]
    assert len(started) == 2
    assert started[0] != started[1]


async def test_other_arguments_are_tried_without_running_anything(shop: Shop) -> None:
    shop.open(f"[mcp.shop]\ncommand = {shop.command}\n")
    step = await shop.ask(calls(("shop_refund", {"order": "A-1"})), "paid")
    assert shop.runner
    batch = batch_of(step)
    revised = await shop.runner.revise(batch, batch.requests[0], {"order": "A-1", "amount": 1})
    assert revised.call.args == {"order": "A-1", "amount": 1}
    assert not shop.done


def test_before_a_trusted_server_was_asked_its_tools_are_not_said_to_be_allowed(shop: Shop) -> None:
    config = shop.config(f"[tools]\nenable = []\n[mcp.shop]\ncommand = {shop.command}\ntrusted = true\n")
    (line,) = Brain.build(config, "demo").verdicts
    assert line == "shop_*: ask (a tool of an MCP server asks, unless a rule says otherwise, or it only reads)"


async def test_the_tools_are_named_before_and_after_the_server_was_asked(shop: Shop) -> None:
    brain = Brain.build(shop.config(f"[tools]\nenable = []\n[mcp.shop]\ncommand = {shop.command}\n"), "demo")
    assert brain.verdicts == ("shop_*: ask (a tool of an MCP server asks, unless a rule says otherwise)",)
    assert [tool.name for tool in brain.tools] == ["shop_*"]
    shop.runner = AgentRunner(brain.agent, shop.store, shop.clock, brain.policy)
    await shop.ask("hello")
    known = {tool.name: tool for tool in brain.tools}
    assert known["shop_refund"].arguments == ("order", "amount")
    assert known["shop_refund"].verdict.startswith("ask (a tool of an MCP server")


ALLOW = '[[rules]]\ntool = "*"\nverdict = "allow"\n'


async def record_of(shop: Shop, call_id: str) -> CallRecord:
    record = await shop.store.run(lambda tx: tx.call(CallKey(PLACE.conversation, 1, call_id)))
    assert record
    return record


async def test_a_server_that_dies_in_a_call_leaves_a_call_that_may_have_run(shop: Shop) -> None:
    shop.open(f"[mcp.shop]\ncommand = {shop.command}\n")
    step = await shop.accept(await shop.ask(calls(("shop_die", {})), "it may have run"))
    assert isinstance(step, Finished)
    assert len(shop.script.asked) == 2, "nobody repeats the call"
    assert "the call may have run, and its result is not known" in shop.script.results["call_0"]
    record = await record_of(shop, "call_0")
    assert record.state is CallState.UNKNOWN
    assert "may have run" in record.words
    (row,) = await shop.store.run(lambda tx: tx.audit_page(PLACE.server, kind="failed"))
    assert "may have run" in what(row)


async def test_a_server_that_is_killed_in_a_call_is_started_again_by_the_next_call_of_the_run(shop: Shop) -> None:
    shop.open(f"{ALLOW}[mcp.shop]\ncommand = {shop.command}\n")

    async def kill() -> None:
        while not any("waiting" in entry for entry in shop.ledger):  # noqa: ASYNC110 - only the ledger tells
            await asyncio.sleep(0.02)
        os.kill(next(entry["started"] for entry in shop.ledger if "started" in entry), signal.SIGKILL)

    killer = asyncio.ensure_future(kill())
    async with asyncio.timeout(60):
        step = await shop.ask(calls(("shop_wait", {})), calls(("shop_refund", {"order": "A-9"})), "done")
    await killer
    assert isinstance(step, Finished)
    assert "refunded 5 for A-9" in shop.script.results["call_0"]
    assert shop.done == [{"tool": "refund", "order": "A-9", "amount": 5}]
    first = await record_of(shop, "call_0")
    assert first.state is CallState.UNKNOWN
    assert len([entry for entry in shop.ledger if "started" in entry]) == 2


@pytest.mark.long
async def test_a_server_that_falls_silent_in_a_call_may_have_run_it_and_is_started_again(shop: Shop) -> None:
    shop.open(f'{ALLOW}[limits]\ntool_seconds = "2s"\n[mcp.shop]\ncommand = {shop.command}\n')
    assert shop.runner
    shop.runner = replace(shop.runner, slots=ToolSlots(2))
    async with asyncio.timeout(60):
        assert isinstance(await shop.ask(calls(("shop_wait", {})), "it may have run"), Finished)
        assert (await record_of(shop, "call_0")).state is CallState.UNKNOWN
        shop.runner = replace(shop.runner, slots=ToolSlots(30))
        step = await shop.ask(calls(("shop_refund", {"order": "A-9"})), "done")
    assert isinstance(step, Finished)
    assert "refunded 5 for A-9" in shop.script.results["call_0"]
    assert len([entry for entry in shop.ledger if "started" in entry]) == 2


async def test_a_refusal_of_a_server_is_a_failure_and_not_a_call_that_may_have_run(shop: Shop) -> None:
    shop.open(f"{ALLOW}[mcp.shop]\ncommand = {shop.command}\n")
    await shop.ask(calls(("shop_fail", {})), "it failed")
    assert (await record_of(shop, "call_0")).state is CallState.FAILED


async def test_an_mcp_toolset_of_a_plugin_that_dies_in_a_call_may_have_run_too(shop: Shop) -> None:
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai.mcp import MCPToolset

    command, *arguments = json.loads(shop.command)
    shop.use([MCPToolset(StdioTransport(command, arguments), id="mine")], shop.config(ALLOW))
    assert isinstance(await shop.ask(calls(("die", {})), "it may have run"), Finished)
    assert "the call may have run" in shop.script.results["call_0"]
    assert (await record_of(shop, "call_0")).state is CallState.UNKNOWN


async def test_a_lost_call_is_told_again_after_a_resume_and_not_run(shop: Shop) -> None:
    rule = '[[rules]]\ntool = "*_die"\nverdict = "allow"\n'
    shop.open(f"{rule}[mcp.shop]\ncommand = {shop.command}\n")
    assert shop.runner
    shop.runner = replace(shop.runner, hold=False)
    step = await shop.ask(calls(("shop_die", {}), ("shop_refund", {"order": "A-1"})), "done")
    assert isinstance(await shop.accept(step), Finished)
    assert "the call may have run" in shop.script.results["call_0"]
    assert "refunded 5 for A-1" in shop.script.results["call_1"]
    assert [request.kind for request in batch_of(step).requests] == [RequestKind.CALL]
