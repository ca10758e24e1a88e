"""Runs whose ledger is on a PostgreSQL server."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest

from guardrail import Guard, RunHalted, RunStopped
from guardrail.errors import LedgerError
from guardrail.ledger.transactions import RunTaken
from support import crashing
from support.ledgers import connected, in_schema, sessions_of
from support.project import CONFIGURATION, Project
from support.shop import Shop
from support.wires import wire_to

INPUTS = {"order_id": 17, "amount": "19.90"}


@pytest.fixture
def place(postgres_url: str) -> str:
    return in_schema(postgres_url)


@pytest.fixture
def project(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEDGER", place)
    made = Project(tmp_path, Shop(tmp_path / "shop.db"))
    made.write(CONFIGURATION.replace("ledger: runs/ledger.db", "ledger: ${env:LEDGER}"))
    return made


def agent(project: Project, how: str) -> subprocess.Popen[str]:
    """A process in the middle of the run `refund-17`."""
    script = [sys.executable, crashing.__file__, str(project.folder), "refund-17", how]
    environ = {**os.environ, "PYTHONPATH": str(Path(crashing.__file__).parents[1])}
    process = subprocess.Popen(script, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


def test_one_that_was_killed_is_taken_up_and_judged(project: Project) -> None:
    with agent(project, "killed") as process:
        process.communicate(timeout=60)
    assert process.returncode < 0
    with Guard.load(project.file) as guard:
        (cut_off,) = guard.ledger.runs(open_only=True)
        assert (cut_off.run.id, cut_off.in_doubt, cut_off.calls) == ("refund-17", 1, 2)
        with guard.run("refund_order", id="refund-17", inputs=INPUTS) as run:
            pass
        assert run.verdict is not None
        assert run.verdict.kind == "verified"
        found = guard.ledger.load_run("refund-17")
        assert found is not None
        assert (found.run.pid, found.ended is None) == (os.getpid(), False)


def test_one_of_a_living_process_is_not_taken_up(project: Project) -> None:
    with agent(project, "waiting") as process, Guard.load(project.file) as guard:
        with pytest.raises(RunTaken, match=f"open in process {process.pid} on "):
            guard.run("refund_order", id="refund-17", inputs=INPUTS).__enter__()
        process.communicate("go\n", timeout=60)
        found = guard.ledger.load_run("refund-17")
        assert found is not None
        assert found.verdict is not None
        assert found.verdict.kind == "silent_failure"


def test_one_goes_on_when_the_connection_is_lost_between_its_calls(project: Project, place: str) -> None:
    def lose() -> None:
        (session,) = sessions_of(place)
        with closing(connected(place)) as server:
            server.execute("SELECT pg_terminate_backend(%s, 60000)", (session,))

    with Guard.load(project.file) as guard:
        with guard.run("refund_order", inputs=INPUTS) as run:
            lose()
            run.wrap(project.shop.lookup_order)(order_id=17)
            guard.ledger.flush()
            lose()
            run.wrap(project.shop.refund_order)(order_id=17, amount="19.90")
            lose()
        assert run.verdict is not None
        assert run.verdict.kind == "verified"
        found = guard.ledger.load_run(run.id)
        assert found is not None
        assert [recorded.call.tool for recorded in found.calls] == ["lookup_order", "refund_order"]
        assert (found.unfinished, found.lost) == ((), 0)


def test_a_write_does_not_run_while_the_server_is_away(
    project: Project, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, _, rest = place.partition("&application_name=")
    with wire_to(url) as wire:
        monkeypatch.setenv("LEDGER", f"{wire.url}&application_name={rest}")
        before = project.shop.execute("select status from orders where id = 17")
        with Guard.load(project.file) as guard:
            monkeypatch.setattr(guard.ledger, "_patience", 0.1)
            with pytest.raises(RunStopped, match="guard error"), guard.run("refund_order", inputs=INPUTS) as run:
                run.wrap(project.shop.lookup_order)(order_id=17)
                wire.close()
                with pytest.raises(RunHalted):
                    run.wrap(project.shop.refund_order)(order_id=17, amount="19.90")
                wire.reopen()
            assert project.shop.execute("select status from orders where id = 17") == before
            found = guard.ledger.load_run(run.id)
            assert found is not None
            assert [recorded.outcome and recorded.outcome.executed for recorded in found.calls] == [True, False]
            assert found.in_doubt == ()


def test_one_that_another_has_taken_up_writes_no_more(project: Project) -> None:
    with Guard.load(project.file) as first, Guard.load(project.file) as second:

        def take_up() -> None:
            with second.run("refund_order", id="one", inputs=INPUTS) as run:
                run.wrap(project.shop.refund_order)(order_id=17, amount="19.90")

        with (
            pytest.raises(RunStopped, match=r"guard error: .* has taken its run up"),
            first.run("refund_order", id="one", inputs=INPUTS) as run,
        ):
            run.wrap(project.shop.lookup_order)(order_id=17)
            first.ledger.flush()
            other = threading.Thread(target=take_up)  # where it is not a part of this one
            other.start()
            other.join()
            with pytest.raises(RunHalted):
                run.wrap(project.shop.cancel_order)(order_id=17)
        assert project.shop.execute("select status from orders where id = 17") == [("refunded",)]
        found = first.ledger.load_run("one")
        assert found is not None
        assert found.verdict is not None
        assert found.verdict.kind == "verified"


def test_a_password_is_not_in_what_a_guard_shows(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "h0rse/battery"
    monkeypatch.setenv("LEDGER", f"postgresql://me:{secret}@127.0.0.1:1/shop")
    with pytest.raises(LedgerError, match="percent-encode") as caught:
        Guard.load(project.file)
    assert "h0rse" not in repr(caught.value)
    monkeypatch.setenv("LEDGER", f"postgresql://me:{quote(secret, safe='')}@127.0.0.1:1/shop")
    guard = Guard.load(project.file)
    assert "h0rse" not in repr(guard.configuration)
    monkeypatch.setattr(guard.ledger, "_patience", 0)
    with pytest.raises(LedgerError, match="cannot be reached") as unreached:
        guard.ledger.runs()
    assert "h0rse" not in repr(unreached.value)
    guard.close()
