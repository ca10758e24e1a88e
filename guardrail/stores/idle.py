"""Connections that a store keeps between looks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

C = TypeVar("C")

MOST_IDLE: Final = 4
LONGEST: Final = 60.0
"""How many connections wait to be used again at most, and for how many seconds."""

_inherited: Final[list[object]] = []
"""A parent's connections in a forked child: closing them would end the parent's sessions."""


class Idle(Generic[C]):
    """Open connections that are not in use, the last used first. Safe to use from several threads."""

    def __init__(self, close: Callable[[C], object]) -> None:
        self._close = close
        self._waiting: list[tuple[float, C]] = []
        self._process = os.getpid()

    def take(self) -> C | None:
        """A connection to be used again; None when there is none."""
        self._mind_forks()
        while self._waiting:
            since, connection = self._waiting.pop()
            if time.monotonic() - since < LONGEST:
                return connection
            self._close(connection)
        return None

    def give(self, connection: C) -> None:
        """Keep a connection, unless enough are kept."""
        self._mind_forks()
        if len(self._waiting) >= MOST_IDLE:
            self._close(connection)
        else:
            self._waiting.append((time.monotonic(), connection))

    def clear(self) -> None:
        """Close all that are kept."""
        self._mind_forks()
        while self._waiting:
            self._close(self._waiting.pop()[1])

    def _mind_forks(self) -> None:
        if self._process != os.getpid():
            _inherited.extend(self._waiting)
            self._process, self._waiting = os.getpid(), []
