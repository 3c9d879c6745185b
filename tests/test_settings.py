"""Settings: values from the environment and .env, refused values, and that no secret is ever shown."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from signoff.errors import SettingsError
from signoff.settings import Settings, host_and_port, load_settings

NAMES = (
    "DISCORD_TOKEN",
    "SIGNOFF_MODEL",
    "SIGNOFF_DATABASE_URL",
    "SIGNOFF_CONFIG",
    "DISCORD_API_URL",
    "DISCORD_GATEWAY_URL",
    "SIGNOFF_LOG_LEVEL",
    "SIGNOFF_LOG_FORMAT",
    "SIGNOFF_HTTP",
    "SOME_PROVIDER_KEY",
)
SECRET = "MTk4NjIy.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in NAMES:
        # setenv comes first, so that the variables that load_settings sets are removed after the test
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def test_everything_has_a_default() -> None:
    settings = load_settings()
    assert settings.discord_token is None
    assert settings.model == "demo"
    assert settings.database_url == "sqlite:///data/signoff.db"
    assert settings.config_path == Path("signoff.toml")
    assert not settings.config_required
    assert settings.api_url == "https://discord.com/api/v10"
    assert settings.gateway_url is None
    assert settings.log_level == "INFO"


def test_dotenv_fills_what_is_not_set_and_reaches_provider_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    Path(".env").write_text("SIGNOFF_MODEL=openai-chat:x\nSIGNOFF_LOG_LEVEL=debug\nSOME_PROVIDER_KEY=k\n")
    monkeypatch.setenv("SIGNOFF_MODEL", "anthropic:y")
    settings = load_settings()
    assert settings.model == "anthropic:y"
    assert settings.log_level == "DEBUG"
    assert os.environ["SOME_PROVIDER_KEY"] == "k"


def test_empty_entries_count_as_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    Path(".env").write_text("DISCORD_TOKEN=\nSIGNOFF_CONFIG=\nSOME_PROVIDER_KEY=\n")
    monkeypatch.setenv("SIGNOFF_DATABASE_URL", "  ")
    settings = load_settings()
    assert settings.discord_token is None
    assert not settings.config_required
    assert settings.database_url == "sqlite:///data/signoff.db"
    assert "SOME_PROVIDER_KEY" not in os.environ


def test_unknown_names_are_ignored() -> None:
    Path(".env").write_text("SIGNOFF_NO_SUCH_THING=1\nexport SIGNOFF_MODEL='m:n'  # a comment\n")
    assert load_settings().model == "m:n"
    del os.environ["SIGNOFF_NO_SUCH_THING"]


def test_names_count_in_any_case_and_only_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("signoff_model", "m:n")
    monkeypatch.setenv("HTTP", "not ours")
    monkeypatch.setenv("log_level", "not ours either")
    settings = load_settings()
    assert (settings.model, settings.http, settings.log_level) == ("m:n", None, "INFO")
    monkeypatch.setenv("SIGNOFF_MODEL", "this:wins")
    assert load_settings().model == "this:wins"


def test_a_named_config_file_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGNOFF_CONFIG", "other.toml")
    settings = load_settings()
    assert settings.config_path == Path("other.toml")
    assert settings.config_required


@pytest.mark.parametrize(
    ("environment", "configured", "expected"),
    [({}, None, "demo"), ({}, "a:b", "a:b"), ({"SIGNOFF_MODEL": "c:d"}, "a:b", "c:d")],
)
def test_the_environment_chooses_the_model_before_the_file(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], configured: str | None, expected: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert load_settings().choose_model_name(configured) == expected


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("DISCORD_TOKEN", f"Bot {SECRET}", "write the bare token"),
        ("DISCORD_TOKEN", f'"{SECRET}"', "write the bare token"),
        ("SIGNOFF_DATABASE_URL", "mysql://me:hunter2@host/db", "write sqlite:///data/signoff.db"),
        ("SIGNOFF_DATABASE_URL", "sqlite://x.db", "write sqlite:///data/signoff.db"),
        ("SIGNOFF_DATABASE_URL", "sqlite:///", "names no file"),
        ("DISCORD_API_URL", "discord.com", "write for example https://"),
        ("DISCORD_API_URL", "https://", "write for example https://"),
        ("DISCORD_GATEWAY_URL", "https://gateway.discord.gg", "write for example wss://"),
        ("SIGNOFF_LOG_LEVEL", "loud", "write DEBUG, INFO, WARNING, ERROR or CRITICAL"),
    ],
)
def test_a_bad_value_is_one_line_that_says_what_to_write(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    message = str(caught.value)
    assert message.startswith(f"{name}: ")
    assert words in message
    assert "\n" not in message
    assert SECRET not in message
    assert "hunter2" not in message
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_every_bad_value_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGNOFF_LOG_LEVEL", "loud")
    monkeypatch.setenv("DISCORD_API_URL", "x")
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert len(str(caught.value).splitlines()) == 2


def test_secrets_are_in_no_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISCORD_TOKEN", f" {SECRET} ")
    monkeypatch.setenv("SIGNOFF_DATABASE_URL", "postgresql://me:hunter2@host/db")
    settings = load_settings()
    assert settings.discord_token is not None
    assert settings.discord_token.get_secret_value() == SECRET
    for text in (repr(settings), str(settings), f"{settings.model_dump(mode='python')['discord_token']}"):
        assert SECRET not in text
        assert "hunter2" not in text


def test_a_refused_value_is_not_shown_even_without_our_own_words() -> None:
    with pytest.raises(ValidationError) as caught:
        Settings(database_url="mysql://me:hunter2@host/db")
    assert "hunter2" not in str(caught.value)


def test_settings_cannot_be_changed() -> None:
    settings = load_settings()
    with pytest.raises(ValueError):
        settings.model = "other"  # pyright: ignore[reportAttributeAccessIssue]


def test_trailing_slashes_of_addresses_are_dropped() -> None:
    settings = Settings(api_url="http://localhost:1/api/v10/", gateway_url="ws://localhost:1/")
    assert (settings.api_url, settings.gateway_url) == ("http://localhost:1/api/v10", "ws://localhost:1")


def test_a_broken_dotenv_line_is_named() -> None:
    Path(".env").write_text("SIGNOFF_MODEL=demo\nDISCORD_TOKEN 'x\n")
    with pytest.raises(SettingsError, match=r"^\.env:2: this line cannot be read; write NAME=value$"):
        load_settings()


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_an_unreadable_dotenv_is_one_line(content: bytes | None) -> None:
    if content is None:
        Path(".env").mkdir()
    else:
        Path(".env").write_bytes(content)
    with pytest.raises(SettingsError, match=r"^\.env: .*write it as a text file"):
        load_settings()


def test_a_byte_order_mark_does_not_hide_the_first_entry() -> None:
    Path(".env").write_bytes(b"\xef\xbb\xbfSIGNOFF_MODEL=a:b\n")
    assert load_settings().model == "a:b"


@pytest.mark.slow
def test_nothing_is_read_at_import(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("SIGNOFF_MODEL=from-the-file\n")
    code = "import os, signoff.settings, signoff.config.schema; print(os.environ.get('SIGNOFF_MODEL'))"
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "None"


def test_every_setting_is_in_the_example() -> None:
    example = (Path(__file__).parent.parent / ".env.example").read_text()
    for field in Settings.model_fields.values():
        assert str(field.validation_alias) in example


@pytest.mark.parametrize(
    ("written", "read"),
    [("127.0.0.1:8080", ("127.0.0.1", 8080)), ("localhost:1", ("localhost", 1)), ("[::1]:65535", ("::1", 65535))],
)
def test_an_address_to_listen_on_is_a_host_and_a_port(written: str, read: tuple[str, int]) -> None:
    assert Settings(http=written).http == written
    assert host_and_port(written) == read


@pytest.mark.parametrize(
    "written", ["8080", ":8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "a:0", "a:65536", "::1:80"]
)
def test_a_wrong_address_to_listen_on_says_what_to_write(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGNOFF_HTTP", written)
    with pytest.raises(SettingsError, match=r"SIGNOFF_HTTP: .*write"):
        load_settings(None)


def test_the_log_format_is_text_or_json(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings(None).log_format == "text"
    monkeypatch.setenv("SIGNOFF_LOG_FORMAT", " JSON ")
    assert load_settings(None).log_format == "json"
    monkeypatch.setenv("SIGNOFF_LOG_FORMAT", "xml")
    with pytest.raises(SettingsError, match="SIGNOFF_LOG_FORMAT: is not a log format; write text or json"):
        load_settings(None)
