"""What a page says of the pages after it: the words by which the fields beside its rows promise more, or deny it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Final, Literal, TypeAlias, cast

from guardrail.pointers import follow

Says: TypeAlias = Literal["next", "more", "end"]
"""What a field says: where the next page is, that there is more, that there is none."""

_Field: TypeAlias = tuple[str, tuple[str, ...], object]
"""What a field is called, the steps to it, and what stands there."""


def _listed(text: str) -> frozenset[str]:
    """The names in a text: long tables of names read better that way."""
    return frozenset(text.split())


# Names as they read without case and punctuation: `nextPageToken`, `next_page_token` and `NextPageToken` are one.
_NEXT: Final = _listed(
    "next nexttoken nextpage nextpagetoken nextcursor nextlink nextmarker nexturl nexturi nexthref nextoffset nextstart "
    "nextpagelink nextpageurl nextpageuri nextpagecursor nextpagestart nextrecordsurl odatanextlink continuationtoken "
    "continuation lastevaluatedkey paginationtoken"
)
"""Where the next page is: its URL, its number, a cursor."""

_MORE: Final = _listed(
    "hasmore hasnext hasnextpage hasmoreitems hasmorepages hasmorerecords hasmoreresults morerecords moreresults "
    "moreitemsincollection"
)
"""Whether there is more."""

_CUT: Final = _listed("istruncated truncated incompleteresults")
"""Whether something was left out. That nothing was does not say that there is no next page."""

_TRUTHS_ONLY: Final = {"more": True, "last": False, "islast": False, "lastpage": False, "islastpage": False}
"""Words that say whether there is more by `true` and `false` only, each with the one of these that promises it."""

CONTINUATIONS: Final = _NEXT | _MORE | _CUT

TOTALS: Final = _listed(
    "total totalcount totalresults totalelements totalitems totalhits totalrecords totalrows totalsize count found "
    "numfound odatacount"
)
"""How many there are in all; no promise, as it may count something else than the rows."""

HOLDERS: Final = _listed(
    "pageinfo pagination paging pageable page links meta metadata responsemetadata resultinfo context searchmetadata"
)
"""What holds such fields beside the rows."""

_LINKS: Final = frozenset({"links", "link"})
_DEEPEST: Final = 4
_REFERENCES: Final = ("href", "url")
_NOTHING: Final = frozenset({"", "false", "null", "none", "0"})


@dataclass(frozen=True, slots=True)
class Promise:
    """A field that promises more: the steps to it, and what stands there."""

    at: tuple[str, ...]
    value: object


def promise(page: object, rows: Sequence[str]) -> Promise | None:
    """The field that promises more than a page has, of whose fields those at the steps `rows` are its rows.

    Fields count that stand beside the rows, not what is in a row. Where a page says that it is the last one, what else
    would name a next page does not count, as some APIs always name one. The most telling one is given: where the next
    page is, else that there is one.
    """
    found: dict[Says, Promise] = {}
    for name, at, value in _beside(page, rows):
        says = said(name, value)
        if says is not None:
            found.setdefault(says, Promise(at, value))
    if "next" in found and ("more" in found or "end" not in found):
        return found["next"]
    return found.get("more")


def total(page: object, rows: Sequence[str]) -> int:
    """The greatest number of entries that a page says there are in all; 0 where it says none."""
    return max((counted(value) for name, _, value in _beside(page, rows) if word(name) in TOTALS), default=0)


def said(name: object, value: object) -> Says | None:
    """What a field says of more to come; None where it says nothing."""
    plain = word(name)
    if plain in _TRUTHS_ONLY:
        return ("more" if value is _TRUTHS_ONLY[plain] else "end") if isinstance(value, bool) else None
    if plain in _NEXT:
        return "next" if _is_something(value) else None
    if plain in _MORE:
        return "more" if _is_something(value) else "end" if value is False else None
    return "more" if plain in _CUT and _is_something(value) else None


def counted(value: object) -> int:
    """The number of entries that a field tells, also as a text or as the `value` in it; 0 for anything else."""
    if isinstance(value, dict):
        value = cast("Mapping[str, object]", value).get("value")
    if isinstance(value, str):
        return int(value) if value.isdecimal() and value.isascii() and len(value) < 20 else 0
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    return int(cast("float", value)) if is_number else 0


def word(name: object) -> str:
    """A field's name without case and punctuation."""
    if not isinstance(name, str):
        return ""
    return name.lower() if name.isalpha() else "".join(filter(str.isalnum, name)).lower()


def reference(found: Promise) -> tuple[str, ...] | None:
    """The steps to what refers to the next page, a URL or a cursor; None where no text or number does."""
    value, at = found.value, found.at
    if isinstance(value, dict):
        fields = cast("Mapping[str, object]", value)
        name = next((name for name in _REFERENCES if name in fields), "")
        value, at = fields.get(name), (*at, name)
    names_it = said(found.at[-1], found.value) == "next" and isinstance(value, str | int)
    return at if names_it and not isinstance(value, bool) else None


def _beside(page: object, rows: Sequence[str]) -> Iterator[_Field]:
    """The fields beside the rows: of all that the rows stand in, and of holders there."""
    for depth, step in enumerate(rows):
        around = follow(page, rows[:depth])
        if isinstance(around, dict):
            fields = cast("Mapping[str, object]", around)
            others = {name: entry for name, entry in fields.items() if name != step}
            yield from _fields(others, tuple(rows[:depth]), _DEEPEST)


def _fields(fields: Mapping[str, object], at: tuple[str, ...], depth: int) -> Iterator[_Field]:
    for name, value in fields.items():
        plain, here = word(name), (*at, name)
        if plain in HOLDERS and isinstance(value, dict):
            yield from _fields(cast("Mapping[str, object]", value), here, depth - 1) if depth else ()
        elif plain in _LINKS and isinstance(value, list):
            yield from _links(cast("list[object]", value), here)
        else:
            yield name, here, value


def _links(links: Sequence[object], at: tuple[str, ...]) -> Iterator[_Field]:
    """Of a list of links, each by its relation, which tells more than its place in the list."""
    for number, link in enumerate(links):
        if isinstance(link, dict):
            fields = cast("Mapping[str, object]", link)
            relation = fields.get("rel", fields.get("relation"))
            if isinstance(relation, str):
                yield relation, (*at, str(number)), fields


def _is_something(value: object) -> bool:
    if isinstance(value, str):
        return value.strip().lower() not in _NOTHING
    if isinstance(value, dict):
        fields = cast("Mapping[str, object]", value)
        referring = [fields[name] for name in _REFERENCES if name in fields] or [*fields.values()]
        return any(map(bool, referring))
    return bool(value)
