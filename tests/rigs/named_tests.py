"""Checks that a test that a table names exists and cannot skip itself. It reads the source and runs nothing.

A test can be skipped by a mark, by its module's `pytestmark`, or by a call of `pytest.skip` and similar functions: in
the module, in the test, in a fixture that it uses, or in a function of ours that one of them calls.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
EXCUSES = frozenset({"skip", "skipif", "xfail", "importorskip", "skipTest", "SkipTest"})
PERMITTED = frozenset({"leave_out"})
"""The one permitted way to skip: no browser is installed. It warns loudly, and fails if CI is set."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """The top level of one file: its functions, its assignments, and where its imported names come from."""

    path: Path
    tree: ast.Module
    functions: dict[str, Function]
    values: dict[str, ast.expr]
    imported: dict[str, tuple[Path, str]]


@cache
def module(path: Path) -> Module:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions: dict[str, Function] = {}
    values: dict[str, ast.expr] = {}
    imported: dict[str, tuple[Path, str]] = {}
    for node in tree.body:
        if isinstance(node, Function):
            functions[node.name] = node
        elif isinstance(node, ast.Assign):
            values |= {target.id: node.value for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            values[node.target.id] = node.value
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests"):
            source = ROOT.joinpath(*(node.module or "").split(".")).with_suffix(".py")
            if source.is_file():
                imported |= {name.asname or name.name: (source, name.name) for name in node.names}
    return Module(path, tree, functions, values, imported)


def problem(file: str, name: str, root: Path = TESTS) -> str | None:
    """Return why this test proves nothing, or None."""
    if not (root / file).is_file():
        return f"{file} does not exist"
    at = module(root / file)
    if name not in at.functions:
        nested = any(isinstance(node, Function) and node.name == name for node in ast.walk(at.tree))
        return f"{file}::{name} is inside a class, a function or an if" if nested else f"{file}::{name} does not exist"
    for where, node in [*_module_parts(at), *_parts(at, at.functions[name], root, set())]:
        if excuse := _excuse(node):
            return f"{file}::{name} may be left out: {excuse} in {where}"
    return None


def _module_parts(at: Module) -> Iterator[tuple[str, ast.AST]]:
    """Yield everything in a module that runs when it is imported, and its marks."""
    for node in at.tree.body:
        named = {target.id for target in getattr(node, "targets", []) if isinstance(target, ast.Name)}
        if "pytestmark" in named or not isinstance(node, Function | ast.ClassDef | ast.Assign | ast.AnnAssign):
            yield at.path.name, node


def _parts(at: Module, function: Function, root: Path, seen: set[tuple[Path, str]]) -> Iterator[tuple[str, ast.AST]]:
    """Yield the function itself, its marks, the fixtures that it uses and the functions that it calls."""
    if (at.path, function.name) in seen or function.name in PERMITTED:
        return
    seen.add((at.path, function.name))
    yield function.name, function
    names = {argument.arg for argument in [*function.args.args, *function.args.kwonlyargs]}
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            names.add(node.id)
            if node.id in at.values:
                yield node.id, at.values[node.id]
        elif isinstance(node, ast.Call) and _last(node.func) == "usefixtures":
            names |= {str(one.value) for one in node.args if isinstance(one, ast.Constant)}
    places = _places(at.path, root)
    if function.name.startswith("test_"):
        names |= {name for place in places for name, one in place.functions.items() if _autouse(one)}
    for name in names - {function.name}:
        for place in places:
            if found := _resolve(place, name):
                yield from _parts(*found, root, seen)
                break


@cache
def _places(file: Path, root: Path) -> list[Module]:
    """Where pytest looks for a fixture: the file, then every conftest.py above it, then the plugins that those name."""
    above = [folder / "conftest.py" for folder in file.parents if folder == root or root in folder.parents]
    found = [module(file), *(module(path) for path in above if path.is_file() and path != file)]
    named = [one.values["pytest_plugins"] for one in found if "pytest_plugins" in one.values]
    names = [str(node.value) for value in named for node in ast.walk(value) if isinstance(node, ast.Constant)]
    plugins = [root.parent.joinpath(*name.split(".")).with_suffix(".py") for name in names]
    return [*found, *(module(path) for path in plugins if path.is_file())]


def _resolve(at: Module, name: str) -> tuple[Module, Function] | None:
    if name in at.functions:
        return at, at.functions[name]
    if name in at.imported:
        source, original = at.imported[name]
        return _resolve(module(source), original)
    return None


@cache
def _autouse(function: Function) -> bool:
    return any(
        isinstance(node, ast.keyword) and node.arg == "autouse" and getattr(node.value, "value", False) is True
        for decorator in function.decorator_list
        for node in ast.walk(decorator)
    )


@cache
def _excuse(node: ast.AST) -> str | None:
    """Return the first word in this piece of source that skips a test."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and part.attr in EXCUSES and _of_pytest(part.value):
            return part.attr
        if isinstance(part, ast.Name) and part.id in EXCUSES:
            return part.id
    return None


def _of_pytest(value: ast.expr) -> bool:
    """Whether a word such as `skip` belongs to `pytest`, `pytest.mark`, `unittest` or `self`, not to another object."""
    while isinstance(value, ast.Attribute):
        value = value.value
    return isinstance(value, ast.Name) and value.id in {"pytest", "unittest", "mark", "self"}


def _last(expression: ast.expr) -> str:
    return expression.attr if isinstance(expression, ast.Attribute) else getattr(expression, "id", "")
