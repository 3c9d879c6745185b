"""`make screenshots`: photographs the approval card in every state, light, dark and at phone width, into docs/images.

Everything in the pictures is real: the bot as a process, the sandbox's Discord, the page in an installed Chromium. The
control API drives the people; the browser only displays.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Locator, Page, async_playwright

from discord_sandbox import Plan
from discord_sandbox.client import SandboxClient
from discord_sandbox.process import SandboxProcess, sandbox_process
from discord_sandbox.seen import SeenMessage
from signoff.commands.sandbox import NAMES
from signoff.commands.sandbox_guide import guide

ROOT = Path(__file__).parents[1]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
PATIENCE = 120.0
"""Seconds to wait for things that normally take one or two, because the machine may be busy with other work."""
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
HALF = {"viewport": {"width": 600, "height": 800}, "device_scale_factor": 2}
HERO = {"viewport": {"width": 1260, "height": 880}, "device_scale_factor": 1.5}
HERO_PAGE = """
<style>
  body {{ margin: 0; padding: 16px; display: flex; gap: 20px; width: 1228px; font: 600 19px system-ui, sans-serif;
          background: {background}; color: {ink}; }}
  figure {{ margin: 0; }}
  figcaption {{ padding: 0 0 10px 4px; }}
  img {{ width: 600px; display: block; border: 1px solid {line}; border-radius: 10px; }}
