"""The two drivers of an attempt at a look on a psycopg connection: one blocks, the other awaits. Nothing is decided here."""

from __future__ import annotations

import asyncio
from typing import Any, Final, TypeAlias, cast

from psycopg import AsyncConnection, Connection, Error, capabilities
from psycopg.adapt import AdaptersMap
from psycopg.pq import TransactionStatus

from guardrail.pictures import Answer, Row
from guardrail.stores.looks import Result, Statement
from guardrail.stores.postgres.attempts import Attempt, Outcome, Together
from guardrail.stores.postgres.values import AsyncExactCursor, ExactCursor, exact

PORTION: Final = 500
"""How many rows are read at once; after some milliseconds of that others may go on."""

_END: Final = b"ROLLBACK"
"""Behind a pooler never part of a pipeline: behind one psycopg may ask the server to flush, and a pooler that has given
the session back with the end of the transaction would take another for that, and wait in it for an answer that never
comes."""

_ERRORS: Final = (Error, UnicodeError)

Sync: TypeAlias = Connection[Any]
Async: TypeAlias = AsyncConnection[Any]


def drive(connection: Sync, attempt: Attempt) -> list[Answer]:
    """Carry out a look by blocking; raises what the attempt raises."""
    adapters = exact(connection)
    try:
        step = next(attempt)
        while True:
            if isinstance(step, Together):
                step = attempt.send(_together(connection, adapters, step))
            else:
                step = attempt.send([_alone(connection, adapters, step.statement)])
    except StopIteration as done:
        return cast("list[Answer]", done.value)
    finally:
        if _is_open(connection):
            ExactCursor(connection, adapters).execute(_END, prepare=False)


async def adrive(connection: Async, attempt: Attempt) -> list[Answer]:
    """Carry out a look by awaiting; raises what the attempt raises."""
    adapters = exact(connection)
    try:
        step = next(attempt)
        while True:
            if isinstance(step, Together):
                step = attempt.send(await _atogether(connection, adapters, step))
            else:
                step = attempt.send([await _aalone(connection, adapters, step.statement)])
    except StopIteration as done:
        return cast("list[Answer]", done.value)
    finally:
        if _is_open(connection):
            await AsyncExactCursor(connection, adapters).execute(_END, prepare=False)


def _is_open(connection: Sync | Async) -> bool:
    return not connection.closed and connection.info.transaction_status is not TransactionStatus.IDLE


def _together(connection: Sync, adapters: AdaptersMap, step: Together) -> list[Outcome]:
    cursors = [ExactCursor(connection, adapters) for _ in step.statements]
    failed: Exception | None = None
    try:
        # In a pipeline the server takes no second statement behind the first one, with or without values.
        with connection.pipeline():
            try:
                for cursor, statement in zip(cursors, step.statements, strict=True):
                    prepare = _prepare(statement, step)
                    cursor.execute(statement.sql.encode(), statement.values, prepare=prepare, binary=statement.binary)
            except _ERRORS as error:  # psycopg would log what follows from an error that leaves the pipeline
                failed = error
    except _ERRORS as error:
        failed = failed or error
    return [_read(c, s, failed) for c, s in zip(cursors, step.statements, strict=True)]


async def _atogether(connection: Async, adapters: AdaptersMap, step: Together) -> list[Outcome]:
    cursors = [AsyncExactCursor(connection, adapters) for _ in step.statements]
    failed: Exception | None = None
    try:
        async with connection.pipeline():
            try:
                for cursor, statement in zip(cursors, step.statements, strict=True):
                    prepare = _prepare(statement, step)
                    await cursor.execute(
                        statement.sql.encode(), statement.values, prepare=prepare, binary=statement.binary
                    )
            except _ERRORS as error:
                failed = error
    except _ERRORS as error:
        failed = failed or error
    return [await _aread(c, s, failed) for c, s in zip(cursors, step.statements, strict=True)]


def _prepare(statement: Statement, step: Together) -> bool | None:
    """Whether a statement may be prepared: queries, and not what begins and ends transactions.

    psycopg takes what was to be prepared behind a statement that failed for prepared, and a transaction must end.
    """
    return step.prepare if statement.sql.lstrip().startswith("SELECT") else False


def _read(cursor: ExactCursor, statement: Statement, failed: Exception | None) -> Outcome:
    """What a statement of several came to; those behind a failed one came to nothing."""
    if failed is not None and cursor.pgresult is None:
        return failed
    columns, count = _columns(cursor), cursor.rowcount
    try:
        return Result(columns, cursor.fetchall() if columns and count <= statement.most else (), count)
    except _ERRORS as error:
        return error


async def _aread(cursor: AsyncExactCursor, statement: Statement, failed: Exception | None) -> Outcome:
    if failed is not None and cursor.pgresult is None:
        return failed
    columns, count = _columns(cursor), cursor.rowcount
    rows: list[Row] = []
    try:
        while columns and len(rows) < count <= statement.most:
            rows += await cursor.fetchmany(PORTION)
            if len(rows) < count:
                await asyncio.sleep(0)
    except _ERRORS as error:
        return error
    return Result(columns, rows, count)


def _columns(cursor: ExactCursor | AsyncExactCursor) -> tuple[str, ...]:
    """The names of the columns; none where there are no rows to read."""
    result = cursor.pgresult
    assert result is not None
    return tuple((result.fname(place) or b"").decode() for place in range(result.nfields))


def _alone(connection: Sync, adapters: AdaptersMap, statement: Statement) -> Outcome:
    portions = _Portions(statement)
    cursor = ExactCursor(connection, adapters)
    try:
        for row in cursor.stream(statement.sql.encode(), statement.values, binary=statement.binary, size=_SIZE):
            portions.add(row)
        ExactCursor(connection, adapters).execute(_NOTHING, prepare=False)
    except _ERRORS as error:
        return error
    return portions.result()


async def _aalone(connection: Async, adapters: AdaptersMap, statement: Statement) -> Outcome:
    portions = _Portions(statement)
    cursor = AsyncExactCursor(connection, adapters)
    try:
        async for row in cursor.stream(statement.sql.encode(), statement.values, binary=statement.binary, size=_SIZE):
            if portions.add(row):
                await asyncio.sleep(0)
        await AsyncExactCursor(connection, adapters).execute(_NOTHING, prepare=False)
    except _ERRORS as error:
        return error
    return portions.result()


_NOTHING: Final = b""
"""After a statement in portions libpq would go on giving portions, if one outside of a pipeline did not end that."""

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
