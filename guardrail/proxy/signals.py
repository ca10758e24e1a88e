"""Signals that tell a proxy to end, and how long it waits for what is then still to be done."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class GaveUp(Exception):
    """A process was told to end a second time, and waited no longer for what it did at its end."""


class Signals:
    """SIGTERM and Ctrl-C, however this process was started: in a shell's background, Ctrl-C is ignored at first.

    `end` is done by the first one, `give_up` by the second.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.end: asyncio.Future[None] = loop.create_future()
        self.give_up: asyncio.Future[None] = loop.create_future()
        for number in (signal.SIGTERM, signal.SIGINT):
            # A loop of Windows takes no handlers: there a signal ends the process, and the ledger names its runs as cut off.
            with contextlib.suppress(NotImplementedError):
                loop.add_signal_handler(number, self._tell)

    async def wait(self, ending: Coroutine[object, object, T]) -> T:
        """Wait for the end of something; raises `GaveUp` where the second signal comes first, and cancels it."""
        task = asyncio.ensure_future(ending)
        awaited: set[asyncio.Future[Any]] = {task, self.give_up}
        await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        task.cancel()
        await asyncio.wait({task})
        raise GaveUp

    def _tell(self) -> None:
        for told in (self.end, self.give_up):
            if not told.done():
                told.set_result(None)
                return
