"""The line about a decision in a log channel."""

from __future__ import annotations

from dataclasses import replace

from signoff.approvals.events import tool_approval
from signoff.approvals.inquiries import AnswerField, Inquiry
from signoff.approvals.model import ApprovalRequest, Choice, JsonObject, Place, RequestKind, Settlement
from signoff.bot.log_channels import worded
from tests.rigs.cards import ADMIN, make_request

PLACE = Place("1", "2", "2")


def answered(answer: JsonObject) -> ApprovalRequest:
    end = Settlement(Choice.ANSWER, ADMIN, 5.0, answer=answer)
    request = make_request(kind=RequestKind.ANSWER, inquiry=Inquiry("?", (AnswerField("a"),)))
    return replace(request, state=Choice.ANSWER.state, settlement=end)


def test_an_answer_is_logged_as_an_answer() -> None:
    line = worded(tool_approval(PLACE, answered({"a": "```\n@everyone"})))
    assert line.startswith("**ANSWERED** `write_file` by <@200>, request ")
    assert line.count("```") == 4
    assert "Answer:\n```" in line


def test_a_question_that_was_declined_is_logged_as_declined() -> None:
    end = Settlement(Choice.DECLINE, ADMIN, 5.0, "no time")
    declined = replace(answered({}), state=Choice.DECLINE.state, settlement=end)
    assert worded(tool_approval(PLACE, declined)).startswith("**DECLINED** `write_file` by <@200> (no time), request ")


def test_a_long_answer_says_that_it_is_shortened() -> None:
    assert "(shortened; the record has all of it)" in worded(tool_approval(PLACE, answered({"a": "x" * 4000})))


def test_an_approval_is_logged_as_before() -> None:
    end = Settlement(Choice.ACCEPT, ADMIN, 5.0)
    request = replace(make_request(args={"path": "a"}), state=Choice.ACCEPT.state, settlement=end)
    line = worded(tool_approval(PLACE, request))
    assert line.startswith("**APPROVED** `write_file` by <@200>")
    assert "Answer" not in line
