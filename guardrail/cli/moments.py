"""Moments and lengths of time, as they are written and read."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from guardrail.cli.exits import Misuse

_AGE: Final = re.compile(r"(\d{1,6})(m|h|d|w)", re.ASCII)
_SECONDS: Final = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


def local(moment: float, *, seconds: bool = True) -> str:
    """A moment (seconds since the epoch) in the time of this machine: `2026-11-30 14:27:05`."""
    return datetime.fromtimestamp(moment).astimezone().strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M")


def iso(moment: float | None) -> str | None:
    """A moment as ISO 8601 in UTC, for JSON."""
    return None if moment is None else datetime.fromtimestamp(moment, UTC).isoformat()


def lasting(seconds: float) -> str:
    """How long something took: `0.3 ms`, `25 ms`, `1.5 s`, `4 min 10 s`, `2 h 5 min`."""
    if seconds < 1:
        return f"{max(seconds, 0) * 1000:.{0 if seconds >= 0.01 else 1}f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, left = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {left} s"
    return f"{minutes // 60} h {minutes % 60} min"


def age(text: str) -> float:
    """How many seconds an age such as `30d`, `12h`, `2w` or `90m` has; raises `Misuse` for any other text."""
    found = _AGE.fullmatch(text)
    if found is None:
        raise Misuse(f"{text!r} is no age: write a number and m, h, d or w, such as 30d")
    return float(int(found[1]) * _SECONDS[found[2]])
