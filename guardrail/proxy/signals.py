"""Signals that tell a proxy to end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable


def told_to_end(again: Callable[[], None]) -> asyncio.Future[None]:
    """Done when this process is told to end, by SIGTERM or Ctrl-C; `again` is done each time that it is told once more."""
    loop = asyncio.get_running_loop()
    told: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        if told.done():
            again()
        else:
            told.set_result(None)

    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):  # Windows ends the process
            loop.add_signal_handler(number, tell)
    return told
