"""The proxy over pipes: what it adds to a call, and whether eight clients at once lose anything."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measuring import say

SERVER = """
import json, sys
for line in sys.stdin.buffer:
    asked = json.loads(line)
    if "id" in asked:
        result = {"content": [{"type": "text", "text": '{"id": 17, "status": "paid"}'}]}
        sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode() + b"\\n")
        sys.stdout.buffer.flush()
"""
CONFIGURATION = "version: 1\ntools:\n  lookup_order: {effect: read}\n"
CLIENTS, CALLS = 8, 1_000


class Client:
    """A client over pipes that costs as little as it can."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._input, self._output = process.stdin, process.stdout
        self._number = 0

    def call(self) -> bool:
        """Make a call; whether its answer is its own."""
        self._number += 1
        params = {"name": "lookup_order", "arguments": {"order_id": 17}}
        asked = {"jsonrpc": "2.0", "id": self._number, "method": "tools/call", "params": params}
        self._input.write(json.dumps(asked).encode() + b"\n")
        self._input.flush()
        said = json.loads(self._output.readline())
        return said["id"] == self._number and not said["result"].get("isError")

    def seconds(self) -> float:
        """How long a call takes."""
        started = time.perf_counter()
        self.call()
        return time.perf_counter() - started


@contextmanager
def client(folder: Path, *, proxied: bool) -> Generator[Client]:
    """A client of the server, through the proxy or not."""
    (folder / "guardrail.yaml").write_text(CONFIGURATION)
    before = [sys.executable, "-m", "guardrail", "mcp", "--"] if proxied else []
    command = [*before, sys.executable, "-c", SERVER]
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        yield Client(process)
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


def proxy(folder: Path) -> None:
    """A declared read through the proxy beside the bare server, call by call in turn; then eight clients at once."""
    with client(folder, proxied=False) as bare, client(folder, proxied=True) as through:
        for one in (bare, through):
            for _ in range(200):
                one.call()
        pairs = [(through.seconds() * 1e3, bare.seconds() * 1e3) for _ in range(3_000)]
    p50 = [statistics.median(times) for times in zip(*pairs, strict=True)]
    p99 = [statistics.quantiles(times, n=100)[98] for times in zip(*pairs, strict=True)]
    say("call through the proxy, wall", p50_ms=p50[0], bare_p50_ms=p50[1], added_p50_ms=p50[0] - p50[1])
    say("call through the proxy, wall", p99_ms=p99[0], bare_p99_ms=p99[1])
    good: list[int] = []

    def work() -> None:
        with client(folder, proxied=True) as one:
            good.append(sum(one.call() for _ in range(CALLS)))

    started = time.perf_counter()
    workers = [threading.Thread(target=work) for _ in range(CLIENTS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    seconds = time.perf_counter() - started
    say("clients at once, one ledger", clients=CLIENTS, calls=CLIENTS * CALLS, answered=sum(good), seconds=seconds)
