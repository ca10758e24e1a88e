"""Whatever happens to the file, durable operations say so and nothing acknowledged is lost."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import stat
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from guardrail.errors import LedgerError
from guardrail.ledger.database import Execute, Purpose
from guardrail.ledger.ledger import Ledger
from guardrail.ledger.records import CallRecord, OutcomeRecord, RunRecord, VerdictRecord
from guardrail.ledger.sqlite import SqliteDatabase

Runs = Callable[..., RunRecord]
Calls = Callable[..., CallRecord]
Outcomes = Callable[..., OutcomeRecord]
Children = Callable[[str], subprocess.Popen[str]]


def numbers(ledger: Ledger, run: str = "r1") -> list[int]:
    found = ledger.load_run(run)
    return [] if found is None else [recorded.call.number for recorded in found.calls]


class TestAFullDisk:
    def test_a_database_that_may_not_grow_stops_writes_and_loses_nothing(
        self, path: Path, run_record: Runs, call_record: Calls, outcome_record: Outcomes
    ) -> None:
        database = Limited(path)
        ledger = Ledger(database)
        ledger.open_run(run_record())
        database.pages = 40
        acknowledged, error = until_refused(ledger, call_record)
        assert acknowledged > 5
        assert re.search(r"ledger\.db cannot be used: the disk is full .* free some space", str(error))
        for number in range(1, 100):
            ledger.record(outcome_record(1000 + number))
        ledger.record(outcome_record(1, intended=True))
        assert numbers(ledger) == list(range(1, acknowledged + 1))
        assert isinstance(ledger.trouble, LedgerError)
        assert str(ledger.trouble) in ledger.remarks()
        with pytest.raises(LedgerError, match="full"):
            ledger.intend(call_record(500, args="x" * 200_000))

        database.pages = 100_000
        ledger.intend(call_record(501))
        assert numbers(ledger) == [*range(1, acknowledged + 1), 501, *range(1001, 1100)]
        assert ledger.trouble is None
        assert ledger.remarks() == ()
        found = ledger.load_run("r1")
        assert found is not None
        assert found.calls[0].outcome is not None
        assert found.lost == 0
        ledger.close()

    def test_a_process_at_its_limit_of_file_size_goes_on_when_it_is_lifted(self, child: Children, path: Path) -> None:
        process = child(
            """
import resource
from guardrail.errors import LedgerError
ledger = Ledger(path)
ledger.open_run(run())
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
number = 0
try:
    while True:
        ledger.intend(write(number + 1))
        number += 1
except LedgerError as error:
    tell(number, error)
for other in range(5000, 5200):
    ledger.record(read(other))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
