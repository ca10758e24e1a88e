"""When two calls are the same."""

from __future__ import annotations

import hmac
import itertools
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail.telemetry.canonical import canonical, digest
from guardrail.telemetry.redaction import Plain

KEY = b"k" * 32


class Currency(Enum):
    EUR = "EUR"


@dataclass
class Money:
    amount: object
    currency: object = Currency.EUR


class Opaque:
    pass


SAME: list[list[Any]] = [
    [40, 40.0, Decimal("40.00"), "40", "40.00", Decimal("4E+1"), "40.0"],
    [0, -0.0, "0", "-0", "-0.00", Decimal("0E-10"), "0.0"],
    ["0.1", 0.1, Decimal("0.10")],
    [10**22, 1e22, Decimal("1E+22")],
    [-19.9, "-19.90", Decimal("-19.9")],
    [{"order": "O-9", "amount": "40.00"}, {"amount": 40.0, "order": "O-9"}, OrderedDict(amount=40, order="O-9")],
    [[1, 2], (1, 2), (1.0, "2")],
    [{1, 2, 3}, frozenset({3, 2, 1})],
    [Money(40), Money("40.00", "EUR"), {"amount": 40, "currency": "EUR"}],
    [datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"],
    [UUID(int=1), "00000000-0000-0000-0000-000000000001"],
    [{1: "a"}, {"1": "a"}],
    [b"x", bytearray(b"x")],
    [Opaque(), Opaque()],
]


@pytest.mark.parametrize("values", SAME, ids=lambda values: repr(values[0])[:30])
def test_values_that_say_the_same_have_one_form(values: list[object]) -> None:
    assert len({canonical(value) for value in values}) == 1
    assert len({digest("pay", {"x": value}, KEY) for value in values}) == 1


DIFFERENT: list[Any] = [
    None, True, False, "true", "null", 0, 1, "", "a", "A", "007", "+40", "4e1", " 40", "40.", 0.30000000000000004, 0.3,
    float("nan"), "nan", float("inf"), [], {}, [[]], [1], [1, 2], [2, 1], {1, 2}, {"a": 1}, {"a": [1]}, {"b": 1},
    {"a": None}, b"", b"a", "a" * 1000, "a" * 1001, ["a" * 1000], [["a"] * 1000], 2**70, 10**5000, 10**5000 + 1,
    Decimal("1E+500"), Decimal("1.1E+500"), Opaque(), Money(41), {"x": {"y": {"z": 1}}}, {"x": {"y": {"z": 2}}},
]  # fmt: skip


def test_values_that_say_something_else_have_another_form() -> None:
    for one, other in itertools.combinations(DIFFERENT, 2):
        assert canonical(one) != canonical(other), (one, other)


def test_a_digest_tells_tool_and_arguments() -> None:
    assert digest("refund", {"id": 1}) != digest("charge", {"id": 1})
    assert digest("refund", {"id": 1}) != digest("refund", {"id": 2})
    assert digest("a", {"b": 1}) != digest('a"', {"b": 1})


def test_a_digest_under_a_key_cannot_be_computed_without_it() -> None:
    args = {"pin": 1234}
    assert digest("pay", args, KEY).startswith("hmac-sha256:")
    assert digest("pay", args, KEY) != digest("pay", args, b"other")
    assert digest("pay", args).startswith("sha256:")
    assert "1234" not in digest("pay", args, KEY)


def test_a_digest_is_the_same_in_every_process() -> None:
    # Sets of texts are iterated in another order in each process.
    args = {"order": "O-9", "amount": "40.00", "tags": {"a", "b", "c"}}
    text = b'"charge"{"amount":40,"order":"O-9","tags":set["a","b","c"]}'
    assert digest("charge", args, KEY) == f"hmac-sha256:{hmac.new(KEY, text, 'sha256').hexdigest()}"


def test_redacted_and_unbounded_arguments_count() -> None:
    assert digest("login", {"password": "a"}, KEY) != digest("login", {"password": "b"}, KEY)
    assert digest("send", {"body": "x" * 10_000_000}, KEY) != digest("send", {"body": "x" * 10_000_000 + "y"}, KEY)
    assert digest("send", list(range(100_000)), KEY) != digest("send", list(range(100_001)), KEY)


def nested(depth: int, innermost: object) -> object:
    value = innermost
    for _ in range(depth):
        value = {"d": [value]}
    return value


def test_depth_does_not_matter() -> None:
    assert canonical(nested(3_000, 1)) == canonical(nested(3_000, 1.0))
    assert canonical(nested(3_000, 1)) != canonical(nested(3_000, 2))
    assert canonical(nested(3_000, 1)) != canonical(nested(3_001, 1))


def test_cycles_end() -> None:
    def ring(size: int) -> dict[str, object]:
        first: dict[str, object] = {}
        last = first
        for _ in range(size - 1):
            last["next"] = {}
            last = cast("dict[str, object]", last["next"])
        last["next"] = first
        return first

    assert canonical(ring(3)) == canonical(ring(3))
    assert canonical(ring(3)) != canonical(ring(2))


def test_a_cycle_is_told_by_where_it_leads() -> None:
    inner: dict[str, object] = {}
    outer: dict[str, object] = {"a": inner}
    inner["b"] = inner
    to_itself = canonical(outer)
    inner["b"] = outer
    assert canonical(outer) != to_itself


def test_shared_parts_do_not_multiply() -> None:
    value: object = [1]
    for _ in range(200):
        value = [value, value]
    assert len(canonical(value)) < 2_000


def refused(self: object) -> type:
    raise RuntimeError


# A dictionary whose class cannot be asked for.
Lying = type("Lying", (dict,), {"__class__": property(refused)})


class Unreadable(Decimal):
    def is_finite(self) -> bool:
        raise RuntimeError


def test_what_cannot_be_read_counts_by_its_class_and_takes_nothing_with_it() -> None:
    assert canonical({"a": Lying(x=1)}) == '{"a":{"x":1}}'
    assert canonical({"a": Unreadable(1), "b": 1}) == '{"a":<Unreadable>,"b":1}'


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=6) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=150)
@given(st.dictionaries(st.text(max_size=4), JSON), st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(value: dict[str, object], random: Any) -> None:
    names = list(value)
    random.shuffle(names)
    assert canonical({name: value[name] for name in names}) == canonical(value)


@settings(max_examples=150)
@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12, places=2))
def test_a_decimal_its_text_and_its_float_are_the_same(number: Decimal) -> None:
    assert canonical(number) == canonical(str(number))
    if abs(number) < 10**12:
        assert canonical(number) == canonical(float(number))


@settings(max_examples=150)
@given(JSON, JSON)
def test_equal_forms_are_equal_values(one: Plain, other: Plain) -> None:
    if canonical(one) == canonical(other):
        assert numbers_read(one) == numbers_read(other)


def numbers_read(value: Plain) -> object:
    """The value with numbers, and texts that canonically are numbers, in one form."""
    if isinstance(value, dict):
        return {name: numbers_read(item) for name, item in value.items()}
    if isinstance(value, list):
        return [numbers_read(item) for item in value]
    return canonical(value)


def test_a_mapping_without_an_end_has_a_canonical_form() -> None:
    class Endless(Mapping[str, object]):
        def __getitem__(self, name: str) -> object:
            return name

        def __iter__(self) -> Iterator[str]:
            return map(str, itertools.count())

        def __len__(self) -> int:
            return 3

    assert canonical(Endless()) == canonical(Endless())
