"""The heart: what asks, who decides, and how a decision is taken once. Plain Python, no framework, no I/O."""
