"""Real HTTP servers on loopback: a ticket system that tools write to, and servers that misbehave."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from guardrail.declare.configuration import StoreDeclaration
from guardrail.declare.durations import seconds
from guardrail.declare.store_consistency import store_faults
from guardrail.pictures import Answer, Picture, Unanswered
from guardrail.query.requests import prove_request
from guardrail.run.apis import api_of
from guardrail.stores.opening import open_api
from guardrail.stores.store import Fetch, Photograph, Question, Store


@dataclass(frozen=True)
class Asked:
    """A request as a server saw it; header names are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query))


@dataclass(frozen=True)
class Reply:
    """What a server answers; a body that is no bytes is written as JSON."""

    body: object = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


Answering: TypeAlias = Callable[[Asked], Reply]


class Api:
    """A server that answers as it is told: by path, a reply or what makes one.

    `asked` is what it was asked so far; a reply may wait for `released`.
    """

    def __init__(self, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> None:
        self.replies: dict[str, Reply | Answering] = {}
        self.asked: list[Asked] = []
        self.released = threading.Event()
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 30

            def do_GET(self) -> None:
                headers = {name.lower(): ", ".join(self.headers.get_all(name, [])) for name in self.headers}
                api._answer(self, Asked(self.command, self.path, headers))

            def log_message(self, format: str, *args: Any) -> None:
                """Tell nobody."""

        class Server(ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                """A client that breaks off is no failure of the test."""

            def get_request(self) -> tuple[Any, Any]:
                connection, address = super().get_request()
                if tls is None:
                    return connection, address
                # The handshake is made by the thread of the connection, when it first reads.
                secure = tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
                return secure, address

        self._server = Server((host, 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.port: int = self._server.server_address[1]
        name = f"[{host}]" if ":" in host else host
        self.url = f"{'https' if tls else 'http'}://{name}:{self.port}"

    def _answer(self, handler: BaseHTTPRequestHandler, asked: Asked) -> None:
        self.asked.append(asked)
        found = self.replies.get(asked.target) or self.replies.get(asked.path) or Reply({"error": "not found"}, 404)
        reply = found if isinstance(found, Reply) else found(asked)
        handler.send_response(reply.status)
        for name, value in reply.headers.items():
            handler.send_header(name, value)
        if reply.status != 304:
            handler.send_header("Content-Length", str(len(reply.content)))
        handler.end_headers()
        if reply.status != 304:
            handler.wfile.write(reply.content)

    @property
    def targets(self) -> list[str]:
        """The paths and queries that it was asked for."""
        return [asked.target for asked in self.asked]

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Crm(Api):
    """A ticket system below `/api`: tickets by customer as pages or a list, and each for itself. Tools write to it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.tickets: dict[int, dict[str, object]] = {
            7: {"id": 7, "customer_id": 3, "state": "open", "note": None, "hours": 1.5, "tags": ["a", "b"]},
            8: {"id": 8, "customer_id": 3, "state": "open", "note": "call back", "hours": 2, "tags": []},
        }
        self.replies["/api/customers/3/tickets"] = lambda asked: Reply({"items": list(self.tickets.values())})
        self.replies["/api/tickets"] = lambda asked: Reply(list(self.tickets.values()))
        for number in range(1, 20):
            self.replies[f"/api/tickets/{number}"] = self._ticket

    def _ticket(self, asked: Asked) -> Reply:
        number = int(asked.path.rpartition("/")[2])
        return Reply(self.tickets[number]) if number in self.tickets else Reply({"error": "no such ticket"}, 404)

    @property
    def base(self) -> str:
        return f"{self.url}/api"

    def close_ticket(self, ticket_id: int) -> dict[str, object]:
        """Close a ticket."""
        self.tickets[ticket_id] = {**self.tickets[ticket_id], "state": "closed"}
        return {"closed": ticket_id}

    def open_ticket(self, customer_id: int, title: str) -> dict[str, object]:
        """Open a ticket."""
        number = max(self.tickets, default=0) + 1
        self.tickets[number] = {"id": number, "customer_id": customer_id, "state": "open", "title": title}
        return {"opened": number}


Asking: TypeAlias = Callable[[Store, Sequence[Question]], list[Answer]]
"""Puts questions to a store."""


def opened(url: str, *, where: object = None, name: str = "crm", **declared: Any) -> Store:
    """The HTTP store at a URL, with what else is declared of it; it may be on this machine unless that says otherwise."""
    declaration = StoreDeclaration.model_validate({"url": url, "private": True, "timeout": "10s", **declared})
    assert not [fault.what for fault in store_faults(name, declaration)]
    return open_api(name, where, api_of(declaration, None), seconds(declaration.timeout))


def fetch(path: str, at: str = "", query: dict[str, Any] | None = None, **values: object) -> Fetch:
    """The question for a value."""
    return Fetch(prove_request(path, query), at, values)


def photograph(name: str, **more: Any) -> Photograph:
    """The question for a picture of a resource of the store `crm`."""
    return Photograph(f"crm.{name}", name, **more)


def pictured(answers: Sequence[Answer]) -> Picture:
    """The only answer, which is a picture."""
    [answer] = answers
    assert isinstance(answer, Picture), answer
    return answer


def why(answers: Sequence[Answer]) -> str:
    """Why the only question could not be answered."""
    [answer] = answers
    assert isinstance(answer, Unanswered), answer
    return answer.why


@contextmanager
def raw_server(serve: Callable[[socket.socket], None]) -> Generator[str]:
    """The URL of a server that reads the head of a request and then does with the connection as it is told."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        stopping = threading.Event()

        def one(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                connection.settimeout(30)
                head = b""
                while b"\r\n\r\n" not in head and (piece := connection.recv(4096)):
                    head += piece
                serve(connection)

        def accept() -> None:
            while not stopping.is_set():
                with suppress(OSError):
                    connection, _ = listening.accept()
                    thread = threading.Thread(target=one, args=(connection,), daemon=True)
                    threads.append(thread)
                    thread.start()

        threads: list[threading.Thread] = []
        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            stopping.set()
            listening.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for thread in threads:
                thread.join()
