"""A wire to a PostgreSQL server that a test can cut, hold up, or let through in one direction only."""

from __future__ import annotations

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit, urlunsplit

from psycopg.conninfo import conninfo_to_dict


class Wire:
    """Listens at a port of its own, and passes on what comes to the server and back.

    `goes`: set while anything is passed on; what comes meanwhile waits. `is_deaf`: what the server answers is not passed
    on, and as soon as it has answered both ends are cut.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self.goes = threading.Event()
        self.goes.set()
        self.is_deaf = False
        self._ends: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._port: int = self._listener.getsockname()[1]
        self._listen()

    @property
    def url(self) -> str:
        """The URL by which the server is reached over this wire."""
        parts = urlsplit(self._server)
        user = parts.username or conninfo_to_dict(self._server).get("user", "")
        query = "&".join(part for part in parts.query.split("&") if not part.startswith("host="))
        return urlunsplit(parts._replace(netloc=f"{user}@127.0.0.1:{self._port}", query=query))

    def cut(self) -> None:
        """Cut all connections."""
        ends, self._ends = self._ends, []
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Cut all connections, and refuse new ones."""
        self._listener.shutdown(socket.SHUT_RDWR)  # close() alone would not end the accept() of the other thread
        self._listener.close()
        self.cut()

    def reopen(self) -> None:
        """Take connections again, at the same port."""
        self._listener = socket.create_server(("127.0.0.1", self._port))
        self._listen()

    def _listen(self) -> None:
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = self._connect()
                self._ends += near, far
                for source, target, answers in ((near, far, False), (far, near, True)):
                    threading.Thread(target=self._pass_on, args=(source, target, answers), daemon=True).start()

    def _connect(self) -> socket.socket:
        found = conninfo_to_dict(self._server)
        host, port = str(found.get("host") or "127.0.0.1"), int(str(found.get("port") or 5432))
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        end = socket.socket(socket.AF_UNIX)
        end.connect(f"{host}/.s.PGSQL.{port}")
        return end

    def _pass_on(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with source, target, suppress(OSError):
            while content := source.recv(65536):
                self.goes.wait()
                if answers and self.is_deaf:
                    break
                target.sendall(content)
            for end in (source, target):
                end.shutdown(socket.SHUT_RDWR)


@contextmanager
def wire_to(server: str) -> Generator[Wire]:
    """A wire to the server of a URL."""
    wire = Wire(server)
    try:
        yield wire
    finally:
        wire.goes.set()
        wire.close()
