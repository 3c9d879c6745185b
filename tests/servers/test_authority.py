"""Who may do what: each rule of permissions and role order, as a table. No Discord is needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from signoff.servers.authority import refusal
from signoff.servers.model import Act, Channel, ChannelKind, Kind, Member, Message, Ping, Role, Situation
from signoff.servers.permissions import NAMES, NEEDS, needed_here, wanted_by

ALL = frozenset(NAMES)
PLAIN = ALL - {"administrator"}
LOW, MIDDLE, HIGH, TOP = (Role(str(n), f"role{n}", (n, -n)) for n in (1, 2, 3, 4))
ASKER = Member("10", "Ada", (HIGH,), PLAIN, PLAIN)
BOT = Member("11", "Bot", (TOP,), PLAIN, PLAIN, is_bot=True)
TARGET = Member("12", "Max", (LOW,))
TEXT = Channel("20", "general", ChannelKind.TEXT)
THREAD = Channel("21", "talk", ChannelKind.THREAD)
SAID = Message("30", "12", "Max", "now", "spam")
PINNED = replace(SAID, is_pinned=True)

ACTS = {
    Kind.POST: Act(Kind.POST, channel="20", text="hi"),
    Kind.PIN: Act(Kind.PIN, channel="20", messages=("30",)),
    Kind.UNPIN: Act(Kind.UNPIN, channel="20", messages=("30",)),
    Kind.THREAD: Act(Kind.THREAD, channel="20", text="t"),
    Kind.CHANNEL: Act(Kind.CHANNEL, text="new"),
    Kind.SLOW_MODE: Act(Kind.SLOW_MODE, channel="20", number=5),
    Kind.TIME_OUT: Act(Kind.TIME_OUT, member="12", number=5),
    Kind.KICK: Act(Kind.KICK, member="12"),
    Kind.BAN: Act(Kind.BAN, member="12"),
    Kind.UNBAN: Act(Kind.UNBAN, member="12"),
    Kind.DELETE: Act(Kind.DELETE, channel="20", messages=("30",)),
    Kind.ASSIGN: Act(Kind.ASSIGN, member="12", role="2"),
    Kind.REMOVE: Act(Kind.REMOVE, member="12", role="1"),
}


def situation(kind: Kind, asker: Member | None = ASKER, bot: Member = BOT, **changes: Any) -> Situation:
    """Return a situation in which the act is allowed, with the changes."""
    act = ACTS[kind]
    now = Situation(
        bot,
        asker,
        TARGET if act.member and kind is not Kind.UNBAN else None,
        TEXT if act.channel else None,
        {"1": LOW, "2": MIDDLE}.get(act.role),
        (PINNED if kind is Kind.UNPIN else SAID,) if act.messages else (),
        "Max" if kind is Kind.UNBAN else "",
    )
    return replace(now, **changes)


def without(member: Member, *rights: str) -> Member:
    lost = frozenset(rights)
    return replace(member, rights=member.rights - lost, rights_here=member.rights_here - lost)


def test_every_act_is_in_the_table() -> None:
    assert set(ACTS) == set(Kind) == set(NEEDS)


@pytest.mark.parametrize("kind", Kind)
def test_it_is_allowed_if_both_have_every_permission(kind: Kind) -> None:
    assert refusal(ACTS[kind], situation(kind)) is None


NEEDED = [(kind, name) for kind, need in NEEDS.items() for name in (*need.here, *need.server) if name != "view_channel"]


@pytest.mark.parametrize(("kind", "permission"), NEEDED)
def test_the_asker_needs_each_permission(kind: Kind, permission: str) -> None:
    why = refusal(ACTS[kind], situation(kind, asker=without(ASKER, permission)))
    assert why is not None
    assert why.startswith("Ada (10) may not do this: they lack ")
    assert NAMES[permission] in why


@pytest.mark.parametrize(("kind", "permission"), NEEDED)
def test_the_bot_needs_each_permission(kind: Kind, permission: str) -> None:
    why = refusal(ACTS[kind], situation(kind, bot=without(BOT, permission)))
    assert why is not None
    assert why.startswith("The bot cannot do this: it lacks ")
    assert NAMES[permission] in why


@pytest.mark.parametrize("kind", [kind for kind in Kind if ACTS[kind].channel])
def test_rights_in_the_server_do_not_count_in_the_channel(kind: Kind) -> None:
    """An overwrite took the right away in this channel; the server's roles still have it."""
    asker = replace(ASKER, rights_here=frozenset({"view_channel"}))
    assert "may not do this" in (refusal(ACTS[kind], situation(kind, asker=asker)) or "")


