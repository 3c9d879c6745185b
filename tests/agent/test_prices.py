"""What a model response costs, and models whose price nobody knows."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import RequestUsage

from signoff.agent.history import use_of
from signoff.agent.runner import Extras
from signoff.agent.setup import Brain
from signoff.approvals.policy import Policy
from signoff.commands.check import check_prices
from signoff.config.schema import Config

LIMITED = Config.model_validate({"budgets": {"cost_per_thread": 1.0}})
PRICED = OpenAIChatModel("gpt-4o", provider=OpenAIProvider(api_key="none"))


def response(model: str | None, **usage: int) -> ModelResponse:
    used = RequestUsage(**usage)
    return ModelResponse([TextPart("hi")], model_name=model, provider_name="openai", usage=used)


@pytest.mark.parametrize(
    ("made", "cost"),
    [
        (response("gpt-4o", input_tokens=1_000_000), 2.5),
        (response("no-such-model", input_tokens=1_000_000), None),
        (response(None, input_tokens=1_000_000), None),
        (response("gpt-4o"), None),
    ],
)
def test_the_cost_of_a_response_is_known_only_with_a_price_and_reported_usage(made: Any, cost: Any) -> None:
    assert use_of(made, 0.0).cost == cost


@pytest.mark.parametrize("model", [PRICED, TestModel(), FallbackModel(PRICED, TestModel())])
@pytest.mark.parametrize("own", [True, False])
def test_a_limit_on_the_cost_of_a_model_without_a_price_is_pointed_out(model: Model, own: bool) -> None:
    """Also if the model is that of an imported agent without one of its own."""
    extras = Extras() if own else Extras(model=model, own_output=True)
    brain = Brain(Agent(model if own else None), Policy(), (), extras=extras)
    assert [finding.problem for finding in check_prices(LIMITED, brain)] == [
        "[budgets] limits the cost, and the price of test is not known, so that limit never applies"
    ] * (model is not PRICED)
    assert check_prices(Config(), brain) == []
