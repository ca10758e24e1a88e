"""B20: wrappers around async tools that never run them."""

from __future__ import annotations

import asyncio
import functools
import inspect
import sqlite3
import threading
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from guardrail import Guard, Run, RunStopped
from support.cases import history_of, outcome_of, variant
from support.shop import Guards, Shop

TOOLS = {name: {"effect": "read"} for name in ("lookup", "Lookup", "pages")}


@pytest.fixture
def guard(guards: Guards) -> Guard:
    return guards(policy="strict", tools=TOOLS)


class Bodies:
    """Tools of every make around one body, which counts how often it runs."""

    def __init__(self) -> None:
        self.ran = 0

    async def lookup(self, id: int, depth: int = 1) -> dict[str, int]:
        """Look something up."""
        await asyncio.sleep(0)
        self.ran += 1
        return {"id": id}


def plain(bodies: Bodies) -> Callable[..., Any]:
    return bodies.lookup


def wrapped(bodies: Bodies) -> Callable[..., Any]:
    """A plain decorator, as people write them, that makes an async tool look synchronous."""

    @functools.wraps(bodies.lookup)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return bodies.lookup(*args, **kwargs)

    return wrapper


def disguised(bodies: Bodies) -> Callable[..., Any]:
    def lookup(id: int) -> Any:
        return asyncio.ensure_future(bodies.lookup(id))

    return lookup


def called(bodies: Bodies) -> Callable[..., Any]:
    class Lookup:
        async def __call__(self, id: int) -> dict[str, int]:
            return await bodies.lookup(id)

    return Lookup()


def partial(bodies: Bodies) -> Callable[..., Any]:
    return functools.partial(bodies.lookup, depth=2)


@pytest.mark.parametrize("way", ["wrap", "call", "acall", "decorator"])
@pytest.mark.parametrize(
    "make",
    [
        variant("B20", "async def", plain),
        variant("B20", "async def under a plain wrapper", wrapped),
        pytest.param(disguised, id="a future"),
        variant("B20", "object with async __call__", called),
        variant("B20", "functools.partial of async", partial),
    ],
)
async def test_an_asynchronous_tool_of_any_make_is_run_once_and_its_value_is_the_result(
    guard: Guard, make: Callable[[Bodies], Callable[..., Any]], way: str
) -> None:
    bodies = Bodies()
    tool = make(bodies)
    async with guard.run() as run:
        match way:
            case "wrap":
                made = run.wrap(tool)(id=7)
            case "call":
                made = run.call("lookup", {"id": 7}, tool)
            case "acall":
                made = run.acall("lookup", {"id": 7}, tool)
            case _:
                made = guard.tool(tool)(id=7)
        assert await made == {"id": 7}
    assert bodies.ran == 1
    assert outcome_of(history_of(guard, run.id), 1).outcome == "ok"


@pytest.mark.parametrize("make", [plain, wrapped, disguised, called, partial])
async def test_the_failure_of_an_asynchronous_tool_is_seen_whatever_its_make(
    guard: Guard, make: Callable[[Bodies], Callable[..., Any]]
) -> None:
    class Failing(Bodies):
        async def lookup(self, id: int, depth: int = 1) -> dict[str, int]:
            raise ValueError("no such table")

    with pytest.raises(RunStopped):
        async with guard.run() as run:
            await run.wrap(make(Failing()))(id=7)


@pytest.mark.case("B20", "async tool in sync run")
def test_an_asynchronous_tool_in_a_synchronous_run_is_run_by_whoever_awaits_it(guard: Guard) -> None:
    bodies = Bodies()
    with guard.run() as run:
        promised = run.wrap(bodies.lookup)(7)
        assert inspect.iscoroutine(promised)  # promised, and not yet taken for a result
        assert run.calls == 0
        assert asyncio.run(promised) == {"id": 7}
    assert (bodies.ran, run.calls) == (1, 1)


