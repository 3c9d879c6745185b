"""Signoff in Discord: the only room that imports discord."""
