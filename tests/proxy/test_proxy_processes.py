"""A server over pipes that the proxy offers over HTTP: a process for each session, which ends with it."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client as OfficialClient
from mcp_types import CreateMessageRequestParams, CreateMessageResult, TextContent

from guardrail.ledger.records import RunHistory
from proxy.test_proxy_calls import is_final, text
from proxy.test_proxy_http import Client, answer_in
from proxy.test_proxy_pipes import SMUGGLED, until
from support.mcp_peers import PATIENCE, SHOP_SERVER, Peer
from support.ports import free_port, until_it_listens
from support.project import Project

Runs = Callable[[], list[RunHistory]]


@pytest.fixture
def listening(project: Project) -> Iterator[tuple[Peer, str]]:
    """A proxy that offers the shop's server, and its URL."""
    with offering(project, sys.executable, SHOP_SERVER, project.folder / "shop.db") as offered:
        yield offered


@contextmanager
def offering(project: Project, *server: object) -> Generator[tuple[Peer, str]]:
    port = free_port()
    command = [sys.executable, "-m", "guardrail", "mcp", "--listen", f"127.0.0.1:{port}", "--", *server]
    with Peer(command, project.folder, SHOP_KEY="k") as peer:
        until_it_listens(port, peer.process)
        yield peer, f"http://127.0.0.1:{port}/mcp"


def servers(peer: Peer) -> list[int]:
    pid = peer.process.pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def outcomes(runs: Runs) -> list[list[str]]:
    return [[call.outcome.outcome for call in run.calls if call.outcome] for run in runs()]


def test_each_session_has_a_process_of_its_own(listening: tuple[Peer, str], runs: Runs) -> None:
    peer, url = listening
    one, other = Client(url).begin(), Client(url).begin()
    assert len(servers(peer)) == 2
    assert one.call("lookup_order", order_id=17)["structuredContent"] == {"id": 17, "status": "paid"}
    one.call("cancel_order", order_id=17)
    assert is_final(one.call("refund_order", order_id=17, amount="19.90"))
    assert is_final(one.call("lookup_order", order_id=17))
    assert not other.call("refund_order", order_id=17, amount="19.90")["isError"]
    assert httpx.delete(url, headers=other.headers).status_code == 200
    assert len(servers(peer)) == 1
    assert outcomes(runs)[1] == ["ok"]
    assert runs()[1].verdict is not None
    peer.process.send_signal(signal.SIGTERM)
    left = servers(peer)
    assert peer.ended() == 0
    assert sorted(run.verdict.kind for run in runs() if run.verdict) == ["stopped", "unverified"]
    assert not any(Path(f"/proc/{pid}").exists() for pid in left)


def test_a_process_that_dies_fails_its_calls_and_ends_its_session_alone(
    listening: tuple[Peer, str], runs: Runs, project: Project
) -> None:
    _, url = listening
    one, other = Client(url).begin(), Client(url).begin()
    assert not other.call("lookup_order", order_id=17)["isError"]
    assert one.call("die")["error"]["code"] == -32000
    assert one.post("ping").status_code == 404
    until(lambda: any(run.verdict is not None for run in runs()))
    assert not other.call("lookup_order", order_id=17)["isError"]


def test_an_answer_beyond_the_limit_fails_its_call_alone(listening: tuple[Peer, str]) -> None:
    _, url = listening
    client = Client(url).begin()
    error = client.call("long_answer", size=70_000_000)["error"]
    assert error["code"] == -32000
    assert "67,108,864 bytes" in error["message"]
    assert not client.call("lookup_order", order_id=17)["isError"]
    huge = httpx.post(url, content=b'{"x": "' + b"y" * 70_000_000 + b'"}', headers=client.headers, timeout=PATIENCE)
    assert huge.status_code == 400
    assert not client.call("lookup_order", order_id=17)["isError"]


