"""Whether an answer is empty: nothing at all, a list without entries, or an empty page with more to come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias, cast

from guardrail.judge.fields import Fields, fields_of, peek

Absence: TypeAlias = Literal["empty", "empty_list", "incomplete"]

_DEEPEST: Final = 4
_MOST_FIELDS: Final = 64
_SAID_NOTHING: Final = frozenset(("none", "null"))

# Names as they read without case and punctuation: `nextPageToken`, `next_page_token` and `NextPageToken` are one.
_CONTINUATIONS: Final = frozenset(
    ["next", "nexttoken", "nextpage", "nextpagetoken", "nextcursor", "nextlink", "nextmarker", "nexturl", "nextoffset", "odatanextlink", "odatanextlink", "continuationtoken", "continuation", "lastevaluatedkey", "hasmore", "hasnext", "hasnextpage", "hasmoreitems", "morerecords", "moreresults", "istruncated", "truncated", "incompleteresults", "paginationtoken"]
)
_TOTALS: Final = frozenset(
    ["total", "totalcount", "totalresults", "totalelements", "totalitems", "totalhits", "totalrecords", "totalrows", "totalsize", "count", "found", "numfound", "odatacount"]
)
_BESIDE_LIST: Final = frozenset(
    ["page", "pages", "pageinfo", "pagination", "paging", "pagenumber", "pagesize", "pageindex", "perpage", "number", "size", "limit", "offset", "cursor", "start", "end", "first", "last", "previous", "prev", "prevlink", "previouslink", "previouspagetoken", "empty", "numberofelements", "totalpages", "pageable", "sort", "sorted", "links", "link", "meta", "metadata", "responsemetadata", "error", "errors", "message", "msg", "success", "ok", "status", "query", "took", "timedout", "shards", "maxscore", "kind", "etag", "object", "url", "resultsizeestimate", "scannedcount", "consumedcapacity", "requestid", "timestamp", "warnings", "odatacontext", "context", "self", "facets", "aggregations", "filters", "maxitems"]
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
    if isinstance(value, list | tuple | set | frozenset | bytes | bytearray):
        return None if value else "empty_list"
    if isinstance(value, dict):
        return _nothing_in(cast("Fields", value), _DEEPEST) if value else "empty"
    return "empty_list" if peek(value, "empty") is True else None  # a table of a data frame library


def _blank(text: str) -> Absence | None:
    if len(text) > _MOST_FIELDS:
        return None if not text.isspace() else "empty_list"
    text = text.strip().lower()
    return "empty" if text in _SAID_NOTHING else None if text else "empty_list"


def _nothing_in(value: Fields, depth: int) -> Absence | None:
    """The emptiness of a mapping: exactly its counts and pages, and beside them lists without entries or one null."""
    if len(value) > _MOST_FIELDS:
        return None
    held: list[object] = []
    found: Absence | None = None
    more = False
    for name, entry in value.items():
        word = _word(name)
        if word == "found" and entry is False:
            found = "empty"
        elif word in _CONTINUATIONS or word in _TOTALS or word in _BESIDE_LIST:
            more = more or _promises(word, entry)
        elif entry is None or isinstance(entry, list | dict):
            held.append(cast("object", entry))
        else:
            return None
    found = found or _held(held, depth)
    return "incomplete" if more and found == "empty_list" else found


def _held(held: Sequence[object], depth: int) -> Absence | None:
    """What the fields that are no counts hold: lists without entries, or one thing that is not there."""
    lists = [entry for entry in held if isinstance(entry, list)]
    if lists and len(lists) == len(held):
        return None if any(lists) else "empty_list"
    if len(held) != 1:
        return None
    [entry] = held
    if not entry:
        return "empty"
    return _nothing_in(cast("Fields", entry), depth - 1) if isinstance(entry, dict) and depth else None


def _promises(word: str, entry: object) -> bool:
    """Whether a count or a page says that there is more than was given."""
    if word in _CONTINUATIONS:
        return bool(entry) if not isinstance(entry, str) else bool(entry.strip())
    if word in _TOTALS:
        return _count(entry) > 0
    inside = fields_of(entry) if isinstance(entry, dict) else None
    return inside is not None and any(_word(name) in _CONTINUATIONS and bool(kept) for name, kept in inside.items())


def _count(entry: object) -> float:
    if isinstance(entry, dict):
        return _count(cast("Fields", entry).get("value"))
    return entry if isinstance(entry, int | float) and not isinstance(entry, bool) else 0


def _word(name: object) -> str:
    """A field's name without case and punctuation."""
    if not isinstance(name, str):
        return ""
    return name.lower() if name.isalpha() else "".join(filter(str.isalnum, name)).lower()
