"""Which new row is the one that an expectation asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from guardrail.pictures import Key
from guardrail.state.claims import Claims, Rest
from guardrail.state.comparison import Incomparable
from guardrail.state.matching import meets
from guardrail.state.pairing import pair
from guardrail.state.wanted import Wanted, is_shared


@dataclass(frozen=True, slots=True)
class _Fits:
    """The new rows that hold what is wanted, and those of which that cannot be told."""

    sure: Sequence[Key]
    doubtful: Sequence[Key]


class Inserts:
    """The rows that are wanted, until all are known; found by content, so that as many as possible are.

    `orders` says in which order new rows are tried, by table, where that is not the order of the picture.
    """

    def __init__(self, claims: Claims, orders: Mapping[str, Sequence[Key]]) -> None:
        self.missing: list[Wanted] = []
        self.had_a_choice = False
        self._claims = claims
        self._orders = orders
        self._slots: list[Wanted] = []
        self._fits: dict[tuple[str, str], _Fits] = {}

    def want(self, wanted: Wanted) -> None:
        """Ask for as many rows as are expected."""
        self._slots += [wanted] * wanted.expected.count

    def named(self) -> list[tuple[str, Mapping[str, object]]]:
        """The rows that names stand for, by name. They are settled; other rows may still turn out another's."""
        if not any(slot.expected.name for slot in self._slots):
            return []
        found = self._paired(self._slots, doubtful=False)
        slots, self._slots = self._slots, [slot for slot in self._slots if not slot.expected.name]
        rows: list[tuple[str, Mapping[str, object]]] = []
        for place, slot in enumerate(slots):
            if slot.expected.name and self._is_settled(slot, found.get(place)):
                rows.append((slot.expected.name, slot.table.row(found[place])))
        return rows

    def settle(self) -> list[tuple[Wanted, Key]]:
        """Settle all that are left; gives those whose row was found but for what cannot be told."""
        found = self._paired(self._slots, doubtful=False)
        for place, slot in enumerate(self._slots):
            self._is_settled(slot, found.get(place))
        self._slots = []
        doubtful = self._paired(self.missing, doubtful=True)
        for place, key in doubtful.items():
            self._claims.row(self.missing[place].table, key)
        in_doubt = [(self.missing[place], key) for place, key in doubtful.items()]
        self.missing = [slot for place, slot in enumerate(self.missing) if place not in doubtful]
        return in_doubt

    def nearest(self, rests: Iterable[Rest]) -> list[tuple[Wanted, Rest]]:
        """The missing rows with the left-over rows that were probably meant: those that hold most of the values."""
        rows = [rest for rest in rests if _may_be_meant(rest)]
        scored = [
            (-score, slot.content, place, number)
            for place, slot in enumerate(self.missing)
            for number, rest in enumerate(rows)
            if (score := _likeness(slot, rest)) > 0
        ]
        chosen: dict[int, int] = {}
        for _, _, place, number in sorted(scored):
            if place not in chosen and number not in chosen.values():
                chosen[place] = number
        pairs = [(self.missing[place], rows[number]) for place, number in chosen.items()]
        self.missing = [slot for place, slot in enumerate(self.missing) if place not in chosen]
        return pairs

    def _is_settled(self, slot: Wanted, key: Key | None) -> bool:
        if key is None:
            self.missing.append(slot)
        else:
            self._claims.row(slot.table, key)
        return key is not None

    def _paired(self, slots: Sequence[Wanted], *, doubtful: bool) -> dict[int, Key]:
        """The row for each slot that gets one, by the slot's place. The order of the slots does not matter."""
        order = sorted(range(len(slots)), key=lambda place: slots[place].content)
        places: dict[tuple[str, Key], int] = {}
        fitting = [
            [
                places.setdefault((slots[place].table.name, key), len(places))
                for key in self._free(slots[place], doubtful)
            ]
            for place in order
        ]
        rows = [key for _, key in places]
        return {order[asked]: rows[given] for asked, given in pair(fitting).items()}

    def _free(self, slot: Wanted, doubtful: bool) -> list[Key]:
        fits = self._fits.get(slot.content)
        if fits is None:
            fits = self._fits[slot.content] = self._fitting(slot)
        free = [key for key in (fits.doubtful if doubtful else fits.sure) if not self._claims.has_row(slot.table, key)]
        self.had_a_choice = self.had_a_choice or (slot.expected.name is not None and len(free) > 1)
        return free

    def _fitting(self, slot: Wanted) -> _Fits:
        sure: list[Key] = []
        doubtful: list[Key] = []
        for key in self._in_order(slot, slot.table.likely(slot.values)):
            try:
                sure += [key] if slot.table.meets(key, slot.values) else []
            except Incomparable:
                doubtful.append(key)
        return _Fits(sure, doubtful)

    def _in_order(self, slot: Wanted, keys: Sequence[Key]) -> Sequence[Key]:
        order = self._orders.get(slot.table.name)
        if order is None:
            return keys
        wanted = set(keys)
        return [key for key in order if key in wanted]


def _may_be_meant(rest: Rest) -> bool:
    """Whether a new row may be an expected one gone wrong; others' rows in a shared table are not taken for that."""
    is_ours = not is_shared(rest.table, rest.change)
    return rest.change.kind == "insert" and is_ours and not rest.table.is_unseen(rest.key)


def _likeness(slot: Wanted, rest: Rest) -> int:
    """How many of the wanted values a row holds; 1 more where there is only one to tell it by."""
    if slot.table is not rest.table:
        return 0
    held = sum(1 for column in slot.telling if _is_held(slot, rest, column))
    return held + (1 if len(slot.telling) <= 1 else 0)


def _is_held(slot: Wanted, rest: Rest, column: str) -> bool:
    try:
        return meets(slot.values[column], slot.table.cell(rest.key, column))
    except Incomparable:
        return False
