"""Pictures of PostgreSQL tables: what names a row, what is in it, and in which form."""

from __future__ import annotations

import uuid
from contextlib import closing
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from guardrail.pictures import Picture, Tables
from guardrail.query.proof import prove_condition
from guardrail.stores.store import Store, Survey, tables_of
from support.postgres_looks import LOOSE, See, can, execute, make_url, photo, shop, taken, why

Admin = psycopg.Connection[Any]


class Photographer:
    """Takes a picture of one table, or says why there is none."""

    def __init__(self, store: Store, see: See) -> None:
        self._store = store
        self._see = see

    def __call__(self, table: str = "t", **asked: Any) -> Picture:
        [answer] = self._see(self._store, [photo(table, **asked)])
        return taken(answer)

    def refused(self, table: str = "t", **asked: Any) -> str:
        """Why there is no picture."""
        [answer] = self._see(self._store, [photo(table, **asked)])
        return why(answer)


@pytest.fixture
def picture(pg: Store, see: See) -> Photographer:
    return Photographer(pg, see)


KEYS = """
CREATE TABLE plain (id int PRIMARY KEY, a int);
CREATE TABLE composite (a int, b int, c int, PRIMARY KEY (c, a));
CREATE TABLE by_index (a int, b int NOT NULL, c int NOT NULL, d int NOT NULL UNIQUE, UNIQUE (b, c));
CREATE TABLE including (a int NOT NULL, b int);
CREATE UNIQUE INDEX ON including (a) INCLUDE (b);
CREATE TABLE deferred_key (a int NOT NULL UNIQUE DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE nullable (a int UNIQUE, b int);
CREATE TABLE partly (a int NOT NULL, b int);
CREATE UNIQUE INDEX ON partly (a) WHERE b = 1;
CREATE TABLE expression (a text NOT NULL);
CREATE UNIQUE INDEX ON expression (lower(a));
CREATE TABLE heap (a int);
CREATE TABLE no_columns ();
CREATE TABLE dropped (gone int, b int PRIMARY KEY);
ALTER TABLE dropped DROP COLUMN gone;
CREATE TABLE parted (id int, region text, n int, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE parted_eu PARTITION OF parted FOR VALUES IN ('eu');
CREATE TABLE parted_us PARTITION OF parted FOR VALUES IN ('us');
CREATE TABLE parent (id int PRIMARY KEY, a int);
CREATE TABLE child (b int) INHERITS (parent);
CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY);
CREATE VIEW seen AS SELECT id, a FROM plain;
CREATE MATERIALIZED VIEW kept AS SELECT id, a FROM plain;
CREATE UNIQUE INDEX ON kept (id);
"""
FOUND: dict[str, tuple[str, ...] | None] = {
    "plain": ("id",),
    "composite": ("c", "a"),
    "by_index": ("d",),
    "including": ("a",),
    "deferred_key": ("a",),
    "nullable": None,
    "partly": None,
    "expression": None,
    "heap": None,
    "no_columns": None,
    "dropped": ("b",),
    "parted": ("id", "region"),
    "parent": ("id",),
    "child": None,
    "unlogged": ("id",),
}


def test_the_key_is_found_in_the_schema(pg: Store, see: See, admin: Admin) -> None:
    execute(admin, KEYS)
    [answer] = see(pg, [Survey()])
    assert isinstance(answer, Tables)
    assert {table.name: table.key for table in answer.tables} == {n: k for n, k in FOUND.items() if n != "no_columns"}
    named = {name: key for name, key in FOUND.items() if key}
    pictures = [taken(answer) for answer in see(pg, [photo(name) for name in named])]
    assert [found.key for found in pictures] == [*named.values()]
    assert all(found.columns[: len(found.key)] == found.key for found in pictures)


@pytest.mark.parametrize("table", ["nullable", "partly", "expression", "heap", "child", "seen", "kept"])
def test_what_has_no_key_needs_a_declared_one(admin: Admin, picture: Photographer, table: str) -> None:
    execute(admin, KEYS)
    assert picture.refused(table) == "nothing tells its rows apart; declare a key"


def test_a_declared_key_is_taken_over_the_schemas(admin: Admin, picture: Photographer) -> None:
    execute(admin, KEYS)
    admin.execute("INSERT INTO composite VALUES (1, 2, 3), (1, 3, 3 + 1), (2, NULL, 3)")
    assert picture("composite", key=("B",)).rows == {(2,): (2, 1, 3), (3,): (3, 1, 4), (None,): (None, 2, 3)}


