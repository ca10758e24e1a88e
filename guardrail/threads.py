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
    """Do some work off the loop, in the context of the caller."""
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(_pool(), partial(context.run, do))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MOST, "guardrail")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # the parent's threads are not in the child
