"""Choosing a model by name: the model that is built, and the one line if it cannot be."""

from __future__ import annotations

import os
import socket
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel

from signoff.agent.models import choose_model
from signoff.errors import SettingsError


@pytest.fixture(autouse=True)
def without_keys_or_network(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.endswith(("_API_KEY", "_BASE_URL", "_TOKEN")):
            monkeypatch.delenv(name)

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("choosing a model must not use the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def refusal(name: str) -> str:
    with pytest.raises(SettingsError) as caught:
        choose_model(name)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert "\n" not in str(caught.value)
    return str(caught.value)


async def test_demo_answers_offline() -> None:
    model = choose_model(" demo ")
    assert model.model_name == "demo"
    assert (await Agent(model).run("help")).output.startswith("I am the offline demo model")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("openai-chat:gpt-5-mini", "OPENAI_API_KEY"),
        ("openai:gpt-5-mini", "OPENAI_API_KEY"),
        ("anthropic:claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
    ],
)
def test_a_model_needs_its_key_and_then_is_built(monkeypatch: pytest.MonkeyPatch, name: str, key: str) -> None:
    assert refusal(name) == f'model "{name}" needs {key}; write {key}=... into .env, or set SIGNOFF_MODEL=demo'
    monkeypatch.setenv(key, "not-a-real-key")
    model = choose_model(name)
    assert isinstance(model, Model)
    assert model.model_name == name.split(":")[1]


@pytest.mark.slow
def test_any_server_of_the_chat_protocol_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    model = choose_model("openai-chat:anything")
    assert model.base_url is not None
    assert model.base_url.startswith("http://127.0.0.1:1/v1")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("gpt-4o", "write openai-chat:gpt-4o"),
        ("antropic:my-model", "write anthropic:my-model"),
        ("dmeo", "write demo"),
        ("nonsense", "write demo or PROVIDER:NAME, for example anthropic:"),
        ("zzz:nonsense", "write demo or PROVIDER:NAME, for example anthropic:"),
        ("", "write demo or PROVIDER:NAME, for example anthropic:"),
    ],
)
def test_an_unknown_name_is_answered_with_what_to_write(name: str, advice: str) -> None:
    message = refusal(name)
    assert message.startswith(f'there is no model "{name}"; ')
    assert advice in message


def test_a_provider_alone_is_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x")
    assert "names a provider but no model" in refusal("anthropic:")


def test_a_package_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Model:
        raise ImportError(
            "Please install the `groq` package to use the Groq provider, "
            'you can use the `groq` optional group — `pip install "pydantic-ai-slim[groq]"`'
        )

    monkeypatch.setattr("signoff.agent.models.infer_model", missing)
    assert refusal("groq:x").endswith('needs a package that is not installed; run pip install "pydantic-ai-slim[groq]"')


def test_whatever_a_client_library_raises_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(name: str) -> Model:
        raise RuntimeError("no credentials\nanywhere")

    monkeypatch.setattr("signoff.agent.models.infer_model", explode)
    assert refusal("google-cloud:x").startswith('model "google-cloud:x" cannot be used: no credentials anywhere; ')


async def test_several_names_are_models_that_stand_in_for_each_other() -> None:
    model = choose_model("demo, demo")
    assert isinstance(model, FallbackModel)
    assert [one.model_name for one in model.models] == ["demo", "demo"]


def test_each_of_several_names_is_checked() -> None:
    assert refusal("demo, dmeo") == 'there is no model "dmeo"; write demo'
    assert refusal("demo,") == refusal("")
