"""Tools that only may run at the model's provider: their local fallback is offered to the model instead.

A tool at the provider runs past the gate. PydanticAI chooses between such a tool and its fallback by the profile of the
model, so requests go to a copy of the model whose profile has no such tools. Knows nothing of the policy.
"""

from __future__ import annotations

import copy
from dataclasses import replace

from pydantic_ai.models import Model, ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.native_tools import AbstractNativeTool
from pydantic_ai.profiles import ModelProfile, merge_profile

NO_TOOLS = ModelProfile(supported_native_tools=frozenset())


def only_local(request: ModelRequestContext) -> list[str]:
    """Take the provider's tools out of a request. Returns the names of those that have no local fallback."""
    parameters = request.model_request_parameters
    request.model_request_parameters = replace(parameters, native_tools=[])
    request.model = without_tools(request.model)
    return [tool.kind for tool in parameters.native_tools if not _has_fallback(tool, parameters)]


def without_tools(model: Model) -> Model:
    """Return a model that does the same, but says that its provider runs no tools."""
    if not isinstance(model, WrapperModel | FallbackModel) and not model.profile.get("supported_native_tools"):
        return model
    made = copy.copy(model)
    if isinstance(made, WrapperModel):
        made.wrapped = without_tools(made.wrapped)
    elif isinstance(made, FallbackModel):
        made.models = [without_tools(inner) for inner in made.models]
    else:
        vars(made)["profile"] = merge_profile(model.profile, NO_TOOLS)  # the place of a cached property
    return made


def _has_fallback(tool: AbstractNativeTool, parameters: ModelRequestParameters) -> bool:
    return tool.optional or any(local.unless_native == tool.unique_id for local in parameters.function_tools)
