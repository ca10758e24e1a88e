"""Deadlines of looks: what no server can be trusted to keep, as it may be the one that hangs."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress


class Deadline:
    """Cuts a connection off when its time is up, from outside, so that whoever waits on it gets an error at once."""

    def __init__(self, descriptor: int) -> None:
        # A copy, so that what is cut off is this connection, even if its number has been given to another since.
        self._socket = socket.socket(fileno=os.dup(descriptor))
        self.passed = False

    def pass_(self) -> None:
        """The time is up."""
        self.passed = True
        with suppress(OSError):  # it is gone already
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """The connection is not in use any more."""
        self._socket.close()


@contextmanager
def deadline(descriptor: int, seconds: float) -> Generator[Deadline]:
    """Cut the connection with this descriptor off after so many seconds, unless the block has ended."""
    watched = Deadline(descriptor)
    timer = threading.Timer(seconds, watched.pass_)
    timer.daemon = True
    timer.start()
    try:
        yield watched
    finally:
        timer.cancel()
        watched.close()


@contextmanager
def adeadline(descriptor: int, seconds: float) -> Generator[Deadline]:
    """The same by the clock of the event loop."""
    watched = Deadline(descriptor)
    timer = asyncio.get_running_loop().call_later(seconds, watched.pass_)
    try:
        yield watched
    finally:
        timer.cancel()
        watched.close()
