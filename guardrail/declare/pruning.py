"""What is left of a plain value without its faulty parts, so that the rest can still be checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

from guardrail.declare.faults import Place


@dataclass(frozen=True, slots=True)
class Pruned:
    """A value without some places. In a list that lost items the later ones moved up; `kept` tells from where."""

    value: object
    kept: dict[Place, tuple[int, ...]] = field(default_factory=dict[Place, tuple[int, ...]])

    def original(self, place: Place) -> Place:
        """Where a place of the pruned value stands in the whole one."""
        found: Place = ()
        for step in place:
            kept = self.kept.get(found)
            found = (*found, kept[step] if kept is not None and isinstance(step, int) and step < len(kept) else step)
        return found


def prune(value: object, places: Iterable[Place]) -> Pruned:
    """The value without what stands at these places."""
    kept: dict[Place, tuple[int, ...]] = {}
    return Pruned(_without(value, frozenset(places), (), kept), kept)


def _without(value: object, places: frozenset[Place], at: Place, kept: dict[Place, tuple[int, ...]]) -> object:
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value).items()
        return {key: _without(item, places, (*at, key), kept) for key, item in entries if (*at, key) not in places}
    if isinstance(value, list):
        items = cast("list[object]", value)
        kept[at] = tuple(position for position in range(len(items)) if (*at, position) not in places)
        return [_without(items[position], places, (*at, position), kept) for position in kept[at]]
    return value


def stands(value: object, place: Place) -> bool:
    """Whether anything stands at a place of a plain value, be it null."""
    for step in place:
        if isinstance(value, dict) and step in value:
            value = cast("dict[object, object]", value)[step]
        elif isinstance(value, list) and isinstance(step, int) and step < len(cast("list[object]", value)):
            value = cast("list[object]", value)[step]
        else:
            return False
    return True
