"""The guard in message loops written by hand, as people write them for two common model interfaces."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from guardrail import Guard, Run, RunStopped
from support.shop import Guards, Shop

Tools = dict[str, Callable[..., Any]]


def openai_loop(run: Run, tools: Tools, turns: list[list[tuple[str, str, dict[str, Any]]]]) -> list[dict[str, Any]]:
    """A chat-completions loop with a scripted model: each turn is a list of tool calls (id, name, arguments)."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "do it"}]
    for calls in turns:
        messages.append({"role": "assistant", "tool_calls": [call[0] for call in calls]})
        for call_id, name, args in calls:
            try:
                content = json.dumps(run.call(name, args, tools[name], id=call_id))
            except Exception as error:  # noqa: BLE001 - the usual loop tells the model whatever went wrong
                content = f"Error: {error}"
            messages.append({"role": "tool", "tool_call_id": call_id, "content": content})
    messages.append({"role": "assistant", "content": "All done!"})
    return messages


async def anthropic_loop(run: Run, tools: Tools, turns: list[list[tuple[str, str, dict[str, Any]]]]) -> list[Any]:
    """A messages loop, asynchronous, whose results go back as tool_result blocks."""
    messages: list[Any] = []
    for calls in turns:
        blocks: list[dict[str, Any]] = []
        for block_id, name, args in calls:
            try:
                result, failed = await run.acall(name, args, tools[name], id=block_id), False
            except Exception as error:  # noqa: BLE001 - as above
                result, failed = str(error), True
            blocks.append({"type": "tool_result", "tool_use_id": block_id, "content": str(result), "is_error": failed})
        messages.append({"role": "user", "content": blocks})
    return messages


def tools_of(shop: Shop) -> Tools:
    return {
        "lookup_order": shop.lookup_order,
        "refund_order": shop.refund_order,
        "cancel_order": shop.cancel_order,
        "note_order": shop.note_order,
    }


Turns = list[list[tuple[str, str, dict[str, Any]]]]

GOOD: Turns = [
    [("c1", "lookup_order", {"order_id": 17})],
    [("c2", "refund_order", {"order_id": 17, "amount": "19.90"})],
]
TALKED_AROUND: Turns = [
    [("c1", "cancel_order", {"order_id": 17})],
    [("c2", "refund_order", {"order_id": 17, "amount": "19.90"}), ("c3", "note_order", {"order_id": 17, "note": "x"})],
    [("c4", "lookup_order", {"order_id": 17})],
]
INPUTS = {"order_id": 17, "amount": "19.90"}


def test_a_good_run_passes_through_a_chat_loop_unchanged(guard: Guard, shop: Shop) -> None:
    with guard.run("refund_order", inputs=INPUTS) as run:
        messages = openai_loop(run, tools_of(shop), GOOD)
    assert run.verdict is not None
    assert run.verdict.kind == "verified"
    assert json.loads(messages[2]["content"])["status"] == "paid"


def test_a_chat_loop_that_catches_everything_ends_stopped(guard: Guard, shop: Shop) -> None:
    with pytest.raises(RunStopped) as caught, guard.run("refund_order", inputs=INPUTS) as run:
        openai_loop(run, tools_of(shop), TALKED_AROUND)
    assert shop.calls == ["cancel_order"]
    assert (caught.value.stop.call, caught.value.stop.tool) == (2, "refund_order")


async def test_a_good_run_passes_through_a_messages_loop_unchanged(guard: Guard, shop: Shop) -> None:
    async with guard.run("refund_order", inputs=INPUTS) as run:
        messages = await anthropic_loop(run, tools_of(shop), GOOD)
    assert run.verdict is not None
    assert run.verdict.kind == "verified"
    assert [block["is_error"] for message in messages for block in message["content"]] == [False, False]


async def test_a_messages_loop_that_catches_everything_ends_stopped(guard: Guard, shop: Shop) -> None:
    with pytest.raises(RunStopped):
        async with guard.run("refund_order", inputs=INPUTS) as run:
            await anthropic_loop(run, tools_of(shop), TALKED_AROUND)
    assert shop.calls == ["cancel_order"]


def test_a_tool_that_the_model_made_up_is_a_call_like_any_other(guards: Guards, shop: Shop) -> None:
    guard = guards(policy="strict")

    def unknown(**args: object) -> str:
        return "Error: unknown tool cancel_ordr"

    with pytest.raises(RunStopped), guard.run() as run:
        run.call("cancel_ordr", {"order_id": 17}, unknown)
        run.call("note_order", {"order_id": 17, "note": "x"}, shop.note_order)
    assert shop.calls == []
