"""Looks at a SQLite database: one fresh snapshot each, and a clear text for what cannot be answered."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import UserDict
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from guardrail.pictures import Answer, Picture, Rows, Unanswered
from guardrail.query.proof import prove, prove_condition
from guardrail.stores.opening import open_store
from guardrail.stores.store import MOST_ANSWERED, Ask, Photograph, Question, Store


def ask(sql: str, functions: frozenset[str] = frozenset(), **values: object) -> Ask:
    return Ask(prove(sql, "sqlite", functions=functions), values)


STATUS = ask("SELECT status FROM orders WHERE id = 1")
ORDERS = Photograph("shop.orders", "orders")
ENDLESS = ask("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r")


def status(store: Store) -> object:
    (answer,) = store.look([STATUS])
    assert isinstance(answer, Rows)
    return answer.rows[0][0]


def why(answer: Answer) -> str:
    assert isinstance(answer, Unanswered)
    return answer.why


def write(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(sql)


def test_every_look_sees_what_was_committed_before_it(store: Store, shop: Path) -> None:
    assert status(store) == "paid"
    with closing(sqlite3.connect(shop)) as agent:
        agent.execute("UPDATE orders SET status = 'refunded' WHERE id = 1")
        assert status(store) == "paid", "not committed, so not visible to another connection"
        agent.commit()
        assert status(store) == "refunded"


@pytest.mark.parametrize("mode", ["wal", "delete", "truncate", "persist"])
def test_every_journal_mode_is_read(store: Store, shop: Path, mode: str) -> None:
    with closing(sqlite3.connect(shop)) as agent:
        assert agent.execute(f"PRAGMA journal_mode = {mode}").fetchone() == (mode,)
        agent.execute("UPDATE orders SET status = 'refunded' WHERE id = 1")
        agent.commit()
        assert status(store) == "refunded"
        agent.execute("PRAGMA journal_mode = delete")
    assert status(store) == "refunded"


def test_a_writer_can_commit_right_after_a_look(store: Store, shop: Path) -> None:
    with closing(sqlite3.connect(shop, timeout=0)) as agent:
        for number in range(5):
            assert status(store) == ("paid" if number == 0 else f"s{number}")
            agent.execute("UPDATE orders SET status = ? WHERE id = 1", [f"s{number + 1}"])
            agent.commit()


def test_a_wal_is_cleaned_up_when_its_last_writer_closes(store: Store, shop: Path) -> None:
    with closing(sqlite3.connect(shop)) as agent:
        agent.execute("PRAGMA journal_mode = wal")
        agent.execute("UPDATE orders SET status = 'x'")
        agent.commit()
        assert status(store) == "x"
    assert [path.name for path in shop.parent.iterdir()] == ["shop.db"]


def test_all_questions_of_a_look_are_answered_from_one_moment(database: Callable[[str], Path]) -> None:
    path = database(
        "PRAGMA journal_mode = wal; CREATE TABLE orders (id INTEGER PRIMARY KEY, n); INSERT INTO orders VALUES (1, 0);"
    )
    store = open_store("shop", path, 5)
    plain = ask("SELECT n FROM orders")
    values = Meddling(lambda: write(path, "UPDATE orders SET n = n + 1"))
    meddling = Ask(prove("SELECT n FROM orders WHERE id = :it", "sqlite"), values)
    answers = store.look([meddling, plain, ORDERS])
    assert answers[0] == answers[1] == Rows(("n",), ((0,),))
    assert isinstance(answers[2], Picture)
    assert answers[2].rows == {(1,): (1, 0)}
    assert store.look([plain]) == [Rows(("n",), ((1,),))]


def test_a_shared_database_in_memory_is_read_through_a_factory() -> None:
    where = "file:looked-at?mode=memory&cache=shared"
    with closing(sqlite3.connect(where, uri=True)) as agent:
        agent.executescript(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, status); INSERT INTO orders VALUES (1, 'paid');"
        )
        store = open_store("shop", lambda: sqlite3.connect(where, uri=True), 0.2)
        assert status(store) == "paid"
        agent.execute("UPDATE orders SET status = 'refunded'")
        (locked,) = store.look([STATUS])
        assert "kept it locked for 0.2 s" in why(locked)
        agent.commit()
        assert status(store) == "refunded"


class Meddling(UserDict[str, object]):
    """Values that let somebody write while they are bound, in the middle of a look."""

    def __init__(self, meddle: Callable[[], object]) -> None:
        super().__init__(it=1)
        self.meddle = meddle

    def __getitem__(self, name: str) -> object:
        self.meddle()
        return super().__getitem__(name)


def test_a_shared_database_in_memory_is_frozen_as_a_whole() -> None:
    where = "file:frozen?mode=memory&cache=shared"
    refused: list[str] = []
    with closing(sqlite3.connect(where, uri=True, isolation_level=None)) as agent:
        agent.executescript("CREATE TABLE a (n); CREATE TABLE b (n); INSERT INTO b VALUES (0);")

        def meddle() -> None:
            try:
                agent.execute("UPDATE b SET n = n + 1")
            except sqlite3.OperationalError as error:
                refused.append(str(error))

        store = open_store("shop", lambda: sqlite3.connect(where, uri=True), 5)
        meddling = Ask(prove("SELECT count(*) AS n FROM a WHERE n = :it", "sqlite"), Meddling(meddle))
        answers = store.look([meddling, ask("SELECT n FROM b"), ask("SELECT n FROM missing")])
    assert answers[1] == Rows(("n",), ((0,),))
    assert refused == ["database table is locked: b"]
    assert why(answers[2]) == "shop.missing could not be looked at: no such table: missing"


def test_a_factorys_connection_cannot_write_either(shop: Path) -> None:
    store = open_store("shop", lambda: sqlite3.connect(shop), 5)
    refused = Ask(type(STATUS.query)("", "sqlite", "DELETE FROM orders", (), ()))
    assert "does more than read" in why(store.look([refused])[0])
    assert status(store) == "paid"


def test_the_factorys_row_factory_and_isolation_do_not_matter(shop: Path) -> None:
    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(shop, isolation_level="EXCLUSIVE")
        connection.row_factory = sqlite3.Row
        return connection

    assert open_store("shop", connect, 5).look([STATUS]) == [Rows(("status",), (("paid",),))]


def test_a_factory_that_fails_is_told() -> None:
    def tenant_is_unknown() -> sqlite3.Connection:
        raise LookupError("no tenant 7")

    answers = open_store("shop", tenant_is_unknown, 5).look([STATUS, ORDERS])
    assert [why(answer) for answer in answers] == [
        "shop.orders could not be looked at: its factory failed: LookupError: no tenant 7"
    ] * 2
    assert "returned str" in why(open_store("shop", lambda: "no", 5).look([STATUS])[0])


def test_no_questions_need_no_database(tmp_path: Path) -> None:
    assert open_store("shop", tmp_path / "none.db", 5).look([]) == []


def test_a_database_that_vanishes_is_told_and_found_again(store: Store, shop: Path) -> None:
    assert status(store) == "paid"
    away = shop.rename(shop.with_suffix(".away"))
    assert why(store.look([STATUS])[0]) == f"shop.orders could not be looked at: there is no database file {shop}"
    assert not shop.exists(), "a look creates nothing"
    away.rename(shop)
    assert status(store) == "paid"


def test_a_database_that_is_replaced_is_read_anew(store: Store, shop: Path) -> None:
    pristine = shutil.copy(shop, shop.with_suffix(".pristine"))
    write(shop, "UPDATE orders SET status = 'x'")
    assert status(store) == "x"
    os.replace(pristine, shop)
    assert status(store) == "paid"


def test_a_dropped_table_leaves_the_other_questions_answered(store: Store, shop: Path) -> None:
    write(shop, "DROP VIEW paid; DROP TABLE orders")
    picture, rows, other = store.look([ORDERS, STATUS, ask("SELECT count(*) AS n FROM refunds")])
    assert why(picture) == "shop.orders could not be looked at: there is no table orders; did you mean order?"
    assert why(rows) == "shop.orders could not be looked at: no such table: orders"
    assert other == Rows(("n",), ((2,),))


@pytest.mark.parametrize(
    "content", [b"this is no database, however long it is. " * 50, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_a_file_that_is_no_database_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "shop.db"
    path.write_bytes(content)
    assert "is not a SQLite database, or is damaged" in why(open_store("shop", path, 5).look([STATUS])[0])


def test_a_folder_in_place_of_the_database_is_told(tmp_path: Path) -> None:
    assert "cannot be opened or read" in why(open_store("shop", tmp_path, 5).look([STATUS])[0])


def test_an_empty_file_is_a_database_without_tables(tmp_path: Path) -> None:
    (tmp_path / "shop.db").touch()
    answers = open_store("shop", tmp_path / "shop.db", 5).look([ORDERS, ask("SELECT 1 AS one")])
    assert "there is no table orders" in why(answers[0])
    assert answers[1] == Rows(("one",), ((1,),))


def test_a_locked_database_is_waited_for_and_then_told(shop: Path) -> None:
    store = open_store("shop", shop, 0.1)
    with closing(sqlite3.connect(shop, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        assert "a writer kept it locked for 0.1 s" in why(store.look([STATUS])[0])
        writer.execute("ROLLBACK")
    assert status(store) == "paid"


CRASH = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 5")
connection.execute("CREATE TABLE filler (id INTEGER PRIMARY KEY, a)")
connection.execute("BEGIN")
connection.executemany("INSERT INTO filler (a) VALUES (?)", [("x" * 500,)] * 2000)
connection.execute("UPDATE orders SET status = 'half'")
os.kill(os.getpid(), 9)
"""


