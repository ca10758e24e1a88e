"""The ledger's tables in a schema of a PostgreSQL database."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from guardrail.errors import LedgerError
from guardrail.ledger.database import Execute, Purpose, Row, T
from guardrail.ledger.migrations import MIGRATIONS, WITHOUT_ROWID, Migration, too_new
from guardrail.ledger.postgres.address import read_address
from guardrail.ledger.postgres.sessions import ServerError, Session, Statement
from guardrail.ledger.postgres.transactions import BEGIN, BEGIN_LOOK, PostgresTransaction, is_refusal
from guardrail.ledger.processes import this_process

_LEAST: Final = 1.0  # seconds that an answer is waited for in any case
_PATIENCE: Final = 5.0  # seconds that remarks are waited for
_STEP: Final = 600.0  # seconds that a step of the schema may take
_PAUSE: Final = 0.05  # seconds before the second try to get a connection or a lock; each further pause is twice as long

_MARK: Final = "ledger_version"  # a table that tells a ledger from another application's schema, and its version
_LOCK: Final = 0x67726C64  # "grld": the advisory lock of whoever takes a step of the schema

_FIND: Final = f"""SELECT count(*) > 0, count(*) FILTER (WHERE c.relname = '{_MARK}') > 0
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ?"""

# Where a commit is told before it is on the disk (`off`), a durable one must not be; what is stricter than `on` stays.
_SET: Final = """SELECT set_config('search_path', ?, ?), set_config('synchronous_commit',
    CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, ?)"""
_SET_GROUP: Final[Statement] = ("SET LOCAL synchronous_commit = off", ())

# A lock of the session tells every process of the database that this one is there. The server drops it when the
# connection ends; that must not be because a tool takes long, and within a minute after the machine at the other end is
# gone. An older server does not know all of these settings.
_ANNOUNCE: Final = "SELECT pg_advisory_lock_shared(?)"
_SET_LASTING: Final = """SELECT set_config(s.name, w.wanted, false) FROM pg_catalog.pg_settings s JOIN (VALUES
        ('idle_session_timeout', '0'), ('tcp_keepalives_idle', '30'), ('tcp_keepalives_interval', '10'),
        ('tcp_keepalives_count', '3')) w (name, wanted) USING (name)"""
_PRESENT: Final = """CREATE FUNCTION present(presence bigint) RETURNS boolean LANGUAGE sql STABLE STRICT AS $$
    SELECT EXISTS (
        SELECT 1 FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_database d ON d.oid = l.database
        WHERE d.datname = current_database() AND l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
        AND (l.classid::bigint << 32 | l.objid::bigint) = presence)
