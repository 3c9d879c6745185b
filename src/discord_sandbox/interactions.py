"""Interactions and their states: waiting, responded to once, or failed.

This module stores interactions and has the rules about time. `presses` builds the payloads, and `callbacks` carries out
the responses.
"""

import asyncio
import secrets
from dataclasses import dataclass, field
from enum import IntEnum

from discord_sandbox.model import Attachment, Json


class Kind(IntEnum):
    PING = 1
    COMMAND = 2
    COMPONENT = 3
    AUTOCOMPLETE = 4
    MODAL_SUBMIT = 5


FAILED_TEXT = {
    Kind.COMMAND: "The application did not respond",
    Kind.AUTOCOMPLETE: "Loading options failed",
    Kind.MODAL_SUBMIT: "Something went wrong. Try again.",
}
PRESS_FAILED = "This interaction failed"


@dataclass
class Interaction:
    id: int
    application_id: int
    kind: Kind
    user_id: int
    channel_id: int
    guild_id: int | None
    created: float
    token: str = field(default_factory=lambda: secrets.token_urlsafe(48))
    payload: Json = field(default_factory=dict[str, object])
    message_id: int | None = None
    forged: bool = False
    state: str = "waiting"
    error: str | None = None
    callback_type: int | None = None
    original_id: int | None = None
    messages: list[int] = field(default_factory=list[int])
    modal: Json | None = None
    choices: list[Json] | None = None
    updated: bool = False
    metadata: Json = field(default_factory=dict[str, object])
    settled: asyncio.Event = field(default_factory=asyncio.Event)

    def fail(self, text: str | None = None) -> None:
        self.state = "failed"
        self.error = text or FAILED_TEXT.get(self.kind, PRESS_FAILED)
        self.settled.set()

    def answered(self, callback_type: int) -> None:
        self.state = "answered"
        self.callback_type = callback_type
        self.settled.set()


class InteractionBook:
    """All interactions of this run. `deadline` and `token_life` can be changed, so that tests need not wait."""

    def __init__(self) -> None:
        self.deadline = 3.0
        self.token_life = 900.0
        self.files: dict[int, Attachment] = {}
        """The files that people uploaded in modals: attachment id -> attachment."""
        self._by_id: dict[int, Interaction] = {}
        self._by_token: dict[str, Interaction] = {}

    def add(self, interaction: Interaction) -> None:
        self._by_id[interaction.id] = interaction
        self._by_token[interaction.token] = interaction

    def get(self, interaction_id: int) -> Interaction | None:
        return self._by_id.get(interaction_id)

    def of_token(self, token: str) -> Interaction | None:
        return self._by_token.get(token)

    def all(self) -> list[Interaction]:
        return list(self._by_id.values())

    def can_answer(self, interaction: Interaction, now: float) -> bool:
        return interaction.state == "waiting" and now - interaction.created <= self.deadline

    def token_lives(self, interaction: Interaction, now: float) -> bool:
        return now - interaction.created <= self.token_life
