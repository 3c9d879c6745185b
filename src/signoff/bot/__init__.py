"""Signoff in Discord: the only package that imports discord."""
