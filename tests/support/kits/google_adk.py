"""Google's ADK: an agent in a runner, with the plugin."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode  # type: ignore[attr-defined]
from google.adk.apps import App
from google.adk.events import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from pydantic import BaseModel, SkipValidation

from guardrail_google_adk import GuardrailPlugin
from support.kits.stage import Mode, Scene, Script, call_id


class Scripted(BaseLlm):
    """A model that says what the script says."""

    script: SkipValidation[Script]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        number, turn = self.script.next(_results(llm_request))
        if isinstance(turn, str):
            parts = [types.Part(text=turn)]
            if stream:
                yield _response(parts, partial=True)
        else:
            asked = [
                types.FunctionCall(id=call_id(number, n), name=a.name, args=dict(a.args)) for n, a in enumerate(turn)
            ]
            parts = [types.Part(function_call=call) for call in asked]
        yield _response(parts, partial=False)


def _results(request: LlmRequest) -> list[str]:
    parts = [part for content in request.contents for part in content.parts or ()]
    return [json.dumps(p.function_response.response) for p in parts if p.function_response is not None]


def _response(parts: list[types.Part], *, partial: bool) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=parts), partial=partial)


class Question(BaseModel):
    """What an agent that is a tool is asked."""

    question: str


class GoogleAdk:
    """A runner whose app has the plugin."""

    name = "google_adk"
    modes: Sequence[Mode] = ("sync", "async", "sync stream", "async stream")
    limits: Mapping[str, str] = {}
    nests = True

    def play(self, scene: Scene, mode: Mode) -> str:
        *_, last = runner(self.agent(scene, mode), scene).run(**settings(scene, mode))
        return text(last)

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        made = runner(self.agent(scene, mode), scene)
        *_, last = [event async for event in made.run_async(**settings(scene, mode))]
        return text(last)

    def agent(self, scene: Scene, mode: Mode) -> LlmAgent:
        """The agent; the other one, if there is one, is a tool of it."""
        tools: list[Any] = list(scene.functions(mode))
        if scene.inner is not None:
            model = Scripted(model="scripted", script=scene.inner)
            tools.append(AgentTool(LlmAgent(name="ask_clerk", model=model, input_schema=Question, tools=[*tools])))
        return LlmAgent(name="agent", model=Scripted(model="scripted", script=scene.script), tools=tools)


def runner(agent: Any, scene: Scene) -> Runner:
    """A runner, guarded if the scene has a guard."""
    plugins: list[BasePlugin] = [] if scene.runs is None else [GuardrailPlugin(scene.runs)]
    sessions = scene.kept.setdefault("sessions", InMemorySessionService())
    app = App(name="shop", root_agent=agent, plugins=plugins)
    return Runner(app=app, session_service=sessions, auto_create_session=True)


def settings(scene: Scene, mode: Mode) -> dict[str, Any]:
    """What a runner is asked."""
    streaming = StreamingMode.SSE if mode.endswith("stream") else StreamingMode.NONE
    message = types.Content(role="user", parts=[types.Part(text="Do it.")])
    config = RunConfig(streaming_mode=streaming)
    return {"user_id": "user", "session_id": scene.thread, "new_message": message, "run_config": config}


def text(event: Event) -> str:
    """What the agent says in an event."""
    parts = event.content.parts if event.content is not None else None
    return "".join(part.text or "" for part in parts or ())


KITS = [GoogleAdk()]
