"""Values of PostgreSQL: read exactly, the same in every way in which a look may go, and hashed as they compare."""

from __future__ import annotations

import math
import uuid
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.types.json import set_json_loads
from psycopg.types.numeric import FloatLoader

from guardrail.pictures import ColumnKind, Key, Picture
from guardrail.state.comparison import Comparison
from guardrail.stores.store import Store
from support.postgres_looks import LOOSE, See, ask, can, execute, photo, rows, shop, taken
from support.servers import empty_postgres

Admin = psycopg.Connection[Any]

D = Decimal
TYPES = """
CREATE TYPE state AS ENUM ('open', 'paid');
CREATE TYPE place AS (street text, number int, price numeric);
CREATE DOMAIN state_domain AS state;
CREATE DOMAIN cents AS numeric(10, 2) CHECK (VALUE > 0);
CREATE DOMAIN fewer_cents AS cents CHECK (VALUE < 100);
CREATE DOMAIN texts AS text[];
CREATE DOMAIN more_texts AS texts;
CREATE DOMAIN a_place AS place;
CREATE DOMAIN counted AS int DEFAULT 1;
"""
_TIMES = ("date", "instant", "time")
VALUES: list[tuple[str, str, ColumnKind, object]] = [
    ("int2", "-32768", "integer", -(2**15)),
    ("int4", "7", "integer", 7),
    ("int8", "9223372036854775807", "integer", 2**63 - 1),
    ("oid", "4294967295", "integer", 2**32 - 1),
    ("numeric", "19.90", "decimal", D("19.90")),
    ("numeric(10,3)", "1.5", "decimal", D("1.500")),
    ("numeric(3,-2)", "12345", "decimal", D("12300")),
    (
        "numeric",
        "123456789012345678901234567890.123456789012345678901",
        "decimal",
        D("123456789012345678901234567890.123456789012345678901"),
    ),
    ("numeric", "1e-30", "decimal", D("1e-30")),
    ("numeric", "1e40", "decimal", D("1" + "0" * 40)),
    ("numeric", "Infinity", "decimal", D("Infinity")),
    ("numeric", "-Infinity", "decimal", D("-Infinity")),
    ("money", "-1234.50", "decimal", D("-1234.50")),
    ("cents", "0.10", "decimal", D("0.10")),
    ("fewer_cents", "9.9", "decimal", D("9.90")),
    ("float8", "0.1", "float", 0.1),
    ("float8", "1.7976931348623157e308", "float", 1.7976931348623157e308),
    ("float8", "5e-324", "float", 5e-324),
    ("float8", "-Infinity", "float", -math.inf),
    ("float8", "NaN", "float", math.nan),
    ("float8", "-0", "float", -0.0),
    ("float4", "0.1", "float", 0.1),
    ("numeric", "NaN", "decimal", D("NaN")),
    ("float4", "16777216", "float", 16777216.0),
    ("boolean", "true", "boolean", True),
    ("text", "ünï 😀 \t\n''\\ \u2028", "text", "ünï 😀 \t\n'\\ \u2028"),
    ("text", "", "text", ""),
    ("varchar(5)", "ab ", "text", "ab "),
    ("char(5)", "ab", "text", "ab"),
    ('"char"', "x", "text", "x"),
    ("name", "abc", "text", "abc"),
    ("state", "paid", "text", "paid"),
    ("state_domain", "open", "text", "open"),
    ("bytea", "\\x00ff41", "bytes", b"\0\xffA"),
    ("uuid", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "uuid", uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
    ("date", "2024-02-29", "date", date(2024, 2, 29)),
    ("date", "infinity", "date", "infinity"),
    ("date", "4000-01-01 BC", "date", "4000-01-01 BC"),
    ("date", "10000-01-01", "date", "10000-01-01"),
    ("time", "23:59:59.999999", "time", time(23, 59, 59, 999999)),
    ("time", "24:00", "time", "24:00:00"),
    ("timetz", "12:00+02", "time", time(12, tzinfo=timezone(timedelta(hours=2)))),
    ("timestamp", "2024-01-31 12:00:00.000001", "instant", datetime(2024, 1, 31, 12, 0, 0, 1)),
    ("timestamp", "-infinity", "instant", "-infinity"),
    ("timestamp", "0044-03-15 12:00 BC", "instant", "0044-03-15 12:00:00 BC"),
    ("timestamptz", "2024-07-01 12:00 Asia/Kathmandu", "instant", datetime(2024, 7, 1, 6, 15, tzinfo=UTC)),
    ("timestamptz", "1880-01-01 00:00 Europe/Paris", "instant", datetime(1879, 12, 31, 23, 50, 39, tzinfo=UTC)),
    ("timestamptz", "0001-01-01 00:00+00", "instant", datetime(1, 1, 1, tzinfo=UTC)),
    ("timestamptz", "9999-12-31 23:59:59.999999+00", "instant", datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)),
    ("timestamptz", "10000-01-01 00:00+00", "instant", "10000-01-01 00:00:00+00"),
    ("timestamptz", "infinity", "instant", "infinity"),
    ("interval", "1 mon 2 days 03:04:05.5", "text", "1 mon 2 days 03:04:05.5"),
    ("interval", "720:00", "text", "720:00:00"),
    ("json", '{"b": 1.50,  "b": "x"}', "json", '{"b": 1.50,  "b": "x"}'),
    ("jsonb", '{"b": 1.50, "a": [null, true]}', "json", '{"a": [null, true], "b": 1.50}'),
    ("jsonb", '"text"', "json", '"text"'),
    ("jsonb", "null", "json", "null"),
    ("int[]", "{1,NULL,3}", "json", "[1,null,3]"),
    ("numeric[]", "{1.50,NaN}", "json", '[1.50,"NaN"]'),
    ("text[]", '{"a\\"b","c,d",NULL,"","NULL","{}"}', "json", '["a\\"b","c,d",null,"","NULL","{}"]'),
    ("text[]", "{}", "json", "[]"),
    ("text[][]", "{{a,b},{c,d}}", "json", '[["a","b"],["c","d"]]'),
    ("texts", "{x}", "json", '["x"]'),
    ("more_texts", "{x}", "json", '["x"]'),
    ("state[]", "{paid,open}", "json", '["paid","open"]'),
    ("date[]", "{infinity,2024-02-29}", "json", '["infinity","2024-02-29"]'),
    ("jsonb[]", '{"{\\"a\\": 1}","\\"a\\""}', "json", '[{"a": 1},"a"]'),
    ("place", '("High St, 1",2,1.50)', "json", '{"street":"High St, 1","number":2,"price":1.50}'),
    ("a_place", "(x,,)", "json", '{"street":"x","number":null,"price":null}'),
    ("place[]", '{"(x,1,2.0)"}', "json", '[{"street":"x","number":1,"price":2.0}]'),
    ("inet", "10.1.2.3/8", "text", "10.1.2.3/8"),
    ("inet", "::1", "text", "::1/128"),
    ("cidr", "10.0.0.0/8", "text", "10.0.0.0/8"),
    ("macaddr", "08:00:2b:01:02:03", "text", "08:00:2b:01:02:03"),
    ("int4range", "[1,5]", "text", "[1,6)"),
    ("tstzrange", "[2024-01-01 00:00+00,)", "text", '["2024-01-01 00:00:00+00",)'),
    ("nummultirange", "{[1.0,2.0]}", "text", "{[1.0,2.0]}"),
    ("xml", "<a>b</a>", "text", "<a>b</a>"),
    ("bit(3)", "101", "text", "101"),
    ("varbit", "10", "text", "10"),
    ("point", "(1,2)", "text", "(1,2)"),
    ("tsvector", "a b", "text", "'a' 'b'"),
    ("int2vector", "1 2", "json", "[1,2]"),
    ("pg_lsn", "16/B374D848", "text", "16/B374D848"),
]


