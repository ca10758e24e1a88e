"""Which database a ledger lies in: a SQLite file, the memory, or a PostgreSQL server."""

from __future__ import annotations

import os
import re
from typing import Final

from guardrail.errors import LedgerError
from guardrail.ledger.database import Database
from guardrail.ledger.sqlite import SqliteDatabase

_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_FORMS: Final = "name the path of a SQLite file, `memory`, or a postgresql:// URL"


def is_url(place: str) -> bool:
    """Whether a ledger's place is that of a server, not of a file."""
    return _SCHEME.match(place) is not None


def open_database(place: str | os.PathLike[str]) -> Database:
    """The database at a path, in `memory` or at a URL; it is first touched by a transaction.

    Raises `LedgerError` for what is none of these, and where the driver is missing.
    """
    scheme = _SCHEME.match(place) if isinstance(place, str) else None
    if scheme is None:
        return SqliteDatabase(place)
    if scheme[1].lower().partition("+")[0] not in ("postgresql", "postgres"):
        raise LedgerError(f"a ledger cannot lie at a URL that begins with {scheme[1]}: {_FORMS}")
    try:
        from guardrail.ledger.postgres.database import PostgresDatabase
    except ImportError as error:
        raise LedgerError(
            f"a ledger on PostgreSQL needs psycopg, which is not installed ({error}): "
            "pip install 'guardrail-runtime[postgres]'"
        ) from error
    assert isinstance(place, str)
    return PostgresDatabase(place)
