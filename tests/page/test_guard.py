"""Access to the page: the token, the cookie, the Host and the Origin, tested by hand and from a hostile page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from playwright.async_api import Browser

from discord_sandbox import Plan, SandboxClient, SandboxServer
from discord_sandbox.web import page_token
from discord_sandbox.web.page import STATIC
from tests.rigs.page_browser import opened

pytestmark = pytest.mark.asyncio(loop_scope="session")

ELSEWHERE = ["http://evil.example", "http://127.0.0.1:1", "http://localhost:9000", "null", ""]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server() -> AsyncIterator[SandboxServer]:
    async with SandboxServer() as started:
        yield started


@pytest_asyncio.fixture(loop_scope="session")
async def stranger(server: SandboxServer) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(server.url) as session:
        yield session


@pytest_asyncio.fixture(loop_scope="session")
async def browser(server: SandboxServer) -> AsyncIterator[aiohttp.ClientSession]:
    """A client that opened the printed address and sends its origin, as a browser does."""
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(server.url, cookie_jar=jar, headers={"Origin": server.url}) as session:
        async with session.get(urlsplit(server.page_url)._replace(scheme="", netloc="").geturl()) as answer:
            assert answer.status == 200
        yield session


async def status(session: aiohttp.ClientSession, method: str, path: str, **options: object) -> int:
    async with session.request(method, path, allow_redirects=False, **options) as answer:  # type: ignore[arg-type]
        await answer.read()
        return answer.status


async def test_the_token_becomes_a_cookie_and_leaves_the_address(
    server: SandboxServer, stranger: aiohttp.ClientSession
) -> None:
    async with stranger.get(f"/?token={page_token(server.key)}", allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (303, "/")
        cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert page_token(server.key) not in cookie
    assert server.key not in cookie


@pytest.mark.parametrize("path", ["/", "/?token=guess", "/?token=", "/page/people/Ada/state", "/page/static/x/main.js"])
async def test_without_the_token_nothing_is_served(stranger: aiohttp.ClientSession, path: str) -> None:
    async with stranger.get(path) as answer:
        assert answer.status == 401
        assert "address that the sandbox printed" in await answer.text()


async def test_the_page_has_a_strict_policy(browser: aiohttp.ClientSession) -> None:
    async with browser.get("/") as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert answer.status == 200
    for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
        assert part in policy
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"


async def test_the_page_names_all_its_modules_and_nothing_from_elsewhere(browser: aiohttp.ClientSession) -> None:
    async with browser.get("/") as answer:
        text = await answer.text()
    for module in STATIC.glob("*.js"):
        assert f"/{module.name}" in text, f"index.html does not name {module.name}"
    assert "http://" not in text
    assert "https://" not in text
    assert "<script>" not in text
    assert "style=" not in text


@pytest.mark.parametrize("host", ["evil.example", "localhost", "127.0.0.1", "127.0.0.1:80", "[::1]:9000"])
@pytest.mark.parametrize("path", ["/", "/page/people/Ada/state", "/sandbox/world", "/api/v10/gateway"])
async def test_another_name_for_this_address_is_refused(
    browser: aiohttp.ClientSession, server: SandboxServer, host: str, path: str
) -> None:
    headers = {"Host": host, "Authorization": f"Sandbox {server.key}"}
    assert await status(browser, "GET", path, headers=headers) == 403


@pytest.mark.parametrize("origin", ELSEWHERE)
async def test_other_origins_are_refused_everywhere(
    browser: aiohttp.ClientSession, server: SandboxServer, origin: str
) -> None:
    headers = {"Origin": origin}
    body = {"channel": "general", "content": "hello"}
    assert await status(browser, "POST", "/page/people/Ada/messages", headers=headers, json=body) == 403
    assert await status(browser, "POST", "/page/restart", headers=headers, json={}) == 403
    assert await status(browser, "GET", "/page/people/Ada/state", headers=headers) == 403
    key = headers | {"Authorization": f"Sandbox {server.key}"}
    assert await status(browser, "POST", "/sandbox/people/Ada/messages", headers=key, json=body) == 403
    bot = headers | {"Authorization": f"Bot {Plan.token}"}
    assert await status(browser, "GET", "/api/v10/users/@me", headers=bot) == 403
    for path in ("/page/people/Ada/stream", "/"):
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await browser.ws_connect(path, origin=origin or "http://x")


async def test_what_changes_something_must_name_its_origin_and_be_json(browser: aiohttp.ClientSession) -> None:
    body = {"channel": "ops", "content": "hello"}
    assert await status(browser, "POST", "/page/people/Ada/messages", json=body) == 200
    assert await status(browser, "POST", "/page/people/Ada/messages", data="{}", headers={"Origin": ""}) == 403
    assert await status(browser, "POST", "/page/people/Ada/messages", data="{}") == 415
    cross = {"Sec-Fetch-Site": "same-site"}
    assert await status(browser, "GET", "/page/people/Ada/state", headers=cross) == 403


async def test_the_bots_side_is_not_for_browsers(stranger: aiohttp.ClientSession, server: SandboxServer) -> None:
    bot = {"Authorization": f"Bot {Plan.token}"}
    assert await status(stranger, "GET", "/api/v10/users/@me", headers=bot) == 200
    for site in ("cross-site", "same-site", "same-origin", "none"):
        headers = bot | {"Sec-Fetch-Site": site}
        assert await status(stranger, "GET", "/api/v10/users/@me", headers=headers) == 403


async def test_attachments_need_the_cookie_in_a_browser_and_never_run(
    server: SandboxServer, browser: aiohttp.ClientSession, stranger: aiohttp.ClientSession
) -> None:
    async with SandboxClient(server.control_url, server.key) as sandbox:
        ada = await sandbox.person("Ada")
        script = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
        said = await ada.say("general", "", files={"picture.svg": script})
    path = urlsplit(said.files[0]["url"]).path
    assert await status(stranger, "GET", path, headers={"Sec-Fetch-Site": "cross-site"}) == 403
    assert await status(stranger, "GET", path, headers={"Sec-Fetch-Site": "none"}) == 403
    async with browser.get(path, headers={"Sec-Fetch-Site": "same-origin"}) as answer:
        assert answer.status == 200
        assert "sandbox" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize("who", ["Signoff", "nobody", "1"])
async def test_nobody_acts_as_a_bot_or_a_stranger(browser: aiohttp.ClientSession, who: str) -> None:
    async with browser.post(f"/page/people/{who}/messages", json={"channel": "general", "content": "x"}) as answer:
        assert "refused" in await answer.json()


async def test_the_page_cannot_forge_a_press_or_see_what_is_not_its_persons(browser: aiohttp.ClientSession) -> None:
    body = {"channel": "general", "message": "1", "custom_id": "x", "forged": True}
    async with browser.post("/page/people/Otto/press", json=body) as answer:
        assert "refused" in await answer.json()
    async with browser.get("/page/people/Otto/messages?channel=general") as answer:
        assert "cannot see" in (await answer.json())["refused"]
    async with browser.get("/page/people/Otto/state") as answer:
        assert [guild["name"] for guild in (await answer.json())["guilds"]] == ["Other Place"]


ATTACK = """
<!doctype html><body><script>
const target = TARGET;
const socket = (path) => new Promise((done) => {
  const s = new WebSocket(target.replace('http', 'ws') + path);
  s.onopen = () => done('OPEN'); s.onerror = () => done('refused');
});
const read = (path, options) => fetch(target + path, { credentials: 'include', ...options })
  .then((answer) => answer.text()).catch(() => 'refused');
