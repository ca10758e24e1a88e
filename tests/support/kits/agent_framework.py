"""Microsoft Agent Framework's `Agent`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, Awaitable, Mapping, Sequence
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    tool,
)

from guardrail_agent_framework import guardrail_middleware
from support.kits.stage import Awaited, Mode, Scene, Script, call_id


class Scripted(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """A chat client that says what the script says."""

    def __init__(self, script: Script) -> None:
        super().__init__()
        self.script = script

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **others: Any
    ) -> Awaitable[ChatResponse] | ResponseStream[ChatResponseUpdate, ChatResponse]:
        if stream:
            return ResponseStream(self._updates(messages), finalizer=ChatResponse.from_updates)
        return self._response(messages)

    async def _response(self, messages: Sequence[Message]) -> ChatResponse:
        return ChatResponse(messages=[Message(role="assistant", contents=self._said(messages))])

    async def _updates(self, messages: Sequence[Message]) -> AsyncIterable[ChatResponseUpdate]:
        yield ChatResponseUpdate(role="assistant", contents=self._said(messages))

    def _said(self, messages: Sequence[Message]) -> list[Content]:
        contents = [content for message in messages for content in message.contents]
        number, turn = self.script.next([str(c.result) for c in contents if c.type == "function_result"])
        if isinstance(turn, str):
            return [Content.from_text(turn)]
        return [
            Content.from_function_call(call_id(number, n), asked.name, arguments=json.dumps(asked.args))
            for n, asked in enumerate(turn)
        ]


class AgentFramework(Awaited):
    """An `Agent`; by blocking it has plain functions as tools, which it runs in threads."""

    name = "agent_framework"

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        middleware = self.middleware(scene)
        tools = [tool(function, approval_mode="never_require") for function in scene.functions(mode)]
        if scene.inner is not None:
            inner = Agent(Scripted(scene.inner), tools=tools, middleware=middleware)
            tools = [*tools, inner.as_tool(name="ask_clerk", arg_name="question")]
        agent = Agent(self.client(scene.script), tools=tools, middleware=middleware)
        if mode != "async stream":
            return (await agent.run("Do it.")).text
        stream = agent.run("Do it.", stream=True)
        return "".join([update.text async for update in stream])

    def middleware(self, scene: Scene) -> list[Any]:
        return [] if scene.runs is None else list(guardrail_middleware(scene.runs))

    def client(self, script: Script) -> Scripted:
        return Scripted(script)


KITS = [AgentFramework()]
