"""The ledger's tables in a SQLite file, or in memory."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from guardrail.errors import LedgerError
from guardrail.ledger.database import Execute, Purpose, Row, RowRefused, T
from guardrail.ledger.migrations import MIGRATIONS, Migration, too_new

_MARK = 0x67726C64  # "grld" in the file's header tells a ledger from another application's database
_VERSION = (
    "SELECT user_version, application_id, EXISTS (SELECT 1 FROM sqlite_master) "
    "FROM pragma_user_version, pragma_application_id"
)
"""One statement, so that a process which takes a step in between is seen as a whole or not at all."""
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_REFUSED = (
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
    OverflowError,
)

_PAUSE = 0.002  # seconds between two tries to get a lock: about what a commit takes

_FULL = "the disk is full", "free some space, or delete old runs"
_UNREADABLE = "it cannot be read or written", "check the disk, and the limits and rights of this process"
_CLOSED_TO_US = "it cannot be opened", "check that its folder exists and that this user may write there"
_DAMAGED = "it is damaged", "move it aside and keep it for inspection; a new one is made"
_FAULTS = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_IOERR: _UNREADABLE,
    sqlite3.SQLITE_CANTOPEN: _CLOSED_TO_US,
    sqlite3.SQLITE_PERM: _CLOSED_TO_US,
    sqlite3.SQLITE_READONLY: ("it may not be written", "give this user the right to write the file and its folder"),
    sqlite3.SQLITE_NOTADB: ("it is not a SQLite database", "name another path for the ledger"),
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_BUSY: ("another process keeps it locked", "end that process, or its open transaction"),
}


class SqliteDatabase:
    """A SQLite file in write-ahead mode, made on the first write, readable by its owner only.

    `path`: the file, or `memory` for none. A durable commit is synced to the disk (`synchronous=FULL`); the
    others are not, so they outlive the process but not a power failure until the next durable one. `schema`
    is the steps that lead to the schema in use.
    """

    def __init__(self, path: str | os.PathLike[str], schema: Sequence[Migration] = MIGRATIONS) -> None:
        self._path = None if path == "memory" else Path(path).absolute()
        self._schema = schema
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._set_up_for: Purpose | None = None

    @property
    def name(self) -> str:
        """The file's path, or `memory`."""
        return str(self._path or "memory")

    @property
    def is_near(self) -> bool:
        """See `Database`."""
        return True

    @property
    def presence(self) -> None:
        """See `Database`. Whether a process lives is asked of the machine that the file lies on."""
        return

    def transact(self, purpose: Purpose, patience: float, work: Callable[[Execute], T]) -> T:
        """See `Database`. The lock to write is taken first, so nothing comes between reading and writing."""
        if purpose == "look" and self._is_missing():
            return work(_nothing)
        try:
            self._begin(purpose, patience)
            result = work(self._execute)
            if purpose != "look":
                self._commit()
        finally:
            self._roll_back()  # what is left: a look, and whatever was broken off, also by an interrupt
        return result

    def remarks(self) -> tuple[str, ...]:
        """See `Database`: files that others may read or write."""
        if self._path is None or os.name != "posix":
            return ()
        files = [Path(f"{self._path}{ending}") for ending in ("", "-wal", "-shm")]
        return tuple(
            f"{file} can be read or changed by others (mode {mode:o}): chmod 600 it"
            for file in files
            if file.exists() and (mode := stat.S_IMODE(file.stat().st_mode)) & 0o077
        )

    # SQLite's locks belong to a process, and its notes about them would be copied into a child: with a copy of an open
    # connection it would write without a lock. So none is open while the process forks.

    def before_fork(self) -> None:
        """See `Database`. One in memory stays, and is copied."""
        self._leave()

    def after_fork_in_child(self) -> None:
        """See `Database`: there is nothing."""

    def close(self) -> None:
        """See `Database`."""
        connection, self._connection, self._identity = self._connection, None, None
        if connection is not None:
            with suppress(sqlite3.Error):  # there is nothing that could be done about it
                connection.close()

    # Transactions.

    def _begin(self, purpose: Purpose, patience: float) -> None:
        deadline = 0.0
        while True:
            try:
                self._start(purpose)
                return
            except sqlite3.Error as error:
                self._roll_back()
                now = time.monotonic()
                deadline = deadline or now + patience
                if _code(error) not in _BUSY or now >= deadline:
                    raise self._fault(error) from error
            time.sleep(_PAUSE)

    def _start(self, purpose: Purpose) -> None:
        """Do what needs a lock, as far as it is had."""
        connection = self._connected()
        if purpose == "look":
            connection.execute("BEGIN")
            connection.execute("SELECT 1 FROM runs").close()  # the snapshot is taken by the first look
            return
        if purpose != self._set_up_for:
            self._set_up(connection, purpose)
        connection.execute("BEGIN IMMEDIATE")

    def _set_up(self, connection: sqlite3.Connection, purpose: Purpose) -> None:
        """Have commits synced to the disk or not."""
        connection.execute(f"PRAGMA synchronous = {'NORMAL' if purpose == 'group' else 'FULL'}")
        self._set_up_for = purpose

    def _execute(self, statement: str, values: Sequence[object] = (), /) -> list[Row]:
        assert self._connection is not None
        try:
            return self._connection.execute(statement, values).fetchall()
        except UnicodeEncodeError:  # half of a surrogate pair, which JSON may carry and no encoding has
            return self._execute(statement, [_encodable(value) for value in values])
        except _REFUSED as error:
            raise RowRefused(_reason(error), str(error)) from error
        except sqlite3.Error as error:
            raise self._fault(error) from error

    def _commit(self) -> None:
        connection = self._connection
        assert connection is not None
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._fault(error) from error
        if self._set_up_for == "erase":
            self._shorten(connection)

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):  # the error that led here is what is told
            if self._connection is not None and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _shorten(self, connection: sqlite3.Connection) -> None:
        """Give space back, as far as nobody is in the way; what is not done now is done another time."""
        with suppress(sqlite3.Error):
            connection.executescript("PRAGMA incremental_vacuum")  # execute() would take its first step only
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    # The connection.

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
            self._identity = self._identify()
        elif self._path is not None and self._identify() != self._identity:
            self.close()
            raise LedgerError(
                f"the ledger {self.name} was deleted or replaced while it was in use: its open runs cannot go on; "
                "start them again, a new ledger is made"
            )
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        if self._path is not None:
            self._create(self._path)
        connection = sqlite3.connect(
            self._path or ":memory:", timeout=0, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        try:
            self._prepare(connection)
        except BaseException:  # also an interrupt: nobody else has the connection to close it
            connection.close()
            raise
        return connection

    def _create(self, path: Path) -> None:
        """Make the file for its owner's eyes only, before SQLite would make it for everybody's."""
        try:
            for folder in reversed([p for p in path.parents if not p.exists()]):
                folder.mkdir(mode=0o700, exist_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise LedgerError(
                f"the ledger {self.name} cannot be opened ({error.strerror}): name a path that this user may write"
            ) from error
        except ValueError as error:  # the path holds a NUL, or what no encoding has
            raise LedgerError(f"the ledger {self.name!r} cannot be opened ({error}): name another path") from error

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Set the connection up and bring the schema to the present."""
        version = self._version(connection)
        if version == 0:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA fullfsync = ON")  # where the usual sync does not reach the medium (macOS)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.create_function("present", 1, _unknown)
        connection.execute("PRAGMA secure_delete = ON")  # always, or rows leave copies behind when they are moved
        self._set_up_for = None
        for step in range(version, len(self._schema)):
            self._migrate(connection, step)

    def _version(self, connection: sqlite3.Connection) -> int:
        """The schema's version, 0 for an empty file; `LedgerError` for what is no ledger, or too new."""
        found: tuple[int, int, int] = connection.execute(_VERSION).fetchone()
        version, mark, filled = found
        if mark != _MARK and (filled or version):
            raise LedgerError(f"{self.name} is another application's database: name another path for the ledger")
        if version > len(self._schema):
            raise LedgerError(too_new(self.name, version, len(self._schema)))
        return version

    def _migrate(self, connection: sqlite3.Connection, step: int) -> None:
        """Take one step, unless another process has just taken it."""
        connection.execute("BEGIN IMMEDIATE")
        try:
            if self._version(connection) == step:
                for statement in self._schema[step]:
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {_MARK}")
                connection.execute(f"PRAGMA user_version = {step + 1}")
            connection.execute("COMMIT")
        except BaseException:  # also an interrupt: a step is taken whole or not at all
            connection.rollback()
            raise

    def _is_missing(self) -> bool:
        return self._connection is None and (self._path is None or not self._path.exists())

    def _identify(self) -> tuple[int, int] | None:
        """Which file lies at the path: a connection goes on writing into a file that was deleted."""
        if self._path is None:
            return None
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _leave(self) -> None:
        """Let go of the connection; the next transaction opens a new one. What is in memory stays as it is used."""
        if self._path is not None:
            self.close()

    def _fault(self, error: sqlite3.Error) -> LedgerError:
        """The error in plain words. But for a lock and a full disk, a new connection has a better chance."""
        code = _code(error)
        if code not in (*_BUSY, sqlite3.SQLITE_FULL):
            self._leave()
        what, advice = _FAULTS.get(code, ("something is wrong with it", "see SQLite's words in parentheses"))
        return LedgerError(f"the ledger {self.name} cannot be used: {what} ({error}); {advice}")


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; 0 for an error of the Python module itself."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _reason(error: Exception) -> Literal["duplicate", "orphan", "value"]:
    match getattr(error, "sqlite_errorname", ""):
        case "SQLITE_CONSTRAINT_FOREIGNKEY" | "SQLITE_CONSTRAINT_NOTNULL":
            return "orphan"
        case "SQLITE_CONSTRAINT_PRIMARYKEY":
            return "duplicate"
        case _:
            return "value"


def _encodable(value: object) -> object:
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _unknown(presence: object) -> None:
    """SQL's `present(presence)`."""


def _nothing(statement: str, values: Sequence[object] = (), /) -> list[Row]:
    """Execute where there is nothing yet."""
    return []