def test_a_write_that_was_cut_off_is_told_until_the_application_has_recovered(store: Store, shop: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", CRASH, str(shop)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert shop.with_name("shop.db-journal").exists()
    assert "was left in the middle of a write" in why(store.look([STATUS])[0])
    write(shop, "SELECT count(*) FROM orders")
    assert status(store) == "paid"


def test_a_query_that_runs_away_is_interrupted(shop: Path) -> None:
    store = open_store("shop", shop, 0.2)
    started = time.monotonic()
    first, endless, last = store.look([STATUS, ENDLESS, ORDERS])
    assert time.monotonic() - started < 60, "without an interruption it would never end"
    assert first == Rows(("status",), (("paid",),))
    assert "took longer than 0.2 s" in why(endless)
    assert isinstance(last, Picture | Unanswered)
    assert status(store) == "paid"


def test_an_answer_of_too_many_rows_is_refused_not_cut_off(store: Store) -> None:
    numbers = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < :most) SELECT n FROM r"
    allowed, refused = store.look([ask(numbers, most=MOST_ANSWERED), ask(numbers, most=MOST_ANSWERED + 1)])
    assert isinstance(allowed, Rows)
    assert len(allowed.rows) == MOST_ANSWERED
    assert "more than 10,000 rows" in why(refused)


