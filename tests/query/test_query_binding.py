"""Values on their way into a database: converted without loss, or not at all."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from types import MappingProxyType
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.errors import StoreError
from guardrail.query.binding import bind, bind_in_order, bind_value
from guardrail.query.proof import Dialect, prove


class Status(Enum):
    PAID = "paid"


class Level(int): ...


NUMBER = UUID(int=17)
EAST = timezone(timedelta(hours=2))
MOMENT = datetime(2024, 1, 31, 10, 0)


@pytest.mark.parametrize(
    ("value", "bound"),
    [
        (None, None),
        (True, 1),
        (False, 0),
        (7, 7),
        (-(2**63), -(2**63)),
        (1.5, 1.5),
        ("a'b", "a'b"),
        (Status.PAID, "paid"),
        (b"\0\xff", b"\0\xff"),
        (bytearray(b"x"), b"x"),
        (memoryview(b"x"), b"x"),
        (Decimal("19.90"), 19.9),
        (Decimal("20"), 20),
        (Decimal("9007199254740993"), 9007199254740993),
        (date(2024, 1, 31), "2024-01-31"),
        (MOMENT, "2024-01-31 10:00:00"),
        (MOMENT.replace(tzinfo=UTC), "2024-01-31 10:00:00+00:00"),
        (time(10, 30), "10:30:00"),
        (NUMBER, "00000000-0000-0000-0000-000000000011"),
        ([1, "ü", Decimal("0.5"), date(2024, 1, 31), None], '[1, "ü", 0.5, "2024-01-31", null]'),
        ((1, (2,)), "[1, [2]]"),
        (MappingProxyType({"a": MappingProxyType({"b": NUMBER})}), f'{{"a": {{"b": "{NUMBER}"}}}}'),
    ],
)
def test_a_value_is_bound_as_sqlite_keeps_it(value: object, bound: object) -> None:
    found = bind_value(value, "sqlite")
    assert found == bound
    assert type(found) in {type(None), int, float, str, bytes}


@pytest.mark.parametrize(
    ("value", "bound"),
    [
        (None, None),
        (True, True),
        (Level(3), 3),
        (2**64, 2**64),
        (float("inf"), float("inf")),
        ("a'b\\", "a'b\\"),
        (Status.PAID, "paid"),
        (bytearray(b"\0\xff"), b"\0\xff"),
        (memoryview(b"xy")[::2], b"x"),
        (Decimal("19.90"), Decimal("19.90")),
        (Decimal("1E+400"), Decimal("1E+400")),
        (Decimal("Infinity"), Decimal("Infinity")),
        (date(2024, 1, 31), date(2024, 1, 31)),
        (MOMENT.replace(tzinfo=EAST), MOMENT.replace(tzinfo=EAST)),
        (time(10, 30), time(10, 30)),
        (timedelta(days=1), timedelta(days=1)),
        (NUMBER, NUMBER),
        ([1, None, 3], [1, None, 3]),
        ((Status.PAID, "open"), ["paid", "open"]),
        (([1, 2], (3, 4)), [[1, 2], [3, 4]]),
        ([], []),
    ],
)
def test_a_value_is_bound_as_psycopg_takes_it(value: object, bound: object) -> None:
    found = bind_value(value, "postgres")
    assert found == bound
    assert type(found) in {
        type(None),
        bool,
        int,
        float,
        str,
        bytes,
        Decimal,
        date,
        datetime,
        time,
        timedelta,
        UUID,
        list,
    }


@pytest.mark.parametrize(
    ("value", "bound"),
    [
        (None, None),
        (True, 1),
        (Level(3), 3),
        (10**65 - 1, 10**65 - 1),
        (1.5, 1.5),
        ("a'b\\\0", "a'b\\\0"),
        (Status.PAID, "paid"),
        (memoryview(b"\0\xff"), b"\0\xff"),
        (Decimal("19.90"), Decimal("19.90")),
        (Decimal("1E+64"), Decimal("1E+64")),
        (Decimal("1E-30"), Decimal("1E-30")),
        (date(2024, 1, 31), "2024-01-31"),
        (MOMENT.replace(microsecond=5), "2024-01-31 10:00:00.000005"),
        (MOMENT.replace(tzinfo=EAST), "2024-01-31 08:00:00"),
        (time(10, 30), "10:30:00"),
        (NUMBER, "00000000-0000-0000-0000-000000000011"),
        ([1, "ü", Decimal("0.5"), Status.PAID], '[1, "ü", 0.5, "paid"]'),
        ({"a": (1, None)}, '{"a": [1, null]}'),
    ],
)
def test_a_value_is_bound_as_pymysql_takes_it(value: object, bound: object) -> None:
    found = bind_value(value, "mysql")
    assert found == bound
    assert type(found) in {type(None), int, float, str, bytes, Decimal}


def endless() -> list[object]:
    endless: list[object] = []
    endless.append(endless)
    return endless


CHANGED: list[tuple[Dialect, object, str]] = [
    ("sqlite", 2**63, "64 bits"),
    ("sqlite", float("nan"), "NULL of NaN"),
    ("sqlite", Decimal("0.1234567890123456789"), "exactly 0.1234567890123456789"),
    ("sqlite", Decimal("12345678901234567890.5"), "exactly"),
    ("sqlite", Decimal("1E+400"), "exactly"),
    ("sqlite", Decimal("1E+1000000"), "exactly"),
    ("sqlite", Decimal("NaN"), "exactly"),
    ("sqlite", Decimal("sNaN"), ""),
    ("sqlite", Decimal("Infinity"), "exactly"),
    ("sqlite", "\ud800", "surrogate"),
    ("sqlite", {1, 2}, "set"),
    ("sqlite", timedelta(1), "timedelta"),
    ("sqlite", object(), "object"),
    ("sqlite", [b"x"], "bytes"),
    ("sqlite", [float("inf")], "JSON"),
    ("sqlite", {(1, 2): 3}, "keys"),
    ("sqlite", endless(), "Circular"),
    ("postgres", 10**1000, "1000 digits"),
    ("postgres", Decimal("sNaN"), "signaling"),
    ("postgres", Decimal("1E-16384"), "digits"),
    ("postgres", Decimal("1E+131072"), "digits"),
    ("postgres", "a\0b", "NUL"),
    ("postgres", ["a", "\0"], "NUL"),
    ("postgres", {"a": ["\0"]}, "NUL"),
    ("postgres", {"\0": "a"}, "NUL"),
    ("postgres", "\ud800", "surrogate"),
    ("postgres", {"a": "\ud800"}, "surrogate"),
    ("postgres", {1, 2}, "set"),
    ("postgres", [1, "a"], "int and str"),
    ("postgres", [1, 1.5], "float and int"),
    ("postgres", [True, 1], "bool and int"),
    ("postgres", [MOMENT, MOMENT.replace(tzinfo=UTC)], "datetime and datetime with a zone"),
    ("postgres", [[1], [2, 3]], "one length"),
    ("postgres", [1, [2]], "one length"),
    ("postgres", [[]], "not empty"),
    ("postgres", {"a": float("nan")}, "JSON"),
    ("postgres", {"a": b"x"}, "bytes"),
    ("postgres", endless(), "recursion"),
    ("mysql", 10**65, "65 digits"),
    ("mysql", float("nan"), "no number that is nan"),
    ("mysql", float("-inf"), "no number that is -inf"),
    ("mysql", Decimal("NaN"), "no number that is NaN"),
    ("mysql", Decimal("1E+65"), "65 digits"),
    ("mysql", Decimal("1E-31"), "30 after the point"),
    ("mysql", Decimal("1" * 40 + "." + "1" * 26), "65 digits"),
    ("mysql", "\udc80", "surrogate"),
    ("mysql", ["\ud800"], "surrogate"),
    ("mysql", time(10, 30, tzinfo=UTC), "zone"),
    ("mysql", datetime(1, 1, 1, tzinfo=EAST), "out of range"),
    ("mysql", timedelta(1), "timedelta"),
    ("mysql", {1, 2}, "set"),
    ("mysql", [timedelta(1)], "timedelta"),
    ("mysql", endless(), "Circular"),
]
"""Values that a database would not take, or keep as another, and why."""


@pytest.mark.parametrize(("dialect", "value", "why"), CHANGED)
def test_a_value_that_would_be_changed_is_refused(dialect: Dialect, value: object, why: str) -> None:
    query = prove("SELECT :it", dialect)
    with pytest.raises(StoreError, match=f":it.*{why}"):
        bind(query, {"it": value})


def test_a_missing_value_is_named_beside_those_that_are_there() -> None:
    query = prove("SELECT * FROM orders WHERE id = :order_id AND amount = :amount", "sqlite")
    with pytest.raises(StoreError, match=r":order_id has no value \(there is :amount, :order\)"):
        bind(query, {"amount": 1, "order": 2})


def test_only_the_parameters_of_the_query_are_bound() -> None:
    query = prove("SELECT :a, :b, :a", "sqlite")
    assert bind(query, {"a": 1, "b": 2, "never": object()}) == {"a": 1, "b": 2}


def test_values_are_bound_in_the_order_in_which_postgres_counts_them() -> None:
    query = prove("SELECT :b, :a, :b", "postgres")
    assert query.rendered == "SELECT $1, $2, $1"
    assert bind_in_order(query, {"a": 1, "b": 2}) == [2, 1]


def in_sqlite(values: Mapping[str, object]) -> object:
    query = prove("SELECT :it AS it", "sqlite")
    with closing(sqlite3.connect(":memory:")) as connection:
        return connection.execute(query.rendered, bind(query, values)).fetchone()[0]


@given(st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.binary() | st.text())
def test_sqlites_own_kinds_come_back_as_they_were(value: object) -> None:
    assert in_sqlite({"it": value}) == value


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_decimal_comes_back_as_the_same_number_or_is_refused(value: Decimal) -> None:
    try:
        found = in_sqlite({"it": value})
    except StoreError:
        return
    assert Decimal(repr(found)) == value


@given(st.decimals(-(10**10), 10**10, places=4))
def test_money_is_never_refused(value: Decimal) -> None:
    assert Decimal(repr(in_sqlite({"it": value}))) == value
    assert [bind_value(value, dialect) for dialect in ("postgres", "mysql")] == [value, value]


def test_json_reads_back_as_what_was_bound() -> None:
    value = {"a": [1, None, "ü\\u0000"], "b": {"c": 1.5}}
    for dialect in ("sqlite", "mysql"):
        assert json.loads(str(bind_value(value, dialect))) == value
