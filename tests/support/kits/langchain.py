"""LangChain's `create_agent`, deepagents upon it, and a graph of one's own around LangGraph's `ToolNode`."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from langchain.agents import create_agent
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.messages.tool import tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic import SkipValidation

from guardrail import Guard, Run
from guardrail_langchain import GuardrailMiddleware, guarded_node
from support.kits.stage import Mode, Scene, Script, call_id


class Scripted(BaseChatModel):
    """A chat model that says what the script says."""

    script: SkipValidation[Script]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
        number, turn = self.script.next([str(m.content) for m in messages if isinstance(m, ToolMessage)])
        if isinstance(turn, str):
            return ChatResult(generations=[ChatGeneration(message=AIMessage(turn))])
        calls = [tool_call(name=a.name, args=dict(a.args), id=call_id(number, n)) for n, a in enumerate(turn)]
        return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=calls))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> Iterator[ChatGenerationChunk]:
        message = self._generate(messages).generations[0].message
        assert isinstance(message, AIMessage)
        chunks = [
            tool_call_chunk(name=c["name"], args=json.dumps(c["args"]), id=c["id"], index=n)
            for n, c in enumerate(message.tool_calls)
        ]
        yield ChatGenerationChunk(message=AIMessageChunk(content=message.content, tool_call_chunks=chunks))


class LangChain:
    """`create_agent` with the middleware."""

    name = "langchain"
    modes: Sequence[Mode] = ("sync", "async", "sync stream", "async stream")
    limits: Mapping[str, str] = {}
    nests = True

    def play(self, scene: Scene, mode: Mode) -> str:
        agent, config = self._agent(scene, mode)
        if mode == "sync":
            return str(agent.invoke(_TASK, config)["messages"][-1].content)
        *_, last = agent.stream(_TASK, config, stream_mode="values")
        return str(last["messages"][-1].content)

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        agent, config = self._agent(scene, mode)
        if mode == "async":
            return str((await agent.ainvoke(_TASK, config))["messages"][-1].content)
        *_, last = [state async for state in agent.astream(_TASK, config, stream_mode="values")]
        return str(last["messages"][-1].content)

    def _agent(self, scene: Scene, mode: Mode) -> tuple[Any, Any]:
        config = {"configurable": {"thread_id": scene.thread}}
        return self.agent(scene, _tools(scene.functions(mode)), scene.kept.setdefault("saver", InMemorySaver())), config

    def agent(self, scene: Scene, tools: list[BaseTool], saver: InMemorySaver) -> Any:
        """The agent of a scene, a compiled graph."""
        middleware = [] if scene.runs is None else [GuardrailMiddleware(scene.runs)]
        if scene.inner is not None:
            inner = create_agent(Scripted(script=scene.inner), tools, middleware=middleware)
            tools = [*tools, _clerk(inner)]
        return create_agent(Scripted(script=scene.script), tools, middleware=middleware, checkpointer=saver)


class Node(LangChain):
    """A graph of one's own: a node for the model, and a `ToolNode`."""

    name = "langgraph node"
    nests = False

    def agent(self, scene: Scene, tools: list[BaseTool], saver: InMemorySaver) -> Any:
        model, runs = Scripted(script=scene.script), scene.runs
        node = ToolNode(tools) if runs is None else guarded_node(runs, tools)

        def ask(state: MessagesState) -> dict[str, Any]:
            if isinstance(runs, Run | Guard) and _stop(runs) is not None:
                return {"messages": [AIMessage("The run is over.")]}
            return {"messages": [model.invoke(state["messages"])]}

        graph = StateGraph(MessagesState).add_node("model", ask).add_node("tools", node)
        graph.add_edge(START, "model").add_conditional_edges("model", tools_condition).add_edge("tools", "model")
        return graph.compile(checkpointer=saver)


def _stop(runs: Guard | Run) -> object:
    run = runs.current() if isinstance(runs, Guard) else runs
    return None if run is None else run.stop


class Deep(LangChain):
    """An agent of deepagents, which brings tools and middleware of its own."""

    name = "deepagents"
    nests = False

    def agent(self, scene: Scene, tools: list[BaseTool], saver: InMemorySaver) -> Any:
        middleware = [] if scene.runs is None else [GuardrailMiddleware(scene.runs)]
        model: Any = Scripted(script=scene.script)
        create: Any = import_module("deepagents").create_deep_agent
        return create(model, tools, middleware=middleware, checkpointer=saver)


_TASK: Any = {"messages": [("user", "Do it.")]}


def _tools(functions: Sequence[Callable[..., Any]]) -> list[BaseTool]:
    return [
        StructuredTool.from_function(coroutine=f) if inspect.iscoroutinefunction(f) else StructuredTool.from_function(f)
        for f in functions
    ]


def _clerk(agent: Any) -> BaseTool:
    def ask_clerk(question: str) -> str:
        """Ask the clerk."""
        return str(agent.invoke({"messages": [("user", question)]})["messages"][-1].content)

    async def aask_clerk(question: str) -> str:
        """Ask the clerk."""
        return str((await agent.ainvoke({"messages": [("user", question)]}))["messages"][-1].content)

    return StructuredTool.from_function(ask_clerk, coroutine=aask_clerk, name="ask_clerk")


KITS = [LangChain(), Node(), *([Deep()] if find_spec("deepagents") else [])]
