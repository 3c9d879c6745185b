"""Where the database is: from the setting's URL to a path. Opens nothing.

Never repeats more of the URL than its scheme: the rest may hold a password.
"""

from __future__ import annotations

from pathlib import Path

from signoff.errors import SettingsError, StoreUnavailable

_ACCEPTED = (
    "SIGNOFF_DATABASE_URL takes sqlite:///data/signoff.db (seen from the working folder)"
    " or sqlite:////full/path/signoff.db"
)


def sqlite_path(url: str) -> Path:
    """The file that the URL names, relative or absolute as given."""
    scheme, separator, rest = url.strip().partition("://")
    if not separator:
        raise SettingsError(f"The database URL has no scheme. {_ACCEPTED}.")
    kind = scheme.lower().partition("+")[0]
    if kind in ("postgresql", "postgres"):
        raise StoreUnavailable(f"PostgreSQL is not in this version. {_ACCEPTED}.")
    if scheme.lower() != "sqlite":
        raise SettingsError(f"The database URL begins with {scheme[:20]!r}, which is not known here. {_ACCEPTED}.")
    if not rest.startswith("/"):
        raise SettingsError(f"The database URL needs three slashes, or four for a full path. {_ACCEPTED}.")
    name = rest[1:]
    if not name or name.endswith("/"):
        raise SettingsError(f"The database URL names no file. {_ACCEPTED}.")
    if name == ":memory:":
        raise SettingsError(f"A database in memory would forget what was approved. {_ACCEPTED}.")
    if "?" in name or "\0" in name:
        raise SettingsError(f"The database URL takes a path and no options. {_ACCEPTED}.")
    return Path(name)
