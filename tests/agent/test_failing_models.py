"""A model whose provider fails for a moment is asked again, and nothing that has run runs again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from pydantic_ai import Tool
from pydantic_ai.exceptions import (
    FallbackExceptionGroup,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelOverloadedError,
    ModelQuotaExceededError,
    ModelRateLimitError,
)
from pydantic_ai.messages import ModelMessage, ModelResponse

from signoff.agent import failures
from signoff.agent.failures import LONGEST_DELAY, RETRY_DELAYS, retry_delay
from signoff.agent.runner import Limits
from signoff.errors import TurnFailed
from signoff.turns.model import Finished
from tests.rigs.gate_bench import Bench
from tests.rigs.scripted import Answer, Script, calls


@dataclass
class Failing(Script):
    """A script in which an exception stands for a request that fails."""

    failures: list[tuple[int, Exception]] = field(default_factory=list[tuple[int, Exception]])
    """Number of a request -> its error; the requests that fail are counted, too."""
    requests: int = 0

    def next(self, messages: list[ModelMessage]) -> ModelResponse:
        self.requests += 1
        for number, error in self.failures:
            if number == self.requests:
                raise error
        return super().next(messages)


def busy(retry_after: float | None = None) -> ModelAPIError:
    return ModelOverloadedError("m", "overloaded", retry_after=retry_after)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Failing]]:
    monkeypatch.setattr(failures, "RETRY_DELAYS", (0.0,))

    def install(*numbers: int, error: Exception | None = None) -> list[Failing]:
        made: list[Failing] = []

        def script(answers: list[Answer]) -> Failing:
            made.append(Failing(answers, failures=[(number, error or busy()) for number in numbers]))
            return made[-1]

        monkeypatch.setattr("tests.rigs.gate_bench.Script", script)
        return made

    return install


async def test_the_run_goes_on_and_no_tool_runs_twice(bench: Bench, failing: Callable[..., list[Failing]]) -> None:
    made = failing(1, 3, 4)
    step = await bench.start([calls(("note", {"value": "once"})), "done"], [Tool(bench.box.tool("note"))])
    assert isinstance(step, Finished)
    assert step.text.strip() == "done"
    assert bench.box.ran == [("note", "once", None)]
    assert made[0].requests == 5
    assert len(made[0].asked) == 2, "the response that came was not asked for again"


async def test_after_the_last_attempt_the_asker_is_told(bench: Bench, failing: Callable[..., list[Failing]]) -> None:
    made = failing(*range(1, 20))
    with pytest.raises(TurnFailed, match="The model could not answer"):
        await bench.start(["done"], [], limits=Limits(model_retries=2))
    assert made[0].requests == 3


@pytest.mark.parametrize(
    "error",
    [ModelAuthenticationError("m", "wrong key"), ModelQuotaExceededError("m", "nothing left"), ValueError("ours")],
)
async def test_an_error_that_would_come_again_is_not_tried_again(
    bench: Bench, failing: Callable[..., list[Failing]], error: Exception
) -> None:
    made = failing(*range(1, 20), error=error)
    with pytest.raises(TurnFailed):
        await bench.start(["done"], [])
    assert made[0].requests == 1


def test_the_provider_says_how_long_to_wait_up_to_a_minute() -> None:
    assert retry_delay(busy(retry_after=7.0), 0) == 7.0
    assert retry_delay(busy(retry_after=LONGEST_DELAY + 1), 0) is None
    assert [retry_delay(busy(), attempt) for attempt in (0, 1, 99)] == [RETRY_DELAYS[0], RETRY_DELAYS[1], 60.0]


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (ModelRateLimitError("m", "slow down"), True),
        (ModelConnectionError("m", "cut"), True),
        (ModelAPIError("m", "nobody knows"), False),
        (RuntimeError("ours"), False),
        (FallbackExceptionGroup("all failed", [ModelAuthenticationError("m", "no"), busy()]), True),
        (FallbackExceptionGroup("all failed", [ModelAuthenticationError("m", "no")]), False),
    ],
)
def test_which_errors_pass(error: Exception, again: bool) -> None:
    assert (retry_delay(error, 0) is not None) is again


def test_several_models_that_fail_are_one_line() -> None:
    group = FallbackExceptionGroup("all failed", [busy(), busy()])
    assert failures.explain(group, model_requests=25).startswith("None of the 2 models could answer")
