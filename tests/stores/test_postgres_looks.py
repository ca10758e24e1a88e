"""Looks at PostgreSQL: one snapshot each, and a check that cannot be made costs its own answer only."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from guardrail.pictures import Rows, Tables
from guardrail.query.proof import prove, prove_condition
from guardrail.stores.store import MOST_ANSWERED, Ask, Store, Survey, tables_of
from support.postgres_looks import (
    Meddling,
    See,
    ask,
    execute,
    make_url,
    only,
    photo,
    role,
    rows,
    shop,
    taken,
    unproved,
    why,
)

Admin = psycopg.Connection[Any]

ORDERS: LiteralString = """
CREATE TABLE orders (id int PRIMARY KEY, status text NOT NULL, amount numeric(10, 2));
INSERT INTO orders VALUES (1, 'paid', 19.90), (2, 'open', 5), (3, 'Paid', NULL);
"""
STATUS = ask("SELECT status FROM orders WHERE id = 1")


@pytest.fixture(autouse=True)
def orders(admin: Admin) -> None:
    admin.execute(ORDERS)


def test_every_look_sees_what_was_committed_before_it(pg: Store, see: See, admin: Admin, postgres_url: str) -> None:
    assert only(*see(pg, [STATUS])) == "paid"
    with psycopg.connect(postgres_url) as agent:
        agent.execute("UPDATE orders SET status = 'refunded' WHERE id = 1")
        assert only(*see(pg, [STATUS])) == "paid", "not committed, so not visible to another connection"
        agent.commit()
        assert only(*see(pg, [STATUS])) == "refunded"


@pytest.mark.parametrize("doubtful", [False, True], ids=["at once", "one by one"])
@pytest.mark.parametrize("hashed", [False, True])
def test_all_answers_of_a_look_are_from_one_moment(
    pg: Store, see: See, admin: Admin, hashed: bool, doubtful: bool
) -> None:
    written: list[object] = []
    values = Meddling(lambda: written.append(admin.execute("UPDATE orders SET amount = amount + 1")), least=1)
    meddling = photo(
        "orders", where=prove_condition("id >= :least", "postgres"), values=values, pinned=((1,),), hashed=hashed
    )
    asked = [ask("SELECT amount FROM orders WHERE id = 1"), meddling, ask("SELECT sum(amount) FROM orders")]
    answers = see(pg, [*asked, *([ask("SELECT 1 / 0")] if doubtful else [])])
    assert written
    seen = taken(answers[1]).rows[(1,)]
    assert isinstance(seen[2], Decimal)
    both = seen[2] + (seen[2] - Decimal("14.90"))
    assert (only(answers[0]), only(answers[2])) == (seen[2], both)
    assert only(*see(pg, [asked[0]])) != seen[2]


FAILING = {
    "division by zero": ("SELECT 1 / (id - 1) FROM orders", "division by zero (22012)"),
    "no such table": ("SELECT 1 FROM missing", 'relation "missing" does not exist'),
    "no such column": ("SELECT missing FROM orders", 'column "missing" does not exist'),
    "no number": ("SELECT status::int FROM orders", "invalid text representation (22P02)"),
    "no date": ("SELECT '2024-02-30'::date", "datetime field overflow (22008)"),
    "no operator": ("SELECT id = status FROM orders", "operator does not exist: integer = text"),
    "too large": ("SELECT 99999999999::int", "numeric value out of range (22003)"),
    "no pattern": ("SELECT status ~ '(' FROM orders", "invalid regular expression (2201B)"),
    "several rows": ("SELECT (SELECT id FROM orders)", "more than one row returned by a subquery"),
    "two columns of one name": (
        "SELECT 1 AS n, 2 AS n",
        "the query answers two columns called n; name them apart with AS",
    ),
    "too many rows": ("SELECT generate_series(1, 10001)", "the query answers more than 10,000 rows; narrow it"),
}


@pytest.mark.parametrize(("sql", "said"), FAILING.values(), ids=FAILING)
def test_a_check_that_fails_costs_its_own_answer_only(
    pg: Store, see: See, caplog: pytest.LogCaptureFixture, sql: str, said: str
) -> None:
    first, failed, picture, last = see(pg, [STATUS, ask(sql), photo("orders"), ask("SELECT count(*) FROM orders")])
    assert (only(first), taken(picture).size, only(last)) == ("paid", 3, 3)
    assert said in why(failed)
    assert "paid" not in why(failed).lower(), "no value of a row"
    assert caplog.records == [], "nor anything from psycopg"
    assert only(*see(pg, [STATUS])) == "paid"


@pytest.mark.parametrize("count", [1, 10, 200])
@pytest.mark.parametrize("failing", [(), (0,), (7,), (0, 1, 150, 199)], ids=str)
def test_any_number_of_checks_is_answered_in_order(pg: Store, see: See, count: int, failing: tuple[int, ...]) -> None:
    numbers = range(count)
    answers = see(pg, [ask("SELECT :n / :by", n=n, by=0 if n in failing else 1) for n in numbers])
    answered = {n: only(answer) for n, answer in enumerate(answers) if isinstance(answer, Rows)}
    assert answered == {n: n for n in numbers if n not in failing}
    assert {why(answers[n]) for n in failing if n < count} <= {"division by zero (22012)"}


def test_no_questions_have_no_answers(pg: Store, see: See) -> None:
    assert see(pg, []) == []


def test_a_value_that_cannot_be_bound_costs_its_own_answer_only(pg: Store, see: See) -> None:
    find = "SELECT count(*) FROM orders WHERE status = :it"
    answers = see(
        pg,
        [
            ask(find, it="a\0b"),
            ask(find, it="half a \ud800 pair"),
            ask(find),
            ask(find, it=object()),
            ask(find, it="paid"),
        ],
    )
    assert only(answers[-1]) == 1
    assert [bool(why(answer)) for answer in answers[:-1]] == [True] * 4


@pytest.mark.parametrize("name", ["with\0nul", "half a \ud800 pair", "", "x" * 5000, '"', ".", "a.", 'a"."b'])
def test_a_name_that_no_table_can_have_costs_its_own_answer_only(pg: Store, see: See, name: str) -> None:
    answer, status = see(pg, [photo(name), STATUS])
    assert why(answer)
    assert only(status) == "paid"


def test_an_answer_has_as_many_rows_as_it_may_have(pg: Store, see: See) -> None:
    [answer] = see(pg, [ask("SELECT n FROM generate_series(1, :most) AS s (n) ORDER BY n DESC", most=MOST_ANSWERED)])
    assert [n for (n,) in rows(answer)] == [*range(MOST_ANSWERED, 0, -1)]


def test_an_answer_may_have_no_rows_or_no_columns(pg: Store, see: See) -> None:
    none, empty, values = see(
        pg, [ask("SELECT id FROM orders WHERE id = 0"), ask("SELECT NULL AS n"), ask("VALUES (1, 2), (3, 4)")]
    )
    assert none == Rows(("id",), ())
    assert empty == Rows(("n",), ((None,),))
    assert rows(values) == ((1, 2), (3, 4))


def test_a_literal_percent_and_a_question_mark_are_taken_as_they_are(pg: Store, see: See, admin: Admin) -> None:
    admin.execute("CREATE TABLE t (id int PRIMARY KEY, note text, doc jsonb)")
    admin.execute("""INSERT INTO t VALUES (1, '50% off', '{"a": 1}')""")
    found = ask("SELECT id FROM t WHERE note LIKE '50%' AND doc ? 'a' AND note LIKE :ending", ending="%off")
    where = prove_condition("note LIKE '%off' AND doc ? 'a' AND id = :id", "postgres")
    answer, picture = see(pg, [found, photo(where=where, values={"id": 1})])
    assert rows(answer) == ((1,),)
    assert taken(picture).size == 1


WROTE = """
CREATE SEQUENCE numbers;
CREATE FUNCTION wrote() RETURNS int LANGUAGE sql AS $$ UPDATE orders SET status = 'x' RETURNING 1 $$
"""
WRITING = [
    "UPDATE orders SET status = 'x'",
    "WITH gone AS (DELETE FROM orders RETURNING 1) SELECT count(*) FROM gone",
    "SELECT nextval('numbers')",
    "SELECT 1) AS asked; COMMIT; UPDATE orders SET status = 'x'; --",
    "SELECT id FROM orders FOR UPDATE",
    "SELECT pg_catalog.set_config('transaction_read_only', 'off', true)",
    "SELECT wrote()",
]


@pytest.mark.parametrize("sql", WRITING)
def test_whatever_is_asked_nothing_is_written(pg: Store, see: See, admin: Admin, sql: str) -> None:
    execute(admin, WROTE)
    writing, failing = unproved(sql), ask("SELECT 1 / 0")
    for questions in ([writing], [writing, failing], [failing, writing, writing]):
        assert why(see(pg, questions)[questions.index(writing)])
    assert admin.execute("SELECT status FROM orders ORDER BY id").fetchall() == [("paid",), ("open",), ("Paid",)]
    assert admin.execute("SELECT nextval('numbers')").fetchone() == (1,)
    assert only(*see(pg, [STATUS])) == "paid"


def test_a_role_that_may_write_does_not_write_either(admin: Admin, see: See, postgres_url: str) -> None:
    execute(admin, WROTE)
    with role(admin, postgres_url, "ALL ON orders") as url, closing(shop(url)) as store:
        assert why(*see(store, [unproved("SELECT wrote()")])) == "cannot execute UPDATE in a read-only transaction"
        assert only(*see(store, [STATUS])) == "paid"


def test_a_query_for_another_dialect_is_not_run(pg: Store, see: See) -> None:
    where = prove_condition("TRUE", "sqlite")
    answer, picture = see(pg, [Ask(prove("SELECT id FROM orders", "mysql")), photo("orders", where=where)])
    assert why(answer) == "its query was proved for mysql, and the database is PostgreSQL"
    assert "was proved for sqlite" in why(picture)


ODD = (
    *("TimeZone=Europe/Berlin", "DateStyle=SQL,DMY", "IntervalStyle=iso_8601", "bytea_output=escape"),
    *("extra_float_digits=-9", "transform_null_equals=on", "row_security=off"),
)


def test_settings_of_the_session_do_not_matter(admin: Admin, see: See, postgres_url: str) -> None:
    admin.execute("CREATE TABLE t (id timestamptz PRIMARY KEY, d date, i interval, b bytea, f float8, g real)")
    for since in ("2024-10-27 00:30+00", "2024-10-27 01:30+00"):  # in Berlin, clocks were put back between them
        values = [since, "2024-01-31", "1 mon 2 days", b"\0\xff", 0.1 + 0.2, "0.1"]
        admin.execute("INSERT INTO t VALUES (%s, %s, %s, %s, %s, %s)", values)
    path = conninfo_to_dict(postgres_url)["options"]
    asked = [
        photo(),
        photo(hashed=True),
        ask("SELECT id, d, i, b, f, g FROM t ORDER BY id"),
        ask("SELECT count(*) FROM orders WHERE amount = :nothing", nothing=None),
    ]
    set_oddly = make_url(postgres_url, options=f"{path} {' '.join(f'-c{setting}' for setting in ODD)}")
    with closing(shop(postgres_url)) as plain, closing(shop(set_oddly)) as store:
        answers = see(store, asked)
        assert answers == see(plain, asked)
    assert taken(answers[0]).size == taken(answers[1]).size == 2
    for key, *_ in rows(answers[2]):
        assert isinstance(key, datetime)
        assert key.utcoffset() == timedelta(0)


HOSTILE = """
CREATE TYPE state AS ENUM ('paid', 'open');
CREATE TABLE t (id int PRIMARY KEY, tags text[], state state, place point, pair orders, name varchar(9), since timetz);
INSERT INTO t VALUES (1, '{a}', 'paid', '(1,2)', '(1,paid,2)', 'x', '12:00+00');
CREATE FUNCTION array_to_json(text[]) RETURNS json LANGUAGE sql IMMUTABLE AS $$ SELECT '"evil"'::json $$;
CREATE FUNCTION to_json(orders) RETURNS json LANGUAGE sql IMMUTABLE AS $$ SELECT '"evil"'::json $$;
CREATE FUNCTION hash_record_extended(record, int) RETURNS bigint LANGUAGE internal IMMUTABLE AS 'hash_record_extended';
CREATE FUNCTION int8send(numeric) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$ SELECT '\\x00'::bytea $$;
CREATE FUNCTION concat_ws(text, text, text, text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'evil' $$;
CREATE FUNCTION unnest(int2[]) RETURNS SETOF int2 LANGUAGE sql IMMUTABLE AS $$ SELECT 0::int2 $$;
CREATE AGGREGATE array_agg(text) (SFUNC = array_append, STYPE = text[], INITCOND = '{evil}');
CREATE FUNCTION set_config(text, text, boolean) RETURNS text LANGUAGE sql AS $$ SELECT 'evil' $$;
CREATE FUNCTION current_setting(text) RETURNS text LANGUAGE sql AS $$ SELECT 'evil' $$;
CREATE FUNCTION lower(text) RETURNS text LANGUAGE sql AS $$ SELECT 'evil' $$;
CREATE FUNCTION never(state, state) RETURNS boolean LANGUAGE sql AS $$ SELECT false $$;
CREATE FUNCTION never(int, int) RETURNS boolean LANGUAGE sql AS $$ SELECT false $$;
CREATE OPERATOR = (LEFTARG = state, RIGHTARG = state, FUNCTION = never);
CREATE OPERATOR = (LEFTARG = int, RIGHTARG = int, FUNCTION = never);
CREATE DOMAIN text AS int;
CREATE COLLATION "C" FROM "POSIX";
CREATE TABLE pg_class (id int);
"""


@pytest.mark.parametrize("path", ["{}", "{}, pg_catalog", "pg_temp, {}, pg_catalog"])
def test_a_users_objects_are_not_taken_for_the_servers_own(
    admin: Admin, see: See, postgres_url: str, path: str
) -> None:
    execute(admin, HOSTILE)
    [[schema]] = admin.execute("SELECT pg_catalog.current_schema()").fetchall()
    store = shop(f"{postgres_url.partition('?')[0]}?options=-csearch_path%3D{path.format(schema).replace(' ', '')}")
    asked = [
        photo(hashed=True, pinned=((1,),)),
        photo(hashed=True, key=("state",), pinned=(("paid",),)),
        ask("SELECT lower('A'::text), id = 1 FROM t"),
    ]
    picture, by_state, answer = see(store, asked)
    assert taken(picture).key == ("id",)
    assert taken(picture).rows[(1,)][:5] == (1, '["a"]', "paid", "(1,2)", '{"id":1,"status":"paid","amount":2.00}')
    assert {len(code) for code in (taken(picture).hashes or {}).values()} == {8}
    assert ("paid",) in taken(by_state).rows
    assert rows(answer) == (("a", True),)
    store.close()


def test_tables_are_surveyed_with_their_size(pg: Store, see: See, admin: Admin) -> None:
    admin.execute(
        "CREATE TABLE empty (a int); CREATE VIEW seen AS SELECT * FROM orders; CREATE TEMP TABLE mine (id int)"
    )
    [answer] = see(pg, [Survey(2)])
    assert isinstance(answer, Tables)
    assert [(table.name, table.key, table.rows) for table in answer.tables] == [
        ("empty", None, 0),
        ("orders", ("id",), 3),
    ]
    assert [table.rows for table in tables_of(pg)] == [None, None]
