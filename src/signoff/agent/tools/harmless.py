"""Tools to try Signoff with. They change nothing outside the conversation.

One always asks for approval, one asks for some of its arguments, and two never ask. The model reads the docstrings.
"""

from __future__ import annotations

import random
from datetime import datetime
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import Field
from pydantic_ai import ApprovalRequired, RunContext
from pydantic_ai.exceptions import ToolFailed


def test_discord_approval(test_parameter: str) -> str:
    """Test the approval of tool calls: a person must accept this call before it runs. It has no effect.

    Args:
        test_parameter: Any text; it comes back in the result.
    """
    return f"Test tool executed successfully with parameter: {test_parameter}"


def post_announcement(ctx: RunContext[object], text: str, audience: Literal["team", "everyone"] = "team") -> str:
    """Post an announcement in this conversation. A person must accept an announcement to everyone first.

    Args:
        text: What to announce.
        audience: Whom it is for.
    """
    if audience == "everyone" and not ctx.tool_call_approved:
        raise ApprovalRequired(
            metadata={
                "summary": f"Announce to everyone: {text}",
                "reason": "An announcement to everyone disturbs many.",
            }
        )
    return f"Announcement to {audience}: {text}"


def roll_dice(
    sides: Annotated[int, Field(ge=2, le=1000)] = 6, count: Annotated[int, Field(ge=1, le=100)] = 1
) -> dict[str, list[int] | int]:
    """Roll dice and return each die and the total.

    Args:
        sides: How many sides each die has.
        count: How many dice to roll.
    """
    dice = [random.randint(1, sides) for _ in range(count)]
    return {"dice": dice, "total": sum(dice)}


def current_time(timezone: str = "UTC") -> str:
    """Tell the current date and time.

    Args:
        timezone: A time zone of the IANA database, for example Europe/Berlin or UTC.
    """
    try:
        zone = ZoneInfo(timezone)
    except (KeyError, ValueError, OSError) as error:  # unknown, malformed, or the name of a folder
        raise ToolFailed(f'There is no time zone "{timezone}". Use a name such as Europe/Berlin or UTC.') from error
    return datetime.now(zone).isoformat(sep=" ", timespec="seconds")
