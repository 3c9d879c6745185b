"""Turns a model's name, or several, into a PydanticAI model, or into an error that says what to write instead.

Makes no request, so a wrong key or a model that the provider does not have is noticed only at the first request.
"""

from __future__ import annotations

import difflib
import re

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model, known_model_names, parse_model_id
from pydantic_ai.models.fallback import FallbackModel

from signoff.errors import SettingsError
from signoff.settings import DEMO_MODEL

_EXAMPLE = "anthropic:claude-sonnet-4-5"


def choose_model(names: str) -> Model:
    """Return the model for `demo` or for any name that PydanticAI supports. Raises SettingsError.

    If there are several names, separated by commas, each further model is asked if those before it fail.
    """
    first, *others = [_one_model(name.strip()) for name in names.split(",")]
    return FallbackModel(first, *others) if others else first


def _one_model(name: str) -> Model:
    if name == DEMO_MODEL:
        from signoff.agent.demo.model import demo_model  # here, because most bots have a real model

        return demo_model()
    if name.endswith(":"):
        raise SettingsError(f'model "{name}" names a provider but no model; write for example {_EXAMPLE}')
    try:
        return infer_model(name)
    except ImportError as error:
        raise SettingsError(_missing_package(name, str(error))) from None
    except UserError as error:
        raise SettingsError(_refused(name, str(error))) from None
    except Exception as error:  # a provider's client library may raise anything
        reason = " ".join(str(error).split()) or type(error).__name__
        raise SettingsError(f'model "{name}" cannot be used: {reason}; write another or {DEMO_MODEL}') from None


def _missing_package(name: str, message: str) -> str:
    command = re.search(r"""pip install ["'][^"']+["']""", message)
    todo = f"run {command[0]}" if command else f"install what this names: {' '.join(message.split())}"
    return f'model "{name}" needs a package that is not installed; {todo}'


def _refused(name: str, message: str) -> str:
    if message.startswith("Unknown model"):
        return f'there is no model "{name}"; write {_nearest(name, message)}'
    # Take only the variables, which PydanticAI puts in backticks: the Python code beside them does not help here.
    if variables := re.findall(r"`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)`", message):
        names = " or ".join(dict.fromkeys(variables))
        return f'model "{name}" needs {names}; write {variables[0]}=... into .env, or set SIGNOFF_MODEL={DEMO_MODEL}'
    return f'model "{name}" cannot be used: {" ".join(message.split())}'


def _nearest(name: str, message: str) -> str:
    if suggested := re.search(r"Did you mean '([^']+)'", message):
        return suggested[1]
    provider, model = parse_model_id(name)
    known = sorted({known.split(":")[0] for known in known_model_names() if ":" in known})
    if provider and (near := difflib.get_close_matches(provider, known, n=1)):
        return f"{near[0]}:{model}"
    if difflib.get_close_matches(name, [DEMO_MODEL]):
        return DEMO_MODEL
    return f"{DEMO_MODEL} or PROVIDER:NAME, for example {_EXAMPLE}"
