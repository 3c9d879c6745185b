"""Readers for the responses to a click, and a masker for the forms."""

from __future__ import annotations

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


def states(rig: Rig, batch_id: str) -> list[RequestState]:
    return [r.state for r in rig.desk.batches[batch_id].requests]


MASKER = Masker(b"0123456789abcdef0123456789abcdef")
