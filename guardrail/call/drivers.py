"""The two drivers of a flow: one waits by blocking, the other by awaiting. Nothing is decided here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, TypeAlias, TypeVar, cast

from guardrail.call.flow import Flow
from guardrail.call.needs import Compute, Execute, Look, Need, Pause, Scope, Suspendable, Work
from guardrail.calls import Answer, Ending, Halted, Raised, Refused, Returned
from guardrail.errors import CallRefused, RunHalted
from guardrail.threads import computed, in_thread

T = TypeVar("T")
Execution: TypeAlias = Callable[[], object]
AnyFlow: TypeAlias = Generator[Need, object, Any]

STREAMED = 256
"""How many items of a stream are kept to judge it by; beyond that, its last ones."""


def result_of(answer: Answer) -> object:
    """What the caller of a plain function gets: the value, the tool's error raised anew, the signal, a refusal."""
    match answer:
        case Returned(value):
            return value
        case Raised(error):
            raise error
        case Halted(stop, cause):
            raise RunHalted(stop) from cause
        case Refused(tool, reason, text):
            raise CallRefused(tool, reason, text)


Say: TypeAlias = Callable[[Answer], object]
"""How an answer is said to the caller; an adapter has its framework's own way."""


def drive(flow: Flow, execute: Execution, say: Say = result_of) -> object:
    """Drive a call's flow by blocking.

    Whether a tool is asynchronous is told by what it returns: an awaitable is handed back inside a
    coroutine that goes on with the flow, a generator inside a generator that does.
    """
    reached = _proceed(flow, partial(next, flow))
    if isinstance(reached, Execute):
        ending = _attempt(execute, reached.scope)
        rest = _rest(flow, ending, reached, say)
        if rest is not None:
            return rest
        reached = _proceed(flow, partial(flow.send, ending))
    return say(cast("Answer", reached))


async def adrive(flow: Flow, execute: Execution, say: Say = result_of) -> object:
    """Drive a call's flow by awaiting; the guard's own work runs off the loop."""
    reached = await _aproceed(flow, partial(next, flow))
    if isinstance(reached, Execute):
        ending = _attempt(execute, reached.scope)
        rest = _rest(flow, ending, reached, say)
        if rest is not None:
            return await cast("Awaitable[object]", rest) if isinstance(rest, CoroutineType) else rest
        reached = await _aproceed(flow, partial(flow.send, ending))
    return say(cast("Answer", reached))


