"""The files in deploy/: the image is built from the lock and runs without rights, and systemd accepts the unit."""

from __future__ import annotations

import asyncio
import fnmatch
import json
import re
import shlex
import shutil
import socket
import subprocess
import sys
import warnings
from typing import Any

import pytest
import yaml

from signoff.config.schema import Config
from signoff.core import FAREWELL
from signoff.settings import Settings, host_and_port
from signoff.telemetry.http import Probe, serving
from signoff.telemetry.measures import Measures
from tests.rigs.doc_pages import ROOT, read

Instruction = tuple[str, str]
SETTINGS = {str(field.validation_alias) for field in Settings.model_fields.values()}
LONGEST_END = Config().limits.shutdown_grace + FAREWELL


def instructions() -> list[Instruction]:
    """Return (word, rest) of each instruction of the Dockerfile, with continued lines joined."""
    text = re.sub(r"^#.*\n", "", read("deploy/Dockerfile"), flags=re.MULTILINE).replace("\\\n", " ")
    lines = [line.split(None, 1) for line in text.splitlines() if line.strip()]
    return [(word.upper(), " ".join(rest.split())) for word, rest in lines]


def stages() -> list[list[Instruction]]:
    split: list[list[Instruction]] = []
    for word, rest in instructions():
        if word == "FROM":
            split.append([])
        split[-1].append((word, rest))
    return split


def only(stage: list[Instruction], word: str) -> str:
    (rest,) = [rest for name, rest in stage if name == word]
    return rest


def copied() -> list[str]:
    """Return the files and folders that the image is built from."""
    lines = [rest.split() for word, rest in instructions() if word == "COPY" and not rest.startswith("--from")]
    return [name for *names, _ in lines for name in names]


def test_the_image_is_built_in_two_stages_from_the_same_python() -> None:
    build, final = stages()
    assert build[0][1] == f"{final[0][1]} AS build"
    version = re.fullmatch(r"python:(3\.\d+)-slim", final[0][1])
    assert version, "an image by its name only, without a registry's host"
    assert f"Programming Language :: Python :: {version[1]}" in read("pyproject.toml")


def test_the_image_installs_exactly_what_is_locked() -> None:
    installs = [rest for word, rest in stages()[0] if word == "RUN"]
    assert all("--no-deps" in line and "--no-cache-dir" in line for line in installs)
    assert "--requirement requirements.lock" in installs[0]
    assert installs[1].endswith("--no-build-isolation .")
    assert not re.search(r"pip install(?!.*--no-deps)", read("deploy/Dockerfile"))


def test_the_build_gets_what_it_copies_and_nothing_else() -> None:
    """`test_wheel` builds the program from the same four parts."""
    assert sorted(copied()) == ["LICENSE", "README.md", "pyproject.toml", "requirements.lock", "src"]
    lines = [line for line in read(".dockerignore").splitlines() if line and not line.startswith("#")]
    assert lines[0] == "*", "everything is left out unless it is named"
    let_in = {line.removeprefix("!") for line in lines if line.startswith("!")}
    assert let_in == set(copied())
    assert not any(fnmatch.fnmatch(name, pattern) for pattern in let_in for name in (".env", "data", "signoff.toml"))


def test_the_image_runs_without_rights_and_keeps_its_data_in_a_volume() -> None:
    final = stages()[1]
    words = [word for word, _ in final]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", only(final, "USER")), "a number, so that it can be checked not to be root"
    assert words.index("USER") > max(n for n, word in enumerate(words) if word == "RUN")
    home = only(final, "WORKDIR")
    assert json.loads(only(final, "VOLUME")) == [f"{home}/data"]
    assert Settings().database_url == "sqlite:///data/signoff.db", "which is in that volume"
    assert Config().tools.workspace.startswith("data/")
    assert only(final, "STOPSIGNAL") == "SIGTERM"
    assert json.loads(only(final, "ENTRYPOINT")) == ["signoff"]
    assert json.loads(only(final, "CMD")) == ["discord"]


def image_environment() -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in shlex.split(only(stages()[1], "ENV")))


def test_the_image_sets_only_settings_that_exist() -> None:
    assert {name for name in image_environment() if name.startswith("SIGNOFF_")} <= SETTINGS


@pytest.mark.slow  # it starts processes
@pytest.mark.parametrize(("connected", "code"), [(True, 0), (False, 1)])
async def test_the_health_check_of_the_image_asks_the_bot(connected: bool, code: int) -> None:
    host, port = host_and_port(image_environment()["SIGNOFF_HTTP"])
    check = only(stages()[1], "HEALTHCHECK").partition(" CMD ")[2]
    address = f"http://{host}:{port}/healthz"
    assert address in check
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        free = one.getsockname()[1]

    async def work() -> dict[str, int]:
        return {"open_requests": 0}

    _, *words = json.loads(check.replace(address, f"http://127.0.0.1:{free}/healthz"))
    async with serving(("127.0.0.1", free), Probe(lambda: connected, work, lambda: 0), Measures("1")):
        process = await asyncio.create_subprocess_exec(sys.executable, *words, stderr=asyncio.subprocess.DEVNULL)
        assert await process.wait() == code


def compose() -> dict[str, Any]:
    return yaml.safe_load(read("deploy/compose.yaml"))["services"]["signoff"]


def test_the_compose_file_builds_this_image_and_takes_rights_away() -> None:
    service = compose()
    assert (ROOT / "deploy" / service["build"]["context"]).resolve() == ROOT
    assert (ROOT / service["build"]["dockerfile"]).is_file()
    home = only(stages()[1], "WORKDIR")
    assert service["volumes"] == [f"data:{home}/data", f"../signoff.toml:{home}/signoff.toml:ro"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["restart"] == "unless-stopped"
    assert int(service["stop_grace_period"].removesuffix("s")) > LONGEST_END


def unit() -> dict[str, list[str]]:
    """Return key -> its values, in order."""
    found: dict[str, list[str]] = {}
    for line in read("deploy/signoff.service").splitlines():
        if "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


def test_the_unit_takes_rights_away_and_leaves_time_to_stop() -> None:
    keys = unit()
    for name, value in {
        "DynamicUser": "yes",
        "StateDirectory": "signoff",
        "WorkingDirectory": "/var/lib/signoff",
        "ProtectSystem": "strict",
        "ProtectHome": "yes",
        "NoNewPrivileges": "yes",
        "PrivateTmp": "yes",
        "CapabilityBoundingSet": "",
        "UMask": "0077",
        "Restart": "on-failure",
    }.items():
        assert keys[name] == [value]
    assert int(keys["TimeoutStopSec"][0]) > LONGEST_END
    assert keys["ExecStart"][0].endswith("/signoff discord")


@pytest.mark.slow  # it starts a process
def test_systemd_accepts_the_unit() -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        words = (
            "THE TEST OF THE SYSTEMD UNIT WAS LEFT OUT: there is no systemd-analyze (Debian: apt-get install systemd)"
        )
        warnings.warn(pytest.PytestWarning(words), stacklevel=1)
        pytest.skip(words)
    done = subprocess.run([program, "verify", ROOT / "deploy" / "signoff.service"], capture_output=True, text=True)
    # systemd may complain about other units of the machine.
    assert done.returncode == 0, done.stderr
    assert "signoff.service" not in done.stdout + done.stderr
