"""SQLite as a store: a file, or whatever a factory of connections opens."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

from guardrail.errors import StoreError
from guardrail.pictures import Answer, Rows, Table, Tables
from guardrail.query.binding import bind
from guardrail.query.proof import Dialect
from guardrail.stores.answers import NARROW, answered, check_dialect, no_api, unanswered
from guardrail.stores.sqlite.pictures import photograph
from guardrail.stores.sqlite.schema import read_table, table_names
from guardrail.stores.sqlite.sessions import LONGEST_VALUE, File, Session, Source, quoted
from guardrail.stores.store import MOST_ANSWERED, Ask, Fetch, Photograph, Question, Remark, Survey, Trial, tables_of
from guardrail.threads import in_thread


class SqliteStore:
    """A SQLite database that is only read, each look on a connection and in a read transaction of its own."""

    def __init__(self, name: str, source: Source, timeout: float) -> None:
        self.name = name
        self.dialect: Dialect = "sqlite"
        self._source = source
        self._timeout = timeout

    def look(self, questions: Sequence[Question]) -> list[Answer]:
        """Answer all questions from one snapshot; see `Store`."""
        try:
            with Session(self._source, self._timeout, _tables(questions)) as session:
                return [self._answer(session, question) for question in questions]
        except Exception as error:  # noqa: BLE001
            # Beside SQLite and the factory, a path or a name that cannot be encoded raises here.
            why = self._reason(error)
            return [unanswered(self.name, question, why) for question in questions]

    async def alook(self, questions: Sequence[Question]) -> list[Answer]:
        """The same on a thread of the guard's."""
        return cast("list[Answer]", await in_thread(partial(self.look, questions)))

    def for_run(self) -> SqliteStore:
        """Itself: what a factory opens is the user's to decide, for every look."""
        return self

    def examine(self, trial: Trial | None = None) -> tuple[Remark, ...]:
        """Whether it can be looked at, who may write, and which tables have no key of their own."""
        try:
            tables = tables_of(self)
        except StoreError as error:
            return (Remark("error", self.name, str(error)),)
        return (*self._remarks_on_source(tables), *self._remarks_on_keys(tables))

    def close(self) -> None:
        """Nothing to give up: no connection outlives a look."""

    def _answer(self, session: Session, question: Question) -> Answer:
        try:
            return self._tried(session, question)
        except Exception as error:  # noqa: BLE001
            # Beside SQLite and ourselves, converters and functions of a user's factory raise here what they like.
            return unanswered(self.name, question, self._reason(error))

    def _tried(self, session: Session, question: Question) -> Answer:
        try:
            return _answer(session, question)
        except sqlite3.OperationalError as error:
            if "decode to UTF-8" not in str(error):
                raise
        session.tolerate()
        return _answer(session, question)

    def _remarks_on_source(self, tables: Sequence[Table]) -> Iterator[Remark]:
        if isinstance(self._source, File) and os.access(self._source.path, os.W_OK):
            text = f"{self._source.path} may be written by this process; only the guard's own connections cannot"
            yield Remark("note", self.name, text)
        if not tables:
            yield Remark("warning", self.name, "it has no tables; is it the right database?")

    def _remarks_on_keys(self, tables: Sequence[Table]) -> Iterator[Remark]:
        for table in tables:
            if not table.key:
                yield Remark("warning", f"{self.name}.{table.name}", "nothing tells its rows apart; declare a key")
            elif table.key[0] not in table.columns:
                text = f"it has no key, so its rows go by {table.key[0]}, which VACUUM may change; declare a key"
                yield Remark("warning", f"{self.name}.{table.name}", text)

    def _reason(self, error: Exception) -> str:
        """What went wrong and what to do, without the values that SQLite quotes in some of its errors."""
        code = str(getattr(error, "sqlite_errorname", ""))
        match code.split("_")[1:2]:
            case ["BUSY" | "LOCKED"]:
                return f"a writer kept it locked for {self._timeout:g} s; shorten the writer, or raise the timeout"
            case ["INTERRUPT"]:
                return f"it took longer than {self._timeout:g} s; {NARROW}, or raise the store's timeout"
            case ["CANTOPEN"] | ["IOERR"]:
                return self._away(code)
            case ["NOTADB"] | ["CORRUPT"]:
                return f"{self._where()} is not a SQLite database, or is damaged ({code})"
            case ["READONLY"]:
                return (
                    f"{self._where()} was left in the middle of a write ({code}); open it once with the application "
                    "that writes it, so that it recovers"
                )
            case ["AUTH"]:
                return f"it does more than read, or calls a function that is not allowed ({error})"
            case ["TOOBIG"]:
                return f"a value is longer than {LONGEST_VALUE // 2**20} MiB; ignore the column, or ask for less"
            case _ if isinstance(error, sqlite3.Error | StoreError):
                return str(error)
            case _:
                return f"{type(error).__name__}: {error}"

    def _away(self, code: str) -> str:
        if isinstance(self._source, File) and not self._source.path.exists():
            return f"there is no database file {self._source.path}"
        return f"{self._where()} cannot be opened or read ({code}); check the path and the permissions"

    def _where(self) -> str:
        return str(self._source.path) if isinstance(self._source, File) else "what its factory opens"


def _tables(questions: Sequence[Question]) -> list[str]:
    """The tables that the questions are about, as named in the database's main schema."""
    named: list[str] = []
    for question in questions:
        match question:
            case Ask(query):
                named += query.tables
            case Photograph():
                named.append(question.table)
            case Survey() | Fetch():
                pass
    return [table.removeprefix("main.") for table in named]


def _answer(session: Session, question: Question) -> Answer:
    check_dialect(question, "sqlite", "SQLite")
    match question:
        case Ask():
            return _rows(session, question)
        case Photograph():
            return photograph(session, question)
        case Fetch():
            raise no_api("SQLite")
        case Survey(count_up_to):
            return Tables(tuple(_counted(session, name, count_up_to) for name in table_names(session)))


def _rows(session: Session, question: Ask) -> Rows:
    query = question.query
    cursor = session.run(query.rendered, bind(query, question.values), query.functions)
    columns = tuple(str(column[0]) for column in cursor.description or ())
    rows = cursor.fetchmany(MOST_ANSWERED + 1)
    return answered(columns, rows, len(rows))


def _counted(session: Session, name: str, up_to: int | None) -> Table:
    try:
        table = read_table(session, name)
        if up_to is None:
            return table
        sql = f"SELECT count(*) FROM (SELECT 1 FROM main.{quoted(name)} LIMIT :most)"
        return replace(table, rows=session.run(sql, {"most": up_to + 1}).fetchone()[0])
    except sqlite3.Error as error:
        raise StoreError(f"{name}: {error}") from error
