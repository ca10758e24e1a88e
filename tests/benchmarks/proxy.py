"""The proxy over pipes and over HTTP: what it adds to a call, and whether eight clients at once lose anything."""

from __future__ import annotations

import http.client
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.measuring import say
from guardrail.ledger.ledger import Ledger
from support.ports import free_port, until_it_listens

PIPED = """
import json, sys
for line in sys.stdin.buffer:
    asked = json.loads(line)
    if "id" in asked:
        result = {"content": [{"type": "text", "text": '{"id": 17, "status": "paid"}'}]}
        sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode() + b"\\n")
        sys.stdout.buffer.flush()
"""
LISTENING = """
import json, sys, uvicorn

async def app(scope, receive, send):
    body, more = b"", True
    while more:
        part = await receive()
        body, more = body + part["body"], part["more_body"]
    asked = json.loads(body)
    result = {"content": [{"type": "text", "text": '{"id": 17, "status": "paid"}'}]}
    answer = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": answer})

uvicorn.run(app, port=int(sys.argv[1]), log_config=None, lifespan="off", timeout_keep_alive=60)
"""
CONFIGURATION = "version: 1\nledger: ledger.db\ntools:\n  lookup_order: {effect: read}\n"
GUARD = [sys.executable, "-m", "guardrail", "mcp"]
CLIENTS, CALLS = 8, 1_000


class Client:
    """A client that costs as little as it can; `send` gives the bytes of the answer to a message."""

    def __init__(self, send: Callable[[bytes], bytes]) -> None:
        self._send = send
        self._number = 0

    def call(self) -> bool:
        """Make a call; whether its answer is its own."""
        self._number += 1
        params = {"name": "lookup_order", "arguments": {"order_id": 17}}
        asked = {"jsonrpc": "2.0", "id": self._number, "method": "tools/call", "params": params}
        said: dict[str, Any] = json.loads(self._send(json.dumps(asked).encode()))
        return said["id"] == self._number and not said["result"].get("isError")

    def seconds(self) -> float:
        """How long a call takes."""
        started = time.perf_counter()
        self.call()
        return time.perf_counter() - started


@contextmanager
def over_pipes(folder: Path, *, proxied: bool) -> Generator[Callable[[], AbstractContextManager[Client]]]:
    """Clients of a server over pipes, each with its own, through a proxy of its own or not."""
    command = [*(GUARD if proxied else []), *(["--"] if proxied else []), sys.executable, "-c", PIPED]

    @contextmanager
    def client() -> Generator[Client]:
        with subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            writing, reading = process.stdin, process.stdout

            def send(message: bytes) -> bytes:
                writing.write(message + b"\n")
                writing.flush()
                return reading.readline()

            yield Client(send)
            writing.close()
            process.wait()

    yield client


@contextmanager
def over_http(folder: Path, *, proxied: bool) -> Generator[Callable[[], AbstractContextManager[Client]]]:
    """Clients of one server over HTTP, each with a session and a connection of its own, through one proxy or not."""
    server, proxy = free_port(), free_port()
    behind = ["--url", f"http://127.0.0.1:{server}/mcp", "--listen", f"127.0.0.1:{proxy}"]
    commands = [[sys.executable, "-c", LISTENING, str(server)], *([[*GUARD, *behind]] if proxied else [])]
    processes = [subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL) for command in commands]
    port = proxy if proxied else server
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    numbers = iter(range(1_000_000))

    @contextmanager
    def client() -> Generator[Client]:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        session = {**headers, "mcp-session-id": f"session-{next(numbers)}"}

        def send(message: bytes) -> bytes:
            connection.request("POST", "/mcp", message, session)
            return connection.getresponse().read()

        yield Client(send)
        connection.close()

    try:
        for number, process in zip((server, proxy), processes, strict=False):  # without a proxy there is one of them
            until_it_listens(number, process)
        yield client
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()


def proxy(folder: Path) -> None:
    """A declared read through the proxy beside the bare server, call by call in turn; then eight clients at once."""
    (folder / "guardrail.yaml").write_text(CONFIGURATION)
    for transport, clients in (("pipes", over_pipes), ("HTTP", over_http)):
        with (
            clients(folder, proxied=False) as bare_one,
            clients(folder, proxied=True) as one,
            bare_one() as bare,
            one() as through,
        ):
            _added(transport, bare, through)
        with clients(folder, proxied=True) as one:
            good, seconds = _at_once(one)
        recorded = _recorded(folder)
        calls = CLIENTS * CALLS
        figures = {"clients": CLIENTS, "calls": calls, "answered": good, "recorded": recorded, "seconds": seconds}
        say(f"clients at once over {transport}, one ledger", **figures, load=os.getloadavg()[0])


def _added(transport: str, bare: Client, through: Client) -> None:
    for one in (bare, through):
        for _ in range(200):
            one.call()
    pairs = [(through.seconds() * 1e3, bare.seconds() * 1e3) for _ in range(3_000)]
    p50 = [statistics.median(times) for times in zip(*pairs, strict=True)]
    p99 = [statistics.quantiles(times, n=100)[98] for times in zip(*pairs, strict=True)]
    what = f"call through the proxy over {transport}, wall"
    say(what, p50_ms=p50[0], bare_p50_ms=p50[1], added_p50_ms=p50[0] - p50[1], load=os.getloadavg()[0])
    say(what, p99_ms=p99[0], bare_p99_ms=p99[1])


def _at_once(one: Callable[[], AbstractContextManager[Client]]) -> tuple[int, float]:
    """How many calls of all clients were answered rightly, and how long that took."""
    good: list[int] = []

    def work() -> None:
        with one() as client:
            good.append(sum(client.call() for _ in range(CALLS)))

    started = time.perf_counter()
    workers = [threading.Thread(target=work) for _ in range(CLIENTS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(good), time.perf_counter() - started


def _recorded(folder: Path) -> int:
    """How many calls the ledger has of the latest runs, one for each client."""
    ledger = Ledger(folder / "ledger.db")
    try:
        latest = sorted(ledger.runs(), key=lambda summary: summary.run.started)[-CLIENTS:]
        return sum(summary.calls for summary in latest)
    finally:
        ledger.close()
