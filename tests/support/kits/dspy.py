"""DSPy's `ReAct`, whose model writes one call a turn, and `ReActV2`, whose model writes a batch."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import dspy

from guardrail_dspy import guarded
from support.kits.stage import Mode, Scene, Script, Turn


class Scripted(dspy.BaseLM):  # type: ignore[misc]
    """A language model that says what the script says, in the fields that the prompt asks for."""

    def __init__(self, script: Script) -> None:
        super().__init__("scripted", cache=False)
        self.script = script
        self.last = ""

    def forward(self, prompt: Any = None, messages: Any = None, **options: Any) -> Any:
        asked = str(messages[-1]["content"])
        if "`[[ ## next_tool_name ## ]]`" in asked:
            content = _fields(**_of_react(self._said(_observations(asked))))
        elif "`[[ ## tool_calls ## ]]`" in asked:
            results = [result for message in messages for result in _results(str(message["content"]))]
            content = _fields(next_thought="So be it.", tool_calls={"tool_calls": _calls(self._said(results))})
        else:  # the agent is done, and what it said is put in its form
            content = _fields(reasoning="So it is.", answer=self.last)
        message = SimpleNamespace(content=content, tool_calls=None)
        choices = [SimpleNamespace(message=message, finish_reason="stop")]
        return SimpleNamespace(choices=choices, usage={}, model="scripted")

    async def aforward(self, prompt: Any = None, messages: Any = None, **options: Any) -> Any:
        return self.forward(prompt, messages, **options)

    def _said(self, results: list[str]) -> Turn:
        _, turn = self.script.next([_without_guard(result) for result in results])
        self.last = turn if isinstance(turn, str) else ""
        return turn


def _fields(**values: Any) -> str:
    written = {name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}
    return "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in {**written, "completed": ""}.items())


def _of_react(turn: Turn) -> dict[str, Any]:
    if isinstance(turn, str):
        return {"next_thought": turn, "next_tool_name": "finish", "next_tool_args": {}}
    [asked] = turn
    return {"next_thought": "So be it.", "next_tool_name": asked.name, "next_tool_args": dict(asked.args)}


def _calls(turn: Turn) -> list[dict[str, Any]]:
    if isinstance(turn, str):
        return [{"name": "submit", "args": {"answer": turn}}]
    return [{"name": asked.name, "args": dict(asked.args)} for asked in turn]


def _observations(prompt: str) -> list[str]:
    return re.findall(r"\[\[ ## observation_\d+ ## \]\]\n(.*?)\n\n(?=\[\[|Respond with)", prompt, re.DOTALL)


def _results(message: str) -> list[str]:
    found = re.fullmatch(r"\[\[ ## tool_call_results ## \]\]\n(.*)", message, re.DOTALL)
    return [] if found is None else [str(r["value"]) for r in json.loads(found[1])["tool_call_results"]]


def _without_guard(result: str) -> str:
    """A result without the second frame in the traceback of a tool's error: there the framework wraps, or the guard."""
    frame = r'  File "[^"]*(?:guardrail_dspy|dspy/utils/callback)[^"]*", .*\n    .*\n(?:    +\^+\n)?'
    return re.sub(frame, "", result, count=1)


class ReAct:
    """`dspy.ReAct`."""

    name = "dspy"
    modes: Sequence[Mode] = ("sync", "async", "sync stream", "async stream")
    limits: Mapping[str, str] = {
        "test_a_call_is_recorded_under_the_id_that_the_model_gave_it": (
            "A tool is called without an id (dspy.predict.react:ReAct.forward)."
        ),
        "test_a_mistake_of_the_models_holds_nothing": (
            "A name that no tool has ends the module's work (dspy.predict.react:ReAct.forward)."
        ),
        "test_a_call_outside_of_a_run_is_told_to_the_program_and_not_only_to_the_model": (
            "An error of a callback's is logged and no more (dspy.utils.callback:with_callbacks)."
        ),
    }
    nests = True

    def play(self, scene: Scene, mode: Mode) -> str:
        agent = self.agent(scene, mode)
        with dspy.context(lm=self.model(scene.script), adapter=_ADAPTER):
            if mode == "sync":
                return str(agent(task="Do it.").answer)
            *_, last = dspy.streamify(agent, async_streaming=False)(task="Do it.")
            return str(last.answer)

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        agent = self.agent(scene, mode)
        with dspy.context(lm=self.model(scene.script), adapter=_ADAPTER):
            if mode == "async":
                return str((await agent.acall(task="Do it.")).answer)
            *_, last = [item async for item in dspy.streamify(agent, is_async_program=True)(task="Do it.")]
            return str(last.answer)

    def agent(self, scene: Scene, mode: Mode) -> dspy.Module:
        scene.script.turns = self.turns(scene.script)
        tools = [dspy.Tool(function) for function in scene.functions(mode)]
        if scene.inner is not None:
            inner = self.agent(Scene(scene.tools, scene.inner, scene.runs, scene.folder), mode)
            tools = [*tools, _clerk(inner, scene.inner, mode)]
        module = self.module(tools)
        return module if scene.runs is None else guarded(module, scene.runs)

    def model(self, script: Script) -> Scripted:
        return Scripted(script)

    def module(self, tools: list[dspy.Tool]) -> dspy.Module:
        return dspy.ReAct("task -> answer", tools=tools)

    def turns(self, script: Script) -> tuple[Turn, ...]:
        """The turns as this model takes them: one call each."""
        return tuple(
            one for turn in script.turns for one in ([turn] if isinstance(turn, str) else [[asked] for asked in turn])
        )


class ReActV2(ReAct):
    """`dspy.ReActV2`."""

    name = "dspy ReActV2"
    modes: Sequence[Mode] = ("sync", "async")
    limits: Mapping[str, str] = {
        "test_a_call_is_recorded_under_the_id_that_the_model_gave_it": (
            "A tool is called without an id (dspy.predict.react_v2:ReActV2._execute_tool_calls)."
        ),
        "test_a_call_outside_of_a_run_is_told_to_the_program_and_not_only_to_the_model": (
            "An error of a callback's is logged and no more (dspy.utils.callback:with_callbacks)."
        ),
    }

    def module(self, tools: list[dspy.Tool]) -> dspy.Module:
        return dspy.ReActV2("task -> answer", tools=tools)

    def turns(self, script: Script) -> tuple[Turn, ...]:
        return tuple(script.turns)


_ADAPTER = dspy.ChatAdapter(use_json_adapter_fallback=False)


def _clerk(agent: dspy.Module, script: Script, mode: Mode) -> dspy.Tool:
    def ask_clerk(question: str) -> str:
        """Ask the clerk."""
        with dspy.context(lm=Scripted(script)):
            return str(agent(task=question).answer)

    async def aask_clerk(question: str) -> str:
        """Ask the clerk."""
        with dspy.context(lm=Scripted(script)):
            return str((await agent.acall(task=question)).answer)

    return dspy.Tool(aask_clerk if mode.startswith("async") else ask_clerk, name="ask_clerk")


KITS = [ReAct(), *([ReActV2()] if hasattr(dspy, "ReActV2") else [])]
