"""MariaDB's and MySQL's types: how values of each compare, how they are read, and how they are hashed on the server."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import Final
from uuid import UUID

from guardrail.pictures import ColumnKind
from guardrail.stores.mysql.values import SINGLE, single

_SPATIAL: Final = frozenset(
    {"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"}
    | {"geometrycollection", "geomcollection"}
)
_TEXTS: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"})

_KINDS: Final[Mapping[str, ColumnKind]] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit"), "integer"),
    "decimal": "decimal",
    **dict.fromkeys(("float", "double"), "float"),
    **dict.fromkeys(("inet4", "inet6", *_TEXTS, *_SPATIAL), "text"),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), "bytes"),
    "date": "date",
    "time": "time",
    **dict.fromkeys(("datetime", "timestamp"), "instant"),
    "json": "json",
    "uuid": "uuid",
}
_TRUTHS: Final = frozenset({"tinyint(1)", "bit(1)"})
_PLAIN: Final = frozenset({"integer", "decimal", "float", "boolean", "date", "time", "instant"})
"""Kinds whose values, as the server writes them, hold neither a comma nor nothing but a dash."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column as the catalog has it.

    `type` is the bare name of its type, `spelled` the type as SQL writes it. `json`: a check of the table says that its
    text is JSON, which is what MariaDB makes of a JSON column. `nullable`: it may be null; `generated`: the database
    may fill it by itself.
    """

    name: str
    type: str
    spelled: str
    json: bool
    nullable: bool
    generated: bool

    @property
    def kind(self) -> ColumnKind:
        """How its values compare."""
        if self.json:
            return "json"
        return "boolean" if self.spelled in _TRUTHS else _KINDS.get(self.type, "unknown")

    @property
    def zoneless(self) -> bool:
        """Whether it holds days with a time of the day, and no zone."""
        return self.type == "datetime"

    @property
    def read(self) -> str:
        """The expression by which it is read; a FLOAT under a name that says so, as the server writes it cut off."""
        return f"{self._value} AS `{SINGLE}`" if self.type == "float" else self._value

    @property
    def hashed(self) -> str | None:
        """The expression that is hashed: its text differs where values differ, and holds no comma.

        Texts go in by their bytes, so that letters' case and blanks count, whatever the collation. Documents are hashed
        where they are read: the normal form that MariaDB has for them takes longer, and two documents in which a name
        stands twice may share it.
        """
        if self.kind == "json":
            return None
        if self.kind not in _PLAIN:
            name = quoted(self.name)
            return f"IF({name} IS NULL, '-', HEX({name}))"
        return f"IFNULL({self._value}, '-')" if self.nullable else self._value

    def equals(self, parameter: str) -> str:
        """The condition that it has the value of a parameter.

        Texts that a collation takes for equal may differ; for an index, the collation is asked all the same.
        """
        exact = f"CAST(CONVERT({self._value} USING utf8mb4) AS BINARY) = CAST({parameter} AS BINARY)"
        if self.type in _TEXTS:
            return f"{quoted(self.name)} = {parameter} AND {exact}"
        return exact if self.kind in ("text", "json", "unknown") else f"{self._value} = {parameter}"

    def parameter(self, value: object) -> object | None:
        """A value as a parameter that `equals` takes. None: no row can have this value."""
        if isinstance(value, bytes) and self.kind != "bytes":
            return None
        if self.type == "float":
            number = _double(value)
            return None if number is None else single(number)
        return _parameters.get(self.kind, str)(value)

    @property
    def _value(self) -> str:
        """The expression for its value as a type that the driver reads exactly."""
        name = quoted(self.name)
        if self.type in _SPATIAL:
            return f"ST_AsText({name})"
        return {"float": f"({name} + 0e0)", "bit": f"({name} + 0)"}.get(self.type, name)


def ticked(name: str) -> str:
    """An identifier in back quotes."""
    return "`" + name.replace("`", "``") + "`"


def quoted(name: str) -> str:
    """The same in a statement with values, where `%` begins a parameter."""
    return ticked(name).replace("%", "%%")


def quoted_table(name: str) -> str:
    """A table's name, or `database.table`, in back quotes."""
    return ".".join(map(quoted, name.split(".", 1)))


def _whole(value: object) -> int | None:
    number = _number(value)
    return int(number) if number is not None and number == int(number) else None


def _number(value: object) -> Decimal | None:
    try:
        number = Decimal(value) if isinstance(value, bool) else Decimal(str(value))
    except ArithmeticError:
        return None
    return number if number.is_finite() else None


def _double(value: object) -> float | None:
    number = _number(value)
    return float(number) if number is not None and isfinite(float(number)) else None


def _octets(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _truth(value: object) -> int | None:
    return {"true": 1, "false": 0}.get(str(value).lower(), _whole(value))


def _uuid(value: object) -> str | None:
    try:
        return str(UUID(str(value)))
    except ValueError:
        return None


def _reading(parse: Callable[[str], object], likely: re.Pattern[str]) -> Callable[[object], str | None]:
    """Writes what is a moment, or can be read as one, or is one to the server alone, such as `0000-00-00`."""

    def text(value: object) -> str | None:
        written = str(_in_utc(value))
        try:
            parse(written)
        except ValueError:
            return written if likely.fullmatch(written) else None
        return written

    return text


def _in_utc(value: object) -> object:
    """An instant with a zone as one of the session's zone; a duration as the server writes it."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, timedelta):
        seconds, micro = divmod(abs(value) // timedelta(microseconds=1), 1_000_000)
        sign = "-" if value < timedelta() else ""
        return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micro:06}"
    return value


_DATE: Final = r"\d{4}-\d\d-\d\d"
_CLOCK: Final = r"-?\d{1,3}:\d\d:\d\d(\.\d{1,6})?"

_parameters: Final[Mapping[ColumnKind, Callable[[object], object | None]]] = {
    "integer": _whole,
    "decimal": _number,
    "float": _double,
    "boolean": _truth,
    "bytes": _octets,
    "uuid": _uuid,
    "date": _reading(date.fromisoformat, re.compile(_DATE)),
    "time": _reading(time.fromisoformat, re.compile(_CLOCK)),
    "instant": _reading(datetime.fromisoformat, re.compile(rf"{_DATE}([ T]{_CLOCK})?")),
}
