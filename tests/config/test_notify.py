"""`notify` and `escalate` in signoff.toml: what they mean to the policy, and the line for each mistake."""

from __future__ import annotations

import pytest

from signoff.agent.setup import build_policy, build_terms
from signoff.approvals.model import Escalation
from signoff.config.approval_checks import check_approvals
from signoff.config.schema import parse_config
from signoff.errors import ConfigError

ESCALATE = '{ after = "2m", to = ["role:ID", "user:ID"] }'


def test_unset_nobody_is_told_and_nothing_is_escalated() -> None:
    config = parse_config("")
    assert (config.approvals.notify, config.approvals.escalate) == ("none", None)
    assert (build_terms(config).notify, build_terms(config).escalate) == (None, None)


def test_defaults_and_rules_reach_the_policy() -> None:
    config = parse_config(
        '[approvals]\nnotify = "dm"\nescalate = { after = "1m", to = ["manage_server"] }\n'
        '[[rules]]\ntool = "a"\nverdict = "ask"\nnotify = "channel:12"\n'
        'escalate = { after = "90s", to = ["role:1", "user:2"] }\n'
    )
    terms, policy = build_terms(config), build_policy(config)
    assert (terms.notify, terms.escalate) == (("dm",), Escalation(60.0, ("manage_server",)))
    assert policy.escalate == terms.escalate
    assert policy.rules[0].escalate == Escalation(90.0, ("role:1", "user:2"))
    assert policy.rules[0].ruling().notify == ("channel:12",)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('[approvals]\nnotify = "all"', 2, 'notify is "all"; write "none", "ping", "dm" or "channel:ID"'),
        ('[approvals]\nnotify = "channel:ops"', 2, 'notify is "channel:ops"'),
        ("[approvals]\nnotify = true", 2, "notify is true"),
        ('[approvals]\n\nescalate = "2m"', 3, f'escalate is "2m"; write {ESCALATE}'),
        ('[approvals]\nescalate = { to = ["role:1"] }', 2, f"has no escalate.after; write {ESCALATE}"),
        ('[approvals]\nescalate = { after = "1m", to = [] }', 2, "escalate.to is []"),
        ('[approvals]\nescalate = { after = "1m", to = ["asker"] }', 2, 'escalate.to has the entry "asker"'),
        ('[approvals]\nescalate = { after = "1m", to = ["role:1"], by = 1 }', 2, 'escalate has no key "by"'),
        ('[approvals]\nescalate = { after = "5m", to = ["role:1"] }', 1, "escalates after its timeout, so never"),
        ('[[rules]]\ntool = "a"\nverdict = "deny"\nnotify = "dm"', 1, "notify or escalate, but nobody is asked"),
        (
            '[[rules]]\ntool = "a"\nverdict = "ask"\ntimeout = 5\nescalate = { after = 9, to = ["role:1"] }',
            1,
            "[[rules]] number 1 escalates after its timeout",
        ),
    ],
)
def test_a_mistake_is_named_with_its_line_and_what_to_write(text: str, line: int, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(text)
    (problem,) = str(caught.value).splitlines()
    assert problem.startswith(f"signoff.toml:{line}: ")
    assert words in problem


def test_people_who_may_decide_after_an_escalation_count_as_approvers() -> None:
    only_the_asker = '[approvals]\napprovers = ["asker"]\nfour_eyes = true\n'
    assert check_approvals(parse_config(only_the_asker))
    assert not check_approvals(parse_config(only_the_asker + 'escalate = { after = "1m", to = ["role:1"] }'))
