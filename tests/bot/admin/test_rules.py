"""`/signoff` over real sockets: who may use it, suggestions, registration, and errors."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

import pytest

from signoff.approvals.errors import Refused
from signoff.bot.admin import responses
from signoff.bot.client import SignoffClient
from signoff.errors import StoreError
from tests.rigs.admin import AdminRig, FakeAdministration, admin, idle, private  # noqa: F401 - fixtures
from tests.rigs.admin_commands import COMMANDS
from tests.rigs.bot import until

# ruff: noqa: F811 - a fixture is asked for by its name

ANSWERING = ("CommandTree-invoker", "discord.py: on_interaction")
"""How the library names the tasks in which a command and a press are answered."""
# Who may


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"stop"}))
async def test_a_member_without_manage_server_is_refused_privately(admin: AdminRig, command: str) -> None:
    answer = await admin.run(command, admin.max, **COMMANDS[command])
    assert "Manage Server" in private(answer)
    assert admin.administration.calls == []


async def test_a_member_without_manage_server_stops_their_own_runs(admin: AdminRig) -> None:
    admin.administration.running = 2
    answer = private(await admin.run("stop", admin.max))
    assert answer == "Stopped 2 runs of yours here."
    ((actor, _),) = admin.administration.told("stop")
    assert (actor.id, actor.manages_server) == (str(admin.max.id), False)


async def test_discord_offers_the_commands_to_everybody_in_servers_only(admin: AdminRig) -> None:
    (group,) = await admin.ada.commands("general")
    assert {option["name"] for option in group["options"]} == {
        *(name.split()[0] for name in COMMANDS),
        "inbox",
        "usage",
    }
    assert [command["name"] for command in await admin.max.commands("general")] == ["signoff"]
    assert await admin.ada.commands(await admin.ada.dm("Signoff")) == []


async def test_a_direct_conversation_is_refused(admin: AdminRig) -> None:
    direct = await admin.ada.dm("Signoff")
    answer = await admin.ada.run(direct, "signoff policy", forged=True)
    assert "only in a server" in answer.text
    assert admin.administration.calls == []


@pytest.mark.parametrize(
    ("line", "focused"),
    [
        ("protect", "tool"),
        ("protect", "argument"),
        ("protect", "unless_argument"),
        ("unprotect", "rule"),
        ("test", "tool"),
        ("revoke", "grant"),
        ("audit", "tool"),
    ],
)
async def test_suggestions_are_for_admins_only(admin: AdminRig, line: str, focused: str) -> None:
    admin.rule()
    admin.administration.remembered.append(admin.grant({"path": "a.txt"}))
    typed: dict[str, Any] = {focused: ""}
    assert await admin.choices(line, focused, **typed)
    # Discord would still send Max's command if the server showed it to him.
    body = {"channel": "general", "line": f"signoff {line}", "options": {focused: ""}, "focused": focused}
    admin.administration.calls.clear()
    found = await admin.sandbox.call("POST", f"/people/{admin.max.id}/command", body | {"forged": True})
    assert found["state"] == "answered"
    assert found["choices"] == []
    assert admin.administration.calls == []


# Suggestions


async def test_suggestions_of_tools_and_of_their_arguments(admin: AdminRig) -> None:
    assert await admin.choices("protect", "tool", tool="file") == ["delete_file", "write_file"]
    assert await admin.choices("protect", "argument", tool="write_file", argument="") == ["path", "text"]
    assert await admin.choices("protect", "argument", tool="*_file", argument="f") == ["force"]
    assert await admin.choices("protect", "argument", argument="sid") == ["sides"]


async def test_failing_or_slow_suggestions_are_empty(admin: AdminRig, caplog: pytest.LogCaptureFixture) -> None:
    admin.administration.fails_with = StoreError("no disk")
    assert await admin.choices("unprotect", "rule", rule="") == []
    assert "suggestions failed" in caplog.text


# Failures


async def test_a_refusal_is_told_as_plain_text(admin: AdminRig) -> None:
    admin.administration.fails_with = Refused("not **now** @everyone `x`")
    text = private(await admin.run("pause"))
    assert text == r"not \*\*now\*\* \@everyone \`x\`"


async def test_any_other_error_is_one_private_sentence_and_logged(
    admin: AdminRig, caplog: pytest.LogCaptureFixture
) -> None:
    admin.administration.fails_with = StoreError("the disk at secret-place is full")
    text = private(await admin.run("pause"))
    assert "bot's log" in text
    assert "secret-place" not in text
    assert "secret-place" in caplog.text


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("protect", {"tool": 5}),
        ("protect", {"tool": "x", "quorum": "many"}),
        ("unprotect", {}),
        ("unprotect", {"rule": "a'; DROP TABLE rules; --"}),
        ("revoke", {"grant": "\u202e@everyone"}),
        ("audit", {"tool": "a b\n```"}),
        ("audit", {"kind": "nothing"}),
    ],
)
async def test_options_that_no_client_would_send_are_refused(
    admin: AdminRig, line: str, options: dict[str, Any]
) -> None:
    assert private(await admin.run(line, **options))
    assert admin.administration.calls == []


async def test_a_slow_order_is_given_time(admin: AdminRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "PATIENCE", 0.05)
    admin.administration.delay = 0.3
    answer = await admin.answered(await admin.run("resume"), "not paused")
    assert answer.callback_type == 5
    assert len(answer.messages) == 1
    private(answer)


@pytest.mark.parametrize("error", [TimeoutError(), OSError("disk"), ValueError("x"), KeyError("x")])
async def test_no_error_of_an_order_leaves_somebody_without_an_answer(admin: AdminRig, error: Exception) -> None:
    admin.administration.fails_with = error
    assert "bot's log" in private(await admin.run("resume"))


async def test_a_slow_refusal_and_a_slow_failure_are_told_too(admin: AdminRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "PATIENCE", 0.05)
    admin.administration.delay = 0.3
    for error, words in ((Refused("Not today."), "Not today."), (StoreError("x"), "bot's log")):
        admin.administration.fails_with = error
        private(await admin.answered(await admin.run("pause"), words))


@dataclass
class LastOrders(FakeAdministration):
    """Carries out the order and closes the client before the response is sent."""

    client: SignoffClient | None = None

    async def _note(self, name: str, *what: Any) -> None:
        await super()._note(name, *what)
        if self.client:
            await self.client.close()


@pytest.mark.parametrize("what", ["said", "shown", "turned"])
async def test_an_order_in_the_last_instant_makes_no_noise(
    idle: AdminRig, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    orders = idle.administration = LastOrders(rows=[idle.row(seq) for seq in range(1, 40)])
    async with idle.running() as client:
        page = (await idle.run("audit")).reply
        assert page
        orders.client = client
        caplog.clear()
        match what:
            case "said":
                await idle.run("resume", wait=0)
            case "shown":
                await idle.run("audit", wait=0)
            case _:
                await idle.ada.click(page, "Older", wait=0)
        await until(client.is_closed)
        await until(lambda: not any(t.get_name().startswith(ANSWERING) for t in asyncio.all_tasks()))
        assert [record for record in caplog.records if record.levelno > logging.INFO] == []


async def test_a_long_policy_comes_as_a_file(admin: AdminRig) -> None:
    for number in range(80):
        admin.rule(f"rule{number}", when={"path": tuple(f"/{n}/" + "x" * 90 for n in range(10))})
    answer = await admin.run("policy")
    assert "attached" in private(answer)
    (message,) = answer.messages
    (file,) = message.files
    assert file["filename"] == "policy.md"
    whole = (await admin.sandbox.fetch(file["url"])).decode()
    assert all(f"`rule{number}`" in whole for number in range(80))


async def test_a_rather_long_policy_comes_in_parts(admin: AdminRig) -> None:
    for number in range(30):
        admin.rule(f"rule{number}")
    answer = await admin.answered(await admin.run("policy"), "`roll_dice`")
    assert 2 <= len(answer.messages) <= 3
    assert "`rule29`" in private(answer)


# Registration


async def test_without_orders_there_are_no_commands(idle: AdminRig) -> None:
    async with idle.running(commands=False):
        assert await idle.ada.commands("general") == []
        assert await idle.sandbox.rest_calls("PUT", "/commands") == []


async def test_a_refused_registration_is_one_line_and_the_bot_goes_on(
    idle: AdminRig, caplog: pytest.LogCaptureFixture
) -> None:
    await idle.sandbox.fault("PUT", "/commands", status=400, code=50035, message="Invalid Form Body")
    async with idle.running():
        (line,) = [record for record in caplog.records if "refused the /signoff commands" in record.message]
        assert line.levelno == logging.ERROR
        assert "\n" not in line.getMessage()
        assert line.exc_info is None
        assert idle.client.is_ready()
