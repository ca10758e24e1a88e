"""Connections that a store keeps between looks."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Final, Generic, TypeVar

from guardrail.errors import StoreError

C = TypeVar("C")

MOST: Final = 10
"""How many connections of a store are in use at most, in each event loop and outside of them."""
BUSY: Final = f"all of its {MOST} connections were in use; raise the timeout, or let fewer runs look at it at once"

MOST_IDLE: Final = 4
LONGEST: Final = 60.0
"""How many connections wait to be used again at most, and for how many seconds."""

_inherited: Final[list[object]] = []
"""A parent's connections in a forked child: closing them would end the parent's sessions."""


class Idle(Generic[C]):
    """Open connections that are not in use, the last used first. Safe to use from several threads."""

    def __init__(self, close: Callable[[C], object]) -> None:
        self._close = close
        self._most = MOST_IDLE
        self._waiting: list[tuple[float, C]] = []
        self._process = os.getpid()

    def take(self) -> C | None:
        """A connection to be used again; None when there is none."""
        self._mind_forks()
        with suppress(IndexError):  # none is left; another thread may have taken the last one
            while True:
                since, connection = self._waiting.pop()
                if time.monotonic() - since < LONGEST:
                    return connection
                self._close(connection)
        return None

    def give(self, connection: C) -> None:
        """Keep a connection, unless enough are kept."""
        self._mind_forks()
        if len(self._waiting) >= self._most:
            self._close(connection)
        else:
            self._waiting.append((time.monotonic(), connection))

    def clear(self) -> None:
        """Close all that are kept, and keep none from now on."""
        self._most = 0
        self._mind_forks()
        with suppress(IndexError):
            while True:
                self._close(self._waiting.pop()[1])

    def _mind_forks(self) -> None:
        if self._process != os.getpid():
            _inherited.extend(self._waiting)
            self._process, self._waiting = os.getpid(), []


class Kept(Generic[C]):
    """Connections of a store's own, opened when they are needed and kept for the next look. For several threads.

    `connect` opens one, in so many seconds.
    """

    def __init__(
        self, connect: Callable[[float], C], close: Callable[[C], object], is_usable: Callable[[C], bool]
    ) -> None:
        self._connect = connect
        self._close = close
        self._is_usable = is_usable
        self._idle = Idle(close)
        self._gate = threading.BoundedSemaphore(MOST)
        self._process = os.getpid()
        weakref.finalize(self, self._idle.clear)

    @contextmanager
    def lent(self, patience: float) -> Generator[tuple[C, bool]]:
        """A connection, and whether it was in use before. Raises `StoreError` where none is free in so many seconds."""
        until = time.monotonic() + patience
        gate = self._gate_here()
        if not gate.acquire(timeout=patience):
            raise StoreError(BUSY)
        try:
            kept = self._idle.take()
            connection = self._connect(until - time.monotonic()) if kept is None else kept
            try:
                yield connection, kept is not None
            finally:
                (self._idle.give if self._is_usable(connection) else self._close)(connection)
        finally:
            gate.release()

    def close(self) -> None:
        """Close those that are not in use, and the others when they come back."""
        self._idle.clear()

    def _gate_here(self) -> threading.BoundedSemaphore:
        """The gate of this process; what the threads of a parent hold is nothing to its child."""
        if self._process != os.getpid():
            self._process, self._gate = os.getpid(), threading.BoundedSemaphore(MOST)
        return self._gate
