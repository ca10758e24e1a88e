"""What a framework's adapter builds on: the guard's side of every native tool call. An adapter decides nothing."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from guardrail.call.drivers import Parted, adrive, drive, result_of
from guardrail.call.flow import guarded
from guardrail.calls import Answer, Halted, Raised, Refused, Stop, ToolCall, Unmade
from guardrail.errors import RunHalted, RunNotOpen
from guardrail.run.standing import Standing

N = TypeVar("N")

_being_made = ContextVar["_Making | None"]("guardrail.being_made", default=None)
"""The call that an adapter is making, where its tool runs."""


class Runs(Protocol):
    """Where an adapter's calls belong: a `Guard` (to the run that is open where a call is made), or one `Run`."""

    @property
    def standing(self) -> Standing:
        """Where the run of a call made here stands. Raises `RunNotOpen`."""
        ...


class Adapter(ABC, Generic[N]):
    """The guard's side of a framework's tool calls; `N` is a call as the framework has it.

    A framework's adapter says what a native call is (`describe`), how the framework is told that the run is over
    (`halt`) and that one call was not carried out (`refuse`), and makes its calls by `call` or `acall`. What is not
    overridden is right for a plain loop: `halt` raises `RunHalted`, `refuse` raises `CallRefused`.
    """

    def __init__(self, runs: Runs) -> None:
        if not hasattr(type(runs), "standing"):  # of an instance it may raise
            raise TypeError(f"an adapter takes a Guard, or a Run of it, and not {type(runs).__name__}: {runs!r:.60}")
        self._runs = runs
        self._astray: RunNotOpen | None = None

    @abstractmethod
    def describe(self, native: N) -> ToolCall:
        """The native call: the tool's name, the arguments as the model gave them, the framework's id of the call."""

    def halt(self, native: N, halted: Halted) -> Any:
        """End the framework's run: raise or return its own terminal signal."""
        return result_of(halted)

    def refuse(self, native: N, refused: Refused) -> Any:
        """Tell the model that the call was not carried out and the run goes on: return or raise what does so."""
        return result_of(refused)

    def call(self, native: N, execute: Callable[[], object]) -> Any:
        """Make a native call, guarded: `execute` lets the framework run the tool.

        Returns what `execute` does (`Unmade` around it where the framework did not call the tool) and raises what it
        raises, unless the guard halts or refuses. A call that is made within itself, because it is guarded in two places
        (a session twice, a toolset and its agent), is one call. Raises `RunNotOpen`.
        """
        standing, call = self._place(native)
        if _is_being_made(standing, call):
            return _unwrapped(execute())
        making = _Making(standing, call)
        return drive(guarded(standing, call), partial(_made, making, execute), partial(self._say, native))

    async def acall(self, native: N, execute: Callable[[], Awaitable[object]]) -> Any:
        """The same by awaiting; the guard's own work is off the loop."""
        standing, call = self._place(native)
        if _is_being_made(standing, call):
            return _unwrapped(await _amade(_Making(standing, call), execute))
        making = _Making(standing, call)
        return await adrive(guarded(standing, call), partial(_amade, making, execute), partial(self._say, native))

    def parted(self, native: N) -> Parted:
        """A native call that the framework makes elsewhere, and only tells of. Raises `RunNotOpen`."""
        return Parted(guarded(*self._place(native)))

    @property
    def stop(self) -> Stop | None:
        """The stop of the run that is open here: where there is one, the model is not to be asked again."""
        try:
            return self._runs.standing.stopped()
        except RunNotOpen:  # an agent may be used without the guard's run until it calls a tool
            return None

    def gate(self) -> None:
        """Before a request to the model: raise `RunHalted` if the run is over.

        Where no run is open, and a tool was called nevertheless, raise `RunNotOpen` once more: many a framework has told
        it to the model, and the program that opened none would learn nothing of it.
        """
        stop = self.stop
        if stop is not None:
            raise RunHalted(stop)
        if self._astray is not None and not self._is_open:
            astray, self._astray = self._astray, None
            raise RunNotOpen(str(astray)) from astray

    @property
    def _is_open(self) -> bool:
        try:
            return self._runs.standing.is_open
        except RunNotOpen:
            return False

    def _place(self, native: N) -> tuple[Standing, ToolCall]:
        """Where the run stands, and the call. Raises `RunNotOpen`."""
        try:
            return self._runs.standing, self.describe(native)
        except RunNotOpen as error:
            self._astray = error
            raise

    def _say(self, native: N, answer: Answer) -> object:
        if isinstance(answer, Halted):
            return self.halt(native, answer)
        if isinstance(answer, Refused):
            return self.refuse(native, answer)
        if isinstance(answer, Raised) and isinstance(answer.error, RunNotOpen):
            self._astray = answer.error
        return result_of(answer)


class _Making:
    """A call while its tool runs. What the tool leaves behind (a task, a thread) keeps it, and learns that it is over."""

    __slots__ = ("call", "goes_on", "standing")

    def __init__(self, standing: Standing, call: ToolCall) -> None:
        self.standing, self.call, self.goes_on = standing, call, True

    def is_of(self, standing: Standing, call: ToolCall) -> bool:
        """Whether a call is this one, made within itself. One place may know defaults of its that another does not."""
        if not self.goes_on or self.standing is not standing or self.call.name != call.name:
            return False
        few, many = sorted((call.args, self.call.args), key=len)
        try:
            return all(name in many and bool(many[name] == value) for name, value in few.items())
        except Exception:  # noqa: BLE001 - an argument of a class of its own may raise anything when it is compared
            return False


@contextmanager
def _making(making: _Making) -> Generator[None]:
    before = _being_made.get()
    _being_made.set(making)
    try:
        yield
    finally:
        making.goes_on = False
        _being_made.set(before)


def _made(making: _Making, execute: Callable[[], object]) -> object:
    with _making(making):
        return execute()


async def _amade(making: _Making, execute: Callable[[], object]) -> object:
    with _making(making):
        result = execute()
        return await result if inspect.isawaitable(result) else result


def _is_being_made(standing: Standing, call: ToolCall) -> bool:
    making = _being_made.get()
    return making is not None and making.is_of(standing, call)


def _unwrapped(result: object) -> object:
    return result.value if isinstance(result, Unmade) else result