@pytest.fixture
def types(admin: Admin) -> Admin:
    execute(admin, TYPES)
    return admin


def everything(admin: Admin) -> None:
    """A table with a column for each value."""
    has_xml = can(admin, "SELECT '<a/>'::xml")
    spelled = ["text" if name == "xml" and not has_xml else name for name, *_ in VALUES]
    columns = ", ".join(f"c{n} {name}" for n, name in enumerate(spelled))
    execute(admin, f"CREATE TABLE t (id int PRIMARY KEY, {columns}); INSERT INTO t (id) VALUES (2)")
    values = ", ".join(f"$${written}$$" if "''" not in written else f"'{written}'" for _, written, *_ in VALUES)
    execute(admin, f"INSERT INTO t VALUES (1, {values})")


def same(one: object, other: object) -> bool:
    """Whether two values are the same and of one type."""
    return (type(one), repr(one)) == (type(other), repr(other)) or (isinstance(one, datetime) and one == other)


def test_every_value_is_read_exactly(pg: Store, see: See, types: Admin) -> None:
    everything(types)
    [picture] = see(pg, [photo()])
    found = taken(picture)
    assert {f"c{n}": kind for n, (_, _, kind, _) in enumerate(VALUES)} | {"id": "integer"} == found.kinds
    wrong = [(*row, got) for row, got in zip(VALUES, found.rows[(1,)][1:], strict=True) if not same(got, row[3])]
    assert wrong == []
    assert set(found.rows[(2,)][1:]) == {None}


