"""How a look is written for PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from guardrail.query.binding import bind_in_order
from guardrail.query.proof import Dialect
from guardrail.stores.looks import Described, Result, Scope, Statement, Take
from guardrail.stores.postgres.types import Column, hash_of, quoted, quoted_table
from guardrail.stores.store import Ask

_BEGIN: Final = Statement("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
_AS_OPENED: Final = (Statement("SET LOCAL role TO DEFAULT"), Statement("SET LOCAL search_path TO DEFAULT"))
_SETTINGS: Final = Statement("""
    SELECT pg_catalog.set_config('search_path', pg_catalog.concat_ws(
               ', ', 'pg_catalog', nullif(pg_catalog.current_setting('search_path'), ''), 'pg_temp'), true),
           pg_catalog.set_config('TimeZone', 'UTC', true), pg_catalog.set_config('DateStyle', 'ISO', true),
           pg_catalog.set_config('IntervalStyle', 'postgres', true), pg_catalog.set_config('bytea_output', 'hex', true),
           pg_catalog.set_config('extra_float_digits', '1', true),
           pg_catalog.set_config('standard_conforming_strings', 'on', true),
           pg_catalog.set_config('row_security', 'on', true), pg_catalog.set_config('transform_null_equals', 'off', true)
""")
_LIMITS: Final = """
    SELECT pg_catalog.set_config('statement_timeout', $1, true), pg_catalog.set_config('lock_timeout', $2, true)
"""
_NAMES: Final = """
    SELECT CASE WHEN c.relname ~ '[."]' THEN quote_ident(c.relname) ELSE c.relname END
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'f') AND NOT c.relispartition AND c.relpersistence <> 't'
      AND n.nspname <> 'pg_catalog' AND n.nspname = ANY (current_schemas(false)) AND pg_table_is_visible(c.oid)
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
    ORDER BY 1
"""
_COLUMNS: Final = """
    SELECT a.attname::text, b.oid::int8, CASE WHEN b.typcategory = 'A' AND b.typelem <> 0 THEN 'A' WHEN b.typtype = 'c' THEN 'C' ELSE '' END,
           format_type(b.oid, -1),
           a.atthasdef OR a.attidentity <> '' OR a.attgenerated <> '' OR t.typdefault IS NOT NULL, row_security_active(c.oid)
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    JOIN pg_type t ON t.oid = a.atttypid
    JOIN LATERAL (
        WITH RECURSIVE base AS (
            SELECT t.oid, t.typtype, t.typbasetype, t.typcategory, t.typelem
            UNION ALL
            SELECT n.oid, n.typtype, n.typbasetype, n.typcategory, n.typelem
            FROM base JOIN pg_type n ON n.oid = base.typbasetype WHERE base.typtype = 'd'
        )
        SELECT * FROM base WHERE typtype <> 'd'
    ) b ON true
    WHERE c.oid = to_regclass($1) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
    ORDER BY a.attnum
"""
_KEYS: Final = """
    SELECT pg_catalog.array_agg(a.attname::text ORDER BY k.place)
    FROM pg_index i
    CROSS JOIN pg_catalog.unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, place)
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
    WHERE i.indrelid = to_regclass($1) AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
      AND k.place <= i.indnkeyatts
    GROUP BY i.indexrelid, i.indisprimary
    HAVING i.indisprimary OR bool_and(a.attnotnull)
    ORDER BY NOT i.indisprimary, count(*), 1
"""
"""The primary key, then the unique indexes over columns that are never null, the shortest first."""


def opening(own: bool) -> tuple[Statement, ...]:
    """What every look begins with: a snapshot, and settings that a session of another's may have changed.

    Names mean the server's own objects first and a session's temporary tables last. A pooler may hand out a session
    whose role and path somebody has set: where the store opened the connection, what they are by default is taken. Of
    a connection of the user's, they are what was set. After the first query the transaction cannot be made a writing
    one any more.
    """
    return (_BEGIN, *(_AS_OPENED if own else ()), _SETTINGS)


def limit(seconds: float) -> Statement:
    """What limits the following statements to so many seconds each; a lock is waited for a little shorter."""
    most, held = (f"{max(1, round(seconds * share * 1000))}ms" for share in (1, 0.9))
    return Statement(_LIMITS, (most, held))


class PostgresGrammar:
    """Statements of a look; see `Grammar`."""

    dialect: Dialect = "postgres"
    server = "PostgreSQL"

    def ask(self, question: Ask, most: int) -> Statement:
        """See `Grammar`."""
        sql = f"SELECT * FROM ({question.query.rendered}) AS asked LIMIT {most + 1:d}"
        return Statement(sql, bind_in_order(question.query, question.values), most)

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
        named = tuple(tuple(key) for [key] in keys)
        hides_rows = any(hides for *_, hides in columns)
        found = {row[0]: Column(*row[:-1]) for row in columns}
        return Described(table, named[0] if named else None, found, hides_rows, named)

    def count(self, table: str, most: int) -> Statement:
        """See `Grammar`."""
        return Statement(f"SELECT count(*) FROM (SELECT FROM {quoted_table(table)} LIMIT {most:d}) AS counted")

    def hash(self, hashed: Sequence[str]) -> str:
        """See `Grammar`: eight bytes, of the row's values; servers before version 14 have no such function."""
        return f"pg_catalog.int8send({hash_of(', '.join(hashed))})"

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
            else:
                values.append(value)
                conditions.append(cast("Column", column).condition(f"${len(values)}"))
        sql = f"SELECT {', '.join(read)} FROM {quoted_table(scope.table)}"
        if conditions:
            sql += f" WHERE {' AND '.join(conditions)}"
        return Statement(f"{sql} LIMIT {most + 1:d}", values, most, take, binary=True)
