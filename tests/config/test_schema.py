"""signoff.toml: defaults, every key, and errors that name the line and what to write."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from signoff.approvals.model import Verdict
from signoff.config.schema import BUILTIN_TOOLS, DEFAULT_TOOLS, Config, RuleConfig, load_config, parse_config
from signoff.errors import ConfigError


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_config(dedent(text).lstrip("\n"))
    return str(caught.value).splitlines()


def problem(text: str) -> str:
    found = problems(text)
    assert len(found) == 1, found
    return found[0]


def test_without_a_file_everything_is_at_its_default(tmp_path: Path) -> None:
    config = load_config(tmp_path / "signoff.toml", required=False)
    assert config == Config()
    assert config.agent.model is None
    assert config.agent.import_ is None
    assert config.agent.instructions
    assert config.tools.enable == DEFAULT_TOOLS
    assert set(BUILTIN_TOOLS) - set(DEFAULT_TOOLS) == {"delete_file", "rotate_log"}
    assert config.tools.plugins == ()
    assert config.tools.undeclared is None
    assert config.tools.workspace == "data/workspace"
    assert config.access.dm_users == ()
    assert config.approvals.mode == "interactive"
    assert config.approvals.timeout == 300
    assert config.approvals.batch == "hold"
    assert config.approvals.approvers == ("manage_server",)
    assert config.approvals.on_no_approver == "reject"
    assert config.rules == ()
    limits = config.limits
    assert (limits.calls_per_response, limits.turns_per_person, limits.model_requests_per_turn) == (10, 3, 25)
    assert (limits.queue_per_person, limits.queue_per_conversation, limits.tool_seconds) == (5, 5, 120.0)
    assert (limits.tools_per_person, limits.shutdown_grace) == (10, 15.0)
    assert limits.catch_up == 3600.0


def test_a_file_that_was_asked_for_must_be_there(tmp_path: Path) -> None:
    path = tmp_path / "other.toml"
    with pytest.raises(ConfigError, match=r"other\.toml: there is no such file; create it or correct SIGNOFF_CONFIG"):
        load_config(path, required=True)


def test_a_folder_or_bytes_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="make it a readable file"):
        load_config(tmp_path, required=False)
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_config(tmp_path / "x.toml", required=False)


def test_every_key_is_read(tmp_path: Path) -> None:
    path = tmp_path / "signoff.toml"
    path.write_text(
        dedent("""
        [agent]
        instructions = "Be brief."
        model = "demo"
        import = "my_agents.support:agent"

        [tools]
        enable = ["roll_dice"]
        plugins = ["my_tools.py"]
        undeclared = "ask"
        workspace = "files"

        [access]
        servers = [111111111111111111, "222222222222222222"]
        channels = ["3"]
        roles = [4]
        dm_users = [5]

        [approvals]
        mode = "auto_deny"
        timeout = "90s"
        batch = "split"
        approvers = ["asker", "role:6", "user:7", "manage_server"]
        on_no_approver = "approve"

        [[rules]]
        tool = "file_*"
        verdict = "ask"
        when = { path = ["/etc/*", "*.key"], mode = "w" }
        approvers = ["role:8"]
        timeout = "1h"
        reason = "Files are precious."

        [[rules]]
        tool = "shell"
        verdict = "deny"
        [rules.unless]
        command = "ls*"

        [limits]
        calls_per_response = 1
        turns_per_person = 2
        queue_per_person = 3
        queue_per_conversation = 4
        model_requests_per_turn = 5
        model_retries = 9
        history_tokens = 5000
        rejected_cards = 7
        tools_per_person = 6
        tool_seconds = 0.5
        shutdown_grace = "2s"
        attachment_kinds = ["image"]
        attachments_per_message = 6
        attachment_text_bytes = 7
        attachment_image_bytes = 8
        quoted_characters = 0
        catch_up = "30m"
        """)
    )
    config = load_config(path, required=True)
    assert config.folder == tmp_path
    assert (config.agent.instructions, config.agent.model) == ("Be brief.", "demo")
    assert config.agent.import_ == "my_agents.support:agent"
    assert (config.tools.enable, config.tools.plugins) == (("roll_dice",), ("my_tools.py",))
    assert (config.tools.undeclared, config.tools.workspace) == ("ask", "files")
    assert config.access.servers == ("111111111111111111", "222222222222222222")
    assert (config.access.channels, config.access.roles, config.access.dm_users) == (("3",), ("4",), ("5",))
    assert (config.approvals.mode, config.approvals.batch) == ("auto_deny", "split")
    assert (config.approvals.timeout, config.approvals.on_no_approver) == (90.0, "approve")
    assert config.approvals.approvers == ("asker", "role:6", "user:7", "manage_server")
    first, second = config.rules
    assert first == RuleConfig(
        tool=("file_*",),
        verdict=Verdict.ASK,
        when={"path": ("/etc/*", "*.key"), "mode": ("w",)},
        approvers=("role:8",),
        timeout=3600.0,
        reason="Files are precious.",
    )
    assert second == RuleConfig(tool=("shell",), verdict=Verdict.DENY, unless={"command": ("ls*",)})
    assert config.limits.model_dump() == {
        "calls_per_response": 1,
        "turns_per_person": 2,
        "queue_per_person": 3,
        "queue_per_conversation": 4,
        "model_requests_per_turn": 5,
        "model_retries": 9,
        "history_tokens": 5000,
        "rejected_cards": 7,
        "tools_per_person": 6,
        "tool_seconds": 0.5,
        "shutdown_grace": 2.0,
        "attachment_kinds": ("image",),
        "attachments_per_message": 6,
        "attachment_text_bytes": 7,
        "attachment_image_bytes": 8,
        "quoted_characters": 0,
        "catch_up": 1800.0,
    }


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("0.5", 0.5), ("300", 300.0), ('"5m"', 300.0), ('"1.5h"', 5400.0), ('"2 d"', 172800.0), ('"500ms"', 0.5)],
)
def test_a_timeout_is_seconds_or_a_text_with_a_unit(written: str, seconds: float) -> None:
    assert parse_config(f"[approvals]\ntimeout = {written}").approvals.timeout == seconds


@pytest.mark.parametrize(
    "written", ["0", "-5", "inf", "nan", "true", '""', '"5"', '"5 days"', '"-5m"', '"31d"', '"1e9s"', "2024-01-01"]
)
def test_any_other_timeout_is_refused(written: str) -> None:
    message = problem(f"[approvals]\ntimeout = {written}")
    assert message.startswith("signoff.toml:2: [approvals] timeout is ")
    assert message.endswith('; write seconds, or a text such as "90s", "5m" or "1h", from 0.1 seconds to 30 days')


@pytest.mark.parametrize("written", ["true", "-5", "0", "1.5", '"abc"', '"12a"', '"１２３"', '"123\\n"', '""'])
def test_ids_are_digits(written: str) -> None:
    message = problem(f"[access]\nroles = [5, {written}]")
    assert message.startswith("signoff.toml:2: [access] roles has the entry ")


@pytest.mark.parametrize("written", ['"@admins"', '"role:mods"', '"123"', '"manage_server "', '"user:5\\n"', "5"])
def test_approvers_are_ids_and_not_names(written: str) -> None:
    message = problem(f"[approvals]\napprovers = [{written}]")
    assert '; write a list of "manage_server", "asker", "role:ID" or "user:ID"' in message


def test_nobody_is_not_a_list_of_approvers() -> None:
    assert problem("[approvals]\napprovers = []").startswith("signoff.toml:2: [approvals] approvers is []")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[agent]\nmodel = demo", 2, "put text in quotes"),
        ("[agent]\nmodel = 'a'\nmodel = 'b'", 3, "written twice"),
        ("[agent]\n\n[agent]", 3, "written twice"),
        ("[agent", 1, "close the bracket"),
        ("[agent]\ninstructions = '''\nnever ends\n\n", 3, "close the text"),
        ("[agent]\nmodel 'a'", 2, 'write key = "value"'),
        ('[agent]\nmodel = "C:\\dir"', 2, "single quotes"),
        ("a = " + "[" * 5000, 1, "nested too deeply"),
    ],
)
def test_a_syntax_error_names_its_line(text: str, line: int, words: str) -> None:
    message = problem(text)
    assert message.startswith(f"signoff.toml:{line}: ")
    assert words in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[approvals]\ntimout = 5", '2: [approvals] has no key "timout"; write timeout'),
        ("[agent]\ntimeout = 5", '2: [agent] has no key "timeout"; write it under [approvals]'),
        ("[agent]\nxyz = 5", '2: [agent] has no key "xyz"; write one of instructions, model, import, deps, settings'),
        ("[agent]\nimport_ = 'a:b'", '2: [agent] has no key "import_"; write import'),
        ("[agent]\n[approval]\ntimeout = 5", '2: there is no table "approval"; write [approvals]'),
        ("timeout = 5", '1: "timeout" is outside of any table; move it under [approvals]'),
        ("[[rule]]\ntool = 'x'", '1: there is no table "rule"; write [[rules]]'),
        ("[rules]\ntool = 'x'", '1: rules is {"tool": "x"}; write a table that starts with [[rules]]'),
        ("tools = 5", "1: tools is 5; write a table that starts with [tools]"),
        ("[mcp]\nurl = 'http://x'", '2: "url" is outside of any table; move it under [mcp.NAME]'),
        ("[mcp.a]\nurll = 'http://x'", '2: [mcp.a] has no key "urll"; write url'),
        ("mcp = 5", "1: mcp is 5; write a table that starts with [mcp.NAME]"),
    ],
)
def test_an_unknown_key_suggests_the_right_one(text: str, expected: str) -> None:
    assert problem(text) == f"signoff.toml:{expected}"


def test_all_problems_are_listed_with_their_lines_in_the_order_of_the_file() -> None:
    found = problems('''
        # a comment with = and [brackets]
        [limits]
        calls_per_response = 0

        [[rules]]
        tool = "a"
        verdict = "ask"
        reason = """
        [[rules]]
        tool = 5
        """

        [[rules]]
        verdict = "maybe"
        when = { path = "x", "quoted key" = 5 }
        unles = { a = "b" }
        [rules.unless]
        command = [
            "ls", # fine
            7,
        ]

        [[rules]]
        tool = ""
        verdict = "deny"
        timeout = 5

        [access]
        roles = [
            1,
            "x",
        ]
    ''')
    assert [line.split(":")[1] for line in found] == ["3", "13", "14", "15", "16", "20", "24", "31"]
    assert found[1].startswith('signoff.toml:13: [[rules]] number 2 has no tool; write tool = "NAME"')
    assert 'verdict is "maybe"; write verdict = "allow", "ask" or "deny"' in found[2]
    assert "[[rules]] number 2 when.quoted key is 5" in found[3]
    assert 'has no key "unles"; write unless' in found[4]
    assert "[[rules]] number 2 unless.command has the entry 7" in found[5]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[mcp.a]", "1: [mcp.a] needs a command or a url; write one of the two"),
        ("[mcp.a]\ncommand = ['x']\nurl = 'http://x'", "1: [mcp.a] needs a command or a url; write one of the two"),
        ("[mcp.a]\nurl = 'http://x'\nenv = { A = 'b' }", "1: [mcp.a] has a url and env, which only a command takes"),
        ("[mcp.a]\ncommand = ['x']\nheaders = { A = 'b' }", "1: [mcp.a] has a command and headers, which only a url"),
        ("[mcp.a]\nurl = 'file:///x'", '2: [mcp.a] url is "file:///x"; write an address in quotes that starts with'),
        ("[mcp.a]\ncommand = []", '2: [mcp.a] command is []; write a list, for example ["python", "server.py"]'),
        ("[mcp.a]\ncommand = ['x']\nenv = { A = 5 }", "3: [mcp.a] env.A is 5; write names and texts, in which ${NAME}"),
        ("[mcp.A]\nurl = 'http://x'", '1: "A" cannot be the NAME of [mcp.NAME]; write up to 20 of a-z, 0-9 and _'),
    ],
)
def test_what_is_wrong_with_an_mcp_server_is_said(text: str, expected: str) -> None:
    assert f"signoff.toml:{expected}" in problem(text)


def test_a_rule_that_asks_nobody_has_no_approvers() -> None:
    message = problem('\n[[rules]]\ntool = "x"\nverdict = "deny"\ntimeout = 5')
    assert message.startswith("signoff.toml:1: [[rules]] number 1 has approvers, a timeout")


@pytest.mark.parametrize("written", ["5", "[]", '""', "{ b = 'c' }", "[5]"])
def test_patterns_are_texts(written: str) -> None:
    message = problem(f'[[rules]]\ntool = "x"\nverdict = "ask"\nwhen = {{ a = {written} }}')
    assert message.startswith("signoff.toml:4: [[rules]] number 1 when.a ")
    assert "in quotes" in message


def test_a_name_of_no_built_in_tool_is_refused() -> None:
    message = problem('[tools]\nenable = [\n"roll_dice",\n"roll_dices"]')
    assert message.startswith('signoff.toml:4: [tools] enable has the entry "roll_dices"; write a list of some of: ')


def test_a_switch_is_not_read_loosely() -> None:
    assert "calls_per_response is true" in problem("[limits]\ncalls_per_response = true")
    assert 'calls_per_response is "5"' in problem('[limits]\ncalls_per_response = "5"')
    assert 'mode is "AUTO_APPROVE"' in problem('[approvals]\nmode = "AUTO_APPROVE"')


def test_the_file_is_named_as_it_was_given_and_a_long_value_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "prod.toml"
    path.write_text(f"[approvals]\r\n\r\nmode = '{'x' * 500}'\r\n")
    with pytest.raises(ConfigError) as caught:
        load_config(path, required=False)
    assert str(caught.value).startswith(f"{path}:3: [approvals] mode is ")
    assert len(str(caught.value)) < len(str(path)) + 200


def test_a_config_cannot_be_changed() -> None:
    config = parse_config("")
    with pytest.raises(ValueError):
        config.approvals.timeout = 1.0  # pyright: ignore[reportAttributeAccessIssue]


def test_the_record_may_keep_texts_for_longer_than_other_durations() -> None:
    assert parse_config("").audit.keep_text == 90 * 86400
    found = parse_config('[audit]\nkeep_text = "365d"\nlog_channels = [123456789012345678]')
    assert found.audit.keep_text == 365 * 86400
    assert found.audit.log_channels == ("123456789012345678",)
    for wrong in ('"4000d"', '"5m"', '"for ever"'):
        with pytest.raises(ConfigError, match="from one hour to 3650 days"):
            parse_config(f"[audit]\nkeep_text = {wrong}")


@pytest.mark.parametrize(("written", "seconds"), [('"off"', 0.0), ("0", 0.0), ('"45m"', 2700.0), ('"1d"', 86400.0)])
def test_the_search_for_missed_mentions_can_be_limited_or_turned_off(written: str, seconds: float) -> None:
    assert parse_config(f"[limits]\ncatch_up = {written}\n").limits.catch_up == seconds


@pytest.mark.parametrize("written", ['"2d"', "-1", '"never"', "true"])
def test_a_wrong_limit_for_missed_mentions_names_what_to_write(written: str) -> None:
    with pytest.raises(ConfigError, match='"off" or 0 turns it off'):
        parse_config(f"[limits]\ncatch_up = {written}\n")
