"""How a run is held and stopped, and that nothing gets around it."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from guardrail import CallRefused, Guard, RunHalted, RunNotOpen, RunStopped
from support.shop import Guards, Shop


def test_a_write_after_a_rejected_one_stops_the_run(guard: Guard, shop: Shop) -> None:
    with pytest.raises(RunStopped) as caught, guard.run() as run:
        run.wrap(shop.cancel_order)(order_id=17)
        run.wrap(shop.refund_order)(order_id=17, amount="19.90")
    assert caught.value.stop.reason == "write_under_hold"
    assert shop.calls == ["cancel_order"]


def test_a_lookup_that_finds_nothing_holds_writes_and_lets_reads_go_on(guard: Guard, shop: Shop) -> None:
    with guard.run() as run:
        lookup = run.wrap(shop.lookup_order)
        assert lookup(order_id=71) is None
        assert lookup(order_id=17) is not None
        run.wrap(shop.note_order)(order_id=17, note="found by another number")
    assert run.stop is None


def test_the_model_may_try_again_what_failed(guard: Guard, shop: Shop) -> None:
    said: list[dict[str, object]] = [{"error": "busy"}, {"ok": True}]
    answers = iter(said)

    def ship(order_id: int) -> dict[str, object]:
        return next(answers)

    with guard.run() as run:
        run.wrap(ship)(order_id=17)
        run.wrap(ship)(order_id=17)
        run.wrap(shop.note_order)(order_id=17, note="shipped")
    assert (run.stop, run.open_holds) == (None, 0)


def test_a_lookup_that_began_before_a_failure_does_not_resolve_it(guard: Guard, shop: Shop) -> None:
    """Both stand in one message of the model's, which knew of no failure."""
    began, failed = threading.Event(), threading.Event()

    def lookup_order(order_id: int) -> object:
        began.set()
        assert failed.wait(5)
        return shop.lookup_order(order_id)

    with pytest.raises(RunStopped) as caught, guard.run() as run:
        lookup, cancel, note = run.wrap(lookup_order, shop.cancel_order, shop.note_order)
        with ThreadPoolExecutor(1) as pool:
            looking = pool.submit(lookup, order_id=17)
            assert began.wait(5)
            cancel(order_id=17)
            failed.set()
            assert looking.result()
        note(order_id=17, note="cancelled")
    assert caught.value.stop.reason == "write_under_hold"


async def test_the_same_in_a_loop(guard: Guard, shop: Shop) -> None:
    began, failed = asyncio.Event(), asyncio.Event()

    async def lookup_order(order_id: int) -> object:
        began.set()
        await failed.wait()
        return shop.lookup_order(order_id)

    with pytest.raises(RunStopped) as caught:
        async with guard.run() as run:
            lookup, cancel, note = run.wrap(lookup_order, shop.cancel_order, shop.note_order)
            looking = asyncio.create_task(lookup(order_id=17))
            await began.wait()
            cancel(order_id=17)
            failed.set()
            assert await looking
            note(order_id=17, note="cancelled")
    assert caught.value.stop.reason == "write_under_hold"


def test_a_host_that_swallows_everything_still_ends_stopped(guard: Guard, shop: Shop) -> None:
    with pytest.raises(RunStopped), guard.run() as run:
        tools = run.wrap(shop.cancel_order, shop.refund_order, shop.note_order, shop.lookup_order)
        for tool, args in zip(tools, [(17,), (17, "1"), (17, "x"), (17,)], strict=True):
            try:
                tool(*args)
            except BaseException:  # noqa: BLE001 - the worst host there is
                continue
    assert shop.calls == ["cancel_order"]


def test_after_a_stop_a_read_is_refused_too(guards: Guards, shop: Shop) -> None:
    guard = guards(policy="strict")
    with pytest.raises(RunStopped), guard.run() as run:
        with pytest.raises(RunHalted):
            run.wrap(shop.cancel_order)(order_id=17)
        run.wrap(shop.lookup_order)(order_id=17)
    assert shop.calls == ["cancel_order"]


def test_what_a_model_could_read_says_that_the_run_is_over_and_nothing_else(guards: Guards, shop: Shop) -> None:
    guard = guards(policy="strict")
    with pytest.raises(RunStopped), guard.run() as run:
        with pytest.raises(RunHalted) as caught:
            run.wrap(shop.cancel_order)(order_id=17)
        assert "over" in str(caught.value)
        assert "17" not in str(caught.value)
        assert "cancel" not in str(caught.value)
        raise caught.value


def test_the_next_run_is_not_stopped(guards: Guards, shop: Shop) -> None:
    guard = guards(policy="strict")
    with pytest.raises(RunStopped), guard.run() as run:
        run.wrap(shop.cancel_order)(order_id=17)
    with guard.run() as other:
        other.wrap(shop.lookup_order)(order_id=17)
    assert other.stop is None


