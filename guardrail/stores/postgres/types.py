"""PostgreSQL's types: how values of each compare, how they are read, and how they are hashed on the server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Final
from uuid import UUID

from guardrail.pictures import ColumnKind

_OIDS: Final[Mapping[int, ColumnKind]] = {
    16: "boolean",
    17: "bytes",  # bytea
    **dict.fromkeys((20, 21, 23, 26), "integer"),  # int8, int2, int4, oid
    **dict.fromkeys((25, 1042, 1043), "text"),  # text, char(n), varchar
    **dict.fromkeys((114, 3802), "json"),  # json, jsonb
    **dict.fromkeys((700, 701), "float"),
    **dict.fromkeys((790, 1700), "decimal"),  # money, numeric
    1082: "date",
    **dict.fromkeys((1083, 1266), "time"),  # without and with zone
    **dict.fromkeys((1114, 1184), "instant"),  # without and with zone
    2950: "uuid",
}
"""Kinds by the oids of the types, which never change. Every other type is read as text, or as JSON if it has parts."""

_CHAR, _JSON, _MONEY, _JSONB = 1042, 114, 790, 3802
_READ_AS: Final = {_CHAR: "{}::text", _JSON: "{}::text", _JSONB: "{}::text", _MONEY: "{}::numeric"}
_RANGES: Final = {21: 2**15, 23: 2**31, 20: 2**63, 26: 2**32}
"""The first whole number that a type of them cannot hold."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column as the catalog has it.

    `type` is the oid of its type, of its base type for a domain. `parts`: it is an array (`A`) or composite (`C`), else
    empty. `spelled` is the type as SQL writes it. `generated`: the database may fill it by itself.
    """

    name: str
    type: int
    parts: str
    spelled: str
    generated: bool

    @property
    def kind(self) -> ColumnKind:
        """How its values compare."""
        return "json" if self.parts else _OIDS.get(self.type, "text")

    @property
    def read(self) -> str:
        """The expression by which it is read: as a type that every driver reads exactly, in text and binary form."""
        name = quoted(self.name)
        if self.parts:
            return f"{'array_to_json' if self.parts == 'A' else 'to_json'}({name})::text"
        return _READ_AS.get(self.type, "{}" if self.type in _OIDS else "{}::text").format(name)

    @property
    def hashed(self) -> str:
        """The expression that is hashed: one whose type has a hash, in which values that differ are not equal.

        Under some collations, texts are equal that differ; under "C" none are.
        """
        if self.type == _JSONB and not self.parts:
            return quoted(self.name)
        return f'{self.read} COLLATE "C"' if self._is_read_as_text else self.read

    @property
    def _is_read_as_text(self) -> bool:
        return bool(self.parts) or self.kind in ("text", "json")

    def parameter(self, value: object) -> object | None:
        """A value as a parameter of the column's type: text that the server reads. None: no row can have this value."""
        if isinstance(value, bytes):
            return value if self.kind == "bytes" else None
        text = _texts.get(self.kind, str)(value)
        if text is not None and self.type in _RANGES and not -_RANGES[self.type] <= int(text) < _RANGES[self.type]:
            return None
        return text


def quoted(name: str) -> str:
    """An identifier in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def quoted_table(name: str) -> str:
    """A table's name, or `schema.table`, in double quotes."""
    return ".".join(map(quoted, name.split(".", 1)))


def _whole(value: object) -> str | None:
    try:
        number = Decimal(str(value))
        return str(int(number)) if number == int(number) else None
    except (ArithmeticError, ValueError):
        return None


def _number(value: object) -> str | None:
    try:
        return str(Decimal(str(value)))
    except ArithmeticError:
        return None


def _reading(parse: Callable[[str], object], *types: type) -> Callable[[object], str | None]:
    """Writes values of some types, and texts that can be read as one."""

    def text(value: object) -> str | None:
        if isinstance(value, types):
            return str(value)
        try:
            parse(str(value))
        except ValueError:
            return None
        return str(value)

    return text


def _truth(value: object) -> str | None:
    return {"true": "true", "1": "true", "false": "false", "0": "false"}.get(str(value).lower())


_texts: Final[Mapping[ColumnKind, Callable[[object], str | None]]] = {
    "integer": _whole,
    "decimal": _number,
    "float": _number,
    "boolean": _truth,
    "uuid": _reading(UUID, UUID),
    "date": _reading(date.fromisoformat, date),
    "time": _reading(time.fromisoformat, time),
    "instant": _reading(datetime.fromisoformat, date),
}
