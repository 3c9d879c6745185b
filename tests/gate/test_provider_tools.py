"""Tools that only may run at the provider: the model gets their local fallback, and its calls pass the gate."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent, Tool, ToolDefinition
from pydantic_ai.capabilities import Capability, ImageGeneration, NativeOrLocalTool, NativeTool, WebFetch, WebSearch
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model, ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.native_tools import SUPPORTED_NATIVE_TOOLS, CodeExecutionTool, MCPServerTool, WebSearchTool
from pydantic_ai.toolsets import FunctionToolset

from signoff.agent.runner import AgentRunner
from signoff.approvals.model import Choice, Verdict
from signoff.approvals.policy import Policy, Rule
from signoff.errors import TurnFailed
from signoff.gate.provider_tools import only_local, without_tools
from signoff.turns.model import Finished, Step, TurnState, Waiting
from tests.rigs.gate_bench import Bench, accept, batch_of
from tests.rigs.scripted import Script, calls

ASK = Policy((Rule("*", Verdict.ASK),))


class ProviderModel(FunctionModel):
    """A model whose provider could run every kind of tool."""

    sent: list[AgentInfo]

    @classmethod
    def supported_native_tools(cls) -> frozenset[type]:
        return SUPPORTED_NATIVE_TOOLS


def provider_model(script: Script) -> ProviderModel:
    scripted = script.model()
    seen: list[AgentInfo] = []

    def stream(messages: list[ModelMessage], info: AgentInfo) -> Any:
        seen.append(info)
        assert scripted.stream_function
        return scripted.stream_function(messages, info)

    assert scripted.function
    model = ProviderModel(scripted.function, stream_function=stream)
    model.sent = seen
    return model


def search(query: str) -> str:
    """Search here."""
    return f"found {query}"


async def begin(bench: Bench, model: Model, policy: Policy = ASK, **options: Any) -> Step:
    bench.runner = AgentRunner(Agent(model, **options), bench.store, bench.clock, policy)
    await bench.store.run(lambda tx: tx.insert_turn(bench.turn))
    await bench.store.run(lambda tx: tx.move(bench.turn.id, TurnState.QUEUED, TurnState.RUNNING))
    return await bench.advance()


@pytest.mark.parametrize(
    "capability",
    [
        WebSearch(local=search),
        WebFetch(local=search),
        ImageGeneration(local=search),
        NativeOrLocalTool(native=MCPServerTool(id="x", url="https://x.example/mcp"), local=FunctionToolset([search])),
        NativeOrLocalTool(native=CodeExecutionTool(), local=search),
    ],
    ids=["search", "fetch", "image", "MCP", "code"],
)
@pytest.mark.parametrize(
    "wrap", [lambda model: model, WrapperModel, FallbackModel], ids=["plain", "wrapped", "fallback"]
)
async def test_the_local_fallback_is_offered_and_its_call_asks(bench: Bench, capability: Any, wrap: Any) -> None:
    bench.script = Script([calls(("search", {"query": "x"})), "done"])
    model = provider_model(bench.script)
    step = await begin(bench, wrap(model), capabilities=[capability])
    assert [request.call.tool for request in batch_of(step).requests] == ["search"]
    assert isinstance(await accept(bench, step), Finished)
    assert bench.script.results == {"call_0": "found x"}
    assert [[tool.name for tool in info.function_tools] for info in model.sent] == [["search"], ["search"]]
    assert [info.model_request_parameters.native_tools for info in model.sent] == [[], []]


@pytest.mark.parametrize(
    "capabilities",
    [
        [NativeTool(CodeExecutionTool())],
        [NativeTool(lambda ctx: CodeExecutionTool())],
        [NativeTool(WebSearchTool()), Capability(tools=[search])],
        [WebSearch(local=search), NativeTool(CodeExecutionTool())],
    ],
    ids=["plain", "made for the run", "beside another tool", "beside a tool with a fallback"],
)
async def test_a_tool_without_a_fallback_is_refused_at_the_run(bench: Bench, capabilities: Any) -> None:
    bench.script = Script(["never asked"])
    with pytest.raises(TurnFailed, match="provider executes bypass every approval and are refused"):
        await begin(bench, provider_model(bench.script), capabilities=capabilities)
    assert bench.script.asked == []


async def test_tools_are_searched_here_and_found_tools_ask(bench: Bench) -> None:
    responses = [calls(("search_tools", {"queries": ["weather"]})), calls(("weather", {"query": "Bern"})), "done"]
    bench.script = Script(responses)
    model = provider_model(bench.script)
    tools = [Tool(search, name="weather", description="the weather", defer_loading=True)]
    step = await begin(bench, model, Policy((Rule("weather", Verdict.ASK),), Verdict.ASK), tools=tools)
    assert [request.call.tool for request in batch_of(step).requests] == ["weather"], "the search itself does not ask"
    assert isinstance(await accept(bench, step), Finished)
    assert bench.script.results == {"call_0": "found Bern"}
    offered = [info.model_request_parameters.tool_visibility for info in model.sent]
    assert offered[0] == {"search_tools": "visible", "weather": "withheld"}
    assert offered[1] == {"search_tools": "visible", "weather": "visible"}


async def test_a_rule_may_deny_the_search_for_tools(bench: Bench) -> None:
    bench.script = Script([calls(("search_tools", {"queries": ["weather"]})), "done"])
    tools = [Tool(search, name="weather", defer_loading=True)]
    await begin(bench, provider_model(bench.script), Policy((Rule("search_tools", Verdict.DENY),)), tools=tools)
    assert bench.script.results["call_0"].startswith("Not allowed: a rule for search_tools")


async def test_a_capability_is_loaded_and_its_tools_ask(bench: Bench) -> None:
    bench.script = Script([calls(("load_capability", {"id": "more"})), calls(("search", {"query": "x"})), "done"])
    more = Capability[None](id="more", description="more tools", tools=[search], defer_loading=True)
    step = await begin(bench, provider_model(bench.script), Policy((), Verdict.ASK), capabilities=[more])
    assert isinstance(step, Waiting)
    assert [request.call.tool for request in batch_of(step).requests] == ["search"]
    await bench.decide(step, Choice.ACCEPT)
    assert bench.script.results == {"call_0": "found x"}


def test_a_request_has_no_tools_of_the_provider_and_neither_has_its_model() -> None:
    """A model that does not read its own profile gets none either."""
    local = ToolDefinition(name="search", unless_native="web_search")
    parameters = ModelRequestParameters(function_tools=[local], native_tools=[WebSearchTool(), CodeExecutionTool()])
    model = ProviderModel(lambda messages, info: ModelResponse(parts=[TextPart("x")]))
    request = ModelRequestContext(model=model, messages=[], model_settings=None, model_request_parameters=parameters)
    assert only_local(request) == ["code_execution"]
    assert request.model_request_parameters.native_tools == []
    assert request.model.profile.get("supported_native_tools") == frozenset()


def test_the_model_itself_is_not_changed() -> None:
    model = ProviderModel(lambda messages, info: ModelResponse(parts=[TextPart("x"), ToolCallPart("x")]))
    assert without_tools(model).profile["supported_native_tools"] == frozenset()  # type: ignore[typeddict-item]
    assert model.profile["supported_native_tools"] == SUPPORTED_NATIVE_TOOLS  # type: ignore[typeddict-item]
