"""The offline demo model: no key, no network."""
