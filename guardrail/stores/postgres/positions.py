"""How far a PostgreSQL server is in its write-ahead log."""

from __future__ import annotations

import re
from typing import Final

from guardrail.query.proof import Query
from guardrail.stores.store import Ask

# Changes of an asynchronous commit are seen before they are flushed, so where the next record goes is asked for. A read
# may also write to the log, and on a quiet server that is not flushed for seconds; so it also is enough when a replica
# has ended every transaction that had ended on the primary.
_PRIMARY: Final = """
    SELECT pg_is_in_recovery() AS is_replica,
           CASE WHEN NOT pg_is_in_recovery() THEN concat(pg_current_wal_insert_lsn(), ' ', pg_snapshot_xmax(pg_current_snapshot())) END AS position
"""
_REACHED: Final = """
    SELECT pg_is_in_recovery() AS is_replica,
           pg_last_wal_replay_lsn() >= CAST($1 AS pg_lsn) OR pg_snapshot_xmin(pg_current_snapshot()) >= CAST($2 AS xid8) AS reached
"""
_PAGE: Final = 8192
_HEADERS: Final = (24, 40)
"""How many bytes a page of the log begins with, the first page of a file with more."""


class PostgresPositions:
    """Positions in the write-ahead log, which every server keeps; see `Positions`."""

    needed = ""

    def primary(self) -> Ask:
        """See `Positions`."""
        return Ask(Query(_PRIMARY, "postgres", _PRIMARY, (), ()))

    def reached(self, position: str) -> Ask:
        """See `Positions`."""
        log, transaction = position.split()
        values = {"log": ended(log), "transaction": transaction}
        return Ask(Query(_REACHED, "postgres", _REACHED, tuple(values), ()), values)


def ended(position: str) -> str:
    """Where the last record ended, by where the next one goes: on a new page, that is behind the page's header."""
    high, low = (int(part, 16) for part in re.split("/", position))
    offset = low % _PAGE
    return f"{high:X}/{low - offset if offset in _HEADERS else low:X}"
