"""Runs that another process opened and did not close: taken up again under their id."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from guardrail import Guard, Verdict
from support import crashing
from support.project import CONFIGURATION, Project
from support.shop import Shop

INPUTS = {"order_id": 17, "amount": "19.90"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    made = Project(tmp_path, Shop(tmp_path / "shop.db"))
    made.write(CONFIGURATION)
    return made


def crash(project: Project) -> None:
    """Let a process be killed in the middle of the run `refund-17`, after its refund."""
    environ = {**os.environ, "PYTHONPATH": str(Path(crashing.__file__).parents[1])}
    script = [sys.executable, crashing.__file__, str(project.folder), "refund-17", "killed"]
    assert subprocess.run(script, env=environ, capture_output=True).returncode < 0


def judged(project: Project, **inputs: object) -> Verdict:
    """The verdict of the run, taken up and closed at once."""
    with Guard.load(project.file) as guard, guard.run("refund_order", id="refund-17", inputs=inputs or INPUTS) as run:
        pass
    assert run.verdict is not None
    return run.verdict


def test_it_is_judged_from_its_first_picture(project: Project) -> None:
    crash(project)
    assert judged(project).kind == "verified"


def test_its_time_began_when_it_was_first_opened(project: Project) -> None:
    """What the first process wrote was written during the run."""
    project.replace(
        "values: {status: refunded}",
        "values: {status: refunded}\n      - inserted: shop.audit\n        values: {what: {during: run}}",
    )
    project.replace(
        "shop.refunds: {key: id}",
        "shop.refunds: {key: id}\n      shop.audit: {key: id, compare: {what: {kind: instant, zone: UTC}}}",
    )
    project.shop.execute(
        "create trigger audited after insert on refunds begin "
        "insert into audit (what) values (strftime('%Y-%m-%d %H:%M:%f', 'now')); end"
    )
    crash(project)
    assert [str(finding) for finding in judged(project).findings] == []


def test_without_its_picture_nothing_that_it_wrote_counts_as_good(project: Project) -> None:
    crash(project)
    with closing(sqlite3.connect(project.ledger)) as connection, connection:
        connection.execute("delete from pictures")
    assert judged(project).kind == "unverified"


def test_inputs_that_are_given_again_stand_in_for_redacted_ones(project: Project) -> None:
    crash(project)
    with closing(sqlite3.connect(project.ledger)) as connection, connection:
        connection.execute("""update runs set inputs = '{"order_id": 17, "amount": "[redacted]"}'""")
    assert judged(project).kind == "verified"


def test_the_ledger_lies_beside_the_configuration(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    with Guard.load("../guardrail.yaml", stores={"shop": project.shop.url}) as guard, guard.run(id="here"):
        pass
    assert project.ledger.exists()
    assert list(elsewhere.iterdir()) == []