def test_two_runs_at_once_never_see_each_other(guards: Guards, shop: Shop) -> None:
    guard = guards(policy="strict")
    with guard.run() as good:
        with pytest.raises(RunStopped), guard.run(id="bad") as bad:
            bad.wrap(shop.cancel_order)(order_id=17)
        good.wrap(shop.lookup_order)(order_id=17)
    assert good.stop is None


def test_a_stop_in_one_thread_is_seen_by_all_calls_of_the_run(guard: Guard, shop: Shop) -> None:
    with pytest.raises(RunStopped), guard.run() as run:
        refund = run.wrap(shop.refund_order)
        with ThreadPoolExecutor(8) as pool:
            run.wrap(shop.cancel_order)(order_id=17)
            results = [pool.submit(refund, 17, "19.90") for _ in range(20)]
        assert all(isinstance(result.exception(), RunHalted) for result in results)
    assert shop.calls == ["cancel_order"]


def test_a_part_of_a_run_is_stopped_with_it(guards: Guards, shop: Shop) -> None:
    guard = guards(policy="strict")
    with pytest.raises(RunStopped), guard.run() as parent:
        with pytest.raises(RunHalted):
            parent.wrap(shop.cancel_order)(order_id=17)
        with guard.run() as child:
            child.wrap(shop.note_order)(order_id=17, note="from a helper")
    assert shop.calls == ["cancel_order"]


