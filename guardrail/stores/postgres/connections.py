"""Where the connections to one PostgreSQL come from: a URL, a pool, a connection, or a factory of any of them.

Only a URL's connections are the store's own: a few of them are kept, since connecting takes ten times as long as a look.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import weakref
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from math import ceil
from typing import Any, Final, TypeAlias, cast
from weakref import WeakKeyDictionary

from psycopg import AsyncConnection, Connection, ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from guardrail.errors import StoreError
from guardrail.stores.idle import BUSY, MOST, Idle, Kept
from guardrail.stores.postgres.values import exactly
from guardrail.stores.sources import AsyncSource, Factory, Lease, Place

Sync: TypeAlias = Connection[Any]
Async: TypeAlias = AsyncConnection[Any]
Either: TypeAlias = Sync | Async


def source(where: object, timeout: float) -> AsyncSource[Either]:
    """Where the connections come from: a URL, a connection, a pool, or a factory. Raises `StoreError`."""
    if isinstance(where, str):
        return Url(where, timeout)
    if isinstance(where, Connection | AsyncConnection):
        return Own(cast("Any", where))
    if hasattr(where, "getconn") and hasattr(where, "putconn"):
        return Pool(where)
    if callable(where):
        return Factory(where, lambda made: _made(made, timeout))
    raise StoreError(f"{type(where).__name__} is neither a URL, nor a psycopg connection, a pool, or a factory of one")


def _made(made: object, timeout: float) -> AsyncSource[Either]:
    """What a factory answered as a source; a new connection is for one look."""
    return New(cast("Any", made)) if isinstance(made, Connection | AsyncConnection) else source(made, timeout)


class Url:
    """Connections of the store's own, by a libpq URL."""

    is_async = None

    def __init__(self, url: str, timeout: float) -> None:
        """Raises `StoreError` for a text that is no such URL; it is not shown, as it may hold a password."""
        self._conninfo = _conninfo(url, timeout)
        self._kept: Kept[Sync] = Kept(self._connected, Connection.close, _is_usable)
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _InLoop] = WeakKeyDictionary()

    @contextmanager
    def lease(self, patience: float) -> Generator[Lease[Sync]]:
        """See `Source`."""
        with self._kept.lent(patience) as (connection, used):
            yield Lease(connection, _place(connection), used)

    @asynccontextmanager
    async def alease(self, patience: float) -> AsyncGenerator[Lease[Async]]:
        """See `Source`."""
        here = self._here()
        try:
            await asyncio.wait_for(here.gate.acquire(), patience)
        except TimeoutError:
            raise StoreError(BUSY) from None
        try:
            kept = here.idle.take()
            connection = kept or await self._aconnected()
            try:
                yield Lease(connection, _place(connection), kept is not None)
            finally:
                (here.idle.give if _is_usable(connection) else _finish)(connection)
        finally:
            here.gate.release()

    def for_run(self) -> Url:
        """See `Source`."""
        return self

    def close(self) -> None:
        """See `Source`."""
        self._kept.close()
        for here in self._loops.values():
            here.idle.clear()

    def _connected(self) -> Sync:
        connection = Connection.connect(self._conninfo, autocommit=True, prepare_threshold=None)
        exactly(connection)
        _may_prepare(connection, connection.execute(_PROCESS).fetchone())
        return connection

    async def _aconnected(self) -> Async:
        connection = await AsyncConnection.connect(self._conninfo, autocommit=True, prepare_threshold=None)
        exactly(connection)
        _may_prepare(connection, await (await connection.execute(_PROCESS)).fetchone())
        return connection

    def _here(self) -> _InLoop:
        """What belongs to the running loop; its connections are closed when the loop is gone."""
        loop = asyncio.get_running_loop()
        here = self._loops.get(loop)
        if here is None:
            here = self._loops[loop] = _InLoop(Idle(_finish), asyncio.Semaphore(MOST))
            weakref.finalize(loop, here.idle.clear)
        return here


@dataclass(frozen=True, slots=True)
class _InLoop:
    """The connections of one event loop."""

    idle: Idle[Async]
    gate: asyncio.Semaphore


def _conninfo(url: str, timeout: float) -> str:
    """What libpq takes: a URL may say `postgresql+driver`, and what it leaves out is chosen."""
    scheme, found, rest = url.partition("://")
    text = f"{scheme.partition('+')[0]}{found}{rest}"
    try:
        given = conninfo_to_dict(text)
        defaults: dict[str, str | int] = {
            "connect_timeout": max(2, ceil(timeout)),
            "fallback_application_name": "guardrail",
            "client_encoding": "UTF8",
        }
        return make_conninfo(text, **{name: value for name, value in defaults.items() if name not in given})
    except ProgrammingError:
        raise StoreError(
            "its URL is not one that PostgreSQL's libpq takes (postgresql://user@host:5432/name)"
        ) from None