def test_views_partitions_and_children_are_looked_at(admin: Admin, picture: Photographer) -> None:
    execute(admin, KEYS)
    admin.execute("INSERT INTO plain VALUES (1, 2); REFRESH MATERIALIZED VIEW kept")
    admin.execute(
        "INSERT INTO parted VALUES (1, 'eu', 10), (1, 'us', 20); INSERT INTO parent VALUES (1, 1); INSERT INTO child VALUES (2, 2, 2)"
    )
    assert picture("seen", key=("id",)).rows == picture("kept", key=("id",)).rows == {(1,): (1, 2)}
    assert picture("parted").rows == {(1, "eu"): (1, "eu", 10), (1, "us"): (1, "us", 20)}
    assert set(picture("parted", hashed=True).hashes or ()) == {(1, "eu"), (1, "us")}
    assert picture("parted_us").rows == {(1, "us"): (1, "us", 20)}
    assert picture("parent").rows == {(1,): (1, 1), (2,): (2, 2)}
    admin.execute("INSERT INTO child VALUES (1, 1, 1)")
    assert "the key (id) is not unique" in picture.refused("parent")


@pytest.mark.parametrize("hashed", [False, True])
def test_a_key_that_is_not_unique_is_refused_by_name(admin: Admin, picture: Photographer, hashed: bool) -> None:
    admin.execute("CREATE TABLE t (a int, b int); INSERT INTO t VALUES (1, 2), (1, 2), (1, 3), (2, 2)")
    assert picture.refused(key=("a", "b"), hashed=hashed).startswith(
        "the key (a, b) is not unique: 1 of 4 rows have the key of"
    )
    assert picture.refused(key=("a",), hashed=hashed).startswith("the key (a) is not unique: 2 of 4 rows")


def test_wrong_names_are_told_with_the_right_ones(admin: Admin, picture: Photographer) -> None:
    admin.execute("CREATE TABLE orders (id int PRIMARY KEY, status text)")
    assert picture.refused("order") == "there is no table order; did you mean orders?"
    assert picture.refused("zzz") == "there is no table zzz"
    assert picture.refused("orders", key=("ids",)) == "the key names ids; its columns are id, status"
    assert picture.refused("orders", ignore=frozenset({"stats"})) == "`ignore` names stats; its columns are id, status"
    assert picture.refused("orders", ignore=frozenset({"id"})) == "id is part of the key and cannot be ignored"
    assert picture.refused("orders", where=prove_condition("nope = 1", "postgres")) == 'column "nope" does not exist'
    assert picture.refused("orders", pinned=((1, 2),), hashed=True) == "the pinned key (1, 2) does not fit the key (id)"


ODD = [
    "a.b",
    'we"ird',
    '"quoted"',
    "select",
    "two words",
    "ünï 😀",
    "CamelCase",
    "x" * 63,
    "a%b",
    "semi;colon",
    "new\nline",
    "$1",
    "a'b",
    ".",
    " ",
]


@pytest.mark.parametrize("name", ODD)
def test_odd_names_are_looked_at(pg: Store, see: See, admin: Admin, name: str) -> None:
    odd = '"' + name.replace('"', '""') + '"'
    execute(
        admin, f"CREATE TABLE {odd} ({odd} int PRIMARY KEY, other text); INSERT INTO {odd} VALUES (1, 'x'), (2, 'y')"
    )
    [table] = tables_of(pg, 10)
    assert (table.columns, table.key, table.rows) == ((name, "other"), (name,), 2)
    where = prove_condition(f"{odd} = :it", "postgres")
    answers = see(
        pg,
        [
            photo(table.name, where=where, values={"it": 1}, hashed=hashed, pinned=((1,), (2,)))
            for hashed in (False, True)
        ],
    )
    assert [taken(answer).rows for answer in answers] == [{(1,): (1, "x")}] * 2
    assert [taken(answer).kinds for answer in answers] == [{name: "integer", "other": "text"}] * 2


def test_letters_case_matters_only_where_names_differ_by_nothing_else(admin: Admin, picture: Photographer) -> None:
    execute(admin, "CREATE TABLE orders (id int PRIMARY KEY, \"Status\" text); INSERT INTO orders VALUES (1, 'paid')")
    assert picture("ORDERS", ignore=frozenset({"status"})).rows == {(1,): (1,)}
    execute(admin, 'CREATE TABLE "Orders" (id int PRIMARY KEY); CREATE TABLE t ("A" int PRIMARY KEY, a int)')
    assert picture("Orders").rows == {}
    assert picture("orders").size == 1
    assert picture.refused("ORDERS").startswith("there is no table ORDERS")
    assert picture("t").columns == ("A", "a")


