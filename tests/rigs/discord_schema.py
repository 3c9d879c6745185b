"""Discord's published OpenAPI document, if it is available, and a check of responses against it."""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

_ID = "urn:discord"


def document_path() -> Path | None:
    """Return the document's path: from the environment, or beside the repository. The repository never contains it."""
    given = os.environ.get("SIGNOFF_DISCORD_OPENAPI")
    beside = Path(__file__).parents[2].parent / "shared" / "discord-openapi.json"
    found = Path(given) if given else beside
    return found if found.is_file() else None


@cache
def _document() -> dict[str, Any]:
    path = document_path()
    assert path is not None
    document = json.loads(path.read_text(encoding="utf-8"))
    # The document says that a field error's code is an integer. Discord and its reference use names such as
    # BASE_TYPE_MAX_LENGTH, and clients print them.
    document["components"]["schemas"]["Error"]["properties"]["code"]["type"] = ["integer", "string"]
    return document


@cache
def _registry() -> Registry[Any]:
    resource = Resource.from_contents(_document(), default_specification=DRAFT202012)
    return Registry().with_resource(_ID, resource)


def knows(method: str, template: str) -> bool:
    return method.lower() in _document()["paths"].get(template, {})


def problems(method: str, template: str, status: int, body: Any) -> list[str]:
    """Return the errors of a response as readable lines. A status that the document does not list is an error."""
    responses = _document()["paths"][template][method.lower()]["responses"]
    wildcard = "4XX" if 400 <= status < 500 else ""
    found = responses.get(str(status)) or responses.get(wildcard)
    if found is None:
        return [f"status {status} is not documented, only {sorted(responses)}"]
    if "$ref" in found:
        found = _document()["components"]["responses"][found["$ref"].rpartition("/")[2]]
    schema = found.get("content", {}).get("application/json", {}).get("schema")
    if schema is None:
        return [] if body is None else [f"a body where none is documented: {body!r}"]
    return _errors(schema, body)


def problems_of_modal(body: Any) -> list[str]:
    """Return the errors of a form that a bot sends, as readable lines."""
    return _errors({"$ref": "#/components/schemas/ModalInteractionCallbackRequestData"}, body)


def _errors(schema: dict[str, Any], body: Any) -> list[str]:
    absolute = json.loads(json.dumps(schema).replace('"#/', f'"{_ID}#/'))
    validator = Draft202012Validator(absolute, registry=_registry())
    lines: list[str] = []
    for error in validator.iter_errors(body):
        where = "/".join(map(str, error.absolute_path))
        lines.append(f"{where or 'body'}: {error.message[:200]}")
        for inner in sorted(error.context or [], key=lambda e: -len(e.absolute_path))[:6]:
            lines.append(f"    {'/'.join(map(str, inner.absolute_path))}: {inner.message[:160]}")
    return lines
