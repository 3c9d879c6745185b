"""The guided first minute: what the empty channel suggests to type, and what to do then.

Wording only. Both the offline demo model and a real one understand the requests.
"""

from dataclasses import dataclass

from discord_sandbox.model import Json

HURRY = "hurry"
"""The word in an argument for which the sandbox's own rule gives a short deadline."""


@dataclass(frozen=True)
class Guide:
    """`hurry`: seconds of the short deadline, if the bot was given that rule. `restarts`: somebody restarts the bot."""

    hurry: int | None = None
    restarts: bool = False

    def steps(self) -> list[Json]:
        wait = f"{self.hurry} seconds" if self.hurry else "five minutes"
        restart = (
            "Before you decide, press **Restart the bot** at the top. It is really killed, and the old card still "
            "works: press **Accept** when it is back."
            if self.restarts
            else "One of the three needs approval, so all of them wait. Press **Accept**."
        )
        return [
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
                "then": "To the team it would just post; for everyone it asks. Press **Reject** and see what the "
                "answer makes of it.",
            },
            {
                "id": "batch",
                "title": "A batch, and a restart",
                "short": "Batch and restart",
                "text": 'do this in one batch: roll 2 dice, run the test approval tool with parameter "one of three", '
                "and tell the time",
                "then": restart,
            },
            {
                "id": "write",
                "title": "Edit what would be written",
                "short": "Edit a file write",
                "text": 'write "PORT=8080" to config/app.env',
                "then": "The card shows the change as a diff. Press **Edit…**, write another port, then **Accept**: "
                "what you wrote is what is written. To let two people decide, try `/signoff protect`.",
            },
            {
                "id": "timeout",
                "title": "Let one time out",
                "short": "Time out",
                "text": f'please run the test approval tool with parameter "{HURRY}"',
                "then": f"Press nothing. After {wait} the countdown ends, and no answer counts as no.",
            },
        ]
