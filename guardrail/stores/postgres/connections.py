"""Where the connections to one PostgreSQL come from: a URL, a pool, a connection, or a factory of any of them.

Only a URL's connections are the store's own: a few of them are kept, since connecting takes ten times as long as a look.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
import weakref
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from math import ceil
from time import monotonic
from typing import Any, Final, TypeAlias, cast
from weakref import WeakKeyDictionary

from psycopg import AsyncConnection, Connection, ProgrammingError, errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from guardrail.errors import StoreError
from guardrail.stores.deadlines import adeadline, deadline
from guardrail.stores.idle import BUSY, MOST, Idle, Kept
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
            yield Lease(connection, _place(connection), used, own=True)

    @asynccontextmanager
    async def alease(self, patience: float) -> AsyncGenerator[Lease[Async]]:
        """See `AsyncSource`."""
        until = monotonic() + patience
        here = self._here()
        try:
            async with asyncio.timeout(patience):
                await here.gate.acquire()
        except TimeoutError:
            raise StoreError(BUSY) from None
        try:
            kept = here.idle.take()
            connection = kept or await self._aconnected(until - monotonic())
            try:
                yield Lease(connection, _place(connection), kept is not None, own=True)
            finally:
                (here.idle.give if _is_usable(connection) else _finish)(connection)
        finally:
            here.gate.release()

    async def found(self) -> Url:
        """See `AsyncSource`."""
        return self

    def for_run(self) -> Url:
        """See `Source`."""
        return self

    def close(self) -> None:
        """See `Source`."""
        self._kept.close()
        for here in list(self._loops.values()):
            here.idle.clear()

    def _connected(self, seconds: float) -> Sync:
        until = monotonic() + seconds
        connection = Connection.connect(self._conninfo, autocommit=True, prepare_threshold=None)
        try:
            with deadline(connection.fileno(), until - monotonic()):
                _may_prepare(connection, connection.execute(_PROCESS).fetchone())
        except BaseException:  # also an interrupt
            connection.close()
            raise
        return connection

    async def _aconnected(self, seconds: float) -> Async:
        until = monotonic() + seconds
        try:
            async with asyncio.timeout(seconds):
                connection = await AsyncConnection.connect(self._conninfo, autocommit=True, prepare_threshold=None)
        except TimeoutError:
            raise errors.ConnectionTimeout("connection timeout expired") from None
        try:
            with adeadline(connection.fileno(), until - monotonic()):
                _may_prepare(connection, await (await connection.execute(_PROCESS)).fetchone())
        except BaseException:  # also a cancellation
            _finish(connection)
            raise
        return connection

    def _here(self) -> _InLoop:
        """What belongs to the running loop; its connections are closed when the loop is gone."""
        loop = asyncio.get_running_loop()
        here = self._loops.get(loop)
        if here is None:
            self._forget_closed()
            here = self._loops[loop] = _InLoop(Idle(_finish), asyncio.Semaphore(MOST))
            weakref.finalize(loop, here.idle.clear)
        return here

    def _forget_closed(self) -> None:
        """Let go of what belongs to closed loops: a gate that was waited at keeps its loop from being collected."""
        for loop in [loop for loop in list(self._loops) if loop.is_closed()]:
            self._loops.pop(loop).idle.clear()


@dataclass(frozen=True, slots=True)
class _InLoop:
    """The connections of one event loop."""

    idle: Idle[Async]
    gate: asyncio.Semaphore


def _conninfo(url: str, timeout: float) -> str:
    """What libpq takes: a URL may say `postgresql+driver`, and what it leaves out is chosen."""
    scheme, found, rest = url.partition("://")
    address, _, path = rest.partition("?")[0].partition("/")
    if address.count("@") > 1 or "@" in path:
        raise StoreError(
            "its URL holds an @ that does not end the password: write @ and / in a password as %40 and %2F"
        )
    text = f"{scheme.partition('+')[0].lower()}{found}{rest}"
    patience = max(2, ceil(timeout))  # to libpq, 1 is 2 as well
    try:
        given = conninfo_to_dict(text)
        chosen: dict[str, str | int] = {
            "connect_timeout": min(int(given.get("connect_timeout") or 0) or patience, patience),
            "fallback_application_name": given.get("fallback_application_name") or "guardrail",
            "client_encoding": "UTF8",
        }
        return make_conninfo(text, **chosen)
    except (ProgrammingError, ValueError) as error:
        unknown = _PARAMETER.search(str(error))
        why = f", which knows no parameter {unknown[1]}" if unknown else ""
        raise StoreError(
            f"its URL is not one that PostgreSQL's libpq takes{why} (postgresql://user@host:5432/name; a schema is "
            "chosen by ?options=-csearch_path%3Dname)"
        ) from None


_PARAMETER: Final = re.compile(r'invalid (?:URI query parameter: |connection option )"(\w{1,40})"')


_PROCESS: Final = "SELECT pg_catalog.pg_backend_pid()"


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
            raise StoreError(_IN_USE)
        try:
            with _borrowed(cast("Sync", self._connection)) as connection:
                yield Lease(connection, _place(connection))
        finally:
            self._lock.release()

    @asynccontextmanager
    async def alease(self, patience: float) -> AsyncGenerator[Lease[Async]]:
        """See `AsyncSource`."""
        try:
            async with asyncio.timeout(patience):
                await self._turn.acquire()
        except TimeoutError:
            raise StoreError(_IN_USE) from None
        try:
            async with _aborrowed(cast("Async", self._connection)) as connection:
                yield Lease(connection, _place(connection))
        finally:
            self._turn.release()

    async def found(self) -> Own:
        """See `AsyncSource`."""
        return self

    def for_run(self) -> Own:
        """See `Source`."""
        return self

    def close(self) -> None:
        """See `Source`: the connection is the user's."""


