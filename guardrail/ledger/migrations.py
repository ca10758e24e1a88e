"""The ledger's schema, as numbered steps from an empty database to the present."""

from __future__ import annotations

from typing import TypeAlias

Migration: TypeAlias = tuple[str, ...]
"""The statements of one step; they are carried out in one transaction, together with the new version."""

WITHOUT_ROWID = " WITHOUT ROWID"
"""What a statement may end in for SQLite; other databases leave it out."""

# The type names are ones that SQLite and PostgreSQL both understand: SQLite's REAL would be too short for a
# time in PostgreSQL, and SQLite keeps a blob a blob under any type name. Names that SQL reserves are avoided.
FIRST: Migration = (
    """CREATE TABLE runs (
        id TEXT PRIMARY KEY,
        task TEXT,
        inputs TEXT NOT NULL,
        policy TEXT NOT NULL,
        mode TEXT NOT NULL,
        started DOUBLE PRECISION NOT NULL,
        pid BIGINT NOT NULL,
        host TEXT NOT NULL,
        trace_id TEXT,
        opened DOUBLE PRECISION NOT NULL,
        ended DOUBLE PRECISION,
        lost BIGINT NOT NULL DEFAULT 0
    )""",
    "CREATE INDEX runs_by_start ON runs (started)",
    f"""CREATE TABLE calls (
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        number BIGINT NOT NULL,
        tool TEXT NOT NULL,
        call_id TEXT,
        effect TEXT NOT NULL,
        args TEXT NOT NULL,
        digest TEXT NOT NULL,
        operation TEXT,
        started DOUBLE PRECISION NOT NULL,
        outcome TEXT,
        sign TEXT,
        message TEXT,
        action TEXT,
        executed BOOLEAN,
        ended DOUBLE PRECISION,
        rule TEXT,
        result TEXT,
        PRIMARY KEY (run, number)
    ){WITHOUT_ROWID}""",
    """CREATE TABLE holds (
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        number BIGINT NOT NULL,
        call BIGINT NOT NULL,
        tool TEXT NOT NULL,
        outcome TEXT NOT NULL,
        detail TEXT NOT NULL,
        args TEXT NOT NULL,
        rest TEXT NOT NULL,
        resolved_by TEXT,
        resolved_at DOUBLE PRECISION,
        PRIMARY KEY (run, number)
    )""",
    """CREATE TABLE inputs (
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (run, name)
    )""",
    """CREATE TABLE turns (
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        at DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (run, at)
    )""",
    """CREATE TABLE stops (
        run TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
        reason TEXT NOT NULL,
        call BIGINT NOT NULL,
        tool TEXT NOT NULL,
        detail TEXT NOT NULL,
        at DOUBLE PRECISION NOT NULL
    )""",
    """CREATE TABLE pictures (
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        place TEXT NOT NULL,
        content BYTEA NOT NULL,
        PRIMARY KEY (run, place)
    )""",
    """CREATE TABLE verdicts (
        run TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
        kind TEXT NOT NULL,
        because TEXT NOT NULL,
        open_holds BIGINT NOT NULL,
        alternative TEXT,
        looks BIGINT NOT NULL,
        ended DOUBLE PRECISION NOT NULL
    )""",
    """CREATE TABLE findings (
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        number BIGINT NOT NULL,
        kind TEXT NOT NULL,
        place TEXT NOT NULL,
        line TEXT NOT NULL,
        row_key TEXT NOT NULL,
        column_name TEXT,
        expected TEXT,
        actual TEXT,
        warning BOOLEAN NOT NULL,
        PRIMARY KEY (run, number)
    )""",
)

PRESENCE: Migration = ("ALTER TABLE runs ADD COLUMN presence BIGINT",)

MIGRATIONS: tuple[Migration, ...] = (FIRST, PRESENCE)
"""Step n leads from version n - 1 to version n. A released step is never changed; a new one is added."""


def too_new(ledger: str, version: int, known: int) -> str:
    """What is to be said of a ledger with a schema that this version of the library does not know."""
    return (
        f"the ledger {ledger} was written by a newer version of the library (schema {version}, this one knows {known}): "
        "upgrade the library, or name another place for the ledger"
    )
