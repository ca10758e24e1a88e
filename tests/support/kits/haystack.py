"""Haystack's `Agent`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from haystack import component
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, StreamingChunk, ToolCall
from haystack.tools.tool import Tool

from guardrail_haystack import guarded
from support.kits.stage import Mode, Scene, Script, call_id


@component
class Scripted:
    """A chat generator that says what the script says."""

    def __init__(self, script: Script) -> None:
        self.script = script

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: Any = None, streaming_callback: Any = None) -> dict[str, Any]:
        reply = self._said(messages)
        if streaming_callback is not None and reply.text:
            streaming_callback(StreamingChunk(reply.text))
        return {"replies": [reply]}

    @component.output_types(replies=list[ChatMessage])
    async def run_async(
        self, messages: list[ChatMessage], tools: Any = None, streaming_callback: Any = None
    ) -> dict[str, Any]:
        reply = self._said(messages)
        if streaming_callback is not None and reply.text:
            await streaming_callback(StreamingChunk(reply.text))
        return {"replies": [reply]}

    def _said(self, messages: list[ChatMessage]) -> ChatMessage:
        number, turn = self.script.next([str(result.result) for m in messages for result in m.tool_call_results])
        if isinstance(turn, str):
            return ChatMessage.from_assistant(turn)
        calls = [ToolCall(asked.name, dict(asked.args), call_id(number, n)) for n, asked in enumerate(turn)]
        return ChatMessage.from_assistant(tool_calls=calls)


class Haystack:
    """An `Agent`, whose words are streamed to a callback."""

    name = "haystack"
    modes: Sequence[Mode] = ("sync", "async", "sync stream", "async stream")
    limits: Mapping[str, str] = {}
    nests = True

    def play(self, scene: Scene, mode: Mode) -> str:
        said: list[str] = []
        streaming = (lambda chunk: said.append(chunk.content)) if mode == "sync stream" else None
        result = self.agent(scene, mode).run(messages=_TASK, streaming_callback=streaming)
        return "".join(said) if streaming else str(result["last_message"].text)

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        said: list[str] = []

        async def stream(chunk: StreamingChunk) -> None:
            said.append(chunk.content)

        streaming = stream if mode == "async stream" else None
        result = await self.agent(scene, mode).run_async(messages=_TASK, streaming_callback=streaming)
        return "".join(said) if streaming else str(result["last_message"].text)

    def agent(self, scene: Scene, mode: Mode) -> Agent:
        tools = [_tool(function) for function in scene.functions(mode)]
        if scene.inner is not None:
            inner = self.guarded(scene, Agent(chat_generator=Scripted(scene.inner), tools=tools))
            tools = [*tools, _clerk(inner)]
        return self.guarded(scene, Agent(chat_generator=Scripted(scene.script), tools=tools))

    def guarded(self, scene: Scene, agent: Agent) -> Agent:
        return agent if scene.runs is None else guarded(agent, scene.runs)


_TASK = [ChatMessage.from_user("Do it.")]
_TYPES = {"int": "integer", "str": "string"}


def _tool(function: Callable[..., Any]) -> Tool:
    parameters = inspect.signature(function).parameters.values()
    schema = {
        "type": "object",
        "properties": {p.name: {"type": _TYPES[p.annotation]} for p in parameters},
        "required": [p.name for p in parameters],
    }
    kind = "async_function" if inspect.iscoroutinefunction(function) else "function"
    of_kind: dict[str, Any] = {kind: function}
    return Tool(name=function.__name__, description=function.__doc__ or "", parameters=schema, **of_kind)


def _clerk(agent: Agent) -> Tool:
    def ask_clerk(question: str) -> str:
        return str(agent.run(messages=[ChatMessage.from_user(question)])["last_message"].text)

    async def aask_clerk(question: str) -> str:
        return str((await agent.run_async(messages=[ChatMessage.from_user(question)]))["last_message"].text)

    schema = {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]}
    return Tool("ask_clerk", "Ask the clerk.", schema, function=ask_clerk, async_function=aask_clerk)


KITS = [Haystack()]
