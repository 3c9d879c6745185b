"""Bot tokens in Discord's shape: the bot's id in base64, then two more parts, with dots between them.

Some libraries read the bot's id from the token, so the sandbox's default token contains one. Its last part is short and
readable, so that no person and no scanner for leaked secrets mistakes it for a real token.
"""

import base64

DEFAULT_BOT_ID = 1_100_000_000_000_000_001


def token_for(bot_id: int) -> str:
    """A token that names this bot."""
    return f"{base64.urlsafe_b64encode(str(bot_id).encode()).decode().rstrip('=')}.sandbox.not-a-secret"


def bot_id_in(token: str) -> int | None:
    """The bot's id in a token of Discord's shape; None for any other token."""
    first, *others = token.split(".")
    if len(others) != 2:
        return None
    try:
        digits = base64.urlsafe_b64decode(first + "=" * (-len(first) % 4)).decode("ascii")
    except ValueError:
        return None
    return int(digits) if digits.isdecimal() else None
