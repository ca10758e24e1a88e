"""Single values that were read of the state, with no column to say how they compare."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from guardrail.declare.resources import HttpReading
from guardrail.declare.values import Generated, Value, mentioned, read
from guardrail.pictures import Rows
from guardrail.state.comparison import Comparison
from guardrail.state.matching import Cell, meets
from guardrail.state.scope import Scope
from guardrail.state.unknown import UNKNOWN


def meets_alone(value: Value, actual: object) -> bool:
    """Whether a value of an answer is as expected: it has no column's type, so its own says how to compare.

    Raises `Incomparable`.
    """
    number = isinstance(actual, (int, float, Decimal)) and not isinstance(actual, bool)
    return meets(value, Cell(actual, UNKNOWN, Comparison.of("decimal" if number else "unknown")))


@dataclass(frozen=True, slots=True)
class Misread:
    """How a value that was read is not what it must be (None: not there); `found` is false where there was none."""

    expected: Value | None
    actual: object
    found: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """What a value that is read must be: this (None: anything but null), or, unless it `exists`, not there at all."""

    equals: Value | None = None
    exists: bool = True

    @classmethod
    def of(cls, declared: HttpReading) -> Reading:
        """What is declared."""
        return cls(read(declared.equals) if declared.compares else None, declared.exists)

    @property
    def names(self) -> tuple[str, ...]:
        """The names that it refers to, each once."""
        return () if self.equals is None else tuple(dict.fromkeys(item.name for item in mentioned(self.equals)))

    def misread(self, answer: Rows, scope: Scope) -> Misread | None:
        """How an answer is not as it must be; None: it is. Raises `Incomparable` and `Unresolved`."""
        found = bool(answer.rows)
        actual = answer.rows[0][0] if found else None
        if not self.exists:
            return None if actual is None else Misread(None, actual, found)
        if self.equals is None:
            return None if actual is not None else Misread(Generated(), None, found)
        value = scope.resolve(self.equals)
        if found and meets_alone(value, actual):
            return None
        return Misread(value, actual, found)
