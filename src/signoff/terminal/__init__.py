"""The same desk from a terminal: a prompt line, answers, cards as panels, and keys in place of buttons.

A front end like the bot: it imports neither the agent nor the store, and gets what it needs from `chat_app`. Whatever
others wrote reaches the screen through `inert` only, so that no escape sequence of theirs ever does.
"""

from signoff.terminal.ui import TerminalUI

__all__ = ["TerminalUI"]
