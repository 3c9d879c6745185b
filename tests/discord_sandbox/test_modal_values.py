"""The inputs of modals: what a bot may send, what a person may submit, and what discord.py reads from it."""

from typing import Any

import discord
import pytest
from discord import ui

from discord_sandbox import Outcome, Person, SandboxClient, SandboxError
from discord_sandbox.apierrors import ApiError
from discord_sandbox.modals import check
from tests.rigs.press_parts import post, row
from tests.rigs.real_client import Bot

LETTERS = [discord.SelectOption(label=letter.upper(), value=letter) for letter in "abc"]


class Everything(ui.Modal, title="Everything"):
    """One modal with each kind of input."""

    words: ui.TextDisplay[Any] = ui.TextDisplay("Read **this** first.")
    scope: ui.Label[Any] = ui.Label(
        text="What",
        component=ui.RadioGroup(
            custom_id="scope",
            options=[
                discord.RadioGroupOption(label="This call", value="call", default=True),
                discord.RadioGroupOption(label="This tool", value="tool", description="With these arguments"),
            ],
        ),
    )
    names: ui.Label[Any] = ui.Label(
        text="Which",
        component=ui.CheckboxGroup(
            custom_id="names",
            required=False,
            min_values=0,
            max_values=2,
            options=[discord.CheckboxGroupOption(label=letter, value=letter) for letter in "abc"],
        ),
    )
    agreed: ui.Label[Any] = ui.Label(text="Sure", component=ui.Checkbox(custom_id="agreed", default=False))
    file: ui.Label[Any] = ui.Label(
        text="File", component=ui.FileUpload(custom_id="file", required=False, min_values=0, max_values=1)
    )


class Picks(ui.Modal, title="Picks"):
    letter: ui.Label[Any] = ui.Label(text="Letter", component=ui.Select(custom_id="letter", options=LETTERS))
    who: ui.Label[Any] = ui.Label(text="Who", component=ui.UserSelect(custom_id="who"))


async def opened(bot: Bot, sandbox: SandboxClient, modal: ui.Modal) -> tuple[Person, Outcome]:
    """Post a button that opens the modal, and let Max press it."""
    shown = await post(bot, sandbox, row(ui.Button(label="b", custom_id="b")), content="x")

    async def respond(interaction: discord.Interaction) -> None:
        if interaction.type is discord.InteractionType.component:
            await interaction.response.send_modal(modal)

    bot.answer = respond
    max_ = await sandbox.person("Max")
    return max_, await max_.click(shown, "b")


async def submitted(modal: ui.Modal, max_: Person, outcome: Outcome, values: dict[str, Any]) -> None:
    """Submit the form and wait until discord.py has read it."""

    async def on_submit(interaction: discord.Interaction) -> None:
        await interaction.response.send_message("read", ephemeral=True)

    modal.on_submit = on_submit  # type: ignore[method-assign]
    answer = await max_.submit(outcome, values)
    assert answer.text == "read"


async def test_discord_py_reads_each_kind_of_input(bot: Bot, sandbox: SandboxClient) -> None:
    modal = Everything()
    max_, outcome = await opened(bot, sandbox, modal)
    file = {"filename": "notes.txt", "data": "aGVsbG8="}
    values = {"scope": "tool", "names": ["a", "c"], "agreed": True, "file": [file]}
    await submitted(modal, max_, outcome, values)
    inputs: list[Any] = [label.component for label in (modal.scope, modal.names, modal.agreed, modal.file)]
    assert (inputs[0].value, inputs[1].values, inputs[2].value) == ("tool", ["a", "c"], True)
    [attachment] = inputs[3].values
    assert (attachment.filename, await attachment.read()) == ("notes.txt", b"hello")


async def test_a_field_that_is_left_alone_keeps_its_default(bot: Bot, sandbox: SandboxClient) -> None:
    modal = Everything()
    max_, outcome = await opened(bot, sandbox, modal)
    await submitted(modal, max_, outcome, {})
    inputs: list[Any] = [label.component for label in (modal.scope, modal.names, modal.agreed, modal.file)]
    assert (inputs[0].value, inputs[1].values, inputs[2].value, inputs[3].values) == ("call", [], False, [])


async def test_picked_people_arrive_as_members(bot: Bot, sandbox: SandboxClient) -> None:
    modal = Picks()
    olga = await sandbox.person("Olga")
    max_, outcome = await opened(bot, sandbox, modal)
    await submitted(modal, max_, outcome, {"letter": ["b"], "who": [olga.id]})
    letter, who = modal.letter.component, modal.who.component
    assert isinstance(letter, ui.Select)
    assert isinstance(who, ui.UserSelect)
    assert letter.values == ["b"]
    assert [member.name for member in who.values] == ["olga"]


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"scope": "everything"}, "everything is not offered"),
        ({"scope": []}, "a choice is required"),
        ({"scope": ["call", "tool"]}, "2 chosen, must be 1"),
        ({"names": ["z"]}, "z is not offered"),
        ({"names": ["a", "b", "c"]}, "3 chosen, must be 0 to 2"),
    ],
)
async def test_the_form_refuses_values_that_it_does_not_offer(
    bot: Bot, sandbox: SandboxClient, values: dict[str, Any], why: str
) -> None:
    max_, outcome = await opened(bot, sandbox, Everything())
    with pytest.raises(SandboxError, match=why):
        await max_.submit(outcome, values)


async def test_a_forged_submission_carries_any_value(bot: Bot, sandbox: SandboxClient) -> None:
    modal = Everything()
    max_, outcome = await opened(bot, sandbox, modal)
    await max_.submit(outcome, {"scope": "everything"}, forged=True, wait=0.2)
    scope: Any = modal.scope.component
    assert scope.value == "everything"


def _labelled(component: dict[str, Any]) -> dict[str, Any]:
    component = {"custom_id": "x"} | component
    return {"title": "t", "custom_id": "m", "components": [{"type": 18, "label": "l", "component": component}]}


def _options(count: int, *, defaults: int = 0) -> list[dict[str, Any]]:
    return [{"label": str(n), "value": str(n), "default": n < defaults} for n in range(count)]


@pytest.mark.parametrize(
    "component",
    [
        {"type": 21, "options": _options(1)},
        {"type": 21, "options": _options(11)},
        {"type": 21, "options": _options(3, defaults=2)},
        {"type": 22, "options": []},
        {"type": 22, "options": _options(2), "min_values": 0},
        {"type": 22, "options": _options(2), "max_values": 3},
        {"type": 22, "options": _options(3), "min_values": 3, "max_values": 2},
        {"type": 19, "max_values": 11},
        {"type": 3, "options": _options(2), "disabled": True},
        {"type": 3, "options": _options(3, defaults=2)},
        {"type": 2, "style": 1, "label": "a button"},
    ],
)
def test_discord_would_refuse_this_form(component: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as refusal:
        check(_labelled(component))
    assert refusal.value.code == 50035


@pytest.mark.parametrize(
    "component",
    [
        {"type": 21, "options": _options(2, defaults=1)},
        {"type": 22, "options": _options(1)},
        {"type": 22, "options": _options(2), "min_values": 0, "required": False},
        {"type": 23, "default": True},
        {"type": 19},
        {"type": 3, "options": _options(25), "max_values": 25},
    ],
)
def test_discord_would_show_this_form(component: dict[str, Any]) -> None:
    shown = check(_labelled(component))["components"][0]["component"]
    assert shown["custom_id"] == "x"
