"""Where the connections to one MariaDB or MySQL come from: a URL, a connection, or a factory of either.

Only a URL's connections are the store's own: a few of them are kept, since connecting takes ten times as long as a look.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, cast

import pymysql
from pymysql.constants import CLIENT, SERVER_STATUS
from pymysql.cursors import Cursor

from guardrail.errors import StoreError
from guardrail.stores.idle import Idle
from guardrail.stores.mysql.settings import Connection, pin, pinned
from guardrail.stores.mysql.urls import arguments
from guardrail.stores.mysql.values import CONVERSIONS
from guardrail.stores.sources import Factory, Lease, Place, Source

MOST: Final = 10
"""How many connections a store has at most."""

_BUSY: Final = f"all of its {MOST} connections were in use; raise the timeout"


def source(where: object, timeout: float) -> Source[Connection]:
    """Where the connections come from: a URL, a connection, or a factory of either. Raises `StoreError`."""
    if isinstance(where, str):
        return Url(where, timeout)
    if isinstance(where, pymysql.Connection):
        return Own(cast("Any", where), timeout)
    if inspect.iscoroutinefunction(where):
        raise StoreError("its factory is asynchronous, and PyMySQL is not: give a plain function")
    if callable(where):
        return Factory(where, lambda made: _made(made, timeout))
    raise StoreError(f"{type(where).__name__} is neither a URL, nor a PyMySQL connection, or a factory of one")


def _made(made: object, timeout: float) -> Source[Connection]:
    """What a factory answered as a source; a new connection is for one look."""
    return New(cast("Any", made), timeout) if isinstance(made, pymysql.Connection) else source(made, timeout)


class Url:
    """Connections of the store's own, by a URL."""

    is_async = False

    def __init__(self, url: str, timeout: float) -> None:
        """Raises `StoreError` for a text that is no such URL; it is not shown, as it may hold a password."""
        self._arguments = arguments(url, timeout)
        self._timeout = timeout
        self._idle: Idle[Connection] = Idle(_close)
        self._gate = threading.BoundedSemaphore(MOST)

    @contextmanager
    def lease(self, patience: float) -> Generator[Lease[Connection]]:
        """See `Source`."""
        if not self._gate.acquire(timeout=patience):
            raise StoreError(_BUSY)
        try:
            kept = self._idle.take()
            connection = kept or self._connected()
            try:
                yield Lease(connection, _place(connection, self._arguments["database"]), kept is not None)
            finally:
                (self._idle.give if connection.open else _close)(connection)
        finally:
            self._gate.release()

    def for_run(self) -> Url:
        """See `Source`."""
        return self

    def close(self) -> None:
        """See `Source`."""
        self._idle.clear()

    def _connected(self) -> Connection:
        connection: Connection = pymysql.connect(
            **self._arguments, charset="utf8mb4", conv=CONVERSIONS, autocommit=True, program_name="guardrail"
        )
        try:
            pin(connection, self._timeout)
        except BaseException:
            _close(connection)
            raise
        return connection


class Own:
    """One connection of the user's, for one look at a time; it must not be in a transaction."""

    is_async = False

    def __init__(self, connection: Connection, timeout: float) -> None:
        self._connection = connection
        self._timeout = timeout
        self._lock = threading.Lock()

    @contextmanager
    def lease(self, patience: float) -> Generator[Lease[Connection]]:
        """See `Source`."""
        if not self._lock.acquire(timeout=patience):
            raise StoreError("its only connection was in use; give a URL, or a factory")
        try:
            _check_idle(self._connection)
            with pinned(self._connection, self._timeout):
                yield Lease(self._connection, _place(self._connection, _database(self._connection)))
        finally:
            self._lock.release()

    def for_run(self) -> Own:
        """See `Source`."""
        return self

    def close(self) -> None:
        """See `Source`: the connection is the user's."""


class New(Own):
    """A connection that a factory of the user's opened for one look, and that is closed after it."""

    @contextmanager
    def lease(self, patience: float) -> Generator[Lease[Connection]]:
        """See `Source`."""
        try:
            with super().lease(patience) as lease:
                yield lease
        finally:
            _close(self._connection)


def _close(connection: Connection) -> None:
    if connection.open:
        connection.close()


def _check_idle(connection: Connection) -> None:
    """Refuse a connection that cannot show the state of now, or be given back as it was. Raises `StoreError`."""
    client = cast("Any", connection)  # PyMySQL has no public way to ask any of this
    if not connection.open:
        raise StoreError("the connection that was given for it is closed; give a URL, or a factory")
    if connection.client_flag & CLIENT.MULTI_STATEMENTS:
        raise StoreError("the connection that was given for it takes several statements at once; connect without that")
    answer = client._result
    if answer is not None and (answer.unbuffered_active or answer.has_next):
        raise StoreError("the connection that was given for it is in the middle of an answer: read it to its end first")
    connection.ping()  # only the reply to this tells of a transaction that a SELECT has begun
    if client.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS:
        raise StoreError(
            "the connection that was given for it is in the middle of a transaction, and would show an old state: "
            "commit first, or give a URL"
        )


def _database(connection: Connection) -> str:
    with connection.cursor(Cursor) as cursor:
        cursor.execute("SELECT DATABASE()")
        [[name]] = cursor.fetchall()
    if name is None:
        raise StoreError("the connection that was given for it has no database selected")
    return str(name)


def _place(connection: Connection, database: str) -> Place:
    return connection.unix_socket or connection.host, connection.port, database
