"""The shop of the statements on real servers: what they are about, and a fingerprint of all that they could change."""

from __future__ import annotations

import re
import secrets
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Generator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias, cast
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pymysql
from psycopg.pq import TransactionStatus
from pymysql.constants import CLIENT, SERVER_STATUS

from guardrail.query.binding import bind, bind_in_order
from guardrail.query.proof import Query
from support.servers import connect_mariadb, empty_database
from support.statements import SHOPS

Fingerprint: TypeAlias = dict[str, object]
Rows: TypeAlias = list[tuple[Any, ...]]

Refused: Final = (psycopg.Error, pymysql.MySQLError)
"""What a server's refusal to execute a text raises."""


class Shop(ABC):
    """A database of its own, opened by whoever may do everything. One transaction at a time."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._before: dict[bool, Fingerprint] = {}

    @abstractmethod
    def fingerprint(self) -> Fingerprint:
        """All that a statement could have changed: rows, sequences, catalogs, the session, locks, files."""

    def before(self, *, read_only: bool) -> Fingerprint:
        """The fingerprint in a transaction of the kind in which nothing was done; it is taken once."""
        if read_only not in self._before:
            with self.transaction(read_only=read_only):
                self._before[read_only] = self.fingerprint()
        return self._before[read_only]

    @abstractmethod
    def begin(self, *, read_only: bool) -> None:
        """Open a transaction: as a store does for a look, or as whoever writes does."""

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """Whether the transaction is still open: then whatever can be undone will be."""

    @abstractmethod
    def rollback(self) -> None:
        """End it, whether or not it still is open."""

    @abstractmethod
    def answer(self, query: Query, values: Mapping[str, object]) -> Rows:
        """What a proved query answers, asked as a store asks it."""

    @abstractmethod
    def answer_to(self, text: str, values: Mapping[str, object]) -> Rows:
        """What the server answers to a text as it was written, with the values bound to its parameters."""

    @abstractmethod
    def execute(self, text: str) -> None:
        """Execute a text as it is, be it one statement or several."""

    def restore(self) -> None:
        """Make database and session what they were, if they are not."""
        try:
            with self.transaction(read_only=False):
                kept = self.fingerprint() == self.before(read_only=False)
        except Refused:
            kept = False
        if not kept:
            self.rebuild()
            self._before.clear()

    @abstractmethod
    def rebuild(self) -> None:
        """Make database and session anew."""

    @abstractmethod
    def has(self, extension: str) -> bool:
        """Whether the server has an extension, which is then at hand."""

    @contextmanager
    def transaction(self, *, read_only: bool) -> Generator[None]:
        """What is done in a transaction that is rolled back."""
        self.begin(read_only=read_only)
        try:
            yield
        finally:
            self.rollback()


_ALL: Final = """
    SELECT of, query_to_xml(
        format('SELECT count(*), md5(string_agg(t::text, ''|'' ORDER BY t::text)) FROM (SELECT * FROM %s) AS t', of), true, false, ''
    )::text
    FROM (
        SELECT oid::regclass::text AS of FROM pg_class
        WHERE (relkind IN ('r', 'S') OR relkind = 'm' AND relispopulated) AND (relnamespace = 'public'::regnamespace OR relpersistence = 't')
        UNION ALL SELECT unnest(ARRAY[
            'pg_extension', 'pg_language', 'pg_namespace', 'pg_trigger', 'pg_policy', 'pg_default_acl', 'pg_event_trigger',
            'pg_foreign_server', 'pg_largeobject', 'pg_largeobject_metadata', 'pg_listening_channels()', 'pg_cursors WHERE name <> ''''',
            'pg_prepared_statements', 'pg_settings', 'pg_roles WHERE rolname LIKE ''proof%''',
            'pg_replication_slots WHERE slot_name LIKE ''proof%''',
            'pg_locks WHERE pid = pg_backend_pid() AND (locktype = ''advisory'' OR locktype = ''relation'' AND mode <> ''AccessShareLock'')',
            'pg_stat_get_db_stat_reset_time((SELECT oid FROM pg_database WHERE datname = current_database()))'
        ])
        UNION ALL SELECT format('pg_%s WHERE oid >= 16384', name)
        FROM unnest(ARRAY['class', 'proc', 'type', 'rewrite', 'constraint', 'operator', 'cast', 'collation']) AS owned (name)
        UNION ALL SELECT format('pg_%s AS x WHERE x.%s >= 16384', name, part)
        FROM (VALUES ('attribute', 'attrelid'), ('index', 'indrelid'), ('description', 'objoid'), ('statistic', 'starelid')) AS parts (name, part)
    ) AS every
    UNION ALL
    SELECT 'session', concat_ws(' ', session_user, current_user, pg_current_xact_id_if_assigned())