@pytest.mark.parametrize("signal", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_wins_over_the_stop_which_becomes_its_context(
    guards: Guards, shop: Shop, signal: type[BaseException]
) -> None:
    guard = guards(policy="strict")
    with pytest.raises(signal) as caught, guard.run() as run:
        with pytest.raises(RunHalted):
            run.wrap(shop.cancel_order)(order_id=17)
        raise signal
    assert isinstance(caught.value.__context__, RunStopped)


async def test_cancellation_wins_over_the_stop(guards: Guards, shop: Shop) -> None:
    guard = guards(policy="strict")

    async def agent() -> None:
        async with guard.run() as run:
            with pytest.raises(RunHalted):
                run.wrap(shop.cancel_order)(order_id=17)
            await asyncio.sleep(30)

    task = asyncio.create_task(agent())
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_every_call_of_a_parallel_batch_is_seen_and_those_not_begun_do_not_run(
    guards: Guards, shop: Shop
) -> None:
    guard = guards(tools={"reserve": {"effect": "write"}, "charge": {"effect": "write"}})
    began = asyncio.Event()

    async def reserve(room: int) -> dict[str, object]:
        began.set()
        await asyncio.sleep(0.05)
        return {"error": "taken"}

    async def charge(card: str) -> dict[str, object]:
        shop.calls.append("charge")
        return {"ok": True}

    async def later(card: str) -> object:
        await began.wait()
        await asyncio.sleep(0.1)
        return await run.wrap(charge)(card)

    with pytest.raises(RunStopped):
        async with guard.run() as run:
            results = await asyncio.gather(run.wrap(reserve)(1), later("x"), return_exceptions=True)
            assert results[0] == {"error": "taken"}
            assert isinstance(results[1], RunHalted)
    assert shop.calls == []


def test_a_call_of_unknown_effect_is_refused_under_a_hold_and_the_run_goes_on(guard: Guard, shop: Shop) -> None:
    def poke(order_id: int) -> str:
        shop.calls.append("poke")
        return "poked"

    with guard.run() as run:
        run.wrap(shop.cancel_order)(order_id=17)
        with pytest.raises(CallRefused, match="declared"):
            run.wrap(poke)(order_id=17)
        run.wrap(shop.lookup_order)(order_id=17)
    assert shop.calls == ["cancel_order", "lookup_order"]


def test_a_turn_of_the_user_resolves_what_failed(guard: Guard, shop: Shop) -> None:
    with guard.run() as run:
        run.wrap(shop.cancel_order)(order_id=17)
        run.user_turn()
        run.wrap(shop.refund_order)(order_id=17, amount="19.90")
    assert run.stop is None


def test_a_write_in_doubt_is_not_the_users_to_resolve_nor_to_be_repeated(guard: Guard, shop: Shop) -> None:
    def charge(order_id: int, amount: object) -> None:
        shop.calls.append("charge")
        raise TimeoutError("no answer within 30 s")

    with guard.run() as run:
        with pytest.raises(TimeoutError):
            run.wrap(charge)(order_id=17, amount="40.00")
        run.user_turn()
        with pytest.raises(CallRefused, match="may have succeeded"):
            run.wrap(charge)(amount=40.0, order_id=17)
    assert shop.calls == ["charge"]
    assert run.open_holds == 1


def test_one_operation_is_done_once(guard: Guard, shop: Shop) -> None:
    with guard.run() as run:
        refund = run.wrap(shop.refund_order)
        refund(17, "19.90")
        with pytest.raises(CallRefused, match="already done"):
            refund(order_id=17, amount="19.90")
        refund(18, "5.00")
    assert shop.execute("select count(*) from refunds") == [(2,)]


def test_the_same_operation_with_other_arguments_stops_the_run(guard: Guard, shop: Shop) -> None:
    with pytest.raises(RunStopped) as caught, guard.run() as run:
        refund = run.wrap(shop.refund_order)
        refund(17, "19.90")
        refund(17, "45.00")
    assert caught.value.stop.reason == "conflict"


def test_of_two_equal_operations_at_once_only_one_runs(guard: Guard, shop: Shop) -> None:
    gate = threading.Barrier(2, timeout=5)

    def refund(order_id: int) -> str:
        shop.calls.append("refund")
        return "done"

    guard_once = guard.configuration.tools["refund_order"]
    assert guard_once.once_per == ("order_id",)
    with guard.run() as run:
        tool = run.wrap({"refund_order": refund})["refund_order"]

        def attempt() -> object:
            gate.wait()
            try:
                return tool(order_id=17)
            except CallRefused as error:
                return error

        with ThreadPoolExecutor(2) as pool:
            results = [f.result() for f in [pool.submit(attempt), pool.submit(attempt)]]
    assert shop.calls == ["refund"]
    assert sum(isinstance(result, CallRefused) for result in results) == 1


def test_retries_have_a_cap(guards: Guards, shop: Shop) -> None:
    guard = guards(retries=2)
    with pytest.raises(RunStopped) as caught, guard.run() as run:
        cancel = run.wrap(shop.cancel_order)
        for _ in range(10):
            cancel(order_id=17)
    assert caught.value.stop.reason == "retries_used_up"
    assert len(shop.calls) == 3


def test_an_observed_run_refuses_nothing_and_names_where_it_would_have_stopped(guards: Guards, shop: Shop) -> None:
    guard = guards(policy="observe")
    with guard.run("refund_order", inputs={"order_id": 17, "amount": "19.90"}) as run:
        run.wrap(shop.cancel_order)(order_id=17)
        run.wrap(shop.refund_order)(order_id=17, amount="19.90")
        run.wrap(shop.note_order)(order_id=17, note="more")
    assert run.stop is None
    assert run.would_stop is not None
    assert (run.would_stop.call, run.would_stop.reason) == (2, "write_under_hold")
    assert run.verdict is not None
    assert run.verdict.kind == "silent_failure"
    assert shop.calls == ["cancel_order", "refund_order", "note_order"]


def test_an_observed_call_that_would_not_have_been_made_resolves_nothing(guards: Guards, shop: Shop) -> None:
    requires = [{"cel": "args.order_id == 18", "because": "only that one may be noted"}]
    guard = guards(policy="observe", tools={"note_order": {"effect": "write", "requires": requires}})
    with guard.run() as run:
        run.wrap(shop.note_order)(order_id=17, note="hello")
        run.wrap(shop.refund_order)(order_id=17, amount="19.90")
    assert run.would_stop is not None
    assert (run.would_stop.call, run.would_stop.reason) == (2, "write_under_hold")


def test_a_tool_of_a_run_that_has_ended_does_not_run(guard: Guard, shop: Shop) -> None:
    with guard.run() as run:
        note = run.wrap(shop.note_order)
    with pytest.raises(RunNotOpen, match="has ended"):
        note(17, "too late")
    assert shop.calls == []


def test_an_abandoned_run_makes_no_further_call(guard: Guard, shop: Shop) -> None:
    with guard.run() as run:
        run.abandon("enough")
        with pytest.raises(RunNotOpen, match="abandoned"):
            run.wrap(shop.note_order)(17, "more")
    assert shop.calls == []


def test_a_write_in_doubt_is_not_done_again_with_another_amount(guards: Guards, shop: Shop) -> None:
    guard = guards(tools={"charge": {"effect": "write"}})

    def charge(order_id: int, amount: str) -> None:
        shop.calls.append(amount)
        raise TimeoutError

    with pytest.raises(RunStopped) as caught, guard.run() as run:
        tool = run.wrap(charge)
        with pytest.raises(TimeoutError):
            tool(17, "40.00")
        tool(17, "41.00")
    assert caught.value.stop.reason == "write_under_hold"
    assert shop.calls == ["40.00"]


def test_an_idempotent_write_in_doubt_may_be_done_again_and_its_success_ends_the_doubt(
    guards: Guards, shop: Shop
) -> None:
    guard = guards(tools={"charge": {"effect": "write", "idempotent": True}})

    def charge(order_id: int) -> str:
        shop.calls.append("charge")
        if len(shop.calls) == 1:
            raise TimeoutError
        return "done"

    with guard.run() as run:
        tool = run.wrap(charge)
        with pytest.raises(TimeoutError):
            tool(17)
        tool(17)
        run.wrap(shop.note_order)(17, "charged")
    assert (run.stop, run.open_holds) == (None, 0)


def test_a_part_of_a_run_is_held_with_it(guard: Guard, shop: Shop) -> None:
    with pytest.raises(RunStopped), guard.run() as parent:
        parent.wrap(shop.cancel_order)(17)
        with guard.run() as child:
            child.wrap(shop.refund_order)(17, "19.90")
    assert shop.calls == ["cancel_order"]


def test_a_run_that_was_never_opened_makes_no_call(guard: Guard, shop: Shop) -> None:
    with pytest.raises(RunNotOpen, match="not open"):
        guard.run().wrap(shop.lookup_order)(17)
    assert shop.calls == []


async def test_a_write_that_is_still_running_at_the_end_makes_the_run_unverified(guards: Guards, shop: Shop) -> None:
    guard = guards(drain="100ms", tools={"slow": {"effect": "write"}})

    async def slow() -> None:
        await asyncio.sleep(0.6)
        shop.note_order(17, "late")

    async with guard.run("look_only") as run:
        task = asyncio.create_task(run.wrap(slow)())
        await asyncio.sleep(0.05)
    await task
    assert run.verdict is not None
    assert (run.verdict.kind, run.verdict.open_holds) == ("unverified", 1)
    assert "still running" in run.verdict.findings[0].text
    history = guard.ledger.load_run(run.id)
    assert history is not None
    assert [call.tool for call in history.in_doubt] == ["slow"]


def test_a_call_of_a_run_that_has_ended_does_not_land_in_another(guard: Guard, shop: Shop) -> None:
    note = guard.tool(shop.note_order)
    leaked: list[contextvars.Context] = []
    with guard.run():
        leaked.append(contextvars.copy_context())
    with guard.run("look_only") as other, pytest.raises(RunNotOpen, match="has ended"):
        leaked[0].run(note, 17, "leaked")
    assert shop.calls == []
    assert other.calls == 0


def test_a_tool_that_changes_a_nested_argument_may_still_be_tried_again(guards: Guards) -> None:
    guard = guards(tools={"tag": {"effect": "write"}})

    def tag(tags: list[str]) -> dict[str, object]:
        tags.append("seen")
        return {"error": "busy"}

    with guard.run() as run:
        tool = run.wrap(tag)
        tool(tags=["a"])
        tool(tags=["a"])
    assert run.stop is None


def test_of_a_tool_that_takes_one_object_the_fields_count(guards: Guards, shop: Shop) -> None:
    guard = guards(tools={"change": {"effect": "write"}})

    def change(request: dict[str, object]) -> dict[str, object]:
        shop.calls.append(str(request["action"]))
        return {"error": "not allowed: shipped"}

    with pytest.raises(RunStopped), guard.run() as run:
        tool = run.wrap(change)
        tool(request={"order_id": 17, "action": "cancel"})
        tool(request={"order_id": 99, "action": "delete_customer"})
    assert shop.calls == ["cancel"]


def test_what_a_default_decides_counts_as_if_it_had_been_given(guards: Guards, shop: Shop) -> None:
    guard = guards(tools={"refund": {"effect": "write", "once_per": ["order_id"]}})

    def refund(order_id: int = 17) -> str:
        shop.calls.append("refund")
        return "done"

    with guard.run() as run:
        tool = run.wrap(refund)
        tool(17)
        with pytest.raises(CallRefused, match="already done"):
            tool()
        with pytest.raises(CallRefused, match="already done"):
            run.call("refund", {}, refund)
    assert shop.calls == ["refund"]


def test_a_tool_that_is_guarded_twice_runs_once(guards: Guards, shop: Shop) -> None:
    guard = guards()
    with guard.run() as run:
        run.wrap(guard.tool(shop.refund_order))(17, "19.90")
    assert (shop.calls, run.calls) == (["refund_order"], 1)


def test_the_same_at_the_same_time_is_refused_as_running_and_may_be_done_when_that_failed(
    guards: Guards, shop: Shop
) -> None:
    guard = guards(tools={"refund": {"effect": "write", "once_per": ["order_id"]}})
    refusals: list[str] = []

    def refund(order_id: int, again: bool) -> dict[str, object]:
        if again:
            with pytest.raises(CallRefused, match="right now") as caught:
                tool(order_id, False)
            refusals.append(caught.value.reason)
            return {"error": "card declined"}
        return {"ok": True}

    with guard.run() as run:
        tool = run.wrap(refund)
        tool(17, True)
        assert tool(17, False) == {"ok": True}
    assert refusals == ["running"]
