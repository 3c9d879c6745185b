"""An act in words: for the card, for the result, and for Discord's audit log.

People and channels are named with their ids, because names repeat and change. The card quotes this text, so it may
contain anything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from signoff.servers.model import Act, Channel, ChannelKind, Kind, Member, Message, Ping, Role, Situation
from signoff.servers.permissions import listed

MOST_PINGED = 20
"""The most people that one posted message notifies."""
FIRST_WORDS = 80
"""Characters of a message that the card shows."""
LONGEST_REASON = 512
"""Discord's limit for a reason in its audit log."""


def named(thing: Member | Role | Channel) -> str:
    """Return a person, role or channel with its id."""
    if isinstance(thing, Channel):
        mark = "" if thing.kind is ChannelKind.CATEGORY else "#"
        return f"{mark}{thing.name} ({thing.id})"
    return f"{thing.name} ({thing.id})"


def describe(act: Act, now: Situation) -> str:
    """Return what the act would do, for the card. The act has not been refused."""
    place = named(now.channel) if now.channel else ""
    who = named(now.member) if now.member else act.member
    role = named(now.role) if now.role else act.role
    match act.kind:
        case Kind.POST:
            return f"Posts a message in {place}. {_pinged(act, now)}"
        case Kind.PIN | Kind.UNPIN:
            verb = "Pins" if act.kind is Kind.PIN else "Unpins"
            return f"{verb} a message in {place}:\n{_listed(now.messages)}"
        case Kind.THREAD:
            start = f", from this message:\n{_listed(now.messages)}" if act.messages else "."
            return f"Creates a public thread in {place}{start}"
        case Kind.CHANNEL:
            inside = f"in the category {place}" if place else "outside of any category"
            return f"Creates a text channel {inside}."
        case Kind.SLOW_MODE:
            before = now.channel.slow_mode if now.channel else 0
            return f"Changes the slow mode of {place} from {_seconds(before)} to {_seconds(act.number)}."
        case Kind.TIME_OUT if act.number == 0:
            return f"Ends the timeout of {who}, which would last until {now.member and now.member.silenced_until}."
        case Kind.TIME_OUT:
            return f"Times out {who} for {duration(act.number)}. {_standing(now.member)}"
        case Kind.KICK:
            return f"Kicks {who} from this server. {_standing(now.member)}"
        case Kind.BAN:
            also = f" Deletes their messages of the last {_days(act.number)}." if act.number else ""
            return f"Bans {who} from this server. {_standing(now.member)}{also}"
        case Kind.UNBAN:
            return f"Lifts the ban of {now.banned} ({act.member})."
        case Kind.DELETE:
            return f"Deletes {_count(len(now.messages))} in {place}:\n{_listed(now.messages)}{_gone(act, now)}"
        case Kind.ASSIGN:
            return f"Gives {who} the role {role}. {_grants(now.role)}"
        case Kind.REMOVE:
            return f"Takes the role {role} from {who}."


def operands(act: Act, now: Situation) -> dict[str, str]:
    """Return each thing that the act depends on -> a digest of its state. If one changes, people are asked again."""
    things: dict[str, object] = {}
    if now.channel:
        things[f"channel {now.channel.id}"] = (now.channel.name, now.channel.kind, now.channel.slow_mode)
    if now.member:
        top = now.member.top
        things[f"member {now.member.id}"] = (now.member.name, top and top.id, now.member.silenced_until)
    if now.role:
        things[f"role {now.role.id}"] = (now.role.name, sorted(now.role.rights))
    for one in now.messages:
        things[f"message {one.id}"] = (one.author, one.text, one.extras)
    if act.kind is Kind.UNBAN:
        things[f"user {act.member}"] = now.banned
    return {name: hashlib.sha256(json.dumps(state).encode()).hexdigest() for name, state in things.items()}


