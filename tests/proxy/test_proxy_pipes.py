"""Over pipes anything may come, or end, at any time: nothing hangs, nothing is lost, nothing slips by."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guardrail.ledger.records import RunHistory
from proxy.conftest import Start
from proxy.test_proxy_calls import text
from support.mcp_peers import SHOP_SERVER, Peer, proxied
from support.project import Project

Runs = Callable[[], list[RunHistory]]
CALL: dict[str, Any] = {
    "jsonrpc": "2.0",
    "method": "tools/call",
    "params": {"name": "lookup_order", "arguments": {"order_id": 17}},
}


def outcomes(runs: Runs) -> list[str]:
    return [call.outcome.outcome for run in runs() for call in run.calls if call.outcome]


def until(found: Callable[[], object]) -> None:
    while not found():
        time.sleep(0.02)


SMUGGLED = json.dumps({**CALL, "id": 9})


UNCLEAR = (
    (b"{", -32700),
    (b"no json", -32700),
    (b"\xff\xfe", -32700),
    (b"[" * 100_000, -32700),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": NaN}}', -32700),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "method": "tools/call", "params": {}}', -32700),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a", "name": "b"}}', -32700),
    (json.dumps([{**CALL, "id": 1}]).encode(), -32600),
    (b'"text"', -32600),
    (b'{"jsonrpc": "2.0", "id": 1, "Method": "tools/call"}', -32600),
    (b'{"jsonrpc": "2.0", "id": 1}', -32600),
    (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', -32600),
    (b'{"jsonrpc": "2.0", "id": null, "method": "tools/call", "params": {"name": "lookup_order"}}', -32600),
    (b'{"jsonrpc": "2.0", "id": 1, "method": ["tools/call"]}', -32600),
    (b'{"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "refund_order"}}', -32600),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 5}}', -32602),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a", "arguments": []}}', -32602),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}', -32602),
)
"""Lines that two readers may read differently, and the code that they are answered with."""


def test_an_unclear_line_is_answered_and_not_passed_on(start: Start, project: Project) -> None:
    peer = start()
    for line, code in UNCLEAR:
        peer.send(line)
        assert peer.hear(lambda message: "error" in message)["error"]["code"] == code, line
    assert peer.ask("ping")["result"] == {}
    assert (project.folder / "heard").read_bytes().count(b"\n") == 3  # the session's opening, and the ping


def test_a_guard_that_fails_lets_nothing_through_and_goes_on(project: Project) -> None:
    failing = "from guardrail.proxy.session import Session as S; is_call = S.is_call; S.is_call = lambda self, request: 1 // 0 if request.id == 'x' else is_call(self, request); from guardrail.cli.main import main; main()"
    server = ["--", sys.executable, SHOP_SERVER, project.folder / "shop.db"]
    with Peer([sys.executable, "-c", failing, "mcp", *server], project.folder, SHOP_KEY="k") as peer:
        peer.begin()
        assert peer.ask("tools/call", CALL["params"], id="x")["error"]["code"] == -32603
        assert not peer.call("lookup_order", order_id=17)["isError"]
        assert peer.close() == 0
        assert b"guardrail.guard_error" in peer.log
    assert (project.folder / "heard").read_text().count("tools/call") == 1


def test_no_message_hides_in_another_behind_a_carriage_return(start: Start, project: Project) -> None:
    peer = start()
    peer.send(b'{"jsonrpc": "2.0", "id": 4, "method": "ping", "params": {"x":\r' + SMUGGLED.encode() + b"\r}}")
    assert peer.answer_to(4)["result"] == {}
    assert b"\r" not in (project.folder / "heard").read_bytes()


def test_blank_lines_and_windows_line_ends_do_no_harm(start: Start) -> None:
    peer = start()
    peer.send(b"\n\r\n" + json.dumps({**CALL, "id": 4}).encode() + b"\r")
    assert not peer.result_of(4)["isError"]


def test_lines_of_the_server_that_are_no_messages_are_dropped(start: Start) -> None:
    peer = start()
    assert text(peer.call("mutter")) == '"muttered"'
    peer.close()
    assert peer.log.count(b"server_line_dropped") == 2
    assert b"no message" not in peer.log


def test_a_second_answer_to_a_call_does_not_reach_the_client(start: Start) -> None:
    peer = start()
    assert "the first answer" in text(peer.call("answer_twice"))
    assert peer.ask("ping")["result"] == {}
    peer.close()
    assert not [raw for raw in peer.raw if b"the second answer" in raw]


@pytest.mark.parametrize("size", [100_000, 5_000_000])
def test_a_large_answer_goes_through(start: Start, size: int) -> None:
    peer = start()
    assert len(text(peer.call("long_answer", size=size))) == size + 2


def test_an_answer_beyond_the_limit_fails_its_call_and_the_session_goes_on(start: Start) -> None:
    peer = start()
    assert peer.call("long_answer", size=70_000_000)["error"]["code"] == -32000
    assert not peer.call("lookup_order", order_id=17)["isError"]


def test_a_request_beyond_the_limit_is_answered_and_thrown_away(start: Start) -> None:
    peer = start()
    peer.send(b'{"x": "' + b"y" * 70_000_000 + b'"}')
    assert "bytes" in peer.hear(lambda message: "error" in message)["error"]["message"]
    assert not peer.call("lookup_order", order_id=17)["isError"]


def test_a_second_request_with_the_id_of_a_call_under_way_is_not_passed_on(start: Start, project: Project) -> None:
    peer = start()
    id = peer.begin_call("note_order", order_id=17, note="slow", pause=1)
    until((project.folder / "begun").exists)
    peer.request("ping", id=id)
    assert peer.answer_to(None)["error"]["code"] == -32600
    assert peer.ask("ping")["result"] == {}
    assert text(peer.result_of(id)) == '{"noted": 17}'


def test_a_cancelled_write_is_in_doubt_and_gets_no_answer(start: Start, runs: Runs, project: Project) -> None:
    peer = start()
    id = peer.begin_call("note_order", order_id=17, note="slow", pause=0.5)
    until((project.folder / "begun").exists)
    peer.send({"method": "notifications/cancelled", "params": {"requestId": id}})
    assert peer.ask("ping")["result"] == {}
    until(lambda: b"answer_dropped" in peer.log)
    assert b'"notifications/cancelled"' in (project.folder / "heard").read_bytes()
    peer.close()
    assert outcomes(runs) == ["in_doubt"]
    assert not [message for message in map(json.loads, peer.raw) if message.get("id") == id]


def test_a_cancellation_of_nothing_is_passed_on(start: Start, project: Project) -> None:
    peer = start()
    peer.send({"method": "notifications/cancelled", "params": {"requestId": 99}})
    peer.ask("ping")
    assert b"99" in (project.folder / "heard").read_bytes()


def test_the_death_of_the_server_answers_all_and_ends_the_proxy(start: Start, runs: Runs, project: Project) -> None:
    peer = start()
    slow = peer.begin_call("note_order", order_id=17, note="slow", pause=20)
    until((project.folder / "begun").exists)
    dead = peer.begin_call("die")
    assert {peer.result_of(id)["error"]["code"] for id in (slow, dead)} == {-32000}
    assert peer.ended() == 1
    assert sorted(outcomes(runs)) == ["error", "in_doubt"]
    assert runs()[0].verdict is not None


def test_a_client_that_closes_its_end_gets_the_answers_that_are_still_to_come(start: Start, runs: Runs) -> None:
    peer = start()
    ids = [peer.begin_call("lookup_order", order_id=17) for _ in range(20)]
    ids.append(peer.begin_call("note_order", order_id=17, note="slow", pause=0.5))
    peer.input.close()
    assert not any(peer.result_of(id)["isError"] for id in ids)
    assert peer.ended() == 0
    assert set(outcomes(runs)) == {"ok"}


def test_a_killed_client_ends_the_session(project: Project, runs: Runs) -> None:
    command = [sys.executable, "-m", "guardrail", "mcp", "--", sys.executable, SHOP_SERVER, project.folder / "shop.db"]
    relay = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"
    script = f"import sys, time; sys.stdout.write({json.dumps(json.dumps({**CALL, 'id': 1}))} + '\\n'); sys.stdout.flush(); time.sleep(60)"
    client = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    with Peer([sys.executable, "-c", relay, *map(str, command)], project.folder, SHOP_KEY="k") as peer:
        assert client.stdout is not None
        peer.send(client.stdout.readline().rstrip())
        assert not peer.result_of(1)["isError"]
        client.kill()
        client.wait()
        client.stdout.close()
        assert peer.close() == 0
    assert outcomes(runs) == ["ok"]


def test_a_killed_proxy_leaves_no_server_behind_and_its_run_is_known_as_cut_off(
    start: Start, runs: Runs, project: Project
) -> None:
    peer = start()
    peer.call("lookup_order", order_id=17)
    peer.begin_call("note_order", order_id=17, note="slow", pause=1)
    until((project.folder / "begun").exists)
    servers = _children(peer.process.pid)
    assert servers
    peer.process.kill()
    peer.process.wait()
    until(lambda: not any(_lives(server) for server in servers))
    (run,) = runs()
    assert run.ended is None
    assert [call.tool for call in run.in_doubt] == ["note_order"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_session_in_order(start: Start, runs: Runs, project: Project, number: int) -> None:
    peer = start()
    peer.call("lookup_order", order_id=17)
    peer.begin_call("note_order", order_id=17, note="slow", pause=30)
    until((project.folder / "begun").exists)
    servers = _children(peer.process.pid)
    peer.process.send_signal(number)
    assert peer.ended() == 0
    assert outcomes(runs) == ["ok", "in_doubt"]
    assert runs()[0].verdict is not None
    assert not any(_lives(server) for server in servers)


def test_a_slow_reader_loses_nothing(start: Start) -> None:
    peer = start()
    asked = [peer.begin_call("long_answer", size=200_000) for _ in range(100)]
    time.sleep(0.5)
    assert all(len(text(peer.result_of(id))) == 200_002 for id in asked)


def test_a_server_that_does_not_end_by_itself_is_made_to(project: Project) -> None:
    stubborn = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
    )
    with proxied(project.folder, server=[sys.executable, "-c", stubborn], SHOP_KEY="k") as peer:
        until(lambda: _children(peer.process.pid))
        assert peer.close() == 0


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--", "/no/such/server"], 2, "/no/such/server: No such file"),
        ([], 2, "give a server"),
        (["--url", "http://127.0.0.1:1"], 2, "--url needs --listen"),
        (["--task", "nothing", "--", "cat"], 2, "no such task"),
        (["--idle", "soon", "--", "cat"], 2, "--idle"),
        (["--server", "other", "--", "cat"], 2, "no such server"),
    ],
)
def test_what_cannot_be_begun_says_why(project: Project, options: list[str], code: int, said: str) -> None:
    with Peer([sys.executable, "-m", "guardrail", "mcp", *options], project.folder, SHOP_KEY="k") as peer:
        assert peer.close() == code
        assert said in " ".join(peer.log.decode().split())
        assert peer.raw == []


def test_requests_from_a_file_to_a_file(project: Project) -> None:
    asked, said = project.folder / "asked", project.folder / "said"
    asked.write_text("\n".join(json.dumps({**CALL, "id": id}) for id in range(50)))
    command = [sys.executable, "-m", "guardrail", "mcp", "--", sys.executable, str(SHOP_SERVER), "shop.db"]
    with asked.open("rb") as reading, said.open("wb") as writing:
        from support.command_line import ENVIRON

        env = {**ENVIRON, "SHOP_KEY": "k"}
        subprocess.run(command, stdin=reading, stdout=writing, cwd=project.folder, env=env, check=True, timeout=60)
    answers: list[dict[str, Any]] = [json.loads(line) for line in said.read_text().splitlines()]
    assert sorted(answer["id"] for answer in answers) == list(range(50))


def test_many_calls_at_once_are_all_answered(start: Start, runs: Runs) -> None:
    peer = start()
    said: dict[object, str] = {}

    def ask() -> None:
        for id in range(1_000, 1_500):
            peer.request("tools/call", {"name": "lookup_order", "arguments": {"order_id": 17}}, id=f"r{id}")

    asking = threading.Thread(target=ask)
    asking.start()
    for id in range(1_000, 1_500):
        said[f"r{id}"] = str(peer.result_of(f"r{id}")["structuredContent"]["status"])
    asking.join()
    peer.close()
    assert len(said) == 500
    assert outcomes(runs) == ["ok"] * 500


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
