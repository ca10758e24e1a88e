"""Pages: when an empty page only ends a listing that found something."""

from __future__ import annotations

from collections.abc import Mapping

from guardrail.decide.holds import changed

_PLACES = frozenset(
    {"page", "pagenumber", "pagetoken", "nextpagetoken", "cursor", "nextcursor", "offset", "skip", "start", "startindex",
     "startat", "after", "marker", "nexttoken", "continuation", "continuationtoken", "token", "from"}
)  # fmt: skip
"""Names of arguments that say where in a listing a page begins, without case and separators."""


def continues(earlier: Mapping[str, object] | None, args: Mapping[str, object]) -> bool:
    """Whether a call asks for a further page of a listing, of which an earlier page was not empty.

    `earlier` are the arguments of the tool's last success; only the place in the listing may differ.
    """
    if earlier is None:
        return False
    names = changed(earlier, args)
    return bool(names) and all(name.lower().replace("_", "").replace("-", "") in _PLACES for name in names)
