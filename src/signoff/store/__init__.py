"""The database: plain SQL on one writer thread. One transaction can cover requests, turns, conversations and audit."""

from signoff.store.store import Store

__all__ = ["Store"]
