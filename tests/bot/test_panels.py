"""Private panels: more choices for one call, and remembered decisions that state exactly what they cover."""

from __future__ import annotations

from dataclasses import replace

import pytest

from discord_sandbox import Person
from discord_sandbox.modals import inputs
from discord_sandbox.seen import Outcome, SeenMessage
from signoff.approvals.grants import GrantTerms
from signoff.approvals.model import Choice, Place, Remember, RequestState
from signoff.approvals.tool_description import ToolDescription
from signoff.bot.admin.listing import grants_text
from signoff.cards.actions import Offers
from tests.rigs.bot import Rig, show, until
from tests.rigs.bot_answers import MASKER, drawn, further, private, states
from tests.rigs.bot_fakes import make_batch, make_request


def labels(message: SeenMessage | None) -> list[str]:
    assert message is not None
    return [button.label for button in message.buttons]


async def opened(rig: Rig, person: Person, card: SeenMessage, *labels: str) -> SeenMessage:
    """Press the card's "More…", then these buttons of the panel, and return the panel as it is then."""
    answer = await person.click(card, "More…")
    private(answer)
    assert answer.reply is not None
    panel = answer.reply
    for label in labels:
        panel = drawn(await person.click(panel, label))
    return panel


async def test_more_offers_the_other_choices_privately(full: Rig, ada: Person) -> None:
    requests = [make_request({"n": "one"}), make_request({"n": "two"})]
    batch, card = await show(full, make_batch(await full.place(), await full.asker(), *requests))
    panel = await opened(full, ada, card, "2. delete_file")
    assert labels(panel) == ["Reject with a reason…", "Edit…", "Remember…"]
    reason = await ada.click(panel, "Reject with a reason…")
    ended = drawn(await ada.submit(reason, {"reason": "no"}))
    assert ended.id == panel.id
    assert f"Done: REJECTED by <@{ada.id}>" in ended.text
    assert ended.buttons == []
    assert states(full, batch.id) == [RequestState.PENDING, RequestState.REJECTED]
    public = await ada.wait_for_change(card, lambda m: "REJECTED by" in m.text)
    assert labels(public) == ["Accept", "Reject", "More…"], "the other call is still open"
    assert "APPROVED" in drawn(await ada.click(public, "Accept")).text, "and its buttons work"


async def test_an_edit_from_a_panel_changes_the_card(full: Rig, ada: Person) -> None:
    requests = [make_request({"n": str(n)}) for n in range(6)]
    batch, card = await show(full, make_batch(await full.place(), await full.asker(), *requests))
    second = drawn(await ada.click(card, "▶"))
    panel = await opened(full, ada, second, "6. delete_file")
    ended = drawn(await ada.submit(await ada.click(panel, "Edit…"), {"arguments-0": "fifty"}))
    assert "Changed" in ended.text
    public = await ada.wait_for_change(card, lambda m: "fifty" in m.text)
    assert "Page 2 of 2" in labels(public)
    assert full.desk.batches[batch.id].revision == 1


EXACT_HERE = {"decision": "accept", "span": "here", "what": "exact"}


async def planned(person: Person, card: SeenMessage, **values: str | list[str]) -> SeenMessage:
    """Fill in the form behind "Remember…" and return the panel that says what would be covered."""
    form = await further(person, card, "Remember…")
    return drawn(await filled(person, form, **values))


async def filled(person: Person, form: Outcome, **values: str | list[str]) -> Outcome:
    assert form.modal is not None, form.raw
    offered = inputs(form.modal)
    chosen = {name: value for name, value in (EXACT_HERE | values).items() if name in offered}
    return await person.submit(form, chosen)


