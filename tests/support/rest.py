"""A REST API over a SQLite database, as an application would have it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from support.apis import Api, Asked, Reply
from support.databases import SqliteDatabase


class Rest(Api):
    """Answers `GET /table` by `{"rows": [...]}`; columns in the query narrow it.

    Truths are true and false there, documents are documents, and columns that are null are left out of every other row.
    """

    def __init__(self, database: SqliteDatabase, tables: Sequence[str]) -> None:
        super().__init__()
        self._database = database
        self.replies.update({f"/{table}": self._rows for table in tables})

    def _rows(self, asked: Asked) -> Reply:
        table = asked.path.removeprefix("/")
        types = {name: kind for _, name, kind, *_ in self._database.execute(f'pragma table_info("{table}")')}
        conditions = "".join(f' and "{column}" = ?' for column in asked.query)
        rows = self._database.execute(f'select * from "{table}" where true{conditions}', *asked.query.values())
        return Reply({"rows": [_row(types, row, sparse=number % 2 == 1) for number, row in enumerate(rows)]})


def _row(types: dict[str, str], row: tuple[Any, ...], *, sparse: bool) -> dict[str, object]:
    return {
        name: _value(kind, value)
        for (name, kind), value in zip(types.items(), row, strict=True)
        if value is not None or not sparse
    }


def _value(kind: str, value: Any) -> object:
    match kind:
        case "boolean" if value in (0, 1):
            return bool(value)
        case "json" if value is not None:
            return json.loads(value)
        case _:
            return value