def test_a_table_of_another_schema_is_named_with_it(admin: Admin, picture: Photographer, pg: Store) -> None:
    [[schema]] = admin.execute("SELECT current_schema()").fetchall()
    other = f"{schema}.Sales x"
    execute(admin, f'CREATE SCHEMA "{other}"')
    try:
        execute(admin, f'CREATE TABLE "{other}".orders (id int PRIMARY KEY); INSERT INTO "{other}".orders VALUES (1)')
        execute(admin, f'CREATE TABLE "{other}"."a.b" (id int PRIMARY KEY); CREATE TABLE orders (id int PRIMARY KEY)')
        assert picture(f'"{other}".orders').size == 1
        assert picture(f'"{other}"."a.b"').size == picture("orders").size == picture(f"{schema}.orders").size == 0
        assert "there is no table" in picture.refused(f"{other}.orders")
        assert [table.name for table in tables_of(pg)] == ["orders"]
    finally:
        execute(admin, f'DROP SCHEMA "{other}" CASCADE')


def test_a_schema_on_the_path_may_be_called_anything(admin: Admin, see: See, postgres_url: str) -> None:
    [[schema]] = admin.execute("SELECT current_schema()").fetchall()
    odd = f'{schema} "X,.y'.replace('"', '""')
    execute(admin, f'CREATE SCHEMA "{odd}"; CREATE TABLE "{odd}".orders (id int PRIMARY KEY)')
    try:
        quoted = f'"{odd}"'.replace(" ", "\\ ")
        with closing(shop(make_url(postgres_url, options=f"-csearch_path={quoted}"))) as store:
            assert [table.name for table in tables_of(store, 9)] == ["orders"]
            assert taken(see(store, [photo("orders")])[0]).size == 0
    finally:
        execute(admin, f'DROP SCHEMA "{odd}" CASCADE')


def test_a_temporary_table_does_not_hide_a_table(admin: Admin, see: See, postgres_url: str) -> None:
    execute(admin, "CREATE TABLE orders (id int PRIMARY KEY); INSERT INTO orders VALUES (1)")
    with psycopg.connect(postgres_url, autocommit=True) as agent:
        execute(
            agent,
            "CREATE TEMP TABLE orders (id int PRIMARY KEY, evil int); CREATE TEMP TABLE mine (id int PRIMARY KEY)",
        )
        store = shop(agent)
        assert taken(store.look([photo("orders")])[0]).rows == {(1,): (1,)}
        assert [table.name for table in tables_of(store, 5)] == ["orders"]


def numbers(admin: Admin, most: int) -> None:
    admin.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    admin.execute("INSERT INTO t SELECT n, 'v' || n FROM generate_series(1, %s) AS s (n)", [most])


def test_the_size_decides_between_whole_rows_and_hashes(admin: Admin, picture: Photographer) -> None:
    numbers(admin, 2_500)
    whole = picture(whole_rows=2_500)
    assert (whole.hashes, len(whole.rows)) == (None, 2_500)
    hashed = picture(whole_rows=2_499)
    assert hashed.hashes is not None
    assert (len(set(hashed.hashes.values())), hashed.hashes.keys(), hashed.rows) == (2_500, whole.rows.keys(), {})
    assert picture(whole_rows=5, hashed=False).hashes is None


@pytest.mark.parametrize("asked", [{}, {"hashed": True}, {"hashed": False}, {"whole_rows": 10}])
def test_a_table_above_the_cap_is_refused_with_what_to_do(
    admin: Admin, picture: Photographer, asked: dict[str, Any]
) -> None:
    numbers(admin, 2_001)
    why_not = "it has more than 2,000 rows in scope; narrow it with `where`, or raise `most_rows`"
    assert picture.refused(most_rows=2_000, **asked) == why_not
    assert picture(most_rows=2_001, **asked).size == 2_001
    assert picture(most_rows=2_000, where=prove_condition("id <= 2000", "postgres"), **asked).size == 2_000


