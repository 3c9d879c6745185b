"""Runs the agents of PydanticAI's documentation through `[agent] import`, and prints a table of what runs.

Usage: `python tools/doc_examples.py FOLDER [--page NAME ...]`, where FOLDER is `docs` of PydanticAI's sources.

Each example becomes a file of a temporary project, unchanged, together with the other files of its page. An example is
a script, so loading it ends where the script first runs an agent. From outside, every model is PydanticAI's TestModel,
which calls each tool once; every card is accepted or answered; dependencies are made from the types of their fields;
and small MCP servers answer at the addresses of the page. Each example runs in a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import importlib
import importlib.machinery
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import time
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGES = (
    "deferred-tools",
    "toolsets",
    "dependencies",
    "output",
    "multi-agent-applications",
    "mcp/client",
    "mcp/overview",
)
BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<kind>python|py|json)(?P<options>[^\n]*)\n(?P<code>.*?)^(?P=indent)```", re.M | re.S
)
TITLE = re.compile(r'title="([^"]+)"')
SERVERS = {8000: "streamable-http", 3001: "sse", 3002: "sse"}
"""Port -> transport of the MCP servers that the pages name."""
OLD_SERVER = "mcp.server.fastmcp"
PATIENCE = 90.0
STORY = "Once upon a time there was an agent that asked before it acted, and everybody was happy."
PLAUSIBLE = {"query": "SELECT * FROM capital_cities"}
"""Name of an argument -> a value that the examples' own checks accept."""
KEYS = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"), "none")


@dataclasses.dataclass(frozen=True)
class Example:
    page: str
    name: str
    code: str


def read_page(folder: Path, page: str) -> tuple[list[Example], dict[str, str]]:
    """Return the Python examples of a page, and all its files: name -> text."""
    examples: list[Example] = []
    files: dict[str, str] = {}
    for number, block in enumerate(BLOCK.finditer((folder / f"{page}.md").read_text(encoding="utf-8")), start=1):
        titled = TITLE.search(block["options"])
        name = titled[1] if titled else f"untitled_{number}.py"
        code = textwrap.dedent(block["code"])
        files.setdefault(name, code)
        if block["kind"] != "json":
            examples.append(Example(page, name, code))
    return examples, files


