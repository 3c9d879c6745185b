"""Rules about shell commands compare words: an allow rule covers one plain command, a deny rule any command."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from signoff.approvals.model import CallKey, ToolCall, Verdict
from signoff.approvals.policy import Context, Policy, Rule
from signoff.approvals.shell_words import read_line, read_value
from tests.conftest import ADA, PLACE

TAILS = [
    *(
        "; rm -rf x",
        "&& rm -rf x",
        "|| rm -rf x",
        "| rm -rf x",
        "& rm -rf x",
        "\nrm -rf x",
        "$(rm -rf x)",
        "`rm -rf x`",
    ),
    *(
        "<(rm -rf x)",
        ">(rm -rf x)",
        "> x",
        ">> x",
        "< x",
        "2>&1",
        "<<E\nrm -rf x\nE",
        "<<< x",
        "$HOME",
        "${x}",
        "$((1))",
    ),
    *(
        "*",
        "?",
        "[a]",
        "~",
        "{a,b}",
        "$'x'",
        '$"x"',
        '"$x"',
        '"$(rm -rf x)"',
        '"`rm -rf x`"',
        "# x",
        "\\\n x",
        "\r",
        "\x00",
    ),
    *("'", '"', "\\", "$(", "\u00a0", "\x1b[2K", "'\n'", "&", ";", "(rm -rf x)", "'a' ; rm -rf x"),
]
HEADS = ["X=1 ", "> x ", "! ", "{ ", "if ", "$x ", "(", "; ", "\n"]
NAMES = ["rm", "r''m", "'rm'", '"rm"', "\\rm", "r\\m", '"r"m', "/bin/rm", "'/bin/'rm"]
AROUND = [
    *(
        "{}",
        "true; {}",
        "true && {}",
        "false || {}",
        "echo x | {}",
        "echo x & {}",
        "\n{}",
        "echo $({})",
        'echo "$({})"',
    ),
    *(
        "echo `{}`",
        "cat <({})",
        "({})",
        "{{ {}; }}",
        "if true; then {}; fi",
        "while {}; do :; done",
        "X=1 {}",
        "> out {}",
    ),
    *(
        "2>/dev/null {}",
        "{{fd}}>x {}",
        "! {}",
        "f() {{ {}; }}",
        "function f {{ {}; }}",
        "sudo -n {}",
        "env A=1 {}",
        "xargs {}",
    ),
    *(
        "nohup {} &",
        "timeout 5 {}",
        "time -p {}",
        "command {}",
        "exec {}",
        "echo ${{x:-$({})}}",
        "cat <<E\n$({})\nE",
        "eval {}",
    ),
    *("case a in a) {};; esac", "coproc {}", "find . -exec {}", "/usr/bin/sudo {}"),
]


def call(command: Any) -> ToolCall:
    return ToolCall(CallKey("c", 0, "0"), "bash", {"command": command}, "schema")


async def verdict(command: Any, *rules: Rule, shell: tuple[str, ...] = ("command",), **options: Any) -> Verdict:
    policy = Policy(rules, undeclared=Verdict.ASK, **options)
    return (await policy.decide(call(command), None, Context(PLACE, ADA, shell=shell))).verdict


def allow(*globs: str) -> Rule:
    return Rule("bash", Verdict.ALLOW, when={"command": globs})


def deny(*globs: str) -> Rule:
    return Rule("bash", Verdict.DENY, when={"command": globs})


@pytest.mark.parametrize(
    "line", ["git status", "git  status --short", "git 'status'", 'gi"t" status -- "a b"', "git\tstatus"]
)
async def test_an_allow_rule_covers_a_plain_command_however_it_is_quoted(line: str) -> None:
    assert await verdict(line, allow("git status*")) is Verdict.ALLOW


@pytest.mark.parametrize("tail", TAILS)
async def test_an_allow_rule_never_covers_more_than_one_plain_command(tail: str) -> None:
    together = tail[0] not in "~#"  # they are plain letters inside a word
    for line in (f"git status {tail}", *([f"git status{tail}"] if together else [])):
        assert await verdict(line, allow("git status*", "*", "git *", "git status ?*")) is Verdict.ASK


@pytest.mark.parametrize("head", HEADS)
async def test_nothing_may_stand_before_the_command_of_an_allow_rule(head: str) -> None:
    assert await verdict(f"{head}git status", allow("*", "git status*")) is Verdict.ASK


@pytest.mark.parametrize("around", AROUND)
async def test_a_deny_rule_covers_a_command_wherever_and_however_it_is_written(around: str) -> None:
    for name in NAMES:
        line = around.format(f"{name} -rf x")
        assert await verdict(line, deny("rm *"), allow("*")) is Verdict.DENY, line
        asking = Rule("bash", Verdict.ASK, when={"command": ("rm -rf*",)})
        assert await verdict(line, asking, allow("*")) is Verdict.ASK, line


@pytest.mark.parametrize(
    "line", ["bash -c 'rm -rf x'", 'sh -c "true; rm -rf x"', "eval 'rm -rf x'", "su -c 'rm -rf x'"]
)
async def test_a_deny_rule_covers_the_text_that_a_shell_gets(line: str) -> None:
    assert await verdict(line, deny("rm *"), allow("*")) is Verdict.DENY


@pytest.mark.parametrize(
    "line", ["$X -rf x", "$'\\x72m' -rf x", "r$1m x", "`echo rm` x", "r? x", "{rm,-rf,x}", "rm 'x", "sh -c $X"]
)
async def test_a_command_that_the_shell_computes_or_nobody_can_read_meets_every_deny_rule(line: str) -> None:
    assert await verdict(line, deny("rm *"), allow("*")) is Verdict.DENY


HIDDEN = [
    "{rm,-rf,x,a{b}c}",
    "echo $(case x in x) rm x;; esac)",
    "cat <<A\n'\nA\nrm x\ncat <<A\n'\nA\n",
    "cat <<A\n'$(rm x)'\nA\n",
    "bash <<-'A B'\n\trm x\n\tA B\n",
    "(( 1 << 'rm x' ))\nrm x",
    "bash <<A\nrm x\nA",
    "bash <<< 'rm x'",
    "echo 'rm x' | sh",
    "echo 'rm x' | bash -s a",
    "echo 'rm x' | . /dev/stdin",
    "test -v 'a[$(rm x)]'",
    "printf -v 'a[`rm x`]' y",
    "mapfile -C 'rm x' -c 1 < y",
    'echo "$\'"; rm x; echo "\'"',
]
"""Lines in which bash runs `rm x`, although it is hard to see."""


@pytest.mark.parametrize("line", HIDDEN)
async def test_a_deny_rule_covers_a_command_that_is_hidden_from_a_reader(line: str) -> None:
    assert await verdict(line, deny("rm *"), allow("*")) is Verdict.DENY


@pytest.mark.parametrize("line", ["test -v 'a[$(rm x)]'", "printf -v 'a[`rm x`]' y", "let 'a[${ rm x; }]=1'"])
async def test_an_allow_rule_does_not_cover_a_substitution_in_quotes(line: str) -> None:
    """The commands of the shell that compute with their words carry it out."""
    assert await verdict(line, allow("*", "test *", "printf *", "let *")) is Verdict.ASK


@pytest.mark.parametrize(
    "line", ["cat <<A\nhello\nA\nls", "cat > x <<'A'\necho $(ls)\nA", "sh run.sh", "wc <<< 'rm x'"]
)
async def test_a_text_below_the_line_is_no_reason_to_refuse(line: str) -> None:
    assert await verdict(line, deny("rm *")) is Verdict.ASK


@pytest.mark.parametrize("line", ["git rm x", "echo rm x", "git commit -m 'rm x'", "ls $HOME", "grep -r rm ."])
async def test_a_deny_rule_leaves_other_commands_alone(line: str) -> None:
    assert await verdict(line, deny("rm *")) is Verdict.ASK


async def test_words_are_compared_one_by_one() -> None:
    assert await verdict("git status", allow("git status")) is Verdict.ALLOW
    assert await verdict("git status -s", allow("git status")) is Verdict.ASK
    assert await verdict("git statusx", allow("git status *")) is Verdict.ASK
    assert await verdict("git status", allow("git status *")) is Verdict.ALLOW
    assert await verdict("'git status' x", allow("git status*")) is Verdict.ASK, "one word is not two"
    assert await verdict("gitx -s", allow("git* -s")) is Verdict.ALLOW
    assert await verdict("git a b -s", allow("git* -s")) is Verdict.ASK


async def test_a_text_pattern_still_makes_a_rule_stricter_and_never_looser() -> None:
    assert await verdict("cat my-secret.txt", deny("*secret*")) is Verdict.DENY
    assert await verdict("cat my-sec''ret.txt", deny("*secret*")) is Verdict.DENY
    assert await verdict("cat a; git status", allow("*git status")) is Verdict.ASK


async def test_an_exception_of_a_deny_rule_holds_for_a_plain_command_alone() -> None:
    rule = Rule("bash", Verdict.DENY, unless={"command": ("git status*",)})
    assert await verdict("git status", rule) is Verdict.ASK
    assert await verdict("git status; ls", rule) is Verdict.DENY


async def test_an_exception_of_an_allow_rule_holds_for_any_command() -> None:
    rule = Rule("bash", Verdict.ALLOW, when={"command": ("git *",)}, unless={"command": ("git push*",)})
    assert await verdict("git log", rule) is Verdict.ALLOW
    assert await verdict("git 'push' -f", rule) is Verdict.ASK


async def test_a_list_of_words_is_one_command() -> None:
    assert await verdict(["git", "status", "; rm"], allow("git status*")) is Verdict.ALLOW
    assert await verdict(["rm", "x"], deny("rm *")) is Verdict.DENY
    assert await verdict(["sh", "-c", "rm x"], deny("rm *"), allow("*")) is Verdict.DENY
    for odd in ([], [1], None, 7, {"a": 1}):
        assert await verdict(odd, allow("*")) is Verdict.ASK
        assert await verdict(odd, deny("rm *")) is Verdict.DENY


async def test_the_operator_names_the_arguments_of_tools_that_declare_nothing() -> None:
    assert await verdict("git status; rm x", allow("git status*"), shell=()) is Verdict.ALLOW, "plain text without it"
    policy = Policy((allow("git status*"),), undeclared=Verdict.ASK, shell={"ba*": ("command",)})
    for line, wanted in (("git status; rm x", Verdict.ASK), ("git status -s", Verdict.ALLOW)):
        assert (await policy.decide(call(line), None, Context(PLACE, ADA))).verdict is wanted


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("'A=1' rm x", ("A=1", "rm", "x")),
        ('"A"=1 rm', ("A=1", "rm")),
        ("A\\=1 rm", ("A=1", "rm")),
        ("A=1 rm x", ("rm", "x")),
        ("A='1 2' rm", ("rm",)),
        ("a['x']=1 rm", ("rm",)),
        ('A+="1" rm', ("rm",)),
    ],
)
def test_only_an_assignment_without_quotes_is_no_command(line: str, command: tuple[str, ...]) -> None:
    read = read_line(line)
    assert read.commands == (command,)
    assert not read.plain, "no allow rule covers what other shells may read differently"


@example(["A="])
@given(
    st.lists(
        st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), max_size=8), min_size=1, max_size=5
    )
)
def test_quoted_words_are_read_as_they_are(words: list[str]) -> None:
    # Not shlex.quote: it leaves a reserved word such as `then` bare, which then is no command.
    line = read_line(" ".join("'" + word.replace("'", "'\"'\"'") + "'" for word in words))
    assert line.readable
    assert line.commands == (tuple(words),) or words[0] == ""
    assert line.plain or any(char in "".join(words) for char in "{}=`$") or not " ".join(words).isprintable()


@example("=';='")
@example("=';'")
@given(st.text(st.sampled_from(list(" \t\n;&|()<>$`\\'\"*?[]{}~#!=arm-/")), max_size=30))
def test_any_line_is_read_and_a_plain_one_is_what_shlex_reads(text: str) -> None:
    line = read_line(text)
    line.caught_by(["rm *"])
    if line.plain:
        assert line.commands == (tuple(shlex.split(text)),)
        assert not set(";&|()<>`\n") & set(_unquoted(text))


def _unquoted(text: str) -> str:
    """Return the characters outside quotes. A backslash would need more than this, so such a text has none."""
    return "" if "\\" in text else re.sub(r"""'[^']*'|"[^"]*\"""", "", text)


def test_a_long_line_is_not_read() -> None:
    for text in ("a" * 30_000, "$(" * 9000, "$" * 19_999, "`" * 19_999, '"' * 19_999, "sudo " * 3000 + "x"):
        line = read_value(text)
        assert not line.allowed_by(["git*"])
        line.caught_by(["rm *"])
