"""Durations: "5s", "200ms", "1.5m"."""

from __future__ import annotations

import re
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator

_FORM = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h)", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
LONGEST = 24 * 3600.0
"""A day: nothing that a guard waits for takes longer, so more is a slip of the unit."""


def seconds(text: str) -> float:
    """How many seconds a duration lasts. Raises ValueError when the text is none, or longer than a day."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError("must be a duration such as 5s, 200ms or 1m")
    length = float(found[1]) * _SECONDS[found[2]]
    if length > LONGEST:
        raise ValueError("must be a duration of at most a day")
    return length


def _checked(value: object) -> object:
    seconds(value if isinstance(value, str) else "")
    return value


Duration: TypeAlias = Annotated[str, BeforeValidator(_checked)]
"""A number and its unit: ms, s, m or h."""