async def pages() -> AsyncGenerator[int, None]:
    for number in range(3):
        yield number


async def broken() -> AsyncGenerator[int, None]:
    yield 0
    raise ValueError("page 1 is no JSON")


@pytest.mark.case("B20", "async generator tool")
async def test_a_streaming_tool_gives_all_its_items_and_its_error_stops_the_run(guard: Guard) -> None:
    async with guard.run() as run:
        assert [number async for number in run.wrap(pages)()] == [0, 1, 2]
    seen: list[int] = []
    with pytest.raises(RunStopped) as caught:
        async with guard.run() as run:
            async for number in run.wrap({"pages": broken})["pages"]():
                seen.append(number)
    assert (seen, caught.value.stop.reason) == ([0], "error")


class SlowShop:
    """A store whose driver blocks at every look, until the event loop has made progress."""

    def __init__(self, shop: Shop, loop: asyncio.AbstractEventLoop) -> None:
        self._shop = shop
        self._loop = loop
        self.looks: list[bool] = []

    def connect(self) -> sqlite3.Connection:
        progress = threading.Event()
        self._loop.call_soon_threadsafe(progress.set)
        self.looks.append(progress.wait(20))
        return sqlite3.connect(self._shop.path)


async def note(guards: Guards, slow: SlowShop, tool: Callable[..., Any], task: str | None = None) -> Run:
    """A run whose one call has a precondition on the slow store."""
    requires = [{"store": "shop", "sql": "select status = 'paid' from orders where id = :order_id"}]
    declared = guards(tools={"note_order": {"effect": "write", "requires": requires}}).configuration
    with Guard(declared.model_copy(update={"ledger": "memory"}), stores={"shop": slow.connect}) as guard:
        async with guard.run(task) as run:
            await run.acall("note_order", {"order_id": 17, "note": "x"}, tool)
    return run


@pytest.mark.case("B20", "sync tool in async run")
async def test_a_synchronous_tool_runs_once_in_the_loops_thread_and_the_guards_own_work_does_not(
    guards: Guards, shop: Shop
) -> None:
    threads: list[threading.Thread] = []

    def tool(order_id: int, note: str) -> dict[str, int]:
        threads.append(threading.current_thread())
        return {"noted": order_id}

    slow = SlowShop(shop, asyncio.get_running_loop())
    await note(guards, slow, tool)
    assert threads == [threading.current_thread()]
    assert slow.looks == [True]


@pytest.mark.case("B20", "slow check in async run")
async def test_other_tasks_make_progress_while_a_driver_blocks(guards: Guards, shop: Shop) -> None:
    async def tool(order_id: int, note: str) -> object:
        return shop.note_order(order_id, note)

    slow = SlowShop(shop, asyncio.get_running_loop())
    run = await note(guards, slow, tool, task="look_only")
    assert slow.looks == [True] * 3  # before the run, at the precondition, and at the end
    assert shop.calls == ["note_order"]
    assert run.verdict is not None
    assert run.verdict.kind == "silent_failure"


@pytest.mark.case("B20", "guarded function keeps name, doc and signature")
@pytest.mark.parametrize("way", ["wrap", "named", "decorator"])
@pytest.mark.parametrize("make", [plain, wrapped])
def test_a_guarded_tool_gives_the_same_schema(
    guard: Guard, make: Callable[[Bodies], Callable[..., Any]], way: str
) -> None:
    tool = make(Bodies())
    with guard.run() as run:
        named = run.wrap({"lookup": tool})["lookup"]
        guarded = {"wrap": run.wrap(tool), "named": named, "decorator": guard.tool(tool)}[way]
    assert (guarded.__name__, guarded.__doc__) == ("lookup", "Look something up.")
    assert inspect.signature(guarded) == inspect.signature(tool)
    assert inspect.get_annotations(guarded) == inspect.get_annotations(tool)
    assert inspect.iscoroutinefunction(guarded) is inspect.iscoroutinefunction(tool)