def test_what_the_server_says_before_its_answer_comes_before_it(listening: tuple[Peer, str]) -> None:
    _, url = listening
    client = Client(url).begin()
    response = client.post("tools/call", {"name": "report", "arguments": {}, "_meta": {"progressToken": "p"}})
    lines = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: {")]
    assert [line.get("method") for line in lines] == [
        "notifications/progress",
        "notifications/progress",
        "notifications/tools/list_changed",
        None,
    ]


def test_what_the_server_says_by_itself_comes_in_the_clients_stream(listening: tuple[Peer, str]) -> None:
    _, url = listening
    client = Client(url).begin()
    accept = {"accept": "text/event-stream", **client.headers}
    with httpx.stream("GET", url, headers=accept, timeout=20) as stream:
        assert httpx.get(url, headers=accept).status_code == 409
        assert text(client.call("report")) == '"reported"'
        heard: list[str] = []
        for line in stream.iter_lines():
            if line.startswith("data: "):
                heard.append(json.loads(line[6:])["method"])
            if len(heard) == 3:
                break
    assert heard[-1] == "notifications/tools/list_changed"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_is_asked_back(listening: tuple[Peer, str], mode: str) -> None:
    _, url = listening

    async def sample(context: object, params: CreateMessageRequestParams) -> CreateMessageResult:
        return CreateMessageResult(role="assistant", content=TextContent(type="text", text="yes"), model="m")

    async with OfficialClient(url, mode=mode, sampling_callback=sample) as client:
        assert "lookup_order" in [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("ask_client", {})
    assert "yes" in str(result.content)


def test_no_message_hides_behind_a_line_break(listening: tuple[Peer, str], project: Project) -> None:
    _, url = listening
    client = Client(url).begin()
    body = b'{"jsonrpc": "2.0",\n"id": 4, "method": "ping", "params": {"x":\r\n' + SMUGGLED.encode() + b"\n}}"
    assert httpx.post(url, content=body, headers=client.headers).json()["result"] == {}
    heard = (project.folder / "heard").read_bytes().splitlines()
    assert [json.loads(line)["method"] for line in heard] == ["initialize", "ping"]


@pytest.mark.parametrize("session", ["guessed", "../x", "x" * 5_000])
def test_a_guessed_session_is_none(listening: tuple[Peer, str], session: str) -> None:
    peer, url = listening
    Client(url).begin()
    client = Client(url, {"mcp-session-id": session})
    assert client.post("tools/call", {"name": "lookup_order", "arguments": {"order_id": 17}}).status_code == 404
    assert len(servers(peer)) == 1


def test_a_session_too_many_takes_the_place_of_the_one_that_was_not_used_for_longest(project: Project) -> None:
    always = """while read line; do echo '{"jsonrpc": "2.0", "id": 1, "result": {}}'; done"""
    with offering(project, "sh", "-c", always) as (peer, url):
        clients = [Client(url).begin() for _ in range(100)]
        for client in clients:
            client.number = 0
        assert answer_in(clients[0].post("ping"))["result"] == {}
        Client(url).begin()
        assert len(servers(peer)) == 100
        assert [clients[place].post("ping", id=1).status_code for place in (0, 1, 2)] == [200, 404, 200]


def test_a_command_that_there_is_not_is_said_at_once(project: Project) -> None:
    command = [sys.executable, "-m", "guardrail", "mcp", "--listen", "127.0.0.1:0", "--", "no-such-server"]
    with Peer(command, project.folder, SHOP_KEY="k") as peer:
        assert peer.ended() == 2
        assert b"no-such-server" in peer.log


def test_requests_in_flight_have_ids_of_their_own(listening: tuple[Peer, str], project: Project) -> None:
    _, url = listening
    client = Client(url).begin()
    sent: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "lookup_order", "arguments": args}}
        for id, args in ((7, {"order_id": 17}), ("7", {"order_id": 404}))
    ]
    answers = [httpx.post(url, json=message, headers=client.headers).json() for message in sent]
    assert [answer["id"] for answer in answers] == [7, "7"]
    assert [answer["result"].get("isError", False) for answer in answers] == [False, True]
