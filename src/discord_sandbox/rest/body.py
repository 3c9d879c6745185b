"""Reads the body of a request: JSON, or a multipart form of JSON and files.

This module knows the encodings and the size limit, not the meaning of the JSON.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from aiohttp import BodyPartReader, web

from discord_sandbox import apierrors
from discord_sandbox.message_contents import Upload
from discord_sandbox.model import Json
from discord_sandbox.reading import fields

_FILE = re.compile(r"^files?\[(\d+)\]$")


@dataclass(frozen=True)
class Body:
    value: Any = None
    uploads: dict[int, Upload] = field(default_factory=dict[int, Upload])

    @property
    def json(self) -> Json:
        return fields(self.value)


async def read(request: web.Request, file_limit: int) -> Body:
    if request.content_type == "multipart/form-data":
        return await _multipart(request, file_limit)
    raw = await request.read()
    if not raw:
        return Body()
    return Body(_parsed(raw))


def _parsed(raw: bytes | str) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        raise apierrors.bad_json() from None


async def _multipart(request: web.Request, file_limit: int) -> Body:
    value: Any = {}
    uploads: dict[int, Upload] = {}
    async for part in await request.multipart():
        if not isinstance(part, BodyPartReader):
            continue
        name = part.name or ""
        if name == "payload_json":
            value = _parsed(await part.read(decode=True))
        elif match := _FILE.match(name):
            data = await _limited(part, file_limit)
            kind = part.headers.get("Content-Type")
            uploads[int(match.group(1))] = Upload(part.filename or "unknown", data, kind)
    return Body(value, uploads)


async def _limited(part: BodyPartReader, limit: int) -> bytes:
    data = bytearray()
    while chunk := await part.read_chunk(1 << 16):
        data += chunk
        if len(data) > limit:
            raise apierrors.too_large()
    return bytes(data)
