"""Who sits at the terminal. One id, so that the next session finds the same workspace and the same grants."""

from __future__ import annotations

import getpass

from signoff.approvals.model import Actor

PERSON = "terminal"


def whoever_sits_here(server: str) -> Actor:
    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):  # an account without a name, as in some containers
        name = "you"
    return Actor(PERSON, name, server)
