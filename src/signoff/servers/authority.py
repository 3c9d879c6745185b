"""Whether an act may be done: the asker could do it themselves, and the bot can.

Pure. `refusal` is asked before the card is made, so that nobody decides in vain, and again when the act is done. The
asker comes first: somebody who may not do it learns nothing about the bot or the target.
"""

from __future__ import annotations

from signoff.servers.model import Act, Kind, Member, Ping, Situation
from signoff.servers.permissions import NEEDS, listed, needed_here
from signoff.servers.wording import MOST_PINGED, named


def refusal(act: Act, now: Situation) -> str | None:
    """Return why the act must not be done, as a sentence for the model and for people; None if it may be done."""
    if now.asker is None:
        return "The person who asked is not a member of this server any more."
    checks = (_place, _rights, _target, _role, _messages)
    return next((why for check in checks if (why := check(act, now, now.asker))), None)


def _place(act: Act, now: Situation, asker: Member) -> str | None:
    """Check the channel. One that the asker cannot see is not told apart from one that does not exist."""
    if not act.channel:
        return None
    if now.channel is None or "view_channel" not in asker.rights_here:
        return f"This server has no channel {act.channel} that {asker.name} can see."
    kind, name = now.channel.kind, named(now.channel)
    if act.kind is Kind.CHANNEL:
        return None if kind == "category" else f"{name} is a {kind}, not a category."
    if act.kind is Kind.THREAD and kind == "thread":
        return f"{name} is a thread itself. A thread can be created in a text channel only."
    if not kind.has_messages:
        return f"{name} is a {kind}. This works in text channels and threads only."
    return None


def _rights(act: Act, now: Situation, asker: Member) -> str | None:
    if lacking := _lacking(act, now, asker):
        return f"{named(asker)} may not do this: they lack {listed(lacking)}{_where(act, now)}."
    if lacking := _lacking(act, now, now.bot):
        return f"The bot cannot do this: it lacks {listed(lacking)}{_where(act, now)}. An admin has to grant it."
    return None


def _lacking(act: Act, now: Situation, who: Member) -> list[str]:
    if now.channel is not None:
        needed = needed_here(act, now.channel)
        if act.kind is Kind.DELETE and now.messages and all(one.author == who.id for one in now.messages):
            needed = tuple(name for name in needed if name != "manage_messages")  # everybody may delete their own
        return [name for name in needed if name not in who.rights_here]
    return [name for name in NEEDS[act.kind].server if name not in who.rights]


def _where(act: Act, now: Situation) -> str:
    return f" in {named(now.channel)}" if now.channel is not None else " in this server"


def _target(act: Act, now: Situation, asker: Member) -> str | None:
    if act.kind is Kind.UNBAN:
        return None if now.banned else f"The user {act.member} is not banned from this server."
    if not act.member:
        return None
    target = now.member
    if target is None:
        return f"The user {act.member} is not a member of this server."
    if not NEEDS[act.kind].outranks:
        return None
    if target.id == now.bot.id:
        return "The bot does not do this to itself."
    if target.is_owner:
        return f"{named(target)} owns this server: nobody can do this to them."
    if target.id == asker.id:
        return f"{named(asker)} cannot do this to themselves."
    if not asker.is_owner and asker.rank <= target.rank:
        return f"{named(asker)} may not do this: {_order(target)} is not below their own top role, {_top(asker)}."
    if now.bot.rank <= target.rank:
        return (
            f"The bot cannot do this: {_order(target)} is not below the bot's own top role, {_top(now.bot)}. "
            "An admin has to move the bot's role up."
        )
    if act.kind is Kind.TIME_OUT and target.is_admin:
        return f"{named(target)} is an administrator, and administrators cannot be timed out."
    if act.kind is Kind.TIME_OUT and act.number == 0 and not target.silenced_until:
        return f"{named(target)} is not timed out."
    return None


def _order(target: Member) -> str:
    return f"the top role of {named(target)}, {_top(target)},"


def _top(member: Member) -> str:
    return named(member.top) if member.top else "@everyone"


def _role(act: Act, now: Situation, asker: Member) -> str | None:
    if act.kind not in (Kind.ASSIGN, Kind.REMOVE):
        return None
    role, target = now.role, now.member
    if role is None:
        return f"This server has no role {act.role}."
    if role.is_everyone:
        return "Everybody has the role @everyone. It cannot be assigned or removed."
    if role.is_managed:
        return f"The role {named(role)} belongs to a bot or to a subscription: nobody can assign or remove it."
    if not asker.is_owner and asker.rank <= role.rank:
        return f"{named(asker)} may not do this: the role {named(role)} is not below their own top role, {_top(asker)}."
    if now.bot.rank <= role.rank:
        return (
            f"The bot cannot do this: the role {named(role)} is not below the bot's own top role, {_top(now.bot)}. "
            "An admin has to move the bot's role up."
        )
    has = target is not None and any(held.id == role.id for held in target.roles)
    if act.kind is Kind.REMOVE:
        return None if has else f"{target and named(target)} does not have the role {named(role)}."
    if has:
        return f"{target and named(target)} has the role {named(role)} already."
    if "administrator" in role.rights:
        return f"The role {named(role)} has Administrator. The bot never assigns such a role."
    if excess := sorted(role.rights - asker.rights):
        return f"The role {named(role)} has permissions that {named(asker)} lacks: {listed(excess)}."
    return None


def _messages(act: Act, now: Situation, asker: Member) -> str | None:
    if act.ping is not Ping.NOBODY and len(now.names) > MOST_PINGED:
        return f"The text mentions {len(now.names)} people, and one message notifies at most {MOST_PINGED}."
    if not act.messages:
        return None
    if not now.messages:
        return f"None of the messages {', '.join(act.messages)} is in {now.channel and named(now.channel)}."
    first = now.messages[0]
    if act.kind is Kind.PIN and first.is_pinned:
        return f"The message {first.id} is pinned already."
    if act.kind is Kind.UNPIN and not first.is_pinned:
        return f"The message {first.id} is not pinned."
    return None
