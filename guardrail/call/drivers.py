"""The two drivers of a flow: one waits by blocking, the other by awaiting. Nothing is decided here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from functools import partial
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, TypeAlias, TypeVar, cast

from guardrail.call.flow import Flow
from guardrail.call.needs import Execute, Need, Pause, Scope, Work
from guardrail.calls import Ending, Raised, Returned

T = TypeVar("T")
Execution: TypeAlias = Callable[[], object]
AnyFlow: TypeAlias = Generator[Need, object, Any]

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
    reached = _proceed(flow, partial(next, flow))
    if isinstance(reached, Execute):
        ending = _attempt(execute, reached.scope)
        rest = _rest(flow, ending, reached.scope)
        if rest is not None:
            return rest
        reached = _proceed(flow, partial(flow.send, ending))
    return result_of(cast("Ending", reached))


async def adrive(flow: Flow, execute: Execution) -> object:
    """Drive a call's flow by awaiting; the guard's own work runs off the loop."""
    reached = await _aproceed(flow, partial(next, flow))
    if isinstance(reached, Execute):
        ending = _attempt(execute, reached.scope)
        rest = _rest(flow, ending, reached.scope)
        if rest is not None:
            return await cast("Awaitable[object]", rest) if isinstance(rest, CoroutineType) else rest
        reached = await _aproceed(flow, partial(flow.send, ending))
    return result_of(cast("Ending", reached))


def drain(steps: Generator[Need, object, T]) -> T:
    """Drive a flow without a tool (the end of a run) by blocking."""
    return cast("T", _proceed(steps, partial(next, steps)))


async def adrain(steps: Generator[Need, object, T]) -> T:
    """Drive a flow without a tool by awaiting."""
    return cast("T", await _aproceed(steps, partial(next, steps)))


def _proceed(flow: AnyFlow, first: Callable[[], Need]) -> object:
    """Do what the flow needs until it wants the tool run (then the need) or is done (then its result)."""
    try:
        need = first()
        while not isinstance(need, Execute):
            need = _resume(flow, _done(need))
    except StopIteration as done:
        return done.value
    return need


async def _aproceed(flow: AnyFlow, first: Callable[[], Need]) -> object:
    try:
        need = first()
        while not isinstance(need, Execute):
            need = _resume(flow, await _adone(need))
    except StopIteration as done:
        return done.value
    return need


def _resume(flow: AnyFlow, done: Ending) -> Need:
    """Give the flow what its need came to; an error is raised inside it."""
    return flow.throw(done.error) if isinstance(done, Raised) else flow.send(done.value)


def _done(need: Work | Pause) -> Ending:
    try:
        if isinstance(need, Work):
            return Returned(need.do())
        time.sleep(need.seconds)
        return Returned(None)
    except BaseException as error:  # noqa: BLE001 - raised again inside the flow, which may have to record it
        return Raised(error)


async def _adone(need: Work | Pause) -> Ending:
    try:
        if isinstance(need, Work):
            return Returned(await asyncio.to_thread(need.do))
        await asyncio.sleep(need.seconds)
        return Returned(None)
    except BaseException as error:  # noqa: BLE001 - cancellation included; as above
        return Raised(error)


def _rest(flow: Flow, ending: Ending, scope: Scope) -> object:
    """What goes on with the flow in the place of a result that is only promised; None for an ordinary result."""
    value = ending.value if isinstance(ending, Returned) else None
    if isinstance(value, GeneratorType):
        return _stream(flow, cast("Generator[object, object, object]", value), scope)
    if isinstance(value, AsyncGeneratorType):
        return _astream(flow, cast("AsyncGenerator[object, object]", value), scope)
    if hasattr(type(value), "__await__"):
        return _go_on(flow, cast("Awaitable[object]", value), scope)
    return None


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
    return result_of(cast("Ending", await _aproceed(flow, partial(flow.send, ending))))


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
        step = _attempt(partial(source.throw, error), scope)
        step = Raised(error) if isinstance(step, Returned) else step
    ending = _of_stream(step, seen, StopIteration)
    result_of(cast("Ending", _proceed(flow, partial(flow.send, ending))))
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
        _proceed(flow, partial(flow.send, Raised(error)))
        raise
    except BaseException as error:  # noqa: BLE001 - the consumer threw into the stream
        step = await _aattempt(source.athrow(error), scope)
        step = Raised(error) if isinstance(step, Returned) else step
    ending = _of_stream(step, seen, StopAsyncIteration)
    result_of(cast("Ending", await _aproceed(flow, partial(flow.send, ending))))


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
