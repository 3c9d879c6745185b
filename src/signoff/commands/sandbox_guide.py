"""The suggestions that the sandbox's page shows for Signoff: what to type, and what to do next.

Contains wording only. Both the offline demo model and a real model understand the requests, except the exact calls that
are suggested for the tools of somebody's own configuration.
"""

import re
from collections.abc import Sequence
from typing import Any

HURRY = "hurry"
"""The sandbox's rules set a short deadline for an argument that contains this word."""
KEEP_THE_LOG = "Keep the log, we need it for the post-mortem. Compress it instead."
BY_SOMEBODY_ELSE = r"APPROVED by (?!.*<@{asker}>)"
UNEDITED = r"(?s)\A(?!.*Edited by).*APPROVED by"
MOST_TOOLS = 6

Step = dict[str, Any]
"""A step of the guide; `discord_sandbox.web.guide` has its keys."""

_PEOPLE = {
    "admin": "may ask and decide: has Manage Server",
    "approver": "may ask and decide: has the Approvers role",
    "member": "may ask, but not decide",
    "outsider": "is in another server and sees none of this",
}


def guide(hurry: int) -> dict[str, Any]:
    """Return the guide for the sandbox's own rules. `hurry` is their short deadline in seconds."""
    return {
        "channel": "Signoff works with tools here and asks before a tool does anything that matters. Try one of these:",
        "direct": "Ada may use Signoff in direct messages, and decides there herself. It turns all others down here.",
        "mark": "check",
        "people": _PEOPLE,
        "steps": [_incident(), *_basics(), _question(), _elsewhere(), _timeout(hurry), _direct()],
    }


def guide_for(tools: Sequence[tuple[str, str]], notes: dict[str, str]) -> dict[str, Any]:
    """Return the guide for somebody's own configuration.

    `tools` has the name of each tool and an example of a call; `notes` has word for a person -> what they may do.
    """
    steps = [_tool(name, call) for name, call in tools[:MOST_TOOLS]]
    more = {
        "id": "help",
        "title": "See everything that it understands",
        "short": "Help",
        "text": "help",
        "then": "The reply lists examples. **Click one** to put it into the message box.",
        "done": [r"You can type"],
    }
    return {
        "channel": "Signoff works with the tools of your signoff.toml here, under its rules. Try one of these:",
        "direct": "Signoff works here only for the people that dm_users of your signoff.toml names.",
        "mark": "check",
        "people": _PEOPLE | notes,
        "steps": [*steps, more],
    }


def _tool(name: str, call: str) -> Step:
    return {
        "id": f"tool-{name}",
        "title": f"Call {name}",
        "short": name,
        "text": call,
        "then": f"If your rules ask about `{name}`, a card appears, and the people whom your rules name can decide. "
        "If they allow it, the reply comes at once.",
        "done": [rf"\b{re.escape(name)}\b.*: (?:done|failed|rejected|timed out|not allowed)"],
    }


def _incident() -> Step:
    return {
        "id": "incident",
        "title": "An incident, from start to end",
        "short": "Incident",
        "text": "incident: the disk of web-1 is full",
        "as": "Max",
        "acts": ["Ada", "Olga"],
        "answers": [KEEP_THE_LOG],
        "then": "The agent has read the log and asks to **delete** it. Act as somebody who may decide, and press "
        "**More…** and **Reject with a reason…**, with the suggested reason.",
        "advice": [
            _if("REJECTED by", "The agent was told why not, and proposes something better: **Accept** it."),
            _if(
                r"keep the log, but compress it",
                "The agent does not know what would be better. **Click** the example in its reply, and send it.",
            ),
            _if(r"rotate_log.* · ", "The agent proposes something better: **Accept** it."),
            _if(
                "its content is lost",
                f"You accepted, so the log is deleted for good. {_again('Incident')}, and reject.",
            ),
            _if(
                "a person has to take over", f"You rejected both proposals, so nothing was done. {_again('Incident')}."
            ),
            _if("TIMEOUT", f"Nobody decided in time, so nothing was done. {_again('Incident')}."),
        ],
        "done": [r"REJECTED by", BY_SOMEBODY_ELSE, r"the disk has space again. The incident is over|rotate_log: done"],
    }


def _if(pattern: str, then: str) -> dict[str, str]:
    """Return what to do next once the bot's messages show this pattern."""
    return {"found": pattern, "then": then}


def _again(step: str) -> str:
    return f"Press **{step}** to start again"


def _otherwise(pattern: str, what: str, step: str) -> list[dict[str, str]]:
    """Return the advice for a step that ended in another way than it was meant."""
    return [_if(pattern, f"{what} {_again(step)}."), _if("TIMEOUT", f"Nobody decided in time. {_again(step)}.")]


