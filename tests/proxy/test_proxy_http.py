"""The proxy over streamable HTTP: sessions and credentials apart, streams as they come, nobody let in who may not."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from guardrail.ledger.records import RunHistory
from proxy.test_proxy_calls import is_final, text
from support.mcp_peers import PATIENCE, Peer
from support.ports import free_port, until_it_listens
from support.project import Project

pytest.importorskip("uvicorn", reason="needs the extra mcp")

HTTP_SERVER = Path(__file__).parents[1] / "support" / "mcp_http_server.py"
RUN, TASK, INPUTS, END = "guardrail/run_id", "guardrail/task", "guardrail/inputs", "guardrail/end"
MODERN: dict[str, object] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
Runs = Callable[[], list[RunHistory]]


@dataclass
class Client:
    """A client of one session; `headers` are sent with each request."""

    url: str
    headers: dict[str, str] = field(default_factory=dict[str, str])
    meta: Mapping[str, object] = field(default_factory=dict[str, object])
    number: int = 0

    def post(self, method: str, params: Mapping[str, Any] | None = None, **more: object) -> httpx.Response:
        self.number += 1
        sent = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params or {}, **more}
        accept = {"accept": "application/json, text/event-stream", "mcp-method": method}
        name = {"mcp-name": params["name"]} if params and "name" in params else {}
        return httpx.post(self.url, json=sent, headers={**accept, **name, **self.headers}, timeout=PATIENCE)

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return answer_in(
            self.post(method, {**(params or {}), "_meta": {**self.meta, **(params or {}).get("_meta", {})}})
        )

    def call(self, tool: str, meta: Mapping[str, object] | None = None, **args: object) -> dict[str, Any]:
        answer = self.ask("tools/call", {"name": tool, "arguments": args, "_meta": meta or {}})
        result: dict[str, Any] = answer.get("result", answer)
        return result

    def begin(self) -> Client:
        client = {"name": "test", "version": "1"}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        response = self.post("initialize", params)
        self.headers["mcp-session-id"] = response.headers["mcp-session-id"]
        self.headers["mcp-protocol-version"] = "2025-06-18"
        return self


def answer_in(response: httpx.Response) -> dict[str, Any]:
    """The last message of a response, in JSON or in events."""
    if response.headers["content-type"].startswith("application/json"):
        found: dict[str, Any] = response.json()
        return found
    data = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
    last: dict[str, Any] = json.loads(data[-1])
    return last


@dataclass
class Place:
    """A server over HTTP, and how to put a proxy before it."""

    project: Project
    stack: ExitStack
    port: int
    path: str = "/mcp"

    def listen(self, *options: object, **environ: str) -> tuple[Peer, str]:
        """A started proxy, and its URL."""
        port = free_port()
        url = f"http://127.0.0.1:{self.port}{self.path}"
        command = [sys.executable, "-m", "guardrail", "mcp", "--url", url, "--listen", f"127.0.0.1:{port}", *options]
        peer = self.stack.enter_context(Peer(command, self.project.folder, SHOP_KEY="s3cret-key", **environ))
        until_it_listens(port, peer.process)
        return peer, f"http://127.0.0.1:{port}/mcp"


@pytest.fixture(scope="module")
def server_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A server of the official SDK, which all tests of this module share: what it does, it does to the shop it is told."""
    port = free_port()
    server = subprocess.Popen([sys.executable, str(HTTP_SERVER), str(port)], stderr=subprocess.DEVNULL)
    try:
        until_it_listens(port, server)
        yield port
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def place(project: Project, server_port: int) -> Iterator[Place]:
    project.replace("tools:\n", "tools:\n  say: {effect: read}\n  note: {effect: write}\n  deny: {effect: write}\n")
    with ExitStack() as stack:
        yield Place(project, stack, server_port)


def kinds(runs: Runs) -> list[str]:
    return [run.verdict.kind for run in runs() if run.verdict is not None]


def test_a_stopped_session_stays_stopped_and_others_go_on(place: Place, runs: Runs) -> None:
    peer, url = place.listen()
    one, other = Client(url).begin(), Client(url).begin()
    assert text(one.call("say", word="hello")) == "hello"
    one.call("deny")
    assert is_final(one.call("note", word="x"))
    assert is_final(one.call("say", word="hello"))
    assert not other.call("note", word="x").get("isError")
    assert text(other.call("say", word="still")) == "still"
    peer.process.send_signal(signal.SIGTERM)
    assert peer.ended() == 0
    assert sorted(kinds(runs)) == ["stopped", "unverified"]