@pytest.mark.parametrize("kind", [kind for kind in Kind if ACTS[kind].channel])
def test_a_hidden_channel_looks_like_one_that_does_not_exist(kind: Kind) -> None:
    hidden = refusal(ACTS[kind], situation(kind, asker=replace(ASKER, rights_here=frozenset())))
    deleted = refusal(ACTS[kind], situation(kind, channel=None))
    assert hidden == deleted == "This server has no channel 20 that Ada can see."


@pytest.mark.parametrize("kind", Kind)
def test_an_asker_who_left_is_refused(kind: Kind) -> None:
    why = refusal(ACTS[kind], situation(kind, asker=None))
    assert why == "The person who asked is not a member of this server any more."


OUTRANKING = [kind for kind, need in NEEDS.items() if need.outranks]


@pytest.mark.parametrize("kind", OUTRANKING)
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"member": None}, "The user 12 is not a member of this server."),
        ({"member": replace(TARGET, is_owner=True)}, "owns this server"),
        ({"member": replace(TARGET, id="11")}, "The bot does not do this to itself."),
        ({"member": replace(ASKER)}, "cannot do this to themselves"),
        ({"member": replace(TARGET, roles=(HIGH,))}, "Ada (10) may not do this: the top role of Max (12)"),
        ({"member": replace(TARGET, roles=(TOP,))}, "Ada (10) may not do this"),
        ({"bot": replace(BOT, roles=(LOW,))}, "An admin has to move the bot's role up."),
        ({"bot": replace(BOT, roles=())}, "An admin has to move the bot's role up."),
        ({"asker": replace(ASKER, roles=())}, "Ada (10) may not do this"),
    ],
)
def test_the_order_of_roles(kind: Kind, changes: dict[str, Any], words: str) -> None:
    assert words in (refusal(ACTS[kind], situation(kind, **changes)) or "")


@pytest.mark.parametrize("kind", OUTRANKING)
def test_the_owner_outranks_everybody_but_the_bot_does_not(kind: Kind) -> None:
    owner, high = replace(ASKER, roles=(), is_owner=True), replace(TARGET, roles=(HIGH,))
    assert refusal(ACTS[kind], situation(kind, asker=owner, member=high)) is None
    as_high = replace(BOT, roles=(HIGH,))
    assert "The bot cannot" in (refusal(ACTS[kind], situation(kind, asker=owner, member=high, bot=as_high)) or "")


def test_of_two_roles_at_one_position_the_older_is_higher() -> None:
    older, newer = Role("5", "older", (3, -5)), Role("6", "newer", (3, -6))
    below = situation(Kind.KICK, asker=replace(ASKER, roles=(older,)), member=replace(TARGET, roles=(newer,)))
    assert refusal(ACTS[Kind.KICK], below) is None
    above = situation(Kind.KICK, asker=replace(ASKER, roles=(newer,)), member=replace(TARGET, roles=(older,)))
    assert refusal(ACTS[Kind.KICK], above) is not None


def test_nobody_times_out_an_administrator() -> None:
    admin = replace(TARGET, rights=frozenset({"administrator"}))
    assert "cannot be timed out" in (refusal(ACTS[Kind.TIME_OUT], situation(Kind.TIME_OUT, member=admin)) or "")
    assert refusal(ACTS[Kind.KICK], situation(Kind.KICK, member=admin)) is None


