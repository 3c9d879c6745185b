"""`make screenshots`: photographs the approval card in every state, light, dark and at phone width.

Everything in the pictures is real: the bot as a process, the sandbox's Discord, the page in an installed Chromium. The
pictures of docs/images are taken unless states are named; `--all` takes every state and every private panel.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
from base64 import b64encode
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from picture_stage import PATIENCE, ROOT, STATES, Studio, studio
from playwright.async_api import Browser, Locator, Page, async_playwright

from discord_sandbox.seen import SeenMessage

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
SHOWN = ("may-have-run", "cancelled", "approved", "rejected", "timeout", "edited", "long", "batch", "hostile", "open")
"""The states in docs/images."""
PANELS: dict[str, tuple[str, ...]] = {
    "panel": ("More…",),
    "edit-form": ("More…", "Edit…"),
    "reason-form": ("More…", "Reject with a reason…"),
    "remember-form": ("More…", "Remember…"),
    "remember-confirmation": ("More…", "Remember…", "Submit"),
}
"""Name of a private panel or form -> the buttons that Ada presses one after the other, on the card that is open."""
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


async def photograph(scene: Studio, browser: Browser, target: Path, shots: dict[str, SeenMessage]) -> None:
    """Photograph each card, and print how tall it is."""
    for look, options in LOOKS.items():
        async with _opened(scene, browser, options) as page:
            for name, shot in shots.items():
                message = await _go(page, shot)
                # Make the window as tall as the card, so that none of it is cut off.
                size = options["viewport"]
                height = await message.evaluate("(message) => message.offsetHeight")
                tall = {"height": max(height + AROUND, size["height"] if look == "phone" else 0)}
                await page.set_viewport_size(size | tall)
                await message.evaluate("(message) => message.scrollIntoView({ block: 'end' })")
                await _at_rest(page)
                file = target / f"card-{name}-{look}.png"
                await page.screenshot(path=file) if look == "phone" else await message.screenshot(path=file)
                await page.set_viewport_size(size)
                print(f"{look:6} {height:5} px  {name}")


async def photograph_panels(scene: Studio, browser: Browser, target: Path, names: Collection[str]) -> None:
    """Photograph what only Ada sees: panels, forms and her inbox."""
    for look, options in LOOKS.items():
        for name in names:
            card = await STATES["open" if "Remember…" in PANELS.get(name, ()) else "diff"](scene)
            async with _opened(scene, browser, options) as page:
                await _go(page, card)
                for label in PANELS.get(name, ()):
                    place = page.get_by_role("dialog") if label == "Submit" else page
                    await place.get_by_role("button", name=label).last.click()
                    await _at_rest(page)
                if name == "inbox":
                    await (await scene.sandbox.person("Ada")).run(card.channel_id, "signoff inbox")
                    await page.locator(".message.private").wait_for()
                await asyncio.sleep(1)
                await _at_rest(page)
                await page.screenshot(path=target / f"private-{name}-{look}.png")
            await scene.decide(card, "Reject")


async def portray(scene: Studio, browser: Browser, target: Path) -> None:
    """Make the picture at the top of the README: the card that asks, and the same thread after the accept."""
    card = await scene.ask('announce "The office is closed on Friday." to everyone', "Olga")
    asking = {look: await _thread(scene, browser, card, look) for look in HERO_COLOURS}
    await scene.decide(card, "Accept")
    await scene.changed(card, "APPROVED", "done")
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


async def run(program: str, target: Path, names: Collection[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with studio(Path(folder)) as scene, async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=program, args=FLAGS, headless=True)
            if "hero" in names:
                await portray(scene, browser, target)
            await photograph(scene, browser, target, {n: await make(scene) for n, make in STATES.items() if n in names})
            await photograph_panels(scene, browser, target, [name for name in (*PANELS, "inbox") if name in names])
            await browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=Path, default=ROOT / "docs" / "images")
    parser.add_argument("--all", action="store_true", help="every state and every private panel")
    parser.add_argument("only", nargs="*", help="states to photograph, or hero")
    options = parser.parse_args()
    target: Path = options.target
    program = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if program is None:
        raise SystemExit("No Chromium or Chrome is installed; on Debian: apt-get install chromium")
    target.mkdir(parents=True, exist_ok=True)
    every = {*STATES, *PANELS, "inbox", "hero"}
    names = every if options.all else set(options.only or (*SHOWN, "hero"))
    if unknown := names - every:
        parser.error(f"unknown: {', '.join(sorted(unknown))}. Known: {', '.join(sorted(every))}")
    asyncio.run(run(program, target, names))
    pictures = sorted(target.glob("*.png"))
    print(f"{len(pictures)} pictures in {target}, {sum(p.stat().st_size for p in pictures) // 1024} KB in all")


if __name__ == "__main__":
    main()
