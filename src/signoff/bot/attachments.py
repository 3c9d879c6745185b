"""Files that came with a mention: which of them are read, how they are downloaded, and why others are not.

A file is downloaded only from the address that Discord gave, at Discord's own hosts, without redirects, and never more
than its limit. The contents decide what a file is; its name and its declared type only decide whether it is tried.
"""

from __future__ import annotations

import asyncio
import logging
import mimetypes
from collections.abc import Sequence
from dataclasses import replace

import aiohttp
import discord
import yarl
from discord.http import Route

from signoff.bot.connection import DISCORD
from signoff.dataclass import dataclass
from signoff.turns.model import TurnFile

log = logging.getLogger(__name__)

CDN = frozenset({"cdn.discordapp.com", "media.discordapp.net"})
SECONDS = 20.0
"""How long a download may take."""
PIECE = 1 << 16
TEXT = "text/plain"

OFF = "the operator turned attachments off"
INTERRUPTED = "its download was interrupted"
FAILED = "the download failed"
ELSEWHERE = "it is not stored at Discord"
UNREADABLE = "I can read only text files and images (PNG, JPEG, GIF, WebP)"

_NAMES = {"text": "text files", "image": "images"}
_IMAGES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
_CONTROLS = frozenset(map(chr, {*range(32), 127})) - set("\t\n\r\f")


@dataclass(frozen=True, slots=True)
class FileLimits:
    """The operator's limits: `[limits]` in signoff.toml."""

    kinds: frozenset[str] = frozenset({"text", "image"})
    per_message: int = 4
    text_bytes: int = 100_000
    image_bytes: int = 4_000_000
    quoted_characters: int = 2000

    def of(self, kind: str) -> int:
        return self.image_bytes if kind == "image" else self.text_bytes


def announced(attachments: Sequence[discord.Attachment], limits: FileLimits) -> tuple[TurnFile, ...]:
    """Return the files as they are stored before anything is downloaded. Each has the reason why it is not read yet."""
    files: list[TurnFile] = []
    tried = 0
    for attachment in attachments:
        problem = _objection(attachment, limits)
        if not problem:
            tried += 1
            over = tried > limits.per_message
            problem = f"I read at most {limits.per_message} files of a message" if over else INTERRUPTED
        files.append(TurnFile(attachment.filename, attachment.size, problem=problem))
    return tuple(files)


async def downloaded(
    attachments: Sequence[discord.Attachment], files: Sequence[TurnFile], limits: FileLimits
) -> tuple[TurnFile, ...]:
    """Return the same files with their contents, or with the reason why there are none. Raises nothing."""

    async def one(attachment: discord.Attachment, file: TurnFile) -> TurnFile:
        return await _read(attachment, file, limits) if file.problem == INTERRUPTED else file

    return tuple(await asyncio.gather(*map(one, attachments, files)))


def unread(files: Sequence[TurnFile]) -> str:
    """Return one line about the files that were not read, for the person. Empty if all were read."""
    problems = [f"{file.name} ({file.problem})" for file in files if file.problem]
    return f"I did not read {', '.join(problems)}." if problems else ""


def _kind(attachment: discord.Attachment) -> str:
    """Return the kind that a file claims to be: `text`, `image`, or empty if it can be neither."""
    claimed = attachment.content_type or mimetypes.guess_type(attachment.filename)[0] or ""
    family = claimed.partition("/")[0]
    if family == "image" and "svg" not in claimed:
        return "image"
    return "" if family in ("video", "audio", "font") else "text"


def _objection(attachment: discord.Attachment, limits: FileLimits) -> str:
    """Say why a file is not downloaded; empty if it is."""
    kind = _kind(attachment)
    if not limits.kinds:
        return OFF
    if not kind:
        return UNREADABLE
    if kind not in limits.kinds:
        return f"the operator turned {_NAMES[kind]} off"
    if attachment.size > limits.of(kind):
        return _too_large(attachment.size, kind, limits)
    return "" if is_discords(attachment.url) else ELSEWHERE


def _too_large(size: int, kind: str, limits: FileLimits) -> str:
    return f"it has {size:,} bytes, and the limit for {_NAMES[kind]} is {limits.of(kind):,}"


def is_discords(url: str) -> bool:
    """Whether an address is at Discord's CDN, or at the server that is configured instead of Discord."""
    try:
        parsed = yarl.URL(url)
    except ValueError:
        return False
    if not parsed.absolute or not parsed.host:
        return False
    if Route.BASE != DISCORD and parsed.origin() == yarl.URL(Route.BASE).origin():
        return True
    return parsed.scheme == "https" and parsed.host in CDN and parsed.port == 443 and parsed.user is None


async def _read(attachment: discord.Attachment, file: TurnFile, limits: FileLimits) -> TurnFile:
    kind = _kind(attachment)
    try:
        data = await _download(attachment.url, limits.of(kind))
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        log.warning("attachment %s was not downloaded: %s", attachment.id, error)
        return replace(file, problem=FAILED)
    if data is None:
        return replace(file, problem=_too_large(limits.of(kind) + 1, kind, limits).replace("it has", "it has at least"))
    media_type = recognized(data)
    if media_type is None or (media_type == TEXT) != (kind == "text"):
        return replace(file, problem=UNREADABLE)
    return replace(file, size=len(data), media_type=media_type, data=data, problem="")


async def _download(url: str, most: int) -> bytes | None:
    """Return the contents; None if there are more than `most` bytes, of which no more are read."""
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    async with (
        aiohttp.ClientSession(timeout=timeout, headers={"Accept-Encoding": "identity"}) as session,
        session.get(yarl.URL(url, encoded=True), allow_redirects=False) as response,
    ):
        if response.status != 200:
            raise aiohttp.ClientError(f"status {response.status}")
        data = bytearray()
        async for piece in response.content.iter_chunked(PIECE):
            data += piece
            if len(data) > most:
                return None
        return bytes(data)


def recognized(data: bytes) -> str | None:
    """Return the media type of contents that can be read: an image, or `text/plain`. None for anything else."""
    for beginning, media_type in _IMAGES:
        if data.startswith(beginning):
            return media_type
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if _CONTROLS & set(text) else TEXT
