"""B13: one of several parallel calls fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from guardrail import Guard, Run, RunHalted, RunStopped
from support.cases import history_of, outcome_of, outcomes
from support.shop import Guards

TOOLS = {name: {"effect": "write"} for name in ("reserve_room", "charge_card", "send_mail")}
Tool = Callable[..., Awaitable[object]]


@pytest.fixture
def guard(guards: Guards) -> Guard:
    return guards(policy="strict", tools=TOOLS)


def call(run: Run, number: int, tool: Tool) -> Awaitable[Any]:
    name = list(TOOLS)[number - 1]
    return run.acall(name, {"booking": 7}, tool, id=f"c{number}")


async def done(booking: int) -> object:
    return {"done": booking}


async def turned_down(booking: int) -> object:
    raise ConnectionRefusedError(f"nobody listens for {booking}")


@pytest.mark.case("B13", "one raises, one done, one running")
@pytest.mark.parametrize("gathered", ["gather", "group"])
async def test_every_call_of_a_batch_is_recorded_before_the_stop_leaves_the_run(guard: Guard, gathered: str) -> None:
    came_out, begun, failed = asyncio.Event(), asyncio.Event(), asyncio.Event()
    finished: list[int] = []

    async def slow(booking: int) -> object:
        begun.set()
        await failed.wait()
        await asyncio.sleep(0.05)
        finished.append(booking)
        return {"sent": booking}

    async def fails(booking: int) -> object:
        await came_out.wait()
        await begun.wait()
        failed.set()
        return await turned_down(booking)

    async def first() -> None:
        await call(run, 1, done)
        came_out.set()

    run = guard.run()
    with pytest.raises(RunStopped) as caught:
        async with run:
            batch = [first(), call(run, 2, fails), call(run, 3, slow)]
            if gathered == "gather":  # lets the others run on
                await asyncio.gather(*batch)
            async with asyncio.TaskGroup() as group:  # cancels the others
                for one in batch:
                    group.create_task(asyncio.wait_for(one, 30))
    assert (caught.value.stop.reason, caught.value.stop.call, caught.value.stop.tool) == ("error", 2, "charge_card")
    running = "ok" if gathered == "gather" else "in_doubt"
    assert outcomes(guard, run.id) == {"c1": "ok", "c2": "error", "c3": running}
    assert finished == ([7] if gathered == "gather" else [])


@pytest.mark.case("B13", "stop before the others have started")
def test_calls_that_come_after_the_stop_are_not_executed_and_each_has_a_result(guard: Guard) -> None:
    executed: list[str] = []

    def tool(name: str) -> Callable[..., object]:
        def body(booking: int) -> object:
            executed.append(name)
            raise ConnectionRefusedError("nobody listens")

        return body

    results: dict[str, BaseException] = {}
    run = guard.run()
    with pytest.raises(RunStopped), run:
        for number, name in enumerate(TOOLS, 1):
            try:
                run.call(name, {"booking": 7}, tool(name), id=f"c{number}")
            except BaseException as error:  # noqa: BLE001 - a host that must give each call id a result
                results[f"c{number}"] = error
    assert executed == ["reserve_room"]
    assert {call_id: type(error) for call_id, error in results.items()} == dict.fromkeys(("c1", "c2", "c3"), RunHalted)
    assert outcomes(guard, run.id) == {"c1": "error", "c2": "refused", "c3": "refused"}
    assert [c.outcome.executed for c in history_of(guard, run.id).calls if c.outcome] == [True, False, False]


@pytest.mark.case("B13", "two fail at once")
async def test_of_two_calls_that_fail_at_once_both_are_recorded_and_told(guard: Guard) -> None:
    meet = asyncio.Barrier(2)

    async def fails(booking: int) -> object:
        await meet.wait()
        return await turned_down(booking)

    run = guard.run()
    with pytest.raises(RunStopped) as caught:
        async with run:
            results = await asyncio.gather(call(run, 1, fails), call(run, 2, fails), return_exceptions=True)
            assert [type(result) for result in results] == [RunHalted, RunHalted]
    assert outcomes(guard, run.id) == {"c1": "error", "c2": "error"}
    told = str(caught.value)
    assert "call 1 (reserve_room)" in told
    assert "call 2 (charge_card)" in told


@pytest.mark.case("B13", "exception without text")
async def test_a_failure_without_text_has_its_class_for_a_text_and_its_call_id(guard: Guard) -> None:
    async def fails(booking: int) -> object:
        raise KeyError

    run = guard.run()
    with pytest.raises(RunStopped):
        async with run:
            await asyncio.gather(call(run, 1, done), call(run, 2, fails))
    recorded = history_of(guard, run.id)
    assert recorded.calls[1].call.call_id == "c2"
    assert outcome_of(recorded, 2).message == "KeyError"


@pytest.mark.case("B13", "cancelled by the host")
async def test_a_cancelled_write_of_a_batch_is_in_doubt_and_the_cancellation_goes_through(guard: Guard) -> None:
    came_out, begun = asyncio.Event(), asyncio.Event()

    async def slow(booking: int) -> object:
        begun.set()
        await asyncio.Event().wait()
        return booking

    async def first() -> None:
        await call(run, 1, done)
        came_out.set()

    run = guard.run()

    async def agent() -> None:
        async with run:
            await asyncio.gather(first(), call(run, 3, slow))

    task = asyncio.create_task(agent())
    await came_out.wait()
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert outcomes(guard, run.id) == {"c1": "ok", "c3": "in_doubt"}


@pytest.mark.case("B13", "all ok")
async def test_a_batch_that_comes_out_well_keeps_its_order_and_the_run_goes_on(guard: Guard) -> None:
    async def later(booking: int) -> object:
        await asyncio.sleep(0.02)
        return {"later": booking}

    async with guard.run() as run:
        results = await asyncio.gather(call(run, 1, later), call(run, 2, done), call(run, 3, done))
        assert list(results) == [{"later": 7}, {"done": 7}, {"done": 7}]
        assert await run.acall("send_mail", {"booking": 8}, done, id="c4") == {"done": 8}
    assert outcomes(guard, run.id) == {"c1": "ok", "c2": "ok", "c3": "ok", "c4": "ok"}
    assert run.stop is None
