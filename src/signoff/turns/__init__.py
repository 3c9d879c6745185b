"""What a mention becomes: a turn, driven to its end across rounds of approval and restarts."""
