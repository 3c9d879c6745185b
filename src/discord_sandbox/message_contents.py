"""A message as its sender wrote it: the JSON and the uploads, checked against Discord's limits.

This module checks only the form. `posting` decides whether the sender may post and who gets pinged.
"""

import mimetypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from discord_sandbox import apierrors, components
from discord_sandbox.apierrors import FormErrors
from discord_sandbox.mentions import Allowed
from discord_sandbox.model import Attachment, Json, Message, MessageFlag
from discord_sandbox.reading import fields as fields_of
from discord_sandbox.reading import items
from discord_sandbox.snowflake import Snowflakes

SETTABLE = int(
    MessageFlag.SUPPRESS_EMBEDS | MessageFlag.EPHEMERAL | MessageFlag.SUPPRESS_NOTIFICATIONS | MessageFlag.COMPONENTS_V2
)
MAX_FILES = 10
LEGACY = ("content", "embeds", "sticker_ids", "poll")


@dataclass(frozen=True)
class Upload:
    filename: str
    data: bytes
    content_type: str | None = None


@dataclass(frozen=True)
class MessageContents:
    """The contents of a new or edited message. On an edit, `touched` names the fields that the editor sent."""

    content: str = ""
    embeds: list[Json] = field(default_factory=list[Json])
    components: list[Json] = field(default_factory=list[Json])
    flags: int = 0
    attachments: list[Attachment] = field(default_factory=list[Attachment])
    allowed: Allowed = field(default_factory=Allowed)
    nonce: str | None = None
    enforce_nonce: bool = False
    reference: Json | None = None
    tts: bool = False
    touched: frozenset[str] = frozenset()

    @property
    def v2(self) -> bool:
        return bool(self.flags & MessageFlag.COMPONENTS_V2)

    @property
    def all_text(self) -> str:
        return "\n".join([self.content, *components.texts(self.components)]) if self.v2 else self.content


def for_create(body: Json, uploads: Mapping[int, Upload], ids: Snowflakes) -> MessageContents:
    errors = FormErrors()
    flags = int(body.get("flags") or 0) & SETTABLE
    attachments = _new_attachments(body, uploads, ids, errors)
    contents = MessageContents(
        content=_content(body.get("content"), errors),
        embeds=_embeds(body.get("embeds"), errors),
        flags=flags,
        attachments=attachments,
        allowed=Allowed.from_json(body.get("allowed_mentions")),
        nonce=_nonce(body.get("nonce"), errors),
        enforce_nonce=bool(body.get("enforce_nonce")),
        reference=body.get("message_reference"),
        tts=bool(body.get("tts")),
    )
    return _finished(contents, items(body.get("components")), body, errors)


def for_edit(body: Json, uploads: Mapping[int, Upload], ids: Snowflakes, old: Message) -> MessageContents:
    """Return the message as it would be after the edit; fields that were not sent stay as they are."""
    errors = FormErrors()
    sticky = old.flags & MessageFlag.COMPONENTS_V2  # a V2 message stays V2
    keep = old.flags & ~SETTABLE
    asked = old.flags if body.get("flags") is None else int(body["flags"])
    flags = (asked & SETTABLE) | keep | sticky
    ephemeral = old.flags & MessageFlag.EPHEMERAL
    flags = flags & ~MessageFlag.EPHEMERAL | ephemeral
    contents = MessageContents(
        content=_content(body["content"], errors) if "content" in body else old.content,
        embeds=_embeds(body["embeds"], errors) if "embeds" in body else old.embeds,
        flags=flags,
        attachments=_kept_attachments(body, old) + _new_attachments(body, uploads, ids, errors),
        allowed=Allowed.from_json(body.get("allowed_mentions")),
        touched=frozenset(body),
    )
    given = items(body.get("components")) if "components" in body else old.components
    return _finished(contents, given, body, errors)


def _finished(contents: MessageContents, given: list[Json], body: Json, errors: FormErrors) -> MessageContents:
    if contents.v2:
        present = {"content": contents.content, "embeds": contents.embeds}
        present |= {key: body.get(key) for key in ("sticker_ids", "poll")}
        for name in LEGACY:
            if present[name]:
                message = f"The '{name}' field cannot be used when using MessageFlags.IS_COMPONENTS_V2"
                errors.add((name,), "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2", message)
    errors.check()
    names = {attachment.filename for attachment in contents.attachments}
    checked = components.check(given, v2=contents.v2, filenames=names)
    done = replace(contents, components=checked)
    says_something = checked or (
        not contents.v2 and (contents.content.strip() or contents.embeds or contents.attachments)
    )
    if not says_something and not body.get("sticker_ids") and not body.get("poll"):
        raise apierrors.empty_message()
    return done


def _content(value: Any, errors: FormErrors) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else str(value)
    errors.length(("content",), text, 0, 2000)
    return text.strip()


def _nonce(value: Any, errors: FormErrors) -> str | None:
    if value is None:
        return None
    if len(str(value)) > 25:
        errors.add(("nonce",), "NONCE_TYPE_TOO_LONG", "Must be 25 or fewer in length.")
    return str(value)


def _embeds(value: Any, errors: FormErrors) -> list[Json]:
    embeds = items(value)
    if len(embeds) > 10:
        errors.add(("embeds",), "BASE_TYPE_MAX_LENGTH", "Must be 10 or fewer in length.")
    total = 0
    for index, embed in enumerate(embeds):
        path = ("embeds", index)
        for key, most in (("title", 256), ("description", 4096)):
            if embed.get(key) is not None:
                errors.length((*path, key), embed[key], 0, most)
        fields = items(embed.get("fields"))
        if len(fields) > 25:
            errors.add((*path, "fields"), "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
        for number, entry in enumerate(fields):
            errors.length((*path, "fields", number, "name"), entry.get("name"), 1, 256)
            errors.length((*path, "fields", number, "value"), entry.get("value"), 1, 1024)
        total += _embed_size(embed, fields)
    if total > 6000:
        errors.add(("embeds",), "MAX_EMBED_SIZE_EXCEEDED", "Embed size exceeds maximum size of 6000")
    return [{"type": "rich"} | {key: v for key, v in embed.items() if v is not None} for embed in embeds]


def _embed_size(embed: Json, fields: Sequence[Json]) -> int:
    texts = [embed.get("title"), embed.get("description")]
    texts += [fields_of(embed.get("footer")).get("text"), fields_of(embed.get("author")).get("name")]
    texts += [part for entry in fields for part in (entry.get("name"), entry.get("value"))]
    return sum(len(str(text)) for text in texts if text)


def _new_attachments(
    body: Json, uploads: Mapping[int, Upload], ids: Snowflakes, errors: FormErrors
) -> list[Attachment]:
    described = {str(entry.get("id")): entry for entry in items(body.get("attachments"))}
    made: list[Attachment] = []
    for number, upload in uploads.items():
        entry = described.get(str(number), {})
        name = str(entry.get("filename") or upload.filename)
        kind = mimetypes.guess_type(name)[0] or upload.content_type
        made.append(Attachment(ids.next(), name, upload.data, kind, entry.get("description")))
    if len(made) > MAX_FILES or len(described) > MAX_FILES:
        errors.add(("attachments",), "BASE_TYPE_MAX_LENGTH", f"Must be {MAX_FILES} or fewer in length.")
    return made


def _kept_attachments(body: Json, old: Message) -> list[Attachment]:
    if body.get("attachments") is None:
        return old.attachments
    wanted = {str(entry.get("id")) for entry in items(body.get("attachments"))}
    return [attachment for attachment in old.attachments if str(attachment.id) in wanted]
