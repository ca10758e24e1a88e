"""Pydantic AI's agents: the guard as a capability of the agent, as one of a run, and around a toolset."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from guardrail_pydantic_ai import GuardrailCapability, GuardrailToolset
from support.kits.stage import Mode, Scene, Script, Turn, call_id


def scripted(script: Script) -> FunctionModel:
    """A model that says what the script says."""

    def say(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        number, turn = script.next(_told(messages))
        if isinstance(turn, str):
            return ModelResponse(parts=[TextPart(turn)])
        return ModelResponse(
            parts=[ToolCallPart(a.name, dict(a.args), tool_call_id=call_id(number, n)) for n, a in enumerate(turn)]
        )

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        number, turn = script.next(_told(messages))
        if isinstance(turn, str):
            yield turn
        else:
            yield _deltas(number, turn)

    return FunctionModel(say, stream_function=stream)


def _deltas(number: int, turn: Turn) -> DeltaToolCalls:
    assert not isinstance(turn, str)
    return {
        n: DeltaToolCall(name=a.name, json_args=json.dumps(a.args), tool_call_id=call_id(number, n))
        for n, a in enumerate(turn)
    }


def _told(messages: Sequence[ModelMessage]) -> list[str]:
    requests = (message for message in messages if isinstance(message, ModelRequest))
    parts = (part for request in requests for part in request.parts)
    return [str(getattr(part, "content", "")) for part in parts if getattr(part, "tool_call_id", None)]


class OfAgent:
    """The guard is a capability of the agent."""

    name = "pydantic-ai"
    modes: Sequence[Mode] = ("sync", "async", "sync stream", "async stream")
    limits: Mapping[str, str] = {}
    nests = True

    def play(self, scene: Scene, mode: Mode) -> str:
        agent, options = self.agent(scene, mode)
        if mode == "sync":
            return str(agent.run_sync("Do it.", **options).output)
        return str(agent.run_stream_sync("Do it.", **options).get_output())

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        agent, options = self.agent(scene, mode)
        if mode == "async":
            return str((await agent.run("Do it.", **options)).output)
        async with agent.run_stream("Do it.", **options) as streamed:
            return str(await streamed.get_output())

    def agent(self, scene: Scene, mode: Mode) -> tuple[Agent[None, str], dict[str, Any]]:
        """The agent, and what it is run with."""
        tools = list(scene.functions(mode))
        if scene.inner is not None:
            inner, options = self.made(scene, scene.inner, tools)
            tools.append(_clerk(inner, options))
        return self.made(scene, scene.script, tools)

    def made(self, scene: Scene, script: Script, tools: list[Any]) -> tuple[Agent[None, str], dict[str, Any]]:
        guards = [] if scene.runs is None else [GuardrailCapability(scene.runs)]
        return Agent(scripted(script), tools=tools, capabilities=guards), {}


class OfRun(OfAgent):
    """The guard is a capability of the agent's run."""

    name = "pydantic-ai run"
    modes: Sequence[Mode] = ("sync", "async")

    def made(self, scene: Scene, script: Script, tools: list[Any]) -> tuple[Agent[None, str], dict[str, Any]]:
        guards = [] if scene.runs is None else [GuardrailCapability(scene.runs)]
        return Agent(scripted(script), tools=tools), {"capabilities": guards}


class OfToolset(OfAgent):
    """The guard is around a toolset, and knows nothing of the model."""

    name = "pydantic-ai toolset"
    modes: Sequence[Mode] = ("async", "async stream")

    def made(self, scene: Scene, script: Script, tools: list[Any]) -> tuple[Agent[None, str], dict[str, Any]]:
        toolset: FunctionToolset[Any] = FunctionToolset(tools)
        made = toolset if scene.runs is None else GuardrailToolset(toolset, scene.runs)
        return Agent(scripted(script), toolsets=[made]), {}


def _clerk(agent: Agent[None, str], options: Mapping[str, Any]) -> Any:
    async def ask_clerk(question: str) -> str:
        """Ask the clerk."""
        return str((await agent.run(question, **options)).output)

    return ask_clerk


KITS = [OfAgent(), OfRun(), OfToolset()]
