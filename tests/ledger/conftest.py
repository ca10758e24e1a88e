"""Records to write, and children to write them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from guardrail.calls import Effect, Outcome
from guardrail.ledger.ledger import Ledger
from guardrail.ledger.processes import this_host
from guardrail.ledger.records import CallRecord, OutcomeRecord, RunRecord, VerdictRecord
from guardrail.pictures import Picture
from support.ledgers import in_schema

PRELUDE = """
import os, sys, time
from guardrail.ledger.ledger import Ledger
from guardrail.ledger.processes import this_host
from guardrail.ledger.records import CallRecord, OutcomeRecord, RunRecord
from guardrail.pictures import Picture

place = sys.argv[1]

def run(id="r1"):
    return RunRecord(id, "refund", "{}", "balanced", "enforce", time.time(), os.getpid(), this_host())

def write(number, run="r1"):
    return CallRecord(run, number, "refund_order", None, "write", "{}", "d", None, time.time())

def read(number, run="r1"):
    call = CallRecord(run, number, "lookup_order", None, "read", "{}", "d", None, time.time())
    return OutcomeRecord(run, number, "ok", "", "", "allow", True, time.time(), call=call)

def tell(*words):
    print(*words, flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a ledger in a file lies."""
    return tmp_path / "ledger.db"


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> str:
    """Where a ledger lies: in a file and on a server in turn, unless a test is for one of them only."""
    if request.param == "sqlite":
        path: Path = request.getfixturevalue("path")
        return str(path)
    url: str = request.getfixturevalue("postgres_url")
    return in_schema(url)


@pytest.fixture
def ledger(place: str) -> Iterator[Ledger]:
    ledger = Ledger(place)
    yield ledger
    ledger.close()


@pytest.fixture
def run_record() -> Callable[..., RunRecord]:
    def make(
        id: str = "r1", *, task: str | None = "refund", started: float = 1000.0, pid: int | None = None, host: str = ""
    ) -> RunRecord:
        own = os.getpid() if pid is None else pid
        return RunRecord(id, task, '{"order_id": 17}', "balanced", "enforce", started, own, host or this_host(), "t1")

    return make


@pytest.fixture
def call_record() -> Callable[..., CallRecord]:
    def make(
        number: int = 1, *, run: str = "r1", effect: Effect = "write", args: str = '{"order_id": 17}'
    ) -> CallRecord:
        return CallRecord(run, number, "refund_order", f"c{number}", effect, args, "digest", f"op{number}", 1001.0)

    return make


@pytest.fixture
def outcome_record(call_record: Callable[..., CallRecord]) -> Callable[..., OutcomeRecord]:
    """An outcome; of a call that has no intent unless `intended`."""

    def make(number: int = 1, *, run: str = "r1", outcome: Outcome = "ok", intended: bool = False) -> OutcomeRecord:
        call = None if intended else call_record(number, run=run, effect="read")
        return OutcomeRecord(run, number, outcome, "sign", "words", "allow", True, 1002.0, "rule", "{}", call)

    return make


@pytest.fixture
def verdict_record() -> Callable[..., VerdictRecord]:
    def make(run: str = "r1", *, ended: float = 1010.0, kind: str = "verified") -> VerdictRecord:
        return VerdictRecord(run, kind, "", 0, None, 1, ended)  # type: ignore[arg-type]

    return make


@pytest.fixture
def picture() -> Picture:
    return Picture(
        "shop.orders",
        ("id",),
        ("id", "status", "token"),
        {"id": "integer", "status": "text", "token": "text"},
        {(17,): (17, "paid", "s3cret-17"), (18,): (18, "open", "s3cret-18")},
        generated=frozenset({"id"}),
    )


@pytest.fixture
def child(place: str) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Starts a Python process that runs some code after the prelude, with the place of the same ledger."""
    started: list[subprocess.Popen[str]] = []

    def start(code: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PRELUDE + code, place]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
