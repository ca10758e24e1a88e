"""Signals: the first one ends sessions and judges their runs, the second one waits for nothing any more."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from guardrail.ledger.records import RunHistory
from proxy.test_proxy_http import Client
from proxy.test_proxy_pipes import until
from support.command_line import ENVIRON
from support.mcp_peers import SHOP_SERVER, Peer
from support.ports import free_port, until_it_listens
from support.project import Project

Runs = Callable[[], list[RunHistory]]
SIGNALS = [signal.SIGTERM, signal.SIGINT]
REFUND = ["--task", "refund_order", "--input", "order_id=17", "--input", "amount=19.90"]
DEAF = ["sh", "-c", """trap '' INT; exec "$@" """, "sh"]
"""What starts a process as a shell starts one in its background."""


@pytest.fixture
def settling(project: Project) -> Project:
    """A project whose runs wait long for a state that does not come."""
    project.replace("\ntasks:\n  refund_order:\n", "\ntasks:\n  refund_order:\n    settle: 300s\n")
    return project


@contextmanager
def settled(project: Project) -> Generator[Peer]:
    """A proxy that settles after the first signal, with a write in doubt."""
    server = ["--", sys.executable, SHOP_SERVER, project.folder / "shop.db"]
    command = [*DEAF, sys.executable, "-m", "guardrail", "mcp", *REFUND, *server]
    with Peer(command, project.folder, SHOP_KEY="k") as peer:
        peer.begin()
        peer.begin_call("note_order", order_id=17, note="slow", pause=100)
        until((project.folder / "begun").exists)
        yield peer


def judged(runs: Runs) -> RunHistory:
    (run,) = runs()
    assert [call.tool for call in run.in_doubt] == ["note_order"]
    assert run.verdict is not None
    return run


@pytest.mark.parametrize("second", SIGNALS)
@pytest.mark.parametrize("first", SIGNALS)
def test_a_second_signal_gives_up_settling_and_loses_nothing(
    settling: Project, runs: Runs, first: signal.Signals, second: signal.Signals
) -> None:
    with settled(settling) as peer:
        peer.process.send_signal(first)
        until(lambda: runs()[0].in_doubt)
        time.sleep(1)
        assert peer.process.poll() is None
        begun = time.monotonic()
        peer.process.send_signal(second)
        assert peer.ended() == 130
        assert time.monotonic() - begun < 5
    run = judged(runs)
    assert run.verdict is not None
    assert run.verdict.kind == "unverified"
    assert "interrupted" in run.verdict.because
    assert b"in_doubt=['note_order']" in peer.log
    assert b"guardrail.gave_up" in peer.log


def test_two_signals_at_once_end_it_as_well(settling: Project, runs: Runs) -> None:
    with settled(settling) as peer:
        peer.process.send_signal(signal.SIGINT)
        peer.process.send_signal(signal.SIGTERM)
        assert peer.ended() == 130
    judged(runs)


def test_a_first_signal_lets_a_run_settle(project: Project, runs: Runs) -> None:
    project.replace("\ntasks:\n  refund_order:\n", "\ntasks:\n  refund_order:\n    settle: 2s\n")
    with settled(project) as peer:
        peer.process.send_signal(signal.SIGINT)
        assert peer.ended() == 0
    run = judged(runs)
    assert run.verdict is not None
    assert run.verdict.kind == "silent_failure"


def test_a_run_that_settles_since_nothing_was_called_is_waited_for(project: Project, runs: Runs) -> None:
    project.replace("\ntasks:\n  refund_order:\n", "\ntasks:\n  refund_order:\n    settle: 4s\n")
    server = ["--", sys.executable, SHOP_SERVER, project.folder / "shop.db"]
    command = [sys.executable, "-m", "guardrail", "mcp", *REFUND, "--idle", "1s", *server]
    with Peer(command, project.folder, SHOP_KEY="k") as peer:
        peer.begin()
        peer.call("lookup_order", order_id=17)
        time.sleep(2.5)
        peer.process.send_signal(signal.SIGTERM)
        assert peer.ended() == 0
    (run,) = runs()
    assert run.verdict is not None


def test_a_second_signal_waits_for_no_server_that_does_not_end(project: Project) -> None:
    stubborn = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-m", "guardrail", "mcp", "--", sys.executable, "-c", stubborn]
    with Peer(command, project.folder, SHOP_KEY="k") as peer:
        children = Path(f"/proc/{peer.process.pid}/task/{peer.process.pid}/children")
        until(lambda: children.read_text().split())
        time.sleep(0.5)
        (server,) = children.read_text().split()
        peer.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        begun = time.monotonic()
        peer.process.send_signal(signal.SIGTERM)
        assert peer.ended() == 130
        assert time.monotonic() - begun < 2
        assert not Path(f"/proc/{server}").exists()


def test_a_second_signal_waits_for_no_client_that_does_not_read(project: Project) -> None:
    command = [sys.executable, "-m", "guardrail", "mcp", "--", sys.executable, SHOP_SERVER, project.folder / "shop.db"]
    params = {"name": "long_answer", "arguments": {"size": 200_000}}
    asked = [{"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params} for id in range(20)]
    with subprocess.Popen(
        list(map(str, command)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=project.folder,
        env={**ENVIRON, "SHOP_KEY": "k"},
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in asked))
        process.stdin.flush()
        until(
            lambda: (project.folder / "heard").exists() and (project.folder / "heard").read_bytes().count(b"\n") == 20
        )
        process.send_signal(signal.SIGTERM)
        time.sleep(3)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 130


def test_over_http_a_second_signal_gives_up_too(settling: Project, runs: Runs) -> None:
    port = free_port()
    server = [sys.executable, str(SHOP_SERVER), str(settling.folder / "shop.db")]
    command = [*DEAF, sys.executable, "-m", "guardrail", "mcp", *REFUND, "--listen", f"127.0.0.1:{port}", "--", *server]
    with Peer(command, settling.folder, SHOP_KEY="k") as peer:
        until_it_listens(port, peer.process)
        client = Client(f"http://127.0.0.1:{port}/mcp").begin()
        assert not client.call("lookup_order", order_id=17)["isError"]
        peer.process.send_signal(signal.SIGTERM)
        time.sleep(4)
        assert peer.process.poll() is None
        peer.process.send_signal(signal.SIGINT)
        assert peer.ended() == 130
    (run,) = runs()
    assert run.verdict is not None
    assert run.verdict.kind == "unverified"
