"""A store whose looks go to a replica, once it has what the primary had when the look was asked for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, cast

from guardrail.errors import StoreError
from guardrail.pictures import Answer, Rows, Unanswered
from guardrail.query.proof import Dialect
from guardrail.stores.answers import unanswered
from guardrail.stores.store import Ask, Question, Remark, Store, Trial

_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.25
"""How many seconds lie between two looks at how far the replica is."""


class Positions(Protocol):
    """How a server tells how far it is in the stream of changes."""

    @property
    def needed(self) -> str:
        """What has to be done for a primary that does not tell."""
        ...

    def primary(self) -> Ask:
        """Asks the primary where it is: `is_replica`, and `position` as text; null where it keeps none."""
        ...

    def reached(self, position: str) -> Ask:
        """Asks a replica whether it is there: `is_replica`, and `reached`."""
        ...


class Positioned(Store, Protocol):
    """A store whose server tells how far it is."""

    @property
    def positions(self) -> Positions:
        """How it tells."""
        ...


@dataclass(frozen=True, slots=True)
class _Looking:
    """Questions to one of the two servers."""

    store: Store
    questions: Sequence[Question]


@dataclass(frozen=True, slots=True)
class _Pausing:
    """Some seconds in which the replica may catch up."""

    seconds: float


_Flow: TypeAlias = Generator[_Looking | _Pausing, list[Answer], list[Answer]]


class ReplicatedStore:
    """A primary and its replica: it is the replica that is looked at, and never behind the primary.

    `timeout`: how many seconds the replica has to catch up.
    """

    def __init__(self, primary: Positioned, replica: Positioned, timeout: float) -> None:
        self.name = primary.name
        self.dialect: Dialect | None = primary.dialect
        self._primary = primary
        self._replica = replica
        self._timeout = timeout

    def look(self, questions: Sequence[Question]) -> list[Answer]:
        """Answer all questions from one snapshot of the replica; see `Store`."""
        flow = self._flow(questions)
        try:
            step = next(flow)
            while True:
                if isinstance(step, _Looking):
                    step = flow.send(step.store.look(step.questions))
                else:
                    time.sleep(step.seconds)
                    step = flow.send([])
        except StopIteration as done:
            return cast("list[Answer]", done.value)

    async def alook(self, questions: Sequence[Question]) -> list[Answer]:
        """The same by awaiting."""
        flow = self._flow(questions)
        try:
            step = next(flow)
            while True:
                if isinstance(step, _Looking):
                    step = flow.send(await step.store.alook(step.questions))
                else:
                    await asyncio.sleep(step.seconds)
                    step = flow.send([])
        except StopIteration as done:
            return cast("list[Answer]", done.value)

    def for_run(self) -> ReplicatedStore:
        """The store as one run sees it; see `Store`."""
        primary, replica = cast("Positioned", self._primary.for_run()), cast("Positioned", self._replica.for_run())
        return ReplicatedStore(primary, replica, self._timeout)

    def examine(self, trial: Trial | None = None) -> tuple[Remark, ...]:
        """What should be known of the primary and of the replica, and whether the replica keeps up."""
        found = (*self._primary.examine(), *(r for r in self._replica.examine() if r.level == "error"))
        if any(remark.level == "error" for remark in found):
            return found
        started = time.monotonic()
        [answer] = self.look([self._replica.positions.primary()])
        if isinstance(answer, Unanswered):
            return (*found, Remark("error", self.name, answer.why))
        behind = time.monotonic() - started
        return (*found, Remark("note", self.name, f"its replica caught up with the primary in {behind:.2f} s"))

    def close(self) -> None:
        """Close both."""
        self._primary.close()
        self._replica.close()

    def _flow(self, questions: Sequence[Question]) -> _Flow:
        try:
            yield from self._caught_up()
        except StoreError as error:
            return [unanswered(self.name, question, str(error)) for question in questions]
        return (yield _Looking(self._replica, questions))

    def _caught_up(self) -> Generator[_Looking | _Pausing, list[Answer], None]:
        """Wait for the replica. Raises `StoreError` when it does not catch up in time."""
        until = time.monotonic() + self._timeout
        primary = yield from _row(self._primary, self._primary.positions.primary())
        if primary["is_replica"]:
            raise StoreError("what is named as its primary is a replica: give the primary as `url`")
        if primary["position"] is None:
            raise StoreError(f"its primary keeps no log for replicas: {self._primary.positions.needed}")
        reached = self._replica.positions.reached(str(primary["position"]))
        pause = _FIRST_PAUSE
        while True:
            replica = yield from _row(self._replica, reached)
            if not replica["is_replica"]:
                raise StoreError("what is named as its replica is none")
            if replica["reached"]:
                return
            if time.monotonic() >= until:
                raise StoreError(f"its replica had not caught up with the primary after {self._timeout:g} s")
            yield _Pausing(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _row(store: Store, question: Ask) -> Generator[_Looking, list[Answer], dict[str, object]]:
    """The one row that answers a question. Raises `StoreError`."""
    [answer] = yield _Looking(store, [question])
    if isinstance(answer, Unanswered):
        raise StoreError(answer.why)
    return cast("Rows", answer).mappings()[0]
