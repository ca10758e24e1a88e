"""Pictures of resources of an HTTP API: rows without a schema, page by page, and what has not changed sent only once."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from guardrail.errors import StoreError
from guardrail.pictures import Picture, Table, Tables, Unanswered, joined
from guardrail.query.proof import prove_condition
from guardrail.stores.store import Survey
from support.apis import Api, Asked, Asking, Crm, Reply, opened, photograph, pictured, why

TICKETS: dict[str, Any] = {"get": "/customers/:customer_id/tickets", "rows": "/items", "key": "id"}


def of(api: Api, body: object, **resource: Any) -> Any:
    """A store with a resource `things` that answers so."""
    api.replies["/things"] = body if isinstance(body, Reply) else Reply(body)
    return opened(api.url, resources={"things": {"get": "/things", "key": "id", **resource}})


def test_a_picture_holds_the_rows_of_a_list_by_their_key(crm: Crm, ask: Asking) -> None:
    store = opened(crm.base, resources={"tickets": TICKETS})
    picture = pictured(ask(store, [photograph("tickets", values={"customer_id": 3}, ignore=frozenset({"note"}))]))
    assert picture == Picture(
        table="crm.tickets",
        key=("id",),
        columns=("id", "customer_id", "state", "hours", "tags"),
        kinds={"id": "integer", "customer_id": "integer", "state": "text", "hours": "decimal", "tags": "json"},
        rows={(7,): (7, 3, "open", Decimal("1.5"), ["a", "b"]), (8,): (8, 3, "open", 2, [])},
    )
    assert crm.targets == ["/api/customers/3/tickets"]


def test_an_object_where_a_list_may_be_is_one_row(api: Api, ask: Asking) -> None:
    store = of(api, {"data": {"id": 7, "state": "open"}}, rows="/data")
    assert pictured(ask(store, [photograph("things")])).rows == {(7,): (7, "open")}


@pytest.mark.parametrize("body", [[], {"items": []}, {"items": None}, None])
def test_nothing_in_the_list_is_no_rows(api: Api, ask: Asking, body: object) -> None:
    store = of(api, body, rows="/items" if isinstance(body, dict) else "")
    picture = pictured(ask(store, [photograph("things", named=("state", "id"))]))
    assert (picture.rows, picture.columns, picture.kinds) == ({}, ("id", "state"), {})


def test_a_status_that_means_there_is_none_is_no_rows(api: Api, ask: Asking) -> None:
    store = of(api, Reply({"id": 1}, 404))
    assert pictured(ask(store, [photograph("things")])).rows == {}
    store = of(api, Reply({"id": 1}, 404), absent=[410])
    assert "it answered 404" in why(ask(store, [photograph("things")]))


@pytest.mark.parametrize(
    ("body", "resource", "reason"),
    [
        ({"item": []}, {"rows": "/items"}, "has at /items nothing, where its rows should be"),
        ({"items": {"id": 1}}, {"rows": "/items/0"}, "has at /items/0 nothing"),
        ({"items": "none"}, {"rows": "/items"}, "has at /items no list of objects"),
        (["a"], {}, "it answers no list of objects"),
        ([{"id": 1}, [1]], {}, "it answers no list of objects"),
        ([{"id": 1}, {"name": "x"}], {}, "a row has no text or number as id"),
        ([{"id": n, **{f"{n}.{m}": m for m in range(40)}} for n in range(30)], {}, "more than 1,000 different columns"),
        ([{"id": None}], {}, "a row has no text or number as id"),
        ([{"id": {"a": 1}}], {}, "a row has no text or number as id"),
        ([{"id": 1}, {"id": 1}], {}, "the key (id) is not unique: 1 of 2 rows"),
        ([{"id": 1, "n": 1}, {"id": 1, "n": 2}], {"key": ["id", "m"]}, "a row has no text or number as m"),
    ],
)
def test_rows_that_cannot_be_told_apart_are_no_picture(
    api: Api, ask: Asking, body: object, resource: dict[str, Any], reason: str
) -> None:
    assert reason in why(ask(of(api, body, **resource), [photograph("things")]))


def test_a_watch_may_name_the_key_and_a_key_may_have_several_columns(api: Api, ask: Asking) -> None:
    store = of(api, [{"a": 1, "b": "x", "n": 1}, {"a": 1, "b": "y", "n": 2}])
    picture = pictured(ask(store, [photograph("things", key=("b", "a"))]))
    assert picture.rows == {("x", 1): ("x", 1, 1), ("y", 1): ("y", 1, 2)}


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (photograph("things", ignore=frozenset({"id"})), "id is part of the key"),
        (photograph("thing"), "there is no table thing; did you mean things?"),
        (photograph("things", most_rows=1), "more than 1 rows in scope"),
        (photograph("things", where=prove_condition("id = 1", "sqlite")), "takes no SQL"),
    ],
)
def test_a_picture_that_cannot_be_taken_says_why(api: Api, ask: Asking, question: Any, reason: str) -> None:
    assert reason in why(ask(of(api, [{"id": 1}, {"id": 2}]), [question]))


def test_an_input_that_cannot_stand_in_the_path_is_no_picture(crm: Crm, ask: Asking) -> None:
    store = opened(crm.base, resources={"tickets": TICKETS})
    for values in ({}, {"customer_id": "../../admin"}):
        answer = why(ask(store, [photograph("tickets", values=values)]))
        assert "the parameter :customer_id" in answer
        assert "admin" not in answer
    assert crm.asked == []


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, None], "integer"),
        ([1, 1.5], "decimal"),
        ([1.5], "decimal"),
        (["a", None], "text"),
        ([True, False], "boolean"),
        ([True, 1], "unknown"),
        ([1, "1"], "unknown"),
        ([{"a": 1}, [1]], "json"),
        ([{"a": 1}, "a"], "unknown"),
        ([None], None),
    ],
)
def test_how_a_column_compares_is_told_by_its_values(api: Api, ask: Asking, values: list[object], kind: str) -> None:
    store = of(api, [{"id": number, "x": value} for number, value in enumerate(values)])
    assert pictured(ask(store, [photograph("things", named=("x",))])).kinds.get("x") == kind


MANY = [{"id": number, "amount": number + 0.5, "note": None, "meta": {"b": 1, "a": [1]}} for number in range(10)]


def test_above_the_limit_rows_are_hashed_and_pinned_ones_kept_whole(api: Api, ask: Asking) -> None:
    picture = pictured(ask(of(api, MANY), [photograph("things", whole_rows=9, pinned=((3,), ("4",), (99,)))]))
    assert picture.hashes is not None
    assert (picture.size, set(picture.rows)) == (10, {(3,), (4,)})
    assert dict(zip(picture.columns, picture.rows[3,], strict=True))["amount"] == Decimal("3.5")


@pytest.mark.parametrize("hashed", [True, False])
def test_the_form_of_a_picture_may_be_asked_for(api: Api, ask: Asking, hashed: bool) -> None:
    picture = pictured(ask(of(api, MANY), [photograph("things", whole_rows=0 if not hashed else 99, hashed=hashed)]))
    assert (picture.hashes is not None) is hashed
    assert picture.size == 10


def hashes(api: Api, row: bytes) -> dict[Any, bytes]:
    picture = pictured(opened_and_asked(api, row))
    assert picture.hashes is not None
    return dict(picture.hashes)


def opened_and_asked(api: Api, row: bytes) -> Any:
    return of(api, Reply(b"[" + row + b"]")).look([photograph("things", hashed=True)])


@pytest.mark.parametrize(
    "row",
    [
        b'{"meta": {"b": 1.0, "a": [1]}, "id": 1, "amount": 2.50}',
        b'{"id": 1, "amount": 2.5e0, "meta": {"a": [1.0], "b": 1}, "note": null}',
    ],
)
def test_a_hash_is_the_same_whatever_the_order_of_names_and_the_form_of_numbers(api: Api, row: bytes) -> None:
    assert hashes(api, row) == hashes(api, b'{"id": 1, "amount": 2.5, "meta": {"b": 1, "a": [1]}}')


@pytest.mark.parametrize(
    "row",
    [
        b'{"id": 1, "x": "1"}',
        b'{"id": 1, "x": true}',
        b'{"id": 1, "x": 10}',
        b'{"id": 1, "x": [1]}',
        b'{"id": 1, "y": 1}',
        b'{"id": 1, "x": {"#": 1}}',
        b'{"id": 1, "x": "#1"}',
        b'{"id": 1, "x": -1}',
        b'{"id": 1, "x": "\\ud800"}',
    ],
)
def test_a_hash_tells_values_and_types_apart(api: Api, row: bytes) -> None:
    assert hashes(api, row) != hashes(api, b'{"id": 1, "x": 1}')


def test_two_pictures_are_laid_over_the_columns_of_both(api: Api) -> None:
    before, after = (
        pictured(of(api, rows).look([photograph("things")]))
        for rows in ([{"id": 1, "n": 1, "gone": "x"}], [{"id": 1, "n": 1.5, "new": True}, {"id": 2}])
    )
    before, after = joined(before, after)
    assert before.columns == after.columns == ("id", "n", "gone", "new")
    assert before.kinds == after.kinds == {"id": "integer", "n": "decimal", "gone": "text", "new": "boolean"}
    assert (before.rows[1,], after.rows[1,]) == ((1, 1, "x", None), (1, Decimal("1.5"), None, True))


def test_the_tables_of_an_api_are_its_declared_resources(api: Api, ask: Asking) -> None:
    assert ask(of(api, []), [Survey(10)]) == [Tables((Table("things", ("id",), (), {}),))]
    assert api.asked == []


def numbered(number: int, more: object = None, **headers: str) -> Reply:
    return Reply({"items": [{"id": number}], "next": more}, headers=headers)


def paged(api: Api, how: object, **resource: Any) -> Any:
    return opened(
        api.url, resources={"things": {"get": "/things", "rows": "/items", "key": "id", "next": how, **resource}}
    )


@pytest.mark.parametrize(
    "reference", ["?page=2", "/things?page=2", "{url}/things?page=2", "//127.0.0.1:{port}/things?page=2"]
)
def test_pages_are_followed_by_the_url_that_a_page_has(api: Api, ask: Asking, reference: str) -> None:
    api.replies["/things"] = numbered(1, reference.format(url=api.url, port=api.port))
    api.replies["/things?page=2"] = numbered(2, "?page=3")
    api.replies["/things?page=3"] = numbered(3, "")
    assert set(pictured(ask(paged(api, "/next"), [photograph("things")])).rows) == {(1,), (2,), (3,)}


@pytest.mark.parametrize("last", [None, "", False])
def test_pages_are_followed_by_a_cursor(api: Api, ask: Asking, last: object) -> None:
    def page(asked: Asked) -> Reply:
        return numbered(2, last) if asked.query.get("after") == "a&b=/é" else numbered(1, "a&b=/é")

    api.replies["/things"] = page
    store = paged(api, {"at": "/next", "as": "after"}, query={"state": "open", "limit": 1})
    assert set(pictured(ask(store, [photograph("things")])).rows) == {(1,), (2,)}
    assert api.targets == ["/things?state=open&limit=1", "/things?state=open&limit=1&after=a%26b%3D%2F%C3%A9"]


@pytest.mark.parametrize(
    "header",
    [
        '</things?page=2>; rel="next"',
        '</things?page=1>; rel="prev", </things?page=2>; rel=next',
        '<?page=2>; title="a, b; <c>"; REL="last next"',
        '<https://evil.example/>; rel="previous next-archive", <{url}/things?page=2>;rel="next"',
    ],
)
def test_pages_are_followed_by_the_link_header(api: Api, ask: Asking, header: str) -> None:
    api.replies["/things"] = Reply([{"id": 1}], headers={"Link": header.format(url=api.url)})
    api.replies["/things?page=2"] = Reply([{"id": 2}], headers={"Link": '</things>; rel="first"'})
    store = paged(api, "link", rows="")
    assert set(pictured(ask(store, [photograph("things")])).rows) == {(1,), (2,)}


def test_more_pages_than_the_declaration_speaks_of_are_no_picture(api: Api, ask: Asking) -> None:
    api.replies["/things"] = Reply([{"id": 1}], headers={"Link": '</things?page=2>; rel="next"'})
    assert "it has more pages" in why(ask(of(api, api.replies["/things"]), [photograph("things")]))


@pytest.mark.parametrize(
    ("beside", "says", "advice"),
    [
        ({"next": "/things?page=2"}, "/next", "declare `next: /next`"),
        ({"next": 2}, "/next", "declare `next: {at: /next, as: …}`"),
        ({"nextPageToken": "p2"}, "/nextPageToken", "declare `next: {at: /nextPageToken, as: …}`"),
        ({"has_more": True, "next_cursor": "c"}, "/next_cursor", "declare `next: {at: /next_cursor, as: …}`"),
        ({"has_more": True}, "/has_more", "declare where a page names the next one as `next`, or ask for larger pages"),
        ({"pagination": {"has_next": True}}, "/pagination/has_next", "ask for larger pages"),
        ({"_links": {"next": {"href": "?page=2"}}}, "/_links/next", "declare `next: /_links/next/href`"),
        ({"links": [{"rel": "self", "href": "/"}, {"rel": "next", "href": "/2"}]}, "/links/1", "ask for larger pages"),
        ({"paging": {"next": {"after": "c"}}}, "/paging/next", "ask for larger pages"),
        ({"@odata.nextLink": "https://x.test/?$skip=1"}, "/@odata.nextLink", "declare `next: /@odata.nextLink`"),
        ({"a/b": 1, "meta": {"next/page": "/2"}}, "/meta/next~1page", "declare `next: /meta/next~1page`"),
        ({"last": False, "number": 0}, "/last", "ask for larger pages"),
        ({"truncated": True}, "/truncated", "ask for larger pages"),
    ],
)
def test_a_page_that_promises_more_than_is_followed_is_no_picture(
    api: Api, ask: Asking, beside: dict[str, object], says: str, advice: str
) -> None:
    body = {"data": {"items": [{"id": 1}]}, **beside}
    for declared, why_not in (
        (None, "the resource declares no `next`"),
        ("link", "its Link header, which is its `next`, names none"),
        ("/gone", "at /gone, which is its `next`, nothing names one"),
    ):
        said = why(ask(of(api, body, rows="/data/items", next=declared), [photograph("things")]))
        assert f"it has more pages ({says} says so), and {why_not}: " in said
        assert advice in said
        assert said.endswith("or `next: none`, if what it answers is all")
    inside = {"data": {"items": [{"id": 1}], **beside}}
    assert f"(/data{says} says so)" in why(ask(of(api, inside, rows="/data/items"), [photograph("things")]))
    whole = of(api, body, rows="/data/items", next="none")
    assert set(pictured(ask(whole, [photograph("things")])).rows) == {(1,)}


@pytest.mark.parametrize(
    "beside",
    [
        {"next": None, "has_more": False, "nextPageToken": " ", "pagination": {"has_next": False}, "more": "see docs"},
        {"links": {"next": {"href": None}, "self": "/things", "last": "/things?page=1"}, "next_cursor": "0"},
        # Some name a next page on the last one, too, and say beside it that there is none.
        {"meta": {"has_more": False}, "links": {"next": "/things?after=1"}},
        {"last": True, "totalPages": 1, "next_offset": 1},
        {"truncated": False, "previous": "/things?page=0", "total": 1},
        {"included": [{"next": "/2", "has_more": True}], "other": {"next": "/2"}},
    ],
)
def test_a_page_that_promises_nothing_is_the_last_one(api: Api, ask: Asking, beside: dict[str, object]) -> None:
    for declared in (None, "link", "/next"):
        store = of(api, {"items": [{"id": 1}], **beside}, rows="/items", next=declared)
        assert pictured(ask(store, [photograph("things")])).claimed == 0


def test_what_a_row_holds_promises_no_page(api: Api, ask: Asking) -> None:
    row = {"id": 1, "next": "/things/2", "has_more": True, "total": 7}
    assert pictured(ask(of(api, row), [photograph("things")])).size == 1
    assert pictured(ask(of(api, [row]), [photograph("things")])).size == 1
    assert pictured(ask(of(api, {"meta": row}, rows="/meta"), [photograph("things")])).claimed == 0


def test_the_last_of_several_pages_may_promise_no_more_either(api: Api, ask: Asking) -> None:
    api.replies["/things"] = numbered(1, "?page=2")
    api.replies["/things?page=2"] = Reply({"items": [{"id": 2}], "next": None, "has_more": True})
    assert "it has more pages (/has_more says so)" in why(ask(paged(api, "/next"), [photograph("things")]))


def test_a_link_header_where_another_next_is_declared_is_no_picture(api: Api, ask: Asking) -> None:
    api.replies["/things"] = numbered(1, None, Link='</things?page=2>; rel="next"')
    said = why(ask(paged(api, "/next"), [photograph("things")]))
    assert "it has more pages (its Link header says so), and at /next, which is its `next`, nothing names one" in said
    assert "declare `next: link`" in said
    assert pictured(ask(paged(api, "none"), [photograph("things")])).size == 1


@pytest.mark.parametrize(
    ("beside", "resource", "claimed"),
    [
        ({"total": 3}, {}, 3),
        ({"meta": {"pagination": {"total_count": "3", "page": 1}}}, {}, 3),
        ({"total": {"value": 3, "relation": "eq"}}, {}, 3),
        ({"total": 1, "count": True}, {}, 0),
        ({"total": 3}, {"next": "none"}, 0),
        ({"total": 3, "next": None}, {"next": "/next"}, 0),
    ],
)
def test_that_there_are_more_entries_than_rows_is_kept_and_no_proof(
    api: Api, ask: Asking, beside: dict[str, object], resource: dict[str, str], claimed: int
) -> None:
    store = of(api, {"items": [{"id": 1}], **beside}, rows="/items", **resource)
    assert pictured(ask(store, [photograph("things")])).claimed == claimed


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ("http://evil.example/x?k=s3cret", None, "its next page lies at http://evil.example, and only"),
        ("https://127.0.0.1/x", None, "its next page lies at https://127.0.0.1, and only"),
        ("http://me:s3cret@127.0.0.1/", None, "the URL of its next page holds a user or a password"),
        ("/things", None, "is one that was read before"),
        ("?page=2", "?page=2", "is one that was read before"),
        ("?page=2", "/things", "is one that was read before"),
        ("/gone", None, "a page that it named as the next one answered 404"),
        (17, None, "what stands at /next is no URL of a next page"),
        ({"href": "?page=2"}, None, "what stands at /next is no URL of a next page"),
    ],
)
def test_pages_that_lead_elsewhere_or_in_circles_are_no_picture(
    api: Api, ask: Asking, first: object, second: object, reason: str
) -> None:
    api.replies["/things"] = numbered(1, first)
    api.replies["/things?page=2"] = numbered(2, second)
    said = why(ask(paged(api, "/next"), [photograph("things")]))
    assert reason in said
    assert "s3cret" not in said


def test_a_cursor_that_is_none_is_no_picture(api: Api, ask: Asking) -> None:
    api.replies["/things"] = numbered(1, {"a": 1})
    store = paged(api, {"at": "/next", "as": "after"})
    assert "what stands at /next is no cursor" in why(ask(store, [photograph("things")]))


def test_pages_without_end_are_given_up(api: Api, ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guardrail.stores.http.visits.MOST_PAGES", 20)

    def page(asked: Asked) -> Reply:
        number = int(asked.query.get("page", "1"))
        return numbered(number, f"?page={number + 1}")

    api.replies["/things"] = page
    assert "it has more than 20 pages" in why(ask(paged(api, "/next"), [photograph("things")]))
    assert len(api.asked) == 20


def test_a_row_that_moves_to_the_next_page_meanwhile_is_no_picture(api: Api, ask: Asking) -> None:
    api.replies["/things"] = numbered(1, "?page=2")
    api.replies["/things?page=2"] = numbered(1)
    assert "the key (id) is not unique" in why(ask(paged(api, "/next"), [photograph("things")]))


def tagged(api: Api, tag: str) -> None:
    """Answer with a tag, and with 304 to who knows it."""
    api.replies["/things"] = lambda asked: (
        Reply(status=304, headers={"ETag": tag})
        if asked.headers.get("if-none-match") == tag
        else Reply([{"id": len(api.asked)}], headers={"ETag": tag})
    )


def statuses(answers: list[Any]) -> list[int | None]:
    return [answer.exchange.status for answer in answers]


def test_what_has_not_changed_is_sent_once_in_a_run(api: Api, ask: Asking) -> None:
    store = of(api, [])
    tagged(api, '"v1"')
    run = store.for_run()
    first, second = (ask(run, [photograph("things")]) for _ in range(2))
    assert (statuses(first), statuses(second)) == ([200], [304])
    assert pictured(first) == pictured(second)
    tagged(api, '"v2"')
    third = ask(run, [photograph("things")])
    assert (statuses(third), set(pictured(third).rows)) == ([200], {(3,)})
    ask(store.for_run(), [photograph("things")])
    assert [asked.headers.get("if-none-match") for asked in api.asked] == [None, '"v1"', '"v1"', None]


@pytest.mark.parametrize("tag", ['W/"v1"', "v1", '"v\x801"', ""])
def test_a_tag_that_does_not_tell_every_change_is_not_relied_on(api: Api, ask: Asking, tag: str) -> None:
    store = of(api, Reply([{"id": 1}], headers={"ETag": tag})).for_run()
    ask(store, [photograph("things")])
    ask(store, [photograph("things")])
    assert ["if-none-match" in asked.headers for asked in api.asked] == [False, False]


def test_what_is_kept_is_bounded(api: Api, ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guardrail.stores.http.keeping.MOST_KEPT", 100)
    for number in range(3):
        api.replies[f"/{number}"] = Reply({"id": 1, "x": "x" * 50}, headers={"ETag": f'"{number}"'})
    resources = {f"r{number}": {"get": f"/{number}", "key": "id"} for number in range(3)}
    store = opened(api.url, resources=resources).for_run()
    questions = [photograph(name) for name in resources]
    ask(store, questions)
    ask(store, questions)
    assert len(api.asked) == 6
    assert sum("if-none-match" in asked.headers for asked in api.asked) < 3


def test_a_304_that_nobody_asked_for_says_nothing(api: Api, ask: Asking) -> None:
    store = of(api, Reply(status=304)).for_run()
    assert "it answered 304, though nothing of it is known" in why(ask(store, [photograph("things")]))


@pytest.mark.parametrize("where", [None, "url", "mapping", "function"])
def test_where_a_store_lies_may_be_said_in_its_place(crm: Crm, ask: Asking, where: str | None) -> None:
    token = iter("abc")
    forms: dict[str | None, object] = {
        None: None,
        "url": crm.base,
        "mapping": {"url": crm.base, "headers": {"authorization": "Bearer x"}},
        "function": lambda: {"url": crm.base, "headers": {"Authorization": f"Bearer {next(token)}"}},
    }
    declared: dict[str, Any] = {"resources": {"tickets": TICKETS}, "headers": {"Authorization": "Bearer declared"}}
    store = opened("http://127.0.0.1:1" if where else crm.base, where=forms[where], **declared).for_run()
    question = photograph("tickets", values={"customer_id": 3})
    assert pictured(ask(store, [question])).size == pictured(ask(store, [question])).size == 2
    sent = [asked.headers["authorization"].removeprefix("Bearer ") for asked in crm.asked]
    assert sent == {"mapping": ["x", "x"], "function": ["a", "b"]}.get(str(where), ["declared"] * 2)


def test_a_timeout_must_leave_some_time() -> None:
    with pytest.raises(StoreError, match="the timeout of the store crm must be more than 0 s"):
        opened("http://127.0.0.1:1", timeout="0s")


def test_a_function_has_to_tell_one_url_in_a_run(crm: Crm, api: Api, ask: Asking) -> None:
    urls = iter([crm.base, api.url, crm.base])
    store = opened("http://127.0.0.1:1", where=lambda: next(urls), resources={"tickets": TICKETS})
    run, question = store.for_run(), photograph("tickets", values={"customer_id": 3})
    assert pictured(ask(run, [question])).size == 2
    assert "its function tells another URL than at the beginning of the run" in why(ask(run, [question]))
    assert pictured(ask(run, [question])).size == 2
    assert api.asked == []


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (17, "cannot be opened from int"),
        ("ftp://s3cret", "is no URL that begins with http"),
        ("http://host/?key=s3cret", "holds a query"),
        ({"uri": "s3cret"}, "other keys than url and headers"),
        ({}, "other keys than url and headers"),
        ({"headers": {"X": "s3cret\n"}}, "a line break"),
        ({"headers": {"Host": "s3cret"}}, "that the store sets by itself"),
        ({"headers": {"X": 1}}, "is no text"),
        ({"headers": "s3cret"}, "are no mapping"),
        (RuntimeError("s3cret"), "where it is could not be told (RuntimeError)"),
    ],
)
def test_a_function_that_tells_no_place_is_no_answer(ask: Asking, told: object, reason: str) -> None:
    def where() -> object:
        if isinstance(told, Exception):
            raise told
        return told

    [answer] = ask(opened("http://127.0.0.1:1", where=where), [photograph("tickets")])
    assert isinstance(answer, Unanswered)
    assert reason in answer.why
    assert "s3cret" not in answer.why
