"""A session: one read transaction on a SQLite connection that can do nothing but read."""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

from guardrail.errors import StoreError
from guardrail.query.vocabulary import FUNCTIONS, is_internal

LONGEST_VALUE: Final = 64 * 2**20
"""How many bytes one value may have: what a query can build in memory is bounded by it."""

_OF_SCHEMA: Final = {"table_xinfo", "index_list", "index_xinfo"}
_OF_VIRTUAL_TABLES: Final = {"data_version", "page_size"}
"""Pragmas that only answer, the second when nothing is assigned; full-text tables ask for those."""
_IN_USE: Final = "its factory returned a connection that is in use; it must open a new one for every look"
_STEPS: Final = 10_000
"""After how many steps of SQLite's machine the clock is looked at: every fraction of a millisecond."""


class Source(Protocol):
    """Where the connections to one database come from."""

    @property
    def is_shared(self) -> bool:
        """Whether its connections may share a cache, in which case a transaction freezes only what it has read."""
        ...

    def connect(self, timeout: float) -> sqlite3.Connection:
        """A new connection that waits `timeout` seconds for locks. Raises `sqlite3.Error` or `StoreError`."""
        ...


@dataclass(frozen=True, slots=True)
class File:
    """A database file, opened read-only and anew for every look.

    A kept connection would be faster (9 against 70 microseconds), but would go on reading a file that
    has been replaced, keep a WAL from being cleaned up when its writer closes, and not survive a fork.
    """

    path: Path
    is_shared: bool = False

    def connect(self, timeout: float) -> sqlite3.Connection:
        """A connection that neither creates nor changes the file."""
        return sqlite3.connect(f"{self.path.as_uri()}?mode=ro", uri=True, timeout=timeout, isolation_level=None)


@dataclass(frozen=True, slots=True)
class Factory:
    """The user's own way to a connection, such as to a shared database in memory or to a tenant's."""

    make: Callable[[], object]
    is_shared: bool = True

    def connect(self, timeout: float) -> sqlite3.Connection:
        """The factory's new connection, turned read-only."""
        connection = self._made()
        if not isinstance(connection, sqlite3.Connection):
            raise StoreError(f"its factory returned {type(connection).__name__}, not a sqlite3.Connection")
        if connection.total_changes:
            raise StoreError(_IN_USE)
        if sys.version_info >= (3, 12) and connection.autocommit is False:
            connection.autocommit = True  # such a connection is born within a transaction
        if connection.in_transaction:
            raise StoreError(_IN_USE)
        connection.isolation_level = None
        connection.row_factory = None
        connection.text_factory = str
        connection.execute("PRAGMA query_only = ON")
        connection.execute(f"PRAGMA busy_timeout = {int(timeout * 1000)}")
        return connection

    def _made(self) -> object:
        try:
            return self.make()
        except Exception as error:
            # The user's factory may raise anything; the store is away then.
            raise StoreError(f"its factory failed: {type(error).__name__}: {error}") from error


class Session:
    """A read transaction on a fresh, confined connection; all that it reads is from one moment.

    The confinement holds whatever SQL is run: an authorizer lets nothing through but reading and listed
    functions, no database can be attached, values are bounded, and a statement is interrupted at the deadline.
    """

    def __init__(self, source: Source, timeout: float, tables: Sequence[str] = ()) -> None:
        self._source = source
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout
        self._tables = tables
        self._allowed = FUNCTIONS["sqlite"]

    def __enter__(self) -> Self:
        """Connect, confine the connection and fix the moment. Raises `sqlite3.Error` or `StoreError`."""
        self._connection = self._source.connect(self._timeout)
        try:
            self._confine()
            self._begin()
        except BaseException:  # also an interrupt: `__exit__` is not called for what did not open
            self._connection.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection, which ends the transaction."""
        self._connection.close()

    def run(
        self, sql: str, values: Mapping[str, object] | None = None, functions: frozenset[str] = frozenset()
    ) -> sqlite3.Cursor:
        """Run one statement; `functions` may be called beside the listed ones. Raises `sqlite3.Error`."""
        self._allowed = FUNCTIONS["sqlite"] | functions if functions else FUNCTIONS["sqlite"]
        return self._connection.execute(sql, values or {})

    def tolerate(self) -> None:
        """From now on answer text that is not UTF-8 as bytes, instead of failing on it."""
        self._connection.text_factory = _text_or_bytes

    def _confine(self) -> None:
        connection = self._connection
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000)
        connection.set_authorizer(self._authorize)
        connection.set_progress_handler(lambda: time.monotonic() > self._deadline, _STEPS)

    def _authorize(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        match action:
            case sqlite3.SQLITE_SELECT | sqlite3.SQLITE_RECURSIVE | sqlite3.SQLITE_TRANSACTION:
                allowed = True
            case sqlite3.SQLITE_READ:
                allowed = first is None or not is_internal(first)
            case sqlite3.SQLITE_FUNCTION:
                allowed = second is not None and second.lower() in self._allowed
            case sqlite3.SQLITE_PRAGMA:
                allowed = first in _OF_SCHEMA or (first in _OF_VIRTUAL_TABLES and second is None)
            case sqlite3.SQLITE_UPDATE:
                # What SQLite asks before it connects a virtual table, such as json_each. The schema itself
                # cannot be updated: the connection is read-only, and would have to be told to allow it.
                allowed = first == "sqlite_master"
            case _:
                allowed = False
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    def _begin(self) -> None:
        while True:
            self._connection.execute("BEGIN")
            try:
                self._connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
                self._lock_shared()
                return
            except sqlite3.OperationalError as error:
                if not _is_locked(error) or time.monotonic() > self._deadline:
                    raise
            # SQLite's own waiting does not cover locks within a shared cache.
            self._connection.execute("ROLLBACK")
            time.sleep(0.005)

    def _lock_shared(self) -> None:
        """Read every table once before the first answer, as a shared cache freezes table by table."""
        for table in self._tables if self._source.is_shared else ():
            try:
                self._connection.execute(f"SELECT 1 FROM {quoted(table)} LIMIT 1").fetchone()
            except sqlite3.OperationalError as error:
                if _is_locked(error):
                    raise  # a missing table is told by the question that asks for it


def quoted(name: str) -> str:
    """An identifier in back quotes, in which SQLite never takes an unknown name for a string."""
    return "`" + name.replace("`", "``") + "`"


def _is_locked(error: sqlite3.Error) -> bool:
    return str(getattr(error, "sqlite_errorname", "")).startswith("SQLITE_LOCKED")


def _text_or_bytes(raw: bytes) -> str | bytes:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw
