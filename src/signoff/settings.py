"""The settings from the environment: the token, the model, the database, the address of Discord.

`load_settings` builds them once, and callers pass them down; nothing is read at import. Knows nothing of the contents
of signoff.toml, of Discord or of PydanticAI. No error and no repr shows a value that may be a secret.
"""

from __future__ import annotations

import os
from io import StringIO
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator

from signoff.errors import SettingsError

DEMO_MODEL = "demo"
DISCORD_API_URL = "https://discord.com/api/v10"

LogFormat = Literal["text", "json"]
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


class Settings(BaseModel):
    """Every setting. The alias is the name in the environment. An empty value counts as not set."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        populate_by_name=True,
        str_strip_whitespace=True,
        hide_input_in_errors=True,
    )

    discord_token: SecretStr | None = Field(default=None, validation_alias="DISCORD_TOKEN")
    model: str = Field(default=DEMO_MODEL, validation_alias="SIGNOFF_MODEL")
    database_url: str = Field(default="sqlite:///data/signoff.db", validation_alias="SIGNOFF_DATABASE_URL", repr=False)
    config_path: Path = Field(default=Path("signoff.toml"), validation_alias="SIGNOFF_CONFIG")
    api_url: str = Field(default=DISCORD_API_URL, validation_alias="DISCORD_API_URL", repr=False)
    gateway_url: str | None = Field(default=None, validation_alias="DISCORD_GATEWAY_URL", repr=False)
    """None: the address that Discord's API gives out."""
    log_level: LogLevel = Field(default="INFO", validation_alias="SIGNOFF_LOG_LEVEL")
    log_format: LogFormat = Field(default="text", validation_alias="SIGNOFF_LOG_FORMAT")
    http: str | None = Field(default=None, validation_alias="SIGNOFF_HTTP")
    """HOST:PORT for /healthz and /metrics; None: neither is served."""

    @property
    def config_required(self) -> bool:
        """Whether SIGNOFF_CONFIG names the configuration file, which then must exist."""
        return "config_path" in self.model_fields_set

    def choose_model_name(self, configured: str | None) -> str:
        """Return the model of the environment, else that of signoff.toml, else the demo."""
        return self.model if "model" in self.model_fields_set else configured or self.model

    @model_validator(mode="before")
    @classmethod
    def _drop_empty(cls, values: Any) -> Any:
        given = cast("dict[str, Any]", values)
        return {name: value for name, value in given.items() if not (isinstance(value, str) and not value.strip())}

    @field_validator("discord_token")
    @classmethod
    def _check_token(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None:
            return None
        token = value.get_secret_value().strip()
        if any(c.isspace() or c in "\"'" for c in token):
            raise ValueError("contains a space or quotes; write the bare token from the Developer Portal's Bot page")
        return SecretStr(token)

    @field_validator("database_url")
    @classmethod
    def _check_database(cls, value: str) -> str:
        scheme, _, rest = value.partition("://")
        if scheme not in ("sqlite", "postgresql", "postgres"):
            # PostgreSQL passes here: the store says whether this version supports it.
            raise ValueError("is not a database address; write sqlite:///data/signoff.db")
        if scheme == "sqlite" and not rest.strip("/"):
            raise ValueError("names no file; write sqlite:///data/signoff.db")
        if scheme == "sqlite" and not rest.startswith("/"):
            raise ValueError("has two slashes where three are needed; write sqlite:///data/signoff.db")
        return value

    @field_validator("api_url")
    @classmethod
    def _check_api(cls, value: str) -> str:
        return _address(value, ("http://", "https://"), DISCORD_API_URL)

    @field_validator("gateway_url")
    @classmethod
    def _check_gateway(cls, value: str | None) -> str | None:
        return value and _address(value, ("ws://", "wss://"), "wss://gateway.discord.gg")

    @field_validator("log_level", mode="before")
    @classmethod
    def _check_level(cls, value: Any) -> Any:
        level = str(value).strip().upper()
        if level not in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"):
            raise ValueError("is not a log level; write DEBUG, INFO, WARNING, ERROR or CRITICAL")
        return level

    @field_validator("log_format", mode="before")
    @classmethod
    def _check_format(cls, value: Any) -> Any:
        form = str(value).strip().lower()
        if form not in ("text", "json"):
            raise ValueError("is not a log format; write text or json")
        return form

    @field_validator("http")
    @classmethod
    def _check_http(cls, value: str | None) -> str | None:
        if value is not None:
            host_and_port(value)
        return value


_NAMES = {str(field.validation_alias) for field in Settings.model_fields.values()}
"""Their names in the environment."""


def host_and_port(text: str) -> tuple[str, int]:
    """Read HOST:PORT. An IPv6 address has brackets: [::1]:8080."""
    host, colon, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not (colon and bare and port.isascii() and port.isdecimal() and 0 < int(port) < 65536):
        raise ValueError("is not an address to listen on; write HOST:PORT, for example 127.0.0.1:8080")
    if ":" in bare and bare == host:
        raise ValueError("has an IPv6 address without brackets; write for example [::1]:8080")
    return bare, int(port)


def load_settings(env_file: str | Path | None = ".env") -> Settings:
    """Read `.env` into the environment, where provider keys are looked up too, then build the settings."""
    if env_file is not None:
        _load_env_file(Path(env_file))
    # Names count in any case, and DISCORD_TOKEN wins over discord_token.
    given = {name.upper(): value for name, value in os.environ.items()} | dict(os.environ)
    try:
        return Settings.model_validate({name: given[name] for name in _NAMES & given.keys()})
    except ValidationError as error:
        raise SettingsError("\n".join(_line(e["loc"], e["msg"]) for e in error.errors())) from None


def _line(location: tuple[int | str, ...], message: str) -> str:
    return f"{'.'.join(str(part) for part in location)}: {message.removeprefix('Value error, ')}"


def _address(value: str, schemes: tuple[str, ...], example: str) -> str:
    if not value.startswith(schemes) or value in schemes:
        raise ValueError(f"does not start with {' or '.join(schemes)}; write for example {example}")
    return value.rstrip("/")


def _load_env_file(path: Path) -> None:
    """Set variables that are not set yet. An empty entry sets nothing: libraries take an empty key for a real one."""
    try:
        with path.open(encoding="utf-8-sig") as stream:
            text = stream.read()
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        reason = "is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror or "cannot be read"
        raise SettingsError(f"{path}: {reason}; write it as a text file with one NAME=value per line") from None
    from dotenv import dotenv_values  # here, because a bot in a container has no such file
    from dotenv.parser import parse_stream

    for binding in parse_stream(StringIO(text)):
        if binding.error:
            raise SettingsError(f"{path}:{binding.original.line}: this line cannot be read; write NAME=value")
    for name, value in dotenv_values(stream=StringIO(text)).items():
        if value:
            os.environ.setdefault(name, value)
