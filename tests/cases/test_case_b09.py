"""B09: an empty page, but more pages to come."""

from __future__ import annotations

from typing import Any

import pytest

from guardrail import CallRefused
from support.cases import history_of, outcome_of, tell, told, variant
from support.shop import Guards

LISTING: dict[str, Any] = {"empty": "stop"}


@pytest.mark.parametrize(
    "page",
    [
        variant("B09", "empty with has_more", {"data": [], "has_more": True}),
        variant("B09", "empty with next link", {"value": [], "@odata.nextLink": "https://api.test/t?$skip=50"}),
        # The reports call it an empty page; that the total says that items exist makes it as good as unread.
        variant("B09", "page beyond the end", {"items": [], "page": 9, "total": 12}),
    ],
)
def test_an_empty_page_that_is_not_all_stops_nothing(page: object) -> None:
    seen = told(page, **LISTING)
    assert seen.went_on
    assert seen.outcome.outcome == "incomplete"


@pytest.mark.case("B09", "empty with token")
def test_an_empty_page_with_a_continuation_is_no_proof_of_absence(guards: Guards) -> None:
    listed: list[object] = [{"tickets": [], "nextPageToken": "p2"}, {"tickets": [{"id": 1}]}]
    pages = iter(listed)
    requires = [{"earlier": "list_tickets", "because": "look for a ticket first"}]
    guard = guards(
        tools={"list_tickets": {"effect": "read", **LISTING}, "open_ticket": {"effect": "write", "requires": requires}}
    )

    def list_tickets(page_token: str = "") -> object:
        return next(pages)

    def open_ticket(title: str) -> str:
        return title

    with guard.run() as run:
        listing, opening = run.wrap(list_tickets, open_ticket)
        listing()
        with pytest.raises(CallRefused, match="look for a ticket first"):
            opening("broken")
        listing(page_token="p2")
        assert opening("broken") == "broken"
    assert outcome_of(history_of(guard, run.id), 1).outcome == "incomplete"
    assert run.stop is None


@pytest.mark.case("B09", "empty with empty token")
def test_an_empty_page_with_an_empty_token_is_the_last_one() -> None:
    seen = told({"tickets": [], "nextPageToken": ""}, **LISTING)
    assert seen.stopped
    assert seen.outcome.outcome == "empty"


@pytest.mark.case("B09", "last page empty after full pages")
def test_an_empty_last_page_of_a_listing_that_found_something_stops_nothing() -> None:
    pages: list[object] = [{"tickets": [{"id": 1}], "nextPageToken": "p2"}, {"tickets": []}]
    seen = tell(pages, [{"status": "open"}, {"status": "open", "page_token": "p2"}], **LISTING)
    assert [s.outcome.action for s in seen] == ["allow", "allow"]
    assert seen[-1].went_on
    other = tell(pages, [{"status": "open"}, {"status": "closed"}], **LISTING)
    assert other[-1].stopped  # another question is another listing
