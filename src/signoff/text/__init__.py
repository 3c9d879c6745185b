"""Pure functions on text, below every other package: hidden characters, look-alikes and secrets."""