ledger.intend(write(6000))
ledger.close()
"""
        )
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        number, _, words = out.partition(" ")
        assert "ledger.db cannot be used" in words
        assert "check the disk" in words or "free some space" in words
        ledger = Ledger(path)
        assert numbers(ledger) == [*range(1, int(number) + 1), *range(5000, 5200), 6000]
        ledger.close()

    def test_what_could_not_be_written_is_told_when_the_ledger_is_closed(
        self, path: Path, run_record: Runs, outcome_record: Outcomes
    ) -> None:
        database = Limited(path)
        ledger = Ledger(database)
        ledger.open_run(run_record())
        database.pages = 1
        ledger.record(outcome_record(1)._replace(result="x" * 1_000_000))
        with pytest.raises(LedgerError, match=r"1 records could not be written: .* the disk is full"):
            ledger.close()


def until_refused(ledger: Ledger, call_record: Calls) -> tuple[int, LedgerError]:
    """Intend one write after another; the number of the last that was acknowledged, and what the next met."""
    number = 0
    while True:
        try:
            ledger.intend(call_record(number + 1, args="x" * 2000))
        except LedgerError as error:
            return number, error
        number += 1


class Limited(SqliteDatabase):
    """A database that may grow to so many pages; SQLite then behaves as on a disk that is full."""

    pages = 100_000

    def begin(self, purpose: Purpose, patience: float) -> Execute:
        execute = super().begin(purpose, patience)
        execute(f"PRAGMA max_page_count = {self.pages}")
        return execute


class TestALock:
    def test_of_another_process_is_waited_for(
        self, child: Children, path: Path, run_record: Runs, call_record: Calls
    ) -> None:
        ledger = Ledger(path, patience=60)
        ledger.open_run(run_record())
        holder = child(HOLDER)
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        waiting = threading.Thread(target=ledger.intend, args=(call_record(1),))
        waiting.start()
        assert waiting.is_alive()
        holder.stdin.write("go\n")
        holder.stdin.flush()
        waiting.join()
        assert numbers(ledger) == [1]
        ledger.close()

    def test_that_stays_is_an_error_and_what_waits_is_written_afterwards(
        self, child: Children, path: Path, run_record: Runs, call_record: Calls, outcome_record: Outcomes
    ) -> None:
        ledger = Ledger(path, patience=0.2)
        ledger.open_run(run_record())
        holder = child(HOLDER)
        assert holder.stdout is not None
        holder.stdout.readline()
        for number in range(1, 201):
            ledger.record(outcome_record(number))
        with pytest.raises(LedgerError, match=r"ledger\.db .* another process keeps it locked .* end that process"):
            ledger.intend(call_record(201))
        assert numbers(ledger) == []
        holder.communicate("go\n")
        ledger.intend(call_record(202))
        assert numbers(ledger) == [*range(1, 201), 202]
        ledger.close()

    def test_of_another_thread_is_waited_for_no_longer_than_patience(
        self, path: Path, run_record: Runs, call_record: Calls
    ) -> None:
        entered, leave = threading.Event(), threading.Event()

        class Slow(SqliteDatabase):
            def commit(self) -> None:
                entered.set()
                leave.wait()
                super().commit()

        ledger = Ledger(Slow(path), patience=0.2)
        first = threading.Thread(target=ledger.open_run, args=(run_record(),))
        first.start()
        entered.wait()
        with pytest.raises(LedgerError, match=r"busy for 0\.2 s"):
            ledger.intend(call_record(1))
        leave.set()
        first.join()
        ledger.intend(call_record(1))
        ledger.close()


HOLDER = """
import sqlite3
connection = sqlite3.connect(path, isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
tell("held")
sys.stdin.readline()
connection.execute("COMMIT")
"""


class TestAPlaceThatWillNotDo:
    def test_a_file_that_is_no_database(self, ledger: Ledger, path: Path, run_record: Runs) -> None:
        path.write_text("dear diary, " * 200)
        with pytest.raises(LedgerError, match=r"ledger\.db .* not a SQLite database .* name another path"):
            ledger.open_run(run_record())
        assert path.read_text() == "dear diary, " * 200

    def test_the_database_of_another_application(self, ledger: Ledger, path: Path, run_record: Runs) -> None:
        with sqlite3.connect(path) as other:
            other.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
        other.close()
        before = path.read_bytes()
        with pytest.raises(LedgerError, match="another application's database"):
            ledger.open_run(run_record())
        with pytest.raises(LedgerError, match="another application's database"):
            ledger.runs()
        assert path.read_bytes() == before

    def test_a_ledger_of_a_newer_version(self, path: Path, run_record: Runs) -> None:
        newer = Ledger(path)
        newer.open_run(run_record())
        newer.close()
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA user_version = 99")
        connection.close()
        ledger = Ledger(path)
        with pytest.raises(
            LedgerError, match=r"newer version of the library \(schema 99, this one knows \d+\): upgrade"
        ):
            ledger.open_run(run_record("r2"))

    @pytest.mark.parametrize("odd", ["a\0b.db", "a\ud800.db"])
    def test_a_path_that_no_file_can_have(self, tmp_path: Path, run_record: Runs, odd: str) -> None:
        with pytest.raises(LedgerError, match=r"cannot be opened .*: name another path"):
            Ledger(tmp_path / odd).open_run(run_record())

    def test_a_folder(self, tmp_path: Path, run_record: Runs) -> None:
        with pytest.raises(LedgerError, match=r"directory\): name a path"):
            Ledger(tmp_path).open_run(run_record())

    def test_a_folder_that_may_not_be_written(self, run_record: Runs, closed_folder: Path, child: Children) -> None:
        """As another user, because root may write everywhere."""
        process = child(
            f"""
from guardrail.errors import LedgerError
if os.geteuid() == 0:
    os.seteuid(65534)
for _ in range(2):
    try:
        Ledger({str(closed_folder / "ledger.db")!r}).open_run(run())
    except LedgerError as error:
        tell(error)
"""
        )
        out, _ = process.communicate(timeout=60)
        assert out.count("ledger.db cannot be opened (Permission denied): name a path that this user may write") == 2
        assert list(closed_folder.iterdir()) == []


@pytest.fixture
def closed_folder() -> Iterator[Path]:
    """A folder that everybody may enter and nobody may write, outside of pytest's own, which is private."""
    outer = Path(tempfile.mkdtemp())
    outer.chmod(0o755)
    inner = outer / "closed"
    inner.mkdir()
    inner.chmod(0o555)
    yield inner
    inner.chmod(0o755)
    shutil.rmtree(outer)


class TestAFileThatDisappears:
    @pytest.mark.parametrize("replaced", [False, True])
    def test_stops_the_runs_that_were_in_it_and_lets_new_ones_begin(
        self, ledger: Ledger, path: Path, run_record: Runs, call_record: Calls, replaced: bool
    ) -> None:
        ledger.open_run(run_record())
        ledger.intend(call_record(1))
        for ending in ("", "-wal", "-shm"):
            Path(f"{path}{ending}").unlink()
        if replaced:
            other = Ledger(path)
            other.open_run(run_record("other"))
            other.close()
        with pytest.raises(LedgerError, match=r"ledger\.db was deleted or replaced while it was in use: .* start them"):
            ledger.intend(call_record(2))
        with pytest.raises(LedgerError, match="the run r1 cannot be recorded, because its run is not in this ledger"):
            ledger.intend(call_record(2))
        ledger.open_run(run_record("r2"))
        ledger.intend(call_record(1, run="r2"))
        assert numbers(ledger, "r2") == [1]
        assert {summary.run.id for summary in ledger.runs()} == ({"r2", "other"} if replaced else {"r2"})

    def test_is_noticed_by_a_look(self, ledger: Ledger, path: Path, run_record: Runs) -> None:
        ledger.open_run(run_record())
        path.unlink()
        with pytest.raises(LedgerError, match="was deleted or replaced"):
            ledger.load_run("r1")
        assert ledger.load_run("r1") is None


class TestAWrongUse:
    def test_an_intent_of_a_run_that_is_not_open(self, ledger: Ledger, call_record: Calls) -> None:
        with pytest.raises(LedgerError, match=r"call 3 \(refund_order\) of the run r1 cannot .* open the run first"):
            ledger.intend(call_record(3))

    def test_two_intents_under_one_number(self, ledger: Ledger, run_record: Runs, call_record: Calls) -> None:
        ledger.open_run(run_record())
        ledger.intend(call_record(1))
        with pytest.raises(LedgerError, match="recorded already: two processes may have taken the run up"):
            ledger.intend(call_record(1))
        ledger.intend(call_record(2))
        assert numbers(ledger) == [1, 2]

    def test_a_verdict_of_a_run_that_is_not_there(
        self, ledger: Ledger, verdict_record: Callable[..., VerdictRecord]
    ) -> None:
        with pytest.raises(LedgerError, match="the verdict of the run r1 cannot be recorded"):
            ledger.close_run(verdict_record())

    def test_an_error_of_the_call_leaves_what_waits_to_be_written(
        self, ledger: Ledger, run_record: Runs, call_record: Calls, outcome_record: Outcomes
    ) -> None:
        ledger.open_run(run_record())
        ledger.record(outcome_record(1))
        with pytest.raises(LedgerError):
            ledger.intend(call_record(1, run="another"))
        assert numbers(ledger) == [1]


class TestKeepingToOneself:
    @pytest.fixture(autouse=True)
    def _usual_umask(self) -> Iterator[None]:
        before = os.umask(0o022)
        yield
        os.umask(before)

    def test_file_log_and_new_folders_are_for_their_owner_only(self, tmp_path: Path, run_record: Runs) -> None:
        path = tmp_path / "a" / "b" / "ledger.db"
        ledger = Ledger(path)
        ledger.open_run(run_record())
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
        assert modes == {"ledger.db": 0o600, "ledger.db-wal": 0o600, "ledger.db-shm": 0o600}
        assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
        assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
        assert ledger.remarks() == ()
        ledger.close()

    def test_a_file_that_others_can_read_is_remarked_on(self, ledger: Ledger, path: Path, run_record: Runs) -> None:
        path.touch()
        path.chmod(0o644)
        ledger.open_run(run_record())
        remarks = ledger.remarks()
        assert f"{path} can be read or changed by others (mode 644): chmod 600 it" in remarks
        assert len(remarks) == 3
