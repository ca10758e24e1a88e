"""Checks: questions to the end state that the contract declares, in SQL or in Python."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from guardrail.calls import Finding
from guardrail.errors import StoreError
from guardrail.pictures import Answer, Picture, Rows, Unanswered
from guardrail.query.proof import prove
from guardrail.run.contracts import LiveCheck
from guardrail.state.comparison import Comparison, Incomparable
from guardrail.stores.store import Ask, Store
from guardrail.telemetry.looks import CheckOutcome


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


def answered(check: LiveCheck, answer: Answer) -> Wrong | None:
    """How the answer to a check's query is wrong; None: it is as it must be."""
    if isinstance(answer, Unanswered):
        return Wrong(why=answer.why)
    assert isinstance(answer, Rows)
    if check.equals is True:
        holds = len(answer.rows) == 1 and len(answer.rows[0]) == 1 and bool(answer.rows[0][0])
        return None if holds else Wrong(expected=True, actual=_shown(answer))
    actual = _shown(answer)
    try:
        same = Comparison.of("unknown").equals(check.equals, actual)
    except Incomparable as error:
        return Wrong(why=str(error))
    return None if same else Wrong(expected=check.equals, actual=actual)


def _shown(answer: Rows) -> object:
    """An answer as it is written in a contract: a scalar, or rows by column."""
    if len(answer.rows) == 1 and len(answer.columns) == 1:
        return answer.rows[0][0]
    return [dict(row) for row in answer.mappings()]


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


def finding(name: str, check: LiveCheck, wrong: Wrong) -> Finding:
    """The finding that a check which came out wrong makes."""
    if wrong.why:
        return Finding("check_error", name, f"{name} could not be made: {wrong.why}")
    said = wrong.said or f"answered {wrong.actual!r}, expected {wrong.expected!r}"
    because = f" ({check.because})" if check.because else ""
    return Finding("check_failed", name, f"{name}: {said}{because}", expected=wrong.expected, actual=wrong.actual)
