"""Anthropic's client in loops written by hand, and its tool runner."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anthropic
from anthropic import Anthropic, AsyncAnthropic, beta_async_tool, beta_tool

from guardrail.run.adapter import Runs
from guardrail_anthropic import ToolCalls, guarded_runner
from support.kits.loops import Calls, Functions, LoopKit
from support.kits.stage import Kit, Mode, Scene, Script
from support.kits.wire import endpoint

MODEL: Mapping[str, Any] = {"model": "scripted", "max_tokens": 1000}
TASK: list[Any] = [{"role": "user", "content": "Do it."}]


def client(script: Script) -> Anthropic:
    http = anthropic.DefaultHttpxClient(trust_env=False, verify=False)
    return Anthropic(base_url=endpoint(script), api_key="none", max_retries=0, http_client=http)


def aclient(script: Script) -> AsyncAnthropic:
    http = anthropic.DefaultAsyncHttpxClient(trust_env=False, verify=False)
    return AsyncAnthropic(base_url=endpoint(script), api_key="none", max_retries=0, http_client=http)


class Messages:
    """Messages."""

    name = "anthropic messages"

    def guarded(self, runs: Runs, tools: Functions) -> Calls:
        return ToolCalls(runs, tools)

    def ask(self, script: Script, messages: list[Any], *, streamed: bool) -> Any:
        with client(script) as api:
            if not streamed:
                return api.messages.create(**MODEL, messages=messages)
            with api.messages.stream(**MODEL, messages=messages) as stream:
                return stream.get_final_message()

    async def aask(self, script: Script, messages: list[Any], *, streamed: bool) -> Any:
        async with aclient(script) as api:
            if not streamed:
                return await api.messages.create(**MODEL, messages=messages)
            async with api.messages.stream(**MODEL, messages=messages) as stream:
                return await stream.get_final_message()

    def keep(self, answer: Any, messages: list[Any]) -> None:
        messages.append({"role": "assistant", "content": answer.content})

    def said(self, answer: Any) -> str:
        return str(answer.content[0].text)

    def asked(self, answer: Any) -> list[tuple[str, str, str]]:
        return [(block.id, block.name, json.dumps(block.input)) for block in answer.content if block.type == "tool_use"]

    def tell(self, results: list[tuple[str, str, bool]], messages: list[Any]) -> None:
        blocks = [
            {"type": "tool_result", "tool_use_id": id, "content": content, "is_error": failed}
            for id, content, failed in results
        ]
        messages.append({"role": "user", "content": blocks})


class ToolRunner:
    """`client.beta.messages.tool_runner`; a streaming one runs each tool as soon as its call is there, if `eager`."""

    limits: Mapping[str, str] = {}
    nests = True

    def __init__(self, *, eager: bool = False) -> None:
        self.name = "anthropic eager tool runner" if eager else "anthropic tool runner"
        self.modes: Sequence[Mode] = (
            ("sync stream", "async stream") if eager else ("sync", "async", "sync stream", "async stream")
        )
        self.options: Mapping[str, Any] = {"run_tools_eagerly": True} if eager else {}

    def play(self, scene: Scene, mode: Mode) -> str:
        tools = [plain(tool) for tool in scene.functions(mode)]
        if scene.inner is not None:
            inner, own = scene.inner, list(tools)

            @beta_tool
            def ask_clerk(question: str) -> str:
                """Ask the clerk."""
                return self._run(scene, inner, own, mode)

            tools.append(ask_clerk)
        return self._run(scene, scene.script, tools, mode)

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        tools = [awaited(tool) for tool in scene.functions(mode)]
        if scene.inner is not None:
            inner, own = scene.inner, list(tools)

            @beta_async_tool
            async def ask_clerk(question: str) -> str:
                """Ask the clerk."""
                return await self._arun(scene, inner, own, mode)

            tools.append(ask_clerk)
        return await self._arun(scene, scene.script, tools, mode)

    def _run(self, scene: Scene, script: Script, tools: list[Any], mode: Mode) -> str:
        with client(script) as api:
            asked = {**MODEL, "messages": TASK, "tools": tools}
            if mode == "sync stream":
                asked |= {"stream": True, **self.options}
            runner: Any = api.beta.messages.tool_runner(**asked)
            if scene.runs is not None:
                runner = guarded_runner(scene.runs, runner)
            return str(runner.until_done().content[0].text)

    async def _arun(self, scene: Scene, script: Script, tools: list[Any], mode: Mode) -> str:
        async with aclient(script) as api:
            asked = {**MODEL, "messages": TASK, "tools": tools}
            if mode == "async stream":
                asked |= {"stream": True, **self.options}
            runner: Any = api.beta.messages.tool_runner(**asked)
            if scene.runs is not None:
                runner = guarded_runner(scene.runs, runner)
            return str((await runner.until_done()).content[0].text)


def plain(tool: Callable[..., Any]) -> Any:
    @functools.wraps(tool)
    def function(*args: Any, **kwargs: Any) -> str:
        return json.dumps(tool(*args, **kwargs))

    return beta_tool(function)


def awaited(tool: Callable[..., Any]) -> Any:
    @functools.wraps(tool)
    async def function(*args: Any, **kwargs: Any) -> str:
        return json.dumps(await tool(*args, **kwargs))

    return beta_async_tool(function)


KITS: list[Kit] = [LoopKit(Messages()), ToolRunner(), ToolRunner(eager=True)]
