"""A lazy pattern does what the compiled one does, and is compiled when it is first used."""

from __future__ import annotations

import copy
import pickle
import pkgutil
import re
from importlib import import_module
from typing import Any

import pytest

import signoff
from signoff.text import patterns
from signoff.text.patterns import compile_patterns, lazy_pattern


@pytest.fixture(autouse=True)
def only_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the patterns of the modules that are loaded."""
    monkeypatch.setattr(patterns, "_made", list[Any]())


def is_compiled(pattern: re.Pattern[str]) -> bool:
    return "compiled" in vars(pattern)


def test_its_methods_are_those_of_the_compiled_pattern() -> None:
    lazy, compiled = lazy_pattern(r"(?P<word>\w+)=", re.IGNORECASE), re.compile(r"(?P<word>\w+)=", re.IGNORECASE)
    text = "a=1 B=2"
    assert lazy.findall(text) == compiled.findall(text) == ["a", "B"]
    assert lazy.sub("x", text) == compiled.sub("x", text)
    assert [match["word"] for match in lazy.finditer(text)] == ["a", "B"]
    assert (lazy.pattern, lazy.flags, lazy.groupindex) == (compiled.pattern, compiled.flags, compiled.groupindex)


def test_it_is_compiled_when_it_is_first_used() -> None:
    lazy = lazy_pattern("a+")
    assert lazy.pattern == "a+"
    assert not is_compiled(lazy)
    assert lazy.fullmatch("aaa")
    assert is_compiled(lazy)


def test_it_can_be_copied_and_pickled() -> None:
    lazy = lazy_pattern("a+")
    for made in (copy.copy(lazy), copy.deepcopy(lazy), pickle.loads(pickle.dumps(lazy))):
        assert made.fullmatch("aaa")
    assert not is_compiled(lazy)


def test_warming_up_compiles_every_pattern() -> None:
    made = [lazy_pattern("a"), lazy_pattern("b")]
    compile_patterns()
    assert all(map(is_compiled, made))


def test_a_wrong_pattern_is_found_when_it_is_compiled() -> None:
    lazy_pattern("(")
    with pytest.raises(re.error, match="unterminated subpattern"):
        compile_patterns()


def test_every_pattern_of_signoff_can_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """No import finds a wrong one any more."""
    monkeypatch.undo()
    for module in pkgutil.walk_packages(signoff.__path__, "signoff."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    assert len(patterns._made) > 90
    compile_patterns()