def test_what_the_server_says_in_a_stream_comes_as_it_comes_and_unchanged(place: Place) -> None:
    _, url = place.listen()
    behind = f"http://127.0.0.1:{place.port}/mcp"
    streams: list[list[object]] = []
    for client in (Client(behind).begin(), Client(url).begin()):
        params = {"name": "count", "arguments": {"to": 3}, "_meta": {"progressToken": "p"}}
        response = client.post("tools/call", params)
        data = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: {")]
        streams.append([json.loads(line) for line in data])
    assert streams[0] == streams[1]
    assert len(streams[0]) == 4


def test_the_end_of_a_session_is_the_end_of_its_run(place: Place, runs: Runs) -> None:
    _, url = place.listen()
    client = Client(url).begin()
    client.call("say", word="hello")
    assert httpx.delete(url, headers=client.headers).status_code == 200
    assert kinds(runs) == ["unverified"]


def test_runs_are_bound_to_the_session_or_the_credential_that_opened_them(place: Place) -> None:
    _, url = place.listen()
    one, other = Client(url).begin(), Client(url).begin()
    one.call("say", {RUN: "R1"}, word="hello")
    assert "error" in other.call("say", {RUN: "R1"}, word="hello")
    mine, mine_again, yours = (Client(url, {"authorization": f"Bearer {who}"}).begin() for who in ("me", "me", "you"))
    assert text(mine.call("say", {RUN: "R2"}, word="hello")) == "hello"
    assert text(mine_again.call("say", {RUN: "R2"}, word="hello")) == "hello"
    assert "error" in yours.call("say", {RUN: "R2"}, word="hello")
    yours.headers["mcp-session-id"] = mine.headers["mcp-session-id"]
    assert "another credential" in yours.call("say", word="hello")["error"]["message"]


def test_a_protocol_without_sessions_is_told_apart_by_credential(place: Place) -> None:
    _, url = place.listen()
    me, you = (
        Client(url, {"authorization": f"Bearer {who}", "mcp-protocol-version": "2026-07-28"}, MODERN)
        for who in ("me", "you")
    )
    assert text(me.call("say", word="hello")) == "hello"
    me.call("deny")
    stopped = me.call("note", word="x")
    assert is_final(stopped)
    assert stopped["resultType"] == "complete"
    assert is_final(me.call("say", word="hello"))
    assert text(you.call("say", word="hello")) == "hello"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost.evil.example"}, 403),
        ({"host": "evil.example"}, 421),
        ({"origin": "http://localhost:3000"}, 200),
        ({"origin": "https://app.example"}, 200),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": ""}, 401),
    ],
)
def test_who_is_let_in(place: Place, headers: dict[str, str], status: int) -> None:
    _, url = place.listen("--origin", "https://app.example", GUARDRAIL_MCP_TOKEN="t0ken")
    client = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    shown = {"authorization": "Bearer t0ken", **headers}
    assert Client(url, shown).post("initialize", params).status_code == status
    assert httpx.get(url, headers=shown if status != 200 else {}).status_code in (status, 401)


def test_an_address_beyond_this_machine_needs_a_token(project: Project) -> None:
    command = [sys.executable, "-m", "guardrail", "mcp", "--url", "http://127.0.0.1:9/mcp", "--listen", "0.0.0.0:0"]
    with Peer(command, project.folder, SHOP_KEY="k") as peer:
        assert peer.ended() == 2
        assert b"--token" in peer.log


def test_the_token_stays_here_and_the_servers_headers_are_sent(place: Place) -> None:
    place.project.replace("    env:", '    headers: {authorization: "Bearer ${env:SHOP_KEY}"}\n    env:')
    peer, url = place.listen("--token", "t0ken")
    client = Client(url, {"authorization": "Bearer t0ken"}).begin()
    seen = json.loads(text(client.call("headers")))
    assert seen["authorization"] == "Bearer s3cret-key"
    assert "t0ken" not in json.dumps(seen)
    peer.process.send_signal(signal.SIGTERM)
    assert peer.ended() == 0
    assert b"s3cret-key" not in peer.log
    assert b"t0ken" not in peer.log


def test_a_server_that_is_away_is_an_answer(place: Place, runs: Runs) -> None:
    place.port = free_port()
    peer, url = place.listen()
    client = Client(url)
    answer = client.post("initialize", {})
    assert answer.status_code == 502
    assert answer.json()["error"]["code"] == -32000
    assert answer.json()["id"] is not None
    assert client.call("note", word="x")["error"]["code"] == -32000
    peer.process.send_signal(signal.SIGTERM)
    peer.ended()
    (run,) = runs()
    assert [call.outcome.outcome for call in run.calls if call.outcome] == ["error"]


