"""A client of MCP that says what it is told to, byte by byte, to a process over its pipes."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from support.command_line import ENVIRON

SHOP_SERVER = Path(__file__).with_name("mcp_shop_server.py")
PATIENCE = 60.0
"""How many seconds anything may take that a test waits for."""


class Peer:
    """A started process, and what it has said: `said` are its messages, `log` what it wrote to standard error."""

    def __init__(self, command: Sequence[object], folder: Path, **environ: str) -> None:
        self.process = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env={**ENVIRON, **environ},
            bufsize=0,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.input, self.output, self.errors = self.process.stdin, self.process.stdout, self.process.stderr
        self.said: list[dict[str, Any]] = []
        self.raw: list[bytes] = []
        self.log = b""
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._ids = iter(range(1, 1_000_000))
        self._readers = [
            threading.Thread(target=read, args=(stream,), daemon=True)
            for read, stream in ((self._read, self.output), (self._read_log, self.errors))
        ]
        for reader in self._readers:
            reader.start()

    def send(self, message: Mapping[str, Any] | bytes) -> None:
        """Say something: a message, or bytes as they are."""
        raw = message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.input.write(raw + b"\n")

    def begin(self) -> Self:
        """Open the session."""
        client = {"name": "test", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self.send({"method": "notifications/initialized"})
        return self

    def ask(self, method: str, params: Mapping[str, Any] | None = None, id: object = None) -> dict[str, Any]:
        """The answer to a request."""
        return self.answer_to(self.request(method, params, id))

    def request(self, method: str, params: Mapping[str, Any] | None = None, id: object = None) -> object:
        """Send a request, whose answer can be waited for by the id."""
        id = id or next(self._ids)
        self.send({"id": id, "method": method, "params": params or {}})
        return id

    def call(self, tool: str, meta: Mapping[str, Any] | None = None, **args: object) -> dict[str, Any]:
        """The result of a call; an error of the protocol is `{"error": ...}`."""
        return self.result_of(self.begin_call(tool, meta, **args))

    def begin_call(self, tool: str, meta: Mapping[str, Any] | None = None, **args: object) -> object:
        """Send a call, whose result can be waited for by the id."""
        return self.request("tools/call", {"name": tool, "arguments": args, **({"_meta": meta} if meta else {})})

    def result_of(self, id: object) -> dict[str, Any]:
        """The result that answers a request."""
        answer = self.answer_to(id)
        result: dict[str, Any] = answer.get("result", {"error": answer.get("error")})
        return result

    def answer_to(self, id: object) -> dict[str, Any]:
        """The message that answers a request."""
        return self.hear(lambda message: message.get("id") == id and "method" not in message)

    def hear(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first message of that kind that was not heard before."""
        for place, known in enumerate(self.said):
            if wanted(known):
                del self.said[place]
                return known
        while True:
            line = self._lines.get(timeout=PATIENCE)
            assert line, f"the process has said all it had to say:\n{self.log.decode()}"
            self.raw.append(line.rstrip(b"\n"))
            message: dict[str, Any] = json.loads(line)
            if wanted(message):
                return message
            self.said.append(message)

    def close(self) -> int:
        """Say no more, and see how the process ends."""
        self.input.close()
        return self.ended()

    def ended(self) -> int:
        """The code with which the process ends by itself."""
        code = self.process.wait(PATIENCE)
        for reader in self._readers:
            reader.join(PATIENCE)
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.input, self.output, self.errors):
            if not stream.closed:
                stream.close()

    def _read(self, stream: IO[bytes]) -> None:
        buffered = iter(lambda: stream.read(1 << 16), b"")
        rest = b""
        for chunk in buffered:
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._lines.put(line + b"\n")
        self._lines.put(rest)

    def _read_log(self, stream: IO[bytes]) -> None:
        for chunk in iter(lambda: stream.read(1 << 16), b""):
            self.log += chunk


def proxied(folder: Path, *options: object, server: Sequence[object] = (), **environ: str) -> Peer:
    """A client of the proxy in front of a server: the shop's, where none is given."""
    behind = server or (sys.executable, SHOP_SERVER, folder / "shop.db")
    return Peer([sys.executable, "-m", "guardrail", "mcp", *options, "--", *behind], folder, **environ)
