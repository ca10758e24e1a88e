"""One run: one task done by an agent once, from opening to verdict."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
from collections.abc import Callable, Generator, Mapping
from contextvars import ContextVar, Token
from dataclasses import replace
from types import FrameType, TracebackType
from typing import Any, Literal, TypeVar, cast, overload

from guardrail.call.drivers import acomplete, adrive, complete, drive
from guardrail.call.flow import guarded
from guardrail.call.needs import Need, Work
from guardrail.call.tools import call_of
from guardrail.calls import Hints, Stop, Verdict
from guardrail.errors import GuardrailError, RunStopped, SilentFailure
from guardrail.run.standing import Standing
from guardrail.run.verdicts import verdict_of
from guardrail.run.wrapping import completed, is_awaiting, wrap
from guardrail.telemetry.redaction import redact_text
from guardrail.verification.verification import Judged, Verification

F = TypeVar("F", bound=Callable[..., Any])

current: ContextVar[Run | None] = ContextVar("guardrail.run", default=None)
"""The run that is open in this context."""


class Run:
    """One run of a task.

    Made by `guard.run(...)` and used once, as `with` or `async with`. Leaving it waits for calls in flight,
    looks at the state, and gives the verdict; it raises `RunStopped` if the guard stopped the run, and
    `SilentFailure` if the task says so and the run ended cleanly with a wrong state.
    """

    def __init__(
        self,
        standing: Standing,
        verification: Verification,
        *,
        drain: float,
        raises: bool,
        opening: Callable[[Run], Generator[Need, object, None]],
        ended: Callable[[Run], None],
    ) -> None:
        self.verdict: Verdict | None = None
        """What the run came to, once it has been left."""
        self._standing = standing
        self._verification = verification
        self._drain = drain
        self._raises = raises
        self._opening = opening
        self._ended = ended
        self._abandoned: str | None = None
        self._entered = False
        self._token: Token[Run | None] | None = None
        self._span: object = None

    @property
    def id(self) -> str:
        """The run's id; `guard.run(..., id=...)` takes the run up again under it."""
        return self._standing.run

    @property
    def task(self) -> str | None:
        """The name of the task, if one was given."""
        return self._standing.task

    @property
    def inputs(self) -> Mapping[str, object]:
        """The inputs that are known by now."""
        return dict(self._standing.inputs.values)

    @property
    def stop(self) -> Stop | None:
        """The stop that ended the run, if one did."""
        return self._standing.stopped()

    @property
    def would_stop(self) -> Stop | None:
        """Where the policy would have stopped the run; only in a run that is observed."""
        return self._standing.would

    @property
    def calls(self) -> int:
        """How many calls the run has made."""
        return self._standing.calls

    @property
    def open_holds(self) -> int:
        """How many failures of the run nobody has resolved."""
        return len(self._standing.holds)

    @property
    def standing(self) -> Standing:
        """Where the run stands; for adapters."""
        return self._standing

    @overload
    def wrap(self, tool: F, /) -> F: ...
    @overload
    def wrap(self, tools: Mapping[str, Callable[..., Any]], /) -> dict[str, Callable[..., Any]]: ...
    @overload
    def wrap(
        self, tool: Callable[..., Any], other: Callable[..., Any], /, *more: Callable[..., Any]
    ) -> tuple[Callable[..., Any], ...]: ...

    def wrap(self, /, *tools: Any) -> Any:
        """Guard tools: one gives one, several give a tuple, a mapping by name gives a dict.

        A guarded tool has the name, doc and signature of the tool, and is sync, async or a stream as it is.
        """
        if len(tools) == 1 and isinstance(tools[0], Mapping):
            named = cast("Mapping[str, Callable[..., Any]]", tools[0])
            return {name: wrap(tool, self._find, name) for name, tool in named.items()}
        guarded_tools = tuple(wrap(tool, self._find) for tool in tools)
        return guarded_tools[0] if len(guarded_tools) == 1 else guarded_tools

    def call(
        self,
        name: str,
        args: Mapping[str, object],
        tool: Callable[..., Any],
        *,
        id: str | None = None,
        hints: Hints | None = None,
    ) -> Any:
        """Make one guarded call, in a loop written by hand: `tool(**args)`.

        Returns what the tool returns (for an asynchronous tool an awaitable); raises what it raises,
        `CallRefused` when the call was not carried out and the run goes on, and the signal `RunHalted` when
        the run is over. `hints` are what whoever offers the tool says about it, for what the policy leaves open.
        """
        awaiting = is_awaiting(tool)
        if awaiting and not _in_loop():
            raise GuardrailError(f"{name} is asynchronous, and no loop is running: use `await run.acall(...)` in one")
        flow = guarded(self._standing, call_of(name, completed(tool, args), id, hints))
        execute = functools.partial(tool, **args)
        return adrive(flow, execute) if awaiting else drive(flow, execute)

    async def acall(
        self,
        name: str,
        args: Mapping[str, object],
        tool: Callable[..., Any],
        *,
        id: str | None = None,
        hints: Hints | None = None,
    ) -> Any:
        """Make one guarded call from asynchronous code: like `call`, with the guard's own work off the loop."""
        flow = guarded(self._standing, call_of(name, completed(tool, args), id, hints))
        return await adrive(flow, functools.partial(tool, **args))

    def user_turn(self) -> None:
        """Say that the real user has spoken: what failed before is theirs to judge now.

        Resolves the open holds, but for writes in doubt. A tool that asks the user does not count.
        """
        self._standing.user_turn()

    def abandon(self, reason: str) -> None:
        """End the run openly as not done; its verdict is `agent_error`, and no further call is made."""
        self._abandoned = reason = redact_text(reason)
        self._standing.journal.abandoned()
        self._standing.close(f"was abandoned: {reason}")

    def __enter__(self) -> Run:
        """Open the run: it is recorded, and the before-picture is taken."""
        self._begin(_is_generator(inspect.currentframe()))
        try:
            complete(self._opening(self))
        except BaseException:  # also an interrupt: `__exit__` is not called for what did not open
            self._finish()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        """Close the run and judge it."""
        try:
            # Calls of this loop cannot end while we block it: they are not waited for.
            self.verdict = complete(self._closing(error, 0.0 if _in_loop() else self._drain))
        finally:
            self._finish()
        return self._leave(self.verdict, error)

    async def __aenter__(self) -> Run:
        """Open the run; what blocks is done off the loop."""
        self._begin(_is_generator(inspect.currentframe()))
        try:
            await acomplete(self._opening(self))
        except BaseException:  # also a cancellation: `__aexit__` is not called for what did not open
            self._finish()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        """Close the run and judge it; what blocks is done off the loop."""
        try:
            self.verdict = await acomplete(self._closing(error, self._drain))
        finally:
            self._finish()
        return self._leave(self.verdict, error)

    def _find(self) -> Standing:
        return self._standing

    def _begin(self, in_generator: bool) -> None:
        if self._entered:
            raise GuardrailError(f"the run {self.id} was opened before: a run is used once; ask the guard for another")
        self._entered = True
        if not in_generator:
            self._token = current.set(self)
            self._span = self._standing.journal.trace.attach()

    def _closing(self, error: BaseException | None, seconds: float) -> Generator[Need, object, Verdict]:
        """Wait for calls in flight, look at the state, judge, record."""
        hurried = _is_interrupt(error)
        try:
            yield Work(functools.partial(self._standing.wait, 0.0 if hurried else seconds))
            self._standing.close("has ended")
            unfinished = self._standing.give_up()
            state = yield from self._verification.judge(hurried=hurried)
            verdict = self._verdict(replace(state, findings=(*state.findings, *unfinished)), error)
            yield Work(functools.partial(self._record, verdict, error))
        except Exception as failure:  # noqa: BLE001 - the guard's own failure: never a pass, and visible
            self._standing.journal.trace.log.error("guardrail.guard_error", error=type(failure).__name__)
            return self._cut_short(error, f"the state could not be judged: {type(failure).__name__}: {failure}")
        except BaseException as interrupt:  # interrupted a second time, or cancelled while it settled
            verdict = self._cut_short(error, "the state was not judged: the run was interrupted at its end")
            if verdict.stop is not None:
                interrupt.__context__ = RunStopped(verdict.stop, verdict, self._standing.others)
            raise
        return verdict

    def _cut_short(self, error: BaseException | None, why: str) -> Verdict:
        """End the run without a look at the state."""
        verdict = self._verdict(Judged(because=why), error)
        self._standing.close("has ended")
        self._record(verdict, error)
        return verdict

    def _verdict(self, state: Judged, error: BaseException | None) -> Verdict:
        """The first that applies of stopped, agent_error, silent_failure, unverified, verified."""
        standing = self._standing
        return verdict_of(
            state,
            stop=standing.stopped(),
            agent_error=self._abandoned or (f"the agent raised {type(error).__name__}" if error is not None else None),
            open_holds=len(standing.holds),
            would=standing.would,
            written=standing.written,
        )

    def _record(self, verdict: Verdict, error: BaseException | None) -> None:
        self.verdict = verdict
        self._standing.journal.judged(verdict, self._standing.calls, error)

    def _finish(self) -> None:
        if self._token is not None:
            self._standing.journal.trace.detach(self._span)
            with contextlib.suppress(ValueError):  # left in another context than it was entered in
                current.reset(self._token)
        self._standing.close("has ended")
        self._ended(self)

    def _leave(self, verdict: Verdict, error: BaseException | None) -> Literal[False]:
        """Let go what the caller shall see."""
        stop = verdict.stop
        if _is_interrupt(error):
            if stop is not None and error is not None:
                error.__context__ = RunStopped(stop, verdict, self._standing.others)
            return False
        if stop is not None:
            raise RunStopped(stop, verdict, self._standing.others) from error
        if verdict.kind == "silent_failure" and self._raises:
            raise SilentFailure(verdict)
        return False


_WINNING = (KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit)


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether an error must reach the caller as it is: an interrupt or a cancellation, also within a group."""
    if isinstance(error, BaseExceptionGroup):
        return any(_is_interrupt(part) for part in cast("BaseExceptionGroup[BaseException]", error).exceptions)
    return isinstance(error, _WINNING)


def _is_generator(entering: FrameType | None) -> bool:
    """Whether a run is entered by a generator; takes the frame of `__enter__`.

    A generator shares the context of whoever reads it: what it makes current would be current for its reader
    between two items, and for other generators of that reader.
    """
    caller = entering.f_back if entering is not None else None
    if caller is None or not caller.f_code.co_flags & (inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR):
        return False
    # The generator of a context manager runs to its end within a `with` block of its reader, as a run does.
    reader = caller.f_back
    return reader is None or reader.f_globals.get("__name__") != "contextlib"


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
