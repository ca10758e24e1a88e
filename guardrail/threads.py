"""Threads for the guard's own work in asynchronous runs.

They are the guard's own: in the loop's default executor the work would wait behind whatever an agent has put there, and
an agent that waits for the guard would never end.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import TypeVar

T = TypeVar("T")

MOST = 16
"""How many pieces of work are done at once; most of them wait for a disk or a server."""


async def in_thread(do: Callable[[], object]) -> object:
    """Do some work off the loop, in the context of the caller."""
    return await _done_by(_pool(), do)


async def in_thread_apart(do: Callable[[], object]) -> object:
    """The same for what may hang and cannot be told to end, such as a look-up of a name: other work does not wait."""
    return await _done_by(_apart(), do)


def within(do: Callable[[], T], seconds: float) -> T:
    """Do on a thread apart what may hang, and wait for it at most so long. Raises TimeoutError."""
    return _apart().submit(do).result(seconds)


async def _done_by(crew: ThreadPoolExecutor, do: Callable[[], object]) -> object:
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(crew, partial(context.run, do))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MOST, "guardrail")


@cache
def _apart() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MOST, "guardrail-apart")


if hasattr(os, "register_at_fork"):
    for _made in (_pool, _apart):
        os.register_at_fork(after_in_child=_made.cache_clear)  # the parent's threads are not in the child