_IN_USE: Final = "its only connection was in use; give a URL or a pool"


class New(Own):
    """A connection that a factory of the user's opened for one look, and that is closed after it."""

    @contextmanager
    def lease(self, patience: float) -> Generator[Lease[Sync]]:
        """See `Source`."""
        try:
            with super().lease(patience) as lease:
                yield lease
        finally:
            self.close()

    @asynccontextmanager
    async def alease(self, patience: float) -> AsyncGenerator[Lease[Async]]:
        """See `AsyncSource`."""
        try:
            async with super().alease(patience) as lease:
                yield lease
        finally:
            self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.pgconn.finish()


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
                yield Lease(connection, _place(connection), used=True)
        finally:
            self._pool.putconn(connection)

    @asynccontextmanager
    async def alease(self, patience: float) -> AsyncGenerator[Lease[Async]]:
        """See `AsyncSource`."""
        connection = await self._pool.getconn(patience)
        try:
            async with _aborrowed(connection):
                yield Lease(connection, _place(connection), used=True)
        finally:
            await self._pool.putconn(connection)

    async def found(self) -> Pool:
        """See `AsyncSource`."""
        return self

    def for_run(self) -> Pool:
        """See `Source`."""
        return self

    def close(self) -> None:
        """See `Source`: the pool is the user's."""


@contextmanager
def _borrowed(connection: Sync) -> Generator[Sync]:
    """A connection of the user's, given back as it was; nothing is left prepared in its session."""
    _check(connection)
    autocommit, threshold = connection.autocommit, connection.prepare_threshold
    connection.autocommit, connection.prepare_threshold = True, None
    try:
        yield connection
    finally:
        connection.prepare_threshold = threshold
        if _is_usable(connection):
            connection.autocommit = autocommit


@asynccontextmanager
async def _aborrowed(connection: Async) -> AsyncGenerator[Async]:
    _check(connection)
    autocommit, threshold = connection.autocommit, connection.prepare_threshold
    connection.prepare_threshold = None
    await connection.set_autocommit(True)
    try:
        yield connection
    finally:
        connection.prepare_threshold = threshold
        if _is_usable(connection):
            await connection.set_autocommit(autocommit)


def _check(connection: Either) -> None:
    """Refuse a connection that nothing can be asked on. Raises `StoreError`."""
    if connection.closed:
        raise StoreError("the connection that was given for it is closed; give a URL, a pool, or a factory")
    if connection.info.transaction_status is not TransactionStatus.IDLE:
        raise StoreError(
            "the connection that was given for it is in the middle of a transaction, and would show an old state: "
            "commit first, or give a URL"
        )
    if connection.info.encoding != "utf-8":
        raise StoreError("the connection that was given for it has another client_encoding than UTF8; set that")


def _place(connection: Either) -> Place:
    """Which database it is, and by its options which schema."""
    return connection.info.host, connection.info.port, connection.info.dbname, connection.info.options
