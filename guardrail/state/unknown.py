"""What stands where nobody has seen a value."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Unknown(Enum):
    """The type of `UNKNOWN`."""

    UNKNOWN = "unknown"

    def __str__(self) -> str:
        """The word for it."""
        return self.value

    __repr__ = __str__


UNKNOWN: Final = Unknown.UNKNOWN
"""A value of a row that a picture holds only as a hash, or of the time before the first picture."""
