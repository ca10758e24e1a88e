"""Checks: questions to the end state that the contract declares, in SQL or in Python."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from guardrail.calls import Finding
from guardrail.declare.values import Given, Value
from guardrail.errors import StoreError
from guardrail.pictures import Answer, Picture, Rows, Unanswered
from guardrail.query.proof import prove
from guardrail.run.contracts import ExpectedRows, LiveCheck
from guardrail.state.comparison import Comparison, Incomparable
from guardrail.state.matching import Cell, meets
from guardrail.state.scope import Scope, Unresolved
from guardrail.state.unknown import UNKNOWN
from guardrail.stores.store import Ask, Store
from guardrail.telemetry.looks import CheckOutcome
from guardrail.telemetry.redaction import redact_text, snapshot


@dataclass(frozen=True, slots=True)
class State:
    """What a Python check may look at.

    `inputs` are the run's, `before` and `after` the pictures of the watched tables by `store.table`. `rows` asks
    a store a query that is proved to read only.
    """

    inputs: Mapping[str, object]
    before: Mapping[str, Picture | Unanswered]
    after: Mapping[str, Picture | Unanswered]
    stores: Mapping[str, Store]

    def rows(self, store: str, sql: str, **parameters: object) -> tuple[dict[str, object], ...]:
        """The rows that a query answers, by column. Raises `QueryRefused` and `StoreError`."""
        if store not in self.stores:
            raise StoreError(f"there is no store {store}; the stores are: {', '.join(self.stores) or 'none'}")
        found = self.stores[store]
        (answer,) = found.look([Ask(prove(sql, found.dialect), parameters)])
        if isinstance(answer, Rows):
            return answer.mappings()
        raise StoreError(answer.why if isinstance(answer, Unanswered) else f"{store} gave no rows")


@dataclass(frozen=True, slots=True)
class Wrong:
    """How a check came out wrong: it could not be made (`why`), or it gave another answer."""

    why: str = ""
    expected: object = None
    actual: object = None
    said: str = ""


def answered(check: LiveCheck, answer: Answer, scope: Scope) -> Wrong | None:
    """How the answer to a check's query is wrong; None: it is as it must be. `scope` has the values of `$name`."""
    if isinstance(answer, Unanswered):
        return Wrong(why=answer.why)
    assert isinstance(answer, Rows)
    actual = _shown(answer)
    if check.equals is None:
        holds = len(answer.rows) == 1 and len(answer.rows[0]) == 1 and bool(answer.rows[0][0])
        return None if holds else Wrong(expected=True, actual=actual)
    try:
        holds, expected = _compared(check.equals, answer, actual, scope)
    except (Incomparable, Unresolved) as error:
        return Wrong(why=str(error))
    return None if holds else Wrong(expected=expected, actual=actual)


def _compared(expected: Value | ExpectedRows, answer: Rows, actual: object, scope: Scope) -> tuple[bool, object]:
    """Whether the answer is the expected one, and the expected one with its names resolved."""
    if not isinstance(expected, tuple):
        value = scope.resolve(expected)
        return _meets(value, actual), _plain(value)
    rows = [{column: scope.resolve(value) for column, value in row.items()} for row in expected]
    found = answer.mappings()
    holds = len(rows) == len(found) and all(
        row.keys() == one.keys() and all(_meets(value, one[column]) for column, value in row.items())
        for row, one in zip(rows, found, strict=True)
    )
    return holds, [{column: _plain(value) for column, value in row.items()} for row in rows]


def _meets(value: Value, actual: object) -> bool:
    """Whether a value of an answer is as expected. An answer has no column types: the value's own says how to compare."""
    number = isinstance(actual, (int, float, Decimal)) and not isinstance(actual, bool)
    return meets(value, Cell(actual, UNKNOWN, Comparison.of("decimal" if number else "unknown")))


def _plain(value: Value) -> object:
    return value.value if isinstance(value, Given) else value


def _shown(answer: Rows) -> object:
    """An answer as it is written in a contract: a scalar, or rows by column."""
    if len(answer.rows) == 1 and len(answer.columns) == 1:
        return answer.rows[0][0]
    return list(answer.mappings())


def asked_of(check: LiveCheck, state: State) -> Wrong | None:
    """How a Python check comes out wrong; None: it holds."""
    assert check.function is not None
    try:
        answer: Any = check.function(state)
        if inspect.isawaitable(answer):
            answer = asyncio.run(_awaited(answer))
    except Exception as error:  # noqa: BLE001 - a user's check may raise anything; then it was not made
        return Wrong(why=f"{type(error).__name__}: {error}")
    if answer is True:
        return None
    if isinstance(answer, str):
        return Wrong(said=answer)
    return Wrong(expected=True, actual=answer)


async def _awaited(answer: Any) -> Any:
    return await answer


def outcome_of(wrong: Wrong | None) -> CheckOutcome:
    """A check's outcome in one word."""
    return "pass" if wrong is None else "error" if wrong.why else "fail"


def finding(name: str, check: LiveCheck, wrong: Wrong, secret: frozenset[str]) -> Finding:
    """The finding that a check which came out wrong makes; values of `secret` columns do not stand in it."""
    if wrong.why:
        return Finding("check_error", name, f"{name} could not be made: {wrong.why}")
    expected, actual = snapshot(wrong.expected, secret), snapshot(wrong.actual, secret)
    said = redact_text(wrong.said, secret) or f"answered {actual!r}, expected {expected!r}"
    because = f" ({check.because})" if check.because else ""
    return Finding("check_failed", name, f"{name}: {said}{because}", expected=expected, actual=actual)