def test_values_do_not_depend_on_how_the_look_went(pg: Store, see: See, types: Admin) -> None:
    everything(types)
    unknown_to_python = [n for n, (_, _, kind, value) in enumerate(VALUES) if kind in _TIMES and isinstance(value, str)]
    execute(types, "".join(f"ALTER TABLE t DROP COLUMN c{n};" for n in unknown_to_python))
    pinned = photo(hashed=True, pinned=((1,), (2,)))
    at_once = [taken(answer) for answer in see(pg, [photo(), pinned])]
    one_by_one = [taken(answer) for answer in see(pg, [photo(), pinned, ask("SELECT 1 / 0")])[:2]]
    rows_of = [sorted(str(row) for row in picture.rows.values()) for picture in (*at_once, *one_by_one)]
    assert rows_of == [rows_of[0]] * 4
    assert at_once[1].hashes == one_by_one[1].hashes


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT 1.50", D("1.50")),
        ("SELECT 'NaN'::numeric", D("NaN")),
        ("SELECT 'NaN'::float8", math.nan),
        ("SELECT '-0'::float8", -0.0),
        ("SELECT 'infinity'::date", "infinity"),
        ("SELECT '24:00'::time", "24:00:00"),
        ("SELECT ARRAY[1.50, NULL]", [D("1.50"), None]),
        ("SELECT ARRAY['infinity', '2024-02-29']::date[]", ["infinity", date(2024, 2, 29)]),
        ("SELECT '\"a\"'::jsonb", '"a"'),
        ("SELECT '{\"a\": 1.50}'::json", '{"a": 1.50}'),
        ("SELECT '1 mon'::interval", "1 mon"),
        ("SELECT '10.0.0.1'::inet", "10.0.0.1"),
        ("SELECT '[1,2)'::int4range", "[1,2)"),
        ("SELECT 'x'::char(3)", "x  "),
        ("SELECT TRUE", True),
        ("SELECT NULL", None),
    ],
)
def test_an_answers_values_are_read_exactly(pg: Store, see: See, sql: str, value: object) -> None:
    answers = see(pg, [ask(f"{sql} AS value")])
    assert same(rows(answers[0])[0][0], value)
    doubtful, _ = see(pg, [ask(f"{sql} AS value"), ask("SELECT 1 / 0")])
    assert same(rows(doubtful)[0][0], value)


def test_what_an_application_has_registered_with_psycopg_does_not_change_values(
    postgres_url: str, see: See, admin: Admin
) -> None:
    execute(
        admin,
        """CREATE TABLE t (id int PRIMARY KEY, n numeric, doc jsonb); INSERT INTO t VALUES (1, 0.1, '{"a": 1}')""",
    )
    before = {
        name: psycopg.adapters.get_loader(psycopg.adapters.types[name].oid, psycopg.pq.Format.TEXT)
        for name in ("numeric", "jsonb")
    }
    psycopg.adapters.register_loader("numeric", FloatLoader)
    set_json_loads(lambda text: "loaded")
    try:
        with closing(shop(postgres_url)) as store:
            for questions in (
                [photo(), ask("SELECT n, doc FROM t")],
                [photo(), ask("SELECT n, doc FROM t"), ask("SELECT 1/0")],
            ):
                picture, answer, *_ = see(store, questions)
                assert taken(picture).rows[(1,)][1:] == rows(answer)[0] == (D("0.1"), '{"a": 1}')
    finally:
        for name, loader in before.items():
            assert loader is not None
            psycopg.adapters.register_loader(name, loader)


def test_generated_columns_are_named(pg: Store, see: See, types: Admin) -> None:
    execute(
        types,
        """CREATE TABLE t (
        id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n serial, d int DEFAULT 5, twice int GENERATED ALWAYS AS (d * 2) STORED,
        c counted, plain int, gone int DEFAULT 1); ALTER TABLE t DROP COLUMN gone; INSERT INTO t (plain) VALUES (3)""",
    )
    [picture] = see(pg, [photo()])
    assert taken(picture).generated == {"id", "n", "d", "twice", "c"}
    assert taken(picture).rows == {(1,): (1, 1, 5, 10, 1, 3)}


# Hashes and whole rows tell the same changes.