async def test_remember_says_what_it_covers_and_covers_that(full: Rig, ada: Person) -> None:
    request = make_request({"path": "a`b*", "to": "@everyone"})
    batch, card = await show(full, make_batch(await full.place(), await full.asker(), request))
    panel = await planned(ada, card)
    for part in (
        "`delete_file`",
        "are accepted without asking if they have exactly these arguments",
        "at most 50 times",
    ):
        assert part in panel.text
    rule = '[[rules]]\ntool = "delete_file"\nwhen = { path = "a`b[*]", to = "@everyone" }\nverdict = "allow"'
    assert f"```toml\n{rule}\n```" in panel.text
    assert "In this conversation, at most 50 times; it ends <t:" in panel.text
    assert labels(panel) == ["Accept and save", "Cancel"]
    assert states(full, batch.id) == [RequestState.PENDING], "nothing is decided before it was shown"
    ended = drawn(await ada.click(panel, "Accept and save"))
    assert "remembered in this conversation" in ended.text
    public = await ada.wait_for_change(card, lambda m: "APPROVED by" in m.text)
    assert "remembered in this conversation" in public.text
    (grant,) = full.desk.memory.grants
    assert (grant.tool, grant.conversation, grant.choice) == ("delete_file", batch.place.conversation, Choice.ACCEPT)
    assert grant.named is None
    assert full.desk.calls[-1].card_message is None, "a panel is no card"
    await until(lambda: full.desk.final == [batch.id])
    assert await full.sandbox.pings() == []


async def test_named_arguments_for_an_hour_leave_the_rest_free(full: Rig, ada: Person) -> None:
    request = make_request({"path": "a.txt", "mode": "fast"})
    _, card = await show(full, make_batch(await full.place(), await full.asker(), request))
    panel = await planned(ada, card, what="some", same=["1"], span="hour")
    assert "if they have the same path; all other arguments (mode) are free" in panel.text
    assert "In every conversation of this server" in panel.text
    assert 'tool = "delete_file"\nwhen = { path = "a.txt" }\nverdict = "allow"' in panel.text
    await ada.click(panel, "Accept and save")
    public = await ada.wait_for_change(card, lambda m: "APPROVED by" in m.text)
    assert "remembered in this server" in public.text
    (grant,) = full.desk.memory.grants
    assert (grant.named, grant.args, grant.conversation) == (("path",), '{"path":"a.txt"}', "")
    assert grant.expires - grant.at == 3600.0


async def test_arguments_are_in_the_tools_own_order_wherever_they_are_remembered(full: Rig, ada: Person) -> None:
    args = {"also": "z", "mode": "fast", "path": "a.txt", "to": "b"}
    request = make_request(args, description=ToolDescription(order=("to", "path", "mode")))
    _, card = await show(full, make_batch(await full.place(), await full.asker(), request))
    form = await further(ada, card, "Remember…")
    assert form.modal is not None
    boxes = inputs(form.modal)["same"]["options"]
    assert [box["label"] for box in boxes] == ["to", "path", "mode", "also"]
    ticked = [box["value"] for box in boxes if box["label"] in ("path", "to")]
    panel = drawn(await filled(ada, form, what="some", same=ticked, span="hour"))
    assert "if they have the same to, path; all other arguments (mode, also) are free" in panel.text
    rule = 'when = { to = "b", path = "a.txt" }'
    assert rule in panel.text
    await ada.click(panel, "Accept and save")
    await ada.wait_for_change(card, lambda m: "APPROVED by" in m.text)
    listed = grants_text(full.desk.memory.grants, lambda args: args)
    assert rule in listed
    assert "if they have the same to, path" in listed


async def test_a_plan_is_cancelled_and_nothing_is_decided(full: Rig, ada: Person) -> None:
    batch, card = await show(full, make_batch(await full.place(), await full.asker(), make_request({"path": "a"})))
    panel = await planned(ada, card, decision="reject")
    assert labels(panel) == ["Reject and save", "Cancel"]
    closed = drawn(await ada.click(panel, "Cancel"))
    assert (closed.text, labels(closed)) == ("Nothing was decided.", [])
    assert states(full, batch.id) == [RequestState.PENDING]
    assert full.desk.memory.grants == []


async def test_reject_for_always(full: Rig, ada: Person) -> None:
    _, card = await show(full, make_batch(await full.place(), await full.asker()))
    await ada.click(await planned(ada, card, decision="reject", span="always"), "Reject and save")
    public = await ada.wait_for_change(card, lambda m: "REJECTED by" in m.text)
    assert "remembered in this server" in public.text
    (grant,) = full.desk.memory.grants
    assert (grant.conversation, grant.choice) == ("", Choice.REJECT)


