"""The wording of messages about a card: it is open, it was escalated, it is settled.

Every line is trusted text in which people, roles and times are data. This module knows no medium.
"""

from __future__ import annotations

from signoff.approvals.approvers import ASKER, MANAGE_SERVER, parts, remaining_specs
from signoff.approvals.model import Batch, RequestKind
from signoff.cards.approver_names import CONDITIONS, NAME_BUDGET, decide_or_answer, name_approvers, person
from signoff.cards.model import Line, Moment
from signoff.cards.wording import status
from signoff.text.visible import plain

NO_ROLE: Line = ("Members with Manage Server may decide. I know no role to ping for that.",)


def opened(batch: Batch) -> Line:
    """Say that a card waits for a decision or an answer."""
    kinds = {r.kind for r in batch.open_questions or batch.questions}
    needed = "Approval" if RequestKind.ANSWER not in kinds else "Answer" if len(kinds) == 1 else "Approval and answer"
    return (f"{needed} needed: {_calls(batch)}, asked by ", person(batch.asker), ", until ", Moment(batch.deadline))


def names_no_role(batch: Batch) -> bool:
    """Whether Manage Server alone lets people decide one of the open requests.

    A question that the asker may answer is for the asker first, who can be pinged.
    """
    asked = (r for r in batch.open_questions if not (r.inquiry and ASKER in remaining_specs(r)))
    return any(parts(spec) == [MANAGE_SERVER] for r in asked for spec in remaining_specs(r))


def escalated(batch: Batch) -> Line:
    """Say that nobody has decided or answered so far, and who may do so now, too."""
    to = tuple(dict.fromkeys(spec for r in batch.open_questions if r.escalated for spec in r.escalate_to))
    who = name_approvers(to, batch)
    decide = decide_or_answer(batch.open_questions)
    decided = {"decide": "decided", "answer": "answered"}[decide]
    why = f"Escalated, because nobody has {decided}: {_calls(batch)}, until "
    return (why, Moment(batch.deadline), f". May {decide} now: ", *who)


def settled(batch: Batch) -> Line:
    """Say in one line how a card ended."""
    ending = status(batch)[1]
    return (f"No longer open: {_calls(batch)}", *((". ", *ending) if ending else ()))


def _calls(batch: Batch) -> str:
    questions = batch.open_questions or batch.questions
    tools = list(dict.fromkeys(plain(request.shown_tool, NAME_BUDGET) for request in questions))
    named = ", ".join(tools[:CONDITIONS])
    return named if len(questions) == 1 else f"{len(questions)} calls ({named})"
