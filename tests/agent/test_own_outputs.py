"""An imported agent keeps its own output: its type, output functions, validators and retries."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, ModelRetry, NativeOutput, PromptedOutput, RunContext, ToolOutput
from pydantic_ai.capabilities import AbstractCapability, HandleDeferredToolCalls
from pydantic_ai.messages import PartDeltaEvent
from pydantic_ai.output import TextOutput
from pydantic_ai.run import AgentRunResult

from signoff.agent.runner import AgentRunner, Extras
from signoff.approvals.errors import Refused
from signoff.approvals.model import Choice
from signoff.turns.model import Finished, Step, TurnState, Waiting
from signoff.turns.progress import Unseen
from tests.conftest import ADA, PLACE, make_turn
from tests.rigs.gate_bench import Bench, accept, batch_of, edit, protected
from tests.rigs.scripted import Answer, Script, calls

REPORT = {"title": "Disk", "free": 12}
SHOWN = "- **title:** Disk\n- **free:** 12"


class Report(BaseModel):
    title: str
    free: int


@dataclass
class Plain:
    title: str
    free: int


async def begin(bench: Bench, answers: list[Answer], tools: list[Any], **options: Any) -> Step:
    """Take the turn of the bench with an agent that has an output of its own."""
    bench.script = Script(answers)
    agent = Agent(bench.script.model(), tools=tools, **options)
    bench.runner = AgentRunner(agent, bench.store, bench.clock, extras=Extras(own_output=True))
    await take(bench)
    return await bench.advance()


async def take(bench: Bench) -> None:
    await bench.store.run(lambda tx: tx.insert_turn(bench.turn))
    await bench.store.run(lambda tx: tx.move(bench.turn.id, TurnState.QUEUED, TurnState.RUNNING))


def text_of(step: Step) -> str:
    assert isinstance(step, Finished), step
    return step.text


def output_function(title: str, free: int) -> Report:
    return Report(title=title, free=free)


def loud(text: str) -> str:
    return text.upper()


@pytest.mark.parametrize(
    ("output_type", "answer", "shown"),
    [
        (Report, calls(("final_result", REPORT)), SHOWN),
        (Plain, calls(("final_result", REPORT)), SHOWN),
        ([Report, int], calls(("final_result_int", {"response": 3})), "3"),
        (Report | None, calls(("final_result_None", {"response": None})), "The agent finished without an output."),
        (output_function, calls(("final_result", REPORT)), SHOWN),
        (ToolOutput(Report, name="report"), calls(("report", REPORT)), SHOWN),
        ([Report, str], "plain text", "plain text "),
        (NativeOutput(Report), '{"title": "Disk", "free": 12}', SHOWN),
        (PromptedOutput(Report), '{"title": "Disk", "free": 12}', SHOWN),
        (TextOutput(loud), "quiet", "QUIET "),
        ([str, DeferredToolRequests], "text", "text "),
        (list[str], calls(("final_result", {"response": ["a", "b"]})), "- a\n- b"),
    ],
    ids=[
        "model",
        "dataclass",
        "list",
        "none",
        "function",
        "tool",
        "or_text",
        "native",
        "prompted",
        "text",
        "deferred",
        "texts",
    ],
)
async def test_each_kind_of_output_comes_out_behind_an_approval(
    bench: Bench, output_type: Any, answer: Answer, shown: str
) -> None:
    model_profile = {"supports_json_schema_output": True}
    bench.script = Script([calls(("danger", {"value": "x"})), answer])
    model = bench.script.model()
    model.profile.update(model_profile)  # type: ignore[typeddict-item]
    agent = Agent(model, tools=[protected(bench.box)], output_type=output_type)
    bench.runner = AgentRunner(agent, bench.store, bench.clock, extras=Extras(own_output=True))
    await take(bench)
    step = await bench.advance()
    assert [request.call.tool for request in batch_of(step).requests] == ["danger"]
    assert text_of(await accept(bench, step)) == shown
    assert bench.box.ran == [("danger", "x", None)]


@pytest.mark.parametrize("end_strategy", ["graceful", "exhaustive"])
@pytest.mark.parametrize("output_first", [True, False])
async def test_a_call_beside_an_output_is_asked_first_and_then_runs_once(
    bench: Bench, end_strategy: Any, output_first: bool
) -> None:
    made: list[int] = []

    def report(title: str, free: int) -> Report:
        made.append(len(bench.box.ran))
        return Report(title=title, free=free)

    both = [("danger", {"value": "x"}), ("final_result", REPORT)]
    step = await begin(
        bench,
        [calls(*(reversed(both) if output_first else both)), "never asked"],
        [protected(bench.box)],
        output_type=report,
        end_strategy=end_strategy,
    )
    assert [request.call.tool for request in batch_of(step).requests] == ["danger"]
    assert (made, bench.box.ran) == ([], []), "neither ran before the decision"
    assert text_of(await accept(bench, step)) == SHOWN
    assert (made, bench.box.ran) == ([1], [("danger", "x", None)]), "the output ran once, after the call"
    assert len(bench.script.asked) == 1


async def test_the_model_reads_that_a_call_beside_its_output_was_rejected(bench: Bench) -> None:
    again = calls(("final_result", {"title": "Not done", "free": 0}))
    both = calls(("final_result", REPORT), ("danger", {"value": "x"}))
    step = await begin(bench, [both, again], [protected(bench.box)], output_type=Report)
    text = text_of(await bench.decide(step, Choice.REJECT))
    assert text == "- **title:** Not done\n- **free:** 0"
    assert bench.box.ran == []
    told = bench.script.results
    assert told["call_1"].startswith("Rejected by user Ada")
    assert "danger did not run" in told["call_0"]


async def test_an_output_stands_if_the_model_has_no_attempt_left(bench: Bench) -> None:
    both = calls(("final_result", REPORT), ("danger", {"value": "x"}))
    step = await begin(bench, [both], [protected(bench.box)], output_type=Report, retries={"output": 0})
    assert text_of(await bench.decide(step, Choice.REJECT)) == SHOWN
    assert bench.box.ran == []


async def test_an_agent_that_ends_early_skips_the_call_and_its_history_says_so(bench: Bench) -> None:
    both = calls(("danger", {"value": "x"}), ("final_result", REPORT))
    step = await begin(bench, [both, "fine"], [protected(bench.box)], output_type=[Report, str], end_strategy="early")
    assert text_of(step) == SHOWN
    assert bench.box.ran == []
    await _ask_again(bench, step)
    assert bench.script.results["call_0"] == "Tool not executed - a final result was already processed."


async def test_the_conversation_goes_on_after_an_output(bench: Bench) -> None:
    step = await begin(bench, [calls(("final_result", REPORT)), "fine"], [], output_type=[Report, str])
    assert text_of(await _ask_again(bench, step)) == "fine "
    kinds = [part.part_kind for message in bench.script.asked[-1] for part in message.parts]
    assert kinds == ["user-prompt", "tool-call", "tool-return", "user-prompt"]


async def _ask_again(bench: Bench, step: Step) -> Step:
    """Store the end of the turn as the driver does, and take another one of the same conversation."""
    assert isinstance(step, Finished)
    await bench.store.run(lambda tx: tx.save_history(PLACE.conversation, step.history))
    bench.turn = make_turn("and now?")
    await take(bench)
    return await bench.advance()


async def test_validators_and_their_retries_are_kept(bench: Bench) -> None:
    bench.script = Script([calls(("danger", {"value": "x"})), "short", "long enough"])
    agent = Agent(bench.script.model(), tools=[protected(bench.box)], retries={"output": 2})
    seen: list[str] = []

    @agent.output_validator
    def long_enough(ctx: RunContext[Any], text: str) -> str:
        seen.append(text)
        if len(text) < 8:
            raise ModelRetry("longer")
        return text

    bench.runner = AgentRunner(agent, bench.store, bench.clock, extras=Extras(own_output=True))
    await take(bench)
    step = await bench.advance()
    assert isinstance(step, Waiting)
    with pytest.raises(Refused, match="does not take this"):
        await edit(bench, step, {"value": {"not": "text"}})
    await edit(bench, step, {"value": "edited"})
    assert text_of(await accept(bench, step)) == "long enough "
    assert seen == ["short ", "long enough "]
    assert bench.box.ran == [("danger", "edited", None)]


async def test_an_output_of_the_agent_cannot_be_tried_as_a_tool(bench: Bench) -> None:
    ran: list[str] = []

    def publish(text: str) -> str:
        ran.append(text)
        return text

    await begin(bench, [calls(("final_result", {"text": "x"}))], [], output_type=publish)
    assert bench.runner
    with pytest.raises(Refused, match="an output of the agent"):
        await bench.runner.test("final_result", {"text": "y"}, PLACE, ADA)
    assert ran == ["x"]


async def test_after_a_restart_the_output_still_comes_out(bench: Bench) -> None:
    both = calls(("danger", {"value": "x"}), ("final_result", REPORT))
    step = await begin(bench, [both], [protected(bench.box)], output_type=Report)
    again = Agent(bench.script.model(), tools=[protected(bench.box)], output_type=Report)
    bench.runner = replace(bench.runner, agent=again)  # type: ignore[type-var]
    assert text_of(await accept(bench, step)) == SHOWN
    assert bench.box.ran == [("danger", "x", None)]


async def test_a_handler_of_the_agent_decides_nothing(bench: Bench) -> None:
    handled: list[Any] = []

    def approve_all(ctx: RunContext[Any], requests: DeferredToolRequests) -> Any:
        handled.append(requests)
        return requests.build_results(approve_all=True)

    step = await begin(
        bench,
        [calls(("danger", {"value": "x"})), calls(("final_result", REPORT))],
        [protected(bench.box)],
        output_type=Report,
        capabilities=[HandleDeferredToolCalls(handler=approve_all)],
    )
    assert isinstance(step, Waiting)
    assert (handled, bench.box.ran) == ([], [])


async def test_secrets_in_an_output_are_masked_by_their_names(bench: Bench) -> None:
    class Login(BaseModel):
        user: str
        password: str

    bench.script = Script([calls(("final_result", {"user": "ada", "password": "hunter2"}))])
    agent = Agent(bench.script.model(), output_type=Login)
    asked: list[Any] = []

    def mask(values: Any) -> Any:
        asked.append(values)
        return {"output": {**values["output"], "password": "•••"}}

    runner = AgentRunner(agent, bench.store, bench.clock, mask=mask, extras=Extras(own_output=True))
    bench.runner = runner
    await take(bench)
    assert text_of(await bench.advance()) == "- **user:** ada\n- **password:** •••"
    assert asked == [{"output": {"user": "ada", "password": "hunter2"}}]


async def test_an_output_that_cannot_be_written_is_said(bench: Bench) -> None:
    class Odd:
        def __str__(self) -> str:
            raise asyncio.CancelledError

    def odd(n: int) -> Any:
        return Odd()

    step = await begin(bench, [calls(("final_result", {"n": 1}))], [], output_type=odd)
    assert text_of(step) == "The agent finished, but its output (Odd) cannot be shown as text."


class Written(Unseen):
    def __init__(self) -> None:
        self.text = ""

    def writing(self, words: str) -> None:
        self.text += words


@pytest.mark.parametrize(
    ("output_type", "text", "written"),
    [
        (str, "plain", "plain "),
        ([Report, str], "plain", "plain "),
        (str | int, "plain", "plain "),
        (NativeOutput(Report), '{"title": "sk-1", "free": 12}', ""),
        (PromptedOutput(Report), '{"title": "sk-1", "free": 12}', ""),
        (TextOutput(loud), "quiet", ""),
    ],
)
async def test_only_text_that_is_the_reply_is_shown_while_it_is_written(
    bench: Bench, output_type: Any, text: str, written: str
) -> None:
    """The text of a structured output may hold secrets, which are masked only in the reply."""
    bench.progress = progress = Written()
    await begin(bench, [text], [], output_type=output_type)
    assert progress.text == written


async def test_text_that_a_validator_may_change_is_not_shown_while_it_is_written(bench: Bench) -> None:
    agent = Agent(Script(["the key is sk-1"]).model())
    agent.output_validator(lambda output: output.replace("sk-1", "***"))
    bench.runner = AgentRunner(agent, bench.store, bench.clock, extras=Extras(own_output=True))
    bench.progress = progress = Written()
    await take(bench)
    assert text_of(await bench.advance()).strip() == "the key is ***"
    assert progress.text == ""


@dataclass
class Recoverer(AbstractCapability[Any]):
    """A capability of an agent that turns every failure of a run into an output."""

    async def on_run_error(self, ctx: RunContext[Any], *, error: BaseException) -> AgentRunResult[Any]:
        return AgentRunResult(output="sorry")


@pytest.mark.parametrize(("output_type", "beside"), [(str, ()), (Report, (("final_result", REPORT),))])
async def test_an_agent_that_recovers_from_failures_still_waits_for_people(
    bench: Bench, output_type: Any, beside: Any
) -> None:
    answers: list[Answer] = [calls(("danger", {"value": "x"}), *beside), "done"]
    step = await begin(bench, answers, [protected(bench.box)], output_type=output_type, capabilities=[Recoverer()])
    assert [request.call.tool for request in batch_of(step).requests] == ["danger"]
    assert bench.box.ran == []


@dataclass
class Listener(AbstractCapability[Any]):
    """A capability of an agent that wants the events of its run."""

    events: list[Any] = field(default_factory=list[Any])

    async def on_event(self, ctx: RunContext[Any], *, event: Any) -> None:
        self.events.append(event)


async def test_an_agent_that_listens_to_its_run_hears_it_and_people_read_it_once(bench: Bench) -> None:
    listener = Listener()
    bench.progress = progress = Written()
    step = await begin(bench, ["three short words"], [], capabilities=[listener])
    assert text_of(step).strip() == progress.text.strip() == "three short words"
    assert any(isinstance(event, PartDeltaEvent) for event in listener.events)
