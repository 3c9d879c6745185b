"""Which of the agent's models have no known price. Limits in dollars do not hold for them."""

from __future__ import annotations

from typing import Any, cast

from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.usage import RequestUsage


def unpriced_models(model: object) -> list[str]:
    """Return the names of the models without a known price. A model that is only known at a run is not looked at."""
    if isinstance(model, FallbackModel):
        return [name for one in model.models for name in unpriced_models(one)]
    if not isinstance(model, Model):
        return []
    one = cast("Model[Any]", model)
    return [] if _has_price(one) else [one.model_name]


def _has_price(model: Model[Any]) -> bool:
    usage = RequestUsage(input_tokens=1, output_tokens=1)
    try:
        ModelResponse(
            [], usage=usage, model_name=model.model_name, provider_name=model.system, provider_url=model.base_url
        ).cost()
    except Exception:
        return False
    return True
