"""A digest matches the value it was made of, and no other."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail.digests import Digest, digested_like, new_key
from guardrail.pictures import Picture

KEY = b"k" * 16
PLAIN: st.SearchStrategy[object] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(-3, 3).map(lambda value: round(value * 2) / 2)
    | st.decimals(-3, 3, places=1)
    | st.text(max_size=2)
    | st.binary(max_size=2)
    | st.dates(date(2026, 1, 1), date(2026, 1, 2)),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=1), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=400, deadline=None)
@given(PLAIN, PLAIN)
def test_a_digest_matches_exactly_the_values_that_are_equal(one: object, other: object) -> None:
    assert Digest.of(one, KEY).matches(other) == (one == other)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, True, True),
        (Decimal("19.90"), Decimal("19.9"), True),
        (0.1, Decimal("0.1"), False),
        (float("nan"), Decimal("nan"), True),
        (float("inf"), Decimal("-inf"), False),
        (Decimal("1e400"), 10**400, True),
        ("1", 1, False),
        (b"a", "a", False),
        (b"a", bytearray(b"a"), True),
        ([1, 2], [12], False),
        (["a", "b"], ["ab"], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ((1, 2), [1, 2], True),
        (date(2026, 1, 2), "2026-01-02", False),
        (date(2026, 1, 2), datetime(2026, 1, 2), False),
        (datetime(2026, 1, 2, 12, tzinfo=UTC), datetime(2026, 1, 2, 14, tzinfo=timezone(timedelta(hours=2))), True),
        (datetime(2026, 1, 2, 12, tzinfo=UTC), datetime(2026, 1, 2, 12), False),
        (time(1, 2), time(1, 2), True),
        (timedelta(hours=24), timedelta(days=1), True),
        (UUID(int=1), UUID(int=1), True),
        (UUID(int=1), str(UUID(int=1)), False),
        ("\ud800", "\ud800", True),
    ],
)
def test_equal_means_what_it_means_for_plain_values(one: object, other: object, same: bool) -> None:
    assert Digest.of(one, KEY).matches(other) is same
    assert (Digest.of(one, KEY) == Digest.of(other, KEY)) is same


def test_digests_under_other_keys_differ() -> None:
    assert Digest.of("secret", new_key()) != Digest.of("secret", new_key())


def test_a_digest_shows_nothing_and_is_not_digested_again() -> None:
    digest = Digest.of("secret", KEY)
    assert repr(digest) == str(digest) == "<redacted>"
    assert Digest.of(digest, new_key()) is digest
    assert digest.matches(Digest.of("secret", KEY))
    assert not digest.matches(Digest.of("secret", new_key()))


def test_other_things_cannot_be_digested() -> None:
    with pytest.raises(TypeError, match="of type object"):
        Digest.of(object(), KEY)


def test_a_live_picture_is_digested_like_the_kept_one() -> None:
    live = Picture("s.t", ("id",), ("id", "token"), {}, {("a",): ("a", "x"), ("b",): ("b", "y")})
    key = new_key()
    kept = Picture(
        "s.t", ("id",), ("id", "token"), {}, {("a",): ("a", Digest.of("x", key)), ("b",): ("b", Digest.of("z", key))}
    )
    found = digested_like(live, kept)
    assert found.rows[("a",)] == kept.rows[("a",)]
    assert found.rows[("b",)] != kept.rows[("b",)]
    assert digested_like(live, live) is live


def test_keys_of_a_live_picture_are_digested_like_those_of_the_kept_one() -> None:
    key = new_key()
    live = Picture("s.t", ("id",), ("id",), {}, {("a",): ("a",)}, {("a",): b"1", ("b",): b"2"})
    kept = Picture("s.t", ("id",), ("id",), {}, {}, {(Digest.of("a", key),): b"1"})
    found = digested_like(live, kept)
    assert found.hashes is not None
    assert found.hashes[(Digest.of("a", key),)] == b"1"
    assert set(found.rows) == {(Digest.of("a", key),)}
