"""How psycopg gives the values of a look: exactly, or as the text that PostgreSQL writes."""

from __future__ import annotations

from typing import Any, Final

from psycopg import AsyncConnection, AsyncRawCursor, Connection, DataError, RawCursor
from psycopg.abc import AdaptContext, Buffer
from psycopg.rows import tuple_row
from psycopg.types import datetime as dates
from psycopg.types.string import TextLoader

from guardrail.pictures import Row

_AS_TEXT: Final = (
    *("json", "jsonb"),  # so that a JSON string and a document are never taken for one another
    *("interval",),  # a month is no number of days
    *("inet", "cidr", "int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange"),
)


class _DateOrText(dates.DateLoader):
    def load(self, data: Buffer) -> Any:
        try:
            return super().load(data)
        except DataError:
            return _text(data)


class _TimestampOrText(dates.TimestampLoader):
    def load(self, data: Buffer) -> Any:
        try:
            return super().load(data)
        except DataError:
            return _text(data)


class _TimestamptzOrText(dates.TimestamptzLoader):
    def load(self, data: Buffer) -> Any:
        try:
            return super().load(data)
        except DataError:
            return _text(data)


def _text(data: Buffer) -> str:
    return bytes(data).decode()


_TOLERANT: Final = (("date", _DateOrText), ("timestamp", _TimestampOrText), ("timestamptz", _TimestamptzOrText))
"""For dates that Python does not know: infinity, and those before the year 1 and after 9999."""


class Cursor(RawCursor[Row]):
    """A cursor that takes `$1`, and reads values as the stores compare them."""

    def __init__(self, connection: Connection[Any], *, tolerant: bool = False) -> None:
        super().__init__(connection, row_factory=tuple_row)
        _prepare(self, tolerant)


class AsyncCursor(AsyncRawCursor[Row]):
    """The same on an asynchronous connection."""

    def __init__(self, connection: AsyncConnection[Any], *, tolerant: bool = False) -> None:
        super().__init__(connection, row_factory=tuple_row)
        _prepare(self, tolerant)


def _prepare(cursor: AdaptContext, tolerant: bool) -> None:
    for name in _AS_TEXT:
        cursor.adapters.register_loader(name, TextLoader)
    for name, loader in _TOLERANT if tolerant else ():
        cursor.adapters.register_loader(name, loader)
