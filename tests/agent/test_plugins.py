"""Plugins: what a file may contain, and one line for everything that can be wrong with it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from pydantic_ai import Agent, DeferredToolRequests, Tool
from pydantic_ai.toolsets import AbstractToolset

from signoff.agent.demo.model import demo_model
from signoff.agent.plugins import Listener, PluginTool, load_plugins
from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.model import Choice
from signoff.errors import ConfigError
from signoff.store import Store
from tests.conftest import ADA, PLACE, HandClock, make_batch


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text).lstrip("\n"))


def refusal(base: Path, *paths: str, taken: tuple[str, ...] = ()) -> str:
    path, modules = list(sys.path), set(sys.modules)
    with pytest.raises(ConfigError) as caught:
        load_plugins(paths, base, taken)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert "\n" not in str(caught.value)
    assert sys.path == path
    assert not {name for name in set(sys.modules) - modules if not name.startswith("signoff_plugin_")}
    return str(caught.value)


async def ask(entries: list[PluginTool], prompt: str) -> str | DeferredToolRequests:
    agent = Agent(
        demo_model(),
        tools=[entry for entry in entries if isinstance(entry, Tool)],
        toolsets=[entry for entry in entries if isinstance(entry, AbstractToolset)],
        output_type=[str, DeferredToolRequests],
    )
    return (await agent.run(prompt)).output


async def test_functions_tools_and_toolsets_are_used_as_pydantic_ai_has_them(tmp_path: Path) -> None:
    write(
        tmp_path / "my_tools.py",
        """
        from pydantic_ai import RunContext, Tool
        from pydantic_ai.toolsets import FunctionToolset

        def add(a: int, b: int) -> int:
            "Add two numbers."
            return a + b

        async def whoami(ctx: RunContext[object]) -> str:
            return f"call {ctx.tool_name}"

        def wipe(what: str) -> str:
            return f"wiped {what}"

        def shout(text: str) -> str:
            return text.upper()

        tools = [add, whoami, Tool(wipe, requires_approval=True, metadata={"approval": "always_require"}),
                 FunctionToolset([shout]).prefixed("loud")]
        """,
    )
    entries = load_plugins(["my_tools.py"], tmp_path)
    assert [type(entry).__name__ for entry in entries[:3]] == ["Tool", "Tool", "Tool"]
    assert entries[0].description == "Add two numbers."  # pyright: ignore[reportAttributeAccessIssue]
    answer = await ask(entries, 'call add {"a": 2, "b": 3}; call whoami; call loud_shout {"text": "hi"}')
    assert "add: done: 5" in str(answer)
    assert "whoami: done: call whoami" in str(answer)
    assert "loud_shout: done: HI" in str(answer)
    asked = await ask(entries, 'call wipe {"what": "disk"}')
    assert isinstance(asked, DeferredToolRequests)
    assert [call.tool_name for call in asked.approvals] == ["wipe"]


def test_paths_are_relative_to_the_config_file_and_order_is_kept(tmp_path: Path) -> None:
    write(tmp_path / "b" / "two.py", "def two() -> None: ...\ntools = [two]")
    write(tmp_path / "one.py", "def one() -> None: ...\ntools = (one,)")
    entries = load_plugins(["b/two.py", str(tmp_path / "one.py")], tmp_path)
    assert [entry.name for entry in entries if isinstance(entry, Tool)] == ["two", "one"]
    assert load_plugins([], tmp_path) == []


async def test_two_plugins_may_each_have_their_own_helpers(tmp_path: Path) -> None:
    for name in ("red", "blue"):
        write(tmp_path / name / "helpers.py", f"COLOUR = {name!r}")
        write(tmp_path / name / "shapes" / "__init__.py", "from shapes.round import CORNERS")
        write(tmp_path / name / "shapes" / "round.py", "CORNERS = 0")
        write(
            tmp_path / name / "plugin.py",
            f"""
            import helpers
            import shapes
            from .helpers import COLOUR

            def {name}() -> str:
                from . import helpers as late
                return f"{{helpers.COLOUR}} {{COLOUR}} {{late.COLOUR}} {{shapes.CORNERS}}"

            tools = [{name}]
            """,
        )
    path, modules = list(sys.path), set(sys.modules)
    entries = load_plugins(["red/plugin.py", "blue/plugin.py"], tmp_path)
    assert sys.path == path
    assert {name.partition(".")[0] for name in set(sys.modules) - modules} == {
        name for name in sys.modules if name.startswith("signoff_plugin_") and "." not in name
    } - modules
    answer = str(await ask(entries, "call red; call blue"))
    assert "red: done: red red red 0" in answer
    assert "blue: done: blue blue blue 0" in answer


def test_a_sibling_does_not_stand_in_for_a_module_of_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("json", "colorsys"):
        monkeypatch.delitem(sys.modules, "colorsys", raising=False)
        write(tmp_path / f"{name}.py", "raise RuntimeError('shadowed')")
    write(tmp_path / "plugin.py", "import json, colorsys\ndef f() -> None: ...\ntools = [f]")
    assert len(load_plugins(["plugin.py"], tmp_path)) == 1


def test_packages_that_live_below_the_folder_stay_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / ".venv" / "site" / "installed_thing.py", "X = 1")
    write(tmp_path / "plugin.py", "import installed_thing\ndef f() -> None: ...\ntools = [f]")
    monkeypatch.syspath_prepend(str(tmp_path / ".venv" / "site"))
    load_plugins(["plugin.py"], tmp_path)
    assert sys.modules.pop("installed_thing").X == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f(:\n  pass", "bad.py:1: not valid Python: "),
        ("import os\n\nimport no_such_module_here", "bad.py:3: ModuleNotFoundError: No module named"),
        ("from os import nothing_like_it", "bad.py:1: ImportError: cannot import name"),
        ("x = 1\ny = x / 0", "bad.py:2: ZeroDivisionError: division by zero; correct this, or remove the plugin"),
        ("def g():\n    raise ValueError('a\\nb')\n\ng()", "bad.py:2: ValueError: a b; "),
        ("import sys\nsys.exit(3)", "bad.py:2: SystemExit: 3; "),
        ("assert False", "bad.py:1: AssertionError; "),
        ("import broken_sibling", "bad.py:1: SyntaxError: "),
        ("def f() -> None: ...", "bad.py: there is no list named tools; write tools = [my_function] at its end"),
        ("x = 1\ntools = 'f'", "bad.py:2: tools is a str; write a list"),
        ("def f() -> None: ...\ntools = [\n  f,\n  'f',\n]", "bad.py:4: entry 2 of tools is a str; write a function"),
        ("class C: ...\ntools = [C]", "bad.py:2: entry 1 of tools is the class C; "),
        ("x = [5]\ntools: list = x", "bad.py:2: entry 1 of tools is a int; "),
        ("import functools\ntools = [functools.partial(print)]", "bad.py:2: entry 1 of tools is a partial; "),
        ("class C: ...\ndef f(a: C) -> None: ...\ntools = [f]", "bad.py:3: the function f cannot be a tool: "),
        ("def f(a: 'Missing') -> None: ...\ntools = [f]", "bad.py:2: the function f cannot be a tool: "),
        ("def f() -> None: ...\ntools = [f, f]", "bad.py:2: the tool f is already defined by bad.py; give it another"),
        (
            "from pydantic_ai import Tool\ndef f() -> None: ...\ntools = [Tool(f, metadata={'approval': 'always'})]",
            "bad.py:3: the tool f has metadata approval='always'; write one of always_require, never_require, or a",
        ),
    ],
)
def test_what_is_wrong_is_one_line_with_file_line_and_cause(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "bad.py").write_text(text)
    (tmp_path / "broken_sibling.py").write_text("\n\n(")
    assert refusal(tmp_path, "bad.py").startswith(expected)


@pytest.mark.parametrize(("name", "words"), [("none.py", "no such file"), (".", "no such file"), ("x.txt", ".py")])
def test_a_path_that_is_no_python_file(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "x.txt").write_text("tools = []")
    message = refusal(tmp_path, name)
    assert message.startswith(f"{name}: ")
    assert words in message


def test_names_are_unique_across_plugins_and_built_in_tools(tmp_path: Path) -> None:
    write(tmp_path / "a.py", "def f() -> None: ...\ntools = [f]")
    write(
        tmp_path / "b.py",
        """
        from pydantic_ai.toolsets import FunctionToolset
        def f() -> None: ...
        tools = [FunctionToolset([f])]
        """,
    )
    assert refusal(tmp_path, "a.py", "b.py").startswith("b.py:3: the tool f is already defined by a.py; ")
    assert refusal(tmp_path, "a.py", taken=("f",)).startswith("a.py:2: the tool f is already defined by Signoff itself")


def test_predicates_are_taken_as_they_are(tmp_path: Path) -> None:
    write(
        tmp_path / "a.py",
        """
        from pydantic_ai import Tool

        def f(n: int) -> int:
            return n

        tools = [Tool(f, metadata={"approval": lambda args, context: args["n"] > 5, "read_only": True})]
        """,
    )
    [tool] = load_plugins(["a.py"], tmp_path)
    assert isinstance(tool, Tool)
    assert tool.metadata is not None
    assert tool.metadata["approval"]({"n": 6}, None) is True


def test_a_failed_plugin_leaves_nothing_behind(tmp_path: Path) -> None:
    write(tmp_path / "a.py", "raise RuntimeError('first')")
    refusal(tmp_path, "a.py")
    assert not [
        name for name, module in sys.modules.items() if getattr(module, "__file__", "") == str(tmp_path / "a.py")
    ]
    write(tmp_path / "a.py", "def mended() -> None: ...\ntools = [mended]")
    [tool] = load_plugins(["a.py"], tmp_path)
    assert isinstance(tool, Tool)
    assert tool.name == "mended"


async def test_a_listener_of_a_plugin_is_told_every_decision(tmp_path: Path, store: Store, clock: HandClock) -> None:
    write(
        tmp_path / "listening.py",
        """
        heard = []
        tools = []

        def on_tool_approval(event):
            heard.append(event)
        """,
    )
    listeners: list[Listener] = []
    load_plugins(["listening.py"], tmp_path, listeners=listeners)
    (listener,) = listeners
    desk = Desk(
        store, clock, mask=lambda args: {name: f"<{value}>" for name, value in args.items()}, subscribers=[listener]
    )
    batch = make_batch()
    desk.watch(await store.run(lambda tx: desk.open(tx, batch)))
    await desk.decide(Click(batch.id, Choice.ACCEPT, ADA, PLACE.channel, note="fine"))
    await asyncio.sleep(0.01)  # the click gets its response first
    (event,) = listener.__globals__["heard"]
    assert (event["event"], event["tool"], event["by"]) == ("tool_approval", "delete_file", ADA.id)
    assert event["approved"] is True
    assert (event["arguments"], event["how"], event["note"]) == ({"path": "<a.txt>"}, "ui", "<fine>")


@pytest.mark.parametrize("wrong", ["on_tool_approval = 5", "async def on_tool_approval(event): ..."])
def test_a_listener_that_is_no_plain_function_is_said(tmp_path: Path, wrong: str) -> None:
    write(tmp_path / "listening.py", f"tools = []\n{wrong}")
    with pytest.raises(ConfigError, match=r"listening\.py: on_tool_approval is not a plain function"):
        load_plugins(["listening.py"], tmp_path, listeners=[])
