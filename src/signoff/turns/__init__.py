"""Turns: a mention becomes a turn, which is driven to its end across rounds of approval and restarts."""
