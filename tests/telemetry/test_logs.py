"""The log as text and as JSON: one record is one line, secrets are masked, and other libraries write into it, too."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from signoff.telemetry.logs import Format, set_up_log, take_over_loggers
from signoff.text.log_lines import note
from signoff.text.secrets.masker import Masker, MaskingFilter
from tests.rigs.nursery import PIPE, execute

SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"


@pytest.fixture(autouse=True)
def the_log_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    logging.captureWarnings(False)
    root.handlers[:], root.level = handlers, level


def written(form: Format, level: str = "INFO") -> io.StringIO:
    output = io.StringIO()
    handler = logging.StreamHandler(output)
    handler.addFilter(MaskingFilter(Masker(b"key" * 11)))
    set_up_log(level, form, [handler])
    return output


def fail() -> None:
    try:
        raise ValueError(f"a password={SECRET}\n2026-01-01 INFO signoff.turns: forged")
    except ValueError as error:
        note(logging.getLogger("signoff.turns"), "turn_ended", {"turn": "1-2"}, level=logging.ERROR, error=error)


def test_a_failure_is_one_line_of_json_with_its_traceback() -> None:
    output = written("json")
    fail()
    (line,) = output.getvalue().splitlines()
    said = json.loads(line)
    assert (said["level"], said["logger"], said["event"], said["turn"]) == (
        "ERROR",
        "signoff.turns",
        "turn_ended",
        "1-2",
    )
    assert said["traceback"].startswith("Traceback")
    assert "ValueError" in said["traceback"]
    assert SECRET not in line


def test_a_failure_is_one_line_of_text_and_an_indented_traceback() -> None:
    output = written("text")
    fail()
    first, *rest = output.getvalue().splitlines()
    assert first.endswith("ERROR signoff.turns: turn_ended turn=1-2")
    assert rest
    assert all(line.startswith("  ") for line in rest), "so nothing in it can pass for a line of the log"
    assert SECRET not in output.getvalue()


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_message_cannot_forge_a_line(form: Format) -> None:
    output = written(form)
    logging.getLogger("signoff").warning("from %s", "Max\n2026-01-01 00:00:00,000 INFO signoff: forged\r\x1b[2K\u2028x")
    (line,) = output.getvalue().splitlines()
    assert "\x1b" not in line


def test_fields_are_words_that_programs_can_read() -> None:
    output = written("text")
    fields = {"request": "b340fe9b636126ec", "tool": "a tool", "held": False, "waited": 1.23456, "by": None, "said": ""}
    note(logging.getLogger("signoff.approvals"), "decision", fields)
    assert output.getvalue().endswith(
        'decision request=b340fe9b636126ec tool="a tool" held=false waited=1.235 said=""\n'
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [(12, "12"), (True, "true"), (0.5, "0.5"), (float("inf"), "Infinity"), ("§", '"§"'), ("größe_1", "größe_1")],
)
def test_a_field_is_written_as_json_or_as_a_bare_word(value: Any, text: str) -> None:
    output = written("text")
    note(logging.getLogger("signoff.approvals"), "decision", {"field": value})
    assert output.getvalue().endswith(f"decision field={text}\n")


def test_an_event_below_the_level_is_not_written() -> None:
    output = written("text", "WARNING")
    note(logging.getLogger("signoff.approvals"), "decision", {"field": 1})
    note(logging.getLogger("signoff.approvals"), "decision", {"field": 2}, level=logging.ERROR)
    assert output.getvalue().endswith(" ERROR signoff.approvals: decision field=2\n")
    assert output.getvalue().count("\n") == 1


def test_a_secret_in_a_field_is_masked_in_every_line_and_other_values_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signoff.text.secrets.masker.MOST_HARMLESS", 2)
    output = written("text")
    for number in range(4):
        fields = {"request": f"b340fe9b636126e{number}", "server": "900000000000000001", "tool": SECRET}
        note(logging.getLogger("signoff.approvals"), "decision", fields)
    lines = output.getvalue().splitlines()
    assert [f"decision request=b340fe9b636126e{n} server=900000000000000001 tool=" in lines[n] for n in range(4)] == [
        True
    ] * 4
    assert SECRET not in output.getvalue()


def test_a_pattern_of_the_operator_may_name_a_field_or_a_number() -> None:
    output = io.StringIO()
    handler = logging.StreamHandler(output)
    handler.addFilter(MaskingFilter(Masker(b"key" * 11, patterns=[r"person=(\d+)", r"waited=([\d.]+)"])))
    set_up_log("INFO", "text", [handler])
    note(logging.getLogger("signoff.approvals"), "decision", {"person": "100000000000000002", "waited": 12.5})
    assert "decision person=‹masked" in output.getvalue()
    assert "12.5" not in output.getvalue()
    assert "100000000000000002" not in output.getvalue()


def test_fields_are_keys_in_json_and_are_masked() -> None:
    output = written("json")
    fields = {"request": "b340fe9b636126ec", "tool": SECRET, "waited": 1.5, "by": None}
    note(logging.getLogger("signoff.approvals"), "decision", fields)
    said = json.loads(output.getvalue())
    assert (said["request"], said["waited"]) == ("b340fe9b636126ec", 1.5)
    assert "by" not in said
    assert SECRET not in output.getvalue()


@pytest.mark.parametrize("name", ["httpx", "httpx2", "discord.http", "aiohttp.access", "mcp.client.x", "openai._base"])
@pytest.mark.parametrize(("level", "shown"), [("INFO", False), ("DEBUG", True)])
def test_the_lines_of_http_clients_are_for_debugging(name: str, level: str, shown: bool) -> None:
    output = written("text", level)
    logging.getLogger(name).info("HTTP Request: POST")
    assert ("HTTP Request" in output.getvalue()) is shown
    logging.getLogger(name).warning("refused")
    assert "refused" in output.getvalue()


def test_a_quiet_level_is_quiet_for_http_clients_too() -> None:
    output = written("text", "ERROR")
    logging.getLogger("httpx").warning("refused")
    assert output.getvalue() == ""


def test_a_library_that_prints_by_itself_writes_into_the_log_instead() -> None:
    output = written("json")
    logger = logging.getLogger("fastmcp")
    own: list[Any] = []
    handler = logging.StreamHandler(io.StringIO())
    handler.emit = own.append  # type: ignore[method-assign]
    logger.addHandler(handler)
    logger.propagate = False
    take_over_loggers()
    logging.getLogger("fastmcp.client").warning("something")
    assert own == []
    assert json.loads(output.getvalue())["message"] == "something"


@pytest.mark.long
@pytest.mark.slow  # it starts a process, because importing the library changes the logger for good
async def test_the_mcp_library_keeps_no_output_of_its_own(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import logging, pydantic_ai.mcp, fastmcp.client.transports\n"
        "from signoff.telemetry.logs import set_up_log, take_over_loggers\n"
        "assert logging.getLogger('fastmcp').handlers, 'this test would prove nothing'\n"
        "set_up_log('INFO', 'json'); take_over_loggers()\n"
        "logging.getLogger('fastmcp.x').warning('one'); logging.getLogger('fastmcp.x').info('two')\n"
    )
    process = await execute(str(program), stderr=PIPE)
    _, errors = await process.communicate()
    assert process.returncode == 0
    (line,) = errors.decode().splitlines()
    assert json.loads(line)["message"] == "one"
