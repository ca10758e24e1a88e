"""What can happen to a ledger in a file, and what is left in one."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from guardrail.errors import LedgerError
from guardrail.ledger.database import Execute, Purpose, T
from guardrail.ledger.ledger import Ledger
from guardrail.ledger.records import CallRecord, OutcomeRecord, RunRecord, VerdictRecord
from guardrail.ledger.sqlite import SqliteDatabase

Runs = Callable[..., RunRecord]
Calls = Callable[..., CallRecord]
Outcomes = Callable[..., OutcomeRecord]
Verdicts = Callable[..., VerdictRecord]
Children = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def place(path: Path) -> str:
    return str(path)


def numbers(ledger: Ledger, run: str = "r1") -> list[int]:
    found = ledger.load_run(run)
    return [] if found is None else [recorded.call.number for recorded in found.calls]


def test_looking_for_runs_creates_no_file(ledger: Ledger, path: Path) -> None:
    assert ledger.runs() == ()
    assert not path.exists()


def test_what_cannot_be_written_when_the_process_ends_is_told(path: Path) -> None:
    code = """
import sys
from guardrail.ledger.ledger import Ledger
from guardrail.ledger.records import RunRecord, UserTurn
ledger = Ledger(sys.argv[1], patience=0.1)
ledger.open_run(RunRecord("r1", None, "{}", "p", "enforce", 1.0, 1, "h"))
ledger.record(UserTurn("r1", 1.0))
open(sys.argv[1], "r+b").write(b"no longer a database" * 100)
import os
os.rename(sys.argv[1], sys.argv[1] + ".gone")
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert "was deleted or replaced" in done.stderr


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
ledger = Ledger(place)
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

    def transact(self, purpose: Purpose, patience: float, work: Callable[[Execute], T]) -> T:
        def limited(execute: Execute) -> T:
            execute(f"PRAGMA max_page_count = {self.pages}")
            return work(execute)

        return super().transact(purpose, patience, limited)


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


class TestDeleting:
    def test_what_is_deleted_is_gone_from_the_file_and_its_space_given_back(
        self, ledger: Ledger, run_record: Runs, call_record: Calls, verdict_record: Verdicts, path: Path
    ) -> None:
        ledger.open_run(run_record())
        for number in range(1, 200):
            ledger.intend(call_record(number, args="the-customers-own-words " * 100))
        ledger.close_run(verdict_record())
        ledger.delete("r1")
        files = [path, Path(f"{path}-wal")]
        assert not any(b"customers-own" in file.read_bytes() for file in files)
        assert sum(file.stat().st_size for file in files) < 200_000

    def test_what_is_deleted_is_gone_from_between_what_stays(
        self, ledger: Ledger, run_record: Runs, call_record: Calls, verdict_record: Verdicts, path: Path
    ) -> None:
        for id in ("a1", "b2", "c3"):
            ledger.open_run(run_record(id))
        for number in range(1, 100):
            for id in ("a1", "b2", "c3"):
                ledger.intend(call_record(number, run=id, args=f"the words of {id} " * (number % 7)))
        ledger.close_run(verdict_record("b2"))
        ledger.delete("b2")
        content = path.read_bytes() + Path(f"{path}-wal").read_bytes()
        assert b"the words of a1" in content
        assert b"the words of b2" not in content


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