def test_a_status_of_the_server_reaches_the_client(place: Place) -> None:
    _, url = place.listen()
    client = Client(url).begin()
    client.headers["mcp-session-id"] = "no-such-session"
    assert client.post("tools/call", {"name": "say", "arguments": {"word": "x"}}).status_code == 404


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"jsonrpc": "2.0", "id": 1, "method": "a", "method": "tools/call"}'])
def test_a_body_that_is_no_message_is_turned_down(place: Place, body: bytes) -> None:
    _, url = place.listen()
    assert httpx.post(url, content=body, headers={"content-type": "application/json"}).status_code == 400


def test_a_client_that_has_gone_leaves_a_call_that_is_still_known(place: Place, runs: Runs) -> None:
    peer, url = place.listen()
    client = Client(url).begin()

    async def leave() -> None:
        sent = {
            "jsonrpc": "2.0",
            "id": 9,
            "method": "tools/call",
            "params": {"name": "note", "arguments": {"pause": 1}},
        }
        accept = {"accept": "application/json, text/event-stream"}
        async with httpx.AsyncClient() as http:
            asking = asyncio.create_task(http.post(url, json=sent, headers={**accept, **client.headers}))
            await asyncio.sleep(0.4)
            asking.cancel()

    asyncio.run(leave())
    time.sleep(1)
    peer.process.send_signal(signal.SIGTERM)
    peer.ended()
    (run,) = runs()
    assert [call.outcome.outcome for call in run.calls if call.outcome] in (["ok"], ["in_doubt"])


def test_a_cancellation_is_of_a_call_of_the_same_session(place: Place, runs: Runs) -> None:
    peer, url = place.listen()
    one, other = Client(url).begin(), Client(url).begin()
    responses: list[httpx.Response] = []

    def work(client: Client) -> None:
        responses.append(client.post("tools/call", {"name": "note", "arguments": {"pause": 2}}, id="c"))

    calling = [threading.Thread(target=work, args=(client,)) for client in (one, other)]
    for call in calling:
        call.start()
    time.sleep(1)
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}}
    accept = {"accept": "application/json, text/event-stream"}
    assert httpx.post(url, json=cancelled, headers={**accept, **one.headers}).status_code == 202
    for call in calling:
        call.join()
    peer.process.send_signal(signal.SIGTERM)
    peer.ended()
    assert sorted(call.outcome.outcome for run in runs() for call in run.calls if call.outcome) == ["in_doubt", "ok"]
    assert [answer_in(said)["id"] for said in responses if said.content.strip()] == ["c"]


def test_the_end_of_the_proxy_ends_streams_without_a_word(place: Place) -> None:
    peer, url = place.listen()
    client = Client(url).begin()
    with httpx.stream("GET", url, headers={"accept": "text/event-stream", **client.headers}, timeout=PATIENCE) as said:
        assert said.status_code == 200
        peer.process.send_signal(signal.SIGTERM)
        assert peer.ended() == 0
    assert b"Traceback" not in peer.log


def test_no_answer_waits_for_a_delayed_acknowledgement(place: Place) -> None:
    _, url = place.listen()
    client = Client(url).begin()
    sent = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "say", "arguments": {"word": "x"}}}
    accept = {"accept": "application/json, text/event-stream"}
    took: list[float] = []
    with httpx.Client(headers={**accept, **client.headers}, timeout=PATIENCE) as http:
        for _ in range(40):
            begun = time.perf_counter()
            assert text(answer_in(http.post(url, json=sent))["result"]) == "x"
            took.append(time.perf_counter() - begun)
    assert sorted(took)[10] < 0.035  # the acknowledgement would come after 40 ms


async def test_eight_clients_with_their_own_sessions_lose_nothing(place: Place, runs: Runs) -> None:
    peer, url = place.listen()
    clients = [Client(url).begin() for _ in range(8)]

    async def work(client: Client) -> list[str]:
        async with httpx.AsyncClient(headers=client.headers, timeout=PATIENCE) as http:
            said: list[str] = []
            for number in range(20):
                params = {"name": "say", "arguments": {"word": f"w{number}"}}
                sent = {"jsonrpc": "2.0", "id": 100 + number, "method": "tools/call", "params": params}
                accept = {"accept": "application/json, text/event-stream"}
                said.append(text(answer_in(await http.post(url, json=sent, headers=accept))["result"]))
            return said

    for said in await asyncio.gather(*map(work, clients)):
        assert said == [f"w{number}" for number in range(20)]
    peer.process.send_signal(signal.SIGTERM)
    peer.ended()
    assert [len(run.calls) for run in runs()] == [20] * 8
