"""Mistakes of a declaration by their place inside it, before file and line are known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, TypeAlias

Place: TypeAlias = tuple[str | int, ...]
"""Where something stands in a declaration: keys, and positions in lists from 0."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One mistake. `line` is given where the place alone does not tell it (a key that stands twice).

    `rests_on` marks a mistake that says that something is not there, which is certain only when all of
    the `entry` that it stands in could be read, or all `files`.
    """

    place: Place
    what: str
    advice: str = ""
    line: int | None = None
    rests_on: Literal["", "entry", "files"] = ""


def dotted(place: Place) -> str:
    """A place as a dotted path: `tasks.refund.expect[0].values.amount`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return "".join(parts).removeprefix(".")


def suggestion(word: str, known: Iterable[str], listed: str = "") -> str:
    """Advice for a name that is unknown: the nearest known one, else `listed` and all of them if they are few."""
    names = sorted(set(known))
    near = get_close_matches(word, names, n=1)
    if near:
        return f"did you mean `{near[0]}`?"
    return f"{listed} {', '.join(names)}" if listed and 0 < len(names) <= 30 else ""
