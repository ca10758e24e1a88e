"""Answers to checks, held against what they must be."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

from guardrail.declare.values import Given, Not, OneOf, Value, references
from guardrail.pictures import Answer, Rows, Unanswered
from guardrail.state.comparison import Comparison, Incomparable, is_number
from guardrail.state.matching import Cell, items_of, meets
from guardrail.state.presentation import presented
from guardrail.state.scope import Scope, Unresolved
from guardrail.state.unknown import UNKNOWN
from guardrail.state.wording import REDACTED, describe, redacted, show_both
from guardrail.verification.contracts import LiveCheck, StoredQuery, StoredReading


@dataclass(frozen=True, slots=True)
class Wrong:
    """How a check came out wrong: it could not be made (`why`), or it gave another answer (`said` in words, if any)."""

    why: str = ""
    expected: object = None
    actual: object = None
    said: str = ""


def wrong_answer(
    check: LiveCheck, query: StoredQuery | StoredReading, answer: Answer, scope: Scope, secret: Container[str]
) -> Wrong | None:
    """How the answer to a check is wrong; None: it is as it must be.

    `scope` has the values of `$name`. What stands in columns that are called as one of `secret`, or is to be as an
    input that is, is not told.
    """
    if isinstance(answer, Unanswered):
        return Wrong(why=answer.why)
    assert isinstance(answer, Rows)
    try:
        if isinstance(query, StoredReading):
            return _misread(query, answer, scope, secret)
        match check.equals:
            case None:
                return None if answer.is_true else Wrong(expected=True, actual=_single(answer, Given(True)))
            case tuple():
                return _other_rows(check.equals, answer, scope, secret)
            case _:
                return _other_value(check.equals, answer, scope, secret)
    except (Incomparable, Unresolved) as error:
        return Wrong(why=str(error))


def _misread(query: StoredReading, answer: Rows, scope: Scope, secret: Container[str]) -> Wrong | None:
    misread = query.reading.misread(answer, scope)
    if misread is None:
        return None
    place = f"{query.request.text} {query.at}".strip()
    said = "" if misread.found else f"there is nothing at {place}"
    if not query.reading.exists:
        said = f"there is something at {place}, and there must be nothing"
    if any(name in secret for name in (*answer.columns, *query.reading.names)):
        return Wrong(expected=REDACTED, actual=REDACTED, said=said)
    expected = None if misread.expected is None else describe(misread.expected, secret)
    return Wrong(expected=expected, actual=misread.actual, said=said)


def _other_value(equals: Value, answer: Rows, scope: Scope, secret: Container[str]) -> Wrong | None:
    expected = scope.resolve(equals)
    if len(answer.rows) == 1 == len(answer.columns) and _meets(expected, answer.rows[0][0]):
        return None
    if any(name in secret for name in (*answer.columns, *references(equals))):
        return Wrong(expected=REDACTED, actual=REDACTED)
    return Wrong(expected=describe(expected, secret), actual=_single(answer, expected))


def _single(answer: Rows, expected: Value) -> object:
    """The value that an answer consists of; its rows, where it is none."""
    if len(answer.rows) == 1 == len(answer.columns):
        [[actual]] = answer.rows
        return presented(actual, _how(expected, actual))
    return list(answer.mappings())


def _other_rows(
    equals: Sequence[Mapping[str, Value]], answer: Rows, scope: Scope, secret: Container[str]
) -> Wrong | None:
    """How an answer's rows differ from the expected ones: by their number, their columns, or the first other value."""
    told = _Told(secret, frozenset(name for row in equals for name, value in row.items() if _is_of(value, secret)))
    rows = [{name: scope.resolve(value) for name, value in row.items()} for row in equals]
    expected = [{name: told.value(name, describe(value, secret)) for name, value in row.items()} for row in rows]
    actual = [{name: told.value(name, value) for name, value in row.items()} for row in answer.mappings()]
    wrong = Wrong(expected=expected, actual=actual)
    if len(rows) != len(answer.rows):
        return replace(wrong, said=f"answered {len(answer.rows)} rows, expected {len(rows)}")
    for number, (row, found) in enumerate(zip(rows, answer.mappings(), strict=True), 1):
        if row.keys() != found.keys():
            return replace(wrong, said=f"answered the columns {', '.join(found)}, expected {', '.join(row)}")
        for name, value in row.items():
            if not _meets(value, found[name]):
                is_ = told.value(name, presented(found[name], _how(value, found[name])))
                one, other = show_both(is_, told.value(name, describe(value, secret)))
                return replace(wrong, said=f"row {number}: {name} is {one}, expected {other}")
    return None


def _is_of(value: Value, secret: Container[str]) -> bool:
    return any(name in secret for name in references(value))


@dataclass(frozen=True, slots=True)
class _Told:
    """What may be told of an answer's columns: nothing of those that are secret, or hold what is."""

    secret: Container[str]
    columns: frozenset[str]

    def value(self, column: str, value: object) -> object:
        return REDACTED if column in self.secret or column in self.columns else redacted(value, self.secret)


def _meets(value: Value, actual: object) -> bool:
    return meets(value, Cell(actual, UNKNOWN, _how(value, actual)))


def _how(value: Value, actual: object) -> Comparison:
    """How a value of an answer, which has no column types, compares: by what it is, or is to be.

    Databases without truths answer 1 for true.
    """
    if isinstance(actual, bool) or _is_of_truths(value):
        return Comparison("boolean")
    return Comparison("decimal" if is_number(actual) else "unknown")


def _is_of_truths(value: Value) -> bool:
    match value:
        case Given(bool()):
            return True
        case Not(inner):
            return _is_of_truths(inner)
        case OneOf(options):
            return all(map(_is_of_truths, items_of(options)))
        case _:
            return False