async def test_always_takes_manage_server(full: Rig) -> None:
    olga = await full.sandbox.person("Olga")
    request = make_request({"path": "a"}, approvers=(f"user:{olga.id}",))
    batch, card = await show(full, make_batch(await full.place(), await full.asker(), request))
    form = await further(olga, card, "Remember…")
    assert form.modal is not None
    assert list(inputs(form.modal)) == ["decision"], "nothing wider is offered"
    for terms in ("accept.always.exact", "accept.hour.exact", "accept.here.0", "reject.day.1"):
        forged = await olga.click(card, f"signoff:save:{request.id}:0:0:{terms}", forged=True)
        assert "needs the Manage Server permission" in private(forged)
    panel = drawn(await filled(olga, form))
    answer = await olga.click(panel, f"signoff:accept_always:{request.id}:0:0", forged=True)
    assert "needs the Manage Server permission" in private(answer), "a button of an older panel"
    assert states(full, batch.id) == [RequestState.PENDING]


async def test_no_more_is_offered_than_the_operator_permits(idle: Rig) -> None:
    ada = await idle.sandbox.person("Ada")
    idle.desk.grants = GrantTerms(Remember.SESSION)
    idle.offers = Offers(grants=idle.desk.grants)
    async with idle.running():
        request = make_request({"path": "a", "mode": "b"})
        batch, card = await show(idle, make_batch(await idle.place(), await idle.asker(), request))
        form = await further(ada, card, "Remember…")
        assert form.modal is not None
        assert list(inputs(form.modal)) == ["decision"]
        for forged_id in ("accept_always:{}:0:0", "save:{}:0:0:accept.always.exact", "save:{}:0:0:accept.here.1"):
            forged = await ada.click(card, f"signoff:{forged_id.format(request.id)}", forged=True)
            assert "Nothing was decided" in private(forged)
        assert states(idle, batch.id) == [RequestState.PENDING]


async def test_if_several_must_accept_only_the_exact_call_is_remembered(full: Rig, ada: Person) -> None:
    request = make_request({"path": "a"}, quorum=2)
    _, card = await show(full, make_batch(await full.place(), await full.asker(), request))
    form = await further(ada, card, "Remember…")
    assert form.modal is not None
    assert list(inputs(form.modal)) == ["decision", "span"]
    assert [option["value"] for option in inputs(form.modal)["span"]["options"]] == ["here", "always"]
    forged = await ada.click(card, f"signoff:save:{request.id}:0:0:accept.here.0", forged=True)
    assert "only exactly this call can be remembered" in private(forged)


@pytest.mark.parametrize("decision", ["accept", "reject"])
async def test_a_panel_for_arguments_that_were_edited_is_out_of_date(full: Rig, ada: Person, decision: str) -> None:
    """Only what the panel said is remembered."""
    batch, card = await show(full, make_batch(await full.place(), await full.asker(), make_request({"path": "a"})))
    form = await further(ada, card, "Remember…")
    panel = await planned(ada, card, decision=decision)
    await ada.submit(await further(ada, card, "Edit…"), {"arguments-0": "b"})
    save = f"{decision.capitalize()} and save"
    assert "was edited after you opened this" in private(await ada.click(panel, save))
    assert "was edited after you opened this" in private(await filled(ada, form, decision=decision))
    assert full.desk.memory.grants == []
    assert states(full, batch.id) == [RequestState.PENDING]


async def test_a_panel_pressed_by_somebody_else_is_judged_as_theirs(full: Rig, ada: Person, max_: Person) -> None:
    """Attack 12."""
    batch, card = await show(full, make_batch(await full.place(), await full.asker(), make_request({"path": "a"})))
    panel = await planned(ada, card)
    custom_id = str(panel.buttons[0].custom_id)
    assert "You may not decide this" in private(await max_.click(panel, custom_id, forged=True))
    assert states(full, batch.id) == [RequestState.PENDING]


async def test_a_form_and_its_panel_work_after_a_restart(idle: Rig) -> None:
    ada = await idle.sandbox.person("Ada")
    idle.desk.grants = GrantTerms(Remember.SESSION)
    idle.offers = Offers(grants=idle.desk.grants)
    async with idle.running():
        _, card = await show(idle, make_batch(await idle.place(), await idle.asker(), make_request({"path": "a"})))
        form = await further(ada, card, "Remember…")
    async with idle.running():
        panel = drawn(await filled(ada, form))
    async with idle.running():
        await ada.click(panel, "Accept and save")
        await ada.wait_for_change(card, lambda m: "APPROVED by" in m.text)


