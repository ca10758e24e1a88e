"""Typed matchers."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from guardrail.declare.matchers import LONGEST_MATCHED, Conditions, check

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


TYPES: list[tuple[Any, list[object], list[object]]] = [
    ("any", [1, "x", None, [], object()], []),
    ("text", ["", "x"], [1, None, b"x", ["x"]]),
    ("integer", [0, -5, 5.0, Decimal("5.00"), 10**30], [True, "5", 5.5, float("nan"), float("inf"), None]),
    ("number", [0, 5.5, Decimal("5.5")], [True, "5", float("nan"), float("inf"), Decimal("NaN"), None]),
    (
        "decimal",
        [0, 19.9, "19.90", "-1", "+0.5", "1e3", Decimal("19.90")],
        [
            True,
            "1,5",
            "1_000",
            " 1",
            "1 ",
            "",
            "\u0663",
            "NaN",
            "Infinity",
            "-inf",
            "0x1F",
            "1e9999",
            None,
            [1],
            10**500,
        ],
    ),
    ("boolean", [True, False], [0, 1, "true", None]),
    ("date", [date(2026, 1, 1), "2026-02-28"], ["2026-02-30", "20260101", "2026-W01-1", NOON, 20260101, None]),
    (
        "instant",
        [NOON, "2026-01-01T12:00:00Z", "2026-01-01 12:00:00.5+02:00"],
        ["2026-01-01T12:00:00", "2026-01-01", datetime(2026, 1, 1), date(2026, 1, 1), "2026-13-01T00:00:00Z", 5],
    ),
    ("list", [[], (1, 2)], ["abc", {}, None]),
    ("object", [{}, {"a": 1}], [[], "x", None]),
]


@pytest.mark.parametrize(("type_", "fitting", "misfits"), TYPES)
def test_a_type_takes_its_values_and_no_others(type_: Any, fitting: list[object], misfits: list[object]) -> None:
    conditions = Conditions(type=type_)

    assert [value for value in fitting if check(conditions, value) is not None] == []
    assert [value for value in misfits if check(conditions, value) is None] == []


@pytest.mark.parametrize(
    ("conditions", "value", "misfit"),
    [
        ({"type": "decimal", "above": 0}, "0.00", "must be above 0, is '0.00'"),
        ({"type": "decimal", "above": 0}, "0.01", None),
        ({"above": 0}, "19.90", None),
        ({"below": "0.3"}, 0.1 + 0.2, "must be below 0.3, is 0.30000000000000004"),
        ({"at_most": Decimal("19.90")}, 19.9, None),
        ({"at_most": 19.9}, "19.91", "must be at most 19.9, is '19.91'"),
        ({"at_least": "12345678901234567.90"}, "12345678901234567.89", "must be at least 12345678901234567.90, is"),
        ({"type": "date", "above": "2026-01-01"}, "2026-01-02", None),
        ({"type": "date", "above": "2026-01-01"}, date(2026, 1, 1), "must be above 2026-01-01, is 2026-01-01"),
        ({"type": "instant", "at_most": "2026-01-01T12:00:00Z"}, "2026-01-01T13:30:00+01:30", None),
        ({"equals": 1}, 1.0, None),
        ({"equals": 1}, "1", "must be 1, is '1'"),
        ({"equals": 1}, True, "must be 1, is true"),
        ({"equals": "1"}, 1, "must be '1', is 1"),
        ({"equals": True}, 1, "must be true, is 1"),
        ({"equals": None}, None, None),
        ({"equals": None}, 0, "must be null, is 0"),
        ({"type": "decimal", "equals": "10.10"}, 10.1, None),
        ({"is_in": ["EUR", "USD"]}, "GBP", "must be one of 'EUR', 'USD', is 'GBP'"),
        ({"is_in": ["EUR", None, 1]}, True, "must be one of 'EUR', null, 1, is true"),
        ({"is_in": ["EUR", None, 1]}, 1.0, None),
        ({"is_not": None}, None, "must not be null, is null"),
        ({"is_not": ["a", "b"]}, "b", "must not be 'a', 'b', is 'b'"),
        ({"is_not": "a"}, "b", None),
        ({"matches": "[A-Z]{3}"}, "EUR", None),
        ({"matches": "[A-Z]{3}"}, "EURO", "must match [A-Z]{3}, is 'EURO'"),
        ({"matches": "[A-Z]{3}"}, 5, "must be a text, is 5"),
        ({"matches": ".*"}, "x" * (LONGEST_MATCHED + 1), "must match .*, is a text of 10001 characters"),
        ({"longest": 3}, "abcd", "must be a text or a list of length 3 at most, is 'abcd'"),
        ({"longest": 3}, [1, 2, 3], None),
        ({"longest": 3}, 5, "must be a text or a list of length 3 at most, is 5"),
    ],
)
def test_conditions_say_what_is_wrong_with_a_value(
    conditions: dict[str, Any], value: object, misfit: str | None
) -> None:
    found = check(Conditions(**conditions), value)

    assert found is None if misfit is None else (found or "").startswith(misfit)


@pytest.mark.parametrize(
    ("matcher", "value", "misfit"),
    [
        (Decimal("19.90"), 19.9, None),
        (19.9, Decimal("19.90"), None),
        (19.9, "19.9", "must be 19.9, is '19.9'"),
        ("paid", "paid", None),
        ("paid", "Paid", "must be 'paid', is 'Paid'"),
        (True, 1, "must be true, is 1"),
        (0, False, "must be 0, is false"),
        (None, None, None),
    ],
)
def test_a_plain_matcher_demands_an_equal_value(matcher: Any, value: object, misfit: str | None) -> None:
    assert check(matcher, value) == misfit


class Hostile:
    """Compares to nothing, and has no text."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")

    def __repr__(self) -> str:
        raise RuntimeError("shown")