def _basics() -> list[Step]:
    return [
        {
            "id": "approve",
            "title": "Approve a call",
            "short": "Approve a call",
            "text": 'please run the test approval tool with parameter "hello"',
            "acts": ["Ada"],
            "then": "The tool has not run yet. Read the card, then press **Accept**.",
            "advice": _otherwise("REJECTED by", "It was rejected, so the tool did not run.", "Approve a call"),
            "done": [r"APPROVED by", r"executed successfully with parameter: hello"],
        },
        {
            "id": "reject",
            "title": "Reject one that a rule stopped",
            "short": "Reject a call",
            "text": 'announce "Lunch is at noon." to everyone',
            "acts": ["Ada"],
            "then": "A post to the team needs no approval, a post to everyone does. Press **Reject** and read the "
            "reply.",
            "advice": _otherwise("APPROVED by", "It was accepted, so the tool ran.", "Reject a call"),
            "done": [r"REJECTED by", r"post_announcement: rejected"],
        },
        {
            "id": "batch",
            "title": "A batch of three calls",
            "short": "Batch",
            "text": 'do this in one batch: roll 2 dice, run the test approval tool with parameter "one of three", '
            "and tell the time",
            "acts": ["Ada"],
            "then": "One question, and two calls that wait for it. Press **Accept**. You may press **Restart the bot** "
            "at the top before: the bot is killed, and the old card works again as soon as it is online.",
            "advice": _otherwise("REJECTED by", "It was rejected, so none of the three ran.", "Batch"),
            "done": [r"APPROVED by", r"test_discord_approval: done"],
        },
        {
            "id": "write",
            "title": "Edit what would be written",
            "short": "Edit a file write",
            "text": 'write "PORT=8080" to config/app.env',
            "acts": ["Ada"],
            "then": "The card shows the change as a diff. Press **More…** and **Edit…**, write another port, then "
            "**Accept**: the file gets your text. To let two people decide, try `/signoff protect`.",
            "advice": [
                *_otherwise("REJECTED by", "It was rejected, so nothing was written.", "Edit a file write"),
                _if(UNEDITED, f"It was accepted as it was, without an edit. {_again('Edit a file write')}."),
            ],
            "done": [r"Edited by", r"APPROVED by", r"write_file: done"],
        },
    ]


def _question() -> Step:
    return {
        "id": "question",
        "title": "Answer a question of the agent",
        "short": "Answer a question",
        "text": "ask me what you need to deploy the app",
        "acts": ["Ada"],
        "then": "The agent needs to know something first. Press **Answer…**, fill in the form and submit it.",
        "advice": _otherwise(
            "DECLINED by", "It was declined, so the agent went on without an answer.", "Answer a question"
        ),
        "done": [r"ANSWERED by", r"ask_user: done"],
    }


def _elsewhere() -> Step:
    return {
        "id": "elsewhere",
        "title": "Reach an approver elsewhere",
        "short": "Approver elsewhere",
        "text": 'announce "The kitchen is closed today." to everyone',
        "as": "Max",
        "acts": ["Olga"],
        "then": "Max asks here. Act as Olga: **#approvals** is marked as unread and has the same card. Open it and "
        "press **Accept** there: both cards agree. `/signoff inbox` lists what waits for you.",
        "advice": _otherwise("REJECTED by", "It was rejected, so nothing was announced.", "Approver elsewhere"),
        "done": [BY_SOMEBODY_ELSE, r"post_announcement: done"],
    }


def _timeout(seconds: int) -> Step:
    return {
        "id": "timeout",
        "title": "Let one time out",
        "short": "Time out",
        "text": f'please run the test approval tool with parameter "{HURRY}"',
        "then": f"Press nothing. After {seconds} seconds the countdown ends, and the call is rejected.",
        "advice": [
            _if("(?:APPROVED|REJECTED) by", f"Somebody decided in time. {_again('Time out')}, and press nothing.")
        ],
        "done": [r"TIMEOUT - Request expired"],
    }


def _direct() -> Step:
    return {
        "id": "direct",
        "title": "Ask in a direct message",
        "short": "Direct message",
        "text": 'please run the test approval tool with parameter "just between us"',
        "where": "direct",
        "as": "Ada",
        "then": "Only the people in `dm_users` may ask here, and they decide themselves. Press **Accept**.",
        "advice": _otherwise("REJECTED by", "It was rejected, so the tool did not run.", "Direct message"),
        "done": [r"APPROVED by", r"executed successfully with parameter: just between us"],
    }
