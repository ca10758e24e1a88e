"""Values on their way into SQLite: converted without loss, or not at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from types import MappingProxyType
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.errors import StoreError
from guardrail.query.binding import bind, bind_value
from guardrail.query.proof import prove


class Status(Enum):
    PAID = "paid"


NUMBER = UUID(int=17)


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
        (datetime(2024, 1, 31, 10, 0), "2024-01-31 10:00:00"),
        (datetime(2024, 1, 31, 10, 0, tzinfo=UTC), "2024-01-31 10:00:00+00:00"),
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


def endless() -> list[object]:
    endless: list[object] = []
    endless.append(endless)
    return endless


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (2**63, "64 bits"),
        (float("nan"), "NULL of NaN"),
        (Decimal("0.1234567890123456789"), "exactly 0.1234567890123456789"),
        (Decimal("12345678901234567890.5"), "exactly"),
        (Decimal("1E+400"), "exactly"),
        (Decimal("1E+1000000"), "exactly"),
        (Decimal("NaN"), "exactly"),
        (Decimal("sNaN"), ""),
        (Decimal("Infinity"), "exactly"),
        ("\ud800", "surrogate"),
        ({1, 2}, "set"),
        (timedelta(1), "timedelta"),
        (object(), "object"),
        ([b"x"], "bytes"),
        ([float("inf")], "JSON"),
        ({(1, 2): 3}, "keys"),
        (endless(), "Circular"),
    ],
)
def test_a_value_that_sqlite_would_change_is_refused(value: object, why: str) -> None:
    query = prove("SELECT :it", "sqlite")
    with pytest.raises(StoreError, match=f":it.*{why}"):
        bind(query, {"it": value})


def test_a_missing_value_is_named_beside_those_that_are_there() -> None:
    query = prove("SELECT * FROM orders WHERE id = :order_id AND amount = :amount", "sqlite")
    with pytest.raises(StoreError, match=r":order_id has no value \(there is :amount, :order\)"):
        bind(query, {"amount": 1, "order": 2})


def test_only_the_parameters_of_the_query_are_bound() -> None:
    query = prove("SELECT :a, :b, :a", "sqlite")
    assert bind(query, {"a": 1, "b": 2, "never": object()}) == {"a": 1, "b": 2}


@pytest.mark.parametrize("dialect", ["postgres", "mysql"])
def test_a_dialect_without_a_driver_is_told(dialect: str) -> None:
    with pytest.raises(StoreError, match=f"{dialect}: no driver"):
        bind(prove("SELECT :a", dialect), {"a": 1})


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
