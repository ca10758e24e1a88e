"""Durations, names, pointers, patterns and zones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from guardrail.declare.durations import Duration, seconds
from guardrail.declare.texts import Filled, Name, Pattern, Pointer, Zone, function_name


@pytest.mark.parametrize(
    ("text", "length"),
    [("5s", 5), ("200ms", 0.2), ("1m", 60), ("1.5m", 90), ("0s", 0), ("24h", 86400), ("1h", 3600)],
)
def test_a_duration_is_a_number_and_its_unit(text: str, length: float) -> None:
    assert seconds(text) == pytest.approx(length)


@pytest.mark.parametrize(
    "text", ["5", "", "s", "-5s", "5 s", "5S", "1m30s", "5sec", "1e3s", "\u0665s", ".5s", "25h", "5s\n"]
)
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="must be a duration"):
        seconds(text)


@given(st.integers(0, 10**6))
def test_units_agree(number: int) -> None:
    assert seconds(f"{number}ms") == pytest.approx(number / 1000)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (Duration, ["5s"], [5, None, "5"]),
        (Name, ["order_id", "_a1"], ["1a", "a-b", "a.b", "", "é", "a b", 5]),
        (Filled, ["a", " a "], ["", "  ", None]),
        (Pointer, ["", "/", "/a/0", "/a~1b~0c"], ["a", "a/b", "/a~2", "/~", "#/a"]),
        (Pattern, ["a+", "(?i)no .*"], ["(", "[a", "*", "a{5,3}", "[[a]"]),
        (Zone, ["UTC", "Europe/Oslo"], ["Mars/Olympus", "", "../etc/passwd", "/etc/passwd", "UTC\0"]),
    ],
)
def test_a_text_of_a_fixed_form_is_checked(kind: Any, good: list[Any], bad: list[Any]) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(kind)

    assert [adapter.validate_python(text) for text in good] == good
    for text in bad:
        with pytest.raises(ValidationError):
            adapter.validate_python(text)


def test_a_function_is_named_by_its_module() -> None:
    assert function_name("shop.checks:Paid.holds") == ("shop.checks", "Paid.holds")


@pytest.mark.parametrize("text", ["shop.checks", ":f", "m:", "m:f()", "m:f:g", "m f:g", "1m:f"])
def test_anything_else_names_no_function(text: str) -> None:
    with pytest.raises(ValueError, match="must be module:function"):
        function_name(text)
