"""Changes that may happen and need not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from guardrail.declare.values import Value
from guardrail.state.claims import Rest
from guardrail.state.comparison import Incomparable
from guardrail.state.contract import Deed
from guardrail.state.pairing import pair


@dataclass(frozen=True, slots=True)
class Allowance:
    """A change that may happen, its names resolved; see `Allowed`."""

    deed: Deed
    table: str
    key: Mapping[str, Value]
    columns: frozenset[str] | None
    values: Mapping[str, Value]
    most: int | None

    @property
    def order(self) -> tuple[bool, bool, bool, int]:
        """Unlimited ones first, then those that cover little: a wide one is not used up where a narrow one does."""
        return self.most is not None, not self.key, self.columns is None, -len(self.values)

    def covers(self, rest: Rest) -> bool:
        """Whether it covers the row of a change. Raises `Incomparable` where that cannot be told."""
        if (self.deed, self.table) != (rest.change.kind, rest.table.name):
            return False
        row = rest.change.after if rest.change.after is not None else rest.change.before
        return rest.table.holds(row or {}, self.key) and rest.table.meets(rest.key, self.values)

    def columns_left(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        """What it does not cover of the changed columns (None: not known which) of a row."""
        if self.columns is None:
            return frozenset()
        return None if columns is None else columns - self.columns


def not_allowed(rests: Sequence[Rest], allowances: Sequence[Allowance]) -> list[Rest]:
    """What is left of changes after all that is allowed: the rest of updates, the inserts and deletes beyond it."""
    rows = [rest for rest in rests if rest.change.kind != "update"]
    updates = [rest for rest in rests if rest.change.kind == "update"]
    for allowance in sorted(allowances, key=lambda allowance: allowance.order):
        if allowance.deed == "update":
            updates = _without_updates(updates, allowance)
        elif allowance.most is None:
            rows = [left for rest in rows if (left := _unless_covered(rest, allowance)) is not None]
    return [*updates, *_without_rows(rows, [one for one in allowances if one.most is not None])]


def _unless_covered(rest: Rest, allowance: Allowance) -> Rest | None:
    """None for a covered change; in doubt, the change with the doubt."""
    try:
        return None if allowance.covers(rest) else rest
    except Incomparable as error:
        return replace(rest, doubt=str(error))


def _without_updates(rests: Sequence[Rest], allowance: Allowance) -> list[Rest]:
    used = 0
    left: list[Rest] = []
    for rest in rests:
        columns = allowance.columns_left(rest.columns)
        covered = None if columns == rest.columns else _unless_covered(rest, allowance)
        if columns == rest.columns or covered is not None:
            left.append(rest if covered is None else covered)
        elif allowance.most is not None and used >= allowance.most:
            left.append(replace(rest, beyond=allowance.most))
        else:
            used += 1
            left += [] if columns == frozenset() else [replace(rest, columns=columns)]
    return left


def _without_rows(rests: Sequence[Rest], allowances: Sequence[Allowance]) -> list[Rest]:
    """The changes that no limited allowance has room for; as many as possible find room."""
    room: list[list[int]] = []
    left = list(rests)
    for allowance in allowances:
        fitting: list[int] = []
        for place, rest in enumerate(left):
            uncovered = _unless_covered(rest, allowance)
            left[place] = rest if uncovered is None else uncovered
            fitting += [place] if uncovered is None else []
        left = [replace(rest, beyond=allowance.most) if place in fitting else rest for place, rest in enumerate(left)]
        room += [fitting] * min(allowance.most or 0, len(fitting))
    taken = set(pair(room).values())
    return [rest for place, rest in enumerate(left) if place not in taken]