def test_an_ignored_column_is_not_even_read(admin: Admin, picture: Photographer) -> None:
    admin.execute("CREATE TABLE t (id int PRIMARY KEY, a int, bad int); INSERT INTO t VALUES (1, 2, 3)")
    before = picture(hashed=True, ignore=frozenset({"bad"}))
    admin.execute("UPDATE t SET bad = 4")
    after = picture(hashed=True, ignore=frozenset({"bad"}))
    assert before == after
    assert after.columns == ("id", "a")
    admin.execute("UPDATE t SET a = 4")
    assert picture(hashed=True, ignore=frozenset({"bad"})) != before


def test_an_empty_table_has_a_picture(admin: Admin, picture: Photographer) -> None:
    admin.execute("CREATE TABLE t (id int PRIMARY KEY)")
    assert picture().size == picture(hashed=True).size == 0
    assert picture(hashed=True, pinned=((1,),)).rows == {}


# Keys that are pinned, in the forms in which a contract may give them.

PINNED: list[tuple[str, str, list[object], list[object]]] = [
    (
        "int",
        "7",
        [7, "7", Decimal("7.0"), 7.0, " 7"],
        ["x", 7.5, 2**40, -(2**31) - 1, "1e999999", Decimal("NaN"), None, True, b"7", "٣"],
    ),
    ("smallint", "1", [1, True, "1"], [False, 32768, "t"]),
    ("bigint", "9223372036854775807", [2**63 - 1, str(2**63 - 1)], [2**63, -(2**63) - 1, 9.3e18]),
    (
        "numeric(10,2)",
        "19.90",
        ["19.9", Decimal("19.900"), 19.9],
        ["19.91", "x", "1e200000", "1e-20000", Decimal("sNaN"), "Infinity"],
    ),
    ("money", "19.90", ["19.9", 19.9], ["$19.90", "1e300", "x"]),
    ("float8", "0.1", [0.1, "0.1", Decimal("0.1")], ["1e400", "1e-400", "x", "0.10000001"]),
    ("real", "0.1", [0.1, "0.1"], ["1e39", "1e-60", 0.2, float("inf")]),
    ("boolean", "true", [True, "true", "TRUE", 1], [False, 0, "x", None, "yes"]),
    ("text", "a b", ["a b"], ["a  b", "A b", "a\0b", "\ud800", 7, None]),
    ("text", "7", ["7", 7, Decimal("7")], ["7.0", 7.5]),
    ("varchar(5)", "ab", ["ab"], ["ab ", "abcdefghij"]),
    ("char(5)", "paid", ["paid"], ["p", "pai", "paid!"]),
    ("state", "paid", ["paid"], ["nonsense", "PAID", 7, ""]),
    ("state_domain", "paid", ["paid"], ["nonsense"]),
    ("cents", "0.10", ["0.1"], ["-1", "x", "0.101"]),
    (
        "uuid",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", uuid.UUID("a0eebc999c0b4ef8bb6d6bb9bd380a11")],
        ["x", 7],
    ),
    ("bytea", "\\x6162", [b"ab", "ab"], [b"abc", "ac", b"\0"]),
    (
        "date",
        "2024-01-31",
        [date(2024, 1, 31), "2024-01-31", "20240131", "2024-W05-3"],
        ["2024-02-31", "x", date(2024, 2, 1), 7],
    ),
    ("date", "infinity", ["infinity"], ["-infinity", "2024-01-01"]),
    ("date", "0044-03-15 BC", ["0044-03-15 BC"], ["0044-03-15"]),
    ("time", "12:00", [time(12), "12:00", "12:00:00"], ["25:00", "x"]),
    ("time", "24:00", ["24:00:00"], ["00:00"]),
    ("timestamp", "2024-01-31 12:00", [datetime(2024, 1, 31, 12), "2024-01-31T12:00:00"], ["2024-01-31", "x"]),
    (
        "timestamptz",
        "2024-01-31 12:00+00",
        [datetime(2024, 1, 31, 12, tzinfo=UTC), "2024-01-31T13:00:00+01:00", "2024-01-31 12:00"],
        ["2024-01-31 12:00+05", "x"],
    ),
    ("timestamptz", "infinity", ["infinity"], ["x"]),
    ("inet", "10.0.0.1/8", ["10.0.0.1/8"], ["10.0.0.1", "x"]),
    ("interval", "1 mon", ["1 mon"], ["30 days", "x"]),
    ("json", '{"a": 1}', ['{"a": 1}'], ["{}", "x"]),
    ("jsonb", '{"a":1}', ['{"a": 1}'], ["{}", "x"]),
    ("int[]", "{1,2}", ["[1,2]"], ["{1,2}", "x"]),
    ("place", "(a,1)", ['{"street":"a","number":1}'], ["x"]),
]