def test_a_value_that_grows_without_end_is_refused(store: Store) -> None:
    doubling = "WITH RECURSIVE r(s) AS (SELECT 'x' UNION ALL SELECT s || s FROM r) SELECT max(length(s)) FROM r"
    padded = "SELECT printf('%1000000000d', 1) AS padded"
    doubled, cut = store.look([ask(doubling), ask(padded)])
    assert "a value is longer than 64 MiB" in why(doubled)
    assert cut == Rows(("padded",), ((None,),)), "as SQLite itself answers what it will not build"


def test_two_columns_of_one_name_are_refused(store: Store) -> None:
    (answer,) = store.look([ask("SELECT o.id, r.id FROM orders o JOIN refunds r ON r.order_id = o.id")])
    assert why(answer) == (
        "shop.orders, shop.refunds could not be looked at: the query answers two columns called id; "
        "name them apart with AS"
    )


def test_a_missing_value_and_a_wrong_column_are_told_with_the_table(store: Store) -> None:
    missing, wrong, misspelt = store.look(
        [
            ask("SELECT id FROM orders WHERE id = :order_id"),
            ask("SELECT nope FROM orders"),
            ask("SELECT count(*) FROM orders WHERE \"statsu\" = 'paid'"),
        ]
    )
    assert why(missing) == "shop.orders could not be looked at: the parameter :order_id has no value (there is none)"
    assert why(wrong) == "shop.orders could not be looked at: no such column: nope"
    assert why(misspelt) == "shop.orders could not be looked at: no such column: statsu"


