"""The terminal front end: a prompt line, replies, cards as panels, and keys instead of buttons.

Like the bot, it imports neither the agent nor the store; `commands/chat.py` builds it. Everything that is printed
passes through `sanitize.Inert`, so that no escape sequence from the model or a tool reaches the terminal.
"""

from signoff.terminal.ui import TerminalUI

__all__ = ["TerminalUI"]
