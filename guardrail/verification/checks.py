"""Checks: questions to the end state that the contract declares, in SQL or in Python."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

from guardrail.call.needs import Need, Work
from guardrail.calls import Finding
from guardrail.declare.values import Given, Value
from guardrail.errors import StoreError
from guardrail.pictures import Answer, Picture, Rows, Unanswered
from guardrail.query.proof import prove
from guardrail.state.comparison import Comparison, Incomparable
from guardrail.state.matching import Cell, meets
from guardrail.state.scope import Scope, Unresolved
from guardrail.state.unknown import UNKNOWN
from guardrail.stores.store import Ask, Store
from guardrail.telemetry.looks import CheckOutcome, VerifyTrace
from guardrail.telemetry.redaction import redact_text, snapshot
from guardrail.verification.contracts import ExpectedRows, LiveCheck, LiveContract
from guardrail.verification.looks import Answers, summary


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
class _Wrong:
    """How a check came out wrong: it could not be made (`why`), or it gave another answer."""

    why: str = ""
    expected: object = None
    actual: object = None
    said: str = ""


class Checking:
    """Makes the checks of one look at the end, and tells each."""

    def __init__(
        self,
        answers: Answers,
        state: State,
        scope: Scope,
        stores: Mapping[str, Store],
        trace: VerifyTrace,
        secret: frozenset[str],
    ) -> None:
        self._answers = answers
        self._state = state
        self._scope = scope
        self._stores = stores
        self._trace = trace
        self._secret = secret

    def findings(self, checks: Iterable[LiveCheck], prefix: str) -> Generator[Need, object, list[Finding]]:
        """A finding for each check that fails or cannot be made; their names begin with `prefix`."""
        found: list[Finding] = []
        for check in checks:
            name = prefix + check.name
            started = time.time_ns()
            if check.query is None:
                wrong = yield from _asked_of(check, self._state)
            else:
                wrong = _answered(check, self._answers["check", name], self._scope)
            self._tell(name, check, _outcome_of(wrong), started)
            if wrong is not None:
                found.append(_finding(name, check, wrong, self._secret))
        return found

    def _tell(self, name: str, check: LiveCheck, outcome: CheckOutcome, started: int) -> None:
        ended = time.time_ns()
        if check.query is None:
            self._trace.check(name, "", "", "", outcome, started=started, ended=ended)
            return
        store, query = self._stores[check.query.store], check.query.query
        self._trace.check(
            name,
            store.dialect,
            summary(query.tables),
            query.rendered,
            outcome,
            store=store.name,
            started=started,
            ended=ended,
        )


def named_checks(contract: LiveContract) -> Iterator[tuple[str, LiveCheck]]:
    """All checks of a contract by name; those of an alternative begin with its name."""
    yield from ((check.name, check) for check in contract.checks)
    for branch, checks in contract.branch_checks.items():
        yield from ((f"{branch}.{check.name}", check) for check in checks)


def _answered(check: LiveCheck, answer: Answer, scope: Scope) -> _Wrong | None:
    """How the answer to a check's query is wrong; None: it is as it must be. `scope` has the values of `$name`."""
    if isinstance(answer, Unanswered):
        return _Wrong(why=answer.why)
    assert isinstance(answer, Rows)
    actual = _shown(answer)
    if check.equals is None:
        return None if answer.is_true else _Wrong(expected=True, actual=actual)
    try:
        holds, expected = _compared(check.equals, answer, actual, scope)
    except (Incomparable, Unresolved) as error:
        return _Wrong(why=str(error))
    return None if holds else _Wrong(expected=expected, actual=actual)


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


def _asked_of(check: LiveCheck, state: State) -> Generator[Need, object, _Wrong | None]:
    """How a Python check comes out wrong; None: it holds."""
    assert check.function is not None
    try:
        answer = yield Work(partial(check.function, state))
    except Exception as error:  # noqa: BLE001 - a user's check may raise anything; then it was not made
        return _Wrong(why=f"{type(error).__name__}: {error}")
    if answer is True:
        return None
    return _Wrong(said=answer) if isinstance(answer, str) else _Wrong(expected=True, actual=answer)


def _outcome_of(wrong: _Wrong | None) -> CheckOutcome:
    """A check's outcome in one word."""
    return "pass" if wrong is None else "error" if wrong.why else "fail"


def _finding(name: str, check: LiveCheck, wrong: _Wrong, secret: frozenset[str]) -> Finding:
    """The finding that a check which came out wrong makes; values of `secret` columns do not stand in it."""
    if wrong.why:
        return Finding("check_error", name, f"{name} could not be made: {wrong.why}")
    expected, actual = snapshot(wrong.expected, secret), snapshot(wrong.actual, secret)
    said = redact_text(wrong.said, secret) or f"answered {actual!r}, expected {expected!r}"
    because = f" ({check.because})" if check.because else ""
    return Finding("check_failed", name, f"{name}: {said}{because}", expected=expected, actual=actual)
