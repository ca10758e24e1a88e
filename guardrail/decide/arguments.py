"""Arguments of calls: which ones say what entity is meant, where in a listing one is, and how two calls differ."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Names that say which entity is meant: `id`, `order_id`, `orderId`, `sku`, `email`, ...
_IDENTIFIER = re.compile(
    r"(?:^|_)(?:id|ids|key|keys|number|no|code|sku|ref|reference|email|uuid|guid|name|identifier|slug)$"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_PLACES = frozenset(
    {"page", "pageno", "pagenumber", "pagetoken", "nextpagetoken", "cursor", "nextcursor", "offset", "skip", "start",
     "startindex", "startat", "after", "marker", "nexttoken", "continuation", "continuationtoken", "token", "from"}
)  # fmt: skip


def is_identifier(name: str) -> bool:
    """Whether an argument of this name says which entity is meant."""
    return _IDENTIFIER.search(_CAMEL.sub("_", name).lower()) is not None and not is_place(name)


def is_place(name: str) -> bool:
    """Whether an argument of this name says where in a listing a page begins."""
    return name.lower().replace("_", "").replace("-", "") in _PLACES


def identifiers(args: Mapping[str, object]) -> frozenset[str]:
    """The values that say which entity a call is about."""
    return frozenset(
        str(value)
        for name, value in args.items()
        if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "" and is_identifier(name)
    )


def changed(one: Mapping[str, object], other: Mapping[str, object]) -> list[str]:
    """The names of the arguments that differ."""
    return [name for name in one.keys() | other.keys() if not _same(one.get(name), other.get(name))]


def _same(one: object, other: object) -> bool:
    try:
        return one is other or bool(one == other)
    except Exception:  # noqa: BLE001 - any object's own __eq__ may raise (arrays do); then it is not known to be equal
        return False


def is_slip(one: object, other: object) -> bool:
    """Whether two identifiers are one typing slip apart: one character more, less, other, or two swapped."""
    a, b = str(one), str(other)
    if abs(len(a) - len(b)) > 1:
        return False
    at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    a, b = a[at:], b[at:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])


def is_further_page(earlier: Mapping[str, object] | None, args: Mapping[str, object]) -> bool:
    """Whether a call asks for a further page of a listing, of which an earlier page was not empty.

    `earlier` are the arguments of the tool's last success; only the place in the listing may differ.
    """
    if earlier is None:
        return False
    names = changed(earlier, args)
    return bool(names) and all(map(is_place, names))
