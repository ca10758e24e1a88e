"""How an HTTP API is waited for: tried again while it is busy or away, and never for longer than a look may take."""

from __future__ import annotations

import gc
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import repeat

import pytest

from guardrail.pictures import Answer, Rows, Unanswered
from support.apis import Api, Asked, Asking, Reply, fetch, opened, raw_server, why

QUESTION = fetch("/tickets/7", "/state")
OPEN = [Rows(("state",), (("open",),))]


def after(*failures: Reply) -> Callable[[Asked], Reply]:
    """A server that answers so at first, and then well."""
    replies = iter((*failures, *repeat(Reply({"state": "open"}), 50)))
    return lambda asked: next(replies)


def exchange(answers: list[Answer]) -> tuple[int | None, int]:
    """The last status, and how often a request was sent again."""
    [answer] = answers
    assert isinstance(answer, Rows | Unanswered)
    assert answer.exchange is not None
    return answer.exchange.status, answer.exchange.resends


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_server_that_is_busy_or_away_is_asked_again(api: Api, ask: Asking, status: int) -> None:
    api.replies["/tickets/7"] = after(Reply({}, status), Reply({}, status))
    answers = ask(opened(api.url), [QUESTION])
    assert answers == OPEN
    assert exchange(answers) == (200, 2)


@pytest.mark.parametrize("wait", ["0", "-1", "soon", "", "Sun, 06 Nov 1994 08:49:37 GMT"])
def test_a_wait_that_is_asked_for_and_means_nothing_is_not_kept(api: Api, ask: Asking, wait: str) -> None:
    api.replies["/tickets/7"] = after(Reply({}, 429, {"Retry-After": wait}))
    assert ask(opened(api.url), [QUESTION]) == OPEN


@pytest.mark.parametrize("wait", ["3600", "9" * 30, "Thu, 06 Nov 2994 08:49:37 GMT", "Thu, 06 Nov 2994 08:49:37"])
def test_a_wait_that_is_longer_than_the_look_ends_it_at_once(api: Api, ask: Asking, wait: str) -> None:
    api.replies["/tickets/7"] = after(Reply({}, 429, {"Retry-After": wait}))
    assert "it answered 429: it is asked too often" in why(ask(opened(api.url), [QUESTION]))
    assert len(api.asked) == 1


def test_a_wait_that_is_asked_for_is_kept(api: Api, ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guardrail.stores.http.visits.FIRST_PAUSE", 0.001)
    api.replies["/tickets/7"] = after(Reply({}, 503, {"Retry-After": "1"}))
    assert "answered 503" in why(ask(opened(api.url, timeout="900ms"), [QUESTION]))
    assert len(api.asked) == 1


def test_a_server_that_stays_away_says_nothing_when_the_time_is_up(api: Api, ask: Asking) -> None:
    api.replies["/tickets/7"] = Reply({}, 503)
    assert "it answered 503: it is away" in why(ask(opened(api.url, timeout="600ms"), [QUESTION]))
    assert len(api.asked) > 1


def test_a_connection_that_breaks_off_is_made_again(ask: Asking) -> None:
    broken = iter((b"", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", b"220 mail.example ESMTP\r\n"))

    def serve(connection: socket.socket) -> None:
        good = b'HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{"state": "open"}'
        connection.sendall(next(broken, good))

    with raw_server(serve) as url:
        answers = ask(opened(url), [QUESTION])
    assert answers == OPEN
    assert exchange(answers) == (200, 3)


def test_a_server_that_is_not_there_says_nothing(ask: Asking) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    reason = why(ask(opened(f"http://127.0.0.1:{port}", timeout="500ms"), [QUESTION]))
    assert "it cannot be connected to: the connection is refused" in reason


def hang(connection: socket.socket) -> None:
    connection.recv(1)


def drip_head(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Endless: ")
    drip(connection, b"x")


def drip_body(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    drip(connection, b" ")


def drip_chunks(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    drip(connection, b"1\r\n \r\n")


def drip_continue(connection: socket.socket) -> None:
    drip(connection, b"HTTP/1.1 100 Continue\r\n\r\n")


def drip_not_found(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 1000000\r\n\r\n")
    drip(connection, b" ")


def drip(connection: socket.socket, piece: bytes) -> None:
    """Send a piece every now and then for as long as somebody listens."""
    connection.settimeout(0.05)
    while True:
        connection.sendall(piece)
        try:
            if not connection.recv(1):
                return
        except TimeoutError:
            continue


@pytest.mark.parametrize("serve", [hang, drip_head, drip_body, drip_chunks, drip_continue, drip_not_found])
def test_however_little_comes_at_a_time_a_look_ends_in_time(
    ask: Asking, serve: Callable[[socket.socket], None]
) -> None:
    with raw_server(serve) as url:
        assert "it took longer than 0.4 s" in why(ask(opened(url, timeout="400ms"), [QUESTION]))


@contextmanager
def deaf_server() -> Generator[str]:
    """The URL of a server that never takes a connection."""
    with socket.create_server(("127.0.0.1", 0), backlog=1) as listening:
        yield f"https://127.0.0.1:{listening.getsockname()[1]}"


def test_a_handshake_that_never_comes_ends_in_time_and_leaves_nothing_open(ask: Asking) -> None:
    with deaf_server() as url:
        assert "it took longer than 0.4 s" in why(ask(opened(url, timeout="400ms"), [QUESTION]))
    gc.collect()  # a socket that is still open would warn now, and warnings are errors


def flood_head(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"X-Endless: " + b"x" * 1000 + b"\r\n")


def flood_line(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"x" * 2**16)


def flood_continue(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)


@pytest.mark.parametrize("serve", [flood_head, flood_line, flood_continue])
def test_headers_without_end_are_not_read_without_end(ask: Asking, serve: Callable[[socket.socket], None]) -> None:
    with raw_server(serve) as url:
        reason = why(ask(opened(url, timeout="500ms"), [QUESTION]))
    assert "does not speak HTTP" in reason or "took longer" in reason


def test_what_was_answered_in_time_stands_though_another_question_took_too_long(api: Api, ask: Asking) -> None:
    def late(asked: Asked) -> Reply:
        api.released.wait(30)
        return Reply({})

    api.replies["/tickets/7"] = Reply({"state": "open"})
    api.replies["/slow"] = late
    answers = ask(opened(api.url, timeout="500ms"), [QUESTION, fetch("/slow"), QUESTION, fetch("/tickets/9")])
    api.released.set()
    assert [isinstance(answer, Rows) for answer in answers] == [True, False, True, False]
