"""Pages of the public web are read; this machine, private networks and metadata services are not, however named."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
import pytest_asyncio
from aiohttp import web
from pydantic_ai.exceptions import ToolFailed

from signoff.agent.tools.addresses import is_public
from signoff.agent.tools.html_text import text_of
from signoff.agent.tools.web import LARGEST, NOTE, SHOWN, WebTools

PUBLIC = "127.0.0.2"
"""Stands for a public address in these tests: the server listens there and on 127.0.0.1, which stays forbidden."""
PAGE = (
    "<html><head><title>no</title></head><body><h1>Health</h1><p>All &amp; well <a href='https://x.example/'>x</a></p>"
)


@dataclass
class Net:
    """A server on loopback, and names for its addresses. `heard`: (address, path) of each request."""

    port: int = 0
    names: dict[str, list[list[str]]] = field(default_factory=dict[str, list[list[str]]])
    """Host -> its addresses, for each lookup in turn; the last one repeats."""
    asked: list[str] = field(default_factory=list[str])
    heard: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    async def look_up(self, host: str) -> list[str]:
        self.asked.append(host)
        answers = self.names[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    @property
    def tools(self) -> WebTools:
        return WebTools(self.look_up, lambda address: address == PUBLIC or is_public(address))

    async def fetch(self, path: str, host: str = "site.example") -> str:
        return await self.tools.web_fetch(f"http://{host}:{self.port}{path}")

    async def serve(self, request: web.Request) -> web.StreamResponse:
        transport = request.transport
        assert transport
        self.heard.append((transport.get_extra_info("sockname")[0], request.path))
        match request.path:
            case "/to":
                raise web.HTTPFound(request.query_string)
            case "/page":
                return web.Response(text=PAGE + "<script>alert(1)</script>", content_type="text/html")
            case "/long":
                return web.Response(text="x" * (SHOWN + 10))
            case "/large":
                return web.Response(body=b"x" * (LARGEST + 1), content_type="text/plain")
            case "/image":
                return web.Response(body=b"GIF", content_type="image/gif")
            case "/zipped":
                return web.Response(body=b"x", content_type="text/plain", headers={"Content-Encoding": "gzip"})
            case "/odd":
                return web.Response(body=b"caf\xe9", headers={"Content-Type": "text/plain; charset=latin-1"})
            case "/slow-encoding":
                return web.Response(body=b"-" + b"a" * 4000, headers={"Content-Type": "text/plain; charset=punycode"})
            case "/echo":
                return web.json_response(dict(request.headers))
            case _:
                return web.Response(status=404, text="nothing here")


def bound_to_one_port(*addresses: str) -> list[socket.socket]:
    """Return a socket for each address. A port that is free on one address may be in use on another: then try again."""
    for _ in range(100):
        bound: list[socket.socket] = []
        try:
            for address in addresses:
                bound.append(socket.socket())
                bound[-1].bind((address, bound[0].getsockname()[1]))
        except OSError as error:
            for each in bound:
                each.close()
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            return bound
    raise AssertionError("no port is free on all of these addresses")


@pytest_asyncio.fixture
async def net() -> AsyncIterator[Net]:
    net = Net(names={"site.example": [[PUBLIC]]})
    app = web.Application()
    app.router.add_get("/{tail:.*}", net.serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    for listening in bound_to_one_port(PUBLIC, "127.0.0.1"):
        net.port = listening.getsockname()[1]
        await web.SockSite(runner, listening).start()
    yield net
    await runner.cleanup()


@pytest.mark.slow
async def test_a_page_is_read_as_text(net: Net) -> None:
    said = await net.fetch("/page")
    head, _, text = said.partition("\n\n")
    assert head == f"http://site.example:{net.port}/page: status 200, text/html, {len(PAGE) + 25} bytes. {NOTE}"
    assert text == "Health\n\nAll & well <https://x.example/> x"
    assert (await net.fetch("/odd")).endswith("\n\ncafé")
    long = await net.fetch("/long")
    assert f"Only the first {SHOWN} characters are shown." in long
    with pytest.raises(ToolFailed, match=r"status 404.*\n\nnothing here"):
        await net.fetch("/gone")


async def test_nothing_of_the_bot_is_sent_along(net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    said = await net.fetch("/echo")
    assert "Authorization" not in said
    assert "Cookie" not in said
    with pytest.raises(ToolFailed, match="a user name or a password"):
        await net.tools.web_fetch("http://me:secret@site.example/")


async def test_an_encoding_that_is_none_of_the_web_is_not_used(net: Net) -> None:
    assert (await net.fetch("/slow-encoding")).endswith("\n\n-" + "a" * 4000)


def test_the_head_of_a_page_ends_where_its_body_begins() -> None:
    assert text_of("<head><title>no</title><script>no</script><body><p>yes") == "yes"
    assert text_of("<head><title>no</title></head><p>yes") == "yes"


@pytest.mark.parametrize(
    ("path", "words"),
    [("/large", "larger than 1 MB"), ("/image", "not text but image/gif"), ("/zipped", "compressed")],
)
async def test_what_is_no_text_or_too_much_is_refused(net: Net, path: str, words: str) -> None:
    with pytest.raises(ToolFailed, match=words):
        await net.fetch(path)


async def test_a_page_that_never_comes_is_given_up(net: Net) -> None:
    async def never(host: str) -> list[str]:
        await asyncio.sleep(60)
        return []

    with pytest.raises(ToolFailed, match=r"took longer than 0\.05 s"):
        await WebTools(never, seconds=0.05).web_fetch("http://site.example/")


@pytest.mark.parametrize(
    "address",
    [
        *(
            "127.0.0.1",
            "127.1.2.3",
            "0.0.0.0",
            "10.0.0.1",
            "172.16.5.5",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
        ),
        *(
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "198.18.0.1",
            "203.0.113.5",
            "224.0.0.1",
            "255.255.255.255",
        ),
        *(
            "240.0.0.1",
            "::",
            "::1",
            "fe80::1",
            "fe80::1%eth0",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "::ffff:127.0.0.1",
        ),
        *("::ffff:8.8.8.8", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::808:808", "2002:7f00:1::", "2001:0:7f00:1::"),
        *("2001:db8::1", "2606:4700::5efe:7f00:1", "100::1", "nonsense", "", "0177.0.0.1", "2130706433", "1.2.3"),
    ],
)
async def test_an_address_outside_the_public_internet_is_refused(net: Net, address: str) -> None:
    assert not is_public(address)
    net.names["inside.example"] = [[address]]
    with pytest.raises(ToolFailed, match=r"Refused: inside\.example does not lead to the public internet"):
        await net.fetch("/page", "inside.example")
    net.names["mixed.example"] = [[PUBLIC, address]]
    with pytest.raises(ToolFailed, match="Refused"):
        await net.fetch("/page", "mixed.example")
    assert net.heard == []


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "172.32.0.1", "2606:4700:4700::1111", "2a00:1450::1"])
def test_an_address_of_the_public_internet_is_fine(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "2130706433",
        "0177.0.0.1",
        "127.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[fe80::1]",
        "0",
        "169.254.169.254",
    ],
)
async def test_a_host_that_is_a_number_is_refused_in_every_spelling(net: Net, host: str) -> None:
    with pytest.raises(ToolFailed, match="Refused"):
        await net.fetch("/page", host)
    assert (net.heard, net.asked) == ([], [])


@pytest.mark.parametrize(
    "host", ["0x7f.1", "0x7f000001", "localhost", "LOCALHOST", "localhost.", "127.0.0.1.nip.example"]
)
async def test_a_host_that_the_system_reads_as_this_machine_is_refused(net: Net, host: str) -> None:
    net.names = {host.lower(): [["127.0.0.1"]], host.lower().rstrip("."): [["127.0.0.1"]]}
    with pytest.raises(ToolFailed, match="Refused"):
        await net.fetch("/page", host)
    assert net.heard == []


@pytest.mark.parametrize(
    "target", ["http://inside.example:{port}/page", "http://127.0.0.1:{port}/page", "file:///etc/passwd"]
)
async def test_a_redirect_is_checked_like_the_first_address(net: Net, target: str) -> None:
    net.names["inside.example"] = [["127.0.0.1"]]
    with pytest.raises(ToolFailed, match="Refused"):
        await net.fetch(f"/to?{target.format(port=net.port)}")
    assert net.heard == [(PUBLIC, "/to")]


async def test_redirects_within_the_public_internet_are_followed_but_not_for_ever(net: Net) -> None:
    assert "status 200" in await net.fetch("/to?/long")
    with pytest.raises(ToolFailed, match="more than 5 other pages"):
        await net.fetch("/to?" + "/to?" * 8)


async def test_the_connection_goes_to_the_address_that_was_checked(net: Net) -> None:
    """A name that leads to another address at its second lookup: there is no second lookup."""
    net.names["rebinding.example"] = [[PUBLIC], ["127.0.0.1"]]
    assert "status 200" in await net.fetch("/long", "rebinding.example")
    assert (net.heard, net.asked) == ([(PUBLIC, "/long")], ["rebinding.example"])
    with pytest.raises(ToolFailed, match="Refused"):
        await net.fetch("/long", "rebinding.example")
    assert len(net.heard) == 1


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://x.example/",
        "gopher://x/",
        "x.example",
        "",
        "http://",
        "http:///x",
        "http://[::",
        "http://" + "x" * 3000,
    ],
)
async def test_other_kinds_of_addresses_are_refused(url: str) -> None:
    with pytest.raises(ToolFailed):
        await WebTools().web_fetch(url)
