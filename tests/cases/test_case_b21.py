"""B21: the model argues with the guard."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any

import pytest

from guardrail import Guard, Run, RunHalted, RunStopped
from support.cases import answering, outcomes
from support.shop import Guards, Shop

TOOLS: dict[str, Any] = {
    "get_policy": {"effect": "read"},
    "get_order": {"effect": "read"},
    "refund": {"effect": "write"},
    "run_script": {"effect": "write"},
    "anything": {},
}


@pytest.fixture
def guard(guards: Guards) -> Guard:
    return guards(policy="strict", tools=TOOLS)


def get_policy() -> dict[str, object]:
    return {"error": "the policy service has no such document"}


def trip(run: Run) -> None:
    """The failure that stops the run; the host makes a text of whatever it can catch."""
    with pytest.raises(RunHalted):
        run.call("get_policy", {}, get_policy)


def bodies(guard: Guard, *calls: tuple[str, dict[str, object]]) -> list[dict[str, object]]:
    """What bodies ran with when a model made these calls after the stop, in a host that swallows everything."""
    ran: list[dict[str, object]] = []
    run = guard.run()
    with pytest.raises(RunStopped) as caught, run:
        trip(run)
        for name, args in calls:
            with contextlib.suppress(BaseException):  # the worst host there is
                run.call(name, args, answering({"ok": True}, ran))
    assert caught.value.stop.call == 1
    assert list(outcomes(guard, run.id).values()) == ["error", *["refused"] * len(calls)]
    return ran


@pytest.mark.case("B21", "next write after a stop")
def test_the_next_write_after_a_stop_does_not_run(guard: Guard) -> None:
    assert bodies(guard, ("refund", {"order": 17})) == []


@pytest.mark.case("B21", "other tool with the same effect")
def test_no_other_tool_runs_after_a_stop(guard: Guard) -> None:
    assert bodies(guard, ("run_script", {"body": "POST /refund"}), ("anything", {})) == []


@pytest.mark.case("B21", "same tool, trivially changed arguments")
def test_no_other_form_of_the_arguments_gets_around_a_stop(guard: Guard) -> None:
    forms: list[dict[str, object]] = [{"order": "17 "}, {"order": " 17"}, {"Order": 17}, {"order": 17, "note": ""}]
    assert bodies(guard, *(("refund", form) for form in forms)) == []


@pytest.mark.case("B21", "host catches Exception broadly and goes on")
def test_a_host_that_catches_broadly_and_goes_on_changes_nothing(guard: Guard) -> None:
    ran: list[dict[str, object]] = []
    run = guard.run()
    with pytest.raises(RunStopped) as caught, run:
        for attempt in range(5):
            with contextlib.suppress(Exception):  # the usual host; the signal passes it by
                run.call("get_policy", {}, get_policy)
                run.call("refund", {"order": attempt}, answering({"ok": True}, ran))
    assert (ran, run.calls) == ([], 1)
    assert run.verdict is not None
    assert run.verdict.kind == "stopped"
    assert caught.value.stop is run.stop


def test_a_good_call_does_not_lift_the_stop(guard: Guard) -> None:
    assert bodies(guard, ("get_policy", {}), ("get_order", {"id": 17}), ("refund", {"order": 17})) == []


def test_a_turn_of_the_user_does_not_lift_the_stop_and_neither_does_taking_the_run_up_again(
    guard: Guard, shop: Shop
) -> None:
    run = guard.run(id="the-run")
    with pytest.raises(RunStopped), run:
        trip(run)
        run.user_turn()
        run.wrap(shop.note_order)(17, "x")
    again = guard.run(id="the-run")
    with pytest.raises(RunStopped), again:
        again.wrap(shop.note_order)(17, "x")
    assert shop.calls == []


@pytest.mark.case("B21", "parallel writes in the turn that trips")
async def test_a_write_beside_the_call_that_trips_does_not_start_once_the_stop_is_known(guard: Guard) -> None:
    ran: list[str] = []

    async def check() -> dict[str, object]:
        return {"error": "the policy service has no such document"}

    async def write(order: int) -> dict[str, object]:
        ran.append("refund")
        return {"ok": True}

    run = guard.run()
    stopped = asyncio.Event()

    async def trips() -> object:
        try:
            return await run.acall("get_policy", {}, check)
        finally:
            stopped.set()

    async def later() -> object:
        await stopped.wait()
        return await run.acall("refund", {"order": 17}, write)

    with pytest.raises(RunStopped):
        async with run:
            results = await asyncio.gather(trips(), later(), return_exceptions=True)
            assert [type(result) for result in results] == [RunHalted, RunHalted]
    assert ran == []


def test_a_write_that_was_admitted_before_the_stop_looks_again_before_it_runs(
    guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stop falls while the write waits for its durable intent."""
    ran: list[dict[str, object]] = []
    intending, tripped = threading.Event(), threading.Event()
    intend = guard.ledger.intend

    def slow(call: Any) -> None:
        intend(call)
        intending.set()
        assert tripped.wait(20)

    monkeypatch.setattr(guard.ledger, "intend", slow)
    run = guard.run()
    with pytest.raises(RunStopped), run:

        def write() -> None:
            with pytest.raises(RunHalted):
                run.call("refund", {"order": 17}, answering({"ok": True}, ran))

        thread = threading.Thread(target=write)
        thread.start()
        assert intending.wait(20)
        trip(run)
        tripped.set()
        thread.join()
    assert ran == []


@pytest.mark.case("B21", "handed to a sub-agent")
def test_a_stop_in_the_parent_holds_for_its_sub_agents(guard: Guard, shop: Shop) -> None:
    parent = guard.run()
    with pytest.raises(RunStopped), parent:
        trip(parent)
        with pytest.raises(RunHalted):  # the same run, handed on
            parent.wrap(shop.note_order)(17, "x")
        with pytest.raises(RunStopped), guard.run() as child:
            child.wrap(shop.note_order)(17, "x")
    assert shop.calls == []


@pytest.mark.case("B21", "read after a stop")
def test_a_read_after_a_stop_is_refused_and_under_a_hold_it_goes_on(guard: Guard, guards: Guards, shop: Shop) -> None:
    assert bodies(guard, ("get_order", {"id": 17})) == []
    # The policy decides by choosing what a failure does: `hold` lets reads go on, `stop` does not.
    holding = guards(policy="strict", outcomes={"error": "hold"}, tools=TOOLS)
    with holding.run() as run:
        run.call("get_policy", {}, get_policy)
        assert run.call("get_order", {"id": 17}, answering({"id": 17})) == {"id": 17}
    assert run.stop is None


@pytest.mark.case("B21", "new run")
def test_a_new_run_begins_without_the_stop(guard: Guard, shop: Shop) -> None:
    run = guard.run()
    with pytest.raises(RunStopped), run:
        trip(run)
    with guard.run() as other:
        other.wrap(shop.note_order)(17, "x")
    assert (other.stop, shop.calls) == (None, ["note_order"])


def test_what_the_model_reads_gives_it_nothing_to_argue_with(guard: Guard) -> None:
    run = guard.run()
    with pytest.raises(RunStopped), run, pytest.raises(RunHalted, match="This run is over") as caught:
        run.call("get_policy", {}, get_policy)
    assert not {"policy", "error", "rule", "instead", "try"} & set(str(caught.value).lower().replace(".", " ").split())
