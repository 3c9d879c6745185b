"""The file signoff.toml: its tables and keys, and the messages about mistakes in it."""
