"""How psycopg gives the values of a look: exactly, or as the text that PostgreSQL writes."""

from __future__ import annotations

from typing import Any, Final

from psycopg import AsyncConnection, Connection, DataError
from psycopg.abc import AdaptContext, Buffer
from psycopg.pq import Format
from psycopg.types import datetime as dates
from psycopg.types.string import TextLoader

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


def exactly(context: AdaptContext, *, tolerant: bool = False) -> None:
    """Read values as the stores compare them, on a connection or a cursor; `tolerant` of dates that Python has not."""
    for name in _AS_TEXT:
        context.adapters.register_loader(name, TextLoader)
    for name, loader in _TOLERANT if tolerant else ():
        context.adapters.register_loader(name, loader)


def reads_exactly(connection: Connection[Any] | AsyncConnection[Any]) -> bool:
    """Whether a connection was told already, so that its cursors need not be."""
    loader = connection.adapters.get_loader
    return loader(_JSON, Format.TEXT) is loader(_TEXT, Format.TEXT)


_TEXT, _JSON = 25, 114
