"""Readers for a drawn card, and the check that it is within Discord's limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from signoff.approvals.model import Actor, Place
from signoff.bot.card_view import Rendered
from signoff.bot.split import size

PLACE = Place("1", "2", "2")
MAX = Actor("100", "Max @everyone", "1")
ADA = Actor("200", "**Ada**\n# x", "1", manages_server=True)


def components(rendered: Rendered) -> Iterator[dict[str, Any]]:
    def walk(parts: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for part in parts:
            yield part
            yield from walk(part.get("components", []))

    return walk(rendered.view.to_components())


def texts(rendered: Rendered) -> list[str]:
    return [part["content"] for part in components(rendered) if part["type"] == 10]


def buttons(rendered: Rendered) -> list[dict[str, Any]]:
    return [part for part in components(rendered) if part["type"] == 2]


def within_limits(rendered: Rendered) -> None:
    assert sum(size(text) for text in texts(rendered)) <= 4000
    assert rendered.view.content_length() <= 4000
    assert all(text for text in texts(rendered))
    assert len(list(components(rendered))) <= 40
    assert len(rendered.card.files) <= 10
    for button in buttons(rendered):
        assert 1 <= len(button["label"]) <= 80
        assert len(button["custom_id"]) <= 100
