"""How psycopg gives the values of a look: exactly, or as the text that PostgreSQL writes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from struct import Struct
from typing import Any, Final

from psycopg import AsyncConnection, AsyncRawCursor, Connection, DataError, RawCursor
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Loader
from psycopg.postgres import register_default_adapters, register_default_types
from psycopg.pq import Format
from psycopg.rows import tuple_row
from psycopg.types import TypesRegistry
from psycopg.types import datetime as dates
from psycopg.types.string import TextLoader

from guardrail.pictures import Row

_AS_TEXT: Final = (
    *("json", "jsonb"),  # so that a JSON string and a document are never taken for one another
    *("interval",),  # a month is no number of days
    *("inet", "cidr"),
    *(f"{of}{form}" for of in ("int4", "int8", "num", "ts", "tstz", "date") for form in ("range", "multirange")),
)
_ZONES: Final = ("UTC", "Etc/UTC", "GMT")
_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_INT8: Final = Struct("!q")


class _InUtc(Loader):
    """Instants in UTC; ten times as slow as psycopg's own loader."""

    format = Format.BINARY

    def load(self, data: Buffer) -> datetime:
        """The instant; fails for those that Python does not know."""
        try:
            return _EPOCH + timedelta(microseconds=_INT8.unpack(data)[0])
        except OverflowError as error:
            raise DataError("an instant that Python does not know") from error


def _or_text(loader: type[Loader], then: Callable[[Any], object] | None = None) -> type[Loader]:
    """A loader that gives the text where Python has no such value: infinity, years before 1, 24 o'clock."""

    def load(self: Loader, data: Buffer) -> Any:
        try:
            value = loader.load(self, data)
            return value if then is None else then(value)
        except (DataError, OverflowError):
            return bytes(data).decode()

    return type(f"{loader.__name__}OrText", (loader,), {"load": load})


def _in_utc(value: datetime) -> datetime:
    return value.astimezone(UTC)


_TOLERANT: Final = {
    "date": _or_text(dates.DateLoader),
    "time": _or_text(dates.TimeLoader),
    "timetz": _or_text(dates.TimetzLoader),
    "timestamp": _or_text(dates.TimestampLoader),
    "timestamptz": _or_text(dates.TimestamptzLoader, _in_utc),
}


@cache
def _exact(*, in_utc: bool) -> AdaptersMap:
    """Psycopg's own adapters, whatever an application has registered, with these loaders in the place of some."""
    types = TypesRegistry()
    register_default_types(types)
    adapters = AdaptersMap(types=types)
    register_default_adapters(adapters)
    for info in types:
        if info.array_oid:
            info.register(adapters)
    for name in _AS_TEXT:
        adapters.register_loader(name, TextLoader)
    for name, loader in _TOLERANT.items():
        adapters.register_loader(name, loader)
    if not in_utc:
        adapters.register_loader("timestamptz", _InUtc)
    return adapters


def exact(connection: Connection[Any] | AsyncConnection[Any]) -> AdaptersMap:
    """The adapters for a look on a connection that is in no transaction.

    psycopg gives an instant in the zone that the session has when the answer is complete, which may not be the
    transaction's any more. There, two instants are one when clocks are put back.
    """
    return _exact(in_utc=connection.info.parameter_status("TimeZone") in _ZONES)


class ExactCursor(RawCursor[Row]):
    """A cursor that takes `$1`, and whose adapters are not the connection's, which are the application's to change."""

    def __init__(self, connection: Connection[Any], adapters: AdaptersMap) -> None:
        super().__init__(connection, row_factory=tuple_row)
        self._exact = adapters

    @property
    def adapters(self) -> AdaptersMap:
        """How values are read and written."""
        return self._exact


class AsyncExactCursor(AsyncRawCursor[Row]):
    """The same for an asynchronous connection."""

    def __init__(self, connection: AsyncConnection[Any], adapters: AdaptersMap) -> None:
        super().__init__(connection, row_factory=tuple_row)
        self._exact = adapters

    @property
    def adapters(self) -> AdaptersMap:
        """See `ExactCursor`."""
        return self._exact
