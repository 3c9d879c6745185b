"""`python -m discord_sandbox`: runs the server until it is interrupted.

The first line of its output is for programs. The other lines are for people: the page's address and the bot's token.
"""

import argparse
import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

from discord_sandbox.process import TOKEN_VARIABLE
from discord_sandbox.seed import Plan
from discord_sandbox.server import NotLoopback, SandboxServer
from discord_sandbox.web import BadGuide, Guide

PARENT_SECONDS = 0.5
"""Seconds between two looks whether the parent has ended."""


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m discord_sandbox", description="A Discord on loopback.")
    parser.add_argument("--host", default="127.0.0.1", help="a loopback address; any other address is refused")
    parser.add_argument("--port", type=int, default=9000, help="0 picks a free port (default: 9000)")
    parser.add_argument("--or-any", action="store_true", help="pick a free port if that one is taken")
    parser.add_argument("--state", type=Path, help="a file that keeps the world between runs")
    token = os.environ.get(TOKEN_VARIABLE) or Plan.token
    parser.add_argument("--token", default=token, help=f"the bot's token; {TOKEN_VARIABLE} keeps it out of `ps`")
    parser.add_argument("--bot", default=Plan.bot, help="the bot's name in a new world")
    parser.add_argument("--server", default=Plan.server, help="the name of the bot's server in a new world")
    parser.add_argument("--key", help="the control API's key (default: a random one)")
    parser.add_argument("--message-content", action="store_true", help="grant the Message Content intent")
    parser.add_argument("--members", action="store_true", help="grant the Server Members intent")
    parser.add_argument("--guide", type=Path, help="a JSON file with suggestions for the page")
    parser.add_argument("--restarts", action="store_true", help="show a button that asks for a restart of the bot")
    parser.add_argument("--with-parent", action="store_true", help="end when the process that started it has ended")
    return parser.parse_args(arguments)


async def run(options: argparse.Namespace) -> None:
    plan = Plan(options.token, options.message_content, options.members, options.bot, options.server)
    restarts: bool = options.restarts
    server = SandboxServer(
        host=options.host,
        port=options.port,
        or_any=options.or_any,
        plan=plan,
        state=options.state,
        key=options.key,
        guide=Guide.read(options.guide, restarts=restarts) if options.guide else Guide(restarts=restarts),
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows: Ctrl-C ends asyncio.run instead
            loop.add_signal_handler(number, server.stopped.set)
    parent = os.getppid()
    async with server:
        print(server.ready_line)
        print(f"page  {server.page_url}\ntoken {server.token}", flush=True)
        # A process whose parent has ended gets another parent.
        while not options.with_parent or os.getppid() == parent:
            with suppress(TimeoutError):
                await asyncio.wait_for(server.stopped.wait(), PARENT_SECONDS if options.with_parent else None)
                return


def main() -> None:
    options = parse()
    try:
        with suppress(KeyboardInterrupt):
            asyncio.run(run(options))
    except BadGuide as problem:
        raise SystemExit(f"the sandbox cannot start: {problem}") from None
    except (NotLoopback, OSError) as problem:
        raise SystemExit(f"the sandbox cannot start on {options.host} port {options.port}: {problem}") from None


if __name__ == "__main__":
    main()
