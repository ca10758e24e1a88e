"""What is current where: generators, tasks, threads, and the time after a run."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing

import pytest
from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.trace import INVALID_SPAN, Span

from guardrail.calls import Verdict
from guardrail.telemetry.traces import CallTrace, RunTrace
from support.recorder import Recorder

RUN = "invoke_agent refund_order"
CALL = "execute_tool lookup_order"
VERIFIED = Verdict("verified")


@pytest.fixture
def run(recorder: Recorder) -> RunTrace:
    return recorder.telemetry.open_run("run-1", "refund_order", "balanced", "enforce")


def call_once(run: RunTrace) -> None:
    """What a driver does around a tool's body."""
    call = run.open_call("lookup_order", "read", 1)
    token = call.attach()
    call.detach(token)
    call.close("ok", "allow", executed=True)


async def streamed(run: RunTrace, seen: list[Span]) -> AsyncGenerator[int, None]:
    """What a driver does around a tool that streams: the span is current while the tool works, not while it waits."""
    call = run.open_call("lookup_order", "read", 1)
    try:
        for item in range(3):
            token = call.attach()
            seen.append(trace.get_current_span())
            call.detach(token)
            yield item
    finally:
        call.close("cancelled", "allow", executed=True)


async def held_open(run: RunTrace) -> AsyncIterator[int]:
    """A user's generator that holds a run open across its yields."""
    token = run.attach()
    try:
        yield 1
        yield 2
    finally:
        run.close(VERIFIED)
        run.detach(token)