@pytest.mark.parametrize(
    ("spelled", "written", "forms", "others"), PINNED, ids=[f"{row[0]} {row[1]}" for row in PINNED]
)
def test_pinned_keys_are_found_in_every_form(
    admin: Admin, picture: Photographer, spelled: str, written: str, forms: list[object], others: list[object]
) -> None:
    execute(
        admin,
        """CREATE TYPE state AS ENUM ('open', 'paid'); CREATE DOMAIN state_domain AS state;
        CREATE TYPE place AS (street text, number int); CREATE DOMAIN cents AS numeric(10, 2) CHECK (VALUE > 0)""",
    )
    execute(admin, f"CREATE TABLE t (id {spelled}, n int)")
    admin.execute("INSERT INTO t VALUES (%s, 1)", [written])
    [key] = picture(key=("id",)).rows
    for form in forms:
        assert list(picture(key=("id",), hashed=True, pinned=((form,),)).rows) == [key], form
    pinned = tuple((other,) for other in others)
    assert picture(key=("id",), hashed=True, pinned=pinned).rows == {}
    assert list(picture(key=("id",), hashed=True, pinned=(*pinned, key)).rows) == [key], "as it was read"


def test_pinned_keys_may_be_composite_and_null(admin: Admin, picture: Photographer) -> None:
    admin.execute("CREATE TABLE t (a text, b int, c date, v int)")
    admin.execute("INSERT INTO t VALUES ('x', NULL, '2024-01-31', 1), ('x', 2, '2024-01-31', 2), (NULL, NULL, NULL, 3)")
    asked: dict[str, Any] = {"key": ("a", "b", "c"), "hashed": True}
    found = picture(
        **asked,
        pinned=(("x", None, date(2024, 1, 31)), (None, None, None), ("x", "nonsense", None), ("x", 9, "2024-01-31")),
    )
    assert found.rows == {
        ("x", None, date(2024, 1, 31)): ("x", None, date(2024, 1, 31), 1),
        (None, None, None): (None, None, None, 3),
    }
    where = prove_condition("v > :v AND a LIKE 'x%'", "postgres")
    assert [
        *picture(**asked, where=where, values={"v": 1}, pinned=(("x", 2, "2024-01-31"), ("x", None, "2024-01-31"))).rows
    ] == [("x", 2, date(2024, 1, 31))]


def test_a_pinned_text_is_found_under_a_collation_for_which_others_are_equal(
    admin: Admin, picture: Photographer
) -> None:
    if not can(admin, LOOSE):
        pytest.skip("the server was built without ICU")
    execute(admin, "CREATE TABLE t (id text COLLATE loose, v int); INSERT INTO t VALUES ('a', 1), ('A', 2)")
    found = picture(key=("id",), hashed=True, pinned=(("a",),))
    assert found.rows[("a",)] == ("a", 1)
    assert found.size == 2


def test_pictures_of_many_tables_are_from_one_look(pg: Store, see: See, admin: Admin) -> None:
    for n in range(30):
        execute(admin, f"CREATE TABLE t{n} (id int PRIMARY KEY); INSERT INTO t{n} SELECT generate_series(1, {n})")
    assert [taken(answer).size for answer in see(pg, [photo(f"t{n}", hashed=n % 2 == 0) for n in range(30)])] == [
        *range(30)
    ]
    assert [table.rows for table in tables_of(pg, 5)] == [min(int(table.name[1:]), 6) for table in tables_of(pg)]


def test_a_column_that_changes_its_type_between_looks_is_read_anew(pg: Store, see: See, admin: Admin) -> None:
    admin.execute("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 2)")
    for _ in range(5):
        assert taken(see(pg, [photo()])[0]).rows == {(1,): (1, 2)}
    admin.execute("ALTER TABLE t ALTER v TYPE text")
    for _ in range(3):
        assert taken(see(pg, [photo()])[0]).rows == {(1,): (1, "2")}
    admin.execute("DROP TABLE t; CREATE TABLE t (v boolean, id text PRIMARY KEY); INSERT INTO t VALUES (true, 'x')")
    for _ in range(3):
        assert taken(see(pg, [photo()])[0]).rows == {("x",): ("x", True)}
