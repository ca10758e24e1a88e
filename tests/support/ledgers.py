"""Ledgers of the tests: where they lie, what is in their tables, and databases that behave as a test wants."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import TypeVar
from urllib.parse import unquote

import psycopg

from guardrail.errors import LedgerError
from guardrail.ledger.database import Database, Execute, Purpose
from guardrail.ledger.opening import open_database

T = TypeVar("T")


def in_schema(url: str, schema: str = "") -> str:
    """The place of a ledger in a schema of a PostgreSQL database: the named one, else the one that the URL sees."""
    seen = re.search(r"search_path=(\w+)", unquote(url))
    assert seen is not None
    return f"{url}&schema={schema or seen[1]}"


def asked(place: str, query: str) -> list[tuple[object, ...]]:
    """What a ledger's tables answer to another reader."""
    if "://" not in place:
        with closing(sqlite3.connect(place)) as file:
            return file.execute(query).fetchall()
    with connected(place) as server:
        return server.execute(query.encode()).fetchall()


def connected(place: str) -> psycopg.Connection:
    """A connection of one's own to the server of a ledger; unqualified names are those of the ledger."""
    url, _, schema = place.partition("&schema=")
    connection = psycopg.connect(url, autocommit=True)
    connection.execute(f"SET search_path = {schema}".encode())
    return connection


class Watched(Database):
    """A database that notes what its transactions were for, and that can be away or be held up.

    `before` is called in each transaction before it begins, and may raise or wait.
    """

    def __init__(self, place: str) -> None:
        self._database = open_database(place)
        self.purposes: list[Purpose] = []
        self.before: Callable[[], object] = lambda: None
        self.away = False

    @property
    def name(self) -> str:
        return self._database.name

    @property
    def presence(self) -> int | None:
        return self._database.presence

    def transact(self, purpose: Purpose, patience: float, work: Callable[[Execute], T]) -> T:
        self.purposes.append(purpose)
        self.before()
        if self.away:
            raise LedgerError("the ledger is away")
        return self._database.transact(purpose, patience, work)

    def remarks(self) -> tuple[str, ...]:
        return self._database.remarks()

    def before_fork(self) -> None:
        self._database.before_fork()

    def after_fork_in_child(self) -> None:
        self._database.after_fork_in_child()

    def close(self) -> None:
        self._database.close()