</style>
<figure><figcaption>1. It asks</figcaption><img src="data:image/png;base64,{asking}"></figure>
<figure><figcaption>2. Ada accepts, and it runs</figcaption><img src="data:image/png;base64,{result}"></figure>
"""
"""The picture in the README: two real screenshots of one thread, side by side."""
HERO_COLOURS = {
    "light": {"background": "#ffffff", "ink": "#1f2328", "line": "#d1d9e0"},
    "dark": {"background": "#0d1117", "ink": "#f0f6fc", "line": "#3d444d"},
}
AROUND = 170
"""The height in pixels that the page itself needs above and below a message."""


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
        own |= {"DISCORD_TOKEN": Plan.token, "DISCORD_API_URL": self.server.api_url, "SIGNOFF_MODEL": "demo"}
        own |= {"DISCORD_GATEWAY_URL": self.server.gateway_url}
        with (self.folder / "bot.log").open("ab") as log:
            self.bot = await asyncio.create_subprocess_exec(
                sys.executable, str(ROOT / "main.py"), "discord", cwd=self.folder, env=own, stdout=log, stderr=log
            )
        ready = asyncio.ensure_future(self.sandbox.wait_for("READY", after=before, timeout=PATIENCE, kind="gateway"))
        ended = asyncio.ensure_future(self.bot.wait())
        await asyncio.wait({ready, ended}, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if not ready.done():
            ready.cancel()
            raise SystemExit(f"the bot ended:\n{(self.folder / 'bot.log').read_text(encoding='utf-8')[-2000:]}")
        await ready

    async def kill_bot(self) -> None:
        if self.bot and self.bot.returncode is None:
            self.bot.kill()
            await self.bot.wait()

    async def ask(self, text: str, who: str = "Max") -> SeenMessage:
        """Ask for something and return the open card."""
        return await self.asked(text, who, lambda m: "Accept" in [b.label for b in m.buttons])

    async def asked(self, text: str, who: str, matches: Callable[[SeenMessage], object]) -> SeenMessage:
        person = await self.sandbox.person(who)
        said = await person.say("general", f"{self.sandbox.mention} {text}")
        return await self.sees(said.id, matches)

    async def sees(self, thread: int, matches: Callable[[SeenMessage], object]) -> SeenMessage:
        return await (await self.sandbox.person("Ada")).wait_for_message(thread, matches, timeout=PATIENCE)

    async def decide(self, card: SeenMessage, label: str, who: str = "Ada") -> None:
        await (await self.sandbox.person(who)).click(card, label)

    async def closed(self, card: SeenMessage, word: str) -> SeenMessage:
        """Wait until the card has no buttons and says how it ended."""
        ada = await self.sandbox.person("Ada")
        return await ada.wait_for_change(card, lambda m: not m.buttons and word in m.text, timeout=PATIENCE)


@asynccontextmanager
async def studio(folder: Path) -> AsyncGenerator[Studio]:
    (folder / "guide.json").write_text(json.dumps(guide(20)), encoding="utf-8")
    options = ("--restarts", "--guide", str(folder / "guide.json"), *NAMES)
    async with sandbox_process(*options) as server, server.client() as sandbox:
        await sandbox.rate_limits(enabled=False)
        await sandbox.settings(interaction_deadline=PATIENCE)
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
    """Make one card per state. The open one comes last, so that its countdown is fresh."""
    shots = scene.shots
    shots["cancelled"] = await _cancelled(scene)
    shots["may-have-run"] = await _may_have_run(scene)
    card = await scene.ask('announce "The office is closed on Friday." to everyone')
    await scene.decide(card, "Accept", "Olga")
    shots["approved"] = await scene.closed(card, "APPROVED")
    card = await scene.ask('call deploy {"service": "billing", "version": "2.4.0"}')
    await scene.decide(card, "Reject")
    shots["rejected"] = await scene.closed(card, "REJECTED")
    # The one-second timeout may pass before the card is seen, so this does not check for buttons.
    call = 'call deploy {"service": "newsletter", "version": "1.9.3"}'
    card = await scene.asked(call, "Max", lambda m: "newsletter" in m.text and "Request " in m.text)
    shots["timeout"] = await scene.closed(card, "TIMEOUT")
    shots["long"] = await scene.ask("run the test approval tool with a long parameter of 20000 characters", "Ada")
    shots["batch"] = await scene.ask("a batch of three calls, one of them protected", "Olga")
    shots["hostile"] = await scene.ask(HOSTILE)
    shots["open"] = await scene.ask('call deploy {"service": "billing", "version": "2.4.1"}', "Ada")


async def _cancelled(scene: Studio) -> SeenMessage:
    """Return the card of a cancelled run: by `/signoff stop` if the bot offers it, else by an outage of Discord."""
    ada = await scene.sandbox.person("Ada")
    offered = [option["name"] for command in await ada.commands("general") for option in _options(command)]
    call = 'call deploy {"service": "search", "version": "7.0.1"}'
    if "stop" in offered:
        card = await scene.ask(call)
        await ada.run(card.channel_id, "signoff stop")
        return await scene.closed(card, "CANCELLED")
    # Discord shows the card, but every confirmation is lost, so the bot gives up. A click tells the bot which message
    # the card is, and its next start writes the end on it.
    await scene.sandbox.fault("POST", "/channels/[0-9]+/messages$", drop=True, after=True, times=100)
    card = await scene.ask(call)
    await scene.sees(card.channel_id, lambda m: "could not ask for approval" in m.text)
    await scene.sandbox.clear_faults()
    await scene.decide(card, "Accept")
    await scene.kill_bot()
    await scene.start_bot()
    return await scene.closed(card, "CANCELLED")


def _options(command: dict[str, Any]) -> list[dict[str, Any]]:
    return command.get("options") or []


async def _may_have_run(scene: Studio) -> SeenMessage:
    card = await scene.ask('call deploy {"service": "billing", "version": "2.3.9", "seconds": 600}')
    await scene.decide(card, "Accept")
    started = scene.folder / "started"
    async with asyncio.timeout(PATIENCE):
        while not started.exists():  # noqa: ASYNC110 - the file is the only sign
            await asyncio.sleep(0.05)
    await scene.kill_bot()
    await scene.start_bot()
    return await scene.sees(card.channel_id, lambda m: "may have run" in m.text and m.buttons)


async def photograph(scene: Studio, browser: Browser, target: Path, only: list[str]) -> None:
    wanted = {name: shot for name, shot in scene.shots.items() if not only or name in only}
    for look, options in LOOKS.items():
        async with _opened(scene, browser, options) as page:
            for name, shot in wanted.items():
                message = await _go(page, shot)
                # Make the window as tall as the card, so that none of it is cut off.
                size = options["viewport"]
                tall = await message.evaluate("(message) => message.offsetHeight") + AROUND
                await page.set_viewport_size(size | {"height": max(tall, size["height"] if look == "phone" else 0)})
                await message.evaluate("(message) => message.scrollIntoView({ block: 'end' })")
                await _at_rest(page)
                file = target / f"card-{name}-{look}.png"
                await page.screenshot(path=file) if look == "phone" else await message.screenshot(path=file)


async def portray(scene: Studio, browser: Browser, target: Path) -> None:
    """Make the picture at the top of the README: the card that asks, and the same thread after the accept."""
    card = await scene.ask('announce "The office is closed on Friday." to everyone', "Olga")
    asking = {look: await _thread(scene, browser, card, look) for look in HERO_COLOURS}
    await scene.decide(card, "Accept")
    await scene.closed(card, "APPROVED")
    reply = await scene.sees(card.channel_id, lambda m: m.id > card.id and m.text)
    result = {look: await _thread(scene, browser, reply, look) for look in HERO_COLOURS}
    for look, colours in HERO_COLOURS.items():
        context = await browser.new_context(**HERO)
        page = await context.new_page()
        halves = {"asking": b64encode(asking[look]).decode(), "result": b64encode(result[look]).decode()}
        await page.set_content(HERO_PAGE.format(**colours, **halves))
        await page.locator("body").screenshot(path=target / f"hero-{look}.png")
        await context.close()


async def _thread(scene: Studio, browser: Browser, last: SeenMessage, look: str) -> bytes:
    """Photograph a thread in a narrow window, with `last` at its end."""
    async with _opened(scene, browser, HALF | {"color_scheme": look}) as page:
        await _go(page, last)
        return await page.screenshot()


@asynccontextmanager
async def _opened(scene: Studio, browser: Browser, options: dict[str, Any]) -> AsyncGenerator[Page]:
    context = await browser.new_context(**options)
    context.set_default_timeout(PATIENCE * 1000)
    page = await context.new_page()
    await page.goto(scene.server.page_url)
    await page.wait_for_selector("html[data-ready]", state="attached")
    # Turn off the suggestions for new users: the pictures are of the cards.
    await page.evaluate("sessionStorage.setItem('sandbox-guide-off', '1')")
    await page.reload()
    await page.wait_for_selector("html[data-ready]", state="attached")
    if options["viewport"]["width"] == LOOKS["light"]["viewport"]["width"]:
        await page.get_by_role("button", name="Members").click()
    yield page
    await context.close()


async def _go(page: Page, shot: SeenMessage) -> Locator:
    """Open the channel of a message; return the message once it is there and nothing on the page moves any more."""
    await page.evaluate("(hash) => { location.hash = hash; }", f"as=Ada&at={shot.channel_id}")
    message = page.locator(f'.message[data-id="{shot.id}"]')
    await message.wait_for()
    await _at_rest(page)
    return message


async def _at_rest(page: Page) -> None:
    """Wait until fonts are loaded and ten frames in a row show everything in the same place."""
    await page.evaluate(
        """async () => {
          await document.fonts.ready;
          const places = () => JSON.stringify([...document.querySelectorAll('.message, #scroller, #people, #places')]
            .map((part) => Object.values(part.getBoundingClientRect().toJSON())));
          for (let same = 0, before = ''; same < 10; ) {
            await new Promise(requestAnimationFrame);
            const now = places();
            same = now === before ? same + 1 : 0;
            before = now;
          }
        }"""
    )


async def run(program: str, target: Path, only: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with studio(Path(folder)) as scene, async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=program, args=FLAGS, headless=True)
            if not only or "hero" in only:
                await portray(scene, browser, target)
            if only != ["hero"]:
                await arrange(scene)
                await photograph(scene, browser, target, only)
            await browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=Path, default=ROOT / "docs" / "images")
    parser.add_argument("only", nargs="*", help="states to photograph, or hero; everything if none is named")
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
