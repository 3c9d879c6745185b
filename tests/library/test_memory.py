"""Remembered decisions: exactly the approved call, for exactly the stated time, and never more."""

from __future__ import annotations

import asyncio
import json
import stat
import sys
from pathlib import Path

import pytest

from signoff import ApprovalDecision, ApprovalMemory, MemoryBroken
from tests.rigs.doc_pages import ROOT
from tests.rigs.nursery import execute
from tests.rigs.talk import request

YES = ApprovalDecision(True, remember="session")
ALWAYS = ApprovalDecision(True, remember="always")
NEVER = ApprovalDecision(False, "too risky", remember="always")


@pytest.mark.parametrize("decision", [YES, ApprovalDecision(False, "no", remember="session")])
def test_accepts_and_rejects_are_remembered_alike(decision: ApprovalDecision) -> None:
    memory = ApprovalMemory()
    memory.store(request(path="a"), decision)
    found = memory.lookup(request(path="a"))
    assert found
    assert (found.approved, found.note, found.scope) == (decision.approved, decision.note, "session")


def test_nothing_is_remembered_unless_the_decision_says_so() -> None:
    memory = ApprovalMemory()
    memory.store(request(path="a"), ApprovalDecision(True))
    assert memory.list() == ()


def test_a_decision_holds_for_exact_tool_and_exact_arguments_only() -> None:
    memory = ApprovalMemory()
    memory.store(request(path="a", depth=1), YES)
    assert memory.lookup(request(depth=1, path="a"))
    assert memory.lookup(request(path="a", depth=1))
    for other in (
        request(path="b", depth=1),
        request(path="a"),
        request(path="a", depth=1, force=True),
        request(path="a", depth="1"),
        request(path="a", depth=True),
        request("delete_all", path="a", depth=1),
    ):
        assert memory.lookup(other) is None


def test_an_edited_accept_is_remembered_for_the_arguments_that_were_approved() -> None:
    memory = ApprovalMemory()
    memory.store(request(path="/"), ApprovalDecision(True, override_args={"path": "/tmp/x"}, remember="session"))
    assert memory.lookup(request(path="/")) is None
    assert memory.lookup(request(path="/tmp/x"))


def test_a_reject_is_remembered_for_the_arguments_that_were_shown() -> None:
    memory = ApprovalMemory()
    memory.store(request(path="/"), ApprovalDecision(False, override_args={"path": "b"}, remember="session"))
    assert memory.lookup(request(path="/"))
    assert memory.lookup(request(path="b")) is None


def test_session_ends_with_the_object_and_always_survives_it(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "approvals.json"
    memory = ApprovalMemory(file)
    memory.store(request(path="a"), YES)
    memory.store(request(path="b"), ALWAYS)
    memory.store(request(path="c"), NEVER)
    later = ApprovalMemory(file)
    assert later.lookup(request(path="a")) is None
    assert [(entry.args["path"], entry.approved, entry.note, entry.scope) for entry in later.list()] == [
        ("b", True, "", "always"),
        ("c", False, "too risky", "always"),
    ]


def test_the_file_is_private_and_nothing_but_its_lock_is_left_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "approvals.json"
    ApprovalMemory(file).store(request(path="a"), ALWAYS)
    assert sorted(tmp_path.iterdir()) == [tmp_path / ".approvals.json.lock", file]
    assert {stat.S_IMODE(one.stat().st_mode) for one in tmp_path.iterdir()} == {0o600}


def test_a_write_that_fails_leaves_the_old_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "approvals.json"
    memory = ApprovalMemory(file)
    memory.store(request(path="a"), ALWAYS)
    before = file.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            memory.store(request(path="b"), ALWAYS)
    assert file.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == [tmp_path / ".approvals.json.lock", file]


GOOD = {"tool": "delete", "args": {"path": "a"}, "approved": True, "note": ""}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version": 2, "decisions": []}',
        '{"version": 1}',
        '{"version": 1, "decisions": ["delete"]}',
        json.dumps({"version": 1, "decisions": [{**GOOD, "approved": "false"}]}),
        json.dumps({"version": 1, "decisions": [{**GOOD, "approved": 1}]}),
        json.dumps({"version": 1, "decisions": [{**GOOD, "args": None}]}),
        json.dumps({"version": 1, "decisions": [{**GOOD, "until": "tomorrow"}]}),
        json.dumps({"version": 1, "decisions": [GOOD, {**GOOD, "approved": False}]}),
        "[" * 100_000,
    ],
)
def test_a_broken_file_is_a_clear_error_and_approves_nothing(tmp_path: Path, text: str) -> None:
    file = tmp_path / "approvals.json"
    memory = ApprovalMemory(file)
    file.write_text(text)
    file.chmod(0o600)
    for use in (lambda: ApprovalMemory(file), lambda: memory.lookup(request(path="a")), memory.list):
        with pytest.raises(MemoryBroken, match="cannot be used"):
            use()
    assert file.read_text() == text