class TestStreams:
    async def test_a_consumer_that_breaks_sees_no_span_and_leaves_no_error(
        self, recorder: Recorder, run: RunTrace, caplog: pytest.LogCaptureFixture
    ) -> None:
        seen: list[Span] = []
        async with aclosing(streamed(run, seen)) as stream:
            async for _ in stream:
                assert trace.get_current_span() is INVALID_SPAN
                break
        assert seen[0].get_span_context().is_valid
        assert recorder.span(CALL)
        assert caplog.records == []

    async def test_a_stream_that_another_task_closes_ends_its_span(
        self, recorder: Recorder, run: RunTrace, caplog: pytest.LogCaptureFixture
    ) -> None:
        stream = streamed(run, [])
        await anext(stream)
        await asyncio.create_task(close(stream))
        assert recorder.span(CALL)
        assert caplog.records == []

    async def test_a_stream_that_is_only_collected_ends_its_span(
        self, recorder: Recorder, run: RunTrace, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def consume() -> None:
            async for _ in streamed(run, []):
                break

        await asyncio.create_task(consume())
        gc.collect()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert recorder.span(CALL)
        assert caplog.records == []

    def test_a_generator_that_is_dropped_ends_its_span(
        self, recorder: Recorder, run: RunTrace, caplog: pytest.LogCaptureFixture
    ) -> None:
        def stream() -> Generator[int, None, None]:
            call = run.open_call("lookup_order", "read", 1)
            try:
                token = call.attach()
                call.detach(token)
                yield 1
            finally:
                call.close("cancelled", "allow", executed=True)

        next(stream())
        gc.collect()
        assert recorder.span(CALL)
        assert caplog.records == []


class TestARunHeldOpenAcrossAYield:
    async def test_closed_by_another_task_it_leaves_no_error_and_nothing_current_there(
        self, recorder: Recorder, run: RunTrace, caplog: pytest.LogCaptureFixture
    ) -> None:
        generator = held_open(run)
        await anext(generator)
        current_in_the_other_task = await asyncio.create_task(close(generator))
        assert current_in_the_other_task is INVALID_SPAN
        assert recorder.span(RUN)
        assert caplog.records == []

    async def test_collected_it_leaves_no_error(
        self, recorder: Recorder, run: RunTrace, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def consume() -> None:
            async for _ in held_open(run):
                break

        await asyncio.create_task(consume())
        gc.collect()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert recorder.span(RUN)
        assert caplog.records == []


async def close(generator: AsyncIterator[int]) -> Span:
    await generator.aclose()  # type: ignore[attr-defined]
    return trace.get_current_span()


class TestThreadsAndTasks:
    """A call belongs to its run wherever it is made."""

    def test_a_call_in_a_pool_thread(self, recorder: Recorder, run: RunTrace) -> None:
        token = run.attach()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(call_once, run).result()
        run.detach(token)
        run.close(VERIFIED)
        assert recorder.parent(CALL) == RUN

    async def test_a_call_by_run_in_executor(self, recorder: Recorder, run: RunTrace) -> None:
        token = run.attach()
        with ThreadPoolExecutor(1) as pool:
            await asyncio.get_running_loop().run_in_executor(pool, call_once, run)
        run.detach(token)
        run.close(VERIFIED)
        assert recorder.parent(CALL) == RUN

    async def test_a_call_by_to_thread_under_a_span_of_the_agent(self, recorder: Recorder, run: RunTrace) -> None:
        token = run.attach()
        with recorder.tracers.get_tracer("agent").start_as_current_span("step"):
            await asyncio.to_thread(call_once, run)
        run.detach(token)
        run.close(VERIFIED)
        assert recorder.parent(CALL) == "step"

    def test_a_call_in_a_context_from_before_the_run(self, recorder: Recorder) -> None:
        with recorder.tracers.get_tracer("server").start_as_current_span("POST /chat"):
            before = contexts.get_current()
            run = recorder.telemetry.open_run("run-1", "refund_order", "balanced", "enforce")
            token = run.attach()
            inner = contexts.attach(before)
            call_once(run)
            contexts.detach(inner)
            run.detach(token)
            run.close(VERIFIED)
        assert recorder.parent(CALL) == RUN
        assert recorder.parent(RUN) == "POST /chat"

    def test_the_body_of_a_tool_in_a_pool_thread_has_the_calls_span(self, recorder: Recorder, run: RunTrace) -> None:
        def body() -> None:
            call = run.open_call("lookup_order", "read", 1)
            token = call.attach()
            with recorder.tracers.get_tracer("httpx").start_as_current_span("GET /orders"):
                pass
            call.detach(token)
            call.close("ok", "allow", executed=True)
            assert trace.get_current_span() is INVALID_SPAN

        with ThreadPoolExecutor(1) as pool:
            pool.submit(body).result()
        run.close(VERIFIED)
        assert recorder.parent("GET /orders") == CALL

    async def test_a_call_begun_in_one_task_and_ended_in_another(
        self, recorder: Recorder, run: RunTrace, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def begin() -> tuple[CallTrace, object]:
            call = run.open_call("lookup_order", "read", 1)
            return call, call.attach()

        async def end(call: CallTrace, token: object) -> None:
            call.detach(token)
            call.close("ok", "allow", executed=True)
            assert trace.get_current_span() is INVALID_SPAN

        call, token = await asyncio.create_task(begin())
        await asyncio.create_task(end(call, token))
        run.close(VERIFIED)
        assert recorder.parent(CALL) == RUN
        assert caplog.records == []

    def test_two_runs_at_once_never_take_each_others_calls(self, recorder: Recorder) -> None:
        telemetry = recorder.telemetry
        one = telemetry.open_run("run-1", "first", "balanced", "enforce")
        token = one.attach()
        with ThreadPoolExecutor(1) as pool:
            two = pool.submit(lambda: telemetry.open_run("run-2", "second", "balanced", "enforce")).result()
        call_once(two)
        one.detach(token)
        one.close(VERIFIED)
        two.close(VERIFIED)
        assert recorder.parent(CALL) == "invoke_agent second"


class TestAfterwards:
    def test_after_a_run_is_current_what_was_before(self, recorder: Recorder) -> None:
        with recorder.tracers.get_tracer("server").start_as_current_span("POST /chat") as outer:
            run = recorder.telemetry.open_run("run-1", "refund_order", "balanced", "enforce")
            token = run.attach()
            assert trace.get_current_span() is not outer
            run.close(VERIFIED)
            run.detach(token)
            assert trace.get_current_span() is outer

    def test_a_span_forgotten_inside_the_run_does_not_stay_current(self, recorder: Recorder, run: RunTrace) -> None:
        token = run.attach()
        leaked = recorder.tracers.get_tracer("agent").start_span("leaked")
        contexts.attach(trace.set_span_in_context(leaked))
        run.close(VERIFIED)
        run.detach(token)
        assert trace.get_current_span() is INVALID_SPAN

    def test_detaching_twice_does_nothing_more(
        self, recorder: Recorder, run: RunTrace, caplog: pytest.LogCaptureFixture
    ) -> None:
        with recorder.tracers.get_tracer("server").start_as_current_span("POST /chat") as outer:
            token = run.attach()
            run.detach(token)
            run.detach(token)
            assert trace.get_current_span() is outer
        assert caplog.records == []
        assert recorder.telemetry.errors == 0
