"""LlamaIndex's `FunctionAgent`, and an `AgentWorkflow` in which one hands over to another."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.agent.workflow.base_agent import BaseWorkflowAgent
from llama_index.core.base.llms.types import TextBlock, ToolCallBlock
from llama_index.core.llms import ChatMessage, ChatResponse
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.tools import FunctionTool
from pydantic import SkipValidation

from guardrail_llama_index import guarded
from support.kits.stage import Awaited, Mode, Scene, Script, Turn, call_id


class Scripted(MockFunctionCallingLLM):
    """A model with function calling that says what the script says."""

    script: SkipValidation[Script]

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **options: Any
    ) -> list[ToolSelection]:
        blocks = [block for block in response.message.blocks if isinstance(block, ToolCallBlock)]
        return [_selection(block) for block in blocks]

    async def achat_with_tools(self, *args: Any, chat_history: Any = None, **options: Any) -> Any:
        return self._said(chat_history)

    async def astream_chat_with_tools(self, *args: Any, chat_history: Any = None, **options: Any) -> Any:
        async def chunks() -> AsyncGenerator[ChatResponse, None]:
            yield self._said(chat_history)

        return chunks()

    def _said(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        # The framework tells the results of a batch in the order in which they came, which is another each time.
        results = sorted((m for m in messages if m.role == "tool"), key=_place)
        number, turn = self.script.next([str(m.content) for m in results])
        return ChatResponse(message=ChatMessage(role="assistant", blocks=_blocks(number, turn)), delta="")


def _place(result: ChatMessage) -> tuple[int, int]:
    """The turn and the place in it of the call that a result answers."""
    _, number, place = str(result.additional_kwargs["tool_call_id"]).split("_")
    return int(number), int(place)


def _selection(block: ToolCallBlock) -> ToolSelection:
    assert isinstance(block.tool_kwargs, dict)
    return ToolSelection(tool_id=block.tool_call_id or "", tool_name=block.tool_name, tool_kwargs=block.tool_kwargs)


def _blocks(number: int, turn: Turn) -> list[TextBlock | ToolCallBlock]:
    if isinstance(turn, str):
        return [TextBlock(text=turn)]
    return [
        ToolCallBlock(tool_call_id=call_id(number, n), tool_name=asked.name, tool_kwargs=dict(asked.args))
        for n, asked in enumerate(turn)
    ]


class LlamaIndex(Awaited):
    """A `FunctionAgent`; by blocking it has plain functions as tools, which it runs in threads."""

    name = "llama_index"

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        tools = self.tools(scene, mode)
        if scene.inner is not None:
            inner = self.guarded(scene, FunctionAgent(llm=Scripted(script=scene.inner), tools=tools))
            tools = [*tools, _clerk(inner)]
        agent = self.guarded(scene, self.agent(scene.script, tools, streaming=mode == "async stream"))
        handler = agent.run("Do it.")
        if mode == "async stream":
            async for _ in handler.stream_events():
                pass
        return str(await handler)

    def agent(self, script: Script, tools: list[Any], *, streaming: bool) -> Any:
        return FunctionAgent(llm=Scripted(script=script), tools=tools, streaming=streaming)

    def tools(self, scene: Scene, mode: Mode) -> list[Any]:
        return [
            FunctionTool.from_defaults(async_fn=f) if inspect.iscoroutinefunction(f) else FunctionTool.from_defaults(f)
            for f in scene.functions(mode)
        ]

    def guarded(self, scene: Scene, agent: Any) -> Any:
        return agent if scene.runs is None else guarded(agent, scene.runs)


class Workflow(LlamaIndex):
    """An `AgentWorkflow` whose agent may hand over to another."""

    name = "llama_index workflow"

    def agent(self, script: Script, tools: list[Any], *, streaming: bool) -> Any:
        model = Scripted(script=script)
        agents: list[BaseWorkflowAgent] = [
            FunctionAgent(name=name, description=name, llm=model, tools=tools, streaming=streaming)
            for name in ("first", "second")
        ]
        return AgentWorkflow(agents=agents, root_agent="first")


def _clerk(agent: Any) -> FunctionTool:
    async def ask_clerk(question: str) -> str:
        """Ask the clerk."""
        return str(await agent.run(question))

    return FunctionTool.from_defaults(async_fn=ask_clerk)


KITS = [LlamaIndex(), Workflow()]
