"""Pairing of what is wanted with what was found, so that as many as possible are paired."""

from __future__ import annotations

from collections.abc import Sequence


def pair(fitting: Sequence[Sequence[int]]) -> dict[int, int]:
    """What each wanted thing is paired with, both by their place.

    `fitting` holds, for each wanted thing, the places of what fits it, the preferred first. Whatever can be paired
    is: a thing that fits many gives way to one that fits few. (Kuhn's method: an augmenting path for each.)
    """
    taken: dict[int, int] = {}
    owner: dict[int, int] = {}
    for wanted in range(len(fitting)):
        _add(wanted, fitting, taken, owner)
    return taken


def _add(wanted: int, fitting: Sequence[Sequence[int]], taken: dict[int, int], owner: dict[int, int]) -> None:
    """Pair one more thing, moving others to what else fits them where that is needed."""
    asked_by: dict[int, int] = {}
    waiting = [wanted]
    for asking in waiting:
        for found in fitting[asking]:
            if found in asked_by:
                continue
            asked_by[found] = asking
            if found not in owner:
                _move(found, wanted, asked_by, taken, owner)
                return
            waiting.append(owner[found])


def _move(found: int, wanted: int, asked_by: dict[int, int], taken: dict[int, int], owner: dict[int, int]) -> None:
    """Give what was found to whom it was asked for, what that one had to the next, back to the first."""
    while True:
        asking = asked_by[found]
        left = taken.get(asking)
        taken[asking], owner[found] = found, asking
        if asking == wanted or left is None:
            return
        found = left
