"""Strands: an agent with the plugin."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from strands import Agent, tool
from strands.models import Model

from guardrail_strands import GuardrailPlugin
from support.kits.stage import Mode, Scene, Script, call_id


class Scripted(Model):
    """A model that says what the script says."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def update_config(self, **model_config: Any) -> None:
        pass

    def get_config(self) -> dict[str, Any]:
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        blocks = [block for message in messages for block in message["content"]]
        results = [block["toolResult"] for block in blocks if "toolResult" in block]
        number, turn = self.script.next([json.dumps([r["status"], r["content"]]) for r in results])
        yield {"messageStart": {"role": "assistant"}}
        said: list[tuple[Any, Any]] = (
            [({}, {"text": turn})]
            if isinstance(turn, str)
            else [
                (
                    {"toolUse": {"toolUseId": call_id(number, n), "name": a.name}},
                    {"toolUse": {"input": json.dumps(dict(a.args))}},
                )
                for n, a in enumerate(turn)
            ]
        )
        for start, delta in said:
            yield {"contentBlockStart": {"start": start}}
            yield {"contentBlockDelta": {"delta": delta}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if isinstance(turn, str) else "tool_use"}}


class Strands:
    """An agent with the plugin."""

    name = "strands"
    modes: Sequence[Mode] = ("sync", "async", "async stream")
    limits: Mapping[str, str] = {}
    nests = True

    def play(self, scene: Scene, mode: Mode) -> str:
        return str(self.agent(scene, mode)("Do it.")).strip()

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        agent = self.agent(scene, mode)
        if mode == "async":
            return str(await agent.invoke_async("Do it.")).strip()
        *_, last = [event async for event in agent.stream_async("Do it.")]
        return str(last["result"]).strip()

    def agent(self, scene: Scene, mode: Mode) -> Agent:
        """The agent; the other one, if there is one, is a tool of it."""
        tools: list[Any] = [tool(f) for f in scene.functions(mode)]
        if scene.inner is not None:
            tools.append(self.guarded(scene, scene.inner, tools).as_tool(name="ask_clerk"))
        return self.guarded(scene, scene.script, tools)

    def guarded(self, scene: Scene, script: Script, tools: Sequence[Any], **options: Any) -> Agent:
        """An agent, guarded if the scene has a guard."""
        plugins: list[Any] = [] if scene.runs is None else [GuardrailPlugin(scene.runs)]
        return Agent(Scripted(script), tools=[*tools], plugins=plugins, callback_handler=None, **options)


KITS = [Strands()]
