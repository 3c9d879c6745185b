"""Reads a shell command line as words, so that rules compare words and not text. Pure.

An allow rule covers a line only if the line is *plain*: one command of literal words, so that the shell does exactly
what the words say. Quotes are fine. Anything else (`;`, `|`, `&`, newlines, redirections, substitutions, variables,
wildcards, assignments, comments, reserved words) makes the line not plain, and no allow rule covers it. A substitution
in quotes does so too, because some commands of the shell carry it out: `test -v 'a[$(x)]'` runs x.

A rule that asks or denies covers a line if any command in it matches, also inside substitutions, after `sudo` and the
like, in the text of `sh -c` and `eval`, and in the text below `<<`. A word that the shell computes may be anything, so
it matches any pattern. A line that cannot be read matches every such rule. This is no isolation: a script in a file can
still do anything.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import field

from signoff.dataclass import dataclass

Word = str | None
"""None: a word that the shell computes."""
Command = tuple[Word, ...]

_DEEPEST = 8
_LONGEST = 20_000
_RESERVED = {
    *("!", "{", "}", "[[", "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac"),
    *("in", "select"),
}
_WITH_SHELL = {
    *("sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "eval", "source", ".", "trap", "su", "ssh", "watch", "script"),
    *("flock", "runuser", "mapfile", "readarray", "compgen"),
}
"""Programs that hand a word to a shell."""
_SHELLS = {"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "source", "."}
"""Programs that run what they read: without a file's name, their input."""
_EVALUATING = {
    *("test", "[", "[[", "let", "printf", "read", "wait", "unset", "declare", "typeset", "local", "export", "readonly"),
}
"""Commands of the shell that carry out a substitution in a word, although it was quoted."""
_SUBSTITUTION = re.compile(r"\$[({]|`")
_WRAPPERS = {
    *("eval", "trap", "function", "coproc", "sudo", "doas", "env", "command", "builtin", "exec", "nohup", "nice"),
    *("ionice", "setsid", "stdbuf", "time", "timeout", "xargs", "parallel", "find", "busybox", "toybox", "watch"),
    *("strace", "unshare", "chroot", "su", "runuser", "flock", "script", "ssh"),
}
"""Programs that run the command in their further words."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=", re.DOTALL)
_DESCRIPTOR = re.compile(r"\d+|\{\w+\}")
_BRACES = re.compile(r"\{.*(?:,|\.\.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ShellLine:
    text: str
    commands: tuple[Command, ...]
    """Every command of the line, also those inside substitutions."""
    plain: bool
    readable: bool = True

    def allowed_by(self, globs: Sequence[str]) -> bool:
        """Whether a pattern that makes a rule looser covers the whole line."""
        return self.plain and any(_covers(glob.split(), self.commands[0], closed=False) for glob in globs)

    def caught_by(self, globs: Sequence[str]) -> bool:
        """Whether a pattern that makes a rule stricter covers any command of the line."""
        if not self.readable or any(fnmatch.fnmatchcase(self.text, glob) for glob in globs):
            return True
        return any(_catches(glob, command) for glob in globs for command in self._all())

    def _all(self) -> list[Command]:
        return [inner for command in self.commands for inner in _inner(command, 0)]


def read_value(value: object) -> ShellLine:
    """Read the value of an argument that is a command line, or a list of words."""
    if isinstance(value, list):
        words = tuple(word if isinstance(word, str) else None for word in value)  # pyright: ignore
        is_plain = bool(words) and None not in words
        return ShellLine(" ".join(word or "" for word in words), (words,), is_plain, is_plain)
    return read_line(value) if isinstance(value, str) else ShellLine("", (), False, False)


def read_line(text: str) -> ShellLine:
    if len(text) > _LONGEST:
        return ShellLine(text[:_LONGEST], (), False, False)
    reader = _Reader(text)
    try:
        reader.read()
    except _Unreadable:
        return ShellLine(text, tuple(reader.commands), False, False)
    is_plain = reader.plain and len(reader.commands) == 1 and None not in reader.commands[0]
    return ShellLine(text, tuple(reader.commands), is_plain and text.replace("\t", " ").isprintable())


def _covers(pattern: Sequence[str], words: Sequence[Word], *, closed: bool) -> bool:
    """Compare word by word. A last pattern that ends in * also covers all further words; * alone also none.

    `closed`: whether a word that the shell computes matches.
    """
    for index, wanted in enumerate(pattern):
        is_open = index == len(pattern) - 1 and wanted.endswith("*")
        if index >= len(words):
            return is_open and wanted == "*"
        word = words[index]
        if word is None:
            return closed
        if not fnmatch.fnmatchcase(word, wanted):
            return False
        if is_open:
            return True
    return bool(pattern) and len(words) == len(pattern)


def _catches(glob: str, command: Command) -> bool:
    pattern = glob.split()
    if _covers(pattern, command, closed=True):
        return True
    first = command[0] if command else None
    if first and "/" in first and _covers(pattern, (first.rsplit("/", 1)[1], *command[1:]), closed=True):
        return True
    return fnmatch.fnmatchcase(" ".join(word or "" for word in command), glob)


def _inner(command: Command, depth: int) -> list[Command]:
    """Return the command, and those that it runs: after a wrapper every rest of it, for a shell the text it gets."""
    found = [command]
    name = (command[0] or "").rsplit("/", 1)[-1] if command else ""
    if depth >= _DEEPEST:
        return found
    if name in _WRAPPERS:
        for start in range(1, len(command)):
            found += [command[start:], *_inner(command[start:], _DEEPEST if name == "find" else depth + 1)]
            if len(found) > 200:
                return [*found, (None,)]  # too many to look at: it may be anything
    if name in _SHELLS and _reads_input(command[1:]):
        found.append((None,))
    if name in _WITH_SHELL or name in _EVALUATING:
        for word in command[1:]:
            if name in _EVALUATING and word and not _SUBSTITUTION.search(word):
                continue
            line = read_line(word) if word else ShellLine("", ((None,),), False)
            found += [(None,)] if not line.readable else []
            found += [inner for one in line.commands for inner in _inner(one, depth + 1)]
    return found


def _reads_input(words: Command) -> bool:
    """Whether a shell with these words runs what it reads from its input, which may be anything."""
    has_file = any(word is None or not word.startswith(("-", "+")) for word in words)
    return not has_file or "-s" in words or any(word and word.startswith("/dev/") for word in words)


class _Unreadable(Exception):
    pass


@dataclass
class _Reader:
    """Reads one line. `commands` get every command that is found."""

    text: str
    depth: int = 0
    at: int = 0
    until_bracket: bool = False
    """Whether the text ends at the closing bracket of a substitution, and not at its own end."""
    plain: bool = True
    commands: list[Command] = field(default_factory=list[Command])
    _words: list[Word] = field(default_factory=list[Word])
    _word: str = ""
    _started: bool = False
    """Whether a word has begun; a pair of quotes begins an empty one."""
    _computed: bool = False
    _bare: str = ""
    """The part of the present word that was written without quotes, for what only bare text can be."""
    _target: str = ""
    """The redirection whose target is the next word; empty: none."""
    _brackets: int = 0
    _ended: bool = False
    _texts: list[tuple[str, bool, bool]] = field(default_factory=list[tuple[str, bool, bool]])
    """Texts that follow below the line (`<<`): the last line of each, whether it was quoted, whether tabs are cut."""
    _given: list[Word] = field(default_factory=list[Word])
    """Words that the present command gets as its input (`<<<`)."""

    def read(self) -> None:
        if self.depth > _DEEPEST:
            raise _Unreadable
        while self.at < len(self.text) and not self._ended:
            self._step(self.text[self.at])
        self._end_command()
        if self.until_bracket and (self._texts or not self._ended):
            raise _Unreadable

    def _step(self, char: str) -> None:
        if char in " \t":
            self._end_word()
        elif char == "'":
            end = self._find("'", self.at + 1)
            self._add(self.text[self.at + 1 : end])
            self.at = end
        elif char == '"':
            self.at += 1
            self._double()
        elif char == "\\":
            self._escape()
        elif char in "$`":
            self._substitute()
            return
        elif char in "\n;&|()":
            self.plain = False
            self._end_command()
            if char == "\n" and self._texts:
                self._read_texts()
                return
            self._ended = char == ")" and self.until_bracket and not self._brackets
            self._brackets += (char == "(") - (char == ")" and self._brackets > 0)
        elif char in "<>":
            self._redirect()
            return
        elif char == "#" and not self._started:
            self.plain = False
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end
            return
        else:
            self._bare += char
            self._add(char)
        self.at += 1

    def _add(self, text: str) -> None:
        self._word += text
        self._started = True

    def _compute(self) -> None:
        self._started = self._computed = True
        self.plain = False

    def _escape(self) -> None:
        self.at += 1
        if self.at >= len(self.text):
            raise _Unreadable
        if self.text[self.at] == "\n":
            self.plain = False  # a line that goes on
        else:
            self._add(self.text[self.at])

    def _double(self) -> None:
        self._started = True
        while True:
            char = self.text[self.at : self.at + 1]
            if not char:
                raise _Unreadable
            if char == '"':
                return
            if char in "$`":
                self._substitute(quoted=True)
                continue
            following = self.text[self.at + 1 : self.at + 2]
            if char == "\\" and following and following in '$`"\\\n':
                self.at += 1
                self._word += "" if following == "\n" else following
            else:
                self._word += char
            self.at += 1

    def _substitute(self, *, quoted: bool = False) -> None:
        """Read a part that begins with $ or a backtick. Its inside is read as commands, since it may be some.

        `quoted`: whether it is in double quotes, where a single quote is an ordinary character.
        """
        rest = self.text[self.at :]
        if rest == "$" or (rest[0] == "$" and rest[1] in " \t\n;&|)"):
            self._add("$")
            self.plain = False
            self.at += 1
            return
        self._compute()
        if rest[0] == "`":
            end = self.at + 1
            while self.text[end : end + 1] != "`":
                end += 2 if self.text[end : end + 1] == "\\" else 1
                if end > len(self.text):
                    raise _Unreadable
            self._inside(re.sub(r"\\([`\\$])", r"\1", self.text[self.at + 1 : end]))
            self.at = end + 1
        elif rest[1] == "(":
            self._bracket(self.at + 2)
        elif rest[1] == "{":
            end = self._closing(self.at + 1)
            inner = self.text[self.at + 2 : end]
            if any(char in inner for char in "'\"\\"):
                raise _Unreadable  # the rules for quotes depend on what is around
            self._inside(inner)
            self.at = end + 1
        elif rest[1] == "'" and not quoted:
            end = self.at + 2
            while self.text[end : end + 1] != "'":
                end += 2 if self.text[end : end + 1] == "\\" else 1
                if end > len(self.text):
                    raise _Unreadable
            self.at = end + 1
        else:
            name = re.match(r"\$(?:\w+|[*@#?$!-])?", rest)
            self.at += name.end() if name else 1

    def _inside(self, text: str) -> None:
        inner = _Reader(text, self.depth + 1)
        inner.read()
        self.commands += inner.commands

    def _bracket(self, start: int) -> None:
        """Read the commands between brackets, the first of which is before `start`."""
        inner = _Reader(self.text, self.depth + 1, start, until_bracket=True)
        inner.read()
        if self._texts and "\n" in self.text[start : inner.at]:
            raise _Unreadable  # a text that was announced before may begin in there
        self.commands += inner.commands
        self.at = inner.at

    def _read_texts(self) -> None:
        """Read the texts below the line as commands, since they may be some. They begin at the present newline."""
        self.at += 1
        for last, quoted, cuts_tabs in self._texts:
            start = self.at
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                line = self.text[self.at : end if end >= 0 else None]
                self.at = end + 1 if end >= 0 else len(self.text)
                if (line.lstrip("\t") if cuts_tabs else line) == last:
                    break
                if line.endswith("\\") and not quoted:
                    raise _Unreadable  # the next line is a part of this one
            text = self.text[start : self.at]
            self._inside(text)
            if not quoted:
                self._substitutions(text)
        self._texts = []

    def _substitutions(self, text: str) -> None:
        """Read the substitutions of a text in which quotes mean nothing."""
        inner = _Reader(text, self.depth + 1)
        while inner.at < len(text):
            if text[inner.at] in "$`":
                inner._substitute(quoted=True)
            else:
                inner.at += 2 if text[inner.at] == "\\" else 1
        self.commands += inner.commands

    def _closing(self, start: int) -> int:
        """Return the index of the bracket that closes the one at `start`, past quotes."""
        pairs, at = {"(": ")", "{": "}"}, start
        open_: list[str] = []
        while at < len(self.text):
            char = self.text[at]
            if char == "\\":
                at += 1
            elif char == "'":
                at = self._find("'", at + 1)
            elif char in pairs:
                open_.append(pairs[char])
            elif open_ and char == open_[-1]:
                open_.pop()
                if not open_:
                    return at
            at += 1
        raise _Unreadable

    def _redirect(self) -> None:
        self.plain = False
        if self._started and _DESCRIPTOR.fullmatch(self._bare) and self._word == self._bare:
            self._word, self._bare, self._started = "", "", False  # the number of a descriptor, not a word
        self._end_word()
        if self.text[self.at + 1 : self.at + 2] == "(":
            self._bracket(self.at + 2)
            self._compute()
            return
        operator = re.match(r"<<<|<<-?|<>|<&|>>|>&|>\||[<>]", self.text[self.at :])
        assert operator
        self.at += operator.end()
        self._target = operator[0]

    def _end_word(self) -> None:
        if self._started:
            bare, like_assignment = self._bare, not self._words and _ASSIGNMENT.match(self._word)
            if bare.startswith("~") or any(char in bare for char in "*?[") or _BRACES.search(self._word):
                self._compute()
            if self._target:
                self._end_target()
            elif like_assignment and _ASSIGNMENT.match(bare):
                pass  # it is one; `'A=1'` is the name of a program
            elif not self._words and self._word == bare and bare in _RESERVED:
                self.plain = False
            else:
                self._words.append(None if self._computed else self._word)
            if self.until_bracket and bare == self._word == "case":
                raise _Unreadable  # its patterns end in closing brackets
            if like_assignment or _SUBSTITUTION.search(self._word):
                self.plain = False
        self._word, self._bare, self._started, self._computed = "", "", False, False

    def _end_target(self) -> None:
        if self._target == "<<<":
            self._given.append(None if self._computed else self._word)
        elif self._target.startswith("<<"):
            if self._computed:
                raise _Unreadable
            self._texts.append((self._word, self._bare != self._word, self._target == "<<-"))
        self._target = ""

    def _end_command(self) -> None:
        self._end_word()
        self._target = ""
        if self._words:
            is_shell = (self._words[0] or "").rsplit("/", 1)[-1] in _SHELLS
            self.commands.append((*self._words, *(self._given if is_shell else ())))
        self._words, self._given = [], []

    def _find(self, char: str, start: int) -> int:
        end = self.text.find(char, start)
        if end < 0:
            raise _Unreadable
        return end