async def test_a_late_press_on_a_panel_is_told_who_was_first(full: Rig, ada: Person) -> None:
    _, card = await show(full, make_batch(await full.place(), await full.asker(), make_request({"path": "a"})))
    panel = await planned(ada, card)
    await ada.click(card, "Reject")
    assert "Already decided: REJECTED" in private(await ada.click(panel, "Accept and save"))


async def test_the_buttons_of_an_older_panel_still_work(full: Rig, ada: Person) -> None:
    batch, card = await show(full, make_batch(await full.place(), await full.asker(), make_request({"path": "a"})))
    panel = await opened(full, ada, card)
    pressed = await ada.click(panel, f"signoff:accept_here:{batch.requests[0].id}:0:0", forged=True)
    assert "remembered in this conversation" in drawn(pressed).text


async def test_what_touches_something_is_not_remembered(full: Rig, ada: Person) -> None:
    request = make_request({"path": "a"})
    request = replace(request, call=replace(request.call, operands={"a": "digest"}))
    _, card = await show(full, make_batch(await full.place(), await full.asker(), request))
    assert "Remember…" not in labels(await opened(full, ada, card))
    forged = await ada.click(card, f"signoff:remember:{request.id}:0:0", forged=True)
    assert "can't be remembered" in private(forged)


async def test_a_panel_shows_no_secret(idle: Rig) -> None:
    """Attack 22."""
    ada = await idle.sandbox.person("Ada")
    idle.desk.grants = GrantTerms(Remember.ALWAYS)
    idle.offers = Offers(grants=idle.desk.grants, masker=MASKER)
    async with idle.running():
        request = make_request({"password": "correct-horse-battery-staple-42"})
        _, card = await show(idle, make_batch(await idle.place(), await idle.asker(), request))
        form = await further(ada, card, "Remember…")
        assert "correct-horse" not in str(form.modal)
        panel = drawn(await filled(ada, form))
        assert "correct-horse" not in panel.text
        assert "masked" in panel.text


async def test_in_a_direct_message_panels_work_too(full: Rig, max_: Person) -> None:
    direct = await max_.dm(full.sandbox.bot_id)
    asker = replace(await full.asker(), server="dm")
    place = Place("dm", str(direct.id), str(direct.id))
    _, card = await show(full, make_batch(place, asker, make_request({"path": "a"}, approvers=("asker",))))
    panel = await planned(max_, card, span="always")
    assert "In this direct conversation" in panel.text
    await max_.click(panel, "Accept and save")
    await max_.wait_for_change(card, lambda m: "APPROVED by" in m.text)
    assert full.desk.memory.grants[0].conversation == str(direct.id)


@pytest.mark.parametrize("text", ["x" * 3000, "`" * 2000])
async def test_what_a_panel_cannot_quote_whole_is_not_remembered(full: Rig, ada: Person, text: str) -> None:
    """Attack 7: the panel has its own accept, so it must itself show what that covers, even if the card can."""
    request = make_request({"script": text})
    batch, card = await show(full, make_batch(await full.place(), await full.asker(), request))
    answer = await ada.click(card, f"signoff:remember:{request.id}:0:0", forged=True)
    if answer.modal is not None:
        answer = await filled(ada, answer)
    assert "can't be remembered" in private(answer)
    assert labels(answer.reply) == []
    if len(text) > 2400:
        forged = await ada.click(card, f"signoff:save:{request.id}:0:0:accept.here.exact", forged=True)
        assert "can't be remembered" in private(forged)
        forged = await ada.click(card, f"signoff:accept_here:{request.id}:0:0", forged=True)
        assert "Nothing was decided" in private(forged)
    assert states(full, batch.id) == [RequestState.PENDING]


async def test_a_held_call_is_chosen_looked_at_and_rejected(full: Rig, ada: Person) -> None:
    asking = make_request({"path": "a.txt"})
    held = [make_request({"n": str(n)}, tool=tool, held=True) for n, tool in enumerate(("roll_dice", "current_time"))]
    batch, card = await show(full, make_batch(await full.place(), await full.asker(), asking, *held))
    assert "With these, needing no approval: roll\\_dice, current\\_time" in card.text
    panel = await opened(full, ada, card)
    assert labels(panel) == ["Reject with a reason…", "Edit…", "Remember…", "1. roll_dice", "2. current_time"]
    one = drawn(await ada.click(panel, "1. roll_dice"))
    assert one.id == panel.id
    assert labels(one) == ["Reject"]
    ended = drawn(await ada.click(one, "Reject"))
    assert f"Done: REJECTED by <@{ada.id}>" in ended.text
    public = await ada.wait_for_change(card, lambda m: "Rejected by" in m.text)
    done = drawn(await ada.click(public, "Accept"))
    assert states(full, batch.id) == [RequestState.APPROVED, RequestState.REJECTED, RequestState.APPROVED]
    assert f"APPROVED by <@{ada.id}>" in done.text


