"""The agent: its tools, plugins, MCP servers and model, and the runner that advances a turn."""
