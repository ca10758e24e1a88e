"""Whether an answer is empty: nothing at all, a list without entries, or an empty page with more to come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from guardrail.continuations import CONTINUATIONS, HOLDERS, TOTALS, counted, said, word
from guardrail.judge.fields import Fields, is_list, is_mapping, listed, peek
from guardrail.judge.meanings import FINE

Absence: TypeAlias = Literal["empty", "empty_list", "incomplete"]

_DEEPEST: Final = 4
_MOST_FIELDS: Final = 64
_COLLECTIONS: Final = (list, tuple, set, frozenset, bytes, bytearray)
_NOTHING: Final = frozenset(("none", "null"))

# Words as `word` reads names.
_NUMBERS: Final = frozenset(
    listed(
        "page pages pagenumber pagesize pageindex perpage number size limit offset start end first last empty took "
        "numberofelements totalpages scannedcount resultsizeestimate maxitems maxscore sorted timedout"
    )
)
_BESIDE: Final = frozenset(
    listed(
        "cursor previous prev prevlink previouslink previouspagetoken sort link error errors message msg success ok "
        "query shards kind etag object url requestid timestamp warnings odatacontext self facets aggregations filters "
        "consumedcapacity"
    )
)


def absence(value: object) -> Absence | None:
    """How an answer is empty, or None if it is not. 0 and False are values.

    `empty`: None, "none", {}, {"customer": None}, {"found": False} looked for one thing. `empty_list`: [],
    a blank text (a search that prints what it finds prints nothing), a list without entries among counts
    and pages. `incomplete`: such a list with a continuation, or with a total that says that there are entries.
    """
    if value is None:
        return "empty"
    if isinstance(value, str):
        return _blank(value)
    if is_mapping(value):
        return _nothing_in(value, _DEEPEST) if value else "empty"
    if isinstance(value, _COLLECTIONS):
        return None if value else "empty_list"
    return "empty_list" if peek(value, "empty") is True else None  # a table of a data frame library


def _blank(text: str) -> Absence | None:
    if len(text) > 10:
        return "empty_list" if text.isspace() else None
    text = text.strip().lower()
    return "empty" if text in _NOTHING else None if text else "empty_list"


def _nothing_in(value: Fields, depth: int) -> Absence | None:
    """The emptiness of a mapping: counts and pages, and beside them lists without entries or one null."""
    if value.get("found") is False:
        return "empty"
    if len(value) > _MOST_FIELDS:
        return None
    held: list[object] = []
    has_more = False
    for name, entry in value.items():
        if _is_beside(word(name), entry):
            has_more = has_more or _promises(name, entry)
        elif entry is None or is_list(entry) or is_mapping(entry):
            held.append(entry)
        else:
            return None
    found = _held(held, depth)
    return "incomplete" if has_more and found == "empty_list" else found


def _is_beside(plain: str, entry: object) -> bool:
    """Whether a field is what stands beside a list: a count, a page, a word about the request."""
    if plain in CONTINUATIONS or said(plain, entry) is not None:
        return True
    if plain in _NUMBERS or plain in TOTALS or plain in HOLDERS:
        return not isinstance(entry, str | list) or (isinstance(entry, str) and entry.isdecimal())
    if plain == "status":
        return not isinstance(entry, str) or entry.lower() in FINE
    return plain in _BESIDE


def _held(held: Sequence[object], depth: int) -> Absence | None:
    """What the other fields hold: lists without entries, or one thing that is not there."""
    if held and all(is_list(entry) for entry in held):
        return None if any(held) else "empty_list"
    if len(held) != 1:
        return None
    [entry] = held
    if not entry:
        return "empty"
    return _nothing_in(entry, depth - 1) if is_mapping(entry) and depth else None


def _promises(name: object, entry: object) -> bool:
    """Whether a field beside an empty list says that there is more."""
    plain = word(name)
    if plain in HOLDERS and is_mapping(entry):
        return any(_promises(inner, kept) for inner, kept in entry.items())
    return said(plain, entry) in ("next", "more") or (plain in TOTALS and counted(entry) > 0)
