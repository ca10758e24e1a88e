"""Reading of the values of expectations."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.declare.values import (
    Anything,
    Bound,
    ChangedBy,
    During,
    Fields,
    Generated,
    Given,
    Json,
    Listing,
    Matches,
    Not,
    OneOf,
    Reference,
    Unordered,
    Value,
    read,
    references,
)

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text().map(lambda t: t.strip("$"))


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (19.9, Given(19.9)),
        (None, Given(None)),
        (Decimal("19.90"), Given(Decimal("19.90"))),
        (date(2026, 11, 30), Given(date(2026, 11, 30))),
        ("paid", Given("paid")),
        ("US$ 5", Given("US$ 5")),
        ("$amount", Reference("amount")),
        ("$payment.id", Reference("payment", "id")),
        ("$$5 off", Given("$5 off")),
        ({"a": 1, "b": [1, None]}, Given({"a": 1, "b": [1, None]})),
        ((1, 2), Given([1, 2])),
        ({"city": "$city"}, Fields((("city", Reference("city")),))),
        ([1, "$x"], Listing((Given(1), Reference("x")))),
        ({"generated": True}, Generated()),
        ({"any": True}, Anything()),
        ({"during": "run"}, During()),
        ({"decreased_by": "$amount"}, ChangedBy(Reference("amount"), -1)),
        ({"increased_by": "1.50"}, ChangedBy(Given("1.50"), 1)),
        ({"increased_by": {"at_least": 1}}, ChangedBy(Bound(Given(1), 1), 1)),
        ({"at_least": 0}, Bound(Given(0), 1)),
        ({"at_most": "2026-11-30"}, Bound(Given("2026-11-30"), -1)),
        ({"in": ["a", "b"]}, OneOf(Given(["a", "b"]))),
        ({"in": "$allowed"}, OneOf(Reference("allowed"))),
        ({"not": 5}, Not(Given(5))),
        ({"matches": "R-[0-9]+"}, Matches("R-[0-9]+")),
        ({"unordered": ["a", "$b"]}, Unordered(Listing((Given("a"), Reference("b"))))),
        ({"json": {"/state": "paid"}}, Json((("/state", Given("paid")),), "unchanged")),
        ({"json": {"/a~1b/0": "$x"}, "rest": "any"}, Json((("/a~1b/0", Reference("x")),), "any")),
        ({"equals": {"any": True}}, Given({"any": True})),
        ({"equals": "$amount"}, Given("$amount")),
        ({"json": 1, "other": 2}, Given({"json": 1, "other": 2})),
        ({"any": True, "more": 1}, Given({"any": True, "more": 1})),
        ({"created_by": "kim"}, Given({"created_by": "kim"})),
        ({"note": "x"}, Given({"note": "x"})),
        ({"tags": {"any": True}}, Fields((("tags", Anything()),))),
        ({}, Given({})),
    ],
)
def test_a_value_is_read_from_the_form_in_which_it_is_written(raw: Any, value: Value) -> None:
    assert read(raw) == value


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("$5", "'$5' is no reference ($name or $name.column); write '$$5' for a literal dollar"),
        ("$", "is no reference"),
        ("$a.b.c", "is no reference"),
        ({"decresed_by": 1}, "unknown form 'decresed_by'; did you mean 'decreased_by'?"),
        ({"decreasedBy": 1}, "did you mean 'decreased_by'?"),
        ({"genreated": True}, "did you mean 'generated'?"),
        ({"equal": 1}, "did you mean 'equals'?"),
        ({"Any": True}, "did you mean 'any'?"),
        ({"meta": {"unorderd": []}}, "did you mean 'unordered'?"),
        ({"generated": False}, "'generated' takes only true"),
        ({"any": 1}, "'any' takes only true"),
        ({"during": "the run"}, "'during' takes only 'run'"),
        ({"decreased_by": True}, "'decreased_by' takes a number or a reference, not True"),
        ({"increased_by": "much"}, "'increased_by' takes a number or a reference, not 'much'"),
        ({"at_least": None}, "'at_least' takes a number"),
        ({"in": "paid"}, "'in' takes a list or a reference to one, not 'paid'"),
        ({"unordered": {"a": 1}}, "'unordered' takes a list"),
        ({"matches": "("}, "'(' is none"),
        ({"matches": 5}, "'matches' takes a regular expression, not 5"),
        ({"json": {}}, "'json' takes parts by pointer"),
        ({"json": ["/a"]}, "'json' takes parts by pointer"),
        ({"json": {"a": 1}}, "'a' is no JSON pointer"),
        ({"json": {"/a~2": 1}}, "'/a~2' is no JSON pointer"),
        ({"json": {"/a": 1, "/a/b": 2}}, "'/a/b' lies inside another one"),
        ({"json": {"/a": 1}, "rest": "all"}, "'rest' is 'unchanged' or 'any', not 'all'"),
        ({"json": {"/a": 1}, "rst": "any"}, "unknown key 'rst' beside 'json'; did you mean 'rest'?"),
        ({1: "a"}, "the name 1 of a mapping is no text"),
        ({"a", "b"}, "a value of type set cannot be compared"),
        (object(), "a value of type object cannot be compared"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused(raw: Any, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        read(raw)


def test_a_misspelt_form_says_how_to_write_it_literally() -> None:
    with pytest.raises(ValueError, match=re.escape("written {equals: {...}}")):
        read({"genrated": True})


def test_a_value_that_contains_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested too deeply, or contains itself"):
        read(endless)


@pytest.mark.parametrize(
    ("raw", "names"),
    [
        ("paid", ()),
        ("$$x", ()),
        ({"equals": "$x"}, ()),
        ("$payment.id", ("payment",)),
        ({"decreased_by": "$amount"}, ("amount",)),
        ({"a": ["$x", {"in": ["$y", "$x.z"]}], "b": {"not": "$w"}}, ("x", "y", "w")),
        ({"json": {"/a": "$x", "/b": {"unordered": ["$y"]}}}, ("x", "y")),
    ],
)
def test_the_names_that_a_value_refers_to_are_found_wherever_they_stand(raw: Any, names: tuple[str, ...]) -> None:
    assert references(read(raw)) == names


@given(st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.from_regex("x[a-z]{9}"), inner)))
def test_what_is_neither_form_nor_reference_is_read_as_it_is(raw: Any) -> None:
    assert read(raw) == Given(raw)


@given(st.text())
def test_a_text_with_its_dollar_doubled_is_read_as_the_text(text: str) -> None:
    assert read(f"${text}" if text.startswith("$") else text) == Given(text)
