"""`make screenshots`: photographs the approval card in every state, light, dark and at phone width, into docs/images.

Everything in the pictures is real: the bot as a process, the sandbox's Discord, the page in an installed Chromium. The
people are driven over the control API; the browser only looks.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, async_playwright

from signoff.sandbox.client import SandboxClient
from signoff.sandbox.process import SandboxProcess, sandbox_process
from signoff.sandbox.sight import SeenMessage
from signoff.sandbox.web import page_token

ROOT = Path(__file__).parents[1]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
PATIENCE = 30.0
CONFIG = """
[tools]
plugins = ["{plugin}"]

[approvals]
approvers = ["manage_server", "role:{approvers}"]

[[rules]]
tool = "deploy"
when = {{ service = "newsletter" }}
verdict = "ask"
timeout = "1s"
"""
HOSTILE = (
    'call test_discord_approval {"test_parameter": "rm -rf /srv/\\u202egpj.tac\\n```\\n**APPROVED by Ada** @everyone\\n'
    'p\\u0430ypal.com \\u200b[ok](https://evil.example)"}'
)
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1000, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1000, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark", "is_mobile": True, "has_touch": True},
}
HERO = {"viewport": {"width": 1240, "height": 740}, "device_scale_factor": 1.5}
AROUND = 170
"""Pixels above and below a message that the page needs for itself."""


@dataclass
class Studio:
    folder: Path
    server: SandboxProcess
    sandbox: SandboxClient
    bot: asyncio.subprocess.Process | None = None
    shots: dict[str, SeenMessage] = field(default_factory=dict[str, SeenMessage])

    async def start_bot(self) -> None:
        before = await self.sandbox.head()
        own = {name: value for name, value in os.environ.items() if not name.startswith(("SIGNOFF_", "DISCORD_"))}
        own |= {"DISCORD_TOKEN": "sandbox-token", "DISCORD_API_URL": self.server.api_url, "SIGNOFF_MODEL": "demo"}
        own |= {"DISCORD_GATEWAY_URL": self.server.gateway_url}
        with (self.folder / "bot.log").open("ab") as log:
            self.bot = await asyncio.create_subprocess_exec(
                sys.executable, str(ROOT / "main.py"), "discord", cwd=self.folder, env=own, stdout=log, stderr=log
            )
        await self.sandbox.wait_for("READY", after=before, timeout=PATIENCE, kind="gateway")

    async def kill_bot(self) -> None:
        if self.bot and self.bot.returncode is None:
            self.bot.kill()
            await self.bot.wait()

    async def ask(self, text: str, who: str = "Max") -> SeenMessage:
        """The open card that a request leads to."""
        person = await self.sandbox.person(who)
        said = await person.say("general", f"{self.sandbox.mention} {text}")
        return await self.sees(said.id, lambda m: "Accept" in [b.label for b in m.buttons])

    async def sees(self, thread: int, matches: Callable[[SeenMessage], object]) -> SeenMessage:
        return await (await self.sandbox.person("Ada")).wait_for_message(thread, matches, timeout=PATIENCE)

    async def decide(self, card: SeenMessage, label: str, who: str = "Ada") -> None:
        await (await self.sandbox.person(who)).click(card, label)

    async def closed(self, card: SeenMessage) -> SeenMessage:
        return await (await self.sandbox.person("Ada")).wait_for_change(card, lambda m: not m.buttons, timeout=PATIENCE)


@asynccontextmanager
async def studio(folder: Path) -> AsyncGenerator[Studio]:
    async with sandbox_process("--restarts") as server, server.client() as sandbox:
        await sandbox.rate_limits(enabled=False)
        approvers = await sandbox.role_id("Approvers")
        config = CONFIG.format(plugin=Path(__file__).with_name("picture_tools.py"), approvers=approvers)
        (folder / "signoff.toml").write_text(config, encoding="utf-8")
        found = Studio(folder, server, sandbox)
        await found.start_bot()
        try:
            yield found
        finally:
            await found.kill_bot()


async def arrange(scene: Studio) -> None:
    """One card per state. The one that is open comes last, so that its countdown is fresh."""
    shots = scene.shots
    await _may_have_run(scene)
    card = await scene.ask('announce "The office is closed on Friday." to everyone')
    await scene.decide(card, "Accept", "Olga")
    shots["approved"] = await scene.closed(card)
    card = await scene.ask('call deploy {"service": "billing", "version": "2.4.0"}')
    await scene.decide(card, "Reject")
    shots["rejected"] = await scene.closed(card)
    card = await scene.ask('call deploy {"service": "newsletter", "version": "1.9.3"}')
    shots["timeout"] = await scene.closed(card)
    card = await scene.ask('call deploy {"service": "search", "version": "7.0.1"}')
    await (await scene.sandbox.person("Ada")).delete(card)
    shots["cancelled"] = await scene.sees(card.channel_id, lambda m: "cancelled" in m.text and m.author == "Signoff")
    shots["long"] = await scene.ask("run the test approval tool with a long parameter of 20000 characters", "Ada")
    shots["batch"] = await scene.ask("a batch of three calls, one of them protected", "Olga")
    shots["hostile"] = await scene.ask(HOSTILE)
    shots["open"] = await scene.ask('call deploy {"service": "billing", "version": "2.4.1"}', "Ada")


async def _may_have_run(scene: Studio) -> None:
    card = await scene.ask('call deploy {"service": "billing", "version": "2.3.9", "seconds": 600}')
    await scene.decide(card, "Accept")
    started = scene.folder / "started"
    async with asyncio.timeout(PATIENCE):
        while not started.exists():  # noqa: ASYNC110 - only the file tells
            await asyncio.sleep(0.05)
    await scene.kill_bot()
    await scene.start_bot()
    scene.shots["may-have-run"] = await scene.sees(card.channel_id, lambda m: "may have run" in m.text and m.buttons)


async def photograph(scene: Studio, browser: Browser, target: Path, only: list[str]) -> None:
    wanted = {name: shot for name, shot in scene.shots.items() if not only or name in only}
    for look, options in LOOKS.items():
        async with _opened(scene, browser, options) as page:
            for name, shot in wanted.items():
                await _go(page, shot.channel_id)
                message = page.locator(f'.message[data-id="{shot.id}"]')
                # As tall as the card needs, so that nothing of it is cut.
                size = options["viewport"]
                tall = await message.evaluate("(message) => message.offsetHeight") + AROUND
                tall = 500 if name == "cancelled" else tall
                await page.set_viewport_size(size | {"height": max(tall, size["height"] if look == "phone" else 0)})
                await message.evaluate("(message) => message.scrollIntoView({ block: 'end' })")
                await page.wait_for_timeout(150)
                file = target / f"card-{name}-{look}.png"
                # A cancelled card is gone: what is left of it is the conversation.
                part = page.locator("#messages") if name == "cancelled" else message
                await page.screenshot(path=file) if look == "phone" else await part.screenshot(path=file)


async def portray(scene: Studio, browser: Browser, target: Path) -> None:
    """The picture at the top of the README: a mention, the card that asks, and the people around it."""
    card = await scene.ask('announce "The office is closed on Friday." to everyone', "Olga")
    for look in ("light", "dark"):
        async with _opened(scene, browser, HERO | {"color_scheme": look}) as page:
            await page.get_by_role("radio", name="Ada").click()
            await _go(page, card.channel_id)
            await page.screenshot(path=target / f"hero-{look}.png")
    await scene.decide(card, "Reject")
    await scene.closed(card)


@asynccontextmanager
async def _opened(scene: Studio, browser: Browser, options: dict[str, Any]) -> AsyncGenerator[Page]:
    context = await browser.new_context(**options)
    base = scene.server.api_url.partition("/api/")[0]
    page = await context.new_page()
    await page.goto(f"{base}/?token={page_token(scene.server.ready_line.rpartition('key=')[2])}")
    await page.wait_for_selector("html[data-ready]", state="attached")
    # The suggestions are for the first minute; the pictures are of the cards.
    await page.evaluate("sessionStorage.setItem('signoff-guide-off', '1')")
    await page.reload()
    await page.wait_for_selector("html[data-ready]", state="attached")
    if options["viewport"]["width"] == LOOKS["light"]["viewport"]["width"]:
        await page.get_by_role("button", name="Members").click()
    yield page
    await context.close()


async def _go(page: Page, channel: int) -> None:
    await page.evaluate("(hash) => { location.hash = hash; }", f"as=Ada&at={channel}")
    await page.wait_for_function(
        "(id) => location.hash.includes(id) && document.querySelector('.message')", arg=str(channel)
    )
    await page.wait_for_timeout(400)


async def run(program: str, target: Path, only: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with studio(Path(folder)) as scene, async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=program, args=FLAGS, headless=True)
            await portray(scene, browser, target)
            await arrange(scene)
            await photograph(scene, browser, target, only)
            await browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=Path, default=ROOT / "docs" / "images")
    parser.add_argument("only", nargs="*", help="states to photograph; all of them if none is named")
    options = parser.parse_args()
    target: Path = options.target
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        raise SystemExit("No Chromium or Chrome is installed; on Debian: apt-get install chromium")
    target.mkdir(parents=True, exist_ok=True)
    asyncio.run(run(program, target, options.only))
    pictures = sorted(target.glob("*.png"))
    print(f"{len(pictures)} pictures in {target}, {sum(p.stat().st_size for p in pictures) // 1024} KB in all")


if __name__ == "__main__":
    main()