COLUMNS: dict[str, tuple[str, ...]] = {
    "int4": ("1", "2"),
    "numeric": ("1.0", "1.00", "1", "1.5", "NaN"),  # to a hash, infinity is no number either
    "float8": ("0", "-0", "1", "1.0000000000000002", "NaN", "Infinity"),
    "float4": ("0.1", "0.10000001", "NaN"),
    "boolean": ("true", "false"),
    "text": ("a", "A", "a ", "", "ä", "a\u0308"),
    'text COLLATE "loose"': ("a", "A", "ä", "a\u0308"),
    "varchar(9)": ("a", "a "),
    "char(3)": ("a", "a ", "b"),
    "citext": ("a", "A", "b"),
    "state": ("open", "paid"),
    "bytea": ("\\x00", "\\x0000", ""),
    "uuid": (
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
        "00000000-0000-0000-0000-000000000000",
    ),
    "date": ("2024-01-01", "infinity", "0044-03-15 BC"),
    "time": ("12:00", "24:00", "00:00"),
    "timetz": ("12:00+00", "13:00+01", "12:00+01"),
    "timestamp": ("2024-01-01", "2024-01-01 00:00:00.000001", "infinity"),
    "timestamptz": ("2024-10-27 00:30+00", "2024-10-27 01:30+00", "2024-10-27 02:30+02", "infinity"),
    "interval": ("1 day", "24:00", "1 mon", "30 days"),
    "money": ("1.50", "1.5", "2"),
    "jsonb": (
        '{"a": 1.0}',
        '{"a": 1.00}',
        '{"a": 1}',
        '{"a": "1"}',
        '{"a": true}',
        '"a"',
        "[]",
        "{}",
        "null",
        "0",
        "-0",
        '{"a": {"b": 1}, "c": 2}',
        '{"a": {"b": 1, "c": 2}}',
        "[[1], 2]",
        "[[1, 2]]",
        "[[], [], 1]",
        "[1]",
    ),
    "numeric[]": ("{1.0}", "{1.00}", "{NULL}", "{}", "{{1}}", "{{{1}}}", "{{1,2}}", "{{1},{2}}"),
    "text[]": ("{a}", "{A}", '{"a "}', "{a,NULL}", "{a,a}"),
    "place": ("(a,1,1.0)", "(a,1,1.00)", "(A,1,1)", "(,,)"),
    "inet": ("10.0.0.1", "10.0.0.1/32", "10.0.0.1/8"),
    "int4range": ("[1,3)", "[1,2]", "empty"),
    "xml": ("<a/>", "<a></a>"),
    "bit(3)": ("101", "100"),
    "point": ("(1,2)", "(2,1)", "(0,-0)"),
}
NAMES = [f"c{n}" for n in range(len(COLUMNS))]
WRITTEN = [(None, *written) for written in COLUMNS.values()]
Row = tuple[str | None, ...]
NOTHING: Row = (None,) * len(COLUMNS)
row_of_anything = st.tuples(*map(st.sampled_from, WRITTEN))


@dataclass(frozen=True)
class Anything:
    """A database with a table of all kinds of columns, as a store and as its owner sees it."""

    store: Store
    admin: Admin


@pytest.fixture
def anything(postgres_url: str) -> Generator[Anything]:
    with (
        empty_postgres(postgres_url) as url,
        psycopg.connect(url, autocommit=True) as admin,
        closing(shop(url)) as store,
    ):
        execute(admin, TYPES)
        available = {name for (name,) in admin.execute("SELECT name FROM pg_available_extensions")}
        execute(admin, "CREATE EXTENSION citext" if "citext" in available else "CREATE DOMAIN citext AS text")
        if not can(admin, LOOSE):
            execute(admin, 'CREATE COLLATION loose FROM "C"')
        has_xml = can(admin, "SELECT '<a/>'::xml")
        spelled = ["text" if name == "xml" and not has_xml else name for name in COLUMNS]
        columns = ", ".join(f"{name} {type_}" for name, type_ in zip(NAMES, spelled, strict=True))
        execute(admin, f"CREATE TABLE t (id int PRIMARY KEY, {columns})")
        yield Anything(store, admin)


