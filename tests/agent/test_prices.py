"""What a model response costs, and limits in dollars that do not hold because no price is known."""

from __future__ import annotations

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import RequestUsage

from signoff.agent.demo.model import demo_model
from signoff.agent.history import use_of
from signoff.agent.prices import unpriced_models
from signoff.agent.runner import Extras
from signoff.agent.setup import Brain
from signoff.approvals.policy import Policy
from signoff.commands.check import check_prices
from signoff.config.rule_checks import KnownTools, check_rules
from signoff.config.schema import parse_config
from signoff.errors import ConfigError

USAGE = RequestUsage(input_tokens=1_000_000, output_tokens=1000)


def test_a_response_of_a_known_model_has_its_cost() -> None:
    response = ModelResponse([TextPart("hi")], usage=USAGE, model_name="gpt-4o-mini", provider_name="openai")
    use = use_of(response, 5.0)
    assert (use.model, use.input_tokens, use.output_tokens, use.at) == ("gpt-4o-mini", 1_000_000, 1000, 5.0)
    assert use.cost == pytest.approx(0.1506)


@pytest.mark.parametrize("name", ["no-such-model", None])
def test_a_response_of_an_unknown_model_has_only_its_tokens(name: str | None) -> None:
    use = use_of(ModelResponse([TextPart("hi")], usage=USAGE, model_name=name, provider_name="openai"), 5.0)
    assert (use.input_tokens, use.cost) == (1_000_000, None)


def test_a_response_without_reported_usage_has_no_cost() -> None:
    """Zero tokens are not a response for nothing."""
    use = use_of(ModelResponse([TextPart("hi")], model_name="gpt-4o-mini", provider_name="openai"), 5.0)
    assert (use.input_tokens, use.cost) == (0, None)


def test_models_without_a_price_are_named_also_behind_others() -> None:
    known = OpenAIChatModel("gpt-4o-mini", provider=OpenAIProvider(api_key="none"))
    assert unpriced_models(known) == []
    assert unpriced_models(FallbackModel(known, demo_model())) == ["demo"]


def test_a_limit_on_the_cost_of_a_model_without_a_price_is_found() -> None:
    config = parse_config("[budgets]\ncost_per_thread = 1.5\n")
    (finding,) = check_prices(config, Brain.build(config, "demo"))
    assert "the price of demo is not known" in str(finding)
    imported = Brain(Agent(), Policy(), (), extras=Extras(model=demo_model(), own_output=True))
    assert check_prices(config, imported) == [finding], "the model of an imported agent without one of its own"
    tokens = parse_config("[budgets]\ntokens_per_thread = 15\n")
    assert check_prices(tokens, Brain.build(tokens, "demo")) == []


def test_a_rule_may_name_spend_more_only_where_there_is_a_budget() -> None:
    rule = '[[rules]]\ntool = "spend_more"\nverdict = "ask"\nwhen = { budget = "server" }\n'
    nothing = KnownTools(())
    assert check_rules(parse_config(f"[budgets]\ntokens_per_thread = 15\n{rule}"), nothing) == []
    assert 'no tool is called "spend_more"' in str(check_rules(parse_config(rule), nothing)[0])
    allowing = rule.replace('"ask"', '"allow"')
    (finding,) = check_rules(parse_config(f"[budgets]\ntokens_per_thread = 15\n{allowing}"), nothing)
    assert "people are asked about every overage" in str(finding)
    wrong = rule.replace('"server"', '"galaxy"')
    assert "budget is never" in str(
        check_rules(parse_config(f"[budgets]\ntokens_per_thread = 15\n{wrong}"), nothing)[0]
    )


def test_a_wrong_time_zone_is_refused_with_an_example() -> None:
    with pytest.raises(ConfigError, match='timezone is "Mars/Base"; write a time zone in quotes'):
        parse_config('[budgets]\ntimezone = "Mars/Base"\n')
