"""Readers for the responses to a click, and a masker for the forms."""

from __future__ import annotations

import re

from discord_sandbox import Person
from discord_sandbox.seen import Outcome, SeenMessage
from signoff.approvals.model import RequestState
from signoff.text.secrets.masker import Masker
from tests.rigs.bot import Rig


def private(answer: Outcome) -> str:
    assert answer.reply is not None, answer.raw
    assert answer.reply.ephemeral
    return answer.reply.text


def drawn(answer: Outcome) -> SeenMessage:
    assert answer.updated is not None, answer.raw
    return answer.updated


async def further(person: Person, card: SeenMessage, label: str) -> Outcome:
    """Press a button of the panel behind the card's "More…"."""
    answer = await person.click(card, "More…")
    private(answer)
    assert answer.reply is not None
    return await person.click(answer.reply, label)


OLD_BUTTONS = {"Edit…": "edit", "Reject with a reason…": "reason", "Remember…": "remember"}
"""Label of a button that cards of earlier versions had -> its verb."""


async def old_button(person: Person, card: SeenMessage, label: str) -> Outcome:
    """Press a button that the card of an earlier version had beside Accept and Reject. It must go on working."""
    request = re.search(r"Request ([0-9a-z]+)", card.text)
    assert request is not None
    revision = str(card.buttons[0].custom_id).split(":")[3]
    return await person.click(card, f"signoff:{OLD_BUTTONS[label]}:{request[1]}:{revision}:0", forged=True)


def states(rig: Rig, batch_id: str) -> list[RequestState]:
    return [r.state for r in rig.desk.batches[batch_id].requests]


MASKER = Masker(b"0123456789abcdef0123456789abcdef")