def done(act: Act, now: Situation, made: str) -> str:
    """Return what the act did, for the model. `made`: the id of a new message, thread or channel, or a count."""
    place = named(now.channel) if now.channel else ""
    who = named(now.member) if now.member else act.member
    role = named(now.role) if now.role else act.role
    match act.kind:
        case Kind.POST:
            return f"Posted the message {made} in {place}."
        case Kind.PIN | Kind.UNPIN:
            return f"{'Pinned' if act.kind is Kind.PIN else 'Unpinned'} the message {act.messages[0]} in {place}."
        case Kind.THREAD:
            return f"Created the thread {act.text} ({made}) in {place}."
        case Kind.CHANNEL:
            return f"Created the channel #{act.text} ({made})."
        case Kind.SLOW_MODE:
            return f"The slow mode of {place} is now {_seconds(act.number)}."
        case Kind.TIME_OUT:
            return f"Timed out {who} for {duration(act.number)}." if act.number else f"Ended the timeout of {who}."
        case Kind.KICK:
            return f"Kicked {who}."
        case Kind.BAN:
            return f"Banned {who}."
        case Kind.UNBAN:
            return f"Lifted the ban of {now.banned} ({act.member})."
        case Kind.DELETE:
            return f"Deleted {_count(len(now.messages))} in {place}.{_gone(act, now)}"
        case Kind.ASSIGN:
            return f"Gave {who} the role {role}."
        case Kind.REMOVE:
            return f"Took the role {role} from {who}."


def audit_reason(asker: Member, approved_by: Sequence[str], why: str) -> str:
    """Return the reason for Discord's audit log: who asked, who approved, and why."""
    approval = f"approved by {', '.join(approved_by)}" if approved_by else "allowed without a card"
    text = f"asked by {named(asker)}, {approval}" + (f": {why}" if why else "")
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= LONGEST_REASON else f"{line[: LONGEST_REASON - 1]}…"


def first_words(message: Message) -> str:
    """Return the beginning of a message on one line."""
    line = " ".join(message.text.split())
    shown = f"{line[:FIRST_WORDS]}…" if len(line) > FIRST_WORDS else line
    missing = "(Discord withholds the text)" if message.is_withheld else "" if message.extras else "(no text)"
    return ", ".join(part for part in (shown or missing, message.extras) if part)


def duration(minutes: int) -> str:
    for size, unit in ((1440, "day"), (60, "hour")):
        if minutes % size == 0:
            return _counted(minutes // size, unit)
    return _counted(minutes, "minute")


def _listed(messages: Sequence[Message]) -> str:
    return "\n".join(f"- {one.author_name} ({one.author}): {first_words(one)} [{one.id}]" for one in messages)


def _gone(act: Act, now: Situation) -> str:
    missing = len(act.messages) - len(now.messages)
    verb = "was" if missing == 1 else "were"
    return f"\n{_counted(missing, 'further message')} of the list {verb} deleted already." if missing else ""


def _standing(member: Member | None) -> str:
    if member is None:
        return ""
    top = f"Their top role is {named(member.top)}." if member.top else "They have no role."
    return f"{top} They are a bot." if member.is_bot else top


def _grants(role: Role | None) -> str:
    rights = listed(sorted(role.rights)) if role else ""
    return f"The role has these permissions: {rights}." if rights else "The role has no permissions of its own."


def _pinged(act: Act, now: Situation) -> str:
    people = ", ".join(f"{name} ({number})" for number, name in now.names.items())
    match act.ping:
        case Ping.NOBODY:
            return "It notifies nobody."
        case Ping.PEOPLE:
            return f"It notifies {people}." if people else "It notifies nobody, because it mentions nobody."
        case Ping.EVERYONE:
            return f"It notifies EVERYONE in the channel{f', also {people}' if people else ''}."


def _seconds(seconds: int) -> str:
    return _counted(seconds, "second") if seconds else "off"


def _days(days: int) -> str:
    return "day" if days == 1 else f"{days} days"


def _count(messages: int) -> str:
    return _counted(messages, "message")


def _counted(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