def test_a_file_that_others_may_write_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "approvals.json"
    ApprovalMemory(file).store(request(path="a"), ALWAYS)
    file.chmod(0o666)
    with pytest.raises(MemoryBroken, match="others may write"):
        ApprovalMemory(file)


def test_what_was_forgotten_elsewhere_does_not_come_back(tmp_path: Path) -> None:
    file = tmp_path / "approvals.json"
    one, other = ApprovalMemory(file), ApprovalMemory(file)
    one.store(request(path="a"), ALWAYS)
    assert other.lookup(request(path="a"))
    assert one.forget("delete", {"path": "a"}) == 1
    other.store(request(path="b"), ALWAYS)
    assert [entry.args["path"] for entry in one.list()] == ["b"]


STORE_MANY = """
import sys
from pathlib import Path
from signoff import ApprovalDecision, ApprovalMemory
from tests.rigs.talk import request

memory = ApprovalMemory(Path(sys.argv[1]))
for number in range(25):
    memory.store(request(path=f"{sys.argv[2]}{number}"), ApprovalDecision(True, remember="always"))
"""


@pytest.mark.slow
async def test_two_processes_keep_what_the_other_stores_and_forgets(tmp_path: Path) -> None:
    file, program = tmp_path / "approvals.json", tmp_path / "store_many.py"
    program.write_text(f"import sys\nsys.path.append({str(ROOT)!r})\n{STORE_MANY}", encoding="utf-8")
    memory = ApprovalMemory(file)
    old = [f"old{number}" for number in range(25)]
    for path in old:
        memory.store(request(path=path), ALWAYS)
    others = [await execute(str(program), str(file), name) for name in "ab"]
    while len(memory.list()) == len(old) and any(other.returncode is None for other in others):  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    for path in old:
        assert memory.forget("delete", {"path": path}) == 1
    assert [await other.wait() for other in others] == [0, 0]
    new = {f"{name}{number}" for name in "ab" for number in range(25)}
    assert {entry.args["path"] for entry in memory.list()} == new


def test_forgetting_nothing_writes_nothing(tmp_path: Path) -> None:
    memory = ApprovalMemory(tmp_path / "deep" / "approvals.json")
    memory.store(request(path="a"), YES)
    assert memory.forget() == 1
    assert list(tmp_path.iterdir()) == []


def test_without_file_locks_decisions_are_remembered_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    memory = ApprovalMemory(tmp_path / "deep" / "approvals.json")
    memory.store(request(path="a"), ALWAYS)
    assert memory.forget() == 1


def test_forgetting_one_call_a_tool_or_everything(tmp_path: Path) -> None:
    memory = ApprovalMemory(tmp_path / "approvals.json")
    for tool in ("delete", "write"):
        memory.store(request(tool, path="a"), YES)
        memory.store(request(tool, path="b"), ALWAYS)
    assert memory.forget("delete", {"path": "b"}) == 1
    assert memory.forget("delete", {"path": "b"}) == 0
    assert memory.forget("write") == 2
    assert [(entry.tool, entry.args["path"]) for entry in memory.list()] == [("delete", "a")]
    assert memory.forget() == 1
    with pytest.raises(ValueError):
        memory.forget(args={"path": "a"})


def test_a_remembered_reject_wins_over_a_remembered_accept(tmp_path: Path) -> None:
    memory = ApprovalMemory(tmp_path / "approvals.json")
    memory.store(request(path="a"), NEVER)
    memory.store(request(path="a"), YES)
    found = memory.lookup(request(path="a"))
    assert found
    assert not found.approved


def test_always_replaces_what_was_said_for_the_session(tmp_path: Path) -> None:
    memory = ApprovalMemory(tmp_path / "approvals.json")
    memory.store(request(path="a"), ApprovalDecision(False, remember="session"))
    memory.store(request(path="a"), ALWAYS)
    assert [(entry.approved, entry.scope) for entry in memory.list()] == [(True, "always")]


def test_always_without_a_file_is_kept_for_the_session_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    memory = ApprovalMemory()
    memory.store(request(path="a"), ALWAYS)
    assert memory.list()[0].scope == "session"
    assert "no file" in caplog.text


def test_changing_the_arguments_afterwards_does_not_change_what_was_remembered() -> None:
    memory, nested = ApprovalMemory(), {"to": ["ada"]}
    memory.store(request(mail=nested), YES)
    nested["to"].append("eve")
    assert memory.list()[0].args == {"mail": {"to": ["ada"]}}
    assert memory.lookup(request(mail=nested)) is None
