"""smolagents' `ToolCallingAgent`, and its `CodeAgent`, whose model writes code that calls the tools."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from smolagents import ChatMessage, CodeAgent, FinalAnswerStep, Model, Tool, ToolCallingAgent
from smolagents.models import (
    ChatMessageStreamDelta,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    ChatMessageToolCallStreamDelta,
    MessageRole,
)
from smolagents.monitoring import LogLevel

from guardrail_smolagents import guarded
from support.kits.stage import Mode, Scene, Script, Turn, asked, call_id


class Scripted(Model):  # type: ignore[misc]
    """A model that says what the script says."""

    def __init__(self, script: Script) -> None:
        super().__init__(model_id="scripted")
        self.script = script

    def generate(self, messages: Any, *args: Any, **options: Any) -> ChatMessage:
        number, turn = self._said(messages)
        calls = [
            ChatMessageToolCall(
                id=call_id(number, n),
                type="function",
                function=ChatMessageToolCallFunction(name=one.name, arguments=json.dumps(one.args)),
            )
            for n, one in enumerate([asked("final_answer", answer=turn)] if isinstance(turn, str) else turn)
        ]
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=calls)

    def generate_stream(self, messages: Any, *args: Any, **options: Any) -> Iterator[ChatMessageStreamDelta]:
        calls = [
            ChatMessageToolCallStreamDelta(index=n, id=call.id, type="function", function=call.function)
            for n, call in enumerate(self.generate(messages).tool_calls)
        ]
        yield ChatMessageStreamDelta(content="", tool_calls=calls)

    def _said(self, messages: Any) -> tuple[int, Turn]:
        told = [message for message in messages if message.role == MessageRole.TOOL_RESPONSE]
        return self.script.next([str(message.content[0]["text"]) for message in told])


class Writing(Scripted):
    """A model that writes code."""

    def generate(self, messages: Any, *args: Any, **options: Any) -> ChatMessage:
        _, turn = self._said(messages)
        lines = [f"final_answer({turn!r})"] if isinstance(turn, str) else [_line(one.name, one.args) for one in turn]
        content = "\n".join(["Thought: so be it.", "<code>", *lines, "</code>"])
        return ChatMessage(role=MessageRole.ASSISTANT, content=content)

    def generate_stream(self, messages: Any, *args: Any, **options: Any) -> Iterator[ChatMessageStreamDelta]:
        yield ChatMessageStreamDelta(content=self.generate(messages).content)


def _line(name: str, args: Mapping[str, object]) -> str:
    return f"print({name}({', '.join(f'{key}={value!r}' for key, value in args.items())}))"


class ShopTool(Tool):  # type: ignore[misc]
    """A function as a tool."""

    skip_forward_signature_validation = True
    output_type = "any"

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.name = function.__name__
        self.description = function.__doc__
        parameters = inspect.signature(function).parameters.values()
        self.inputs = {p.name: {"type": _TYPES[p.annotation], "description": p.name} for p in parameters}
        self.forward = function


_TYPES = {"int": "integer", "str": "string"}


class SmolAgents:
    """A `ToolCallingAgent`."""

    name = "smolagents"
    modes: Sequence[Mode] = ("sync", "sync stream")
    limits: Mapping[str, str] = {}
    nests = True

    def play(self, scene: Scene, mode: Mode) -> str:
        agent = self.agent(scene, mode)
        if mode == "sync":
            return str(agent.run("Do it."))
        *_, last = agent.run("Do it.", stream=True)
        assert isinstance(last, FinalAnswerStep)
        return str(last.output)

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        raise NotImplementedError("an agent of smolagents is run by blocking")

    def agent(self, scene: Scene, mode: Mode) -> Any:
        tools = [ShopTool(function) for function in scene.functions(mode)]
        if scene.inner is not None:
            inner = Scene(scene.tools, scene.inner, scene.runs, scene.folder)
            tools.append(ShopTool(_clerk(self.agent(inner, mode))))
        agent = self.made(scene.script, tools=tools, stream_outputs=mode == "sync stream", verbosity_level=LogLevel.OFF)
        return agent if scene.runs is None else guarded(agent, scene.runs)

    def made(self, script: Script, **options: Any) -> Any:
        return ToolCallingAgent(model=Scripted(script), **options)


class Coding(SmolAgents):
    """A `CodeAgent`."""

    name = "smolagents CodeAgent"
    limits: Mapping[str, str] = {
        "test_a_call_is_recorded_under_the_id_that_the_model_gave_it": (
            "A model's code calls tools by their names alone (smolagents.local_python_executor:evaluate_call)."
        ),
    }

    def made(self, script: Script, **options: Any) -> Any:
        return CodeAgent(model=Writing(script), **options)


def _clerk(agent: Any) -> Callable[..., Any]:
    def ask_clerk(question: str) -> str:
        """Ask the clerk."""
        return str(agent.run(question))

    return ask_clerk


KITS = [SmolAgents(), Coding()]
