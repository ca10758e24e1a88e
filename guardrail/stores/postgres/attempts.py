"""A look as an attempt: which statements go out together, and what becomes of those that fail.

The statements of a batch go out at once. One that fails takes those behind it with it; they go out again, in the same
snapshot, when the transaction has been set back to a savepoint. So a failure costs one answer, and one round trip.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeAlias, cast

from psycopg.errors import FeatureNotSupported

from guardrail.pictures import Answer
from guardrail.stores.looks import Batch, Failure, Looking, Result, Statement
from guardrail.stores.postgres.faults import is_away, is_unreadable, reason

_SAVE: Final = Statement("SAVEPOINT guardrail")
_UNDO: Final = Statement("ROLLBACK TO SAVEPOINT guardrail")


@dataclass(frozen=True, slots=True)
class Together:
    """Statements that go out at once. The error of one is also the outcome of those behind it.

    `prepare`: whether they are prepared on the server; None: those that come again, where that is safe.
    """

    statements: Sequence[Statement]
    prepare: bool | None = None


@dataclass(frozen=True, slots=True)
class Alone:
    """A statement whose rows are taken in portions; only of one that goes alone do they come in portions."""

    statement: Statement


Outcome: TypeAlias = Result | Exception
"""What a statement came to; an error is psycopg's, or says that a text cannot be written."""

Attempt: TypeAlias = Generator[Together | Alone, Sequence[Outcome], list[Answer]]
_Steps: TypeAlias = Generator[Together | Alone, Sequence[Outcome], None]


class Time(Protocol):
    """The time that a look has."""

    @property
    def left(self) -> float:
        """How many seconds are left."""
        ...

    @property
    def passed(self) -> bool:
        """Whether it is up; then the connection is cut off."""
        ...


Limit: TypeAlias = Callable[[float], Statement]
"""The statement that limits the following ones to so many seconds each."""


def attempt(look: Looking, opening: Sequence[Statement], limit: Limit, time: Time) -> Attempt:
    """Carry out a look in a transaction, which the opening begins and which is still open at the end.

    Raises `psycopg.Error` where the server is away, or refuses the opening.
    """
    before: Sequence[Statement] = (*opening, _SAVE)
    try:
        batch = next(look)
        while True:
            carried = _Carried(batch, before, limit, time)
            yield from carried.out()
            batch, before = look.send(carried.results), carried.before
    except StopIteration as done:
        return cast("list[Answer]", done.value)


_SHARE: Final = 0.9
_LAST_SHARE: Final = 0.5
"""How much of the time that is left one statement may take: nearly all of it, but not that of other checks."""


class _Carried:
    """A batch that is carried out. `before`: what must go before the next statements."""

    def __init__(self, batch: Batch, before: Sequence[Statement], limit: Limit, time: Time) -> None:
        self.before = before
        self._statements = list(batch.statements)
        self._limit = limit
        self._time = time
        self._share = _LAST_SHARE if batch.last else _SHARE
        self._found: dict[int, Result | Failure] = {}
        self._prepare: bool | None = None

    @property
    def results(self) -> list[Result | Failure]:
        """The results in the statements' order; for what was not reached, the time was up."""
        late = Failure(reason(TimeoutError()))
        return [self._found.get(place, late) for place in range(len(self._statements))]

    def out(self) -> _Steps:
        """Carry it out: first what is taken in portions, which are pictures of many rows."""
        while places := self._left(in_portions=True):
            yield from self._alone(places[0])
        while places := self._left(in_portions=False):
            yield from self._together(places)

    def _left(self, *, in_portions: bool) -> list[int]:
        """The places of the statements that are to be carried out yet; none when the time is up."""
        if self._time.passed:
            return []
        places = [place for place in range(len(self._statements)) if place not in self._found]
        return [place for place in places if (self._statements[place].take is not None) == in_portions]

    def _alone(self, place: int) -> _Steps:
        if self.before:
            _check((yield Together([*self.before, self._limit(_SHARE * self._time.left)])))
            self.before = ()
        [outcome] = yield Alone(self._statements[place])
        self._note(place, outcome)

    def _together(self, places: Sequence[int]) -> _Steps:
        before = [*self.before, self._limit(self._share * self._time.left)]
        outcomes = yield Together([*before, *(self._statements[place] for place in places)], self._prepare)
        _check(outcomes[: len(before)])
        self.before = ()
        for place, outcome in zip(places, outcomes[len(before) :], strict=False):
            # What is behind the first error may have results, but its errors are not its own.
            if isinstance(outcome, Result) or not self.before:
                self._note(place, outcome)

    def _note(self, place: int, outcome: Outcome) -> None:
        """Note what a statement came to, and what must go before others then. Raises what makes all others vain."""
        statement = self._statements[place]
        if isinstance(outcome, Result):
            self._found[place] = outcome
        elif not self._time.passed:
            if is_away(outcome):
                raise outcome
            self.before = (_UNDO,)
            if isinstance(outcome, FeatureNotSupported) and self._prepare is None:
                self._prepare = False  # it may have been prepared, and a column has another type since
            elif is_unreadable(outcome) and statement.binary:
                self._statements[place] = replace(statement, binary=False)
            else:
                self._found[place] = Failure(reason(outcome))


def _check(outcomes: Iterable[Outcome]) -> None:
    """Raise the first error of statements that everything depends on."""
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
