"""The suggestions that the sandbox's page shows for Signoff: what to type, and what to do next.

Contains wording only. Both the offline demo model and a real model understand the requests.
"""

from typing import Any

HURRY = "hurry"
"""The sandbox's rules set a short deadline for an argument that contains this word."""


def guide(hurry: int | None) -> dict[str, Any]:
    """Return the guide in the sandbox's format. `hurry` is the short deadline in seconds, if the rules have one."""
    wait = f"{hurry} seconds" if hurry else "five minutes"
    return {
        "channel": "Signoff works with tools here and asks before a tool does anything that matters. Try one of these:",
        "direct": "Signoff replies only to the people that its operator has listed. Send it a message and see.",
        "mark": "check",
        "people": {
            "admin": "may ask and decide: has Manage Server",
            "approver": "may ask and decide: has the Approvers role",
            "member": "may ask, but not decide",
            "outsider": "is in another server and sees none of this",
        },
        "steps": [
            {
                "id": "approve",
                "title": "Approve a call",
                "short": "Approve a call",
                "text": 'please run the test approval tool with parameter "hello"',
                "then": "The tool has not run yet. Read the card, then press **Accept**.",
            },
            {
                "id": "reject",
                "title": "Reject one that a rule stopped",
                "short": "Reject a call",
                "text": 'announce "Lunch is at noon." to everyone',
                "then": "A post to the team needs no approval, a post to everyone does. Press **Reject** and read the "
                "reply.",
            },
            {
                "id": "batch",
                "title": "A batch, and a restart",
                "short": "Batch and restart",
                "text": 'do this in one batch: roll 2 dice, run the test approval tool with parameter "one of three", '
                "and tell the time",
                "then": "Before you decide, press **Restart the bot** at the top. The bot is killed, and the old card "
                "still works: press **Accept** when the bot is back.",
            },
            {
                "id": "write",
                "title": "Edit what would be written",
                "short": "Edit a file write",
                "text": 'write "PORT=8080" to config/app.env',
                "then": "The card shows the change as a diff. Press **More…** and **Edit…**, write another port, then "
                "**Accept**: the file gets your text. To let two people decide, try `/signoff protect`.",
            },
            {
                "id": "timeout",
                "title": "Let one time out",
                "short": "Time out",
                "text": f'please run the test approval tool with parameter "{HURRY}"',
                "then": f"Press nothing. After {wait} the countdown ends, and the call is rejected.",
            },
        ],
    }
