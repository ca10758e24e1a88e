"""Where the connections to one MariaDB or MySQL come from: a URL, a connection, or a factory of either.

Only a URL's connections are the store's own: a few of them are kept, since connecting takes ten times as long as a look.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

import pymysql
from pymysql.constants import CLIENT, SERVER_STATUS
from pymysql.cursors import Cursor

from guardrail.errors import StoreError
from guardrail.stores.deadlines import deadline
from guardrail.stores.idle import Kept
from guardrail.stores.mysql.settings import Connection, pin, pinned
from guardrail.stores.mysql.urls import arguments
from guardrail.stores.mysql.values import CONVERSIONS
from guardrail.stores.sources import Factory, Lease, Place, Source


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
        self._kept: Kept[Connection] = Kept(lambda _: self._connected(), _close, _is_usable)

    @contextmanager
    def lease(self, patience: float) -> Generator[Lease[Connection]]:
        """See `Source`."""
        with self._kept.lent(patience) as (connection, used):
            yield Lease(connection, _place(connection, self._arguments["database"]), used)

    def for_run(self) -> Url:
        """See `Source`."""
        return self

    def close(self) -> None:
        """See `Source`."""
        self._kept.close()

    def _connected(self) -> Connection:
        connection: Connection = pymysql.connect(
            **self._arguments, charset="utf8mb4", conv=CONVERSIONS, autocommit=True, program_name="guardrail"
        )
        try:
            pin(connection, self._timeout)
        except BaseException:  # an interrupt as well: nobody else knows of the connection yet, so nobody would close it
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
            _check_open(self._connection)
            with bounded(self._connection, self._timeout), _borrowed(self._connection, self._timeout):
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


def _is_usable(connection: Connection) -> bool:
    return connection.open


def _close(connection: Connection) -> None:
    if connection.open:
        connection.close()


@contextmanager
def bounded(connection: Connection, seconds: float) -> Generator[None]:
    """Cut a connection off after so many seconds. Raises `TimeoutError` where that, or the driver's limit, was in time."""
    with deadline(cast("Any", connection)._sock.fileno(), seconds) as watched:  # PyMySQL does not show its socket
        try:
            yield
        except pymysql.Error as error:
            if watched.passed or isinstance(error.__context__, TimeoutError):
                raise TimeoutError from error
            raise


@contextmanager
def _borrowed(connection: Connection, timeout: float) -> Generator[None]:
    """A connection of the user's, given back as it was."""
    _check_idle(connection)
    with pinned(connection, timeout):
        yield


def _check_open(connection: Connection) -> None:
    if not connection.open:
        raise StoreError("the connection that was given for it is closed; give a URL, or a factory")
    if connection.client_flag & CLIENT.MULTI_STATEMENTS:
        raise StoreError("the connection that was given for it takes several statements at once; connect without that")


def _check_idle(connection: Connection) -> None:
    """Refuse a connection that cannot show the state of now, or be given back as it was. Raises `StoreError`."""
    client = cast("Any", connection)  # PyMySQL has no public way to ask any of this
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
