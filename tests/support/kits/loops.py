"""Loops written by hand, as an engineer writes them over a client of a model's API, with and without a guard."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from guardrail.run.adapter import Runs
from support.kits.stage import Mode, Scene, Script

Functions = Mapping[str, Callable[..., Any]]


class Calls(Protocol):
    """What makes the tool calls of an answer: the adapter's, or `Unguarded`."""

    def gate(self) -> None: ...

    def make(self, answer: Any, messages: list[Any]) -> bool: ...

    async def amake(self, answer: Any, messages: list[Any]) -> bool: ...


class Api(Protocol):
    """A way to ask a model: its client's calls, and how a conversation is written down."""

    name: str

    def guarded(self, runs: Runs, tools: Functions) -> Calls:
        """The adapter."""
        ...

    def ask(self, script: Script, messages: list[Any], *, streamed: bool) -> Any:
        """Ask the model for an answer."""
        ...

    async def aask(self, script: Script, messages: list[Any], *, streamed: bool) -> Any:
        """The same by awaiting."""
        ...

    def keep(self, answer: Any, messages: list[Any]) -> None:
        """Append the answer to the conversation."""
        ...

    def said(self, answer: Any) -> str:
        """The text of an answer."""
        ...

    def asked(self, answer: Any) -> list[tuple[str, str, str]]:
        """The calls of an answer: id, name, arguments as JSON."""
        ...

    def tell(self, results: list[tuple[str, str, bool]], messages: list[Any]) -> None:
        """Append the results of an answer's calls: id, content, whether it failed."""
        ...


class Unguarded:
    """What an engineer writes without a guard: the tool by its name, its result or its error told to the model."""

    def __init__(self, api: Api, tools: Functions) -> None:
        self._api = api
        self._tools = tools

    def gate(self) -> None:
        """There is no run that could be over."""

    def make(self, answer: Any, messages: list[Any]) -> bool:
        results: list[tuple[str, str, bool]] = []
        for id, name, args in self._api.asked(answer):
            try:
                results.append((id, _text(self._call(name, args)), False))
            except Exception as error:  # noqa: BLE001 - the usual loop tells the model whatever went wrong
                results.append((id, f"Error: {error}", True))
        return self._tell(results, messages)

    async def amake(self, answer: Any, messages: list[Any]) -> bool:
        results: list[tuple[str, str, bool]] = []
        for id, name, args in self._api.asked(answer):
            try:
                result = self._call(name, args)
                results.append((id, _text(await result if inspect.isawaitable(result) else result), False))
            except Exception as error:  # noqa: BLE001 - as above
                results.append((id, f"Error: {error}", True))
        return self._tell(results, messages)

    def _call(self, name: str, args: str) -> Any:
        if name not in self._tools:
            raise LookupError(f"there is no tool {name}")
        return self._tools[name](**json.loads(args))

    def _tell(self, results: list[tuple[str, str, bool]], messages: list[Any]) -> bool:
        if results:
            self._api.tell(results, messages)
        return bool(results)


def _text(result: Any) -> str:
    return result if isinstance(result, str) else json.dumps(result)


class LoopKit:
    """A loop over an API. An agent that is a tool is a function with a loop of its own."""

    modes: Sequence[Mode] = ("sync", "async", "sync stream", "async stream")
    limits: Mapping[str, str] = {}
    nests = True

    def __init__(self, api: Api) -> None:
        self.api = api
        self.name = api.name

    def play(self, scene: Scene, mode: Mode) -> str:
        tools = {tool.__name__: tool for tool in scene.functions(mode)}
        if scene.inner is not None:
            inner = scene.inner
            tools = {**tools, "ask_clerk": lambda question: self._loop(scene, inner, tools, mode)}
        return self._loop(scene, scene.script, tools, mode)

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        tools = {tool.__name__: tool for tool in scene.functions(mode)}
        if scene.inner is not None:
            inner = scene.inner
            tools = {**tools, "ask_clerk": lambda question: self._aloop(scene, inner, tools, mode)}
        return await self._aloop(scene, scene.script, tools, mode)

    def _loop(self, scene: Scene, script: Script, tools: Functions, mode: Mode) -> str:
        calls = self._calls(scene, tools)
        messages: list[Any] = [{"role": "user", "content": "Do it."}]
        while True:
            calls.gate()
            answer = self.api.ask(script, messages, streamed=mode.endswith("stream"))
            self.api.keep(answer, messages)
            if not calls.make(answer, messages):
                return self.api.said(answer)

    async def _aloop(self, scene: Scene, script: Script, tools: Functions, mode: Mode) -> str:
        calls = self._calls(scene, tools)
        messages: list[Any] = [{"role": "user", "content": "Do it."}]
        while True:
            calls.gate()
            answer = await self.api.aask(script, messages, streamed=mode.endswith("stream"))
            self.api.keep(answer, messages)
            if not await calls.amake(answer, messages):
                return self.api.said(answer)

    def _calls(self, scene: Scene, tools: Functions) -> Calls:
        return Unguarded(self.api, tools) if scene.runs is None else self.api.guarded(scene.runs, tools)