class Parted:
    """A call that is made elsewhere, by somebody who says when it is about to be made and how it has ended.

    In between nobody waits for it.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._step: Suspendable | None = None

    async def begin(self) -> Answer | None:
        """Go on until the call may be made (then None), or to what its caller gets instead."""
        reached = await _aproceed(self._flow, partial(next, self._flow))
        if not isinstance(reached, Execute):
            return cast("Answer", reached)
        self._step = reached.step
        self._step.suspended = True
        return None

    async def end(self, ending: Ending) -> Answer:
        """Go on with how the call has ended, to what its caller gets."""
        assert self._step is not None, "the call may not be made"
        self._step.suspended = False
        return cast("Answer", await _aproceed(self._flow, partial(self._flow.send, ending)))

    def give_up(self) -> None:
        """Nobody will tell how the call has ended: it was cut off."""
        self._flow.close()


def complete(steps: Generator[Need, object, T]) -> T:
    """Drive a flow without a tool (the beginning and the end of a run) by blocking."""
    return cast("T", _proceed(steps, partial(next, steps)))


async def acomplete(steps: Generator[Need, object, T]) -> T:
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


def _done(need: Work | Compute | Look | Pause) -> Ending:
    try:
        match need:
            case Work(do):
                return Returned(_waited(do()))
            case Compute(do):
                return Returned(do())
            case Look(store, questions, scope):
                return _attempt(partial(store.look, questions), scope)
            case Pause(seconds):
                time.sleep(seconds)
                return Returned(None)
    except BaseException as error:  # noqa: BLE001 - raised again inside the flow, which may have to record it
        return Raised(error)


async def _adone(need: Work | Compute | Look | Pause) -> Ending:
    try:
        match need:
            case Work(do):
                result = await in_thread(do)
                return Returned(await cast("Awaitable[object]", result) if _is_awaitable(result) else result)
            case Compute(do):
                return Returned(await computed(do))
            case Look(store, questions, scope):
                return await _aattempt(store.alook(questions), scope)
            case Pause(seconds):
                await asyncio.sleep(seconds)
                return Returned(None)
    except BaseException as error:  # noqa: BLE001 - cancellation included; as above
        return Raised(error)


def _waited(result: object) -> object:
    """A result, or what an awaitable one gives: in a loop of its own, in a thread of its own if this one has a loop."""
    if not _is_awaitable(result):
        return result
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _awaited(cast("Awaitable[object]", result))).result()


async def _awaited(result: Awaitable[object]) -> object:
    return await result


def _is_awaitable(value: object) -> bool:
    try:
        return hasattr(type(value), "__await__")
    except Exception:  # noqa: BLE001 - a result's metaclass may raise anything; then it is an ordinary value
        return False


def _rest(flow: Flow, ending: Ending, execution: Execute, say: Say) -> object:
    """What goes on with the flow in the place of a result that is only promised; None for an ordinary result."""
    value = ending.value if isinstance(ending, Returned) else None
    if isinstance(value, GeneratorType):
        promise: object = _stream(flow, cast("Generator[object, object, object]", value), execution, say)
    elif isinstance(value, AsyncGeneratorType):
        promise = _astream(flow, cast("AsyncGenerator[object, object]", value), execution, say)
    elif _is_awaitable(value):
        promise = _go_on(flow, cast("Awaitable[object]", value), execution, say)
    else:
        return None
    execution.step.suspended = True  # until somebody asks for it
    return promise


def _attempt(execute: Execution, scope: Scope) -> Ending:
    token = scope.attach()
    try:
        return Returned(execute())
    except BaseException as error:  # noqa: BLE001 - every way out of a tool is seen once, as a value
        return Raised(error)
    finally:
        scope.detach(token)


async def _go_on(flow: Flow, awaitable: Awaitable[object], execution: Execute, say: Say) -> object:
    execution.step.suspended = False
    ending = await _aattempt(awaitable, execution.scope)
    return say(cast("Answer", await _aproceed(flow, partial(flow.send, ending))))


def _stream(
    flow: Flow, source: Generator[object, object, object], execution: Execute, say: Say
) -> Generator[object, object, object]:
    """A tool's generator with the rest of the flow behind it; the scope is never current across a yield."""
    seen: list[object] = []
    resume: Execution = partial(next, source)
    while True:
        execution.step.suspended = False
        step = _attempt(resume, execution.scope)
        if isinstance(step, Raised):
            break
        _keep(seen, step.value)
        execution.step.suspended = True
        try:
            resume = partial(source.send, (yield step.value))
        except BaseException as error:  # noqa: BLE001 - the consumer threw into the stream, or closed it
            resume = partial(source.throw, error)
            if isinstance(error, GeneratorExit):
                step = _closed(_attempt(resume, execution.scope), error)
                break
    ending = _of_stream(step, seen, StopIteration)
    say(cast("Answer", _proceed(flow, partial(flow.send, ending))))
    return step.error.value if isinstance(step.error, StopIteration) else None


async def _astream(
    flow: Flow, source: AsyncGenerator[object, object], execution: Execute, say: Say
) -> AsyncGenerator[object, object]:
    seen: list[object] = []
    resume: Callable[[], Awaitable[object]] = partial(source.asend, None)
    while True:
        execution.step.suspended = False
        step = await _aattempt(resume(), execution.scope)
        if isinstance(step, Raised):
            break
        _keep(seen, step.value)
        execution.step.suspended = True
        try:
            resume = partial(source.asend, (yield step.value))
        except GeneratorExit as error:
            await source.aclose()
            # A closed stream may not wait any more: what is left to do is done at once.
            _proceed(flow, partial(flow.send, Raised(error)))
            raise
        except BaseException as error:  # noqa: BLE001 - the consumer threw into the stream
            resume = partial(source.athrow, error)
    ending = _of_stream(step, seen, StopAsyncIteration)
    say(cast("Answer", await _aproceed(flow, partial(flow.send, ending))))


def _closed(step: Ending, closing: GeneratorExit) -> Raised:
    """How a stream ended that was closed: a generator that goes on all the same is closed none the less."""
    return step if isinstance(step, Raised) else Raised(closing)


async def _aattempt(awaitable: Awaitable[object], scope: Scope) -> Ending:
    token = scope.attach()
    try:
        return Returned(await awaitable)
    except BaseException as error:  # noqa: BLE001 - cancellation included: the flow records it and gives it back
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
