"""A database for recorded runs: made from their tables, changed as recorded, and put back after each run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from guardrail.recorded.columns import Columns, ColumnType, columns
from guardrail.recorded.engines import Engine
from guardrail.recorded.format import RowChange, Tables

Key = tuple[object, ...]


class RecordedDatabase:
    """A task's tables on an engine, in their initial state; runs are played on them one after the other."""

    def __init__(self, engine: Engine, tables: Tables, changes: Iterable[RowChange]) -> None:
        """Make the tables, in the place of those of an earlier task. `changes` are all that will ever be made."""
        self._engine = engine
        self._keys = {name: table.key for name, table in tables.items()}
        self._columns: Columns = columns(tables, changes)
        self._initial: dict[tuple[str, Key], Mapping[str, object]] = {}
        self._touched: dict[tuple[str, Key], None] = {}
        for name in self._columns:
            engine.run(self._creation(name))
        for name, table in tables.items():
            rows = [{column: self._stored(name, column, value) for column, value in row.items()} for row in table.rows]
            self._initial.update({(name, self._key(name, row)): row for row in rows})
            self._insert(name, rows)
        engine.connection.commit()

    def apply(self, changes: Iterable[RowChange]) -> None:
        """Make these changes, in one transaction. Raises the driver's errors; nothing is changed then."""
        try:
            for change in changes:
                self._change(change)
        except self._engine.errors:
            self._engine.connection.rollback()
            raise
        self._engine.connection.commit()

    def put_back(self) -> None:
        """Undo what a run has changed."""
        for table, key in self._touched:
            self._engine.run(f"delete from {self._quoted(table)} where {self._is(table)}", key)
            initial = self._initial.get((table, key))
            if initial is not None:
                self._insert(table, [initial])
        self._touched.clear()
        self._engine.connection.commit()

    def drop(self) -> None:
        """Drop the tables."""
        for name in self._columns:
            self._engine.run(f"drop table {self._quoted(name)}")
        self._engine.connection.commit()

    def _change(self, change: RowChange) -> None:
        table, names = change.table, self._keys[change.table]
        key = tuple(self._stored(table, name, value) for name, value in zip(names, change.key, strict=True))
        after = {column: self._stored(table, column, value) for column, value in change.after.items()}
        self._touched[table, key] = None
        if change.kind == "delete":
            self._engine.run(f"delete from {self._quoted(table)} where {self._is(table)}", key)
        elif self._is_there(table, key):
            self._update(table, key, after)
        else:
            # The key tells the row: that of a second equal row is recorded with a mark that its columns do not have.
            self._insert(table, [after | dict(zip(names, key, strict=True))])

    def _is_there(self, table: str, key: Key) -> bool:
        cursor = self._engine.connection.cursor()
        cursor.execute(f"select 1 from {self._quoted(table)} where {self._is(table)}", key)
        return cursor.fetchone() is not None

    def _update(self, table: str, key: Key, after: Mapping[str, object]) -> None:
        # A key that changes leaves its row under another one, which is then to be put back too.
        if after:
            sets = ", ".join(f"{self._quoted(column)} = {self._engine.mark}" for column in after)
            statement = f"update {self._quoted(table)} set {sets} where {self._is(table)}"
            self._engine.run(statement, (*after.values(), *key))
            self._touched[table, self._key(table, dict(zip(self._keys[table], key, strict=True)) | dict(after))] = None

    def _insert(self, table: str, rows: Iterable[Mapping[str, object]]) -> None:
        """Insert rows, those of the same columns together."""
        alike: dict[tuple[str, ...], list[tuple[object, ...]]] = {}
        for row in rows:
            alike.setdefault(tuple(row), []).append(tuple(row.values()))
        for names, values in alike.items():
            marks = ", ".join([self._engine.mark] * len(names))
            listed = ", ".join(map(self._quoted, names))
            self._engine.run_many(f"insert into {self._quoted(table)} ({listed}) values ({marks})", values)

    def _creation(self, table: str) -> str:
        key = self._keys.get(table, ())
        lines = [
            f"{self._quoted(name)} {self._type(name, kind, name in key)}" for name, kind in self._columns[table].items()
        ]
        lines += [f"primary key ({', '.join(map(self._quoted, key))})"] if key else []
        return f"create table {self._quoted(table)} ({', '.join(lines)}) {self._engine.ending}"

    def _type(self, column: str, kind: ColumnType, in_key: bool) -> str:
        own = self._engine.key_types.get(kind) if in_key else None
        return self._engine.types[kind] if own is None else own.format(self._quoted(column))

    def _is(self, table: str) -> str:
        return " and ".join(f"{self._quoted(name)} = {self._engine.mark}" for name in self._keys[table])

    def _key(self, table: str, row: Mapping[str, object]) -> Key:
        return tuple(row.get(name) for name in self._keys[table])

    def _quoted(self, name: str) -> str:
        return self._engine.quoted(name)

    def _stored(self, table: str, column: str, value: object) -> object:
        """A value as its column stores it: JSON as text, a float among integers with the digits that it shows."""
        match self._columns[table][column]:
            case "json" if value is not None:
                return json.dumps(value, ensure_ascii=False)
            case "number" if isinstance(value, float):
                return self._engine.exact(value)
            case _:
                return value
