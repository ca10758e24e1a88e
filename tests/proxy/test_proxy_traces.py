"""Traces through the proxy: the host's spans above the guard's, the guard's above the server's; exported over OTLP."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy.conftest import Start
from proxy.test_proxy_calls import text
from proxy.test_proxy_http import Client, Place, place, server_port
from support.mcp_peers import SHOP_SERVER, Peer
from support.ports import free_port, until_it_listens
from support.project import Project
from support.receiver import Received, Receiver

__all__ = ["place", "server_port"]

TRACED = Path(__file__).parents[1] / "support" / "traced.py"
TRACE = "0af7651916cd43dd8448eb211c80319c"
FIRST, SECOND = "b7ad6b7169203331", "00f067aa0ba902b7"
ARGS = {"order_id": 17}
LOOKUP = "execute_tool lookup_order"


def host(span: str, trace: str = TRACE) -> dict[str, str]:
    return {"traceparent": f"00-{trace}-{span}-01", "tracestate": "host=1"}


@pytest.fixture
def traced(project: Project, receiver: Receiver) -> Iterator[Peer]:
    """A client of a proxy that traces."""
    server = ["--", sys.executable, SHOP_SERVER, project.folder / "shop.db"]
    with Peer([sys.executable, TRACED, receiver.url, "mcp", *server], project.folder, SHOP_KEY="k") as peer:
        yield peer.begin()


def heard(project: Project) -> list[dict[str, Any]]:
    """What `_meta` of the calls that reached the server said."""
    found = map(json.loads, (project.folder / "heard").read_bytes().splitlines())
    return [message["params"].get("_meta", {}) for message in found if message.get("method") == "tools/call"]


def named(receiver: Receiver, name: str) -> list[Received]:
    return [span for span in receiver.spans if span.item.name == name]


def parents(receiver: Receiver, name: str) -> list[str]:
    return [span.item.parent_span_id.hex() for span in named(receiver, name)]


def told(span: Received) -> str:
    """A span as `traceparent` tells it, without flags: the exporter keeps those to itself."""
    return f"00-{span.item.trace_id.hex()}-{span.item.span_id.hex()}"


def without_flags(meta: dict[str, Any]) -> dict[str, Any]:
    return {**meta, "traceparent": meta["traceparent"].rpartition("-")[0]}


def test_each_call_is_below_the_hosts_span_and_the_server_gets_the_guards(
    traced: Peer, project: Project, receiver: Receiver
) -> None:
    for span in (FIRST, SECOND):
        traced.call("lookup_order", {**host(span), "progressToken": "p"}, order_id=17)
    assert traced.close() == 0
    assert parents(receiver, LOOKUP) == [FIRST, SECOND]
    assert parents(receiver, "invoke_agent") == [FIRST]
    assert {span.item.trace_id.hex() for span in receiver.spans} == {TRACE}
    assert list(map(without_flags, heard(project))) == [
        {"traceparent": told(span), "tracestate": "host=1", "progressToken": "p"} for span in named(receiver, LOOKUP)
    ]


def test_a_call_that_the_host_does_not_trace_is_below_its_run(
    traced: Peer, project: Project, receiver: Receiver
) -> None:
    traced.call("lookup_order", order_id=17)
    unclear: tuple[object, ...] = ("no such thing", "", 5, True, [], {})
    for traceparent in unclear:
        traced.call("lookup_order", {"traceparent": traceparent, "tracestate": [traceparent]}, order_id=17)
    assert traced.close() == 0
    run = receiver.span("invoke_agent").item
    assert not run.parent_span_id
    assert parents(receiver, LOOKUP) == [run.span_id.hex()] * 7
    assert list(map(without_flags, heard(project))) == [{"traceparent": told(span)} for span in named(receiver, LOOKUP)]


def test_a_proxy_that_does_not_trace_leaves_the_hosts_trace_as_it_is(start: Start, project: Project) -> None:
    peer = start()
    sent = [
        json.dumps(
            {
                "id": id,
                "method": "tools/call",
                "params": {"name": "lookup_order", "arguments": ARGS, "_meta": host(span)},
            }
        ).encode()
        for id, span in ((7, FIRST), (8, SECOND))
    ]
    for id, line in zip((7, 8), sent, strict=True):
        peer.send(line)
        peer.answer_to(id)
    assert (project.folder / "heard").read_bytes().splitlines()[-2:] == sent


def listening(place: Place, receiver: Receiver) -> tuple[Peer, str]:
    """A proxy that traces, over HTTP, and its URL."""
    port = free_port()
    url = f"http://127.0.0.1:{place.port}/mcp"
    options = ["mcp", "--url", url, "--listen", f"127.0.0.1:{port}"]
    command = [sys.executable, TRACED, receiver.url, *options]
    peer = place.stack.enter_context(Peer(command, place.project.folder, SHOP_KEY="k"))
    until_it_listens(port, peer.process)
    return peer, f"http://127.0.0.1:{port}/mcp"


def test_over_http_a_header_tells_the_trace_and_meta_tells_it_better(place: Place, receiver: Receiver) -> None:
    place.project.replace("tools:\n", "tools:\n  headers: {effect: read}\n")
    peer, url = listening(place, receiver)
    client = Client(url).begin()
    client.headers |= host(FIRST)
    by_header = json.loads(text(client.call("headers")))
    by_meta = json.loads(text(client.call("headers", host(SECOND))))
    peer.process.send_signal(signal.SIGTERM)
    assert peer.ended() == 0
    assert parents(receiver, "execute_tool headers") == [FIRST, SECOND]
    spans = named(receiver, "execute_tool headers")
    assert [without_flags(seen)["traceparent"] for seen in (by_header, by_meta)] == [told(span) for span in spans]
    assert by_header["tracestate"] == "host=1"


def test_over_http_a_proxy_that_does_not_trace_leaves_the_header_as_it_is(place: Place) -> None:
    place.project.replace("tools:\n", "tools:\n  headers: {effect: read}\n")
    _, url = place.listen()
    client = Client(url).begin()
    client.headers |= host(FIRST)
    for meta in ({}, host(SECOND)):
        seen = json.loads(text(client.call("headers", meta)))
        assert {name: seen[name] for name in host(FIRST)} == host(FIRST)
