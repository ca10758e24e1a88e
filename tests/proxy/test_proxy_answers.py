"""Servers over HTTP that answer badly: the client gets an error, a write is in doubt, nothing gets by unseen."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from guardrail.ledger.records import RunHistory
from proxy.test_proxy_calls import text
from proxy.test_proxy_http import Client, Place, answer_in
from support.mcp_peers import PATIENCE
from support.project import Project

Runs = Callable[[], list[RunHistory]]
JSON, EVENTS = "application/json", "text/event-stream"
FINE = b'{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "fine"}]}}'
OTHER = FINE.replace(b"fine", b"other")


@dataclass
class Scripted:
    """A server that answers every call as it is told: by a status, a type, a body in which %d is the call's id."""

    status: int = 200
    kind: str = JSON
    body: bytes = FINE
    headers: dict[str, str] = field(default_factory=dict[str, str])
    cut: bool = False
    """Whether the connection breaks where the body has ended, and more was announced."""
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list[tuple[str, dict[str, str]]])

    def handler(self) -> type[BaseHTTPRequestHandler]:
        script = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                message: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["content-length"])))
                script.asked.append((self.path, dict(self.headers)))
                body = script.body.replace(b"%d", str(message["id"]).encode())
                self.send_response(script.status)
                for name, value in script.headers.items():
                    self.send_header(name, value)
                self.send_header("content-type", script.kind)
                self.send_header("content-length", str(len(body) + 1_000 * script.cut))
                self.end_headers()
                self.wfile.write(body)
                self.close_connection = script.cut

            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

        return Handler


@pytest.fixture
def script() -> Scripted:
    return Scripted()


@pytest.fixture
def place(project: Project, script: Scripted) -> Iterator[Place]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), script.handler())
    serving = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    serving.start()
    with ExitStack() as stack:
        yield Place(project, stack, server.server_port)
    server.shutdown()
    server.server_close()
    serving.join()


def answered(place: Place, runs: Runs) -> tuple[httpx.Response, str]:
    """The response to a write, and what the ledger says that it came to."""
    peer, url = place.listen()
    client = Client(url, {"mcp-session-id": "s1"})
    response = client.post("tools/call", {"name": "refund_order", "arguments": {"order_id": 17}})
    peer.process.send_signal(signal.SIGTERM)
    assert peer.ended() == 0
    (run,) = runs()
    (call,) = run.calls
    assert call.outcome is not None
    return response, call.outcome.outcome


@pytest.mark.parametrize(
    ("kind", "body", "cut"),
    [
        (JSON, b'{"jsonrpc"', True),
        (JSON, FINE.replace(b"%d", b'"1"'), False),
        (JSON, b"[" + FINE + b"]", False),
        (JSON, b"", False),
        (JSON, b"\xff\xfe{", False),
        (JSON, b"[" * 100_000, False),
        ("text/html", b"<html>it went wrong</html>", False),
        (EVENTS, b": nothing\n\n", False),
        (EVENTS, b": nothing\n\n", True),
        (EVENTS, b"data: " + FINE + b"\n", False),
        (EVENTS, b"data: " + FINE.replace(b"fine", b"f\xffne") + b"\n\n", False),
        (EVENTS, b"data: not JSON\n\n", False),
    ],
)
def test_an_answer_that_is_none_leaves_a_write_in_doubt(
    place: Place, script: Scripted, runs: Runs, kind: str, body: bytes, cut: bool
) -> None:
    script.kind, script.body, script.cut = kind, body, cut
    response, outcome = answered(place, runs)
    assert answer_in(response)["error"]["code"] == -32000
    assert outcome == "in_doubt"
    assert b"\xff" not in response.content  # what cannot be read does not get by unseen


@pytest.mark.parametrize(
    "body",
    [
        b"data: " + FINE + b"\n\ndata: " + OTHER + b"\n\n",
        b"\xef\xbb\xbfdata: " + FINE + b"\n\n",
        b"data: " + FINE + b"\r\r",
        b"data:" + FINE + b"\r\nid: 5\r\n\r\n",
        b"data: not JSON\n\ndata: " + FINE + b"\n\n",
        b"id: 1\ndata:\n\ndata: " + FINE + b"\n\n",
        b"data: " + FINE.replace(b", ", b",\ndata: ") + b"\n\n",
        b"data: [" + FINE + b"]\n\n",
    ],
)
def test_an_answer_in_any_form_of_events_is_heard_once(place: Place, script: Scripted, runs: Runs, body: bytes) -> None:
    script.kind, script.body = EVENTS, body
    response, outcome = answered(place, runs)
    assert outcome == "ok"
    assert b"fine" in response.content
    assert b"other" not in response.content
    assert b"not JSON" not in response.content


@pytest.mark.parametrize(("status", "outcome"), [(307, "error"), (308, "error"), (302, "in_doubt"), (303, "in_doubt")])
def test_no_client_is_led_past_the_guard(place: Place, script: Scripted, runs: Runs, status: int, outcome: str) -> None:
    script.status, script.body = status, b""
    script.headers = {"location": f"http://127.0.0.1:{place.port}/mcp/"}
    response, came_to = answered(place, runs)
    assert "location" not in response.headers
    assert "--url" in answer_in(response)["error"]["message"]
    assert came_to == outcome


@pytest.mark.parametrize("name", ["mcp-session-id", "origin", "authorization"])
def test_a_header_that_says_who_asks_stands_once(place: Place, script: Scripted, name: str) -> None:
    _, url = place.listen()
    headers = [("content-type", JSON), ("accept", JSON), *[(name, "http://localhost")] * 2]
    response = httpx.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=headers, timeout=PATIENCE)
    assert response.status_code == 400
    assert script.asked == []


def test_the_queries_of_both_places_reach_the_server(place: Place, script: Scripted) -> None:
    place.path = "/mcp?key=1"
    _, url = place.listen()
    assert text(Client(f"{url}?more=2").call("lookup_order", order_id=17)) == "fine"
    assert [path for path, _ in script.asked] == ["/mcp?key=1&more=2"]


def test_the_scheme_of_a_token_has_no_case(place: Place) -> None:
    _, url = place.listen(GUARDRAIL_MCP_TOKEN="t0ken")
    for shown in ("Bearer t0ken", "bearer t0ken", "BEARER  t0ken"):
        assert text(Client(url, {"authorization": shown}).call("lookup_order", order_id=17)) == "fine"
    for shown in ("t0ken", "Basic t0ken", "Bearer", "Bearer t0ken2"):
        assert Client(url, {"authorization": shown}).post("ping").status_code == 401
