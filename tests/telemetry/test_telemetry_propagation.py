"""Where a call's span is the parent of what the tool does elsewhere: threads, tasks, HTTP services, MCP servers."""

from __future__ import annotations

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry import propagate
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Sampler

from guardrail import Guard
from guardrail.telemetry.sampling import KeepFlagged
from support.receiver import Receiver
from support.recorder import Recorder
from support.shop import Guards, Shop

CALL = "execute_tool lookup_order"


@pytest.fixture
def guards(tmp_path: Path) -> Iterator[Guards]:
    made = Guards(Shop(tmp_path / "shop.db"), tmp_path)
    yield made
    made.close()


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def guard(guards: Guards, recorder: Recorder) -> Guard:
    return guards(tracer_provider=recorder.tracers)


class Service:
    """An HTTP service that notes the headers of the requests it gets."""

    def __init__(self) -> None:
        self.seen: list[dict[str, str]] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                service.seen.append({name.lower(): value for name, value in self.headers.items()})
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/orders"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    yield made
    made.close()


def headers() -> dict[str, str]:
    """What an instrumented client, or a careful tool, sends along."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return carrier


def traceparent(recorder: Recorder, name: str) -> str:
    """The header that names a span as the parent."""
    context = recorder.span(name).context
    assert context is not None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


Tool = Callable[[str], object]


def plain(url: str) -> int:
    return httpx.get(url, headers=headers()).status_code


def pooled(url: str) -> int:
    """A tool that works in a pool, and carries its context there as Python makes it do."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(contextvars.copy_context().run, plain, url).result()


async def awaited(url: str) -> int:
    async with httpx.AsyncClient() as client:
        return (await client.get(url, headers=headers())).status_code


async def in_a_task(url: str) -> int:
    return await asyncio.create_task(awaited(url))


async def in_a_thread(url: str) -> int:
    return await asyncio.to_thread(plain, url)


@pytest.mark.parametrize("tool", [plain, pooled])
def test_a_service_sees_the_call_as_the_parent(guard: Guard, recorder: Recorder, service: Service, tool: Tool) -> None:
    with guard.run() as run:
        run.call("lookup_order", {"url": service.url}, tool)
    assert [seen["traceparent"] for seen in service.seen] == [traceparent(recorder, CALL)]


@pytest.mark.parametrize("tool", [plain, awaited, in_a_task, in_a_thread])
async def test_a_service_sees_the_call_of_an_asynchronous_agent_as_the_parent(
    guard: Guard, recorder: Recorder, service: Service, tool: Tool
) -> None:
    async with guard.run() as run:
        await run.acall("lookup_order", {"url": service.url}, tool)
    assert [seen["traceparent"] for seen in service.seen] == [traceparent(recorder, CALL)]


@pytest.mark.parametrize("where", ["thread", "executor", "task", "to_thread"])
async def test_a_call_that_is_made_elsewhere_is_the_parent_there(
    guard: Guard, recorder: Recorder, service: Service, where: str
) -> None:
    async with guard.run() as run:
        tool = run.wrap({"lookup_order": plain})["lookup_order"]
        with ThreadPoolExecutor(1) as pool:
            match where:
                case "thread":  # without the context of the run
                    await asyncio.wrap_future(pool.submit(tool, service.url))
                case "executor":  # likewise
                    await asyncio.get_running_loop().run_in_executor(pool, tool, service.url)
                case "task":
                    await asyncio.create_task(run.acall("lookup_order", {"url": service.url}, awaited))
                case _:
                    await asyncio.to_thread(tool, service.url)
    assert [seen["traceparent"] for seen in service.seen] == [traceparent(recorder, CALL)]
    assert recorder.parent(CALL) == "invoke_agent"


def test_calls_at_once_are_each_the_parent_of_their_own(guard: Guard, recorder: Recorder, service: Service) -> None:
    with guard.run() as run, ThreadPoolExecutor(8) as pool:
        tools: dict[str, Tool] = run.wrap({f"tool_{number}": plain for number in range(8)})
        for asked in [pool.submit(tool, service.url) for tool in tools.values()]:
            asked.result()
    assert sorted(seen["traceparent"] for seen in service.seen) == sorted(
        traceparent(recorder, f"execute_tool {name}") for name in tools
    )


