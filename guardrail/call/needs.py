"""What a flow needs done; the drivers do it, each in its own way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from guardrail.stores.store import Question, Store


class Scope(Protocol):
    """What is current while something is done (its span): entered and left around each piece of it."""

    def attach(self) -> object:
        """Make it current; the token undoes that."""
        ...

    def detach(self, token: object) -> None:
        """Make current what was before."""
        ...


class Suspendable(Protocol):
    """What may lie idle: a stream between two items, a coroutine that nobody has awaited yet."""

    suspended: bool


class _NoScope:
    """The scope in which nothing becomes current."""

    def attach(self) -> object:
        return None

    def detach(self, token: object) -> None:
        return None


NO_SCOPE: Scope = _NoScope()


@dataclass(slots=True)
class Unheeded:
    """What nobody waits for."""

    suspended: bool = False


@dataclass(frozen=True, slots=True)
class Execute:
    """Run the tool, with the scope current; the step is told when it waits for somebody to ask for more."""

    scope: Scope
    step: Suspendable


@dataclass(frozen=True, slots=True)
class Work:
    """Do a piece of work that may block: write to the ledger, call a user's check.

    An awaitable that it returns is awaited, and what that gives is the result.
    """

    do: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Compute:
    """Compute something that takes its time and waits for nothing; the result is what it returns."""

    do: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Look:
    """Put questions to a store, all in one snapshot and with the scope current; the result is the list of its answers."""

    store: Store
    questions: Sequence[Question]
    scope: Scope = NO_SCOPE


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait some seconds."""

    seconds: float


Need: TypeAlias = Execute | Work | Compute | Look | Pause
