"""Carrying out a look on a psycopg connection, by blocking or by awaiting.

The statements of a batch go out at once. One that fails takes the whole transaction with it, and the answers of the
others; so then the look is carried out again, in another snapshot, each statement by itself behind a savepoint, and
the failure costs one answer only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias, cast

from psycopg import AsyncConnection, AsyncRawCursor, Connection, Error, RawCursor, capabilities
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from guardrail.pictures import Answer, Row
from guardrail.stores.looks import Batch, Failure, Looking, Result, Statement
from guardrail.stores.postgres.faults import is_away, reason
from guardrail.stores.postgres.values import exactly, reads_exactly

PORTION: Final = 1_000
"""How many rows are read at once; after some milliseconds of that others may go on."""

_END: Final = b"ROLLBACK"
_SAVE: Final = b"SAVEPOINT guardrail"
_UNDO: Final = b"ROLLBACK TO SAVEPOINT guardrail"
_FORGET: Final = b"RELEASE SAVEPOINT guardrail"

Sync: TypeAlias = Connection[Any]
Async: TypeAlias = AsyncConnection[Any]
Cursor: TypeAlias = RawCursor[Row]
AsyncCursor: TypeAlias = AsyncRawCursor[Row]
Results: TypeAlias = list[Result | Failure]


class _Doubtful(Exception):
    """A statement of a batch failed, and nobody knows which."""


def drive(connection: Sync, opening: Sequence[Statement], look: Callable[[], Looking]) -> list[Answer]:
    """Carry out a look by blocking. Raises `psycopg.Error` when the server is away, or refuses the opening."""
    try:
        return _driven(connection, opening, look(), _together)
    except _Doubtful:
        return _driven(connection, opening, look(), _singly)


async def adrive(connection: Async, opening: Sequence[Statement], look: Callable[[], Looking]) -> list[Answer]:
    """Carry out a look by awaiting; raises as `drive` does."""
    try:
        return await _adriven(connection, opening, look(), _atogether)
    except _Doubtful:
        return await _adriven(connection, opening, look(), _asingly)


def _driven(
    connection: Sync,
    opening: Sequence[Statement],
    look: Looking,
    carry_out: Callable[[Sync, Sequence[Statement], Batch], Results],
) -> list[Answer]:
    try:
        batch, before = next(look), opening
        while True:
            results = carry_out(connection, before, batch)
            batch, before = look.send(results), ()
    except StopIteration as done:
        return cast("list[Answer]", done.value)
    finally:
        if _is_open(connection):
            connection.execute(_END)


async def _adriven(
    connection: Async,
    opening: Sequence[Statement],
    look: Looking,
    carry_out: Callable[[Async, Sequence[Statement], Batch], Awaitable[Results]],
) -> list[Answer]:
    try:
        batch, before = next(look), opening
        while True:
            results = await carry_out(connection, before, batch)
            batch, before = look.send(results), ()
    except StopIteration as done:
        return cast("list[Answer]", done.value)
    finally:
        if _is_open(connection):
            await connection.execute(_END)


def _is_open(connection: Sync | Async) -> bool:
    return not connection.broken and connection.info.transaction_status is not TransactionStatus.IDLE


# All statements of a batch at once.


def _together(connection: Sync, opening: Sequence[Statement], batch: Batch) -> Results:
    try:
        with connection.pipeline():
            for statement in opening:
                _sent(connection, statement)
            cursors = [_sent(connection, statement) for statement in batch.statements]
            if batch.last and None not in cursors:
                connection.execute(_END)
        pairs = zip(cursors, batch.statements, strict=True)
        return [_streamed(connection, s) if cursor is None else _read(cursor, s) for cursor, s in pairs]
    except Error as error:
        raise _doubted(error) from error


async def _atogether(connection: Async, opening: Sequence[Statement], batch: Batch) -> Results:
    try:
        async with connection.pipeline():
            for statement in opening:
                await _asent(connection, statement)
            cursors = [await _asent(connection, statement) for statement in batch.statements]
            if batch.last and None not in cursors:
                await connection.execute(_END)
        pairs = zip(cursors, batch.statements, strict=True)
        return [await (_astreamed(connection, s) if cursor is None else _aread(cursor, s)) for cursor, s in pairs]
    except Error as error:
        raise _doubted(error) from error


def _doubted(error: Error) -> Exception:
    """What to do about an error of one of many statements: to find out which, unless the server is away."""
    return error if is_away(error) else _Doubtful()


def _sent(connection: Sync, statement: Statement) -> Cursor | None:
    """A statement on its way; one whose rows are taken in portions goes alone, as only then they come in portions."""
    if statement.take is not None:
        return None
    return _cursor(connection).execute(statement.sql.encode(), statement.values, binary=statement.binary)


async def _asent(connection: Async, statement: Statement) -> AsyncCursor | None:
    if statement.take is not None:
        return None
    return await _acursor(connection).execute(statement.sql.encode(), statement.values, binary=statement.binary)


def _read(cursor: Cursor, statement: Statement) -> Result:
    columns, count = _columns(cursor), cursor.rowcount
    return Result(columns, cursor.fetchall() if columns and count <= statement.most else (), count)


async def _aread(cursor: AsyncCursor, statement: Statement) -> Result:
    columns, count = _columns(cursor), cursor.rowcount
    rows: list[Row] = []
    while columns and len(rows) < count <= statement.most:
        rows += await cursor.fetchmany(PORTION)
        if len(rows) < count:
            await asyncio.sleep(0)
    return Result(columns, rows, count)


def _streamed(connection: Sync, statement: Statement) -> Result:
    portions = _Portions(statement)
    rows = _cursor(connection).stream(statement.sql.encode(), statement.values, binary=statement.binary, size=_SIZE)
    for row in rows:
        portions.add(row)
    return portions.result()


async def _astreamed(connection: Async, statement: Statement) -> Result:
    portions = _Portions(statement)
    rows = _acursor(connection).stream(statement.sql.encode(), statement.values, binary=statement.binary, size=_SIZE)
    async for row in rows:
        if portions.add(row):
            await asyncio.sleep(0)
    return portions.result()


_SIZE: Final = PORTION if capabilities.has_stream_chunked() else 1


class _Portions:
    """Gives rows to whoever takes them, many at once; the server works on the next ones meanwhile."""

    def __init__(self, statement: Statement) -> None:
        assert statement.take is not None
        self._take = statement.take
        self._rows: list[Row] = []
        self._count = 0

    def add(self, row: Row) -> bool:
        """Add a row; says whether a portion was given."""
        self._rows.append(row)
        return len(self._rows) >= PORTION and self._give()

    def _give(self) -> bool:
        self._take(self._rows)
        self._count += len(self._rows)
        self._rows.clear()
        return True

    def result(self) -> Result:
        """Give the rest; how many rows there were."""
        self._give()
        return Result(count=self._count)


# Each statement by itself.


def _singly(connection: Sync, opening: Sequence[Statement], batch: Batch) -> Results:
    for statement in opening:
        _alone(connection, statement)
    return [_guarded(connection, statement) for statement in batch.statements]


async def _asingly(connection: Async, opening: Sequence[Statement], batch: Batch) -> Results:
    for statement in opening:
        await _aalone(connection, statement)
    return [await _aguarded(connection, statement) for statement in batch.statements]


def _guarded(connection: Sync, statement: Statement) -> Result | Failure:
    connection.execute(_SAVE)
    try:
        result = _alone(connection, statement)
    except Error as error:
        failure = _failure(error)
        connection.execute(_UNDO)
        return failure
    connection.execute(_FORGET)
    return result


async def _aguarded(connection: Async, statement: Statement) -> Result | Failure:
    await connection.execute(_SAVE)
    try:
        result = await _aalone(connection, statement)
    except Error as error:
        failure = _failure(error)
        await connection.execute(_UNDO)
        return failure
    await connection.execute(_FORGET)
    return result


def _failure(error: Error) -> Failure:
    if is_away(error):
        raise error
    return Failure(reason(error))


def _alone(connection: Sync, statement: Statement) -> Result:
    """One statement in a pipeline of its own, where the server takes no second one behind it."""
    cursor = _cursor(connection, tolerant=True)
    with connection.pipeline():
        cursor.execute(statement.sql.encode(), statement.values, prepare=False)
    result = _read(cursor, statement)
    return _taken(result, statement)


async def _aalone(connection: Async, statement: Statement) -> Result:
    cursor = _acursor(connection, tolerant=True)
    async with connection.pipeline():
        await cursor.execute(statement.sql.encode(), statement.values, prepare=False)
    result = await _aread(cursor, statement)
    return _taken(result, statement)


def _taken(result: Result, statement: Statement) -> Result:
    if statement.take is None:
        return result
    statement.take(result.rows)
    return replace(result, rows=())


def _cursor(connection: Sync, *, tolerant: bool = False) -> Cursor:
    """A cursor that takes `$1`, and reads values as the stores compare them."""
    cursor = RawCursor(connection, row_factory=tuple_row)
    if tolerant or not reads_exactly(connection):
        exactly(cursor, tolerant=tolerant)
    return cursor


def _acursor(connection: Async, *, tolerant: bool = False) -> AsyncCursor:
    cursor = AsyncRawCursor(connection, row_factory=tuple_row)
    if tolerant or not reads_exactly(connection):
        exactly(cursor, tolerant=tolerant)
    return cursor


def _columns(cursor: Cursor | AsyncCursor) -> tuple[str, ...]:
    """The names of the columns; none where there are no rows to read."""
    result = cursor.pgresult
    assert result is not None
    return tuple((result.fname(place) or b"").decode() for place in range(result.nfields))
