"""How a look is written for MariaDB and MySQL."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, cast

from guardrail.query.binding import bind
from guardrail.query.proof import Dialect
from guardrail.stores.looks import Described, Result, Scope, Statement, Take
from guardrail.stores.mysql.types import Column, quoted, quoted_table, ticked
from guardrail.stores.store import Ask

_NAMES: Final = """
    SELECT TABLE_NAME FROM information_schema.TABLES
    WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')
    ORDER BY 1
"""
_COLUMNS: Final = """
    SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, IS_NULLABLE = 'YES', COLUMN_DEFAULT, EXTRA
    FROM information_schema.COLUMNS
    WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = %(table)s
    ORDER BY ORDINAL_POSITION
"""
_INDEXES: Final = """
    SELECT INDEX_NAME, COLUMN_NAME, NULLABLE = 'YES'
    FROM information_schema.STATISTICS
    WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = %(table)s AND NON_UNIQUE = 0
    ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX
"""
_CHECKS: Final = """
    SELECT CHECK_CLAUSE
    FROM information_schema.CHECK_CONSTRAINTS
    WHERE CONSTRAINT_SCHEMA = {schema} AND TABLE_NAME = %(table)s
"""
_FILLED: Final = ("auto_increment", "generated", "on update")
"""What the catalog says beside a column that the database fills by itself."""


class MysqlGrammar:
    """Statements of a look; see `Grammar`."""

    dialect: Dialect = "mysql"

    def __init__(self, mariadb: bool) -> None:
        self.server = "MariaDB" if mariadb else "MySQL"
        # MariaDB keeps JSON as text, and has a check of the table say so.
        self._schema = (_COLUMNS, _INDEXES, _CHECKS) if mariadb else (_COLUMNS, _INDEXES)

    def ask(self, question: Ask, most: int) -> Statement:
        """See `Grammar`."""
        return Statement(question.query.rendered, bind(question.query, question.values), most)

    def names(self) -> Statement:
        """See `Grammar`: the tables that the user may see, without views."""
        return Statement(_NAMES)

    def schema(self, table: str) -> Sequence[Statement]:
        """See `Grammar`."""
        database, dot, name = table.partition(".")
        values = {"database": database, "table": name if dot else table}
        schema = "%(database)s" if dot else "DATABASE()"
        return [Statement(sql.format(schema=schema), values) for sql in self._schema]

    def described(self, table: str, results: Sequence[Result]) -> Described | None:
        """See `Grammar`."""
        columns, indexes, *checks = (cast("Sequence[tuple[Any, ...]]", result.rows) for result in results)
        if not columns:
            return None
        clauses = {clause for rows in checks for [clause] in rows}
        keys = _keys(indexes)
        found = {row[0]: _column(row, clauses) for row in columns}
        return Described(table, keys[0] if keys else None, found, keys=keys)

    def count(self, table: str, most: int) -> Statement:
        """See `Grammar`."""
        return Statement(f"SELECT COUNT(*) FROM (SELECT 1 FROM {quoted_table(table)} LIMIT {most:d}) AS counted")

    def hash(self, hashed: Sequence[str]) -> str:
        """See `Grammar`: sixteen bytes, of the values' texts with commas between them."""
        separated = ", ',', ".join(hashed)
        return f"UNHEX(MD5(CONCAT({separated})))"

    def select(self, read: Sequence[str], scope: Scope, most: int, take: Take | None = None) -> Statement:
        """See `Grammar`."""
        conditions: list[str] = []
        values: dict[str, object] = {}
        if scope.where is not None:
            conditions.append(f"({scope.where.rendered})")
            values |= bind(scope.where, scope.values)
        for number, (column, value) in enumerate(scope.key):
            if value is None:
                conditions.append(f"{quoted(column.name)} IS NULL")
                continue
            name = f"the key's {number}"  # no parameter of a query is called like this
            values[name] = value
            conditions.append(cast("Column", column).equals(f"%({name})s"))
        sql = f"SELECT {', '.join(read)} FROM {quoted_table(scope.table)}"
        if conditions:
            sql += f" WHERE {' AND '.join(conditions)}"
        return Statement(f"{sql} LIMIT {most + 1:d}", values, most, take)


def _column(row: tuple[Any, ...], clauses: Collection[str]) -> Column:
    name, type, spelled, nullable, default, extra = row
    return Column(
        name,
        type.lower(),
        spelled.lower(),
        json=f"json_valid({ticked(name)})" in clauses,
        nullable=bool(nullable),
        # MariaDB writes NULL where nothing else is the default.
        generated=default not in (None, "NULL") or any(word in extra.lower() for word in _FILLED),
    )


def _keys(indexes: Sequence[tuple[Any, ...]]) -> tuple[tuple[str, ...], ...]:
    """The primary key, then the unique indexes over columns that are never null, the shortest first."""
    keys: dict[str, tuple[str, ...]] = {}
    for name, parts in groupby(indexes, key=itemgetter(0)):
        columns = [(column, nullable) for _, column, nullable in parts]
        if all(column is not None and not nullable for column, nullable in columns):
            keys[name] = tuple(column for column, _ in columns)
    return tuple(keys[name] for name in sorted(keys, key=lambda name: (name != "PRIMARY", len(keys[name]))))
