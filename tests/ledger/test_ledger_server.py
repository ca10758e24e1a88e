"""A ledger on a server: its schema, its roles, its settings, and what is shown of its address."""

from __future__ import annotations

import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import psycopg
import pytest

from guardrail.errors import LedgerError
from guardrail.ledger.database import Purpose
from guardrail.ledger.ledger import Ledger
from guardrail.ledger.migrations import MIGRATIONS
from guardrail.ledger.opening import open_database
from guardrail.ledger.postgres.database import PostgresDatabase
from guardrail.ledger.records import BoundInput, CallRecord, OutcomeRecord, RunRecord, UserTurn, VerdictRecord
from support.ledgers import connected, in_schema, schema_of, wait_until_blocked

Runs = Callable[..., RunRecord]
Calls = Callable[..., CallRecord]
Outcomes = Callable[..., OutcomeRecord]
Verdicts = Callable[..., VerdictRecord]


@pytest.fixture
def place(postgres_url: str) -> str:
    return in_schema(postgres_url)


@pytest.fixture
def server(place: str) -> Iterator[psycopg.Connection]:
    """Somebody else who is connected, and may do everything; unqualified names are those of the ledger."""
    with closing(connected(place)) as connection:
        yield connection


def did(server: psycopg.Connection, statement: str) -> list[tuple[object, ...]]:
    cursor = server.execute(statement.encode())
    return cursor.fetchall() if cursor.description else []


class TestTheSchema:
    @pytest.fixture
    def new(self, postgres_url: str) -> Iterator[str]:
        """The place of a ledger whose schema is not there."""
        name = f"t_{secrets.token_hex(6)}"
        yield in_schema(postgres_url, name)
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())

    def test_is_made_by_the_first_write_and_not_by_a_look(
        self, new: str, server: psycopg.Connection, run_record: Runs
    ) -> None:
        def is_there() -> bool:
            return did(server, f"SELECT to_regnamespace('{schema_of(new)}') IS NOT NULL") == [(True,)]

        with closing(Ledger(new)) as ledger:
            assert ledger.runs() == ()
            assert ledger.load_run("r1") is None
            assert ledger.remarks() == ()
            assert not is_there()
            ledger.open_run(run_record())
            assert is_there()
            assert [summary.run.id for summary in ledger.runs()] == ["r1"]

    def test_is_called_guardrail_where_the_url_names_none(self, postgres_url: str) -> None:
        assert open_database(f"{postgres_url}&schema=guardrail").name == open_database(postgres_url).name

    @pytest.mark.parametrize("name", ["", "Upper", "with-dash", "pg_mine", "x" * 64, 'a";drop', "a b", "ä"])
    def test_has_a_plain_name(self, postgres_url: str, name: str) -> None:
        with pytest.raises(LedgerError, match="names a schema that is none"):
            Ledger(in_schema(postgres_url).partition("&schema=")[0] + f"&schema={name}")

    def test_of_another_application_is_left_alone(
        self, place: str, server: psycopg.Connection, run_record: Runs
    ) -> None:
        did(server, "CREATE TABLE orders (id bigint)")
        with closing(Ledger(place)) as ledger:
            with pytest.raises(LedgerError, match=f"the schema {schema_of(place)} of .* is another application's"):
                ledger.open_run(run_record())
            with pytest.raises(LedgerError, match="is another application's"):
                ledger.runs()
        assert did(server, "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()") == [("orders",)]

    def test_of_a_newer_version_is_left_alone(self, place: str, server: psycopg.Connection, run_record: Runs) -> None:
        with closing(Ledger(place)) as ledger:
            ledger.open_run(run_record())
        did(server, "UPDATE ledger_version SET version = 99")
        with (
            closing(Ledger(place)) as ledger,
            pytest.raises(
                LedgerError, match=r"newer version of the library \(schema 99, this one knows \d+\): upgrade"
            ),
        ):
            ledger.open_run(run_record("r2"))

    @pytest.mark.parametrize("replaced", [False, True])
    def test_that_is_dropped_stops_the_runs_that_were_in_it_and_lets_new_ones_begin(
        self,
        ledger: Ledger,
        place: str,
        server: psycopg.Connection,
        run_record: Runs,
        call_record: Calls,
        replaced: bool,
    ) -> None:
        ledger.open_run(run_record())
        ledger.intend(call_record(1))
        did(server, f"DROP SCHEMA {schema_of(place)} CASCADE; CREATE SCHEMA {schema_of(place)}")
        if replaced:
            with closing(Ledger(place)) as other:
                other.open_run(run_record("other"))
        else:
            with pytest.raises(LedgerError, match=r"its tables were deleted .* start them again in a new ledger"):
                ledger.intend(call_record(2))
        with pytest.raises(LedgerError, match="the run r1 cannot be recorded, because its run is not in this ledger"):
            ledger.intend(call_record(2))
        ledger.open_run(run_record("r2"))
        ledger.intend(call_record(1, run="r2"))
        assert {summary.run.id for summary in ledger.runs()} == ({"r2", "other"} if replaced else {"r2"})

    def test_is_brought_to_the_present_however_long_that_takes(self, place: str, run_record: Runs) -> None:
        slow = PostgresDatabase(place, (*MIGRATIONS, ("SELECT pg_sleep(2)",)))
        with closing(Ledger(slow, patience=0)) as ledger:
            ledger.open_run(run_record())
            assert [summary.run.id for summary in ledger.runs()] == ["r1"]


