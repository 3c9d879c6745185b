"""The only way to a tool: every call is judged, asked about, bound and recorded here."""
