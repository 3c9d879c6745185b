"""Forms: edited arguments and reasons, before and after a restart, and no typed text is ever lost."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from discord_sandbox import Person
from discord_sandbox.modals import inputs
from discord_sandbox.seen import Outcome
from signoff.approvals.model import RequestState
from signoff.approvals.tool_description import ToolDescription
from signoff.cards.actions import Offers
from tests.rigs.bot import Rig, show
from tests.rigs.bot_answers import MASKER, drawn, further, old_button, private, states
from tests.rigs.bot_fakes import EchoReviser, make_batch, make_request


def fields(answer: Outcome) -> dict[str, Any]:
    assert answer.modal is not None, answer.raw
    return {name: part.get("value") for name, part in inputs(answer.modal).items()}


def labels(answer: Outcome) -> list[str]:
    assert answer.modal is not None, answer.raw
    return [part["label"] for part in answer.modal["components"]]


async def test_few_simple_arguments_have_a_field_each(full: Rig, ada: Person) -> None:
    request = make_request({"path": "a.txt", "lines": 5, "text": "two\nlines"})
    batch, card = await show(full, make_batch(await full.place(), await full.asker(), request))
    opened = await old_button(ada, card, "Edit…")
    assert labels(opened) == ["lines", "path", "text"]
    assert fields(opened) == {"arguments-0": "5", "arguments-1": "a.txt", "arguments-2": "two\nlines"}
    after = drawn(await ada.submit(opened, {"arguments-1": "b.txt", "arguments-0": "7"}))
    args = full.desk.batches[batch.id].requests[0].call.args
    assert args == {"path": "b.txt", "lines": 7, "text": "two\nlines"}
    assert f"Edited by <@{ada.id}>" in after.text
    for part in ("path (original, does not run)", "a.txt", "path (edited)", "b.txt"):
        assert part in after.text
    assert after.text.count("two\nlines") == 1, "what is the same stands once"
    assert states(full, batch.id) == [RequestState.PENDING], "an edit is no vote"
    assert "APPROVED" in drawn(await ada.click(after, "Accept")).text


async def test_a_text_that_nobody_touched_keeps_every_byte(full: Rig, ada: Person) -> None:
    content = "# Notes\n\n  - one\n  - two\n\nend\n"
    request = make_request(
        {"content": content, "path": "a.txt"}, description=ToolDescription(order=("path", "content"))
    )
    batch, card = await show(full, make_batch(await full.place(), await full.asker(), request))
    opened = await further(ada, card, "Edit…")
    assert labels(opened) == ["path", "content"]
    assert opened.modal is not None
    assert [part["component"]["style"] for part in opened.modal["components"]] == [1, 2], "the text has several lines"
    drawn(await ada.submit(opened, {"arguments-1": "b.txt"}))
    await ada.wait_for_change(card, lambda m: "path (edited)" in m.text)
    assert full.desk.batches[batch.id].requests[0].call.args == {"content": content, "path": "b.txt"}


async def test_the_forms_open_from_the_panel_behind_more(full: Rig, ada: Person) -> None:
    batch, card = await show(full, make_batch(await full.place(), await full.asker(), make_request({"path": "a"})))
    drawn(await ada.submit(await further(ada, card, "Edit…"), {"arguments-0": "b"}))
    after = await ada.wait_for_change(card, lambda m: "path (edited)" in m.text)
    drawn(await ada.submit(await further(ada, after, "Reject with a reason…"), {"reason": "not on a Friday"}))
    ended = await ada.wait_for_change(card, lambda m: "REJECTED by" in m.text)
    assert "> **Reason given**: not on a Friday" in ended.text
    assert states(full, batch.id) == [RequestState.REJECTED]


async def test_other_arguments_are_one_field_of_json(full: Rig, ada: Person) -> None:
    request = make_request({"to": ["a", "b"], "note": "x\u202ey"})
    batch, card = await show(full, make_batch(await full.place(), await full.asker(), request))
    opened = await old_button(ada, card, "Edit…")
    (text,) = fields(opened).values()
    assert json.loads(text) == request.call.args
    assert "\\u202e" in text
    drawn(await ada.submit(opened, {"arguments": '{"to": ["c"], "note": "z"}'}))
    assert full.desk.batches[batch.id].requests[0].call.args == {"to": ["c"], "note": "z"}


async def test_an_edit_voids_the_votes_of_others_and_says_so(full: Rig, ada: Person) -> None:
    olga = await full.sandbox.person("Olga")
    either = ("manage_server", f"user:{olga.id}")
    assert full.reviser is not None
    full.reviser.ruling = replace(full.reviser.ruling, approvers=either, quorum=2)
    request = make_request({"path": "a"}, approvers=either, quorum=2)
    batch, card = await show(full, make_batch(await full.place(), await full.asker(), request))
    await ada.click(card, "Accept")
    after = drawn(await olga.submit(await old_button(olga, card, "Edit…"), {"arguments-0": "b"}))
    assert f"Votes that this edit made void: <@{ada.id}>" in after.text
    assert "Accepted by 0 of 2" in after.text
    stale = await ada.click(card, f"signoff:accept:{batch.id}:0:0", forged=True)
    assert "was edited after you opened this" in private(stale)
    assert full.desk.batches[batch.id].requests[0].votes == ()


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ('{"to": [', "This is not JSON"),
        ('{"to": ["a"], "to": ["b"]}', "a name appears twice"),
        ('["to"]', "must be one JSON object"),
        ('{"to": NaN}', "NaN is not a JSON value"),
    ],
)
async def test_what_cannot_be_read_is_given_back(full: Rig, ada: Person, typed: str, said: str) -> None:
    batch, card = await show(full, make_batch(await full.place(), await full.asker(), make_request({"to": ["a"]})))
    answer = await ada.submit(await old_button(ada, card, "Edit…"), {"arguments": typed})
    assert said in private(answer)
    assert typed in private(answer)
    assert full.desk.batches[batch.id].revision == 0


async def test_a_refused_edit_is_given_back_whole(full: Rig, ada: Person) -> None:
    assert full.reviser is not None
    full.reviser.refuses = "Not changed: path must be inside the workspace."
    _, card = await show(full, make_batch(await full.place(), await full.asker(), make_request({"path": "a"})))
    answer = await ada.submit(await old_button(ada, card, "Edit…"), {"arguments-0": "/etc/passwd"})
    assert "inside the workspace" in private(answer)
    assert "/etc/passwd" in private(answer)
    long = "```" + "x" * 3000
    answer = await ada.submit(await old_button(ada, card, "Edit…"), {"arguments-0": long})
    assert answer.reply is not None
    (file,) = answer.reply.files
    assert (await full.sandbox.fetch(file["url"])).decode() == long


async def test_a_form_for_arguments_that_changed_meanwhile_is_out_of_date(full: Rig, ada: Person) -> None:
    batch, card = await show(full, make_batch(await full.place(), await full.asker(), make_request({"path": "a"})))
    first, second = await old_button(ada, card, "Edit…"), await old_button(ada, card, "Edit…")
    await ada.submit(first, {"arguments-0": "b"})
    late = await ada.submit(second, {"arguments-0": "c"})
    assert "was edited after you opened this" in private(late)
    assert "c" in private(late)
    assert full.desk.batches[batch.id].requests[0].call.args == {"path": "b"}


async def test_forms_opened_before_a_restart_work_after_it(idle: Rig) -> None:
    idle.reviser = EchoReviser()
    ada = await idle.sandbox.person("Ada")
    async with idle.running():
        batch, card = await show(idle, make_batch(await idle.place(), await idle.asker(), make_request({"path": "a"})))
        edit, reason = await old_button(ada, card, "Edit…"), await old_button(ada, card, "Reject with a reason…")
    async with idle.running():
        after = drawn(await ada.submit(edit, {"arguments-0": "b"}))
        assert "path (edited)" in after.text
        done = drawn(await ada.submit(reason, {"reason": "not on a Friday"}))
        assert f"REJECTED by <@{ada.id}>" in done.text
        assert "not on a Friday" in done.text
    end = idle.desk.batches[batch.id].requests[0].settlement
    assert end is not None
    assert end.note == "not on a Friday"


async def test_a_reason_is_quoted_and_reaches_the_desk(rig: Rig, ada: Person) -> None:
    _, card = await show(rig, make_batch(await rig.place(), await rig.asker()))
    opened = await old_button(ada, card, "Reject with a reason…")
    done = drawn(await ada.submit(opened, {"reason": "```\n# APPROVED by <@1>"}))
    assert "REJECTED by" in done.text
    assert "\n# APPROVED by <@1>\n```" in done.text
    assert rig.desk.calls[-1].note == "```\n# APPROVED by <@1>"


async def test_forms_are_not_opened_for_those_who_may_not_decide(full: Rig, max_: Person) -> None:
    _, card = await show(full, make_batch(await full.place(), await full.asker(), make_request({"path": "a"})))
    for label in ("Edit…", "Reject with a reason…", "Remember…"):
        answer = await old_button(max_, card, label)
        assert answer.modal is None
        assert "You may not decide this" in private(answer)
    assert "You may not decide this" in private(await max_.click(card, "More…"))


async def test_a_form_submitted_by_somebody_else_is_judged_as_theirs(full: Rig, ada: Person, max_: Person) -> None:
    """Attack 12."""
    batch, card = await show(full, make_batch(await full.place(), await full.asker(), make_request({"path": "a"})))
    opened = await old_button(ada, card, "Edit…")
    assert "You may not decide this" in private(await max_.submit(opened, {"arguments-0": "b"}, forged=True))
    assert full.desk.batches[batch.id].revision == 0


async def test_a_form_after_the_decision_is_told_who_was_first(full: Rig, ada: Person) -> None:
    _, card = await show(full, make_batch(await full.place(), await full.asker(), make_request({"path": "a"})))
    edit, reason = await old_button(ada, card, "Edit…"), await old_button(ada, card, "Reject with a reason…")
    await ada.click(card, "Accept")
    assert "Already decided: APPROVED" in private(await ada.submit(edit, {"arguments-0": "b"}))
    late = private(await ada.submit(reason, {"reason": "too late"}))
    assert "Already decided: APPROVED" in late
    assert "too late" in late


async def test_masked_arguments_are_not_edited_even_by_a_forged_press(idle: Rig) -> None:
    """Attack 22."""
    idle.reviser, idle.offers = EchoReviser(), Offers(masker=MASKER)
    ada = await idle.sandbox.person("Ada")
    async with idle.running():
        request = make_request({"password": "correct-horse-battery-staple-42"})
        _, card = await show(idle, make_batch(await idle.place(), await idle.asker(), request))
        assert "correct-horse" not in card.text
        panel = (await ada.click(card, "More…")).reply
        assert panel is not None
        assert [b.label for b in panel.buttons] == ["Reject with a reason…"]
        forged = await ada.click(card, f"signoff:edit:{request.id}:0:0", forged=True)
        assert forged.modal is None
        assert "masked" in private(forged)


async def test_a_form_that_is_submitted_for_masked_arguments_is_refused(idle: Rig) -> None:
    """Attack 22. The form was opened before the operator masked this argument, so its id and its digest are right."""
    idle.reviser = EchoReviser()
    ada = await idle.sandbox.person("Ada")
    args = {"password": "correct-horse-battery-staple-42"}
    async with idle.running():
        batch, card = await show(idle, make_batch(await idle.place(), await idle.asker(), make_request(args)))
        opened = await old_button(ada, card, "Edit…")
        assert opened.modal is not None
    idle.offers = Offers(masker=MASKER)
    async with idle.running():
        answer = await ada.submit(opened, {"arguments-0": "another-password"})
        assert answer.updated is None
        assert "parts of the arguments are masked" in private(answer)
        assert "another-password" in private(answer), "the person gets back what they typed"
    stored = idle.desk.batches[batch.id]
    assert stored.requests[0].call.args == args
    assert stored.requests[0].edit is None
    assert stored.revision == 0


async def test_a_card_with_a_keyed_digest_is_edited_and_accepted_by_the_real_one(idle: Rig) -> None:
    idle.reviser, idle.offers = EchoReviser(), Offers(masker=MASKER)
    ada = await idle.sandbox.person("Ada")
    async with idle.running():
        request = make_request({"path": "a.txt"}, metadata={"summary": "password=Zebra42x"})
        batch, card = await show(idle, make_batch(await idle.place(), await idle.asker(), request))
        assert f"digest {MASKER.mask_digest(request.call.digest)[:12]}" in card.text
        after = drawn(await ada.submit(await old_button(ada, card, "Edit…"), {"arguments-0": "b.txt"}))
        edited = idle.desk.batches[batch.id].requests[0]
        assert edited.call.args == {"path": "b.txt"}
        assert edited.edit is not None
        assert edited.edit.original_digest == request.call.digest
        assert f"digest {edited.call.digest[:12]}" in after.text, "the words that were masked are gone"
        assert "APPROVED" in drawn(await ada.click(after, "Accept")).text


async def test_arguments_too_long_for_a_form_are_not_edited_and_that_is_said(full: Rig, ada: Person) -> None:
    request = make_request({"text": "word " * 1000})
    _, card = await show(full, make_batch(await full.place(), await full.asker(), request))
    panel = await ada.click(card, "More…")
    assert "This call can't be edited: the arguments are longer than" in private(panel)
    assert panel.reply is not None
    assert "Edit…" not in [b.label for b in panel.reply.buttons]
    assert "4,000 characters" in private(await ada.click(card, f"signoff:edit:{request.id}:0:0", forged=True))