class TestRoles:
    @pytest.fixture
    def role(self, server: psycopg.Connection) -> Iterator[str]:
        """A role that may log in, and nothing else."""
        name = f"t_{secrets.token_hex(6)}"
        did(server, f"CREATE ROLE {name} LOGIN")
        yield name
        did(server, f"DROP OWNED BY {name}; DROP ROLE {name}")

    @pytest.fixture
    def theirs(self, place: str, role: str) -> Iterator[Ledger]:
        """The ledger as that role."""
        base, _, options = place.partition("?")
        with closing(Ledger(f"{base}?{options}&user={role}")) as ledger:
            yield ledger

    def test_one_that_may_not_make_a_schema_is_told(
        self, theirs: Ledger, place: str, role: str, run_record: Runs
    ) -> None:
        with pytest.raises(LedgerError, match=r"cannot be made: .* let the role own the schema"):
            theirs.remarks()
        with pytest.raises(LedgerError, match=r"this role may not do that \(permission denied .*\); let it own the"):
            theirs.open_run(run_record())

    def test_one_that_owns_an_empty_schema_needs_no_more(
        self, theirs: Ledger, server: psycopg.Connection, place: str, role: str, run_record: Runs
    ) -> None:
        did(server, f"ALTER SCHEMA {schema_of(place)} OWNER TO {role}")
        assert theirs.remarks() == ()
        theirs.open_run(run_record())
        assert theirs.remarks() == ()
        did(server, f"ALTER SCHEMA {schema_of(place)} OWNER TO CURRENT_USER")

    def test_one_that_may_only_read_can_look_and_is_told_that_it_cannot_write(
        self, ledger: Ledger, theirs: Ledger, server: psycopg.Connection, place: str, role: str, run_record: Runs
    ) -> None:
        ledger.open_run(run_record())
        did(server, f"GRANT USAGE ON SCHEMA {schema_of(place)} TO {role}")
        did(server, f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema_of(place)} TO {role}")
        assert [summary.run.id for summary in theirs.runs()] == ["r1"]
        with pytest.raises(LedgerError, match="this role may not do that"):
            theirs.open_run(run_record("r2"))
        with pytest.raises(LedgerError, match="cannot be written: "):
            theirs.remarks()

    def test_others_that_may_read_are_remarked_on(
        self, ledger: Ledger, server: psycopg.Connection, place: str, role: str, run_record: Runs
    ) -> None:
        ledger.open_run(run_record())
        assert ledger.remarks() == ()
        did(server, f"GRANT SELECT ON runs TO {role}")
        assert ledger.remarks() == ()  # the schema is closed to it
        did(server, f"GRANT USAGE ON SCHEMA {schema_of(place)} TO {role}")
        (remark,) = ledger.remarks()
        assert f"can be read or changed by {role}: revoke" in remark
        did(server, f"REVOKE SELECT ON runs FROM {role}; GRANT SELECT ON runs TO PUBLIC")
        (remark,) = ledger.remarks()
        assert f"can be read or changed by {role}: revoke" in remark
        did(server, f"GRANT USAGE ON SCHEMA {schema_of(place)} TO PUBLIC; GRANT INSERT ON calls TO PUBLIC")
        (remark,) = ledger.remarks()
        assert f"can be read or changed by everyone, {role}: revoke" in remark


