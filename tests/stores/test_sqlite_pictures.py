"""Pictures of SQLite tables: what names a row, what is in it, and in which form."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.pictures import Answer, Picture, Unanswered
from guardrail.query.proof import prove_condition
from guardrail.stores.opening import open_store
from guardrail.stores.sqlite.pictures import digest
from guardrail.stores.store import Photograph, Store, tables_of

Database = Callable[[str], Path]


def picture(store: Store, table: str = "t", **asked: Any) -> Picture:
    (answer,) = store.look([Photograph(f"shop.{table}", table, **asked)])
    assert isinstance(answer, Picture), answer
    return answer


def refusal(store: Store, table: str = "t", **asked: Any) -> str:
    (answer,) = store.look([Photograph(f"shop.{table}", table, **asked)])
    assert isinstance(answer, Unanswered), answer
    place, why = answer.why.split(" could not be looked at: ")
    assert place == f"shop.{table}"
    return why


def opened(path: Path) -> Store:
    return open_store("shop", path, 30)


KEYS = """
CREATE TABLE alias (id INTEGER PRIMARY KEY, a);
CREATE TABLE composite (a, b, c, PRIMARY KEY (c, a));
CREATE TABLE clustered (id INTEGER PRIMARY KEY, a) WITHOUT ROWID;
CREATE TABLE text_key (a, code TEXT PRIMARY KEY);
CREATE TABLE descending (id INTEGER PRIMARY KEY DESC, a);
CREATE TABLE by_index (a, b NOT NULL, c NOT NULL, d NOT NULL UNIQUE, UNIQUE (b, c));
CREATE TABLE nullable (a UNIQUE, b);
CREATE TABLE partial (a NOT NULL, b);
CREATE UNIQUE INDEX some_rows ON partial (a) WHERE b = 1;
CREATE TABLE expression (a NOT NULL, b);
CREATE UNIQUE INDEX lowered ON expression (lower(a));
CREATE TABLE heap (rowid TEXT, a);
CREATE TABLE both_taken (rowid TEXT, _rowid_ TEXT, a);
CREATE TABLE "order/item" ("select" INTEGER PRIMARY KEY, "ünï ` "" ]" TEXT);
"""


@pytest.mark.parametrize(
    ("table", "key", "generated"),
    [
        ("alias", ("id",), {"id"}),
        ("composite", ("c", "a"), set[str]()),
        ("clustered", ("id",), set[str]()),
        ("text_key", ("code",), set[str]()),
        ("descending", ("id",), set[str]()),
        ("by_index", ("d",), set[str]()),
        ("nullable", ("rowid",), {"rowid"}),
        ("partial", ("rowid",), {"rowid"}),
        ("expression", ("rowid",), {"rowid"}),
        ("heap", ("_rowid_",), {"_rowid_"}),
        ("both_taken", ("oid",), {"oid"}),
        ("order/item", ("select",), {"select"}),
    ],
)
def test_the_key_is_found_in_the_schema(
    database: Database, table: str, key: tuple[str, ...], generated: set[str]
) -> None:
    store = opened(database(KEYS))
    found = picture(store, table)
    assert found.key == key
    assert found.columns[: len(key)] == key
    assert found.generated == generated
    assert {known.name: known.key for known in tables_of(store, 100)}[table] == key


def test_rows_lie_under_their_key_with_the_key_first(database: Database) -> None:
    store = opened(
        database("CREATE TABLE t (a, b, c, PRIMARY KEY (c, a)); INSERT INTO t VALUES (1, 'x', 2), (1, 'y', 3);")
    )
    found = picture(store)
    assert found.columns == ("c", "a", "b")
    assert found.rows == {(2, 1): (2, 1, "x"), (3, 1): (3, 1, "y")}
    assert found.hashes is None
    assert found.size == 2
    assert found.table == "shop.t"


def test_a_declared_key_is_taken_over_the_schemas(database: Database) -> None:
    store = opened(database("CREATE TABLE t (id INTEGER PRIMARY KEY, ref); INSERT INTO t VALUES (1, 'a'), (2, NULL);"))
    assert picture(store, key=("ref",)).rows == {("a",): ("a", 1), (None,): (None, 2)}


def test_every_kind_of_value_is_kept_as_it_is(database: Database) -> None:
    store = opened(
        database(
            "CREATE TABLE t (k BLOB PRIMARY KEY, i, f, s, n, e); INSERT INTO t VALUES (x'00ff', 9223372036854775807, -1.5e300, 'ünï''', NULL, '');"
        )
    )
    assert picture(store).rows == {(b"\0\xff",): (b"\0\xff", 2**63 - 1, -1.5e300, "ünï'", None, "")}


def test_odd_names_are_looked_at(database: Database) -> None:
    odd = """CREATE TABLE "a.b `c`" ("sender/recipient" TEXT, "order" INTEGER, "sel""ect" INT, "ünï" INT, PRIMARY KEY ("order"));
    INSERT INTO "a.b `c`" VALUES ('x', 1, 2, 3);"""
    store = opened(database(odd))
    where = prove_condition('"sender/recipient" = :who AND "order" = 1 AND ünï = 3', "sqlite")
    found = picture(store, "a.b `c`", where=where, values={"who": "x"}, ignore=frozenset({'sel"ect'}))
    assert found.columns == ("order", "sender/recipient", "ünï")
    assert found.rows == {(1,): (1, "x", 3)}


def test_generated_and_defaulted_columns_are_named(database: Database) -> None:
    store = opened(
        database(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a INT, twice AS (a * 2), kept AS (a + 1) STORED, d DEFAULT 5); INSERT INTO t (a) VALUES (4);"
        )
    )
    found = picture(store)
    assert found.rows == {(1,): (1, 4, 8, 5, 5)}
    assert found.generated == {"id", "twice", "kept", "d"}


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        *((name, "integer") for name in ("INT", "INTEGER", "BIGINT", "TINYINT(1)", "UNSIGNED BIG INT", "int8")),
        *((name, "decimal") for name in ("NUMERIC", "DECIMAL(10,2)", "numeric(5, 2)")),
        *((name, "float") for name in ("REAL", "FLOAT", "DOUBLE PRECISION")),
        *((name, "text") for name in ("TEXT", "VARCHAR(20)", "NCHAR(5)", "CLOB")),
        *((name, "instant") for name in ("DATETIME", "TIMESTAMP", "timestamp with time zone")),
        *((name, "boolean") for name in ("BOOLEAN", "bool")),
        *((name, "bytes") for name in ("BLOB", "VARBINARY(9)")),
        *((name, "unknown") for name in ("", "POINT", "INTERVAL", "STRING")),
        ("DATE", "date"),
        ("TIME", "time"),
        ("JSON", "json"),
        ("JSONB", "json"),
        ("UUID", "uuid"),
    ],
)
def test_the_declared_type_decides_how_a_column_compares(database: Database, declared: str, kind: str) -> None:
    store = opened(database(f"CREATE TABLE t (id INTEGER PRIMARY KEY, c {declared})"))
    assert picture(store).kinds == {"id": "integer", "c": kind}


def test_a_view_needs_a_declared_key(database: Database) -> None:
    store = opened(
        database(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a INT); INSERT INTO t VALUES (1, 2); CREATE VIEW v AS SELECT id, a FROM t;"
        )
    )
    assert refusal(store, "v") == "nothing tells its rows apart; declare a key"
    assert picture(store, "v", key=("id",)).rows == {(1,): (1, 2)}
    assert [table.name for table in tables_of(store, 100)] == ["t"]


def test_a_virtual_table_is_looked_at_without_its_hidden_columns(database: Database) -> None:
    store = opened(
        database("CREATE VIRTUAL TABLE notes USING fts5 (body, title); INSERT INTO notes VALUES ('b', 't');")
    )
    assert picture(store, "notes").rows == {(1,): (1, "b", "t")}
    assert [table.name for table in tables_of(store, 100)] == ["notes"]


@pytest.mark.parametrize("hashed", [False, True])
def test_a_key_that_is_not_unique_is_refused_by_name(database: Database, hashed: bool) -> None:
    store = opened(database("CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 2), (1, 2), (1, 3), (2, 2);"))
    why = refusal(store, key=("a", "b"), hashed=hashed)
    assert why.startswith("the key (a, b) is not unique: 1 of 4 rows have the key of another")
    assert refusal(store, key=("a",), hashed=hashed).startswith("the key (a) is not unique: 2 of 4")
    assert picture(store, hashed=hashed).size == 4, "by rowid"


def test_nulls_in_a_primary_key_make_it_not_unique(database: Database) -> None:
    store = opened(database("CREATE TABLE t (a TEXT PRIMARY KEY); INSERT INTO t VALUES (NULL), (NULL);"))
    assert refusal(store).startswith("the key (a) is not unique")


def test_wrong_columns_are_told_with_the_right_ones(database: Database) -> None:
    store = opened(database("CREATE TABLE t (id INTEGER PRIMARY KEY, status)"))
    assert refusal(store, key=("ids",)) == "the key names ids; its columns are id, status"
    assert refusal(store, ignore=frozenset({"stats"})) == "`ignore` names stats; its columns are id, status"
    assert refusal(store, ignore=frozenset({"id"})) == "id is part of the key and cannot be ignored"
    assert refusal(store, where=prove_condition("nope = 1", "sqlite")) == "no such column: nope"
    assert refusal(store, "tt") == "there is no table tt; did you mean t?"


def test_an_ignored_column_is_not_even_read(database: Database) -> None:
    script = "CREATE TABLE t (id INTEGER PRIMARY KEY, a, huge); INSERT INTO t VALUES (1, 2, zeroblob(70000000));"
    store = opened(database(script))
    assert "a value is longer than 64 MiB" in refusal(store)
    assert picture(store, ignore=frozenset({"huge"})).rows == {(1,): (1, 2)}


NUMBERS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < {most}) INSERT INTO t SELECT n, 'v' || n FROM r;"


def numbers(most: int) -> str:
    return "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);" + NUMBERS.format(most=most)


def test_the_size_decides_between_whole_rows_and_hashes(database: Database) -> None:
    store = opened(database(numbers(2_500)))
    whole = picture(store, whole_rows=2_500)
    assert (whole.hashes, len(whole.rows)) == (None, 2_500)
    hashed = picture(store, whole_rows=2_499)
    assert hashed.hashes is not None
    assert (len(hashed.hashes), hashed.rows, hashed.size) == (2_500, {}, 2_500)
    assert hashed.hashes == {key: digest(row) for key, row in whole.rows.items()}


def test_the_form_of_an_earlier_picture_can_be_asked_for(database: Database) -> None:
    store = opened(database(numbers(20)))
    assert picture(store, whole_rows=5, hashed=False).hashes is None
    asked = picture(store, whole_rows=100, hashed=True)
    assert asked.hashes is not None
    assert (asked.size, asked.rows) == (20, {})


@pytest.mark.parametrize("asked", [{}, {"hashed": True}, {"hashed": False}, {"whole_rows": 10}])
def test_a_table_above_the_cap_is_refused_with_what_to_do(database: Database, asked: dict[str, Any]) -> None:
    store = opened(database(numbers(2_001)))
    why = "it has more than 2,000 rows in scope; narrow it with `where`, or raise `most_rows`"
    assert refusal(store, most_rows=2_000, **asked) == why
    assert picture(store, most_rows=2_001, **asked).size == 2_001
    narrow = prove_condition("id <= 2000", "sqlite")
    assert picture(store, most_rows=2_000, where=narrow, **asked).size == 2_000


def test_pinned_keys_are_kept_whole_beside_the_hashes(database: Database) -> None:
    store = opened(database(numbers(20)))
    pinned = ((3,), ("4",), (Decimal("5"),), (99,), (20,))
    found = picture(
        store, hashed=True, pinned=pinned, where=prove_condition("id < :most", "sqlite"), values={"most": 20}
    )
    assert found.rows == {(3,): (3, "v3"), (4,): (4, "v4"), (5,): (5, "v5")}
    assert found.size == 19


def test_pinned_keys_may_be_composite_null_or_dates(database: Database) -> None:
    store = opened(
        database("CREATE TABLE t (a TEXT, b, c); INSERT INTO t VALUES ('2024-01-31', NULL, 1), ('x', 2, 3);")
    )
    found = picture(store, key=("a", "b"), hashed=True, pinned=((date(2024, 1, 31), None),))
    assert found.rows == {("2024-01-31", None): ("2024-01-31", None, 1)}
    assert "the pinned key (1,) does not fit the key (a, b)" in refusal(
        store, key=("a", "b"), hashed=True, pinned=((1,),)
    )


def test_an_empty_table_has_a_picture(database: Database) -> None:
    store = opened(database("CREATE TABLE t (id INTEGER PRIMARY KEY)"))
    assert picture(store).size == picture(store, hashed=True).size == 0


def test_a_converter_of_the_user_reaches_the_picture(database: Database) -> None:
    path = database("CREATE TABLE t (id INTEGER PRIMARY KEY, d exact); INSERT INTO t VALUES (1, '1.50');")
    sqlite3.register_converter("exact", lambda raw: Decimal(raw.decode()))
    store = open_store("shop", lambda: sqlite3.connect(path, detect_types=sqlite3.PARSE_DECLTYPES), 5)
    assert picture(store).rows == {(1,): (1, Decimal("1.50"))}
    assert picture(store, hashed=True).hashes == {(1,): digest((1, Decimal("1.5")))}


def test_a_hash_is_the_same_in_another_process(database: Database) -> None:
    row = (1, "ü", -1.5, None, b"\0", 2**40, "")
    code = f"from guardrail.stores.sqlite.pictures import digest; print(digest({row!r}).hex())"
    other = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert other.stdout.strip() == digest(row).hex() == "bbc8987595758bc3478ea1a12bdf5eaa"


values = (
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.binary(max_size=8)
)
rows = st.dictionaries(st.integers(0, 30), st.tuples(values, values), max_size=12)


def told(values: Sequence[object]) -> str:
    """The values with their types, as SQLite tells 1 and 1.0 apart."""
    return repr(tuple(values))


@given(st.tuples(values, values, values), st.tuples(values, values, values))
def test_different_rows_have_different_hashes(one: tuple[object, ...], other: tuple[object, ...]) -> None:
    assert (digest(one) == digest(other)) == (told(one) == told(other))


@given(rows, rows)
def test_hashes_and_whole_rows_tell_the_same_changes(
    before: dict[int, tuple[Any, Any]], after: dict[int, tuple[Any, Any]]
) -> None:
    where = "file:changes?mode=memory&cache=shared"
    with closing(sqlite3.connect(where, uri=True)) as agent:
        agent.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a, b)")
        store = open_store("shop", lambda: sqlite3.connect(where, uri=True), 5)
        taken: list[list[Answer]] = []
        for state in (before, after):
            agent.execute("DELETE FROM t")
            agent.executemany("INSERT INTO t VALUES (?, ?, ?)", [(key, *row) for key, row in state.items()])
            agent.commit()
            taken.append(store.look([Photograph("shop.t", "t"), Photograph("shop.t", "t", hashed=True)]))
    (whole, hashed), (whole_after, hashed_after) = taken
    assert isinstance(whole, Picture)
    assert isinstance(whole_after, Picture)
    assert isinstance(hashed, Picture)
    assert isinstance(hashed_after, Picture)
    assert hashed.hashes is not None
    assert hashed_after.hashes is not None
    keys = whole.rows.keys() | whole_after.rows.keys()
    changed = {key for key in keys if told(whole.rows.get(key, ())) != told(whole_after.rows.get(key, ()))}
    assert {key for key in keys if hashed.hashes.get(key) != hashed_after.hashes.get(key)} == changed
    assert hashed.hashes.keys() == whole.rows.keys()


def test_the_case_of_letters_does_not_matter_in_names_of_columns(database: Database) -> None:
    script = "CREATE TABLE t (Id INTEGER PRIMARY KEY, Status, Note); INSERT INTO t VALUES (1, 'paid', 'x');"
    found = picture(opened(database(script)), key=("ID",), ignore=frozenset({"NOTE"}))
    assert (found.key, found.columns, found.rows) == (("Id",), ("Id", "Status"), {(1,): (1, "paid")})
    heap = opened(database("CREATE TABLE h (a); INSERT INTO h VALUES (5);"))
    assert picture(heap, "h", key=("ROWID",)).rows == {(1,): (1, 5)}
    store = opened(database("CREATE TABLE k (Id INTEGER PRIMARY KEY)"))
    assert refusal(store, "k", ignore=frozenset({"ID"})) == "Id is part of the key and cannot be ignored"
