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

TURNS = 3
"""How many do so that wait and compute in turns. Each may keep the interpreter for 5 ms, and the loop waits for them all."""


async def in_thread(do: Callable[[], object]) -> object:
    """Do some work that waits off the loop, in the context of the caller."""
    return await _in(_waiting(), do)


async def in_turns(do: Callable[[], object]) -> object:
    """Do some work off the loop that waits for a server and computes, such as that of a driver written in Python."""
    return await _in(_taking_turns(), do)


async def computed(do: Callable[[], object]) -> object:
    """Compute something off the loop, one thing at a time: among many threads that compute, the loop's turn comes late."""
    return await _in(_computing(), do)


async def in_thread_apart(do: Callable[[], object]) -> object:
    """Do what may hang and cannot be told to end, such as a look-up of a name: other work does not wait for it."""
    return await _in(_apart(), do)


def within(do: Callable[[], T], seconds: float) -> T:
    """Do on a thread apart what may hang, and wait for it at most so long. Raises TimeoutError."""
    return _apart().submit(do).result(seconds)


async def _in(pool: ThreadPoolExecutor, do: Callable[[], object]) -> object:
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(pool, partial(context.run, do))


@cache
def _waiting() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MOST, "guardrail")


@cache
def _taking_turns() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(TURNS, "guardrail-turns")


@cache
def _computing() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "guardrail-computing")


@cache
def _apart() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MOST, "guardrail-apart")


if hasattr(os, "register_at_fork"):  # the parent's threads are not in the child
    for _made in (_waiting, _taking_turns, _computing, _apart):
        os.register_at_fork(after_in_child=_made.cache_clear)