def test_text_that_is_not_utf_8_is_answered_as_bytes(store: Store, shop: Path) -> None:
    write(shop, "UPDATE orders SET status = CAST(x'ff41' AS TEXT) WHERE id = 1")
    rows, picture = store.look([ask("SELECT id, status FROM orders ORDER BY id"), ORDERS])
    assert isinstance(rows, Rows)
    assert rows.rows == ((1, b"\xffA"), (2, "open"), (3, "Paid"))
    assert isinstance(picture, Picture)
    assert picture.rows[(1,)][2] == b"\xffA"


def test_what_a_users_function_raises_is_told(shop: Path) -> None:
    def broken(amount: float) -> float:
        raise ZeroDivisionError(amount)

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(shop)
        connection.create_function("vat", 1, broken)
        return connection

    store = open_store("shop", connect, 5)
    vat = ask("SELECT vat(amount) AS vat FROM orders", functions=frozenset({"vat"}))
    answers: list[Question] = [vat, STATUS]
    failed, fine = store.look(answers)
    assert "user-defined function raised exception" in why(failed)
    assert fine == Rows(("status",), (("paid",),))


def test_what_a_users_converter_raises_is_told(database: Callable[[str], Path]) -> None:
    path = database(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, paid_on broken_date); INSERT INTO orders VALUES (1, 'x');"
    )

    def broken(raw: bytes) -> object:
        raise ZeroDivisionError(raw)

    sqlite3.register_converter("broken_date", broken)
    store = open_store("shop", lambda: sqlite3.connect(path, detect_types=sqlite3.PARSE_DECLTYPES), 5)
    failed, fine = store.look([ORDERS, ask("SELECT count(*) AS n FROM orders")])
    assert "ZeroDivisionError" in why(failed)
    assert fine == Rows(("n",), ((1,),))


def test_a_query_for_another_dialect_is_not_run(store: Store) -> None:
    (rows,) = store.look([Ask(prove("SELECT 1", "mysql"))])
    (picture,) = store.look([Photograph("shop.orders", "orders", where=prove_condition("TRUE", "postgres"))])
    assert why(rows) == "shop could not be looked at: its query was proved for mysql, and the database is SQLite"
    assert "was proved for postgres" in why(picture)


@pytest.mark.parametrize("name", ["with\0nul", "half a \ud800 pair"])
def test_a_name_that_cannot_be_written_is_told(store: Store, shop: Path, name: str) -> None:
    for asked in (store, open_store("shop", lambda: sqlite3.connect(shop), 5)):
        answer, _ = asked.look([Photograph("shop.odd", name), STATUS])
        assert why(answer).startswith("shop.odd could not be looked at: ")


def test_a_condition_with_its_own_parameters_is_bound(store: Store) -> None:
    where = prove_condition("customer_id = :customer AND status <> :not_this", "sqlite")
    (picture,) = store.look(
        [Photograph("shop.orders", "orders", where=where, values={"customer": 7, "not_this": "open"})]
    )
    assert isinstance(picture, Picture)
    assert set(picture.rows) == {(1,)}
