"""From one page of a resource to the next, and never in circles, nor to another server."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

from guardrail.continuations import Promise, promise, reference
from guardrail.errors import StoreError
from guardrail.pointers import MISSING, follow, pointer
from guardrail.query.urls import Url
from guardrail.stores.http.api import Next, Resource

MOST_PAGES: Final = 1_000
"""How many pages a resource may have."""

_LINK: Final = re.compile(r'<([^<>]*)>((?:\s*;\s*[\w!#$&+.^`|~*-]+(?:\s*=\s*(?:"[^"]*"|[^\s",;<>]*))?)*)')
_URL: Final = re.compile(r"https?://|[/?]", re.IGNORECASE)
_RELATION: Final = re.compile(r';\s*rel\s*=\s*(?:"([^"]*)"|([^\s",;<>]*))', re.IGNORECASE)


def linked(header: str) -> str | None:
    """The reference to the next page in a Link header (RFC 8288); None when there is none."""
    for target, parameters in _LINK.findall(header):
        relation = _RELATION.search(parameters)
        if relation and "next" in (relation[1] or relation[2] or "").lower().split():
            return str(target)
    return None


def following(resource: Resource, first: Url, here: Url, page: object, link: str) -> Url | None:
    """The URL of the page after the one that was read `here`; None when it was the last.

    Raises `StoreError`, also where the page says that there is more and what is declared does not lead there: what was
    read would be taken for all.
    """
    how, header = resource.next, linked(link)
    if how is not None and how.at is None and header is not None:
        return _at(here, header)
    found = follow(page, how.at) if how is not None and how.at is not None else None
    if how is None or how.at is None or found is MISSING or found is None or found is False or found == "":
        if not resource.whole:
            _check_last(resource, page, header)
        return None
    if how.parameter is not None:
        return _with_cursor(first, how.parameter, found, how.at)
    if isinstance(found, str):
        return _at(here, found)
    raise StoreError(f"what stands at {pointer(how.at)} is no URL of a next page")


def _check_last(resource: Resource, page: object, header: str | None) -> None:
    """Refuse a page as the last one that says that there is more. Raises `StoreError`."""
    found = promise(page, resource.rows)
    if header is None and found is None:
        return
    says = "its Link header" if found is None else pointer(found.at)
    advice = "`next: link`" if found is None else _how_to_follow(found)
    raise StoreError(
        f"it has more pages ({says} says so), and {_undeclared(resource.next)}: declare {advice}; "
        "or `next: none`, if what it answers is all"
    )


def _undeclared(how: Next | None) -> str:
    if how is None:
        return "the resource declares no `next`"
    if how.at is None:
        return "its Link header, which is its `next`, names none"
    return f"at {pointer(how.at)}, which is its `next`, nothing names one"


def _how_to_follow(found: Promise) -> str:
    """What to declare, so that the page that was promised is found."""
    at = reference(found)
    if at is None:
        return "where a page names the next one as `next`, or ask for larger pages"
    value = follow(found.value, at[len(found.at) :])
    if isinstance(value, str) and _URL.match(value):
        return f"`next: {pointer(at)}`"
    return f"`next: {{at: {pointer(at)}, as: …}}` with the query parameter that takes what stands there"


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
