"""The pure rules: the form of components, permissions, mentions."""

from typing import Any

import pytest

from discord_sandbox import components, mentions, modal_values, modals, seed, state_file
from discord_sandbox.apierrors import ApiError
from discord_sandbox.model import Attachment, Overwrite
from discord_sandbox.permissions import ALL, BOT_INVITE, Permission, in_channel
from discord_sandbox.snowflake import Snowflakes, at, moment

Part = dict[str, Any]


def text(content: str = "x") -> Part:
    return {"type": 10, "content": content}


def button(**fields: Any) -> Part:
    return {"type": 2, "style": 1, "label": "b", "custom_id": "b", **fields}


def row(*parts: Part) -> Part:
    return {"type": 1, "components": list(parts)}


def codes(problem: Any) -> set[str]:
    if not isinstance(problem, dict):
        return set()
    found = {error["code"] for error in problem.get("_errors", [])}
    return found.union(*(codes(inner) for inner in problem.values()))


def refusal(parts: list[Part], *, v2: bool = True, filenames: tuple[str, ...] = ()) -> set[str]:
    try:
        components.check(parts, v2=v2, filenames=filenames)
    except ApiError as error:
        return codes(error.errors) if error.code == 50035 else {str(error)}
    return set()


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ([row(button(custom_id="a"), button(custom_id="a"))], "COMPONENT_CUSTOM_ID_DUPLICATED"),
        ([row(button(custom_id=""))], "BASE_TYPE_BAD_LENGTH"),
        ([row(button(custom_id="a" * 101))], "BASE_TYPE_BAD_LENGTH"),
        ([row(button(label="a" * 81))], "BASE_TYPE_MAX_LENGTH"),
        ([row(button(label=None))], "BUTTON_COMPONENT_LABEL_OR_EMOJI_REQUIRED"),
        ([row(button(style=5, url="https://x"))], "COMPONENT_CUSTOM_ID_AND_URL_MUTUALLY_EXCLUSIVE"),
        ([row(*(button(custom_id=str(n)) for n in range(6)))], "BASE_TYPE_BAD_LENGTH"),
        ([row()], "BASE_TYPE_BAD_LENGTH"),
        ([text("")], "BASE_TYPE_REQUIRED"),
        ([text("x" * 2500), text("x" * 1501)], "COMPONENT_DISPLAYABLE_TEXT_SIZE_EXCEEDED"),
        ([text() for _ in range(41)], "COMPONENT_MAX_TOTAL_COMPONENTS_EXCEEDED"),
        ([{"type": 9, "components": [text()]}], "BASE_TYPE_REQUIRED"),
        ([{"type": 9, "components": [text()] * 4, "accessory": button()}], "BASE_TYPE_BAD_LENGTH"),
        ([{"type": 13, "file": {"url": "https://example.org/a.txt"}}], "URL_TYPE_INVALID_SCHEME"),
        ([{"type": 12, "items": []}], "BASE_TYPE_BAD_LENGTH"),
        ([{"type": 17, "components": [{"type": 17, "components": [text()]}]}], "UNION_TYPE_CHOICES"),
        ([{"type": 99}], "UNION_TYPE_CHOICES"),
        ([row({"type": 3, "custom_id": "s", "options": []})], "BASE_TYPE_BAD_LENGTH"),
    ],
)
def test_bad_layout_is_refused_by_its_code(parts: list[Part], code: str) -> None:
    assert code in refusal(parts)


def test_classic_messages_take_rows_only() -> None:
    assert refusal([text()], v2=False) == {"UNION_TYPE_CHOICES"}
    assert refusal([row(button(custom_id=str(n))) for n in range(6)], v2=False) == {"BASE_TYPE_BAD_LENGTH"}
    assert refusal([row(button())], v2=False) == set()


def test_components_get_ids_and_defaults() -> None:
    parts = [{"type": 17, "id": 2, "components": [{"type": 14}, row(button())]}]
    (done,) = components.check(parts, v2=True, filenames=())
    assert (done["id"], done["accent_color"], done["spoiler"]) == (2, None, False)
    assert done["components"][0] == {"type": 14, "id": 1, "spacing": 1, "divider": True}
    assert [part["id"] for part in components.walk([done])] == [2, 1, 3, 4]


def field(**fields: Any) -> Part:
    return {"type": 4, "style": 1, "custom_id": "a", **fields}


