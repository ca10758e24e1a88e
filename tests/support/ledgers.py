"""Ledgers of the tests: where they lie, what is in their tables, and databases that behave as a test wants."""

from __future__ import annotations

import re
import sqlite3
import time
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
    name = schema or seen[1]
    return f"{url}&application_name={name}&schema={name}"


def asked(place: str, query: str) -> list[tuple[object, ...]]:
    """What a ledger's tables answer to another reader."""
    if "://" not in place:
        with closing(sqlite3.connect(place)) as file:
            return file.execute(query).fetchall()
    with connected(place) as server:
        return server.execute(query.encode()).fetchall()


def schema_of(place: str) -> str:
    """The schema of a ledger on a server."""
    return place.partition("&schema=")[2]


def connected(place: str) -> psycopg.Connection:
    """A connection of one's own to the server of a ledger; unqualified names are those of the ledger."""
    connection = psycopg.connect(place.partition("&schema=")[0], autocommit=True, application_name="test")
    connection.execute(f"SET search_path = {schema_of(place)}".encode())
    return connection


def sessions_of(place: str) -> list[int]:
    """The server's processes for those who are connected to a ledger, but for the tests themselves."""
    query = f"SELECT pid FROM pg_stat_activity WHERE application_name = '{schema_of(place)}' ORDER BY 1"
    return [int(str(pid)) for (pid,) in asked(place, query)]


def wait_until_blocked(place: str) -> None:
    """Wait until somebody waits for a lock in the tables of a ledger."""
    blocked = f"""SELECT count(*) > 0 FROM pg_locks w JOIN pg_locks l USING (pid) JOIN pg_class c ON c.oid = l.relation
        WHERE NOT w.granted AND c.relnamespace = to_regnamespace('{schema_of(place)}')"""
    while asked(place, blocked) != [(True,)]:
        time.sleep(0.01)


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
    def is_near(self) -> bool:
        return self._database.is_near

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
