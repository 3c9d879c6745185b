"""Remembered decisions on one tool with exact arguments, for a session or, in a file, for always.

Accepts and rejects are both remembered; if both are known, the reject wins. A key never covers more than one tool with
one set of arguments. The file is the truth for `always`: every look-up reads it. Changes are made under a lock that all
processes share, so that no stored decision is lost and no forgotten one comes back. Without `fcntl`, as on Windows, the
lock covers only the users of one `ApprovalMemory`. A file that cannot be read raises; it never counts as approval.
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any, Literal, cast

from signoff.approvals.digest import canonical
from signoff.approvals.model import ApprovalDecision, ApprovalRequest, JsonObject
from signoff.dataclass import dataclass
from signoff.errors import SignoffError

log = logging.getLogger(__name__)

VERSION = 1
FIELDS = {"tool": str, "args": dict, "approved": bool, "note": str}
Scope = Literal["session", "always"]
Key = tuple[str, str]


class MemoryBroken(SignoffError):
    """The file with remembered decisions cannot be used; nothing was approved from it."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """One remembered decision."""

    tool: str
    args: JsonObject
    approved: bool
    note: str = ""
    scope: Scope = "session"

    @property
    def key(self) -> Key:
        return self.tool, canonical(self.args)


class ApprovalMemory:
    """Earlier decisions. `session` ones live as long as this object, `always` ones are in the file at `path`."""

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path) if path is not None else None
        self._session: dict[Key, Remembered] = {}
        self._lock = Lock()
        self._read()

    def lookup(self, request: ApprovalRequest) -> Remembered | None:
        """Return the decision for exactly this tool and these arguments, if there is one. None for an inquiry."""
        if request.inquiry:
            return None
        with self._lock:
            key = (request.call.tool, canonical(request.call.args))
            found = [known[key] for known in (self._session, self._read()) if key in known]
        return min(found, key=lambda entry: entry.approved, default=None)

    def store(self, request: ApprovalRequest, decision: ApprovalDecision) -> None:
        """Remember a decision for the scope that it names.

        An accept with edited arguments is stored for the edited arguments, since those were approved. A call with the
        original arguments asks again. Answers are never remembered: the next question may be another one.
        """
        if decision.remember == "none" or request.inquiry:
            return
        edited = decision.override_args if decision.approved else None
        args = cast(JsonObject, json.loads(canonical(dict(request.call.args if edited is None else edited))))
        scope: Scope = decision.remember
        if scope == "always" and self.path is None:
            log.warning("this memory has no file: the decision is kept for the session only")
            scope = "session"
        entry = Remembered(request.call.tool, args, decision.approved, decision.note, scope)
        with self._lock:
            if scope == "session":
                self._session[entry.key] = entry
                return
            self._session.pop(entry.key, None)
            with self._alone():
                self._write({**self._read(), entry.key: entry})

    def list(self) -> tuple[Remembered, ...]:
        """Return all remembered decisions, sorted by tool and arguments."""
        with self._lock:
            return tuple(sorted([*self._session.values(), *self._read().values()], key=lambda entry: entry.key))

    def forget(self, tool: str | None = None, args: Mapping[str, Any] | None = None) -> int:
        """Forget one call, all calls of a tool, or everything. Return the number of forgotten decisions."""
        if tool is None and args is not None:
            raise ValueError("arguments are forgotten for a tool: name it")
        wanted = None if args is None else canonical(dict(args))

        def stays(key: Key) -> bool:
            return (tool is not None and key[0] != tool) or (wanted is not None and key[1] != wanted)

        with self._lock:
            session = {key: entry for key, entry in self._session.items() if stays(key)}
            removed = len(self._session) - len(session)
            if not all(map(stays, self._read())):
                with self._alone():
                    always = self._read()
                    kept = {key: entry for key, entry in always.items() if stays(key)}
                    self._write(kept)
                removed += len(always) - len(kept)
            self._session = session
        return removed

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Keep other processes from changing the file, with a lock file beside it that is never removed."""
        assert self.path is not None
        try:
            import fcntl
        except ImportError:
            yield
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_name(f".{self.path.name}.lock")
        with os.fdopen(os.open(beside, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(lock, fcntl.LOCK_UN)  # a process forked meanwhile keeps the file open, and with it the lock

    def _read(self) -> dict[Key, Remembered]:
        if self.path is None:
            return {}
        try:
            with self.path.open(encoding="utf-8") as file:
                if os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o022:
                    raise ValueError("others may write to it (chmod 600 it, after a look at what it says)")
                return _parsed(json.load(file))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            raise MemoryBroken(
                f"The remembered approvals in {self.path} cannot be used: {error}. Nothing was approved from the file, "
                "and it was left as it is. Repair it, or move it away to be asked again."
            ) from error

    def _write(self, entries: Mapping[Key, Remembered]) -> None:
        assert self.path is not None
        listed = [{k: v for k, v in asdict(entries[key]).items() if k != "scope"} for key in sorted(entries)]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # mkstemp creates the file as 0600. The rename is atomic: readers see the old file or the new one.
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"version": VERSION, "decisions": listed}, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _parsed(body: Any) -> dict[Key, Remembered]:
    if not isinstance(body, dict) or cast(dict[str, Any], body).get("version") != VERSION:
        raise ValueError(f"it is no list of decisions of version {VERSION}")
    found: dict[Key, Remembered] = {}
    listed = cast(dict[str, Any], body).get("decisions")
    if not isinstance(listed, list):
        raise ValueError("its decisions are not a list")
    for number, item in enumerate(cast(list[dict[str, Any]], listed), 1):
        try:
            # Check the exact type of every field: a string "false" in a file edited by hand is not an approval.
            ok = {name: type(value) for name, value in item.items()} == FIELDS
        except AttributeError:
            ok = False
        if not ok:
            raise ValueError(f"decision {number} is not one")
        entry = Remembered(**item, scope="always")
        if entry.key in found:
            raise ValueError(f"decision {number} is about the same call as an earlier one")
        found[entry.key] = entry
    return found
