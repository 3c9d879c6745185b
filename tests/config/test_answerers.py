"""`answerers` in signoff.toml: who may answer what a call asks people, and the line for each mistake."""

from __future__ import annotations

import pytest

from signoff.agent.setup import build_policy, build_terms
from signoff.config.schema import parse_config
from signoff.errors import ConfigError


def test_defaults_and_rules_reach_the_policy() -> None:
    assert build_terms(parse_config("")).answerers == ("asker", "manage_server")
    config = parse_config(
        '[approvals]\nanswerers = ["role:1"]\n'
        '[[rules]]\ntool = "a"\nverdict = "allow"\nanswerers = ["asker"]\ntimeout = "1m"\nreminder = "10s"\n'
        '[[rules]]\ntool = "a"\nverdict = "ask"\nanswerers = ["user:2"]\n'
    )
    assert build_terms(config).answerers == ("role:1",)
    allow, ask = (rule.ruling() for rule in build_policy(config).rules)
    assert (allow.answerers, allow.timeout, allow.reminder, ask.answerers) == (("asker",), 60.0, 10.0, ("user:2",))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[approvals]\nanswerers = []", 2, "answerers is []"),
        ('[approvals]\nanswerers = ["everybody"]', 2, 'answerers has the entry "everybody"'),
        ('[[rules]]\ntool = "a"\nverdict = "deny"\nanswerers = ["asker"]', 1, "has answerers, but the call is denied"),
        ('[[rules]]\ntool = "a"\nverdict = "allow"\ntimeout = "1m"', 1, "but nobody is asked"),
        ('[[rules]]\ntool = "a"\nverdict = "allow"\nanswerers = ["asker"]\nquorum = 2', 1, "but nobody is asked"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_what_to_write(text: str, line: int, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(text)
    (problem,) = str(caught.value).splitlines()
    assert problem.startswith(f"signoff.toml:{line}: ")
    assert words in problem