$$"""

_MAY_MAKE: Final = """SELECT NOT pg_is_in_recovery() AND CASE WHEN n.oid IS NULL
        THEN has_database_privilege(current_database(), 'CREATE')
        ELSE has_schema_privilege(n.oid, 'CREATE') AND has_schema_privilege(n.oid, 'USAGE') END
    FROM (SELECT 1) one LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = ?"""
_MAY_WRITE: Final = """SELECT NOT pg_is_in_recovery() AND bool_and(has_table_privilege(c.oid, p.privilege))
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace,
        (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) p (privilege)
    WHERE n.nspname = ? AND c.relkind = 'r'"""
# Whoever may use the schema and a table; 0 is everyone.
_OTHERS: Final = """SELECT DISTINCT CASE o.role WHEN 0 THEN 'everyone' ELSE pg_get_userbyid(o.role) END
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace,
        aclexplode(c.relacl) t, aclexplode(n.nspacl) s,
        LATERAL (SELECT CASE t.grantee WHEN 0 THEN s.grantee ELSE t.grantee END) o (role)
    WHERE n.nspname = ? AND c.relkind = 'r' AND s.privilege_type = 'USAGE' AND o.role <> c.relowner
        AND (s.grantee = t.grantee OR 0 IN (s.grantee, t.grantee))
    ORDER BY 1"""

_TABLES: Final = """SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = ? AND c.relkind = 'r'"""

_PASSING: Final = ("40001", "40P01")  # two transactions were in each other's way; the same again may do
_LOCKED: Final = ("55P03", "57014")
_FULL: Final = "53100"
_GONE: Final = ("3F000", "42P01")
_UNREACHABLE: Final = ("it cannot be reached", "see that the server runs and that address, role and password are right")
_OTHER: Final = ("something is wrong with it", "see the server's words in parentheses")
_FAULTS: Final = {
    _FULL: ("the disk is full", "free some space, or delete old runs"),
    **dict.fromkeys(_LOCKED, ("something keeps it locked or busy", "see pg_locks and pg_stat_activity for what")),
    "25006": ("it may not be written", "name the primary, and a role whose transactions are not read-only"),
    "42501": ("this role may not do that", "let it own the schema, or grant it what is missing"),
    **dict.fromkeys(_GONE, ("its tables were deleted", "its open runs cannot go on; start them again in a new ledger")),
}


class PostgresDatabase:
    """A schema on a PostgreSQL server, made on the first write. Several hosts may share it.

    `url`: a `postgresql://` URL with libpq's options, and with `schema=` for another schema than `guardrail`. There is
    one connection, made when it is first needed and made anew when it was lost. A durable commit is on the server's
    disk; the others outlive the process but not the server until the next durable one. `schema` is the steps that
    lead to the schema in use.
    """

    def __init__(self, url: str, schema: Sequence[Migration] = MIGRATIONS) -> None:
        self._address = read_address(url)
        self._schema = schema
        self._session: Session | None = None
        self._is_ready = False  # the schema is there and present
        self._is_pooled = False  # each transaction may be on another of the server's sessions

    @property
    def name(self) -> str:
        """The URL without what is nobody's business."""
        return self._address.name

    @property
    def is_near(self) -> bool:
        """See `Database`."""
        return False

    @property
    def presence(self) -> int | None:
        """See `Database`. Behind a pooler there is nothing that ends with this process."""
        return None if self._is_pooled else this_process()

    def transact(self, purpose: Purpose, patience: float, work: Callable[[Execute], T]) -> T:
        """See `Database`. What reads before it writes locks what it reads by a first write to it."""
        deadline, pause, careful = time.monotonic() + patience, _PAUSE, False
        while True:
            try:
                return self._carry_out(purpose, deadline, work, careful=careful)
            except ServerError as error:
                if is_refusal(error) and not careful:
                    careful = True  # to find out which row it was
                    continue
                is_passing = self._session is None or error.state in _PASSING
                if not is_passing or time.monotonic() + pause >= deadline:
                    raise self._fault(error) from error
            time.sleep(pause)
            pause *= 2

    def remarks(self) -> tuple[str, ...]:
        """See `Database`: roles that may read or write the tables, and what makes the ledger less than it should be."""
        return self.transact("look", _PATIENCE, lambda _: tuple(self._remarks()))

    def before_fork(self) -> None:
        """See `Database`: the connection stays the parent's, so that others see all the time that it is there."""

    def after_fork_in_child(self) -> None:
        """See `Database`."""
        session, self._session = self._session, None
        if session is not None:
            session.abandon()

    def close(self) -> None:
        """See `Database`."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    # Transactions.

    def _carry_out(self, purpose: Purpose, deadline: float, work: Callable[[Execute], T], *, careful: bool) -> T:
        try:
            session = self._connected(deadline)
            if not self._is_ready:
                self._prepare(session, purpose)
                session.deadline = max(deadline, time.monotonic() + _LEAST)
            result = self._do(session, purpose, work, careful=careful) if self._is_ready else work(_nothing)
            if purpose == "erase":
                self._clean_up(session)
            return result
        finally:  # a look is over, or whatever was broken off, also by an interrupt; what is committed is at rest
            if self._session is not None and not self._session.is_at_rest():
                self.close()

    def _do(self, session: Session, purpose: Purpose, work: Callable[[Execute], T], *, careful: bool = False) -> T:
        transaction = PostgresTransaction(session, self._opening(purpose), careful=careful)
        try:
            result = work(transaction)
            if purpose != "look":
                transaction.commit()
        except ServerError as error:
            if transaction.is_sent and not session.is_at_rest():
                raise LedgerError(
                    f"the ledger {self.name} did not say whether it keeps what was written last, as the connection was "
                    f"lost ({error}); so that does not count, and the next operation connects again"
                ) from error
            raise
        return result

    def _opening(self, purpose: Purpose) -> list[Statement]:
        opening = [BEGIN_LOOK if purpose == "look" else BEGIN]
        if self._is_pooled:
            opening.append((_SET, (self._address.schema, True, True)))
        if purpose == "group":
            opening.append(_SET_GROUP)
        return opening

    def _clean_up(self, session: Session) -> None:
        """Give space back, as far as nobody is in the way; what is not done now the server does another time."""
        schema = self._address.schema
        with suppress(ServerError):
            names = ", ".join(f"{schema}.{table}" for (table,) in session.ask(_TABLES, schema))
            session.ask(f"VACUUM (SKIP_LOCKED) {names}")

    # The connection.

    def _connected(self, deadline: float) -> Session:
        if self._session is not None and self._session.is_lost():
            self.close()
        if self._session is None:
            self._is_ready = False
            self._session = self._connect(max(deadline, time.monotonic() + _LEAST))
        self._session.deadline = max(deadline, time.monotonic() + _LEAST)
        return self._session

    def _connect(self, deadline: float) -> Session:
        session = Session(self._address.conninfo, deadline)
        try:
            self._set_up(session)
        except BaseException:  # also an interrupt: nobody else has the connection to close it
            session.close()
            raise
        return session

    def _set_up(self, session: Session) -> None:
        """Set the session up; but one that others use in between stays as it is, and has nothing prepared in it."""
        self._is_pooled = session.ask("SELECT pg_backend_pid()") != [(session.process,)]
        if self._is_pooled:
            session.prepares = False
        else:
            session.ask(_SET, self._address.schema, False, False)
            session.ask(_SET_LASTING)
            session.ask(_ANNOUNCE, this_process())

    # The schema.

    def _prepare(self, session: Session, purpose: Purpose) -> None:
        """Bring the schema to the present; but a look makes none."""
        version = self._version(session)
        if version == 0 and purpose == "look":
            return
        for step in range(version, len(self._schema)):
            self._do(session, "durable", partial(self._take, session, step))
        self._is_ready = True

    def _version(self, session: Session) -> int:
        """The schema's version, 0 where there is none; `LedgerError` for what is no ledger, or too new."""
        schema = self._address.schema
        ((is_filled, is_marked),) = session.ask(_FIND, schema)
        if not is_marked:
            if is_filled:
                raise LedgerError(
                    f"the schema {schema} of {self.name} is another application's: name another by ?schema= in the URL"
                )
            return 0
        ((version,),) = session.ask(f"SELECT version FROM {schema}.{_MARK}")
        if version > len(self._schema):
            raise LedgerError(too_new(self.name, version, len(self._schema)))
        return int(version)

    def _take(self, session: Session, step: int, execute: Execute) -> None:
        """Take one step, unless another process has just taken it."""
        schema = self._address.schema
        execute("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
        session.deadline = time.monotonic() + _STEP
        if self._version(session) != step:
            return
        if step == 0:
            if not execute("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = ?", (schema,)):
                execute(f"CREATE SCHEMA {schema}")
            execute(f"CREATE TABLE {schema}.{_MARK} (version BIGINT NOT NULL)")
            execute(f"INSERT INTO {_MARK} VALUES (0)")
            execute(_PRESENT)
        for statement in self._schema[step]:
            execute(statement.removesuffix(WITHOUT_ROWID))
        execute(f"UPDATE {_MARK} SET version = ?", (step + 1,))

    # What is told of it.

    def _remarks(self) -> Iterator[str]:
        session, schema = self._session, self._address.schema
        assert session is not None
        if session.ask(_MAY_WRITE if self._is_ready else _MAY_MAKE, schema) != [(True,)]:
            raise LedgerError(
                f"the ledger {self.name} cannot be {'written' if self._is_ready else 'made'}: name the primary server, and "
                f"let the role own the schema {schema}, or grant it what is missing"
            )
        others = [role for (role,) in session.ask(_OTHERS, schema)]
        if others:
            yield f"{self.name} can be read or changed by {', '.join(others)}: revoke what they may do in {schema}"
        if session.ask("SHOW fsync") != [("on",)]:
            yield f"{self.name} lies on a server with fsync off: nothing there outlives a power failure"
        if self._is_pooled:
            yield (
                f"{self.name} is reached through a pooler: whether a run's process on another host still lives cannot be "
                "told; connect to the server itself"
            )

    def _fault(self, error: ServerError) -> LedgerError:
        """The error in plain words. But for a lock and a full disk, a new connection has a better chance."""
        if error.state not in (*_LOCKED, *_PASSING, _FULL):
            self.close()
        what, advice = _FAULTS.get(error.state, _UNREACHABLE if error.state[:2] in ("", "08", "57") else _OTHER)
        return LedgerError(f"the ledger {self.name} cannot be used: {what} ({error}); {advice}")


def _nothing(statement: str, values: Sequence[object] = (), /) -> list[Row]:
    """Execute where there is nothing yet."""
    return []
