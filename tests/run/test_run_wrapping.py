"""Guarding any kind of callable, in threads, tasks and streams."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import inspect
import json
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Generator
from typing import Any, cast

import pytest

from guardrail import Guard, RunHalted, RunStopped
from support.shop import Guards, Shop


async def fetch(order_id: int, note: str = "x") -> str:
    """Fetch an order."""
    await asyncio.sleep(0)
    return f"order {order_id} {note}"


class Fetcher:
    """A tool that is an object with an asynchronous call."""

    async def __call__(self, order_id: int) -> str:
        return await fetch(order_id)


def test_arguments_are_recorded_in_the_order_of_the_signature(guard: Guard) -> None:
    def pay(order_id: int, amount: str, note: str = "") -> None:
        pass

    with guard.run() as run:
        run.wrap(pay)(17, "19.90", note="late")
    history = guard.ledger.load_run(run.id)
    assert history is not None
    assert list(json.loads(history.calls[0].call.args)) == ["order_id", "amount", "note"]


def test_a_guarded_tool_keeps_its_name_doc_and_signature(guard: Guard, shop: Shop) -> None:
    with guard.run() as run:
        wrapped = run.wrap(shop.refund_order)
        assert (wrapped.__name__, wrapped.__doc__) == ("refund_order", "Refund an order.")
        assert inspect.signature(wrapped) == inspect.signature(shop.refund_order)
        assert inspect.iscoroutinefunction(run.wrap(fetch))


async def test_an_asynchronous_tool_of_any_make_is_awaited(guard: Guard) -> None:
    def disguised(order_id: int) -> Awaitable[str]:
        return fetch(order_id)

    async with guard.run() as run:
        assert await run.wrap(fetch)(17) == "order 17 x"
        assert await run.wrap(disguised)(17) == "order 17 x"
        assert await run.wrap(Fetcher())(17) == "order 17 x"
        assert await run.wrap(functools.partial(fetch, note="y"))(order_id=17) == "order 17 y"
        assert await run.call("fetch", {"order_id": 1}, fetch) == "order 1 x"
        assert await run.acall("fetch", {"order_id": 2}, disguised) == "order 2 x"


def test_an_asynchronous_tool_in_a_synchronous_run_is_never_a_coroutine_taken_for_a_result(guard: Guard) -> None:
    with guard.run() as run:
        assert asyncio.run(run.wrap(fetch)(17)) == "order 17 x"


def test_a_tool_may_be_called_by_position_by_name_and_with_defaults(guards: Guards, shop: Shop) -> None:
    guard = guards(tools={"note_order": {"effect": "write", "args": {"note": {"longest": 3}}}})
    with guard.run() as run:
        note = run.wrap(shop.note_order)
        note(17, "abc")
        note(17, note="abc")
    assert shop.calls == ["note_order", "note_order"]


def test_a_stream_is_handed_on_item_by_item_and_judged_at_its_end(guard: Guard) -> None:
    def numbers(upto: int) -> Generator[int, None, str]:
        yield from range(upto)
        return "all"

    with guard.run() as run:
        assert list(run.wrap(numbers)(3)) == [0, 1, 2]

        def outer() -> Generator[int, None, str]:
            return (yield from run.wrap(numbers)(2))

        stream = outer()
        assert (next(stream), next(stream)) == (0, 1)
        with pytest.raises(StopIteration) as done:
            next(stream)
        assert done.value.value == "all"


async def test_an_error_in_the_middle_of_a_stream_stops_the_run(guards: Guards) -> None:
    guard = guards(policy="strict", tools={"pages": {"effect": "read"}})

    async def pages() -> AsyncGenerator[str, None]:
        yield "first"
        raise ValueError("broken page")

    seen: list[str] = []
    with pytest.raises(RunStopped) as caught:
        async with guard.run() as run:
            async for page in run.wrap(pages)():
                seen.append(page)
    assert seen == ["first"]
    assert caught.value.stop.reason == "error"


async def test_a_stream_that_its_reader_leaves_early_is_closed_and_the_run_ends(guard: Guard) -> None:
    closed: list[str] = []

    async def pages() -> AsyncGenerator[int, None]:
        try:
            for number in range(100):
                yield number
        finally:
            closed.append("closed")

    async with guard.run() as run:
        stream = run.wrap(pages)()
        async for _ in stream:
            break
        await stream.aclose()
    assert closed == ["closed"]
    assert run.verdict is not None


def test_a_stream_that_nobody_reads_does_not_hold_the_run_up(guards: Guards) -> None:
    guard = guards(drain="20s", tools={"plain": {"effect": "read"}})

    def plain() -> Generator[int, None, None]:
        def inner() -> Generator[int, None, None]:
            yield 1

        return inner()

    with guard.run() as run:
        stream = run.wrap(plain)()
        del stream
        gc.collect()
        assert run.wrap(lambda: 1)() == 1
    assert run.verdict is not None


def test_a_tool_that_changes_its_arguments_does_not_change_the_record(guard: Guard) -> None:
    def call_api(**args: object) -> dict[str, object]:
        args["_auth"] = "Bearer sk-test-000"
        return {"ok": True}

    shared: dict[str, object] = {"path": "/v1"}
    with guard.run() as run:
        run.call("call_api", shared, call_api)
    assert shared == {"path": "/v1"}


def test_a_tool_may_raise_anything(guard: Guard) -> None:
    class Odd(BaseException):
        pass

    def tool(what: type[BaseException]) -> None:
        raise what

    for what in (ValueError, Odd, GeneratorExit, StopIteration, StopAsyncIteration, RecursionError, ExceptionGroup):
        with guard.run() as run:
            try:
                run.wrap(tool)(what)
            except (BaseException, TypeError) as error:  # noqa: BLE001 - that is the question
                assert isinstance(error, (what, TypeError))  # noqa: PT017
            else:
                raise AssertionError(what)


def test_the_decorator_finds_the_run_that_is_open(guard: Guard, shop: Shop) -> None:
    @guard.tool
    def lookup_order(order_id: int) -> object:
        """Look up."""
        return shop.lookup_order(order_id)

    with guard.run() as run:
        lookup_order(17)
    assert run.calls == 1


def test_the_decorator_finds_the_one_open_run_from_a_thread_without_context(guard: Guard, shop: Shop) -> None:
    note = guard.tool(shop.note_order)
    with guard.run() as run:
        thread = threading.Thread(target=note, args=(17, "from a thread"))
        thread.start()
        thread.join()
    assert run.calls == 1


async def test_a_synchronous_guard_of_asynchronous_calls_in_flight_does_not_hang(guards: Guards) -> None:
    guard = guards(drain="30s")

    async def slow() -> None:
        await asyncio.sleep(0.2)

    with guard.run() as run:
        task = asyncio.create_task(run.wrap(slow)())
        await asyncio.sleep(0.05)
    await task
    assert run.verdict is not None


async def test_the_end_of_a_run_waits_for_calls_in_flight(guard: Guard, shop: Shop) -> None:
    async def slow_note() -> None:
        await asyncio.sleep(0.2)
        shop.note_order(17, "late")

    async with guard.run("look_only") as run:
        task = asyncio.create_task(run.wrap(slow_note)())
        await asyncio.sleep(0.05)
    assert task.done()
    assert run.verdict is not None
    assert run.verdict.kind == "silent_failure"


def test_the_signal_cannot_be_caught_as_an_exception(guards: Guards, shop: Shop) -> None:
    guard = guards(policy="strict")
    assert not issubclass(RunHalted, Exception)
    with pytest.raises(RunStopped), guard.run() as run:
        try:
            run.wrap(shop.cancel_order)(17)
        except Exception:  # noqa: BLE001 - the usual host
            pytest.fail("an agent's own handler caught the signal")


def test_a_stream_that_its_reader_holds_on_to_does_not_hold_the_run_up(guards: Guards) -> None:
    guard = guards(drain="30s", tools={"numbers": {"effect": "read"}})

    def numbers() -> Generator[int, None, None]:
        yield from range(10)

    with guard.run() as run:
        stream = run.wrap(numbers)()
        next(stream)
        began = time.monotonic()
    assert time.monotonic() - began < 10
    assert next(stream) == 1


def test_an_error_thrown_into_a_stream_is_the_tools_to_handle(guard: Guard) -> None:
    def careful() -> Generator[str, None, None]:
        try:
            yield "first"
        except ValueError:
            yield "handled"
        yield "last"

    with guard.run() as run:
        stream = run.wrap(careful)()
        assert [next(stream), stream.throw(ValueError()), next(stream)] == ["first", "handled", "last"]
        assert list(stream) == []


async def test_the_guards_work_does_not_wait_behind_the_agents_own_threads(guard: Guard, shop: Shop) -> None:
    done = threading.Event()
    waiting = [asyncio.create_task(asyncio.to_thread(done.wait, 30)) for _ in range(64)]
    await asyncio.sleep(0.05)

    async def note_order(order_id: int, note: str) -> object:
        return shop.note_order(order_id, note)

    async with asyncio.timeout(10):
        async with guard.run("look_only") as run:
            await run.wrap(note_order)(17, "x")
    done.set()
    await asyncio.gather(*waiting)
    assert run.verdict is not None
    assert run.verdict.kind == "silent_failure"


def test_a_run_opened_by_a_context_manager_of_ones_own_is_current_within_it(guard: Guard, shop: Shop) -> None:
    @contextlib.contextmanager
    def session() -> Generator[None, None, None]:
        with guard.run("look_only"):
            yield

    lookup = guard.tool(shop.lookup_order)
    with session(), guard.run():
        lookup(17)
    assert shop.calls == ["lookup_order"]


def test_two_runs_that_generators_hold_open_do_not_mix(guard: Guard, shop: Shop) -> None:
    def agent(name: str) -> Generator[int, None, None]:
        with guard.run(id=name) as run:
            note = run.wrap(shop.note_order)
            for _ in range(2):
                note(17, name)
                yield run.calls

    first, second = agent("a"), agent("b")
    assert [next(first), next(second), next(first), next(second)] == [1, 1, 2, 2]
    assert [list(first), list(second)] == [[], []]


def test_what_is_no_tool_is_refused_where_it_is_wrapped(guard: Guard, shop: Shop) -> None:
    with guard.run() as run:
        with pytest.raises(TypeError, match=r"list is no tool: give functions one by one, wrap\(\*tools\)"):
            run.wrap(cast("Any", [shop.lookup_order, shop.note_order]))
        with pytest.raises(TypeError, match="the arguments of lookup_order are str: give a mapping by name"):
            run.call("lookup_order", cast("Any", '{"order_id": 17}'), shop.lookup_order)
    assert shop.calls == []
