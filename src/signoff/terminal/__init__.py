"""The terminal front end: a prompt line, replies, cards as panels, and keys instead of buttons.

Like the bot, it imports neither the agent nor the store; `commands/chat.py` builds it. Everything that is printed
passes `sanitize.Inert`, so that nobody else's escape sequence reaches the terminal.
"""

from signoff.terminal.ui import TerminalUI

__all__ = ["TerminalUI"]
