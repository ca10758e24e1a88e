"""PostgreSQL's types: how values of each compare, how they are read, and how they are hashed on the server."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from struct import Struct
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

_JSON, _REAL, _MONEY, _CHAR, _TIMESTAMP, _TIMETZ, _JSONB = 114, 700, 790, 1042, 1114, 1266, 3802
_READ_AS: Final = {
    _CHAR: "{}::text",
    _JSON: "{}::text",
    _JSONB: "{}::text",
    _MONEY: "{}::numeric",
    _REAL: "{}::text::float8",  # 0.1, and not the double that is nearest to it
}
_HASHED_AS: Final = {_TIMETZ: "extract(epoch FROM {})"}
"""Where it is not what is read: instants may be written in two zones."""

_SEED: Final = 1_735_746_930
"""What hashes begin with; with 0, a null would have the hash of a float that is 0, and with 1 that of a numeric 0."""

_JSONS: Final = 199
"""The type of lists of `json`."""

_FIRST_OF_USERS: Final = 16_384
"""The first oid of a type that is not the server's own."""

_ESCAPE: Final = r"\\u(0000|[dD][89a-fA-F])"
"""A zero character, or half of a pair of surrogates."""

_PAIR: Final = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"

_FAR: Final = r"(^|[\s:,[])-?[0-9.]+[eE][+-]?[0-9]{5}"
"""A number with an exponent of five digits."""

_MAYBE_FAR: Final = "[eE][+-]?[0-9]{5}"
"""The same or another text, which is told sooner."""

_COMPARED_AS: Final = {_MONEY: "numeric", _JSON: "text", _JSONB: "text"}
_WHOLE: Final = {21: 2**15, 23: 2**31, 20: 2**63, 26: 2**32}
"""The first whole number that a type of them cannot hold."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column as the catalog has it.

    `type` is the oid of its type, of its base type for a domain. `parts`: it is an array (`A`) or composite (`C`), else
    empty. `spelled` is that type as SQL writes it. `generated`: the database may fill it by itself.
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
    def zoneless(self) -> bool:
        """Whether it holds days with a time of the day, and no zone."""
        return self.type == _TIMESTAMP and not self.parts

    @property
    def read(self) -> str:
        """The expression by which it is read: as a type that psycopg reads exactly, in text and binary form."""
        if self.parts:
            return f"{self._json}::text"
        return _READ_AS.get(self.type, "{}" if self.type in _OIDS else "{}::text").format(quoted(self.name))

    @property
    def hashed(self) -> str:
        """What is hashed: of types that have a hash, and with values that are equal where the column's are.

        A document that is kept as text (`json`) is told by its structure, as it may be written in many ways.
        """
        if self.type == _JSONB and not self.parts:
            return _structure(quoted(self.name))
        if self.parts == "A" and self.type < _FIRST_OF_USERS and self.type != _JSONS:
            return _structure_once(f"{self.read}::jsonb")
        if self.parts or self.type == _JSON:
            return _structure_once(_as_jsonb(self._json))
        if self.type in _HASHED_AS:
            return _HASHED_AS[self.type].format(quoted(self.name))
        # Under some collations texts are equal that differ; under this one none are.
        return f'{self.read} COLLATE pg_catalog."C"' if self.kind == "text" else self.read

    @property
    def _json(self) -> str:
        """The expression of a type with parts, or of `json`, as a `json`."""
        name = quoted(self.name)
        return {"A": f"pg_catalog.array_to_json({name})", "C": f"pg_catalog.to_json({name})"}.get(self.parts, name)

    def parameter(self, value: object) -> object | None:
        """A value as the parameter of `condition`, which the server can read. None: no row can have this value."""
        if isinstance(value, bytes):
            return value if self.kind == "bytes" else None
        text = _texts.get(self.kind, _text)(value)
        if text is None:
            return None
        if self.kind == "bytes":
            return text.encode()
        if self.kind == "float":
            return text if _fits(text, _SINGLE if self.type == _REAL else _DOUBLE) else None
        return text if self.type not in _WHOLE or -_WHOLE[self.type] <= int(text) < _WHOLE[self.type] else None

    def condition(self, parameter: str) -> str:
        """That the column has the value of a parameter.

        A text may be no value of a type that is not known here, so there it is compared with what is read.
        """
        compared_as = _COMPARED_AS.get(self.type) or ("text" if self.parts or self.type not in _OIDS else None)
        if compared_as is not None:
            return f"{self.read} OPERATOR(pg_catalog.=) CAST({parameter} AS {compared_as})"
        return f"{quoted(self.name)} OPERATOR(pg_catalog.=) CAST({parameter} AS {self.spelled})"


def _structure(jsonb: str) -> str:
    """What tells the structure of a `jsonb`: its own hash and, as that knows of no end of a list or an object (to it
    `[[1], 2]` is `[[1, 2]]`), its text without what tells 1 from 1.0.
    """
    text = f'{jsonb}::text COLLATE pg_catalog."C"'
    return f"{jsonb}, pg_catalog.replace(pg_catalog.replace({text}, '0', ''), '.', '')"


def _structure_once(jsonb: str) -> str:
    """The same of an expression that is worth to be evaluated once only."""
    return f"(SELECT {hash_of(_structure('d.j'))} FROM (SELECT {jsonb} AS j OFFSET 0) AS d)"


def _as_jsonb(json: str) -> str:
    """A `json` as `jsonb`; a hash of its text where that may refuse it: one such row would fail the whole picture."""
    text = f"{json}::text"
    digest = f'pg_catalog.hashtextextended({text} COLLATE pg_catalog."C", 0)'
    return f"CASE WHEN {_may_be_refused(text)} THEN pg_catalog.to_jsonb({digest}) ELSE {json}::jsonb END"


def _may_be_refused(text: str) -> str:
    """Whether `jsonb` may not hold a document: for a letter that texts, or this database, do not have, a number of too
    many digits (131,072 before the point, 16,383 behind it), or as it takes more than 256 MB.
    """
    # Without the backslashes that stand for one, every other begins an escape; without pairs, no half is left of one.
    unpaired = rf"pg_catalog.regexp_replace(pg_catalog.replace({text}, '\\', 'x'), '{_PAIR}', 'x', 'g')"
    escapes = f"{text} ~ '{_ESCAPE}' AND {unpaired} ~ '{_ESCAPE}'"
    return (
        f"{text} ~ '{_MAYBE_FAR}' AND {text} ~ '{_FAR}'"
        rf" OR {text} LIKE '%\\u%' AND (pg_catalog.getdatabaseencoding() <> 'UTF8' OR {escapes})"
        f" OR pg_catalog.octet_length({text}) > 6000 AND {text} ~ '[0-9]{{255}}'"
        f" OR pg_catalog.octet_length({text}) > {2**24}"
    )


def hash_of(values: str) -> str:
    """The hash of expressions that are separated by commas, a number of eight bytes."""
    return f"pg_catalog.hash_record_extended(ROW({values}), {_SEED}::int8)"


def quoted(name: str) -> str:
    """An identifier in double quotes."""
    return '"' + name.replace('"', '""') + '"'


_PART: Final = r'("(?:[^"]|"")+"|[^".][^.]*)'
_NAME: Final = re.compile(rf"(?:{_PART}\.)?{_PART}")


def quoted_table(name: str) -> str:
    """A table's name, or `schema.table`, in double quotes; a part with a dot or a quote in it has them already."""
    found = _NAME.fullmatch(name)
    if found is None:
        return quoted(name)
    return ".".join(part if part.startswith('"') else quoted(part) for part in found.groups() if part)


