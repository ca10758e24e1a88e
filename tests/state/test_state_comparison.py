"""How values compare, by the kind of their column."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.declare.contracts import Loosely
from guardrail.pictures import ColumnKind
from guardrail.state import Comparison, Incomparable
from guardrail.state.unknown import UNKNOWN

CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("comparisons.json").read_text(encoding="utf-8"))

TAGGED: dict[str, Callable[[str], object]] = {
    "$decimal": Decimal,
    "$instant": datetime.fromisoformat,
    "$date": date.fromisoformat,
    "$time": time.fromisoformat,
    "$uuid": UUID,
    "$bytes": bytes.fromhex,
}
"""How the data file writes values that JSON has no form for."""


def value(raw: Any) -> Any:
    """A value of the data file: a tagged one as what it stands for, any other as it is."""
    if not isinstance(raw, dict):
        return raw
    tagged = cast("dict[str, Any]", raw)
    return next((build(tagged[tag]) for tag, build in TAGGED.items() if tag in tagged), tagged)


def outcome(compare: Callable[[], bool]) -> object:
    try:
        return compare()
    except Incomparable:
        return "incomparable"


@pytest.mark.parametrize("case", CASES, ids=[f"{case['kind']}: {case['name']}" for case in CASES])
def test_a_declared_value_equals_a_live_one_by_the_kind_of_its_column(case: dict[str, Any]) -> None:
    how = Comparison.of(case["kind"], Loosely.model_validate(case.get("loosely", {})))
    assert outcome(lambda: how.equals(value(case["declared"]), value(case["live"]))) == case["equal"]


@pytest.mark.parametrize(
    ("kind", "before", "after", "same"),
    [
        ("decimal", 19.9, Decimal("19.90"), True),
        ("float", 0.3, 0.30000000000000004, True),
        ("float", float("nan"), float("nan"), True),
        ("decimal", Decimal("NaN"), Decimal("NaN"), True),
        ("decimal", Decimal("sNaN"), Decimal(1), False),
        ("float", float("inf"), float("inf"), True),
        ("float", float("inf"), 1.0, False),
        ("text", "a", "a ", False),
        ("text", "", None, False),
        ("text", None, None, True),
        ("text", "1", 1, False),
        ("unknown", "1", 1, False),
        ("unknown", True, 1, False),
        ("unknown", 1, 1.0, True),
        ("json", '{"a": 1, "b": 2}', '{"b": 2, "a": 1}', True),
        ("json", '"1"', "1", False),
        ("json", {"a": True}, {"a": 1}, False),
        ("json", "1", 1, False),
        ("json", "null", None, False),
        ("bytes", bytearray(b"a"), memoryview(b"a"), True),
        ("time", timedelta(hours=9), time(9), True),
        ("instant", datetime(2026, 11, 30, 12, tzinfo=UTC), "2026-11-30T14:00:00+02:00", True),
        ("instant", "2026-11-30T12:00:00", "2026-11-30T12:00:00Z", "incomparable"),
        ("text", UNKNOWN, "a", "incomparable"),
    ],
)
def test_two_live_values_compare_strictly_by_their_types(
    kind: ColumnKind, before: object, after: object, same: object
) -> None:
    how = Comparison.of(kind)
    assert outcome(lambda: how.same(before, after)) == same
    assert outcome(lambda: how.same(after, before)) == same


@pytest.mark.parametrize(
    ("kind", "one", "other", "order"),
    [
        ("decimal", "9.5", Decimal("10"), -1),
        ("integer", 10, 9, 1),
        ("float", 0.5, "0.5", 0),
        ("instant", "2026-11-30T12:00:00Z", "2026-11-30T12:00:00+01:00", 1),
        ("instant", "2026-11-30T12:00:00Z", "2026-11-30T12:00:00", "incomparable"),
        ("date", date(2026, 11, 30), "2026-12-01", -1),
        ("time", "09:00", "10:00", -1),
        ("text", "a", "b", "incomparable"),
        ("unknown", "2026-11-30", datetime(2026, 11, 30), 0),
    ],
)
def test_numbers_and_instants_have_an_order(kind: ColumnKind, one: object, other: object, order: object) -> None:
    how = Comparison.of(kind)
    try:
        found: object = how.order(one, other)
    except Incomparable:
        found = "incomparable"
    assert found == order


@dataclass(frozen=True)
class Digest:
    """Stands for a value that the ledger did not keep."""

    of: object

    def matches(self, value: object, /) -> bool:
        return value == self.of


def test_a_value_that_was_not_kept_is_compared_by_what_stands_for_it() -> None:
    how = Comparison.of("text")
    assert how.same(Digest("secret"), "secret")
    assert how.same("secret", Digest("secret"))
    assert not how.same(Digest("secret"), "other")


def test_a_document_that_is_nested_too_deeply_is_no_proof_of_anything() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    with pytest.raises(Incomparable, match="nested too deeply"):
        Comparison.of("json").same(deep, deep + " ")
    nested: list[Any] = []
    for _ in range(900):
        nested = [nested]
    with pytest.raises(Incomparable, match="nested too deeply"):
        Comparison.of("json").same(nested, nested)


KINDS: list[ColumnKind] = ["integer", "decimal", "float", "boolean", "text", "instant", "date", "time", "json", "uuid"]
LOOSELY = [{}, {"case": "ignore"}, {"blanks": "ignore"}, {"unordered": True}, {"tolerance": "0.5"}, {"zone": "UTC"}]

offsets = st.none() | st.integers(-14, 14).map(lambda hours: timezone(timedelta(hours=hours)))
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.decimals()
    | st.text(max_size=5)
    | st.dates()
    | st.uuids()
    | st.datetimes(timezones=offsets)
    | st.sampled_from(["1", "1.0", "true", "null", "[1, 2]", '{"a": 1}', "2026-11-30", "09:00", " A  b", "a B"])
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)


@given(st.sampled_from(KINDS), st.sampled_from(LOOSELY), values, values)
def test_comparing_is_symmetric(kind: ColumnKind, loosely: dict[str, Any], one: object, other: object) -> None:
    how = Comparison.of(kind, Loosely.model_validate(loosely))
    assert outcome(lambda: how.same(one, other)) == outcome(lambda: how.same(other, one))


@given(st.sampled_from(KINDS), st.sampled_from(LOOSELY), values)
def test_a_value_is_the_same_as_itself(kind: ColumnKind, loosely: dict[str, Any], one: object) -> None:
    how = Comparison.of(kind, Loosely.model_validate(loosely))
    assert how.same(one, one)
    assert how.equals(one, one)