ADMIN_ROLE = replace(MIDDLE, rights=frozenset({"administrator"}))
STRONG_ROLE = replace(MIDDLE, rights=frozenset({"ban_members"}))


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        (Kind.ASSIGN, {"role": None}, "no role 2"),
        (Kind.ASSIGN, {"role": replace(MIDDLE, is_everyone=True)}, "@everyone"),
        (Kind.ASSIGN, {"role": replace(MIDDLE, is_managed=True)}, "belongs to a bot"),
        (Kind.ASSIGN, {"role": HIGH}, "is not below their own top role"),
        (Kind.ASSIGN, {"role": HIGH, "asker": replace(ASKER, is_owner=True), "bot": ASKER}, "The bot cannot do this"),
        (Kind.ASSIGN, {"role": LOW}, "has the role role1 (1) already"),
        (Kind.ASSIGN, {"role": ADMIN_ROLE}, "never assigns"),
        (Kind.ASSIGN, {"role": ADMIN_ROLE, "asker": replace(ASKER, rights=ALL, is_owner=True)}, "never assigns"),
        (Kind.ASSIGN, {"role": STRONG_ROLE, "asker": without(ASKER, "ban_members")}, "lacks: Ban Members"),
        (Kind.ASSIGN, {"member": None}, "not a member"),
        (Kind.REMOVE, {"role": MIDDLE}, "does not have the role"),
        (Kind.REMOVE, {"role": HIGH}, "is not below their own top role"),
        (Kind.REMOVE, {"role": replace(LOW, is_managed=True)}, "belongs to a bot"),
        (Kind.UNBAN, {"banned": ""}, "is not banned"),
        (Kind.PIN, {"messages": (PINNED,)}, "pinned already"),
        (Kind.UNPIN, {"messages": (SAID,)}, "is not pinned"),
        (Kind.DELETE, {"messages": ()}, "None of the messages 30"),
        (Kind.POST, {"channel": replace(TEXT, kind=ChannelKind.VOICE)}, "text channels and threads only"),
        (Kind.THREAD, {"channel": THREAD}, "is a thread itself"),
    ],
)
def test_roles_bans_and_messages(kind: Kind, changes: dict[str, Any], words: str) -> None:
    assert words in (refusal(ACTS[kind], situation(kind, **changes)) or "")


def test_a_role_may_be_assigned_if_the_asker_has_its_permissions() -> None:
    assert refusal(ACTS[Kind.ASSIGN], situation(Kind.ASSIGN, role=STRONG_ROLE)) is None


def test_somebody_may_delete_their_own_messages_without_a_permission() -> None:
    asker = without(ASKER, "manage_messages")
    own, other = replace(SAID, author="10"), replace(SAID, id="31")
    assert refusal(ACTS[Kind.DELETE], situation(Kind.DELETE, asker=asker, messages=(own,))) is None
    assert refusal(ACTS[Kind.DELETE], situation(Kind.DELETE, asker=asker, messages=(own, other))) is not None


def test_pinging_everyone_needs_its_permission_of_both() -> None:
    act = replace(ACTS[Kind.POST], ping=Ping.EVERYONE)
    assert refusal(act, situation(Kind.POST)) is None
    for who in ("asker", "bot"):
        person = without(ASKER if who == "asker" else BOT, "mention_everyone")
        assert "Mention Everyone" in (refusal(act, situation(Kind.POST, **{who: person})) or "")
    assert (
        refusal(replace(act, ping=Ping.PEOPLE), situation(Kind.POST, asker=without(ASKER, "mention_everyone"))) is None
    )
    many = {str(n): f"n{n}" for n in range(21)}
    assert "at most 20" in (refusal(act, situation(Kind.POST, names=many)) or "")


@pytest.mark.parametrize(
    ("act", "channel", "permission"),
    [
        (ACTS[Kind.POST], THREAD, "send_messages_in_threads"),
        (ACTS[Kind.SLOW_MODE], THREAD, "manage_threads"),
        (ACTS[Kind.POST], replace(THREAD, is_locked=True), "manage_threads"),
        (replace(ACTS[Kind.THREAD], messages=("30",)), TEXT, "read_message_history"),
        (replace(ACTS[Kind.CHANNEL], channel="20"), replace(TEXT, kind=ChannelKind.CATEGORY), "manage_channels"),
    ],
)
def test_threads_and_categories_have_permissions_of_their_own(act: Act, channel: Channel, permission: str) -> None:
    assert permission in needed_here(act, channel)
    said = (SAID,) if act.messages else ()
    now = situation(act.kind, asker=without(ASKER, permission), channel=channel, messages=said)
    assert NAMES[permission] in (refusal(act, now) or "")


def test_a_category_must_be_one() -> None:
    act = replace(ACTS[Kind.CHANNEL], channel="20")
    assert "not a category" in (refusal(act, situation(Kind.CHANNEL, channel=TEXT)) or "")


def test_the_bots_permissions_for_some_tools() -> None:
    assert wanted_by([Kind.BAN, Kind.SLOW_MODE]) == ("view_channel", "manage_channels", "ban_members")
