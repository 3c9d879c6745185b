"""A Discord server as data: people, roles, channels, acts, and who may do what. Knows nothing of discord.py."""