def run_example(example: Example, files: dict[str, str]) -> list[tuple[str, str]]:
    """Return (agent, verdict) for each agent of the example."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**files, example.name: example.code}.items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_text(text, encoding="utf-8")
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
        command = [sys.executable, str(Path(__file__).resolve()), "--one", example.name.removesuffix(".py")]
        environment = {**os.environ, **KEYS, "PATH": path}
        try:
            ended = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE
            )
        except subprocess.TimeoutExpired:
            return [("", f"does not end within {PATIENCE:g} s")]
    results = [json.loads(line[7:]) for line in ended.stdout.splitlines() if line.startswith("RESULT ")]
    if not results:
        return [("", f"fails: {_last(ended.stderr)}")]
    return [(agent, explained(verdict, example, files)) for agent, verdict in results]


def explained(verdict: str, example: Example, files: dict[str, str]) -> str:
    """Name the cause if an MCP server of the page does not start."""
    servers = [name for name, text in files.items() if name in example.code and OLD_SERVER in text]
    if "Connection closed" in verdict and servers:
        return f"fails: {servers[0]} does not start, because mcp 2 has no {OLD_SERVER}"
    return verdict


def _last(text: str) -> str:
    return text.strip().splitlines()[-1] if text.strip() else "without a word"


# In the process of one example


class ScriptBegins(BaseException):
    """The example runs its agent here."""


def run_one(module: str) -> None:
    logging_off()
    use_test_models()
    sys.path.insert(0, os.getcwd())
    with ending_at_first_run(Path.cwd()):
        try:
            loaded = importlib.import_module(module)
        except Exception as error:
            report("", f"cannot be loaded: {type(error).__name__}: {error}")
            return
        from pydantic_ai.agent import AbstractAgent

        others = [one for name, one in sys.modules.items() if name != module and _is_here(one)]
        taken = {id(value) for one in others for value in vars(one).values()}
        agents = [
            name for name, value in vars(loaded).items() if isinstance(value, AbstractAgent) and id(value) not in taken
        ]
        if not agents:
            report("", "no agent of its own at the top of the file")
        brains = {name: build(f"{module}:{name}") for name in agents}
    for name, brain in brains.items():
        report(name, brain if isinstance(brain, str) else asyncio.run(run_agent(brain, f"{name}.db")))


def report(agent: str, verdict: str) -> None:
    print("RESULT " + json.dumps([agent, " ".join(verdict.split())]), flush=True)


def logging_off() -> None:
    import logging

    logging.disable(logging.CRITICAL)


def _is_here(module: object) -> bool:
    file = getattr(module, "__file__", None)
    return bool(file) and Path(str(file)).parent == Path.cwd()


def use_test_models() -> None:
    """Make every model that is named by a string one that calls each tool once and then gives some output."""
    from pydantic_ai import models
    from pydantic_ai.models.test import TestModel, _JsonSchemaTestData  # pyright: ignore[reportPrivateUsage]

    class OutsideModel(TestModel):
        def gen_tool_args(self, tool_def: Any) -> Any:
            args = super().gen_tool_args(tool_def)
            return (
                {name: PLAUSIBLE.get(name, value) for name, value in args.items()} if isinstance(args, dict) else args
            )

        def _request(self, messages: Any, model_settings: Any, model_request_parameters: Any) -> Any:
            wanted = model_request_parameters.output_object
            if model_request_parameters.output_mode in ("native", "prompted") and wanted:
                self.custom_output_text = json.dumps(_JsonSchemaTestData(wanted.json_schema, self.seed).generate())
            elif model_request_parameters.output_mode == "text":
                self.custom_output_text = STORY
            else:
                self.custom_output_text = None
            return super()._request(messages, model_settings, model_request_parameters)

    def infer(model: Any, *rest: Any, **named: Any) -> Any:
        return model if isinstance(model, models.Model) else OutsideModel(profile={"supports_json_schema_output": True})

    models.infer_model = infer


@contextlib.contextmanager
def ending_at_first_run(folder: Path) -> Iterator[None]:
    """Let a module of this folder end where it first runs an agent."""
    from pydantic_ai.agent import AbstractAgent, Agent

    def begins(*args: Any, **named: Any) -> Any:
        raise ScriptBegins

    loader: Any = importlib.machinery.SourceFileLoader
    load, kept = loader.exec_module, []

    def load_until_run(self: Any, module: types.ModuleType) -> None:
        try:
            load(self, module)
        except ScriptBegins:
            if not _is_here(module):
                raise

    for kind in (AbstractAgent, Agent):
        for name in ("run", "run_sync", "run_stream", "run_stream_sync", "run_stream_events", "iter"):
            if name in vars(kind):
                kept.append((kind, name, vars(kind)[name]))
                setattr(kind, name, begins)
    loader.exec_module = load_until_run
    try:
        yield
    finally:
        loader.exec_module = load
        for kind, name, method in kept:
            setattr(kind, name, method)


def build(target: str) -> Any:
    """Return the agent as Signoff loads it, or why it cannot."""
    from signoff.agent.imported import needs_deps
    from signoff.agent.setup import Brain
    from signoff.config.schema import load_config
    from signoff.errors import StartupError

    module, _, name = target.partition(":")
    text = f'[agent]\nimport = "{target}"\n'
    if needs_deps(getattr(sys.modules[module], name)):
        text += f'deps = "doc_examples:make_deps"\n[agent.settings]\nagent = "{target}"\n'
    Path("signoff.toml").write_text(text)
    try:
        return Brain.build(load_config(Path("signoff.toml"), required=True), "demo")
    except StartupError as error:
        return f"refused at the start: {error}"


async def run_agent(brain: Any, database: str) -> str:
    """Run a turn with Signoff's own runner and desk, with every card accepted or answered. Returns the verdict."""
    from signoff.agent.history import load_messages
    from signoff.approvals.answering import Answering
    from signoff.approvals.automatic import Modes
    from signoff.approvals.desk import Desk
    from signoff.approvals.model import Actor, Place
    from signoff.clock import SteadyClock
    from signoff.config.schema import Config
    from signoff.errors import TurnFailed
    from signoff.store import Store
    from signoff.turns.model import Turn, TurnState, Waiting

    place = Place("1", "2", "2")
    ada = Actor("4", "Ada", "1", manages_server=True)
    turn = Turn("example:1", place, "3", ada, "Please help.", time.time())
    cards = 0
    async with await Store.open(f"sqlite:///{database}") as store:
        clock = SteadyClock()
        runner = brain.runner(Config(), store, clock, brain.policy, dict)
        desk = Desk(store, clock, Modes("auto_approve"))
        await store.run(lambda tx: tx.insert_turn(turn))
        await store.run(lambda tx: tx.move(turn.id, TurnState.QUEUED, TurnState.RUNNING))
        try:
            for _ in range(10):
                current = await store.run(lambda tx: tx.turn(turn.id))
                step = await runner.advance(current)
                if not isinstance(step, Waiting):
                    break
                cards += 1
                await store.run(lambda tx, batch=step.batch: desk.open(tx, batch))
                for asked in step.batch.requests:
                    if asked.inquiry:
                        answer = {field.name: answer_to(field) for field in asked.inquiry.fields}
                        await Answering(desk).answer(asked.id, answer, ada, "2", None)
            else:
                return "fails: it asks again and again"
        except TurnFailed as failure:
            cause = failure.__cause__
            return f"fails: {type(cause).__name__}: {cause}" if cause else f"fails: {failure}"
        messages = [*load_messages(await store.run(lambda tx: tx.history("2"))), *load_messages(step.history)]
    return verdict_on(messages, cards)


