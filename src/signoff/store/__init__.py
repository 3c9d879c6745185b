"""Rows: plain SQL behind one writer thread, where one transaction spans requests, turns, conversations and audit."""

from signoff.store.store import Store

__all__ = ["Store"]
