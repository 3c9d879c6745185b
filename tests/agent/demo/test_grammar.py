"""The demo model's reading of a prompt."""

from __future__ import annotations

import pytest

from signoff.agent.demo.grammar import read, without_mentions


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


def args_of(prompt: str) -> list[tuple[str, object]]:
    tools = ["read_file", "write_file"]
    return [(call.tool, call.args) for each in read(prompt, tools).rounds for call in each.calls]


@pytest.mark.parametrize(
    ("prompt", "path", "content"),
    [
        ('write "PORT=8080" to config/app.env', "config/app.env", "PORT=8080"),
        ("please write “two\\nlines\\n” into `notes.txt`.", "notes.txt", "two\nlines\n"),
        (r'write "a\n b\\n\tc" to LICENSE', "LICENSE", "a\n b\\n\tc"),
        ('write "announce to everyone" to fail/batch.md!', "fail/batch.md", "announce to everyone"),
        ('write "" to ../x', "../x", ""),
        ("write notes.txt with three lines", "notes.txt", "line 1\nline 2\nline 3\n"),
        ("write /etc/motd with 1 line", "/etc/motd", "line 1\n"),
    ],
)
def test_a_file_to_write_is_found_in_a_sentence(prompt: str, path: str, content: str) -> None:
    assert args_of(prompt) == [("write_file", {"path": path, "content": content})]


@pytest.mark.parametrize(
    ("prompt", "call"),
    [
        ("ban <@123>", ("ban_member", {"member": "123"})),
        ("please ban <@!123>, now", ("ban_member", {"member": "123"})),
        ("ban @Max", ("ban_member", {"member": "Max"})),
        ("time out <@123> for 10 minutes", ("time_out_member", {"member": "123", "minutes": 10})),
        ('post "read a.txt" in <#5>', ("post_message", {"channel": "5", "text": "read a.txt"})),
        ("read <#5>.", ("read_channel", {"channel": "5"})),
    ],
)
def test_moderation_is_found_in_a_sentence(prompt: str, call: tuple[str, object]) -> None:
    tools = ["ban_member", "time_out_member", "post_message", "read_channel", "read_file"]
    assert [(one.tool, one.args) for each in read(prompt, tools).rounds for one in each.calls] == [call]


def test_only_the_mentions_at_the_beginning_are_left_out() -> None:
    assert without_mentions("<@1> <@&2> ban <@3>") == "ban <@3>"


@pytest.mark.parametrize(
    ("prompt", "path"),
    [
        ("read notes.txt", "notes.txt"),
        ("Please read the file config/app.env.", "config/app.env"),
        ("read /proc/self/environ", "/proc/self/environ"),
        ("read `a/b`, please", "a/b"),
    ],
)
def test_a_file_to_read_is_found_in_a_sentence(prompt: str, path: str) -> None:
    assert args_of(prompt) == [("read_file", {"path": path})]


@pytest.mark.parametrize("prompt", ["read me a poem", "write me a poem", 'write "x"', "write a letter to Ada"])
def test_other_reading_and_writing_is_no_request(prompt: str) -> None:
    assert args_of(prompt) == []
