"""How the demo model reads a prompt."""

from __future__ import annotations

import pytest

from signoff.agent.demo_grammar import read


@pytest.mark.parametrize(
    ("prompt", "calls"),
    [
        ('`call add {"a": 1}`', [["add"]]),
        ('Ada: call add {"a": 1}', [["add"]]),
        ('first call add {"a": 1}, then call sub {}', [["add"], ["sub"]]),
        ("call add {}\nthen call sub {}\ncall mul {}", [["add"], ["sub", "mul"]]),
        ('CALL add\n{"a": 1}', [["add"]]),
        ("call known; call unknown", [["known"]]),
        ("call unknown", []),
    ],
)
def test_the_exact_form_is_found_in_what_people_write(prompt: str, calls: list[list[str]]) -> None:
    assert [[call.tool for call in each.calls] for each in read(prompt, ["known"]).rounds] == calls


def test_mentions_of_the_form_inside_quotes_are_not_calls() -> None:
    assert read('she said "please call known {}"', ["known"]).rounds == ()
