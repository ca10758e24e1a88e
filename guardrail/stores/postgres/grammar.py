"""How a look is written for PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from guardrail.query.binding import bind_in_order
from guardrail.query.proof import Dialect
from guardrail.stores import looks
from guardrail.stores.looks import Described, Result, Scope, Statement, Take
from guardrail.stores.postgres.types import Column, quoted, quoted_table
from guardrail.stores.store import Ask

BEGIN: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_DEFAULT_PATH: Final = "SET LOCAL search_path TO DEFAULT"
_SETTINGS: Final = """
    SELECT set_config('search_path', concat_ws(', ', 'pg_catalog', nullif(current_setting('search_path'), ''), 'pg_temp'), true),
           set_config('statement_timeout', $1, true), set_config('lock_timeout', $1, true),
           set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO', true),
           set_config('IntervalStyle', 'postgres', true), set_config('bytea_output', 'hex', true),
           set_config('extra_float_digits', '1', true), set_config('standard_conforming_strings', 'on', true)
"""
_NAMES: Final = """
    SELECT c.relname::text FROM pg_class c
    WHERE c.relkind IN ('r', 'p', 'f') AND c.relnamespace <> 'pg_catalog'::regnamespace AND NOT c.relispartition AND c.relpersistence <> 't'
      AND c.relnamespace = ANY (current_schemas(false)::regnamespace[]) AND pg_table_is_visible(c.oid)
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
    ORDER BY 1
"""
_COLUMNS: Final = """
    SELECT a.attname::text, b.oid::int8, CASE WHEN b.typcategory = 'A' AND b.typelem <> 0 THEN 'A' WHEN b.typtype = 'c' THEN 'C' ELSE '' END,
           format_type(a.atttypid, NULL),
           a.atthasdef OR a.attidentity <> '' OR a.attgenerated <> '', row_security_active(c.oid)
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    JOIN pg_type t ON t.oid = a.atttypid
    JOIN pg_type b ON b.oid = CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid END
    WHERE c.oid = to_regclass($1) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
    ORDER BY a.attnum
"""
_KEYS: Final = """
    SELECT array_agg(a.attname::text ORDER BY k.place)
    FROM pg_index i
    CROSS JOIN unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, place)
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
    WHERE i.indrelid = to_regclass($1) AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
      AND k.place <= i.indnkeyatts
    GROUP BY i.indexrelid, i.indisprimary
    HAVING i.indisprimary OR bool_and(a.attnotnull)
    ORDER BY NOT i.indisprimary, count(*), 1
    LIMIT 1
"""
"""The primary key, else the shortest unique index over columns that are never null."""


def opening(timeout: float) -> tuple[Statement, ...]:
    """What every look begins with: a snapshot, and settings that a session of another's may have changed.

    Names mean the server's own objects first and a session's temporary tables last. A pooler may hand out a session
    whose path somebody has set, so its default is taken. After the first query the transaction cannot be made a
    writing one any more.
    """
    return (
        Statement(BEGIN),
        Statement(_DEFAULT_PATH),
        Statement(_SETTINGS, (f"{max(1, round(timeout * 1000))}ms",)),
    )


class PostgresGrammar:
    """Statements of a look; see `Grammar`. `version` is the server's, such as 150004."""

    dialect: Dialect = "postgres"
    server = "PostgreSQL"

    def __init__(self, version: int) -> None:
        self._hash = "hash_record_extended(ROW({}), 0)" if version >= 140_000 else "hashtextextended(ROW({})::text, 0)"

    def ask(self, question: Ask, most: int) -> Statement:
        """See `Grammar`."""
        return Statement(question.query.rendered, bind_in_order(question.query, question.values), most)

    def names(self) -> Statement:
        """See `Grammar`: the tables that the search path shows, without partitions and what extensions brought."""
        return Statement(_NAMES)

    def schema(self, table: str) -> Sequence[Statement]:
        """See `Grammar`."""
        name = (quoted_table(table),)
        return Statement(_COLUMNS, name), Statement(_KEYS, name)

    def described(self, table: str, results: Sequence[Result]) -> Described | None:
        """See `Grammar`."""
        columns, keys = (cast("Sequence[tuple[Any, ...]]", result.rows) for result in results)
        if not columns:
            return None
        key = tuple(keys[0][0]) if keys else None
        hides_rows = any(hides for *_, hides in columns)
        return Described(table, key, {row[0]: Column(*row[:-1]) for row in columns}, hides_rows)

    def count(self, table: str, most: int) -> Statement:
        """See `Grammar`."""
        return Statement(f"SELECT count(*) FROM (SELECT FROM {quoted_table(table)} LIMIT {most:d}) AS counted")

    def hash(self, columns: Sequence[looks.Column]) -> str:
        """See `Grammar`: eight bytes, of the row's parts before version 14, of its text."""
        return f"int8send({self._hash.format(', '.join(column.hashed for column in columns))})"

    def select(self, read: Sequence[str], scope: Scope, most: int, take: Take | None = None) -> Statement:
        """See `Grammar`."""
        conditions: list[str] = []
        values: list[object] = []
        if scope.where is not None:
            conditions.append(f"({scope.where.rendered})")
            values += bind_in_order(scope.where, scope.values)
        for column, value in scope.key:
            if value is None:
                conditions.append(f"{quoted(column.name)} IS NULL")
                continue
            values.append(value)
            conditions.append(f"{quoted(column.name)} = CAST(${len(values)} AS {cast('Column', column).spelled})")
        sql = f"SELECT {', '.join(read)} FROM {quoted_table(scope.table)}"
        if conditions:
            sql += f" WHERE {' AND '.join(conditions)}"
        return Statement(f"{sql} LIMIT {most + 1:d}", values, most, take, binary=True)
