"""How recorded runs write to a database: the same statements for SQLite, PostgreSQL and MariaDB, in the words of each."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import unquote, urlsplit

from guardrail.declare.configuration import dialect_of
from guardrail.errors import StoreError
from guardrail.recorded.columns import ColumnType


@dataclass(frozen=True, slots=True)
class Engine:
    """An open DB-API connection and the words of its database.

    `types` are its column types, `key_types` those of a key's columns where they differ, with {} for the column's name;
    `mark` stands for a value;
    `quote` encloses identifiers; `ending` is said of a table; `errors` are its driver's.
    """

    connection: Any
    types: Mapping[ColumnType, str]
    key_types: Mapping[ColumnType, str]
    mark: str
    quote: str
    ending: str
    errors: type[Exception]

    def quoted(self, name: str) -> str:
        """An identifier."""
        quoted = f"{self.quote}{name.replace(self.quote, self.quote * 2)}{self.quote}"
        return quoted.replace("%", "%%") if self.mark == "%s" else quoted

    def exact(self, value: float) -> object:
        """A float for a column of exact numbers, with the digits that it shows. SQLite takes it as it is."""
        return value if self.mark == "?" else Decimal(repr(value))

    def run(self, statement: str, values: Sequence[object] = ()) -> int:
        """Carry out one statement; how many rows it concerned."""
        with closing(self.connection.cursor()) as cursor:
            cursor.execute(statement, tuple(values))
            return int(cursor.rowcount)

    def run_many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        """Carry out one statement for each row of values."""
        with closing(self.connection.cursor()) as cursor:
            cursor.executemany(statement, rows)


def connect(url: str) -> Engine:
    """Connect to the database at a URL. Raises the driver's errors, or `StoreError` where it is not installed."""
    match dialect_of(url):
        case "postgres":
            return _postgres(url)
        case "mysql":
            return _mysql(url)
        case _:
            return _sqlite(url)


def _sqlite(url: str) -> Engine:
    connection = sqlite3.connect(url.removeprefix("sqlite:///"), check_same_thread=False)
    # What is written is thrown away after the replay: nothing is lost when the machine fails.
    connection.execute("pragma synchronous = off")
    connection.execute("pragma journal_mode = memory")
    types: dict[ColumnType, str] = {
        "boolean": "BOOLEAN",
        "integer": "INTEGER",
        "float": "REAL",
        "number": "NUMERIC",
        "text": "TEXT",
        "json": "JSON",
    }
    return Engine(connection, types, {}, "?", '"', "without rowid", sqlite3.Error)


def _postgres(url: str) -> Engine:
    types: dict[ColumnType, str] = {
        "boolean": "boolean",
        "integer": "bigint",
        "float": "double precision",
        "number": "numeric",
        "text": "text",
        "json": "jsonb",
    }
    connection = connect_postgres(url)
    connection.execute("SET synchronous_commit = off")
    connection.commit()
    connection.autocommit = False
    from psycopg import Error

    return Engine(connection, types, {}, "%s", '"', "", Error)


def _mysql(url: str) -> Engine:
    types: dict[ColumnType, str] = {
        "boolean": "boolean",
        "integer": "bigint",
        "float": "double",
        "number": "decimal(65, 20)",
        "text": "longtext",
        "json": "json",
    }
    keys: dict[ColumnType, str] = {"text": "varchar(255)", "json": "varchar(255) check (json_valid({}))"}
    connection = connect_mysql(url)
    connection.autocommit(False)
    from pymysql import MySQLError

    return Engine(connection, types, keys, "%s", "`", "character set utf8mb4 collate utf8mb4_bin", MySQLError)


def connect_postgres(url: str) -> Any:
    """A psycopg connection that commits each statement. Raises `StoreError` where psycopg is not installed."""
    try:
        import psycopg
    except ImportError as error:
        raise StoreError(_uninstalled("psycopg", "postgres")) from error
    scheme, _, rest = url.partition("://")
    return psycopg.connect(f"{scheme.partition('+')[0]}://{rest}", autocommit=True)


def connect_mysql(url: str) -> Any:
    """A PyMySQL connection that commits each statement. Raises `StoreError` where PyMySQL is not installed."""
    try:
        import pymysql
    except ImportError as error:
        raise StoreError(_uninstalled("PyMySQL", "mysql")) from error
    parts = urlsplit(url)
    return pymysql.connect(
        host=parts.hostname or "127.0.0.1",
        port=parts.port or 3306,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        database=parts.path.strip("/") or None,
        charset="utf8mb4",
        autocommit=True,
    )


def _uninstalled(driver: str, extra: str) -> str:
    return f"replaying on this server needs {driver}: pip install 'guardrail-runtime[{extra}]'"
