"""Where recorded runs are played: a SQLite file, a PostgreSQL schema or a MariaDB database, made for them and dropped."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit, urlunsplit

from guardrail.declare.configuration import dialect_of
from guardrail.errors import StoreError
from guardrail.recorded.engines import connect_mysql, connect_postgres

NAME: Final = "guardrail_backtest"
"""How the schemas and databases begin that a backtest makes."""


@contextmanager
def place(server: str | None, scratch: Path, number: int) -> Generator[str]:
    """The URL of an empty database of one's own: on a server, or without one a file in the folder `scratch`.

    Raises `StoreError` for a server that is none of PostgreSQL and MariaDB, and where something of the name is there
    that is not empty.
    """
    name = f"{NAME}_{os.getpid()}_{number}"
    match None if server is None else dialect_of(server):
        case None if server is None:
            yield f"sqlite:///{(scratch / name).absolute()}.db"
        case "postgres":
            assert server is not None
            with _schema(server, name) as url:
                yield url
        case "mysql":
            assert server is not None
            with _database(server, name) as url:
                yield url
        case _:
            raise StoreError("runs are replayed on a SQLite file (without --store), on PostgreSQL or on MariaDB")


@contextmanager
def _schema(server: str, name: str) -> Generator[str]:
    with closing(connect_postgres(server)) as admin:
        _check_empty(admin, "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace(%s)", name, "schema")
        _run(admin, f"CREATE SCHEMA IF NOT EXISTS {name}")
        try:
            yield f"{server}{'&' if '?' in server else '?'}options={quote(f'-csearch_path={name}')}"
        finally:
            _run(admin, f"DROP SCHEMA {name} CASCADE")


@contextmanager
def _database(server: str, name: str) -> Generator[str]:
    with closing(connect_mysql(server)) as admin:
        _check_empty(admin, "SELECT count(*) FROM information_schema.tables WHERE table_schema = %s", name, "database")
        _run(admin, f"CREATE DATABASE IF NOT EXISTS {name}")
        try:
            yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
        finally:
            _run(admin, f"DROP DATABASE {name}")


def _check_empty(admin: Any, question: str, name: str, what: str) -> None:
    with closing(admin.cursor()) as cursor:
        cursor.execute(question, (name,))
        [(found,)] = cursor.fetchall()
    if found:
        raise StoreError(f"the {what} {name} is not empty; drop it if nobody needs it: DROP {what.upper()} {name}")


def _run(admin: Any, statement: str) -> None:
    with closing(admin.cursor()) as cursor:
        cursor.execute(statement)