@pytest.mark.parametrize("conditions", [{"equals": "x"}, {"is_in": [1, "x"]}, {"type": "decimal"}, {"longest": 3}])
def test_a_value_of_any_kind_only_fits_or_not(conditions: dict[str, Any]) -> None:
    assert check(Conditions(**conditions), Hostile()) is not None


@pytest.mark.parametrize("value", ["x" * 100_000, list(range(10_000)), 10**999, {"k" * 500: 1}, "\n" * 39])
def test_words_about_a_value_are_short(value: object) -> None:
    assert len(check(Conditions(type="boolean"), value) or "") < 160


def test_a_value_that_must_stay_secret_is_not_shown() -> None:
    assert check(Conditions(equals="a"), "hunter2", shown=False) == "must be 'a'"
    assert check("a", "hunter2", shown=False) == "must be 'a'"


@given(
    value=st.decimals(allow_nan=False, allow_infinity=False, places=4),
    bound=st.decimals(allow_nan=False, allow_infinity=False, places=4),
    written=st.sampled_from([str, Decimal]),
)
def test_bounds_compare_as_exact_decimals(value: Decimal, bound: Decimal, written: Any) -> None:
    written_value, written_bound = written(value), written(bound)

    assert (check(Conditions(above=written_bound), written_value) is None) == (value > bound)
    assert (check(Conditions(below=written_bound), written_value) is None) == (value < bound)
    assert (check(Conditions(at_least=written_bound), written_value) is None) == (value >= bound)
    assert (check(Conditions(at_most=written_bound), written_value) is None) == (value <= bound)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_the_number_that_its_text_says(value: float) -> None:
    assert check(Conditions(equals=Decimal(repr(value))), value) is None


@given(st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.decimals() | st.lists(st.integers()))
def test_no_value_makes_a_matcher_raise(value: object) -> None:
    for kind in ("decimal", "integer", "number", "date", "instant", "text", "any"):
        check(Conditions(type=kind), value)
    check(Conditions(above=0, is_not=(5, "5")), value)


@pytest.mark.parametrize(
    "conditions",
    [
        {"above": 5, "below": 3},
        {"above": 5, "at_most": 5},
        {"type": "text", "above": 1},
        {"type": "list", "matches": "a"},
        {"type": "object", "longest": 1},
        {"type": "decimal", "is_in": [1, "x"]},
        {"matches": "("},
        {"is_in": []},
        {"above": True},
        {"equals": [1]},
    ],
)
def test_conditions_that_contradict_each_other_are_refused(conditions: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Conditions(**conditions)


def test_equal_bounds_that_include_each_other_leave_one_value() -> None:
    assert check(Conditions(at_least=5, at_most=5), 5) is None


def test_conditions_that_were_used_can_be_copied_to_another_process() -> None:
    conditions = Conditions(type="decimal", above=0)
    check(conditions, 1)

    copy = pickle.loads(pickle.dumps(conditions))

    assert copy == conditions
    assert check(copy, 0) == "must be above 0, is 0"