def labelled(label: str, component: Part) -> Part:
    return {"type": 18, "label": label, "component": component}


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"title": "t" * 46}, [row(field(label="l"))]),
        ({"custom_id": ""}, [row(field(label="l"))]),
        ({}, []),
        ({}, [row(field())]),
        ({}, [row(field(label="l" * 46))]),
        ({}, [row(button())]),
        ({}, [labelled("l" * 46, field())]),
        ({}, [labelled("l", field(value="v" * 4001))]),
        ({}, [labelled("l", field(min_length=5, max_length=4))]),
        ({}, [labelled("l", button())]),
        ({}, [labelled("l", field()), labelled("m", field())]),
        ({}, [labelled("l", field(custom_id=str(n))) for n in range(6)]),
    ],
)
def test_bad_modal_is_refused(changes: Part, parts: list[Part]) -> None:
    with pytest.raises(ApiError, match="50035"):
        modals.check({"custom_id": "m", "title": "t", "components": parts} | changes)


def no_files(name: str, data: str) -> Attachment:
    raise AssertionError("this form has no upload")


def test_good_modal_takes_what_its_form_allows() -> None:
    modal = modals.check({"custom_id": "m", "title": "t", "components": [labelled("l", field(max_length=3)), text()]})
    first, second = modal_values.fill(modal, {"a": "abc"}, no_files).components
    assert first["component"] == {"type": 4, "id": 2, "custom_id": "a", "value": "abc"}
    assert second == {"type": 10, "id": 3}
    for wrong in ({"a": "abcd"}, {"a": ""}, {"b": "x"}):
        with pytest.raises(modal_values.BadValue):
            modal_values.fill(modal, wrong, no_files)


def test_overwrites_apply_in_discords_order() -> None:
    world = seed.new_world()
    general, olga = world.channel_named("general"), world.user_named("Olga")
    assert general is not None
    assert olga is not None
    guild = world.guilds[general.guild_id or 0]
    approvers = next(role for role in guild.roles.values() if role.name == "Approvers")
    send = int(Permission.SEND_MESSAGES)
    general.overwrites = [Overwrite(guild.id, 0, deny=send), Overwrite(approvers.id, 0, allow=send)]
    assert in_channel(world, general, olga.id) & send
    general.overwrites.append(Overwrite(olga.id, 1, deny=send))
    assert not in_channel(world, general, olga.id) & send
    general.overwrites.append(Overwrite(approvers.id, 0, deny=int(Permission.VIEW_CHANNEL)))
    assert in_channel(world, general, guild.owner_id) == ALL
    bot = next(iter(world.applications))
    assert in_channel(world, general, bot) & BOT_INVITE == BOT_INVITE & ~send  # its role does not override a denial
    otto = world.user_named("Otto")
    assert otto is not None
    assert in_channel(world, general, otto.id) == 0


def test_allowed_mentions_filter_what_the_text_says() -> None:
    user, role = 175928847299117063, 175928847299117064
    found = mentions.find(f"<@{user}> <@!{user}> <@&{role}> @here `<@{role}>`")
    assert (found.users, found.roles, found.everyone) == ((user,), (role,), True)
    assert mentions.Allowed.from_json(None).filter(found) == found
    assert not mentions.Allowed.from_json({"parse": []}).filter(found)
    some = mentions.Allowed.from_json({"parse": ["everyone"], "users": [str(user)]}).filter(found)
    assert (some.users, some.roles, some.everyone) == ((user,), (), True)
    with pytest.raises(ApiError, match="50035"):
        mentions.Allowed.from_json({"parse": ["users"], "users": [str(user)]})


def test_ids_rise_even_when_the_clock_falls() -> None:
    times = iter([100.0 + 1.5e9, 100.0 + 1.5e9, 50.0 + 1.5e9])
    ids = Snowflakes(lambda: next(times))
    one, two, three = ids.next(), ids.next(), ids.next()
    assert one < two < three
    assert moment(at(1.6e9)) == 1.6e9


def test_world_survives_a_round_trip_through_json() -> None:
    world = seed.new_world()
    again = state_file.load(state_file.dump(world))
    assert state_file.dump(again) == state_file.dump(world)
    assert again.guilds == world.guilds
    with pytest.raises(ValueError, match="version"):
        state_file.load({"version": 0})
