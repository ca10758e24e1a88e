"""Arguments of calls: which ones say what entity is meant, where in a listing one is, and how two calls differ."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import cast

# Names that say which entity is meant: `id`, `order_id`, `orderId`, `sku`, `email`, or the entity itself: `order`.
_IDENTIFIER = re.compile(
    r"(?:^|_)(?:id|ids|key|keys|number|no|code|sku|ref|reference|email|uuid|guid|name|identifier|slug"
    r"|account|order|customer|user|client|ticket|invoice|payment|product|booking|reservation|contact|lead"
    r"|project|task|event|employee|supplier|recipient|card|device|file|path|url)$"
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
        for name, value in _opened(args).items()
        if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "" and is_identifier(name)
    )


def changed(one: Mapping[str, object], other: Mapping[str, object]) -> list[str]:
    """The names of the arguments that differ."""
    one, other = _opened(one), _opened(other)
    return [name for name in one.keys() | other.keys() if not _same(one.get(name), other.get(name))]


def are_lacking(args: Mapping[str, object], names: Collection[str]) -> bool:
    """Whether a call was made without any of these arguments."""
    return _opened(args).keys().isdisjoint(names)


def _opened(args: Mapping[str, object]) -> Mapping[str, object]:
    """The arguments; of a tool that takes all in one object, what stands in it."""
    while len(args) == 1:
        (only,) = args.values()
        if not isinstance(only, dict):
            break
        args = cast("dict[str, object]", only)
    return args


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


def value_of(args: Mapping[str, object], name: str) -> object:
    """The value of an argument; None where there is none."""
    return _opened(args).get(name)


def without(args: Mapping[str, object], name: str) -> Mapping[str, object]:
    """The arguments but one."""
    return {other: value for other, value in _opened(args).items() if other != name}


def is_further_page(earlier: Mapping[str, object] | None, args: Mapping[str, object]) -> bool:
    """Whether a call asks for a further page of a listing, of which an earlier page was not empty.

    `earlier` are the arguments of the tool's last success; only the place in the listing may differ.
    """
    if earlier is None:
        return False
    names = changed(earlier, args)
    return bool(names) and all(map(is_place, names))
