"""The two drivers of a flow: one waits by blocking, the other by awaiting. Nothing is decided here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from functools import partial
from types import AsyncGeneratorType, GeneratorType
from typing import TypeVar, cast

from guardrail.call.flow import Flow
from guardrail.call.needs import Execute, Need, Pause, Scope, Work
from guardrail.calls import Ending, Raised, Returned

T = TypeVar("T")
Execution = Callable[[], object]

STREAMED = 256
"""How many items of a stream are kept to judge it by; beyond that, its last ones."""


def result_of(ending: Ending) -> object:
    """What a caller gets: the value, or the error raised anew."""
    match ending:
        case Returned(value):
            return value
        case Raised(error):
            raise error


def drive(flow: Flow, execute: Execution) -> object:
    """Drive a call's flow by blocking.

    Whether a tool is asynchronous is told by what it returns: an awaitable is handed back inside a
    coroutine that goes on with the flow, a generator inside a generator that does.
    """
    execution = _until_execute(flow)
    if isinstance(execution, Execute):
        ending = _attempt(execute, execution.scope)
        if isinstance(ending, Returned):
            value = ending.value
            if isinstance(value, GeneratorType):
                return _stream(flow, cast("Generator[object, object, object]", value), execution.scope)
            if isinstance(value, AsyncGeneratorType):
                return _astream(flow, cast("AsyncGenerator[object, object]", value), execution.scope)
            if hasattr(type(value), "__await__"):
                return _go_on(flow, cast("Awaitable[object]", value), execution.scope)
        execution = _finish(flow, ending)
    return result_of(execution)


async def adrive(flow: Flow, execute: Execution) -> object:
    """Drive a call's flow by awaiting; the guard's own work runs off the loop."""
    execution = await _auntil_execute(flow)
    if isinstance(execution, Execute):
        ending = _attempt(execute, execution.scope)
        if isinstance(ending, Returned):
            value = ending.value
            if isinstance(value, GeneratorType):
                return _stream(flow, cast("Generator[object, object, object]", value), execution.scope)
            if isinstance(value, AsyncGeneratorType):
                return _astream(flow, cast("AsyncGenerator[object, object]", value), execution.scope)
            if hasattr(type(value), "__await__"):
                return await _go_on(flow, cast("Awaitable[object]", value), execution.scope)
        execution = await _afinish(flow, ending)
    return result_of(execution)


def drain(steps: Generator[Need, object, T]) -> T:
    """Drive a flow without a tool (the end of a run) by blocking."""
    try:
        need = next(steps)
        while True:
            need = _advance(steps, need)
    except StopIteration as done:
        return cast("T", done.value)


async def adrain(steps: Generator[Need, object, T]) -> T:
    """Drive a flow without a tool by awaiting."""
    try:
        need = next(steps)
        while True:
            need = await _aadvance(steps, need)
    except StopIteration as done:
        return cast("T", done.value)


def _until_execute(flow: Flow) -> Execute | Ending:
    try:
        need = next(flow)
        while not isinstance(need, Execute):
            need = _advance(flow, need)
    except StopIteration as done:
        return cast("Ending", done.value)
    return need


async def _auntil_execute(flow: Flow) -> Execute | Ending:
    try:
        need = next(flow)
        while not isinstance(need, Execute):
            need = await _aadvance(flow, need)
    except StopIteration as done:
        return cast("Ending", done.value)
    return need


def _finish(flow: Flow, ending: Ending) -> Ending:
    try:
        need = flow.send(ending)
        while True:
            need = _advance(flow, need)
    except StopIteration as done:
        return cast("Ending", done.value)


async def _afinish(flow: Flow, ending: Ending) -> Ending:
    try:
        need = flow.send(ending)
        while True:
            need = await _aadvance(flow, need)
    except StopIteration as done:
        return cast("Ending", done.value)


def _advance(flow: Generator[Need, object, object], need: Need) -> Need:
    """Do what is needed and give the flow the result; its error, if it failed, is raised inside the flow."""
    result: object = None
    try:
        if isinstance(need, Pause):
            time.sleep(need.seconds)
        else:
            result = cast("Work", need).do()
    except BaseException as error:  # noqa: BLE001 - thrown into the flow, which records it and lets it go on
        return flow.throw(error)
    return flow.send(result)


async def _aadvance(flow: Generator[Need, object, object], need: Need) -> Need:
    result: object = None
    try:
        if isinstance(need, Pause):
            await asyncio.sleep(need.seconds)
        else:
            result = await asyncio.to_thread(cast("Work", need).do)
    except BaseException as error:  # noqa: BLE001 - cancellation included; thrown into the flow as above
        return flow.throw(error)
    return flow.send(result)


def _attempt(execute: Execution, scope: Scope) -> Ending:
    token = scope.attach()
    try:
        return Returned(execute())
    except BaseException as error:  # noqa: BLE001 - every way out of a tool is seen once, as a value
        return Raised(error)
    finally:
        scope.detach(token)


async def _go_on(flow: Flow, awaitable: Awaitable[object], scope: Scope) -> object:
    token = scope.attach()
    try:
        ending: Ending = Returned(await awaitable)
    except BaseException as error:  # noqa: BLE001 - cancellation included: the flow records it and gives it back
        ending = Raised(error)
    finally:
        scope.detach(token)
    return result_of(await _afinish(flow, ending))


def _stream(flow: Flow, source: Generator[object, object, object], scope: Scope) -> Generator[object, object, object]:
    """A tool's generator with the rest of the flow behind it; the scope is never current across a yield."""
    seen: list[object] = []
    sent: object = None
    try:
        while True:
            step = _attempt(partial(source.send, sent), scope)
            if isinstance(step, Raised):
                break
            _keep(seen, step.value)
            sent = yield step.value
    except BaseException as error:  # noqa: BLE001 - the consumer closed the stream or threw into it
        step = _attempt(lambda: source.throw(error), scope)
        step = Raised(error) if isinstance(step, Returned) else step
    result_of(_finish(flow, _of_stream(step, seen, StopIteration)))
    return step.error.value if isinstance(step.error, StopIteration) else None


async def _astream(flow: Flow, source: AsyncGenerator[object, object], scope: Scope) -> AsyncGenerator[object, object]:
    seen: list[object] = []
    sent: object = None
    try:
        while True:
            step = await _aattempt(source.asend(sent), scope)
            if isinstance(step, Raised):
                break
            _keep(seen, step.value)
            sent = yield step.value
    except GeneratorExit as error:
        await source.aclose()
        # A closed stream may not wait any more: what is left to do is done at once.
        _finish(flow, Raised(error))
        raise
    except BaseException as error:  # noqa: BLE001 - the consumer threw into the stream
        step = await _aattempt(source.athrow(error), scope)
        step = Raised(error) if isinstance(step, Returned) else step
    result_of(await _afinish(flow, _of_stream(step, seen, StopAsyncIteration)))


async def _aattempt(awaitable: Awaitable[object], scope: Scope) -> Ending:
    token = scope.attach()
    try:
        return Returned(await awaitable)
    except BaseException as error:  # noqa: BLE001 - as in _attempt
        return Raised(error)
    finally:
        scope.detach(token)


def _keep(seen: list[object], item: object) -> None:
    seen.append(item)
    if len(seen) > 2 * STREAMED:
        del seen[:STREAMED]


def _of_stream(step: Raised, seen: list[object], exhausted: type[Exception]) -> Ending:
    """A stream that ran to its end is judged by its items, a single one for itself."""
    if isinstance(step.error, exhausted):
        return Returned(seen[0] if len(seen) == 1 else seen)
    return step
