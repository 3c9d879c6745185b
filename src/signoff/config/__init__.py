"""signoff.toml: what an operator may write into it, and how mistakes in it are reported."""
