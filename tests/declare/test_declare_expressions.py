"""Expressions in CEL."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from itertools import count
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from guardrail.declare.expressions import LONGEST, MOST_ITEMS, MOST_TEXT, compile_expression
from guardrail.errors import ExpressionError

NAMES = ("args", "inputs.order_id", "inputs.amount", "run.task", "run.calls")


class Colour(Enum):
    RED = "red"


class Odd(int):
    """A number of a class of somebody's own, whose methods say what they like."""

    def __index__(self) -> int:
        return 99

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


class Share(float): ...


class Word(str):
    def __len__(self) -> int:
        return 1


class Octets(bytes): ...


class Endless(Mapping[str, object]):
    """Pages of something far away, that are fetched as they are asked for."""

    def __getitem__(self, name: str) -> object:
        return name

    def __iter__(self) -> Iterator[str]:
        return map(str, count())

    def __len__(self) -> int:
        return 3


class Model(BaseModel):
    total: int


@dataclass
class Record:
    total: int


def evaluate(text: str, **args: object) -> bool:
    variables: dict[str, Mapping[str, object]] = {
        "args": args,
        "inputs": {"order_id": 17},
        "run": {"task": "refund", "calls": 3},
    }
    return compile_expression(text, NAMES).evaluate(variables)


@pytest.mark.parametrize(
    ("text", "args", "holds"),
    [
        ("args.count > 1", {"count": 2}, True),
        ("args.count > 1", {"count": 1}, False),
        ("args.order_id == inputs.order_id", {"order_id": 17}, True),
        ("run.task == 'refund' && run.calls < 5", {}, True),
        ("has(args.note) && args.note != ''", {}, False),
        ("'note' in args", {"note": None}, True),
        ("args['two words'] == 1", {"two words": 1}, True),
        ("args.size() == 2", {"a": 1, "b": 2}, True),
        ("args.items.all(item, item.count > 0)", {"items": [{"count": 1}, {"count": 2}]}, True),
        ("args.items.exists(x, x == 'arg.y // z')", {"items": ("arg.y // z",)}, True),
        ("args.day < timestamp('2026-01-02T00:00:00Z')", {"day": date(2026, 1, 1)}, True),
        ("args.at == timestamp('2026-01-01T12:00:00Z')", {"at": datetime(2026, 1, 1, 12, tzinfo=UTC)}, True),
        ("args.wait < duration('1h')", {"wait": timedelta(minutes=59)}, True),
        ("args.id == '00000000-0000-0000-0000-000000000001'", {"id": UUID(int=1)}, True),
        ("args.colour == 'red'", {"colour": Colour.RED}, True),
        ("args.model.total == 5 && args.record.total == 5", {"model": Model(total=5), "record": Record(5)}, True),
        ("args.nothing == null", {"nothing": None}, True),
        ("type(args.count) == int", {"count": 1}, True),
        ("r'\\' != \"\" // inputs.unknown", {}, True),
        ("[1, 2].map(x, [x].map(y, x + y)).size() == 2", {}, True),
    ],
)
def test_an_expression_holds_or_not(text: str, args: dict[str, Any], holds: bool) -> None:
    assert evaluate(text, **args) is holds


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "is not CEL: "),
        ("args.count >", "is not CEL: mismatched input '<EOF>' (line 1, column 13)"),
        ("args.count > 1\n&& &&", "is not CEL: mismatched input '&&' (line 2, column 4)"),
        ("arg.count > 1", "there is no variable `arg`; did you mean `args`?"),
        ("order_id == 1", "there is no variable `order_id`"),
        ("inputs.ordr_id == 1", "there is no `inputs.ordr_id`; did you mean `inputs.order_id`?"),
        ("run.id == 1", "there is no `run.id`"),
        ("siz(args.items) > 1", "there is no function `siz`; did you mean `size`?"),
        ("args.name.lower() == 'x'", "there is no function `lower`"),
        ("[1].exists(x, x > 0) && x > 0", "there is no variable `x`"),
        ("x > 0 && [1].exists(x, x > 0)", "there is no variable `x`"),
        ("args.a.all(x, x.all(y, y.all(z, z > 0)))", "nests macros"),
        ("true || " * LONGEST + "true", f"is longer than {LONGEST:,} characters"),
    ],
)
def test_a_wrong_expression_is_refused_when_it_is_compiled(text: str, what: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_expression(text, NAMES)

    assert str(caught.value).startswith(what)


@pytest.mark.parametrize(
    ("text", "args", "what"),
    [
        ("args.count > 1", {}, "there is no `count`; ask has() first where it may be missing"),
        ("args.count > 1", {"count": None}, "No such overload"),
        ("args.count + 1.5 > 2.0", {"count": 1}, "No such overload"),
        ("args.items[5] == 1", {"items": [1]}, "index out of bounds"),
        ("1 / args.count == 1", {"count": 0}, "division by zero"),
        ("args.count * args.count > 0", {"count": 2**62}, "overflow"),
        ("'x'.matches(args.pattern)", {"pattern": "("}, "not a valid regex"),
        ("args.count", {"count": 1}, "gives a int, and must give true or false"),
        ("args.word + 'x'", {"word": "true"}, "gives a str, and must give true or false"),
    ],
)
def test_an_evaluation_that_fails_is_an_error_and_never_false(text: str, args: dict[str, Any], what: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate(text, **args)

    assert what in str(caught.value)


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (Decimal("19.90"), "is a decimal, and CEL would make a float of it: compare money by a matcher"),
        ([{"price": Decimal("19.90")}], "`args.value[].price` is a decimal"),
        (2**63, "is a whole number beyond 64 bits"),
        (datetime(2026, 1, 1), "is a time without a zone"),
        (object(), "is a object, which cannot enter CEL"),
        ({1: 2}, "has a key that is no text"),
        (list(range(MOST_ITEMS[0] + 1)), f"makes more than {MOST_ITEMS[0]:,} items"),
        ([[0] * 1000] * 11, "items, the most for this expression"),
        ("x" * (MOST_TEXT + 1), f"makes more than {MOST_TEXT:,} characters"),
        ({"k" * (MOST_TEXT + 1): 1}, "characters, the most for an expression"),
    ],
)
def test_a_value_that_cannot_enter_is_an_error(value: object, what: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate("args.value == null", value=value)

    assert what in str(caught.value)


def test_a_value_that_holds_itself_is_an_error() -> None:
    endless: list[object] = []
    endless.append(endless)

    with pytest.raises(ExpressionError, match="nested more than"):
        evaluate("args.value == null", value=endless)


def test_only_what_an_expression_speaks_of_must_be_able_to_enter() -> None:
    assert evaluate("args.currency == 'EUR'", currency="EUR", amount=Decimal("19.90"), handle=object())


def test_nested_macros_take_fewer_items() -> None:
    nested = "args.items.all(x, args.items.exists(y, y == x))"

    assert evaluate(nested, items=list(range(MOST_ITEMS[2])))
    with pytest.raises(ExpressionError, match=f"more than {MOST_ITEMS[2]} items"):
        evaluate(nested, items=list(range(MOST_ITEMS[2] + 1)))


def test_the_engine_is_left_whole_for_others() -> None:
    program = """
from guardrail.declare.expressions import compile_expression
assert compile_expression("1 == 1", []).evaluate({})
import sys
assert "prompt_toolkit" not in sys.modules
import cel
assert cel.evaluate("1 + 1") == 2
import cel.cli
assert callable(cel.cli.cli_entry)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_an_open_variable_takes_any_part() -> None:
    expression = compile_expression("inputs.anything == 1", ["args", "inputs"])

    assert expression.references == {"inputs.anything"}
    assert expression.evaluate({"inputs": {"anything": 1}})


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.datetimes(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=10,
    )
)
def test_a_value_of_any_kind_gives_an_answer_or_an_expression_error(value: object) -> None:
    for text in ("args.value == args.value", "args.value > 1", "size(args.value) < 5", "args.value.a.b == 'c'"):
        assert answer(text, value) in (True, False, "error")


def answer(text: str, value: object) -> object:
    try:
        return evaluate(text, value=value)
    except ExpressionError:
        return "error"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("args.value == 6", Odd(6)),
        ("args.value == 1.5", Share(1.5)),
        ("args.value == 'paid'", Word("paid")),
        ("args.value == b'paid'", Octets(b"paid")),
        ("args.value == true", True),
        ("args.value.paid == 1", {Word("paid"): 1}),
    ],
)
def test_a_value_of_a_subclass_enters_as_the_plain_value_it_is(text: str, value: object) -> None:
    assert evaluate(text, value=value)


def test_a_subclass_cannot_lie_about_what_is_too_large() -> None:
    with pytest.raises(ExpressionError, match="a whole number beyond 64 bits"):
        evaluate("args.value == 6", value=Odd(2**63))
    with pytest.raises(ExpressionError, match="characters"):
        evaluate("args.value == ''", value=Word("x" * (MOST_TEXT + 1)))


def test_a_mapping_without_an_end_is_an_error() -> None:
    with pytest.raises(ExpressionError, match="makes more than"):
        evaluate("args.value.x == 1", value=Endless())
