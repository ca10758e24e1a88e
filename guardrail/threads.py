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

MOST = 16
"""How many pieces of work are done at once; most of them wait for a disk or a server."""


async def in_thread(do: Callable[[], object]) -> object:
    """Do some work that waits off the loop, in the context of the caller."""
    return await _in(_waiting(), do)


async def computed(do: Callable[[], object]) -> object:
    """Compute something off the loop, one thing at a time: among many threads that compute, the loop's turn comes late."""
    return await _in(_computing(), do)


async def _in(pool: ThreadPoolExecutor, do: Callable[[], object]) -> object:
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(pool, partial(context.run, do))


@cache
def _waiting() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MOST, "guardrail")


@cache
def _computing() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "guardrail-computing")


if hasattr(os, "register_at_fork"):  # the parent's threads are not in the child
    os.register_at_fork(after_in_child=_waiting.cache_clear)
    os.register_at_fork(after_in_child=_computing.cache_clear)
