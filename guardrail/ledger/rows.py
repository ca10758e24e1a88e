"""How records become rows of the ledger's tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import chain, groupby
from operator import attrgetter
from typing import Any, Literal, TypeAlias

from guardrail.ledger.database import Execute, Row, RowRefused
from guardrail.ledger.records import (
    BoundInput,
    CallRecord,
    Entry,
    FindingRecord,
    HoldRecord,
    HoldResolved,
    OutcomeRecord,
    PictureRecord,
    RunRecord,
    StopRecord,
    UserTurn,
    VerdictRecord,
)

ToRow: TypeAlias = Callable[[Any], Row]
Again: TypeAlias = Literal["refuse", "keep", "replace", "complete"]
"""What becomes of a row whose key is there already: an error, the earlier row stays, the later one counts; or the
earlier one is completed, if it is the intent of the same call and has no outcome yet."""

_TOGETHER = (32, 8, 1)  # rows of one statement: 32 calls stay below the 999 values that an old SQLite takes


def names(record: type) -> tuple[str, ...]:
    """The fields of a record that are columns of its own table."""
    return tuple(f.name for f in fields(record) if f.name != "findings")


RUN_COLUMNS = names(RunRecord)
CALL_COLUMNS = CallRecord._fields
OUTCOME_COLUMNS = OutcomeRecord._fields[2:-1]
FINDING_COLUMNS = ("kind", "place", "line", "row_key", "column_name", "expected", "actual", "warning")


@dataclass(frozen=True, slots=True, eq=False)
class Insert:
    """How records of one kind are inserted: as which columns of which table, and what its key is."""

    table: str
    columns: tuple[str, ...]
    row: ToRow
    key: str
    again: Again = "refuse"

    def __call__(self, execute: Execute, records: Sequence[object]) -> None:
        """Insert the records, many with a statement: what a statement costs by itself is most of it."""
        rows = [self.row(record) for record in records]
        start = 0
        for size in _TOGETHER if self.again != "replace" else (1,):
            while len(rows) - start >= size:
                statement = _insertion(self.table, self.columns, self.key, self.again, size)
                execute(statement, tuple(chain.from_iterable(rows[start : start + size])))
                start += size


@dataclass(frozen=True, slots=True, eq=False)
class Update:
    """How records of one kind change a row that is there."""

    statement: str
    row: ToRow

    def __call__(self, execute: Execute, records: Sequence[object]) -> None:
        """Make the change of each record, in their order."""
        for record in records:
            execute(self.statement, self.row(record))


@lru_cache
def _insertion(table: str, columns: tuple[str, ...], key: str, again: Again, size: int) -> str:
    values = ", ".join([f"({', '.join('?' * len(columns))})"] * size)
    replaced = f" ON CONFLICT ({key}) DO UPDATE SET {', '.join(f'{c} = excluded.{c}' for c in columns)}"
    settled = {
        "refuse": "",
        "keep": f" ON CONFLICT ({key}) DO NOTHING",
        "replace": replaced,
        "complete": f"{replaced} WHERE {table}.outcome IS NULL AND {table}.started = excluded.started",
    }
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {values}{settled[again]}"


def _insert(table: str, record: type, key: str, again: Again) -> Insert:
    return Insert(table, names(record), attrgetter(*names(record)), key, again)


def _opened(run_and_presence: tuple[RunRecord, int | None]) -> Row:
    run, presence = run_and_presence
    return (*attrgetter(*RUN_COLUMNS, "started")(run), presence)


def _taken_up(run_and_presence: tuple[RunRecord, int | None]) -> Row:
    run, presence = run_and_presence
    return (run.policy, run.mode, run.trace_id, run.pid, run.host, run.started, presence, run.id)


def _finished(record: OutcomeRecord) -> Row:
    return (record.call or ()) + record[2:-1]


def _finding(numbered: tuple[str, int, FindingRecord]) -> Row:
    run, number, finding = numbered
    return (run, number, *attrgetter(*names(FindingRecord))(finding))


RUN = Insert("runs", (*RUN_COLUMNS, "opened", "presence"), _opened, "id")
TAKEN_UP = Update(
    "UPDATE runs SET ended = NULL, policy = ?, mode = ?, trace_id = ?, pid = ?, host = ?, opened = ?, presence = ? "
    "WHERE id = ?",
    _taken_up,
)
# Nothing is done twice where somebody waits for it, so this is a statement and no `Insert`.
INTENT = f"""INSERT INTO calls ({", ".join(CALL_COLUMNS)})
    VALUES ((SELECT id FROM runs WHERE id = ? AND opened = ?){", ?" * (len(CALL_COLUMNS) - 1)})"""
"""The statement for a `CallRecord`, with the time at which its run was opened after the run: it is refused as an
orphan when the run has been opened by another since."""
ENDED = Update("UPDATE runs SET ended = ? WHERE id = ?", attrgetter("ended", "run"))
VERDICT = _insert("verdicts", VerdictRecord, "run", "replace")
FINDING = Insert("findings", ("run", "number", *FINDING_COLUMNS), _finding, "run, number")

_LOST = "UPDATE runs SET lost = lost + ? WHERE id = ?"
# A caller that is cancelled between its intent's commit and the return does not know that the intent is there.
_FINISHED = Insert("calls", CALL_COLUMNS + OUTCOME_COLUMNS, _finished, "run, number", "complete")
_OUTCOME = Update(
    f"UPDATE calls SET {', '.join(f'{column} = ?' for column in OUTCOME_COLUMNS)} WHERE run = ? AND number = ?",
    lambda record: record[2:-1] + record[:2],
)
_FORMS: Mapping[type, Insert | Update] = {
    HoldRecord: _insert("holds", HoldRecord, "run, number", "replace"),
    HoldResolved: Update(
        "UPDATE holds SET resolved_by = ?, resolved_at = ? WHERE run = ? AND number = ?",
        attrgetter("by", "at", "run", "number"),
    ),
    BoundInput: _insert("inputs", BoundInput, "run, name", "replace"),
    UserTurn: _insert("turns", UserTurn, "run, at", "keep"),
    StopRecord: _insert("stops", StopRecord, "run", "keep"),
    PictureRecord: _insert("pictures", PictureRecord, "run, place", "replace"),
}


def write(execute: Execute, entries: Sequence[Entry]) -> None:
    """Write entries in their order; for those that cannot be kept, note at their run that something was lost."""
    for form, alike in groupby(entries, _form):
        records = list(alike)
        try:
            form(execute, records)
        except RowRefused:
            write_lost(execute, Counter(_write_each(execute, form, records)))


def _write_each(execute: Execute, form: Insert | Update, records: Sequence[Entry]) -> Iterator[str]:
    """Write records one by one; gives the run of each that cannot be kept."""
    for record in records:
        try:
            form(execute, (record,))
        except RowRefused:
            yield record.run


def write_lost(execute: Execute, lost: Mapping[str, int]) -> None:
    """Note how many records of which run could not be kept."""
    for run, count in lost.items():
        execute(_LOST, (count, run))


def _form(entry: Entry) -> Insert | Update:
    if type(entry) is OutcomeRecord:
        return _FINISHED if entry.call is not None else _OUTCOME
    return _FORMS[type(entry)]
