"""Whether an answer is empty: nothing at all, a list without entries, or an empty page with more to come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from guardrail.judge.fields import Fields, is_list, is_mapping, listed, peek
from guardrail.judge.meanings import FINE

Absence: TypeAlias = Literal["empty", "empty_list", "incomplete"]

_DEEPEST: Final = 4
_MOST_FIELDS: Final = 64
_COLLECTIONS: Final = (list, tuple, set, frozenset, bytes, bytearray)
_NOTHING: Final = frozenset(("none", "null"))

# Names as they read without case and punctuation: `nextPageToken`, `next_page_token` and `NextPageToken` are one.
_CONTINUATIONS: Final = frozenset(
    listed(
        "next nexttoken nextpage nextpagetoken nextcursor nextlink nextmarker nexturl nextoffset odatanextlink hasmore "
        "continuationtoken continuation lastevaluatedkey hasnext hasnextpage hasmoreitems morerecords moreresults "
        "istruncated truncated incompleteresults paginationtoken"
    )
)
_TOTALS: Final = frozenset(
    listed(
        "total totalcount totalresults totalelements totalitems totalhits totalrecords totalrows totalsize count found "
        "numfound odatacount"
    )
)
_NUMBERS: Final = frozenset(
    listed(
        "page pages pagenumber pagesize pageindex perpage number size limit offset start end first last empty took "
        "numberofelements totalpages scannedcount resultsizeestimate maxitems maxscore sorted timedout"
    )
)
_HOLDERS: Final = frozenset(
    listed("pageinfo pagination paging pageable page links meta metadata responsemetadata context searchmetadata")
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
        word = _word(name)
        if _is_beside(word, entry):
            has_more = has_more or _promises(word, entry)
        elif entry is None or is_list(entry) or is_mapping(entry):
            held.append(entry)
        else:
            return None
    found = _held(held, depth)
    return "incomplete" if has_more and found == "empty_list" else found


def _is_beside(word: str, entry: object) -> bool:
    """Whether a field is what stands beside a list: a count, a page, a word about the request."""
    if word in _NUMBERS or word in _TOTALS or word in _HOLDERS:
        return not isinstance(entry, str | list) or (isinstance(entry, str) and entry.isdecimal())
    if word == "status":
        return not isinstance(entry, str) or entry.lower() in FINE
    return word in _CONTINUATIONS or word in _BESIDE


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


def _promises(word: str, entry: object) -> bool:
    """Whether a field beside an empty list says that there is more."""
    if word in _CONTINUATIONS:
        return bool(entry.strip() if isinstance(entry, str) else entry)
    if word in _TOTALS:
        return _count(entry) > 0
    if word in _HOLDERS and is_mapping(entry):
        return any(_promises(_word(name), kept) for name, kept in entry.items())
    return False


def _count(entry: object) -> float:
    if is_mapping(entry):
        return _count(entry.get("value"))
    if isinstance(entry, str):
        return int(entry) if entry.isdecimal() and len(entry) < 20 else 0
    return entry if isinstance(entry, int | float) and not isinstance(entry, bool) else 0


def _word(name: object) -> str:
    """A field's name without case and punctuation."""
    if not isinstance(name, str):
        return ""
    return name.lower() if name.isalpha() else "".join(filter(str.isalnum, name)).lower()