def answer_to(field: Any) -> Any:
    """Return an answer that fits a field of a form."""
    typed = {"number": "42", "integer": "42", "yes_no": "yes", "choice": "#0", "choices": "#0", "json": '"foobar"'}
    return field.read([typed.get(field.kind, "foobar")])


def verdict_on(messages: list[Any], cards: int) -> str:
    parts = [part for message in messages for part in message.parts if part.part_kind == "tool-return"]
    failed = {part.tool_name: part.model_response_str() for part in parts if part.outcome not in ("success", "retried")}
    notes = [f"{name}: {text}" for name, text in failed.items()]
    return "; ".join(["runs" + (f", {cards} card{'s' * (cards > 1)}" if cards else ""), *notes])


def make_deps(info: Any) -> Any:
    """Make the dependencies of the agent that the settings name, from the types of their fields."""
    module, _, name = info.settings["agent"].partition(":")
    return sample(getattr(sys.modules[module], name).deps_type)


def sample(kind: Any) -> Any:
    """Return a value of a type."""
    import httpx

    plain = {str: "foobar", int: 42, float: 1.5, bool: True}
    if kind in plain:
        return plain[kind]
    transport = httpx.MockTransport(lambda request: httpx.Response(200, text="a joke"))
    for client in (httpx.AsyncClient, httpx.Client):
        if kind is client:
            return client(transport=transport)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return kind(**{field.name: sample(hints[field.name]) for field in dataclasses.fields(kind)})  # type: ignore[operator]
    if typing.get_origin(kind) is typing.Literal:
        return typing.get_args(kind)[0]
    if inspect.isclass(kind):
        with contextlib.suppress(Exception):
            return kind()
    return types.SimpleNamespace()


# All examples


@contextlib.contextmanager
def mcp_servers() -> Iterator[None]:
    code = (
        "import sys\nfrom mcp.server.mcpserver import MCPServer\nserver = MCPServer('sums')\n"
        "@server.tool()\ndef add(a: int, b: int) -> int:\n    return a + b\n"
        "server.run(sys.argv[2], port=int(sys.argv[1]))\n"
    )
    quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(port), transport], **quiet)
        for port, transport in SERVERS.items()
    ]
    time.sleep(6)
    try:
        yield
    finally:
        for process in started:
            process.terminate()
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--page", action="append", choices=PAGES)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        run_one(options.one)
        return
    print("| page | example | agent | what happens |\n| --- | --- | --- | --- |")
    with mcp_servers() if any(page.startswith("mcp") for page in options.page or PAGES) else contextlib.nullcontext():
        for page in options.page or PAGES:
            examples, files = read_page(options.folder, page)
            for example in examples:
                if "Agent" not in example.code:
                    continue
                for agent, verdict in run_example(example, files):
                    print(
                        f"| {page} | `{example.name}` | {f'`{agent}`' if agent else ''} | {_cell(verdict)} |",
                        flush=True,
                    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")[:300]


if __name__ == "__main__":
    main()
