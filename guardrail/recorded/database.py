"""A database for recorded runs: made from their tables, copied for each run, changed as recorded."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from guardrail.recorded.format import RowChange, Tables

Types = dict[str, dict[str, str]]


class RecordedDatabase:
    """A SQLite file that holds a task's initial tables; runs play on copies of it.

    Column types are chosen by the values that stand in a column anywhere in the recording; what is nested or
    mixed is kept as JSON text, so that nothing is converted.
    """

    def __init__(self, path: Path, tables: Tables, changes: Iterable[RowChange]) -> None:
        self._path = path
        self._keys = {name: table.key for name, table in tables.items()}
        self.types = _types(tables, changes)
        connection = sqlite3.connect(path)
        with connection:
            for name, columns in self.types.items():
                connection.execute(_create(name, columns, self._keys.get(name, ())))
            for name, table in tables.items():
                for row in table.rows:
                    self._insert(connection, name, row)
        connection.close()

    def copy(self, path: Path) -> RecordedConnection:
        """A fresh copy for one run, opened for writing."""
        shutil.copyfile(self._path, path)
        return RecordedConnection(self, path)

    def key(self, table: str) -> tuple[str, ...]:
        """The key columns of a table."""
        return self._keys[table]

    def stored(self, table: str, column: str, value: object) -> object:
        """A value as its column stores it."""
        if value is not None and self.types[table][column] == "JSON":
            return json.dumps(value, ensure_ascii=False)
        return value

    def _insert(self, connection: sqlite3.Connection, table: str, row: Mapping[str, object]) -> None:
        columns = ", ".join(map(_quoted, row))
        values = [self.stored(table, column, value) for column, value in row.items()]
        marks = ", ".join("?" * len(values))
        connection.execute(f"insert into {_quoted(table)} ({columns}) values ({marks})", values)


class RecordedConnection:
    """One run's copy of the database, changed row by row as the run's calls were recorded to have done."""

    def __init__(self, database: RecordedDatabase, path: Path) -> None:
        self.path = path
        self._database = database
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        # The copy is thrown away after the run: nothing is lost when the machine fails.
        self._connection.execute("pragma synchronous = off")
        self._connection.execute("pragma journal_mode = memory")

    def apply(self, changes: Iterable[RowChange]) -> None:
        """Make these changes, in one transaction."""
        changes = tuple(changes)
        if not changes:
            return
        self._connection.execute("begin immediate")
        for change in changes:
            self._change(change)
        self._connection.execute("commit")

    def close(self) -> None:
        """Close the connection and delete the copy."""
        self._connection.close()
        self.path.unlink(missing_ok=True)

    def _change(self, change: RowChange) -> None:
        table, names = change.table, self._database.key(change.table)
        key = [self._database.stored(table, n, v) for n, v in zip(names, change.key, strict=True)]
        where = " and ".join(f"{_quoted(name)} is ?" for name in names)
        if change.kind == "delete":
            self._connection.execute(f"delete from {_quoted(table)} where {where}", key)
            return
        if self._connection.execute(f"select 1 from {_quoted(table)} where {where}", key).fetchone():
            self._update(change, where, key)
        else:
            self._insert(change, dict(zip(names, key, strict=True)))

    def _update(self, change: RowChange, where: str, key: list[object]) -> None:
        if change.after:
            sets = ", ".join(f"{_quoted(column)} = ?" for column in change.after)
            self._connection.execute(
                f"update {_quoted(change.table)} set {sets} where {where}", [*self._stored(change).values(), *key]
            )

    def _insert(self, change: RowChange, key: dict[str, object]) -> None:
        # The key tells the row: that of a second equal row is recorded with a mark that its columns do not have.
        row = self._stored(change) | key
        columns, marks = ", ".join(map(_quoted, row)), ", ".join("?" * len(row))
        self._connection.execute(
            f"insert into {_quoted(change.table)} ({columns}) values ({marks})", list(row.values())
        )

    def _stored(self, change: RowChange) -> dict[str, object]:
        return {column: self._database.stored(change.table, column, value) for column, value in change.after.items()}


def _types(tables: Tables, changes: Iterable[RowChange]) -> Types:
    seen: dict[str, dict[str, set[str]]] = {}
    for table, row in _rows(tables, changes):
        columns = seen.setdefault(table, {})
        for column, value in row.items():
            columns.setdefault(column, set()).add(_type(value))
    return {table: {column: _one(types) for column, types in columns.items()} for table, columns in seen.items()}


def _rows(tables: Tables, changes: Iterable[RowChange]) -> Iterator[tuple[str, Mapping[str, object]]]:
    for name, table in tables.items():
        yield name, dict.fromkeys(table.key)
        for row in table.rows:
            yield name, row
    for change in changes:
        key = tables[change.table].key if change.table in tables else ()
        yield change.table, dict(zip(key, change.key, strict=False))
        yield change.table, change.after


def _type(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "BOOLEAN"
        case int():
            return "INTEGER"
        case float():
            return "REAL"
        case str():
            return "TEXT"
        case _:
            return "JSON"


def _one(types: set[str]) -> str:
    known = types - {""}
    if known <= {"INTEGER", "REAL"} and len(known) == 2:
        return "NUMERIC"
    return known.pop() if len(known) == 1 else "JSON" if known else "TEXT"


def _create(table: str, columns: Mapping[str, str], key: tuple[str, ...]) -> str:
    lines = [f"{_quoted(name)} {kind}" for name, kind in columns.items()]
    if key:
        lines.append(f"primary key ({', '.join(map(_quoted, key))})")
    return f"create table {_quoted(table)} ({', '.join(lines)}) without rowid"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
