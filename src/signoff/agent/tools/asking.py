"""`ask_user`: the agent asks people something, and they answer with a form on a card. It does nothing else.

The gate stops the call before this code matters: see `gate/asking_people.py`. The model reads the docstrings.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_ai import CallDeferred, Tool

from signoff.gate.declarations import ASKS_PEOPLE, OWN, only_asking

NAME = "ask_user"
_TYPES: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "number": {"type": "number"},
    "yes_no": {"type": "boolean"},
}


class Question(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    name: str = Field(min_length=1, max_length=45, description="A short name; the result has the answer under it.")
    question: str = Field(min_length=1, max_length=500, description="The question itself.")
    kind: Literal["text", "number", "yes_no", "choice", "choices"] = Field(
        default="text", description="The form of the answer. choice: one of the options; choices: any of them."
    )
    options: list[Annotated[str, Field(min_length=1, max_length=100)]] = Field(
        default_factory=list[str], max_length=25, description="For choice and choices: what people can choose."
    )
    optional: bool = Field(default=False, description="Whether people may leave it empty.")

    @model_validator(mode="after")
    def _options_fit(self) -> Question:
        if self.kind in ("choice", "choices") and len(set(self.options)) < max(2, len(self.options)):
            raise ValueError(f"{self.kind} needs at least two options, each once")
        if self.kind not in ("choice", "choices") and self.options:
            raise ValueError("only choice and choices have options")
        return self

    def schema_of_answer(self, *, alone: bool) -> dict[str, Any]:
        """Return the JSON schema of the answer. `alone`: the card shows the question above the form."""
        said: dict[str, Any] = {"title": self.name} | ({} if alone else {"description": self.question})
        if self.kind == "choice":
            return {"enum": self.options, **said}
        if self.kind == "choices":
            return {"type": "array", "items": {"enum": self.options}, "minItems": 0 if self.optional else 1, **said}
        return {**_TYPES[self.kind], **said}


def _differ(questions: list[Question]) -> list[Question]:
    if len({question.name for question in questions}) < len(questions):
        raise ValueError("the questions must have different names")
    return questions


@only_asking
def ask_user(
    questions: Annotated[list[Question], Field(min_length=1, max_length=10), AfterValidator(_differ)],
) -> dict[str, Any]:
    """Ask people something, and wait for their answer.

    Use it for what you need to know and cannot find out. Ask everything at once. The result has each answer under the
    name of its question, or says that nobody answered.

    Args:
        questions: One to ten questions.
    """
    alone = len(questions) == 1
    fields = {question.name: question.schema_of_answer(alone=alone) for question in questions}
    required = [question.name for question in questions if not question.optional]
    schema = {"type": "object", "properties": fields, "required": required}
    raise CallDeferred(metadata={"question": questions[0].question if alone else "", "schema": schema})


def asking_tool() -> Tool[Any]:
    metadata = {"approval": "never_require", "read_only": True, ASKS_PEOPLE: True, OWN: True}
    return Tool(ask_user, name=NAME, metadata=metadata)
