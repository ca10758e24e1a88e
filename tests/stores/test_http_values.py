"""Values that are read of an HTTP API: what is there, what is not, and what cannot be said."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from guardrail.pictures import Rows, Unanswered
from guardrail.stores.http.messages import MOST_BYTES
from guardrail.stores.store import Fetch
from support.apis import Api, Asking, Crm, Reply, fetch, opened, raw_server, why

DOCUMENT = {"state": "open", "hours": 1, "closed_at": None, "owner": {"id": 3}, "tags": ["a", {"b/c": 1}]}
ABSENT = Rows(("state",), ())


@pytest.mark.parametrize(
    ("at", "value"),
    [
        ("/state", "open"),
        ("/closed_at", None),
        ("/owner/id", 3),
        ("/tags/0", "a"),
        ("/tags/1/b~1c", 1),
        ("/owner", {"id": 3}),
        ("", DOCUMENT),
    ],
)
def test_what_stands_at_a_pointer_is_read(api: Api, ask: Asking, at: str, value: object) -> None:
    api.replies["/tickets/7"] = Reply(DOCUMENT)
    [rows] = ask(opened(api.url), [fetch("/tickets/:id", at, id=7)])
    assert isinstance(rows, Rows)
    assert rows.rows == ((value,),)


@pytest.mark.parametrize("at", ["/nothing", "/state/0", "/tags/9", "/owner/name", "/tags/-"])
def test_a_pointer_that_leads_nowhere_finds_nothing(api: Api, ask: Asking, at: str) -> None:
    api.replies["/tickets/7"] = Reply(DOCUMENT)
    [rows] = ask(opened(api.url), [fetch("/tickets/7", at)])
    assert isinstance(rows, Rows)
    assert rows.rows == ()


@pytest.mark.parametrize("status", [404, 410])
def test_what_is_not_found_is_not_there(api: Api, ask: Asking, status: int) -> None:
    api.replies["/tickets/7"] = Reply({"state": "error"}, status)
    assert ask(opened(api.url), [fetch("/tickets/7", "/state")]) == [ABSENT]


def test_which_statuses_mean_that_there_is_none_can_be_declared(api: Api, ask: Asking) -> None:
    api.replies["/empty"] = Reply(b"", 204)
    api.replies["/hidden"] = Reply({}, 403)
    store = opened(api.url, absent=[204, 403])
    assert ask(store, [fetch("/empty", "/state"), fetch("/hidden", "/state")]) == [ABSENT, ABSENT]
    assert "answered 404" in why(ask(store, [fetch("/unknown")]))


@pytest.mark.parametrize("status", [201, 204, 206, 304, 400, 401, 403, 407, 418, 422, 500, 501])
def test_any_other_status_says_neither_that_it_is_there_nor_that_it_is_not(api: Api, ask: Asking, status: int) -> None:
    api.replies["/tickets/7"] = Reply({"state": "open"}, status)
    reason = why(ask(opened(api.url), [fetch("/tickets/:id", "/state", id=7)]))
    assert reason.startswith(f"crm /tickets/:id could not be looked at: it answered {status}")
    assert api.targets == ["/tickets/7"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "no JSON"),
        (b"<html>Log in, please</html>", "no JSON"),
        (b'{"state": "open"', "no JSON"),
        (b'{"state": "open"} {}', "no JSON"),
        (b'{"state": "open", "state": "closed"}', "a name twice"),
        (b'{"state": NaN}', "it holds NaN"),
        (b'{"state": -Infinity}', "it holds -Infinity"),
        (b'{"state": ' + b"9" * 401 + b"}", "more than 400 digits"),
        (b'{"state": ' + b"9" * 5000 + b"}", "more than 400 digits"),
        (b'{"state": 1e999999999}', "more than 400 digits"),
        (b'{"state": 0.' + b"1" * 400 + b"}", "more than 400 digits"),
        (b'{"state": "\xff"}', "not UTF-8"),
        ('{"state": "open"}'.encode("utf-16"), "not UTF-8"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
        (b'{"state": ' + b"[" * 200 + b"]" * 200 + b"}", "nested more than 100 deep"),
    ],
)
def test_what_is_not_plainly_json_says_nothing(api: Api, ask: Asking, body: bytes, reason: str) -> None:
    api.replies["/tickets/7"] = Reply(body)
    assert reason in why(ask(opened(api.url), [fetch("/tickets/7", "/state")]))


def test_numbers_are_read_exactly(api: Api, ask: Asking) -> None:
    api.replies["/n"] = Reply(b'[19.90, 0.1000000000000000000001, 9007199254740993, 1e2, "1.0"]')
    [rows] = ask(opened(api.url), [fetch("/n")])
    assert isinstance(rows, Rows)
    [[numbers]] = rows.rows
    assert repr(numbers) == (
        "[Decimal('19.90'), Decimal('0.1000000000000000000001'), 9007199254740993, Decimal('1E+2'), '1.0']"
    )


def zipped(document: object, **headers: str) -> Reply:
    return Reply(gzip.compress(json.dumps(document).encode()), headers={"Content-Encoding": "gzip", **headers})


def test_a_compressed_answer_is_read(api: Api, ask: Asking) -> None:
    api.replies["/tickets/7"] = zipped({"state": "open"})
    assert ask(opened(api.url), [fetch("/tickets/7", "/state")]) == [Rows(("state",), (("open",),))]
    assert api.asked[0].headers["accept-encoding"] == "gzip"


BOMB = gzip.compress(b" " * (MOST_BYTES * 4))
WHOLE = gzip.compress(b"{}")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(b" " * (MOST_BYTES + 1)), "more than 16 MiB"),
        (Reply(BOMB, headers={"Content-Encoding": "gzip"}), "more than 16 MiB"),
        (Reply(WHOLE[:-5], headers={"Content-Encoding": "gzip"}), "not one whole gzip file"),
        (Reply(WHOLE * 1000, headers={"Content-Encoding": "gzip"}), "not one whole gzip file"),
        (Reply(b"{}", headers={"Content-Encoding": "gzip"}), "no gzip"),
        (Reply(b"{}", headers={"Content-Encoding": "br"}), "an encoding that was not asked for"),
        (Reply(gzip.compress(BOMB), headers={"Content-Encoding": "gzip, gzip"}), "an encoding that was not asked for"),
    ],
)
def test_an_answer_is_bounded_before_and_after_it_is_decompressed(
    api: Api, ask: Asking, reply: Reply, reason: str
) -> None:
    api.replies["/tickets/7"] = reply
    assert reason in why(ask(opened(api.url), [fetch("/tickets/7")]))


def test_an_endless_answer_is_given_up_when_it_is_too_large(ask: Asking) -> None:
    def pour(connection: Any) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b" " * 2**20)

    with raw_server(pour) as url:
        assert "more than 16 MiB" in why(ask(opened(url), [fetch("/")]))


def test_one_look_asks_once_for_what_several_questions_are_about(api: Api, ask: Asking) -> None:
    api.replies["/tickets/7"] = Reply(DOCUMENT)
    questions = [fetch("/tickets/:id", at, id=7) for at in ("/state", "/owner/id", "/nothing")]
    questions.append(fetch("/tickets/:id", "/state", id=8))
    answers = ask(opened(api.url), questions)
    assert [answer.rows for answer in answers if isinstance(answer, Rows)] == [(("open",),), ((3,),), (), ()]
    assert api.targets == ["/tickets/7", "/tickets/8"]


def test_one_question_that_cannot_be_answered_does_not_spoil_the_others(api: Api, ask: Asking) -> None:
    api.replies["/tickets/7"] = Reply(DOCUMENT)
    api.replies["/tickets/8"] = Reply({}, 500)
    questions: list[Fetch] = [fetch("/tickets/:id", "/state", id=number) for number in ("8", "7", "a/b", "7")]
    answers = ask(opened(api.url), questions)
    assert [isinstance(answer, Unanswered) for answer in answers] == [True, False, True, False]


def test_a_request_bears_the_declared_headers_and_asks_past_caches(crm: Crm, ask: Asking) -> None:
    headers = {"Authorization": "Bearer s3cret", "X-Tenant": "a b", "accept": "application/vnd.crm+json"}
    ask(opened(crm.base, headers=headers), [fetch("/tickets/7", query={"include": "owner"})])
    [asked] = crm.asked
    assert (asked.method, asked.target) == ("GET", "/api/tickets/7?include=owner")
    sent = {name: asked.headers[name] for name in ("authorization", "x-tenant", "accept", "cache-control", "host")}
    assert sent == {
        "authorization": "Bearer s3cret",
        "x-tenant": "a b",
        "accept": "application/vnd.crm+json",
        "cache-control": "no-cache",
        "host": f"127.0.0.1:{crm.port}",
    }
    assert asked.headers["user-agent"] == "guardrail"
    assert not {"cookie", "if-none-match", "content-length"} & asked.headers.keys()