"""
_SETTINGS: Final = """
    SELECT set_config('search_path', %s, true), set_config('statement_timeout', '5s', true), set_config('TimeZone', 'UTC', true)
"""


class PostgresShop(Shop):
    """The shop on PostgreSQL."""

    def __init__(self, url: str, connection: psycopg.Connection[Any]) -> None:
        """`connection` commits each statement."""
        super().__init__(url)
        self._connection = connection
        self._setup = (SHOPS / "postgres.sql").read_text()
        connection.execute(self._setup.encode())

    def fingerprint(self) -> Fingerprint:
        """See `Shop`."""
        return dict(self._connection.execute(_ALL).fetchall())

    def begin(self, *, read_only: bool) -> None:
        """See `Shop`."""
        self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" if read_only else "BEGIN READ WRITE")
        self._connection.execute(_SETTINGS, ["pg_catalog, public, pg_temp" if read_only else "public"])

    @property
    def is_open(self) -> bool:
        """See `Shop`."""
        return self._connection.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR)

    def rollback(self) -> None:
        """See `Shop`."""
        self._connection.execute("ROLLBACK")

    def answer(self, query: Query, values: Mapping[str, object]) -> Rows:
        """See `Shop`."""
        with psycopg.RawCursor(self._connection) as cursor:
            return cursor.execute(query.rendered.encode(), bind_in_order(query, values)).fetchall()

    def answer_to(self, text: str, values: Mapping[str, object]) -> Rows:
        """See `Shop`."""
        for number, name in enumerate(values, start=1):
            text = re.sub(rf"(?<![:\w]):{name}\b", f"${number}", text)
        bound = bind_in_order(Query(text, "postgres", text, tuple(values), ()), values)
        with psycopg.RawCursor(self._connection) as cursor:
            return cursor.execute(text.encode(), bound).fetchall()

    def execute(self, text: str) -> None:
        """See `Shop`."""
        self._connection.execute(text.encode(), prepare=False)

    def has(self, extension: str) -> bool:
        """See `Shop`."""
        known = self._connection.execute(
            "SELECT name FROM pg_available_extensions WHERE name = %s", [extension]
        ).fetchone()
        if known:
            self._connection.execute(f'CREATE EXTENSION IF NOT EXISTS "{extension}" SCHEMA public'.encode())
            self._before.clear()
        return known is not None

    def rebuild(self) -> None:
        """See `Shop`."""
        self._connection.execute("DISCARD ALL")
        self._connection.execute("DROP SCHEMA public CASCADE; DROP ROLE IF EXISTS proof_evil; CREATE SCHEMA public")
        self._connection.execute("SELECT lo_unlink(oid) FROM pg_largeobject_metadata")
        self._connection.execute(self._setup.encode())


def _with_database(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


@contextmanager
def postgres_shop(url: str) -> Generator[PostgresShop]:
    """The shop in a database of its own on a server, which is dropped after."""
    name = f"t_{secrets.token_hex(6)}"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
        try:
            with psycopg.connect(_with_database(url, name), autocommit=True, prepare_threshold=None) as connection:
                yield PostgresShop(_with_database(url, name), connection)
        finally:
            admin.execute(f"DROP DATABASE {name} (FORCE)".encode())


_NOISY: Final = frozenset(
    {
        "timestamp",
        "pseudo_thread_id",
        "rand_seed1",
        "rand_seed2",
        "error_count",
        "warning_count",
        "identity",
        "in_transaction",
    }
    | {"gtid_current_pos", "gtid_binlog_pos", "gtid_binlog_state", "last_gtid", "gtid_seq_no", "skip_replication"}
)
"""Variables of the session that a query itself moves, or other sessions."""
_CATALOGS: Final = {
    "tables": "table_schema, table_name, table_type, create_time, table_comment",
    "columns": "table_schema, table_name, column_name, column_type, column_default",
    "statistics": "table_schema, table_name, index_name, column_name",
    "views": "table_schema, table_name, view_definition",
    "routines": "routine_schema, specific_name, routine_definition",
    "triggers": "trigger_schema, trigger_name, action_statement",
}
_STRICT: Final = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"


class MariaShop(Shop):
    """The shop on MariaDB."""

    def __init__(self, url: str, connection: pymysql.Connection, folder: Path) -> None:
        """`connection` commits each statement, and may be given several at once. The server may write to `folder`."""
        super().__init__(url)
        self._connection = connection
        self._folder = folder
        self._setup = _parts(SHOPS / "mysql.sql")
        for part in chain.from_iterable(self._setup.values()):
            self._rows(part)

    def fingerprint(self) -> Fingerprint:
        """See `Shop`."""
        found: Fingerprint = {"files": sorted(path.name for path in self._folder.iterdir())}
        for catalog, columns in _CATALOGS.items():
            found[catalog] = self._rows(
                f"SELECT {columns} FROM information_schema.{catalog} WHERE {columns.split(',')[0]} = DATABASE() ORDER BY 1, 2, 3"
            )
        for _, name, kind, *_ in cast("Rows", found["tables"]):
            if kind != "VIEW":
                found[f"rows of {name}"] = self._rows(f"SELECT * FROM `{name}` ORDER BY 1")
        found["settings"] = [row for row in self._rows("SHOW SESSION VARIABLES") if row[0] not in _NOISY]
        found["variables"] = self._rows("SELECT * FROM information_schema.user_variables")
        found["session"] = self._rows(
            "SELECT DATABASE(), CURRENT_USER(), CURRENT_ROLE(), LAST_INSERT_ID(), @@in_transaction, IS_USED_LOCK(CONCAT('proof', CONNECTION_ID())) IS NULL"
        )
        return found

    def begin(self, *, read_only: bool) -> None:
        """See `Shop`."""
        self._rows(f"SET SESSION sql_mode = '{_STRICT}', time_zone = '+00:00', max_statement_time = 5")
        self._rows(
            "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY" if read_only else "START TRANSACTION READ WRITE"
        )

    @property
    def is_open(self) -> bool:
        """See `Shop`."""
        return bool(cast("Any", self._connection).server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS)

    def rollback(self) -> None:
        """See `Shop`."""
        self._rows("ROLLBACK")

    def answer(self, query: Query, values: Mapping[str, object]) -> Rows:
        """See `Shop`."""
        return self._rows(query.rendered, bind(query, values))

    def answer_to(self, text: str, values: Mapping[str, object]) -> Rows:
        """See `Shop`."""
        marked = text.replace("%", "%%")
        for name in values:
            marked = re.sub(rf"(?<!\w):{name}\b", f"%({name})s", marked)
        return self._rows(marked, bind(Query(text, "mysql", text, tuple(values), ()), values))

    def execute(self, text: str) -> None:
        """See `Shop`."""
        with self._connection.cursor() as cursor:
            cursor.execute(text.replace("{folder}", str(self._folder)), None)
            while cursor.nextset():
                pass

    def has(self, extension: str) -> bool:
        """See `Shop`."""
        return False

    def rebuild(self) -> None:
        """See `Shop`. A table takes the server a long time, so only what differs is made anew."""
        self._connection.close()
        self._connection.connect()
        for path in self._folder.iterdir():
            path.unlink()
        before, now = self.before(read_only=False), self._seen_from_outside()
        for name in {name for of in before.keys() | now.keys() for name in _differing(of, before.get(of), now.get(of))}:
            for kind in ("TABLE", "VIEW", "SEQUENCE", "FUNCTION", "PROCEDURE"):
                with suppress(pymysql.MySQLError):
                    self._rows(f"DROP {kind} `{name}`")
            for part in self._setup.get(name, ()):
                self._rows(part)

    def _seen_from_outside(self) -> Fingerprint:
        with self.transaction(read_only=False):
            return self.fingerprint()

    def _rows(self, sql: str, values: dict[str, object] | None = None) -> Rows:
        with self._connection.cursor() as cursor:
            cursor.execute(sql, values)
            return [*cursor.fetchall()]


def _parts(path: Path) -> dict[str, list[str]]:
    """The statements of a setup by the name of what they make or fill."""
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("--")]
    parts: defaultdict[str, list[str]] = defaultdict(list)
    for part in re.split(r";\n(?=\S)", "\n".join(lines)):
        made = re.match(r"(?:CREATE \w+|INSERT INTO) `?(\w+)", part)
        assert made, part
        parts[made[1]].append(part)
    return parts


def _differing(of: str, before: object, now: object) -> set[str]:
    """The names of tables and routines of which two parts of fingerprints differ."""
    if of.startswith("rows of "):
        return {of.removeprefix("rows of ")} if before != now else set()
    return {str(row[1]) for row in {*cast("Rows", before)} ^ {*cast("Rows", now)}} if of in _CATALOGS else set()


@contextmanager
def maria_shop(url: str) -> Generator[MariaShop]:
    """The shop in a database of its own on a server, which is dropped after."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        folder.chmod(0o777)  # the server is another user
        own = stack.enter_context(empty_database(url))
        connection = stack.enter_context(closing(connect_mariadb(own, client_flag=CLIENT.MULTI_STATEMENTS)))
        yield MariaShop(own, connection, folder)
