"""B16: spans and context across generators, tasks and threads."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from opentelemetry import trace

from guardrail import Guard, Run
from support.recorder import Recorder
from support.shop import Guards, Shop

TOOLS = {"pages": {"effect": "read"}, "inner": {"effect": "read"}}
Events = AsyncGenerator[str, None]


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def guard(guards: Guards, recorder: Recorder) -> Guard:
    return guards(tools=TOOLS, tracer_provider=recorder.tracers)


@pytest.fixture
def errors(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.DEBUG)
    return lambda: [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def lookup(order_id: int) -> dict[str, int]:
    return {"id": order_id}


def agent(guard: Guard, shop: Shop, runs: list[Run]) -> Callable[[], Events]:
    """An agent that streams its events out of an open run, and a tool that streams as well."""

    async def pages() -> Events:
        for number in range(3):
            assert trace.get_current_span().is_recording()
            yield f"page {number}"

    async def events() -> Events:
        async with guard.run() as run:
            runs.append(run)
            yield "started"
            async for page in run.wrap(pages)():
                yield page
            run.wrap(shop.lookup_order)(17)
            yield "finished"

    return events


async def break_early(events: Callable[[], Events]) -> None:
    stream = events()
    async for event in stream:
        assert not trace.get_current_span().is_recording()
        if event == "page 0":
            break
    await stream.aclose()


async def close_elsewhere(events: Callable[[], Events]) -> None:
    stream = events()
    assert [await anext(stream), await anext(stream)] == ["started", "page 0"]
    await asyncio.create_task(asyncio.wait_for(stream.aclose(), 30))


async def collect_only(events: Callable[[], Events]) -> None:
    stream = events()
    assert [await anext(stream), await anext(stream)] == ["started", "page 0"]
    del stream
    gc.collect()
    await asyncio.sleep(0.2)


@pytest.mark.case("B16", "consumer breaks early")
async def test_a_reader_that_leaves_early_leaves_no_error_and_no_open_span(
    guard: Guard, shop: Shop, recorder: Recorder, errors: Callable[[], list[str]]
) -> None:
    await _is_tidy(break_early, guard, shop, recorder, errors)


@pytest.mark.case("B16", "generator closed from another task")
async def test_a_stream_that_another_task_closes_leaves_no_error_and_no_open_span(
    guard: Guard, shop: Shop, recorder: Recorder, errors: Callable[[], list[str]]
) -> None:
    await _is_tidy(close_elsewhere, guard, shop, recorder, errors)


@pytest.mark.case("B16", "generator only garbage collected")
async def test_a_stream_that_nobody_closes_leaves_no_error_and_no_open_span(
    guard: Guard, shop: Shop, recorder: Recorder, errors: Callable[[], list[str]]
) -> None:
    await _is_tidy(collect_only, guard, shop, recorder, errors)


async def _is_tidy(
    leave: Callable[[Callable[[], Events]], Awaitable[None]],
    guard: Guard,
    shop: Shop,
    recorder: Recorder,
    errors: Callable[[], list[str]],
) -> None:
    before = trace.get_current_span()
    runs: list[Run] = []
    await leave(agent(guard, shop, runs))
    assert trace.get_current_span() is before
    for _ in range(1000):
        if len(recorder.spans) == 2:
            break
        await asyncio.sleep(0.02)
    assert {span.name for span in recorder.spans} == {"invoke_agent", "execute_tool pages"}
    assert errors() == []
    assert runs[0].verdict is not None


@pytest.mark.case("B16", "tool in ThreadPoolExecutor.submit")
def test_a_call_in_a_thread_of_a_pool_is_a_child_of_its_run(guard: Guard, recorder: Recorder) -> None:
    with ThreadPoolExecutor(1) as pool, guard.run() as run:
        assert pool.submit(run.wrap({"inner": lookup})["inner"], 17).result() == {"id": 17}
    assert recorder.parent("execute_tool inner") == "invoke_agent"


@pytest.mark.case("B16", "tool by run_in_executor")
async def test_a_call_by_run_in_executor_is_a_child_of_its_run(guard: Guard, recorder: Recorder) -> None:
    async with guard.run() as run:
        loop = asyncio.get_running_loop()
        assert await loop.run_in_executor(None, run.wrap({"inner": lookup})["inner"], 17) == {"id": 17}
    assert recorder.parent("execute_tool inner") == "invoke_agent"


@pytest.mark.case("B16", "start and end in different tasks")
async def test_a_run_may_begin_in_one_task_and_end_in_another(
    guard: Guard, shop: Shop, recorder: Recorder, errors: Callable[[], list[str]]
) -> None:
    run = guard.run()

    async def on_start() -> None:
        await run.__aenter__()

    async def on_tool() -> None:
        run.wrap(shop.lookup_order)(17)

    async def on_end() -> None:
        await run.__aexit__(None, None, None)

    for callback in (on_start, on_tool, on_end):
        await asyncio.create_task(callback())
    assert errors() == []
    assert recorder.parent("execute_tool lookup_order") == "invoke_agent"
    assert not trace.get_current_span().is_recording()


@pytest.mark.case("B16", "after the run")
@pytest.mark.parametrize("fails", [False, True])
def test_after_a_run_the_current_span_is_what_it_was_before(
    guard: Guard, shop: Shop, recorder: Recorder, fails: bool
) -> None:
    with recorder.tracers.get_tracer("app").start_as_current_span("request") as request:
        try:
            with guard.run() as run:
                assert trace.get_current_span() is not request
                run.wrap(shop.lookup_order)(17)
                _ = 1 / (0 if fails else 1)
        except ZeroDivisionError:
            assert fails
        assert trace.get_current_span() is request
    assert recorder.parent("invoke_agent") == "request"