class TestWhatIsDurable:
    @pytest.mark.parametrize(
        ("default", "purpose", "used"),
        [
            ("on", "durable", "on"),
            ("off", "durable", "on"),
            ("off", "erase", "on"),
            ("local", "durable", "local"),
            ("remote_apply", "durable", "remote_apply"),
            ("on", "group", "off"),
        ],
    )
    def test_is_on_the_servers_disk_whatever_is_usual_there(
        self, postgres_url: str, default: str, purpose: Purpose, used: str
    ) -> None:
        place = in_schema(f"{postgres_url}%20-csynchronous_commit%3D{default}")
        with closing(open_database(place)) as database:
            asked = "SELECT current_setting('synchronous_commit')"
            assert database.transact(purpose, 5, lambda execute: execute(asked)) == [(used,)]
            assert database.transact(purpose, 5, lambda execute: execute(asked)) == [(used,)]


class TestDeleting:
    def test_gives_space_back(
        self, ledger: Ledger, server: psycopg.Connection, run_record: Runs, verdict_record: Verdicts
    ) -> None:
        ledger.open_run(run_record())
        ledger.close_run(verdict_record())
        assert ledger.delete("r1") == 1
        vacuumed = "SELECT count(*) FROM pg_stat_user_tables WHERE schemaname = current_schema() AND vacuum_count > 0"
        while did(server, vacuumed) != [(10,)]:  # the server's statistics follow in a moment
            time.sleep(0.01)

    def test_does_so_another_time_when_somebody_is_in_the_way(
        self, ledger: Ledger, place: str, server: psycopg.Connection, run_record: Runs, verdict_record: Verdicts
    ) -> None:
        ledger.open_run(run_record())
        ledger.close_run(verdict_record())
        did(server, "BEGIN; LOCK TABLE turns IN SHARE UPDATE EXCLUSIVE MODE")
        assert ledger.delete("r1") == 1
        did(server, "COMMIT")
        assert ledger.load_run("r1") is None


class TestTransactions:
    def test_one_that_is_the_servers_victim_is_carried_out_again(
        self, ledger: Ledger, place: str, server: psycopg.Connection, run_record: Runs, verdict_record: Verdicts
    ) -> None:
        """Two that lock the same rows in another order cannot both go on."""
        for id in ("r1", "r2"):
            ledger.open_run(run_record(id))
            ledger.close_run(verdict_record(id, ended=1.0))
        did(server, "SET deadlock_timeout = '60s'; BEGIN; UPDATE runs SET lost = lost WHERE id = 'r2'")
        deleted: list[int] = []
        deleting = threading.Thread(target=lambda: deleted.append(ledger.delete(older_than=0)))
        deleting.start()
        wait_until_blocked(place)
        did(server, "UPDATE runs SET lost = 7 WHERE id = 'r1'; COMMIT")
        deleting.join()
        assert deleted == [2]
        assert ledger.runs() == ()

    def test_what_comes_after_a_refused_row_for_the_first_time_is_kept(
        self, ledger: Ledger, run_record: Runs, outcome_record: Outcomes
    ) -> None:
        ledger.open_run(run_record())
        ledger.record(outcome_record(1, run="never opened"))
        ledger.record(UserTurn("r1", 1001.0))
        ledger.record(BoundInput("r1", "order_id", "17"))
        ledger.flush()
        found = ledger.load_run("r1")
        assert found is not None
        assert (found.turns, found.inputs) == ((1001.0,), {"order_id": "17"})

    def test_a_value_that_does_not_fit_is_refused_and_not_shown(
        self, ledger: Ledger, run_record: Runs, call_record: Calls
    ) -> None:
        ledger.open_run(run_record())
        with pytest.raises(LedgerError, match="holds a value that cannot be stored") as caught:
            ledger.intend(call_record(1)._replace(started="s3cret"))  # type: ignore[arg-type]
        assert "s3cret" not in f"{caught.value} {caught.value.__cause__}"

    def test_a_text_that_no_key_can_hold_is_refused_and_takes_no_other_with_it(
        self, ledger: Ledger, run_record: Runs, outcome_record: Outcomes
    ) -> None:
        endless = secrets.token_hex(10_000)
        ledger.open_run(run_record())
        ledger.record(outcome_record(1))
        ledger.record(BoundInput("r1", endless, "1"))
        ledger.record(outcome_record(2))
        found = ledger.load_run("r1")
        assert found is not None
        assert ([recorded.call.number for recorded in found.calls], found.inputs, found.lost) == ([1, 2], {}, 1)
        with pytest.raises(LedgerError, match="holds a value that cannot be stored"):
            ledger.open_run(run_record(endless))