@pytest.mark.parametrize("sampler", [ALWAYS_OFF, KeepFlagged(ALWAYS_OFF)])
def test_a_service_is_told_that_the_run_is_not_sampled(guards: Guards, service: Service, sampler: Sampler) -> None:
    with guards(tracer_provider=Recorder(sampler=sampler).tracers).run() as run:
        run.call("lookup_order", {"url": service.url}, plain)
    [seen] = service.seen
    assert int(seen["traceparent"].rpartition("-")[2], 16) & 1 == 0


def test_a_run_is_a_child_of_the_request_that_it_answers(guard: Guard, recorder: Recorder, service: Service) -> None:
    with recorder.tracers.get_tracer("server").start_as_current_span("POST /chat"), guard.run() as run:
        run.call("lookup_order", {"url": service.url}, plain)
    assert recorder.parent("invoke_agent") == "POST /chat"
    assert recorder.parent(CALL) == "invoke_agent"


def test_nothing_is_put_into_baggage(guard: Guard, service: Service) -> None:
    with guard.run("refund_order", inputs={"order_id": 17, "amount": "1"}) as run:
        run.call("lookup_order", {"url": service.url}, plain)
    assert [sorted({"baggage", "tracestate"} & seen.keys()) for seen in service.seen] == [[]]


PROVIDER = """
import sys
from opentelemetry import trace
from support.receiver import Sender
sender = Sender(sys.argv[1])
trace.set_tracer_provider(sender.tracers)
"""

SERVER = f"""{PROVIDER}
from mcp.server.mcpserver import MCPServer
server = MCPServer("shop")

@server.tool()
def lookup_order(order_id: int) -> dict[str, int]:
    with trace.get_tracer("shop").start_as_current_span("SELECT orders"):
        return {{"id": order_id}}

@server.tool()
def cancel_order(order_id: int) -> str:
    raise ValueError("only an open order can be cancelled")

server.run("stdio")
sender.close()
"""

AGENT = f"""{PROVIDER}
import asyncio, os
from mcp import Client, StdioServerParameters
from guardrail import Configuration, Guard

async def main(code, url):
    guard = Guard(Configuration.model_validate({{"ledger": "memory", "mode": "observe"}}), **sender.providers)
    server = StdioServerParameters(command=sys.executable, args=["-c", code, url], env=dict(os.environ))
    async with Client(server) as client, guard.run() as run:
        async def lookup_order(order_id):
            return await client.call_tool("lookup_order", {{"order_id": order_id}})
        async def cancel_order(order_id):
            return await client.call_tool("cancel_order", {{"order_id": order_id}})
        await run.wrap(lookup_order)(17)
        await run.wrap(cancel_order)(17)

asyncio.run(main(sys.argv[2], sys.argv[1]))
sender.close()
"""


def test_the_span_of_an_mcp_server_is_below_the_call() -> None:
    receiver = Receiver()
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    agent = [sys.executable, "-c", AGENT, receiver.url, SERVER]
    ended = subprocess.run(agent, env=environ, capture_output=True, text=True, timeout=60)
    receiver.close()

    assert ended.returncode == 0, ended.stderr
    # The server hides what its tool raised, so the guard cannot tell whether it wrote before.
    failures = {"lookup_order": (None, None), "cancel_order": ("tool_error", "guardrail.in_doubt")}
    for tool, told in failures.items():
        served = receiver.span(f"tools/call {tool}")
        called = receiver.span(f"execute_tool {tool}")
        assert (served.attributes.get("error.type"), called.attributes.get("error.type")) == told
        assert f"execute_tool {tool}" in ancestors(receiver, served.item)
    assert receiver.parent("SELECT orders") == "tools/call lookup_order"
    assert len([span for span in receiver.spans if span.attributes.get("gen_ai.tool.name") == "lookup_order"]) == 2


def ancestors(receiver: Receiver, span: Any) -> list[str]:
    """The names of the spans above a span, through all processes."""
    spans = {one.item.span_id: one.item for one in receiver.spans}
    names: list[str] = []
    while span.parent_span_id:
        span = spans[span.parent_span_id]
        names.append(span.name)
    return names
