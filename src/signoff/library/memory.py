"""Remembered decisions: exact tool plus exact arguments, for a session or, in a file, for always.

Accepts and rejects are remembered alike, and where both are known the reject wins. The key is never wider than one
tool with one set of arguments. The file is the truth for `always`: it is read at every look-up, and a change is made
under a lock that holds for all processes, so that what one stores is kept and what one forgets does not come back.
Without `fcntl`, as on Windows, only those who share one `ApprovalMemory` are kept apart. A file that cannot be read
raises; it never counts as approval.
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Literal, cast

from signoff.approvals.digest import canonical
from signoff.approvals.model import ApprovalDecision, ApprovalRequest, JsonObject
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
    """Earlier decisions. `session` lives as long as this object, `always` in the file at `path`."""

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path) if path is not None else None
        self._session: dict[Key, Remembered] = {}
        self._lock = Lock()
        self._read()

    def lookup(self, request: ApprovalRequest) -> Remembered | None:
        """The decision for exactly this tool and these arguments, if there is one."""
        with self._lock:
            key = (request.call.tool, canonical(request.call.args))
            found = [known[key] for known in (self._session, self._read()) if key in known]
        return min(found, key=lambda entry: entry.approved, default=None)

    def store(self, request: ApprovalRequest, decision: ApprovalDecision) -> None:
        """Remember a decision as far as it asks for it.

        An accept with edited arguments is kept for the edited ones, since those were approved: the original arguments
        are asked about again.
        """
        if decision.remember == "none":
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
        """Everything that is remembered, by tool and arguments."""
        with self._lock:
            return tuple(sorted([*self._session.values(), *self._read().values()], key=lambda entry: entry.key))

    def forget(self, tool: str | None = None, args: Mapping[str, Any] | None = None) -> int:
        """Forget one call, all calls of a tool, or everything; the answer is how many decisions are gone."""
        if tool is None and args is not None:
            raise ValueError("arguments are forgotten for a tool: name it")
        wanted = None if args is None else canonical(dict(args))

        def stays(key: Key) -> bool:
            return (tool is not None and key[0] != tool) or (wanted is not None and key[1] != wanted)

        with self._lock:
            session = {key: entry for key, entry in self._session.items() if stays(key)}
            gone = len(self._session) - len(session)
            if not all(map(stays, self._read())):
                with self._alone():
                    always = self._read()
                    kept = {key: entry for key, entry in always.items() if stays(key)}
                    self._write(kept)
                gone += len(always) - len(kept)
            self._session = session
        return gone

    @contextmanager
    def _alone(self) -> Generator[None]:
        """No other process changes the file meanwhile. Its lock is a file beside it, which stays there."""
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
                fcntl.flock(lock, fcntl.LOCK_UN)  # a process that was forked meanwhile keeps the file open

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
        # mkstemp makes the file 0600; the rename makes old or new, never half, the one that is read.
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
            # Every field by its exact type: a string "false" in a file that was edited by hand is no approval.
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
