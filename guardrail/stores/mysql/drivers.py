"""Carrying out a look on a PyMySQL connection, statement by statement: one that fails does not end the transaction."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, cast

from pymysql import Error
from pymysql.cursors import SSCursor

from guardrail.pictures import Answer, Row
from guardrail.stores.looks import Failure, Looking, Result, Statement, Take
from guardrail.stores.mysql.faults import is_away, reason
from guardrail.stores.mysql.settings import Connection
from guardrail.stores.mysql.values import SINGLE, shortest

PORTION: Final = 1_000
"""How many rows are given on at once."""

_BEGIN: Final = Statement("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
_END: Final = Statement("ROLLBACK AND NO CHAIN NO RELEASE")


def drive(connection: Connection, look: Looking) -> list[Answer]:
    """Carry out a look. Raises `pymysql.Error` when the server is away, or refuses the transaction."""
    run(connection, _BEGIN)
    try:
        batch = next(look)
        while True:
            batch = look.send([_guarded(connection, statement) for statement in batch.statements])
    except StopIteration as done:
        return cast("list[Answer]", done.value)
    finally:
        if connection.open:
            with suppress(Error):  # the answers are had; that the server is gone, the next look finds out
                run(connection, _END)


def run(connection: Connection, statement: Statement) -> Result:
    """Carry out one statement. Its rows come from the server one by one, so that too many of them fill no memory."""
    with _executed(connection, statement) as cursor:
        description = cast("Sequence[Sequence[Any]] | None", cursor.description)
        columns = tuple(str(name) for name, *_ in description or ())
        if not columns:
            return Result()
        if statement.take is not None:
            return Result(columns, count=_given(cursor, columns, statement.take))
        rows = _exact(cursor.fetchmany(statement.most + 1), columns)
        return Result(columns, rows if len(rows) <= statement.most else (), len(rows))


def _guarded(connection: Connection, statement: Statement) -> Result | Failure:
    try:
        return run(connection, statement)
    except Error as error:
        if is_away(error) or not connection.open:
            raise
        return Failure(reason(error))


@contextmanager
def _executed(connection: Connection, statement: Statement) -> Generator[SSCursor]:
    cursor = connection.cursor(SSCursor)
    try:
        cursor.execute(statement.sql, cast("Any", statement.values))
        yield cursor
    finally:
        result = cast("Any", cursor)._result
        if result is not None and not connection.open:
            result.unbuffered_active = False  # else the driver would go on reading where there is nothing to read from
        cursor.close()


def _given(cursor: SSCursor, columns: Sequence[str], take: Take) -> int:
    """Give the rows to whoever takes them, many at once; how many there were."""
    count = 0
    while rows := cursor.fetchmany(PORTION):
        take(_exact(rows, columns))
        count += len(rows)
    return count


def _exact(rows: Sequence[Row], columns: Sequence[str]) -> Sequence[Row]:
    """The rows, with those numbers of four bytes as decimals that are read as numbers of eight."""
    if SINGLE not in columns:
        return rows
    return [
        tuple(shortest(value) if name == SINGLE else value for name, value in zip(columns, row, strict=True))
        for row in rows
    ]
