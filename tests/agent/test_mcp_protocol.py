"""What MCP servers may and may not do beyond answering calls: schemas, hints, names, and requests of their own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from signoff.agent.mcp_sampling import REQUESTS
from signoff.agent.setup import Brain
from signoff.agent.tool_survey import survey
from signoff.approvals.clicks import Click
from signoff.approvals.errors import Refused
from signoff.approvals.model import Choice, Remember
from signoff.cards.build import build_card
from signoff.config.schema import parse_config
from signoff.errors import ConfigError
from signoff.turns.model import Finished, Waiting
from tests.conftest import ADA, PLACE
from tests.rigs.mcp_shop import Shop, batch_of, shop  # noqa: F401 - a fixture
from tests.rigs.scripted import calls

# ruff: noqa: F811 - a fixture is asked for by its name

pytestmark = pytest.mark.slow

WORKSHOP = Path(__file__).parents[1] / "rigs" / "workshop_tools.py"
ALLOW = '[[rules]]\ntool = "*_ask_*"\nverdict = "allow"\n[[rules]]\ntool = ["*_change", "*_flood"]\nverdict = "allow"\n'
PAINT = {"colour": "red", "coats": 2}


def command(folder: Path, *more: str) -> str:
    return json.dumps([sys.executable, str(WORKSHOP), str(folder), *more])


def opened(shop: Shop, table: str = "", name: str = "work", rules: str = ALLOW) -> None:
    shop.open(f"{rules}[mcp.{name}]\ncommand = {command(shop.folder)}\n{table}")


def noted(shop: Shop, what: str) -> list[Any]:
    return [entry[what] for entry in shop.ledger if what in entry]


async def test_arguments_that_do_not_fit_go_back_to_the_model_and_nobody_sees_a_card(shop: Shop) -> None:
    opened(shop)
    step = await shop.ask(calls(("work_paint", {"colour": "green", "coats": 0, "by": "me"})), "I cannot")
    assert isinstance(step, Finished)
    told = shop.script.results["call_0"]
    assert "'green' is not one of ['red', 'blue']" in told
    assert "0 is less than the minimum of 1" in told
    assert not noted(shop, "tool")


async def test_the_model_may_correct_its_arguments_and_the_card_shows_the_corrected_call(shop: Shop) -> None:
    opened(shop)
    step = await shop.ask(calls(("work_paint", {})), calls(("work_paint", PAINT)), "painted")
    (request,) = batch_of(step).requests
    assert dict(request.call.args) == PAINT
    await shop.accept(step)
    assert noted(shop, "arguments") == [PAINT]


async def test_an_edit_must_fit_the_schema_too(shop: Shop) -> None:
    opened(shop)
    batch = batch_of(await shop.ask(calls(("work_paint", PAINT)), "painted"))
    assert shop.runner
    with pytest.raises(Refused, match="is not one of"):
        await shop.runner.revise(batch, batch.requests[0], {"colour": "green"})


async def test_title_description_and_hints_are_on_the_card(shop: Shop) -> None:
    opened(shop)
    batch = batch_of(await shop.ask(calls(("work_paint", PAINT)), "painted"))
    card = str(build_card(batch, now=batch.opened))
    assert "Paint the fence: Paint the fence in one colour." in card
    assert "Its MCP server claims, unchecked: changes things, destructive, no further effect if repeated" in card
    assert "marked destructive" not in card  # nobody trusts the server


async def test_the_hints_of_a_trusted_server_are_marks(shop: Shop) -> None:
    opened(shop, "trusted = true", rules='[[rules]]\ndestructive = true\nverdict = "ask"\nquorum = 2\n')
    batch = batch_of(await shop.ask(calls(("work_paint", PAINT)), "painted"))
    assert batch.requests[0].quorum == 2
    card = str(build_card(batch, now=batch.opened))
    assert "this tool is marked destructive" in card


async def test_the_hints_of_another_server_are_none(shop: Shop) -> None:
    opened(shop, rules='[[rules]]\ndestructive = true\nverdict = "deny"\n')
    assert isinstance(await shop.ask(calls(("work_paint", PAINT)), "painted"), Waiting)


@pytest.mark.parametrize(
    ("table", "name"), [("", "work_paint"), ('prefix = "My"', "My_paint"), ('prefix = ""', "paint")]
)
async def test_the_prefix_is_chosen_in_the_file(shop: Shop, table: str, name: str) -> None:
    opened(shop, table)
    step = await shop.ask(calls((name, PAINT)), "painted")
    assert batch_of(step).requests[0].call.tool == name
    await shop.accept(step)
    assert noted(shop, "tool") == ["paint"]


def test_a_prefix_is_a_name_or_empty() -> None:
    with pytest.raises(ConfigError, match=r"prefix is \"a-b\"; write up to 20"):
        parse_config('[mcp.a]\ncommand = ["x"]\nprefix = "a-b"\n')


async def test_two_servers_with_the_same_names_are_named_at_the_start(shop: Shop) -> None:
    table = f'command = {command(shop.folder)}\nprefix = ""\ntools = ["paint"]\n'
    config = shop.config(f"[tools]\nenable = []\n[mcp.one]\n{table}[mcp.two]\n{table}")
    brain = Brain.build(config, "demo")
    assert brain.verdicts[0].startswith("*: ask")
    (finding,) = (await survey(brain, config, keep_running=False)).collisions(config)
    assert "two tools are called paint: one of [mcp.one], one of [mcp.two]" in finding.problem
    assert "give [mcp.two] another NAME or prefix" in finding.remedy


async def remembered(shop: Shop, *answers: Any) -> bool:
    """Ask for the same call again, and return whether the remembered decision settled it."""
    step = await shop.ask(*answers, calls(("work_paint", PAINT)), "painted")
    batch = await shop.store.run(lambda tx: tx.batch(batch_of(step).id))
    assert batch
    if not batch.settled:
        await shop.desk.decide(Click(batch.id, Choice.REJECT, ADA, PLACE.channel))
    await shop.advance(batch.turn)
    return batch.settled


async def test_a_schema_that_has_changed_between_two_runs_asks_again(shop: Shop) -> None:
    opened(shop)
    await shop.accept(await shop.ask(calls(("work_paint", PAINT)), "painted"), Remember.SESSION)
    assert await remembered(shop)
    (shop.folder / "other").write_text("")
    assert not await remembered(shop)


async def test_a_schema_that_changes_within_a_run_asks_again(shop: Shop) -> None:
    opened(shop)
    await shop.accept(await shop.ask(calls(("work_paint", PAINT)), "painted"), Remember.SESSION)
    assert not await remembered(shop, calls(("work_change", {})))


@pytest.mark.parametrize(
    ("tool", "refusal"),
    [
        ("ask_model", "Sampling not supported"),
        ("ask_person", "Elicitation not supported"),
        ("ask_roots", "List roots not supported"),
    ],
)
async def test_a_servers_own_requests_are_refused(shop: Shop, tool: str, refusal: str) -> None:
    opened(shop, "elicitation = false")
    assert isinstance(await shop.ask(calls((f"work_{tool}", {})), "done"), Finished)
    assert refusal in shop.script.results["call_0"]
    assert noted(shop, "capabilities")[0] == []
    assert len(shop.script.asked) == 2  # the server did not reach the model


async def test_a_server_may_use_the_model_if_the_operator_allows_it_and_only_so_often(shop: Shop) -> None:
    opened(shop, "sampling = true")
    step = await shop.ask(calls(("work_ask_model", {"times": REQUESTS + 2})), "blue")
    assert isinstance(step, Finished)
    answers = shop.script.results["call_0"].splitlines()
    assert ["blue" in answer for answer in answers] == [True] * REQUESTS + [False] * 2
    assert f"at most {REQUESTS} requests in one run" in answers[-1]
    assert noted(shop, "capabilities")[0] == ["elicitation", "sampling"]
    await shop.ask(calls(("work_ask_model", {})), "red")
    assert "red" in shop.script.results["call_0"]


async def test_servers_are_started_at_once(shop: Shop) -> None:
    tables = ""
    for name in ("one", "two"):
        (shop.folder / name).mkdir()
        tables += f"[mcp.{name}]\ncommand = {command(shop.folder / name, '1')}\n"
    shop.open(tables)
    assert isinstance(await shop.ask("hello"), Finished)
    ledgers = [(shop.folder / name / "ledger").read_text() for name in ("one", "two")]
    entries = [json.loads(line) for ledger in ledgers for line in ledger.splitlines()]
    started = [entry["started"] for entry in entries if "started" in entry]
    ready = [entry["ready"] for entry in entries if "ready" in entry]
    assert (len(started), len(ready)) == (2, 2)
    assert max(started) < min(ready)


async def test_a_server_that_floods_is_cut_short(shop: Shop) -> None:
    opened(shop)
    assert isinstance(await shop.ask(calls(("work_flood", {})), "done"), Finished)
    told = shop.script.results["call_0"]
    assert len(told) < 401_000
    assert "characters left out]" in told


@pytest.mark.parametrize(("trusted", "told"), [("true", "you may call it again"), ("false", "Do not repeat it")])
async def test_a_lost_call_of_an_idempotent_tool_may_be_made_again(shop: Shop, trusted: str, told: str) -> None:
    opened(shop, f"trusted = {trusted}")
    (shop.folder / "die").write_text("")
    await shop.accept(await shop.ask(calls(("work_paint", PAINT)), "it may have run"))
    assert "the call may have run" in shop.script.results["call_0"]
    assert told in shop.script.results["call_0"]
    assert noted(shop, "tool") == ["paint"]
