"""A look as an attempt: what is carried out in which transaction, and what becomes of a statement that fails.

The statements of a batch go out at once. One that fails takes the whole transaction with it, and the answers of the
others; so then the look is carried out again, in another snapshot, each statement by itself behind a savepoint, and
the failure costs one answer only. For what takes too long there is no second time: it costs its own answer and those
that have not come by then.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol, TypeAlias, cast

from guardrail.pictures import Answer
from guardrail.stores.looks import Batch, Failure, Looking, Result, Statement
from guardrail.stores.postgres.faults import is_away, is_late, reason

_END: Final = Statement("ROLLBACK")
_SAVE: Final = Statement("SAVEPOINT guardrail")
_UNDO: Final = Statement("ROLLBACK TO SAVEPOINT guardrail")
_FORGET: Final = Statement("RELEASE SAVEPOINT guardrail")


@dataclass(frozen=True, slots=True)
class Together:
    """Statements that go out at once. An error is also the outcome of those behind it.

    `prepare`: whether they are prepared on the server; None: when they have come before, as the connection says.
    """

    statements: Sequence[Statement]
    prepare: bool | None = False


@dataclass(frozen=True, slots=True)
class Alone:
    """A statement whose rows are taken in portions; only of one that goes alone do they come in portions."""

    statement: Statement


Outcome: TypeAlias = Result | Exception
"""What a statement came to; an error is psycopg's, or says that a text cannot be written or read."""

Attempt: TypeAlias = Generator[Together | Alone, Sequence[Outcome], list[Answer]]

Results: TypeAlias = list[Result | Failure]
_Batched: TypeAlias = Generator[Together | Alone, Sequence[Outcome], tuple[Results, Failure | None]]
"""The results of a batch; with a failure, the time is up, and it is the result of every further statement."""


class Time(Protocol):
    """The time that a look has."""

    @property
    def passed(self) -> bool:
        """Whether it is up; then the connection is lost."""
        ...


class _Doubtful(Exception):
    """A statement of a batch failed, and took the others with it."""


def attempts(opening: Sequence[Statement], begin: Callable[[], Looking], time: Time) -> Attempt:
    """Carry out a look, which `begin` begins. Raises `psycopg.Error` where the server is away or refuses the opening."""
    try:
        return (yield from _looked(begin(), opening, partial(_together, time)))
    except _Doubtful:
        _check((yield Together([_END])))
        return (yield from _looked(begin(), opening, partial(_singly, time)))


def _looked(
    look: Looking, opening: Sequence[Statement], carry_out: Callable[[Sequence[Statement], Batch], _Batched]
) -> Attempt:
    over: Failure | None = None
    try:
        batch = next(look)
        while True:
            if over is None:
                results, over = yield from carry_out(opening, batch)
            else:
                results = [over] * len(batch.statements)
            batch, opening = look.send(results), ()
    except StopIteration as done:
        return cast("list[Answer]", done.value)


def _together(time: Time, opening: Sequence[Statement], batch: Batch) -> _Batched:
    """All statements of a batch at once, and then those whose rows are taken in portions."""
    portioned = [statement for statement in batch.statements if statement.take is not None]
    at_once = [statement for statement in batch.statements if statement.take is None]
    ending = [_END] if batch.last and not portioned else []
    outcomes = yield Together([*opening, *at_once, *ending], prepare=None)
    over = _over(outcomes, time)
    given = iter(outcomes[len(opening) :])
    results: Results = []
    for statement in batch.statements:
        outcome: Outcome | None = None
        if statement.take is None:
            outcome = next(given)
        elif over is None:
            [outcome] = yield Alone(statement)
            over = _over([outcome], time)
        results.append(outcome if isinstance(outcome, Result) else cast("Failure", over))
    return results, over


def _over(outcomes: Iterable[Outcome], time: Time) -> Failure | None:
    """That the time is up, if it is. Raises what there is to raise about another error."""
    error = next((outcome for outcome in outcomes if isinstance(outcome, Exception)), None)
    if error is None:
        return None
    if time.passed:
        return Failure(reason(TimeoutError()))
    if is_late(error):
        return Failure(reason(error))
    raise error if is_away(error) else _Doubtful


def _singly(time: Time, opening: Sequence[Statement], batch: Batch) -> _Batched:
    """Each statement of a batch by itself."""
    if opening:
        _check((yield Together(opening)))
    over: Failure | None = None
    results: Results = []
    for statement in batch.statements:
        outcome = (yield from _guarded(statement)) if over is None else over
        if isinstance(outcome, Exception):
            if time.passed:
                outcome = over = Failure(reason(TimeoutError()))
            elif is_away(outcome):
                raise outcome
            else:
                outcome = Failure(reason(outcome))
        results.append(outcome)
    return results, over


def _guarded(statement: Statement) -> Generator[Together | Alone, Sequence[Outcome], Outcome]:
    """A statement whose failure does not touch the transaction; its values come as text, which is always readable."""
    statement = replace(statement, binary=False)
    if statement.take is None:
        _, outcome, left = yield Together([_SAVE, statement, _FORGET])
    else:
        _check((yield Together([_SAVE])))
        [outcome] = yield Alone(statement)
        [left] = [outcome] if isinstance(outcome, Exception) else (yield Together([_FORGET]))
    if isinstance(left, Exception) and not is_away(left):
        yield Together([_UNDO])
    return outcome


def _check(outcomes: Iterable[Outcome]) -> None:
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