def assert_told_alike(anything: Anything, changes: Sequence[tuple[Row, Row]]) -> None:
    """That hashes differ for just those rows that a contract would find changed."""
    pictures: list[tuple[Picture, Picture]] = []
    for rows_of_now in zip(*changes, strict=True):
        with anything.admin.transaction(), anything.admin.cursor() as cursor:
            cursor.execute("DELETE FROM t")
            with cursor.copy(f"COPY t (id, {', '.join(NAMES)}) FROM STDIN".encode()) as copy:
                for number, row in enumerate(rows_of_now):
                    copy.write_row((number, *row))
        whole, hashed = anything.store.look([photo(), photo(hashed=True)])
        pictures.append((taken(whole), taken(hashed)))
    (before, hashes_before), (after, hashes_after) = pictures
    assert hashes_before.hashes is not None
    assert hashes_after.hashes is not None
    assert hashes_before.hashes.keys() == hashes_after.hashes.keys() == before.rows.keys()
    for key, one in hashes_before.hashes.items():
        differing = differences(before, after, key)
        assert (one != hashes_after.hashes[key]) == bool(differing), (differing, changes[int(str(key[0]))])


def differences(before: Picture, after: Picture, key: Key) -> list[str]:
    """The columns in which a row differs, as a contract compares them."""
    pairs = zip(before.columns, before.rows[key], after.rows[key], strict=True)
    return [name for name, old, new in pairs if not Comparison(before.kinds[name], precise=True).same(old, new)]


def test_every_change_of_a_value_is_told_by_the_hash(anything: Anything) -> None:
    pairs = [(place, old, new) for place, written in enumerate(WRITTEN) for old in written for new in written]
    rows_with = [
        [(*NOTHING[:place], value, *NOTHING[place + 1 :]) for value in (old, new)] for place, old, new in pairs
    ]
    assert_told_alike(anything, [(old, new) for old, new in rows_with])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(st.lists(st.tuples(row_of_anything, row_of_anything, st.sets(st.integers(0, len(COLUMNS) - 1))), min_size=1))
def test_several_changes_are_told_by_the_hash(anything: Anything, drawn: list[tuple[Row, Row, set[int]]]) -> None:
    changes = [(old, tuple(new[n] if n in to else old[n] for n in range(len(old)))) for old, new, to in drawn]
    assert_told_alike(anything, changes)


@pytest.mark.parametrize("type", ["json", "json[]", "pair", "pair[]"])
@pytest.mark.parametrize(
    "document",
    [
        *(r'"\u0000"', r'["\\", "\u0000"]', r'"\ud800"', r'"\udc00 \ud83d"', r'"\\ud83d\ude00"', r'"\ud83d\\\ude00"'),
        *(
            "1e131072",
            "[1, -1.5E-16384]",
            '{"a":1e+999999}',
            "1" * 131_073,
            "0." + "1" * 16_384,
            f"[{'1' * 9_000}e-9999]",
        ),
    ],
    ids=lambda text: text[:20],
)
def test_a_document_that_jsonb_refuses_is_told_by_its_text(
    pg: Store, see: See, admin: Admin, type: str, document: str
) -> None:
    admin.execute(f"CREATE TYPE pair AS (n int, doc json); CREATE TABLE t (id int PRIMARY KEY, doc {type})".encode())
    insides = {"json[]": "ARRAY[{}]::json[]", "pair": "ROW(1, {})::pair", "pair[]": "ARRAY[ROW(1, {})]::pair[]"}
    inside = insides.get(type, "{}::json").replace("{}", "$${}$$")

    def hashed(*documents: str) -> list[bytes]:
        for number, text in enumerate(documents):
            admin.execute(
                f"INSERT INTO t VALUES ({number}, {inside.replace('{}', text)})"
                f" ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc".encode()
            )
        found, *_ = see(pg, [photo(hashed=True)])
        hashes = taken(found).hashes
        assert hashes is not None
        return list(dict(sorted(hashes.items())).values())

    before = hashed(document, document, '{"a":1,"b":[]}', '{"a":1,"b":[]}')
    after = hashed(document, f"[{document}]", '{"b":[], "a":1.0}', '{"a":1,"b":{}}')
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, False, True, False]


@pytest.mark.parametrize(
    "document", ['"\\ud83d\\ude00"', '{"id":"3e12345"}', '"\\\\u0000"', "1e9999", '"' + "x" * 9_000 + '"', "1e-9999"]
)
def test_a_document_that_jsonb_takes_is_told_by_its_structure(pg: Store, see: See, admin: Admin, document: str) -> None:
    admin.execute("CREATE TABLE t (id int PRIMARY KEY, doc json)")
    admin.execute(f"INSERT INTO t VALUES (1, $${document}$$)".encode())
    before, *_ = see(pg, [photo(hashed=True)])
    admin.execute(f"UPDATE t SET doc = $$ {document} $$".encode())
    after, *_ = see(pg, [photo(hashed=True)])
    assert taken(before).hashes == taken(after).hashes