def _decimal(value: object) -> Decimal | None:
    try:
        return Decimal(int(value) if isinstance(value, bool) else str(value))
    except (ArithmeticError, ValueError):
        return None


def _whole(value: object) -> str | None:
    number = _decimal(value)
    if number is None or not number.is_finite() or abs(number) > 2**63 or number != int(number):
        return None
    return str(int(number))


def _number(value: object) -> str | None:
    """A number; one that is longer than numbers can be is none."""
    number = _decimal(value)
    if number is None or number.is_nan():
        return None if number is None else "NaN"
    lowest = number.as_tuple().exponent
    return str(number) if isinstance(lowest, str) or (number.adjusted() < 131_072 and lowest > -16_384) else None


_SINGLE: Final = Struct("!f")
_DOUBLE: Final = Struct("!d")


def _fits(text: str, form: Struct) -> bool:
    """Whether a float holds a number: one that is too large, or smaller than the smallest above 0, the server refuses."""
    try:
        (held,) = form.unpack(form.pack(float(text)))
    except OverflowError:
        return False
    return bool(held == 0) == (Decimal(text) == 0) and (abs(held) != float("inf") or "Inf" in text)


_DAY: Final = r"-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d+)?(\+00)?)?"
_WRITTEN: Final = re.compile(rf"-?infinity|\d{{5,6}}{_DAY}|\d{{4,6}}{_DAY} BC|24:00:00([+-][\d:]+)?")
"""What the server writes of a time that Python does not know."""


def _time(parse: Callable[[str], date | time]) -> Callable[[object], str | None]:
    """Writes a date or a time, or a text that says one."""

    def text(value: object) -> str | None:
        if isinstance(value, date | time):
            return value.isoformat()
        written = str(value)
        try:
            return parse(written).isoformat()
        except ValueError:
            return written if _WRITTEN.fullmatch(written) else None

    return text


def _uuid(value: object) -> str | None:
    try:
        return str(UUID(str(value)))
    except ValueError:
        return None


def _truth(value: object) -> str | None:
    return {"true": "true", "1": "true", "false": "false", "0": "false"}.get(str(value).lower())


def _text(value: object) -> str | None:
    """A text that the server can hold."""
    text = str(value)
    try:
        return None if b"\0" in text.encode() else text
    except UnicodeEncodeError:  # half of a pair of surrogates
        return None


_texts: Final[Mapping[ColumnKind, Callable[[object], str | None]]] = {
    "integer": _whole,
    "decimal": _number,
    "float": _number,
    "boolean": _truth,
    "uuid": _uuid,
    "date": _time(date.fromisoformat),
    "time": _time(time.fromisoformat),
    "instant": _time(datetime.fromisoformat),
}