async def test_rejecting_a_held_call_leaves_the_card_on_its_page(full: Rig, ada: Person) -> None:
    questions = [make_request({"n": str(n)}) for n in range(6)]
    held = [make_request({"n": "1"}, tool=tool, held=True) for tool in ("roll_dice", "current_time")]
    _, card = await show(full, make_batch(await full.place(), await full.asker(), *questions, *held))
    second = drawn(await ada.click(card, "▶"))
    panel = await opened(full, ada, second)
    one = drawn(await ada.click(panel, f"signoff:more:{held[0].id}:0:1"))
    await ada.click(one, "Reject")
    public = await ada.wait_for_change(card, lambda m: "Rejected by" in m.text)
    assert "Page 2 of 2" in labels(public)


async def test_held_calls_of_one_tool_are_told_apart(full: Rig, ada: Person) -> None:
    held = [make_request({"n": value}, tool="roll_dice", held=True) for value in ("one", "two")]
    batch, card = await show(full, make_batch(await full.place(), await full.asker(), make_request({}), *held))
    panel = await opened(full, ada, card)
    assert labels(panel)[-2:] == ["1. roll_dice", "2. roll_dice"]
    assert "are listed here" not in panel.text
    one = drawn(await ada.click(panel, "2. roll_dice"))
    assert "two" in one.text
    await ada.click(one, "Reject")
    assert states(full, batch.id) == [RequestState.PENDING, RequestState.PENDING, RequestState.REJECTED]


async def test_the_list_of_held_calls_says_that_it_is_not_complete(full: Rig, ada: Person) -> None:
    held = [make_request({"n": str(n)}, tool="roll_dice", held=True) for n in range(27)]
    _, card = await show(full, make_batch(await full.place(), await full.asker(), make_request({}), *held))
    panel = await opened(full, ada, card)
    assert labels(panel)[-1] == "25. roll_dice"
    assert "Only the first 25 of 27 calls are listed here." in panel.text


async def test_only_an_approver_looks_at_held_calls(full: Rig, ada: Person) -> None:
    olga = await full.sandbox.person("Olga")
    asking, held = make_request({"path": "a.txt"}), make_request({"n": "1"}, tool="roll_dice", held=True)
    _, card = await show(full, make_batch(await full.place(), await full.asker(), asking, held))
    assert "You may not decide this" in private(await olga.click(card, "More…"))
    panel = await opened(full, ada, card)
    assert labels(panel)[-1] == "1. roll_dice"
    assert labels(drawn(await ada.click(panel, "1. roll_dice"))) == ["Reject"]


async def test_old_buttons_of_a_held_call_still_work(full: Rig, ada: Person) -> None:
    """A card of an earlier version gave every call its own buttons."""
    requests = [make_request({"path": "a.txt"}), *(make_request({"n": str(n)}, tool="roll_dice") for n in range(2))]
    batch, card = await show(full, make_batch(await full.place(), await full.asker(), *requests))
    older = full.desk.memory.batches[batch.id]
    now_held = tuple(replace(r, held=r.call.tool == "roll_dice") for r in older.requests)
    full.desk.memory.batches[batch.id] = replace(older, requests=now_held)
    after = drawn(await ada.click(card, f"signoff:accept:{requests[1].id}:0:0"))
    assert states(full, batch.id) == [RequestState.PENDING, RequestState.APPROVED, RequestState.PENDING]
    ended = full.desk.batches[batch.id].requests[1].settlement
    assert ended is not None
    assert ended.by is None
    assert "With these, needing no approval: roll\\_dice, roll\\_dice" in after.text
    stale = await ada.click(after, f"signoff:accept:{requests[2].id}:0:0", forged=True)
    assert "look again" in private(stale)
    done = drawn(await ada.click(after, "Accept"))
    assert states(full, batch.id) == [RequestState.APPROVED] * 3
    assert f"APPROVED by <@{ada.id}>" in done.text
