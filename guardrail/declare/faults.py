"""Mistakes of a declaration by their place inside it, before file and line are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeAlias, cast

Place: TypeAlias = tuple[str | int, ...]
"""Where something stands in a declaration: keys, and positions in lists from 0."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One mistake. `line` is given where the place alone does not tell it (a key that stands twice).

    `rests_on` are the places of which everything must have been right for this to be certain (a name is
    only missing where no other could be misspelt); () among them stands for all files.
    """

    place: Place
    what: str
    advice: str = ""
    line: int | None = None
    rests_on: tuple[Place, ...] = ()


def dotted(place: Place) -> str:
    """A place as a dotted path: `tasks.refund.expect[0].values.amount`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return "".join(parts).removeprefix(".")


def at(value: object, place: Place) -> Any:
    """What stands at a place of a plain value; None where nothing does."""
    for part in place:
        if isinstance(value, Mapping):
            value = cast("Mapping[object, object]", value).get(part)
        elif isinstance(value, list) and isinstance(part, int):
            value = cast("list[object]", value)[part]
        else:
            return None
    return value


def suggestion(word: str, known: Iterable[str], listed: str = "") -> str:
    """Advice for a name that is unknown: the nearest known one, else `listed` and all of them if they are few."""
    names = sorted(set(known))
    near = get_close_matches(word, names, n=1)
    if near:
        return f"did you mean `{near[0]}`?"
    return f"{listed} {', '.join(names)}" if listed and 0 < len(names) <= 30 else ""
