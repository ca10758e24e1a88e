"""B01: a raising tool is relabelled as a model fault, and the answer is written without its result."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from guardrail import RunStopped
from guardrail.calls import ToolCall, Unmade
from guardrail.run.adapter import Adapter
from support.cases import history_of, outcome_of, told
from support.shop import Guards


@pytest.mark.case("B01", "raises RuntimeError whose text looks like a rate limit")
def test_a_tool_that_raises_stops_the_run_and_is_to_blame_itself(guards: Guards) -> None:
    guard = guards(policy="strict", tools={"get_balance": {"effect": "read"}})
    asked: list[str] = []

    def get_balance(account: str) -> str:
        asked.append(account)
        raise RuntimeError("429 Too Many Requests from ledger")

    run = guard.run("look_only")
    with pytest.raises(RunStopped) as caught, run:
        for _ in range(3):  # a host that runs the turn again, because the text looks like a rate limit
            with contextlib.suppress(Exception):  # its one broad handler
                run.call("get_balance", {"account": "A-17"}, get_balance, id="c1")
    assert asked == ["A-17"]
    assert (caught.value.stop.reason, caught.value.stop.call, caught.value.stop.tool) == ("error", 1, "get_balance")
    assert run.verdict is not None
    assert run.verdict.kind == "stopped"
    recorded = history_of(guard, run.id).calls[0].call
    assert (recorded.tool, recorded.call_id) == ("get_balance", "c1")


@pytest.mark.case("B01", "raises an exception without any text")
def test_an_exception_without_text_is_named_by_its_class_and_keeps_its_call_id() -> None:
    seen = told(raises=ValueError())
    assert seen.stopped
    assert (seen.outcome.outcome, seen.outcome.message, seen.call.call_id) == ("error", "ValueError", "c1")
    assert seen.stop is not None
    assert "ValueError" in str(seen.stop)


@pytest.mark.case("B01", "after-hook exists but is called on success only")
def test_a_failure_is_seen_although_the_hosts_after_hook_is_called_on_success_only(guards: Guards) -> None:
    guard = guards(policy="strict", tools={"get_balance": {"effect": "read"}})
    hooked: list[object] = []

    def get_balance(account: str) -> object:
        return {"B-1": 5}[account]

    def host(tool: Callable[..., object], **args: object) -> None:
        result = tool(**args)
        hooked.append(result)  # not reached by a tool that raises

    run = guard.run()
    with pytest.raises(RunStopped) as caught, run:
        host(run.wrap(get_balance), account="id")
    assert hooked == []
    assert caught.value.stop.reason == "error"
    assert outcome_of(history_of(guard, run.id), 1).message == "KeyError: 'id'"


@pytest.mark.case("B01", "cancelled from outside")
@pytest.mark.parametrize(("effect", "outcome"), [("read", "cancelled"), ("write", "in_doubt")])
async def test_a_cancellation_goes_through_and_leaves_a_write_in_doubt(
    guards: Guards, effect: str, outcome: str
) -> None:
    guard = guards(policy="strict", tools={"get_balance": {"effect": effect}})
    begun = asyncio.Event()

    async def get_balance(account: str) -> None:
        begun.set()
        await asyncio.Event().wait()

    run = guard.run()

    async def agent() -> None:
        async with run:
            await run.wrap(get_balance)("A-17")

    task = asyncio.create_task(agent())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()
    assert outcome_of(history_of(guard, run.id), 1).outcome == outcome


class Denying(Adapter[Mapping[str, Any]]):
    """A framework's adapter, whose framework asks somebody before it calls a tool, and answers the model itself."""

    def describe(self, native: Mapping[str, Any]) -> ToolCall:
        return ToolCall(native["name"], native["args"], native["id"])

    def make(self, native: Mapping[str, Any], tool: Callable[..., object], *, allowed: bool) -> object:
        def execute() -> object:
            return tool(**native["args"]) if allowed else Unmade("The user does not allow it.")

        return self.call(native, execute)


@pytest.mark.case("B01", "denied by the framework before running")
def test_a_call_that_the_framework_denies_is_recorded_as_not_made_and_holds_nothing(guards: Guards) -> None:
    guard = guards(policy="strict", tools={"get_balance": {"effect": "read"}})
    made: list[str] = []

    def get_balance(account: str) -> dict[str, str]:
        made.append(account)
        return {"account": account}

    asked = {"name": "get_balance", "args": {"account": "A-17"}, "id": "c1"}
    with guard.run() as run:
        host = Denying(run)
        assert host.make(asked, get_balance, allowed=False) == "The user does not allow it."
        assert made == []
        assert host.make({**asked, "id": "c2"}, get_balance, allowed=True) == {"account": "A-17"}
        assert run.open_holds == 0
    denied, allowed = history_of(guard, run.id).calls
    assert denied.outcome is not None
    assert allowed.outcome is not None
    assert (denied.call.call_id, denied.outcome.executed, denied.outcome.sign) == ("c1", False, "not_made")
    assert (allowed.outcome.outcome, allowed.outcome.executed) == ("ok", True)
