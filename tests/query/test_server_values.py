"""Values bound for real servers: what comes back is what went in."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from math import isnan
from typing import TypeAlias
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardrail.errors import StoreError
from guardrail.query.proof import Dialect, prove
from support.shops import Shop

ShopOn: TypeAlias = Callable[[Dialect], Shop]

live = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

texts = st.text(st.characters(exclude_categories=["Cs"]))
written = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(datetime(1000, 1, 2), datetime(9999, 12, 30))
instants = st.datetimes(datetime(1000, 1, 2), datetime(9999, 12, 30), timezones=zones)
dates = st.dates(date(1000, 1, 1))
parts = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(-(2.0**50), 2.0**50) | written,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(written, inner, max_size=3),
    max_leaves=6,
)
documents = st.dictionaries(written, parts, max_size=3)


def back(shop: Shop, value: object, expression: str = ":it") -> object:
    dialect: Dialect = "postgres" if type(shop).__name__ == "PostgresShop" else "mysql"
    [(answer,)] = shop.answer(prove(f"SELECT {expression}", dialect), {"it": value})
    return answer


@live
@given(
    st.none()
    | st.booleans()
    | st.integers(-(10**70), 10**70)
    | st.floats(allow_nan=False)
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.binary()
    | written
    | moments
    | instants
    | dates
    | st.times()
    | st.uuids()
    | st.timedeltas(timedelta(days=-(10**6)), timedelta(days=10**6))
    | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5)
    | st.lists(instants, min_size=1, max_size=3)
    | documents
)
def test_what_is_bound_comes_back_from_postgres_as_it_was(shop_on: ShopOn, value: object) -> None:
    try:
        answer = back(shop_on("postgres"), value)
    except StoreError:
        assert isinstance(value, Decimal)
        assert not -16_384 < value.adjusted() < 131_072 or int(value.as_tuple().exponent) < -16_383
        return
    assert answer == value


@pytest.mark.parametrize("value", [float("nan"), Decimal("NaN")])
def test_not_a_number_comes_back_from_postgres_as_none(shop_on: ShopOn, value: float | Decimal) -> None:
    answer = back(shop_on("postgres"), value)
    assert type(answer) is type(value)
    assert isnan(float(str(answer)))


@pytest.mark.parametrize(
    ("value", "expression", "answer"),
    [
        ([], "1 = ANY(:it)", False),
        ([2, 1], "1 = ANY(:it)", True),
        ([1, 2**40], "2 = ANY(:it)", False),
        (["b", "a"], "'a' = ANY(CAST(:it AS text[]))", True),
        ((Decimal("1.5"), Decimal("1.60")), "1.6 = ANY(:it)", True),
        ([UUID(int=1)], "CAST('00000000-0000-0000-0000-000000000001' AS uuid) = ANY(:it)", True),
        ([{"a": 1}], "CAST(:it AS jsonb[])", [{"a": 1}]),
        ([[1, 2], [3, 4]], ":it", [[1, 2], [3, 4]]),
        ([None, 1], ":it", [None, 1]),
    ],
)
def test_a_list_is_an_array_to_postgres(shop_on: ShopOn, value: object, expression: str, answer: object) -> None:
    assert back(shop_on("postgres"), value, expression) == answer


@live
@given(st.lists(written, max_size=5))
def test_a_list_of_texts_comes_back_from_postgres_as_it_was(shop_on: ShopOn, value: list[str]) -> None:
    assert back(shop_on("postgres"), value, "CAST(:it AS text[])") == value


@live
@given(
    st.none()
    | st.booleans()
    | st.integers(-(10**65) + 1, 10**65 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.binary()
    | texts
)
def test_what_is_bound_comes_back_from_mysql_as_it_was(shop_on: ShopOn, value: object) -> None:
    assert back(shop_on("mysql"), value) == value


@live
@given(st.decimals(allow_nan=False, allow_infinity=False) | st.decimals(-(10**30), 10**30, places=20))
def test_a_decimal_comes_back_from_mysql_as_it_was_or_is_refused(shop_on: ShopOn, value: Decimal) -> None:
    try:
        answer = back(shop_on("mysql"), value)
    except StoreError:
        return
    assert answer == value


@live
@given(moments | instants)
def test_an_instant_is_kept_by_mysql_in_utc(shop_on: ShopOn, value: datetime) -> None:
    kept = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    assert back(shop_on("mysql"), value, "CAST(:it AS DATETIME(6))") == kept


@live
@given(st.times(), dates)
def test_a_time_and_a_date_are_kept_by_mysql(shop_on: ShopOn, at: time, on: date) -> None:
    since = timedelta(hours=at.hour, minutes=at.minute, seconds=at.second, microseconds=at.microsecond)
    assert back(shop_on("mysql"), at, "CAST(:it AS TIME(6))") == since
    assert back(shop_on("mysql"), on, "CAST(:it AS DATE)") == on


@live
@given(documents)
def test_a_document_comes_back_from_mysql_as_it_was(shop_on: ShopOn, value: dict[str, object]) -> None:
    assert json.loads(str(back(shop_on("mysql"), value))) == value


@live
@given(texts, written.filter(lambda text: "$" not in text))
def test_a_text_in_a_query_stays_that_text(shop_on: ShopOn, any_text: str, text: str) -> None:
    """However it is written down: with quotes doubled, with escapes, between dollars."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    doubled = text.replace("'", "''")
    in_postgres = prove(f"SELECT '{doubled}', E'{escaped}', $q${text}$q$, :it", "postgres")
    assert shop_on("postgres").answer(in_postgres, {"it": text}) == [(text,) * 4]
    quoted = escaped.replace('"', '\\"')
    in_mysql = prove(f"SELECT '{escaped}', \"{quoted}\", :it", "mysql")
    assert shop_on("mysql").answer(in_mysql, {"it": any_text}) == [(text, text, any_text)]


names = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0", max_codepoint=0xFFFF), min_size=1, max_size=12
)


@live
@given(names)
def test_a_name_in_a_query_stays_that_name(shop_on: ShopOn, name: str) -> None:
    doubled = name.replace('"', '""')
    query = prove(f'SELECT x."{doubled}" FROM (SELECT 7 AS "{doubled}") AS x', "postgres")
    assert shop_on("postgres").answer(query, {}) == [(7,)]
    if name.isprintable() and name.strip() == name:  # of others MariaDB cuts off an end
        ticked = name.replace("`", "``")
        query = prove(f"SELECT x.`{ticked}` FROM (SELECT 7 AS `{ticked}`) AS x", "mysql")
        assert shop_on("mysql").answer(query, {}) == [(7,)]
