"""`python -m discord_sandbox`: runs the server until it is interrupted, and says on one line where it is."""

import argparse
import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

from discord_sandbox.seed import Plan
from discord_sandbox.server import NotLoopback, SandboxServer
from discord_sandbox.web import Guide


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m discord_sandbox", description="A Discord on loopback.")
    parser.add_argument("--host", default="127.0.0.1", help="a loopback address; anything else is refused")
    parser.add_argument("--port", type=int, default=9000, help="0 picks a free one")
    parser.add_argument("--or-any", action="store_true", help="another free port if that one is taken")
    parser.add_argument("--state", type=Path, help="file that keeps the world between runs")
    token = os.environ.get("SIGNOFF_SANDBOX_TOKEN", Plan.token)
    parser.add_argument("--token", default=token, help="the bot's token; better given in SIGNOFF_SANDBOX_TOKEN")
    parser.add_argument("--key", help="the control API's key; made up if absent")
    parser.add_argument("--message-content", action="store_true", help="grant the Message Content intent")
    parser.add_argument("--members", action="store_true", help="grant the Server Members intent")
    parser.add_argument("--hurry", type=int, help="seconds of the short deadline that the bot's rules have")
    parser.add_argument("--restarts", action="store_true", help="somebody restarts the bot when the page asks for it")
    return parser.parse_args(arguments)


async def run(options: argparse.Namespace) -> None:
    plan = Plan(token=options.token, message_content=options.message_content, members=options.members)
    guide = Guide(options.hurry, options.restarts)
    server = SandboxServer(
        host=options.host,
        port=options.port,
        or_any=options.or_any,
        plan=plan,
        state=options.state,
        key=options.key,
        guide=guide,
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows: Ctrl-C ends asyncio.run instead
            loop.add_signal_handler(number, server.stopped.set)
    async with server:
        print(server.ready_line, flush=True)
        await server.stopped.wait()


def main() -> None:
    options = parse()
    try:
        with suppress(KeyboardInterrupt):
            asyncio.run(run(options))
    except (NotLoopback, OSError) as problem:
        raise SystemExit(f"the sandbox cannot start on {options.host} port {options.port}: {problem}") from None


if __name__ == "__main__":
    main()
