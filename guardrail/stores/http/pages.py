"""From one page of a resource to the next, and never in circles, nor to another server."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

from guardrail.errors import StoreError
from guardrail.pointers import MISSING, follow, pointer
from guardrail.query.urls import Url
from guardrail.stores.http.api import Next

MOST_PAGES: Final = 1_000
"""How many pages a resource may have."""

_LINK: Final = re.compile(r'<([^<>]*)>((?:\s*;\s*[\w!#$&+.^`|~*-]+(?:\s*=\s*(?:"[^"]*"|[^\s",;<>]*))?)*)')
_RELATION: Final = re.compile(r';\s*rel\s*=\s*(?:"([^"]*)"|([^\s",;<>]*))', re.IGNORECASE)


def linked(header: str) -> str | None:
    """The reference to the next page in a Link header (RFC 8288); None when there is none."""
    for reference, parameters in _LINK.findall(header):
        relation = _RELATION.search(parameters)
        if relation and "next" in (relation[1] or relation[2] or "").lower().split():
            return str(reference)
    return None


def following(how: Next | None, first: Url, here: Url, page: object, link: str) -> Url | None:
    """The URL of the page after the one that was read `here`; None when it was the last. Raises `StoreError`."""
    reference = linked(link)
    if how is None:
        if reference is not None:
            raise StoreError("it has more pages (its Link header says so), and the resource declares no `next`")
        return None
    if how.at is None:
        return None if reference is None else _at(here, reference)
    found = follow(page, how.at)
    if found is MISSING or found is None or found is False or found == "":
        return None
    if how.parameter is not None:
        return _with_cursor(first, how.parameter, found, how.at)
    if isinstance(found, str):
        return _at(here, found)
    raise StoreError(f"what stands at {pointer(how.at)} is no URL of a next page")


def _at(here: Url, reference: str) -> Url:
    try:
        url = here.at(reference)
    except ValueError as error:
        raise StoreError(f"the URL of its next page {error}") from error
    return of_same_origin(here, url, "its next page lies at")


def of_same_origin(here: Url, url: Url, what: str) -> Url:
    """The URL, if it lies on the same server. Raises `StoreError`, which says `what` leads elsewhere."""
    if url.origin != here.origin:
        raise StoreError(f"{what} {str(url.origin)[:200]}, and only {here.origin} is asked")
    return url


def _with_cursor(first: Url, parameter: str, cursor: object, at: tuple[str, ...]) -> Url:
    if isinstance(cursor, bool) or not isinstance(cursor, str | int):
        raise StoreError(f"what stands at {pointer(at)} is no cursor: it is neither a text nor a number")
    mark = "&" if "?" in first.target else "?"
    text = str(cursor).encode("utf-8", "replace").decode()
    return Url(first.origin, f"{first.target}{mark}{quote(parameter, safe='')}={quote(text, safe='')}")
