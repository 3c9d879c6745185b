"""The only room that imports pydantic_ai: the gate over every tool, and the runner that advances a turn."""