SECRET = "h0rse"


class TestTheAddress:
    @pytest.mark.parametrize(
        "url",
        [
            f"postgresql://me:{SECRET}/@127.0.0.1/shop",
            f"postgresql://me:{SECRET}@x@127.0.0.1/shop",
            f"postgresql://me:a/{SECRET}@127.0.0.1:5432/shop",
            f"postgresql://me:{SECRET}@127.0.0.1/shop?nonsense=1",
            f"postgresql://me:a@127.0.0.1:{SECRET}/shop",
            f"postgresql://me@127.0.0.1/shop?password={SECRET}&x",
        ],
    )
    def test_that_cannot_be_read_is_an_error_that_shows_nothing_of_it(self, url: str) -> None:
        with pytest.raises(LedgerError, match="the ledger's URL cannot be read") as caught:
            Ledger(url)
        assert SECRET not in repr(caught.value)
        assert caught.value.__suppress_context__ or caught.value.__context__ is None

    @pytest.mark.parametrize(
        ("url", "name"),
        [
            ("postgresql://me:pw@db.internal:5433/shop?sslmode=require", "postgresql://db.internal:5433/shop"),
            ("postgres://me:p%40%2F@db.internal/shop?schema=mine", "postgresql://db.internal/shop?schema=mine"),
            ("postgresql://me:a?pw@db.internal/shop?schema=mine", "postgresql://db.internal/shop?schema=mine"),
            ("postgresql+psycopg://me:pw@a:1,b:2/shop", "postgresql://a,b:1,2/shop"),
            ("postgresql:///shop?host=/run/pg&password=pw", "postgresql:///run/pg/shop"),
        ],
    )
    def test_is_shown_without_user_and_password(self, url: str, name: str) -> None:
        database = open_database(url)
        assert database.name == name
        assert "pw" not in repr(database) + repr(vars(database))

    def test_where_nobody_answers_is_an_error_without_the_password(self, run_record: Runs) -> None:
        ledger = Ledger(f"postgresql://me:{SECRET}@127.0.0.1:1/shop", patience=0)
        with pytest.raises(LedgerError, match=r"127\.0\.0\.1:1/shop cannot be used: it cannot be reached") as caught:
            ledger.open_run(run_record())
        assert SECRET not in f"{caught.value!r} {caught.value.__cause__!r}"

    def test_of_a_database_that_is_not_there_is_an_error(self, place: str, run_record: Runs) -> None:
        ledger = Ledger(f"{place}&dbname=no_such_database", patience=0)
        with pytest.raises(LedgerError, match='"no_such_database" does not exist'):
            ledger.open_run(run_record())

    @pytest.mark.parametrize("url", ["mysql://root@127.0.0.1/shop", "https://example.org/ledger"])
    def test_of_something_else_is_refused(self, url: str) -> None:
        with pytest.raises(LedgerError, match="a ledger cannot lie at a URL that begins with"):
            Ledger(url)

    def test_without_the_driver_is_an_error_that_names_the_extra(
        self, place: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in [name for name in sys.modules if name.startswith("guardrail.ledger.postgres")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "psycopg", None)
        with pytest.raises(LedgerError, match=r"needs psycopg, .* pip install 'guardrail-runtime\[postgres\]'"):
            Ledger(place)
