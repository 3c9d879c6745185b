"""Signoff: an AI agent for Discord that asks before it acts."""

__version__ = "0.1.0"
