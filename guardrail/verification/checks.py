"""Checks: questions to the end state that the contract declares, in SQL, as values of HTTP stores, or in Python."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from guardrail.call.needs import Need, Work
from guardrail.calls import Finding
from guardrail.errors import StoreError
from guardrail.pictures import Answer, Picture, Rows, Unanswered
from guardrail.query.proof import prove
from guardrail.query.requests import prove_request
from guardrail.state.scope import Scope
from guardrail.state.wording import redacted, show_both
from guardrail.stores.store import Ask, Fetch, Store
from guardrail.telemetry.looks import CheckOutcome, VerifyTrace
from guardrail.telemetry.redaction import redact_text, snapshot
from guardrail.telemetry.secrecy import SecretNames
from guardrail.verification.answers import Wrong, wrong_answer
from guardrail.verification.contracts import LiveCheck, LiveContract
from guardrail.verification.looks import Answers, tell


@dataclass(frozen=True, slots=True)
class State:
    """What a Python check may look at.

    `inputs` are the run's, `before` and `after` the pictures of the watched tables by `store.table`. `rows` asks
    a store a query that is proved to read only, `value` reads a value of an HTTP store.
    """

    inputs: Mapping[str, object]
    before: Mapping[str, Picture | Unanswered]
    after: Mapping[str, Picture | Unanswered]
    stores: Mapping[str, Store]

    def rows(self, store: str, sql: str, **parameters: object) -> tuple[dict[str, object], ...]:
        """The rows that a query answers, by column. Raises `QueryRefused` and `StoreError`."""
        dialect = self._store(store).dialect
        if dialect is None:
            raise StoreError(f"{store} is an HTTP store, which takes no SQL; read it with `state.value`")
        return self._asked(store, Ask(prove(sql, dialect), parameters)).mappings()

    def value(self, store: str, get: str, at: str = "", **parameters: object) -> object:
        """The value `at` a JSON pointer of what a path of an HTTP store answers; None where there is none.

        Raises `QueryRefused` and `StoreError`.
        """
        answer = self._asked(store, Fetch(prove_request(get), at, parameters))
        return answer.rows[0][0] if answer.rows else None

    def _asked(self, store: str, question: Ask | Fetch) -> Rows:
        (answer,) = self._store(store).look([question])
        if isinstance(answer, Rows):
            return answer
        raise StoreError(answer.why if isinstance(answer, Unanswered) else f"{store} gave no rows")

    def _store(self, name: str) -> Store:
        if name not in self.stores:
            raise StoreError(f"there is no store {name}; the stores are: {', '.join(self.stores) or 'none'}")
        return self.stores[name]


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
            answer = None
            if check.query is None:
                wrong = yield from _asked_of(check, self._state)
            else:
                answer = self._answers["check", name]
                wrong = wrong_answer(check, check.query, answer, self._scope, SecretNames(self._secret))
            self._tell(name, check, answer, _outcome_of(wrong), started)
            if wrong is not None:
                found.append(_finding(name, check, wrong, self._secret))
        return found

    def _tell(self, name: str, check: LiveCheck, answer: Answer | None, outcome: CheckOutcome, started: int) -> None:
        if check.query is None or answer is None:
            self._trace.check(name, "", "", "", outcome, started=started, ended=time.time_ns())
            return
        store, question = check.query.ask({})
        tell(self._trace, name, self._stores[store], question, answer, outcome, started)


def named_checks(contract: LiveContract) -> Iterator[tuple[str, LiveCheck]]:
    """All checks of a contract by name; those of an alternative begin with its name."""
    yield from ((check.name, check) for check in contract.checks)
    for branch, checks in contract.branch_checks.items():
        yield from ((f"{branch}.{check.name}", check) for check in checks)


def _asked_of(check: LiveCheck, state: State) -> Generator[Need, object, Wrong | None]:
    """How a Python check comes out wrong; None: it holds."""
    assert check.function is not None
    try:
        answer = yield Work(partial(check.function, state))
    except Exception as error:  # noqa: BLE001 - a user's check may raise anything; then it was not made
        return Wrong(why=f"{type(error).__name__}: {error}")
    if answer is True:
        return None
    return Wrong(said=answer) if isinstance(answer, str) else Wrong(expected=True, actual=answer)


def _outcome_of(wrong: Wrong | None) -> CheckOutcome:
    """A check's outcome in one word."""
    return "pass" if wrong is None else "error" if wrong.why else "fail"


def _finding(name: str, check: LiveCheck, wrong: Wrong, secret: frozenset[str]) -> Finding:
    """The finding that a check which came out wrong makes; values of `secret` columns do not stand in it."""
    if wrong.why:
        return Finding("check_error", name, f"{name} could not be made: {wrong.why}")
    names = SecretNames(secret)
    actual, expected = show_both(redacted(wrong.actual, names), redacted(wrong.expected, names))
    said = redact_text(wrong.said or f"answered {actual}, expected {expected}", secret)
    because = f" ({check.because})" if check.because else ""
    return Finding(
        "check_failed",
        name,
        f"{name}: {said}{because}",
        expected=snapshot(wrong.expected, secret),
        actual=snapshot(wrong.actual, secret),
    )
