"""The ledger: what is durable at once, what is written in groups, and what is read back."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection

from guardrail.errors import LedgerError
from guardrail.ledger import transactions
from guardrail.ledger.database import Database, Execute, Purpose, T
from guardrail.ledger.histories import contents, history, holders, summaries
from guardrail.ledger.keeping import pack, unpack
from guardrail.ledger.lifetime import accompany
from guardrail.ledger.opening import open_database
from guardrail.ledger.records import (
    CallRecord,
    Entry,
    PictureRecord,
    RunHistory,
    RunRecord,
    RunSummary,
    VerdictRecord,
)
from guardrail.ledger.rows import write, write_lost
from guardrail.pictures import Picture

GROUP = 64
"""So many entries are written together, at the latest."""

DELAY = 0.1
"""So many seconds an entry waits to be written, at the longest, while the ledger can be written."""

CROWD = 8 * GROUP
"""When so many entries wait, whoever records waits a moment too, so that they can be written."""

MOST = 10_000
"""So many entries wait while the ledger cannot be written; later ones are counted as lost."""

RETRY = 5.0
"""So many seconds apart are the tries, at the longest, while the ledger cannot be written."""

_AGED = "COALESCE(r.ended, r.opened) < ?"


class Ledger:
    """The durable record of runs.

    `open_run`, `intend` and `close_run` are durable when they return: what they record, and all that was
    recorded before, outlives the process and a power failure. `record` never raises and hardly ever waits:
    its entries are written with the next durable operation, in groups, or by a thread that lives while there
    is something to write; on a server they are not written in groups by whoever records, but by that thread. While the ledger cannot be written, durable operations raise `LedgerError` and
    entries wait.

    Any method may be called from any thread, and several processes may use one database. A process that forks
    keeps its ledger, and so does the child; each writes what it has recorded itself.

    `place`: the path of a SQLite file, `memory` for none, a `postgresql://` URL, or a `Database`. `patience`: how
    many seconds a durable operation waits for other processes and threads, and for the database.
    """

    def __init__(self, place: str | os.PathLike[str] | Database = "memory", *, patience: float = 5.0) -> None:
        self._database: Database = open_database(place) if isinstance(place, str | os.PathLike) else place
        self._patience = patience
        self._opened: dict[str, float] = {}  # when which run was opened here
        self._closed = False
        self._trouble: LedgerError | None = None
        self._start_afresh()
        accompany(self)

    # What is durable.

    def open_run(self, run: RunRecord) -> None:
        """Open a run, or take up one that is in the ledger: it keeps its inputs and its beginning.

        Raises `RunTaken`, a `LedgerError`, when the run is open in another process that still lives.
        """
        self._commit(lambda execute: transactions.open_run(execute, run, self._database.presence))
        self._opened[run.id] = run.started

    def intend(self, call: CallRecord) -> None:
        """Record that a write of a run that is open here is about to run.

        Raises `LedgerError`, also when another process has taken the run up since; then the write must not run.
        """
        self._commit(lambda execute: transactions.intend(execute, call, self._opened.get(call.run)))

    def close_run(self, verdict: VerdictRecord, *, keep_pictures: bool = False) -> None:
        """Close a run that is open here with its verdict.

        The pictures of a verified run are dropped, unless `keep_pictures` says that it may be taken up again: what was
        proven right needs no rows to explain it.
        """
        opened = self._opened.get(verdict.run)
        self._commit(lambda execute: transactions.close_run(execute, verdict, opened, keep_pictures=keep_pictures))
        self._opened.pop(verdict.run, None)

    def flush(self) -> None:
        """Write what waits, durably."""
        if self._buffer:
            self._commit(None)

    def close(self) -> None:
        """Write what waits and let go of the database. After that, durable operations raise `LedgerError`."""
        try:
            self.flush()
        except LedgerError as error:
            raise LedgerError(f"{len(self._buffer)} records could not be written: {error}") from error
        finally:
            with self._lock:
                self._closed = True
                self._buffer.clear()
                self._database.close()
            self._pause.set()

    # What waits.

    def record(self, entry: Entry) -> None:
        """Record something that may wait a moment. Never raises; what a full buffer cannot take is counted."""
        waiting = len(self._buffer)
        if waiting < MOST:
            self._buffer.append(entry)
        else:
            self._lose(entry)
        if self._idle or waiting >= GROUP - 1:
            self._attend(waiting)

    def keep_picture(self, run: str, picture: Picture, redacted_columns: Collection[str] = frozenset()) -> None:
        """Keep a table's before-picture; it is durable with the next intent, before any write runs.

        Of `redacted_columns` only digests are kept. Raises `LedgerError` for a value that cannot be kept, and
        when the ledger cannot be written and no more can wait.
        """
        content = pack(picture, redacted_columns)
        if self._closed or len(self._buffer) >= MOST:
            raise self._trouble or self._is_closed()
        self.record(PictureRecord(run, picture.table, content))

    @property
    def trouble(self) -> LedgerError | None:
        """Why the entries that wait cannot be written at present; None when all is well."""
        return self._trouble

    # What is read back.

    def load_run(self, run: str) -> RunHistory | None:
        """Everything that is known of a run but its pictures; None when there is no such run."""
        return self._read(lambda execute: history(execute, run))

    def load_pictures(self, run: str) -> tuple[Picture, ...]:
        """The before-pictures of a run; values of redacted columns are `Digest`s."""
        return tuple(unpack(content) for content in self._read(lambda execute: contents(execute, run)))

    def runs(
        self, *, open_only: bool = False, task: str | None = None, verdict: str | None = None, limit: int = 100
    ) -> tuple[RunSummary, ...]:
        """The runs that fit all that is given, the latest first."""
        return self._read(
            lambda execute: summaries(execute, open_only=open_only, task=task, verdict=verdict, limit=limit)
        )

    def remarks(self) -> tuple[str, ...]:
        """What an operator should know: others who may read it, entries that cannot be written.

        Raises `LedgerError` when it cannot be had at all.
        """
        self._acquire()
        try:
            return self._database.remarks() + (() if self._trouble is None else (str(self._trouble),))
        finally:
            self._lock.release()

    def delete(self, run: str | None = None, *, older_than: float | None = None) -> int:
        """Delete one run, or all that ended more than so many seconds ago; says how many.

        A run that is open in a living process is not deleted: alone it is a `LedgerError`, among others it
        stays. A run that was cut off counts as ended when it was opened.
        """
        if (run is None) == (older_than is None):
            raise ValueError("delete() takes the id of a run or an age, one of them")
        condition = ("r.id = ?", run) if older_than is None else (_AGED, time.time() - older_than)
        found = self._read(lambda execute: holders(execute, *condition))
        if run is not None and any(holder.alive for holder in found):
            there = f"process {found[0].run.pid} on {found[0].run.host}"
            raise LedgerError(f"the run {run} is open in {there}: end it before it is deleted")
        doomed = [holder.run.id for holder in found if not holder.alive]
        if doomed:
            self._commit(lambda execute: transactions.delete(execute, doomed), "erase")
        return len(doomed)

    # The buffer.

    def _start_afresh(self) -> None:
        """Begin with nothing recorded and no thread: in a new ledger, and in a child after a fork."""
        self._buffer: list[Entry] = []
        self._lost = Counter[str]()
        self._lock = threading.Lock()  # for the database, and for taking entries out of the buffer
        self._guard = threading.RLock()  # for what is below; a finaliser may record in the middle of it
        self._writes = 0
        self._idle = True  # no thread looks after the buffer
        self._pause = threading.Event()  # set when the thread's pause is over before its time

    def _attend(self, waiting: int) -> None:
        """See to it that the buffer is written: a full group at once, unless somebody else is at it.

        What would wait for a server is the thread's to do: the one who records may be an event loop.
        """
        if self._closed:
            self._buffer.clear()
            return
        if self._idle and self._claim():
            self._start_thread()
        if waiting < GROUP - 1 or self._trouble is not None:
            return
        if not self._database.is_near:
            self._pause.set()
        if self._lock.acquire(timeout=_haste(waiting)):
            try:
                if self._database.is_near:
                    self._write_quietly(patience=0)
            finally:
                self._lock.release()

    def _start_thread(self) -> None:
        try:
            threading.Thread(target=self._look_after, name="guardrail-ledger", daemon=True).start()
        except RuntimeError:  # no further thread is to be had; then the next durable operation writes
            self._idle = True

    def _look_after(self) -> None:
        """Write the buffer in a moment, and go when nothing is left."""
        pause = DELAY / 2
        while True:
            writes = self._writes
            self._pause.wait(pause)
            self._pause.clear()
            if self._writes == writes:  # else what waits has been waiting since then only
                with self._lock:
                    self._write_quietly(patience=DELAY)
            pause = DELAY / 2 if self._trouble is None else min(2 * pause, RETRY)
            # Whoever records looks at `_idle` after adding its entry: either it sees that nobody is here any
            # more, or its entry is seen here.
            if not self._buffer:
                self._idle = True
                if not self._buffer or not self._claim():
                    return

    def _claim(self) -> bool:
        """Become the one who looks after the buffer, unless another was faster."""
        with self._guard:
            was_idle, self._idle = self._idle, False
        return was_idle

    def _lose(self, entry: Entry) -> None:
        with self._guard:
            self._lost[entry.run] += 1

    # The database.

    def _commit(self, work: Callable[[Execute], object] | None, purpose: Purpose = "durable") -> None:
        """Do some work in one transaction with all that waits; durable when this returns."""
        patience = self._acquire()
        try:
            self._write(work, purpose, patience)
        finally:
            self._lock.release()

    def _read(self, work: Callable[[Execute], T]) -> T:
        """Read from one snapshot, in which everything recorded so far is to be found."""
        patience = self._acquire()
        try:
            self._write_quietly(patience=DELAY)
            return self._database.transact("look", patience, work)
        finally:
            self._lock.release()

    def _acquire(self) -> float:
        """Have the database to oneself, until the lock is released; returns what is left of one's patience."""
        patience = self._patience
        if not self._lock.acquire(blocking=False):
            begin = time.monotonic()
            if not self._lock.acquire(timeout=patience):
                raise LedgerError(f"the ledger {self._database.name} has been busy for {patience:g} s: try again")
            patience = max(patience - (time.monotonic() - begin), 0)
        if self._closed:
            self._lock.release()
            raise self._is_closed()
        return patience

    def _write_quietly(self, patience: float) -> None:
        """Write what waits; if that cannot be done, it goes on waiting."""
        if not self._buffer or self._closed:
            return
        try:
            self._write(None, "group", patience)
        except LedgerError as error:
            self._trouble = error

    def _write(self, work: Callable[[Execute], object] | None, purpose: Purpose, patience: float) -> None:
        """Write what waits, then do the work; nothing leaves the buffer before it is committed.

        When it is not known whether it was, it is written again: what is there already stays as it is.
        """
        entries, lost = self._buffer[:], self._lost and Counter(self._lost)

        def all_of_it(execute: Execute) -> None:
            if entries:
                write(execute, entries)
            if lost:
                write_lost(execute, lost)
            if work is not None:
                work(execute)

        self._database.transact(purpose, patience, all_of_it)
        del self._buffer[: len(entries)]
        self._writes += 1
        self._trouble = None
        if lost:
            with self._guard:
                self._lost -= lost

    def _is_closed(self) -> LedgerError:
        return LedgerError(f"the ledger {self._database.name} is closed")

    # The process.

    def before_fork(self) -> None:
        """Finish what is being written, and write nothing until the fork is done."""
        self._lock.acquire()
        self._database.before_fork()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Begin anew: what waited is the parent's to write."""
        self._database.after_fork_in_child()
        self._start_afresh()

    def before_exit(self) -> None:
        """Write what waits; there is nothing to be done about a closed ledger, whose end was told before."""
        if not self._closed:
            self.flush()


def _haste(waiting: int) -> float:
    """How long to wait for one's turn to write: not at all, until so many entries wait that they must be written."""
    return 0 if waiting < CROWD else DELAY
