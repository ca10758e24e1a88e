"""The agent: the usual message loop, in which one line is guarded."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from guardrail import Run

Message: TypeAlias = dict[str, Any]
Model: TypeAlias = Callable[[list[Message]], Message]
Tools: TypeAlias = Mapping[str, Callable[..., Any]]


def answer(request: str, model: Model, tools: Tools, run: Run) -> str:
    """Let the model call tools until it has an answer for the customer."""
    messages: list[Message] = [{"role": "user", "content": request}]
    while True:
        reply = model(messages)
        messages.append(reply)
        if not reply.get("tool_calls"):
            return str(reply["content"])
        for call in reply["tool_calls"]:
            messages.append(_tool_message(call, _carried_out(call, tools, run)))


def _carried_out(call: Message, tools: Tools, run: Run) -> str:
    name, args = _asked(call)
    try:
        return json.dumps(run.call(name, args, tools[name], id=call["id"]))  # it was: tools[name](**args)
    except Exception as error:  # noqa: BLE001 - whatever a tool raises, the model is told; that is how most loops do it
        return f"Error: {error}"


async def aanswer(request: str, model: Model, tools: Tools, run: Run) -> str:
    """The same, for an asynchronous agent."""
    messages: list[Message] = [{"role": "user", "content": request}]
    while True:
        reply = model(messages)
        messages.append(reply)
        if not reply.get("tool_calls"):
            return str(reply["content"])
        for call in reply["tool_calls"]:
            messages.append(_tool_message(call, await _acarried_out(call, tools, run)))


async def _acarried_out(call: Message, tools: Tools, run: Run) -> str:
    name, args = _asked(call)
    try:
        return json.dumps(await run.acall(name, args, tools[name], id=call["id"]))
    except Exception as error:  # noqa: BLE001 - as above
        return f"Error: {error}"


def _asked(call: Message) -> tuple[str, dict[str, Any]]:
    return call["function"]["name"], json.loads(call["function"]["arguments"])


def _tool_message(call: Message, content: str) -> Message:
    return {"role": "tool", "tool_call_id": call["id"], "content": content}