const load = (tag, path) => new Promise((done) => {
  const e = document.createElement(tag);
  e.onload = () => done('LOADED'); e.onerror = () => done('refused');
  e.src = target + path; document.body.append(e);
});
const body = JSON.stringify({ channel: 'general', content: 'driven by a hostile page' });
const path = '/page/people/Ada/messages';
window.results = Promise.all([
  read('/'), read('/page/people/Ada/state'), read('/sandbox/world'),
  read(path, { method: 'POST', body, headers: { 'Content-Type': 'application/json' } }),
  read(path, { method: 'POST', body }),
  fetch(target + path, { method: 'POST', body, mode: 'no-cors', credentials: 'include' })
    .then((a) => a.type, () => 'refused'),
  socket('/page/people/Ada/stream?after=0'), socket('/'),
  load('img', '/page/static/VERSION/icon.svg'), load('script', '/page/static/VERSION/main.js'),
]);
const form = document.createElement('form');
form.method = 'post'; form.enctype = 'text/plain'; form.action = target + path; form.target = 'frame';
const field = document.createElement('input');
field.name = body.slice(0, -1) + ',"x":"'; field.value = '"}'; form.append(field);
const frame = document.createElement('iframe'); frame.name = 'frame'; document.body.append(frame, form); form.submit();
</script></body>
"""


async def test_a_hostile_page_on_another_origin_drives_nothing(server: SandboxServer, chromium: Browser) -> None:
    """The hostile page is on another port of the same address, which is the same site for cookies: the hardest case."""

    async def serve(request: web.Request) -> web.Response:
        text = ATTACK.replace("TARGET", f'"{server.url}"').replace("VERSION", version)
        return web.Response(text=text, content_type="text/html")

    app = web.Application()
    app.router.add_get("/", serve)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        async with opened(chromium, server.page_url, forgive="") as page:
            link = await page.locator('link[rel="icon"]').get_attribute("href")
            version = str(link).split("/")[3]
            hostile = await page.context.new_page()
            await hostile.goto(f"http://127.0.0.1:{port}/")
            results = await hostile.evaluate("window.results")
            assert set(results) <= {"refused", "opaque"}, results
            await asyncio.sleep(0.3)
    finally:
        await runner.cleanup()
    async with SandboxClient(server.control_url, server.key) as sandbox:
        texts = [message.content for message in await (await sandbox.person("Ada")).messages("general")]
    assert "driven by a hostile page" not in texts
