"""How far a PostgreSQL server is in its write-ahead log."""

from __future__ import annotations

import re
from typing import Final

from guardrail.query.proof import Query
from guardrail.stores.store import Ask

# The last record that is written may not be flushed yet, and its change is seen all the same: so where the next one
# goes is asked for.
_PRIMARY: Final = """
    SELECT pg_is_in_recovery() AS is_replica,
           CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_insert_lsn()::text END AS position
"""
_REACHED: Final = """
    SELECT pg_is_in_recovery() AS is_replica, pg_last_wal_replay_lsn() >= CAST($1 AS pg_lsn) AS reached
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
        return Ask(Query(_REACHED, "postgres", _REACHED, ("position",), ()), {"position": ended(position)})


def ended(position: str) -> str:
    """Where the last record ended, by where the next one goes: on a new page, that is behind the page's header."""
    high, low = (int(part, 16) for part in re.split("/", position))
    offset = low % _PAGE
    return f"{high:X}/{low - offset if offset in _HEADERS else low:X}"
