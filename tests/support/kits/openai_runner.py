"""OpenAI's own tool runner over responses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from openai.lib.responses_tool_runner import (
    AsyncRegisteredFunction,
    AsyncResponsesToolRunner,
    RegisteredFunction,
    ResponsesToolRunner,
)
from openai.types.responses import FunctionToolParam
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

from guardrail_openai.runner import guarded_runner
from support.kits.openai_clients import aclient, client
from support.kits.stage import Mode, Scene, Script

TASK: ResponseCreateParamsNonStreaming = {"model": "scripted", "input": [{"role": "user", "content": "Do it."}]}
ENDS = "the runner ends, with an error, at {}: openai.lib.responses_tool_runner:{}"

Tool = Callable[..., Any]


class ToolRunner:
    """The runner, blocking and awaited, with its answers streamed or not."""

    name = "openai tool runner"
    modes: Sequence[Mode] = ("sync", "async", "sync stream", "async stream")
    limits: Mapping[str, str] = {
        "test_a_mistake_of_the_models_holds_nothing": ENDS.format("a tool that there is not", "_Run.validate"),
    }
    nests = True

    def play(self, scene: Scene, mode: Mode) -> str:
        tools = scene.functions(mode)
        if scene.inner is not None:
            inner = scene.inner
            ask: Tool = lambda question: self._run(scene, inner, tools, mode)  # noqa: E731
            tools = [*tools, named("ask_clerk", ask)]
        return self._run(scene, scene.script, tools, mode)

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        tools = scene.functions(mode)
        if scene.inner is not None:
            inner = scene.inner
            ask: Tool = lambda question: self._arun(scene, inner, tools, mode)  # noqa: E731
            tools = [*tools, named("ask_clerk", ask)]
        return await self._arun(scene, scene.script, tools, mode)

    def _run(self, scene: Scene, script: Script, tools: Sequence[Tool], mode: Mode) -> str:
        functions = [RegisteredFunction(schema(tool), plain(tool)) for tool in tools]
        runs = scene.runs
        runner = ResponsesToolRunner(functions=functions) if runs is None else guarded_runner(runs, functions)
        with client(script) as api:
            return runner.run(api, TASK, stream=mode.endswith("stream"), max_steps=10).output_text

    async def _arun(self, scene: Scene, script: Script, tools: Sequence[Tool], mode: Mode) -> str:
        functions = [AsyncRegisteredFunction(schema(tool), awaited(tool)) for tool in tools]
        runs = scene.runs
        runner = AsyncResponsesToolRunner(functions=functions) if runs is None else guarded_runner(runs, functions)
        async with aclient(script) as api:
            return (await runner.run(api, TASK, stream=mode.endswith("stream"), max_steps=10)).output_text


def schema(tool: Tool) -> FunctionToolParam:
    parameters: dict[str, object] = {"type": "object", "properties": {}}
    return {"type": "function", "name": tool.__name__, "parameters": parameters, "strict": False}


def plain(tool: Tool) -> Callable[[dict[str, object]], str]:
    return lambda arguments: as_text(tool(**arguments))


def awaited(tool: Tool) -> Callable[[dict[str, object]], Any]:
    async def execute(arguments: dict[str, object]) -> str:
        return as_text(await tool(**arguments))

    return execute


def as_text(result: Any) -> str:
    return result if isinstance(result, str) else json.dumps(result)


def named(name: str, tool: Tool) -> Tool:
    tool.__name__ = name
    return tool
