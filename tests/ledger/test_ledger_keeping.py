"""A picture that was kept is the picture that was taken, and redacted columns are digests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail.digests import Digest
from guardrail.errors import LedgerError
from guardrail.ledger.keeping import pack, unpack
from guardrail.pictures import Picture

SCALARS: st.SearchStrategy[object] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(codec=None)),
    st.binary(),
    st.decimals(),
    st.datetimes(),
    st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-5, minutes=30))])),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.uuids(),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3) | st.tuples(inner, inner)
    ),
    max_leaves=5,
)


def picture(rows: Sequence[tuple[object, ...]], hashes: dict[tuple[object, ...], bytes] | None = None) -> Picture:
    columns = ("id", "one", "two")
    keyed = {row[:1]: row for row in rows}
    return Picture("shop.orders", ("id",), columns, {"id": "integer", "one": "json"}, keyed, hashes, frozenset({"id"}))


def shape(value: object) -> object:
    """A value with its exact types, in a form in which two "not a number" are equal."""
    match value:
        case float() | Decimal():
            return type(value), repr(value)
        case list() | tuple():
            return isinstance(value, list), [shape(item) for item in cast("Sequence[object]", value)]
        case dict():
            return "dict", [shape(item) for item in cast("dict[object, object]", value).items()]
        case _:
            return type(value), value


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(VALUES, VALUES), max_size=6))
def test_values_come_back_with_their_exact_types(pairs: list[tuple[object, object]]) -> None:
    kept = picture([(number, *pair) for number, pair in enumerate(pairs)])
    found = unpack(pack(kept))
    assert shape(tuple(found.rows.values())) == shape(tuple(kept.rows.values()))
    assert tuple(found.rows) == tuple(kept.rows)
    assert (found.table, found.key, found.columns) == (kept.table, kept.key, kept.columns)
    assert (found.kinds, found.hashes, found.generated) == (kept.kinds, kept.hashes, kept.generated)


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.tuples(st.integers() | st.text()), st.binary(), max_size=6))
def test_row_hashes_come_back_beside_the_pinned_rows(hashes: dict[tuple[object, ...], bytes]) -> None:
    kept = picture([(1, "a", "b")], hashes)
    assert unpack(pack(kept)) == kept


def test_a_key_that_is_not_the_first_columns_comes_back_too() -> None:
    kept = Picture("let due", ("row",), ("id",), {}, {(0,): (17,), (1,): (17,)})
    assert unpack(pack(kept)) == kept


def test_an_empty_picture_comes_back() -> None:
    nothing: dict[tuple[object, ...], bytes] = {}
    assert unpack(pack(picture([]))) == picture([])
    assert unpack(pack(picture([], nothing))) == picture([], nothing)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(SCALARS, SCALARS), min_size=1, max_size=5))
def test_a_redacted_column_comes_back_as_digests_that_match_its_values_only(pairs: list[tuple[object, object]]) -> None:
    kept = picture([(number, *pair) for number, pair in enumerate(pairs)])
    found = unpack(pack(kept, {"one"}))
    for row, original in zip(found.rows.values(), kept.rows.values(), strict=True):
        digest = row[1]
        assert isinstance(digest, Digest)
        assert digest.matches(original[1])
        assert not digest.matches("something else")
        assert shape(row[2]) == shape(original[2])


def test_a_redacted_key_is_a_digest_wherever_it_stands() -> None:
    kept = picture([("alice@example.org", 1, 2)], {("alice@example.org",): b"1", ("bob@example.org",): b"2"})
    content = pack(kept, {"id"})
    found = unpack(content)
    assert found.hashes is not None
    ((key, row),) = found.rows.items()
    assert key == row[:1]
    assert key in found.hashes
    assert [isinstance(part, Digest) for part in (*key, *(k[0] for k in found.hashes))] == [True, True, True]
    assert unpack(pack(found)) == found


def test_the_digests_of_two_pictures_cannot_be_compared() -> None:
    kept = picture([(1, "secret", 2)])
    first, second = (unpack(pack(kept, {"one"})).rows[(1,)][1] for _ in range(2))
    assert first != second


@pytest.mark.parametrize("redacted", [set[str](), {"one"}])
def test_a_value_of_an_unknown_type_is_refused_with_its_column(redacted: set[str]) -> None:
    with pytest.raises(
        LedgerError, match=r"picture of shop\.orders cannot be kept: column one: a value of type complex"
    ):
        pack(picture([(1, 1j, 2)]), redacted)


def test_a_kept_picture_is_small() -> None:
    rows = [(number, "paid", f"customer {number % 100}") for number in range(10_000)]
    assert len(pack(picture(rows))) < 60_000


EXACT: Sequence[Any] = (
    1.0, -0.0, math.inf, 2**80, True, Decimal("1.00"), Decimal("-0"), "", "\x00", "\ud800", b"\x00\xff",
    datetime(2026, 1, 2, 3, 4, 5, 6), datetime(2026, 1, 2, tzinfo=UTC), date(2026, 1, 2), time(3, 4),
    UUID(int=7), None, timedelta(days=-1, microseconds=3),
)  # fmt: skip


@pytest.mark.parametrize("beside", [(), (None,), ("text", 1)], ids=["alone", "nulls", "mixed"])
@pytest.mark.parametrize("value", EXACT, ids=repr)
def test_a_value_is_exact_whatever_stands_beside_it_in_its_column(value: object, beside: tuple[object, ...]) -> None:
    column = (value, *beside)
    found = unpack(pack(picture([(number, item, None) for number, item in enumerate(column)])))
    assert [shape(row[1]) for row in found.rows.values()] == [shape(item) for item in column]