_PROCESS: Final = "SELECT pg_backend_pid()"


def _may_prepare(connection: Either, process: tuple[Any, ...] | None) -> None:
    """Let statements be prepared when they come again, unless a pooler may carry out each in another session.

    A pooler tells of a server process of its own making when one connects.
    """
    if process == (connection.info.backend_pid,):
        connection.prepare_threshold = 2


def _is_usable(connection: Sync | Async) -> bool:
    return not connection.closed and connection.info.transaction_status is TransactionStatus.IDLE


def _finish(connection: Async) -> None:
    """Close an asynchronous connection where nothing can be awaited."""
    connection.pgconn.finish()


class Own:
    """One connection of the user's, for one look at a time; it must not be in a transaction."""

    def __init__(self, connection: Sync | Async) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._turn = asyncio.Lock()

    @property
    def is_async(self) -> bool:
        """See `Source`."""
        return isinstance(self._connection, AsyncConnection)

    @contextmanager
    def lease(self, patience: float) -> Generator[Lease[Sync]]:
        """See `Source`."""
        if not self._lock.acquire(timeout=patience):
            raise StoreError("its only connection was in use; give a URL or a pool")
        try:
            with _borrowed(cast("Sync", self._connection)) as connection:
                yield Lease(connection, _place(connection))
        finally:
            self._lock.release()

    @asynccontextmanager
    async def alease(self, patience: float) -> AsyncGenerator[Lease[Async]]:
        """See `Source`."""
        async with self._turn, _aborrowed(cast("Async", self._connection)) as connection:
            yield Lease(connection, _place(connection))

    def for_run(self) -> Own:
        """See `Source`."""
        return self

    def close(self) -> None:
        """See `Source`: the connection is the user's."""


class New(Own):
    """A connection that a factory of the user's opened for one look, and that is closed after it."""

    @contextmanager
    def lease(self, patience: float) -> Generator[Lease[Sync]]:
        """See `Source`."""
        with closing(cast("Sync", self._connection)), super().lease(patience) as lease:
            yield lease

    @asynccontextmanager
    async def alease(self, patience: float) -> AsyncGenerator[Lease[Async]]:
        """See `Source`."""
        try:
            async with super().alease(patience) as lease:
                yield lease
        finally:
            await cast("Async", self._connection).close()


class Pool:
    """A pool of the user's, such as those of `psycopg_pool`: anything with `getconn` and `putconn`."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    @property
    def is_async(self) -> bool:
        """See `Source`."""
        return inspect.iscoroutinefunction(self._pool.getconn)

    @contextmanager
    def lease(self, patience: float) -> Generator[Lease[Sync]]:
        """See `Source`."""
        connection = self._pool.getconn(patience)
        try:
            with _borrowed(connection):
                yield Lease(connection, _place(connection))
        finally:
            self._pool.putconn(connection)

    @asynccontextmanager
    async def alease(self, patience: float) -> AsyncGenerator[Lease[Async]]:
        """See `Source`."""
        connection = await self._pool.getconn(patience)
        try:
            async with _aborrowed(connection):
                yield Lease(connection, _place(connection))
        finally:
            await self._pool.putconn(connection)

    def for_run(self) -> Pool:
        """See `Source`."""
        return self

    def close(self) -> None:
        """See `Source`: the pool is the user's."""


@contextmanager
def _borrowed(connection: Sync) -> Generator[Sync]:
    """A connection of the user's, given back as it was."""
    _check_idle(connection)
    was = connection.autocommit
    connection.autocommit = True
    try:
        yield connection
    finally:
        if _is_usable(connection):
            connection.autocommit = was


@asynccontextmanager
async def _aborrowed(connection: Async) -> AsyncGenerator[Async]:
    _check_idle(connection)
    was = connection.autocommit
    await connection.set_autocommit(True)
    try:
        yield connection
    finally:
        if _is_usable(connection):
            await connection.set_autocommit(was)


def _check_idle(connection: Either) -> None:
    if connection.closed:
        raise StoreError("the connection that was given for it is closed; give a URL, a pool, or a factory")
    if connection.info.transaction_status is not TransactionStatus.IDLE:
        raise StoreError(
            "the connection that was given for it is in the middle of a transaction, and would show an old state: "
            "commit first, or give a URL"
        )


def _place(connection: Either) -> Place:
    return connection.info.host, connection.info.port, connection.info.dbname
