"""In which state a recorded run is: its verdict, or open, or cut off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.cli.tables import VERDICTS, word

if TYPE_CHECKING:
    from rich.text import Text

_STYLES = {**VERDICTS, "open": "bold cyan", "open_elsewhere": "bold cyan", "cut_off": "bold red"}


def state_of(ended: float | None, alive: bool | None, verdict: str | None) -> str:
    """A run's state in a word.

    The verdict of a closed run; `open`: its process lives; `cut_off`: its process has gone; `open_elsewhere`: it was
    opened on another host, so that cannot be told from here.
    """
    if ended is not None:
        return verdict or "closed"
    return "open_elsewhere" if alive is None else "open" if alive else "cut_off"


def state_text(state: str) -> Text:
    """The word as it is shown."""
    return word(state, _STYLES)
