"""Headers that a user may have sent with every request."""

from __future__ import annotations

import re
from typing import Final

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_OF_THE_STORE: Final = frozenset(
    {
        *("host", "connection", "content-length", "transfer-encoding", "te", "upgrade"),
        *("accept-encoding", "if-none-match", "range"),
    }
)


def header_name(text: str) -> str:
    """The name of a header that is not the store's own to set. Raises ValueError for any other text."""
    if _TOKEN.fullmatch(text) is None:
        raise ValueError("must be the name of a header")
    if text.lower() in _OF_THE_STORE:
        raise ValueError("is a header that the store sets by itself")
    return text


def header_text(text: str) -> str:
    """The value of a header. Raises ValueError, which does not quote it."""
    if not text.isascii() or not text.isprintable() or text != text.strip():
        raise ValueError("holds blanks around it, a line break or another character that no header may hold")
    return text
