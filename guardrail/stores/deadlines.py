"""Deadlines of looks: what no server can be trusted to keep, as it may be the one that hangs."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from heapq import heappop, heappush
from time import monotonic
from typing import Final


class Deadline:
    """Cuts a connection off when its time is up, from outside, so that whoever waits on it gets an error at once."""

    def __init__(self, descriptor: int, seconds: float) -> None:
        # A copy, so that what is cut off is this connection, even if its number has been given to another since.
        self._socket = socket.socket(fileno=os.dup(descriptor))
        self.when = monotonic() + seconds
        self.passed = False

    @property
    def left(self) -> float:
        """How many seconds are left; none when the time is up, be it that nobody has noticed yet."""
        return max(0.0, self.when - monotonic())

    def strike(self) -> None:
        """The time is up; nothing happens to a connection that is not in use any more."""
        self.passed = True  # before whoever waits wakes up, and asks
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """The connection is not in use any more."""
        self._socket.close()


@contextmanager
def deadline(descriptor: int, seconds: float) -> Generator[Deadline]:
    """Cut the connection with this descriptor off after so many seconds, unless the block has ended.

    What the block then raises is a `TimeoutError`.
    """
    with _watched(descriptor, seconds) as watched:
        _clock.watch(watched)
        yield watched


@contextmanager
def adeadline(descriptor: int, seconds: float) -> Generator[Deadline]:
    """The same by the clock of the event loop."""
    with _watched(descriptor, seconds) as watched:
        timer = asyncio.get_running_loop().call_later(seconds, watched.strike)
        try:
            yield watched
        finally:
            timer.cancel()


@contextmanager
def _watched(descriptor: int, seconds: float) -> Generator[Deadline]:
    watched = Deadline(descriptor, seconds)
    try:
        yield watched
    except Exception as error:
        if watched.passed:
            raise TimeoutError from error
        raise
    finally:
        watched.close()


class _Clock:
    """One thread for the deadlines of all looks; it lives while there are any. A thread for each costs as much as a look."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin with nothing; in a child after a fork, the parent's thread and connections are not here."""
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, Deadline]] = []
        self._count = 0
        self._is_running = False

    def watch(self, deadline: Deadline) -> None:
        """Strike a deadline when its time is up."""
        with self._changed:
            self._count += 1
            heappush(self._due, (deadline.when, self._count, deadline))
            if not self._is_running:
                threading.Thread(target=self._run, name="guardrail-deadlines", daemon=True).start()
                self._is_running = True
            elif self._due[0][2] is deadline:
                self._changed.notify()

    def _run(self) -> None:
        while (struck := self._next()) is not None:
            struck.strike()

    def _next(self) -> Deadline | None:
        """Wait for the next deadline; None when there is none left."""
        with self._changed:
            while self._due:
                left = self._due[0][0] - monotonic()
                if left <= 0:
                    return heappop(self._due)[2]
                self._changed.wait(left)
            self._is_running = False
            return None


_clock: Final = _Clock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_clock.forget)
