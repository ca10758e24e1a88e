"""MariaDB's types: how a value of each is read, how it compares, that a change of it changes its row's hash."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from guardrail.pictures import ColumnKind, Picture
from guardrail.state.comparison import Comparison
from guardrail.stores.opening import open_store
from guardrail.stores.store import Store
from support.mysql_looks import ask, picture
from support.servers import execute_on_mariadb

Case = tuple[str, ColumnKind, list[tuple[str, object]]]

# The type of a column, the kind it has, and values as SQL writes them and as they are read. All of a type differ.
TYPES: list[Case] = [
    ("TINYINT", "integer", [("-128", -128), ("127", 127)]),
    ("TINYINT(1)", "boolean", [("TRUE", 1), ("FALSE", 0), ("2", 2)]),
    ("BOOLEAN", "boolean", [("TRUE", 1), ("0", 0)]),
    ("SMALLINT", "integer", [("-32768", -32768), ("7", 7)]),
    ("MEDIUMINT(8) UNSIGNED ZEROFILL", "integer", [("7", 7), ("70", 70)]),
    ("INT", "integer", [("-2147483648", -(2**31)), ("0", 0)]),
    ("BIGINT", "integer", [("-9223372036854775808", -(2**63)), ("9223372036854775807", 2**63 - 1)]),
    ("BIGINT UNSIGNED", "integer", [("18446744073709551615", 2**64 - 1), ("18446744073709551614", 2**64 - 2)]),
    ("YEAR", "integer", [("2024", 2024), ("0", 0)]),
    ("BIT(1)", "boolean", [("b'1'", 1), ("b'0'", 0)]),
    ("BIT(64)", "integer", [("b'1'", 1), (f"b'{'1' * 64}'", 2**64 - 1)]),
    (
        "DECIMAL(65, 30)",
        "decimal",
        [
            ("12345678901234567890123456789012345.123456789012345678901234567891", None),
            ("12345678901234567890123456789012345.123456789012345678901234567892", None),
        ],
    ),
    ("DECIMAL(10, 2)", "decimal", [("10.10", Decimal("10.10")), ("-0.01", Decimal("-0.01"))]),
    ("FLOAT", "float", [("0.1", 0.1), ("48.85341", 48.85341), ("16777216", 16777216.0), ("16777215", 16777215.0)]),
    ("FLOAT", "float", [("3.4e38", 3.4e38), ("-1.5e-40", -1.5e-40), ("0", 0.0)]),
    ("FLOAT(10, 2)", "float", [("1.1", 1.1), ("1.15", 1.15)]),
    ("DOUBLE", "float", [("0.1e0 + 0.2e0", 0.1 + 0.2), ("0.3", 0.3), ("1e300 / 3", 1e300 / 3)]),
    ("DOUBLE(10, 2)", "float", [("1.1", 1.1), ("1.15", 1.15)]),
    ("CHAR(5)", "text", [("'a'", "a"), ("'A'", "A"), ("'ä'", "ä"), ("''", "")]),
    ("VARCHAR(5) CHARACTER SET latin1", "text", [("'é'", "é"), ("'É'", "É"), ("'e'", "e"), ("'é '", "é ")]),
    ("VARCHAR(20) COLLATE utf8mb4_general_ci", "text", [("'😀'", "😀"), ("'a'", "a"), ("'a '", "a "), ("'A'", "A")]),
    ("VARCHAR(20)", "text", [("'NULL'", "NULL"), ("'-'", "-"), ("'2D'", "2D"), ("','", ",")]),
    ("TEXT CHARACTER SET utf16", "text", [("'😀'", "😀"), ("'a,b'", "a,b"), ("'\\\\ \\'\\0'", "\\ '\0")]),
    ("ENUM('a', 'B')", "text", [("'b'", "B"), ("'a'", "a")]),
    ("SET('x', 'y')", "text", [("'y,x'", "x,y"), ("'x'", "x"), ("''", "")]),
    ("BINARY(4)", "bytes", [("'A'", b"A\0\0\0"), ("'a'", b"a\0\0\0")]),
    ("VARBINARY(4)", "bytes", [("'A'", b"A"), ("'A '", b"A "), ("x'41ff00'", b"A\xff\0")]),
    ("BLOB", "bytes", [("x'00ff'", b"\0\xff"), ("''", b"")]),
    ("DATE", "date", [("'2024-02-29'", date(2024, 2, 29)), ("'9999-12-31'", date.max)]),
    ("DATETIME(6)", "instant", [("'2024-01-01 12:00:00.000001'", datetime(2024, 1, 1, 12, microsecond=1))]),
    ("DATETIME", "instant", [("'2024-01-01 12:00:00'", datetime(2024, 1, 1, 12))]),
    (
        "TIMESTAMP(3) NULL",
        "instant",
        [("'2024-01-01 12:00:00.5'", datetime(2024, 1, 1, 12, microsecond=500_000, tzinfo=UTC))],
    ),
    (
        "TIME",
        "time",
        [("'-838:59:59'", -timedelta(hours=838, minutes=59, seconds=59)), ("'23:00'", timedelta(hours=23))],
    ),
    ("TIME(6)", "time", [("'25:00:00.000001'", timedelta(hours=25, microseconds=1)), ("'25:00'", timedelta(hours=25))]),
    ("JSON", "json", [("'{\"a\": [1, 1.10, null]}'", '{"a": [1, 1.10, null]}'), ("'\"x\"'", '"x"')]),
    ("UUID", "uuid", [("'123e4567-e89b-12d3-a456-426655440000'", "123e4567-e89b-12d3-a456-426655440000")]),
    ("INET4", "text", [("'1.2.3.4'", "1.2.3.4"), ("'1.2.3.5'", "1.2.3.5")]),
    ("INET6", "text", [("'::1'", "::1"), ("'::2'", "::2")]),
    ("POINT", "text", [("POINT(1, 2.5)", "POINT(1 2.5)"), ("POINT(1, 2)", "POINT(1 2)")]),
    (
        "GEOMETRYCOLLECTION",
        "text",
        [("ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 2))')", "GEOMETRYCOLLECTION(POINT(1 2))")],
    ),
]


@pytest.fixture
def store(mariadb_url: str) -> Generator[Store]:
    opened = open_store("shop", mariadb_url, 30)
    yield opened
    opened.close()


def filled(url: str, type: str, literals: list[str]) -> None:
    """A table with a value a row, the first of them null."""
    values = ", ".join(f"({number}, {literal})" for number, literal in enumerate(["NULL", *literals]))
    execute_on_mariadb(url, f"CREATE TABLE t (id INT PRIMARY KEY, v {type})", f"INSERT INTO t VALUES {values}")


def second(found: Picture) -> list[Any]:
    return [row[1] for row in found.rows.values()]


@pytest.mark.parametrize(("type", "kind", "values"), TYPES, ids=lambda case: case if isinstance(case, str) else "")
def test_a_value_is_read_as_what_it_is(store: Store, mariadb_url: str, type: str, kind: str, values: Any) -> None:
    filled(mariadb_url, type, [literal for literal, _ in values])
    whole = picture(store)
    assert whole.kinds["v"] == kind
    none, *read = second(whole)
    assert none is None
    for (literal, wanted), found in zip(values, read, strict=True):
        wanted = Decimal(literal) if wanted is None else wanted
        assert (found, found.__class__) == (wanted, wanted.__class__)
        assert Comparison(whole.kinds["v"]).equals(wanted, found)


@pytest.mark.parametrize(("type", "kind", "values"), TYPES, ids=lambda case: case if isinstance(case, str) else "")
def test_a_change_of_a_value_changes_the_hash_of_its_row(
    store: Store, mariadb_url: str, type: str, kind: str, values: Any
) -> None:
    literals = ["NULL", *(literal for literal, _ in values)]
    rows = ", ".join(f"({number}, {literal})" for number, literal in enumerate(literals))
    execute_on_mariadb(mariadb_url, f"CREATE TABLE t (id INT PRIMARY KEY, v {type})", "INSERT INTO t VALUES (0, NULL)")
    hashes: list[bytes] = []
    for literal in literals:
        execute_on_mariadb(mariadb_url, f"UPDATE t SET v = {literal}")
        found = picture(store, hashed=True)
        assert found.hashes is not None
        hashes.extend(found.hashes.values())
    assert len({*hashes}) == len(literals), rows
    assert {len(one) for one in hashes} == {16}


@pytest.mark.parametrize(("type", "kind", "values"), TYPES, ids=lambda case: case if isinstance(case, str) else "")
def test_a_row_is_found_by_a_key_of_any_type(store: Store, mariadb_url: str, type: str, kind: str, values: Any) -> None:
    filled(mariadb_url, type, [literal for literal, _ in values])
    whole = picture(store, key=("v",))
    pinned = picture(store, key=("v",), hashed=True, pinned=tuple(whole.rows))
    assert pinned.rows == whole.rows
    assert pinned.hashes is not None
    assert pinned.hashes.keys() == whole.rows.keys()


@pytest.mark.parametrize(
    ("type", "value", "forms", "others"),
    [
        ("INT", "17", [17, "17", Decimal("17.0"), "1.7e1"], ["x", "", 17.5, None, b"17", 2**80, "NaN", True]),
        ("BOOLEAN", "1", [True, 1, "true", "1"], ["yes", False, 2]),
        ("DECIMAL(10, 2)", "0.10", [Decimal("0.1"), "0.10", 0.1], ["x", Decimal("0.11"), "inf"]),
        ("FLOAT", "0.1", [0.1, "0.1", Decimal("0.1")], [0.11, "x", "1e400"]),
        ("VARCHAR(20)", "'17'", ["17", 17], ["17 ", "17.0", "x", b"17"]),
        ("VARCHAR(20)", "'aé'", ["aé"], ["AÉ", "ae", "aé "]),
        ("BINARY(2)", "'ab'", [b"ab", "ab"], [b"AB", b"a", 17]),
        ("UUID", "'123e4567-e89b-12d3-a456-426655440000'", ["123E4567E89B12D3A456426655440000"], ["x"]),
        ("DATE", "'2024-01-01'", [date(2024, 1, 1), "2024-01-01", "20240101"], ["x", "2024-01-02", "2024-13-01"]),
        (
            "DATETIME",
            "'2024-01-01 12:00:00'",
            ["2024-01-01T12:00:00", datetime(2024, 1, 1, 12)],
            ["noon", "2024-01-01"],
        ),
        (
            "TIMESTAMP",
            "'2024-01-01 12:00:00'",
            [datetime(2024, 1, 1, 12, tzinfo=UTC), datetime.fromisoformat("2024-01-01T14:00:00+02:00")],
            [datetime(2024, 1, 1, 12, tzinfo=UTC) + timedelta(seconds=1)],
        ),
        ("TIME", "'-25:00:01'", [-timedelta(hours=25, seconds=1), "-25:00:01"], [timedelta(hours=25), "soon"]),
    ],
)
def test_a_key_may_be_written_in_another_form(
    store: Store, mariadb_url: str, type: str, value: str, forms: list[object], others: list[object]
) -> None:
    execute_on_mariadb(
        mariadb_url,
        f"CREATE TABLE t (v {type} PRIMARY KEY)",
        "SET time_zone = '+00:00'",
        f"INSERT INTO t VALUES ({value})",
    )
    for form in forms:
        assert len(picture(store, hashed=True, pinned=((form,),)).rows) == 1, form
    for other in others:
        assert not picture(store, hashed=True, pinned=((other,),)).rows, other


@pytest.mark.parametrize("type", ["DATE", "DATETIME", "TIMESTAMP(6)"])
def test_days_that_are_none_are_texts(store: Store, mariadb_url: str, type: str) -> None:
    execute_on_mariadb(
        mariadb_url,
        f"CREATE TABLE t (id INT PRIMARY KEY, v {type} NOT NULL)",
        "SET sql_mode = 'ALLOW_INVALID_DATES'",
        "INSERT INTO t VALUES (1, 0)",
        *([] if "STAMP" in type else ["INSERT INTO t VALUES (2, '2024-00-00'), (3, '2024-02-31')"]),
    )
    whole = picture(store)
    read = second(whole)
    assert [str(day)[:10] for day in read] == ["0000-00-00", "2024-00-00", "2024-02-31"][: len(read)]
    assert {day.__class__ for day in read} == {str}
    by_day = picture(store, key=("v",), hashed=True, pinned=tuple((day,) for day in read))
    assert [row[0] for row in by_day.rows.values()] == read
    execute_on_mariadb(mariadb_url, "UPDATE t SET v = '2024-01-01' WHERE id = 1")
    after = picture(store, hashed=True)
    assert after.hashes is not None
    assert by_day.hashes is not None
    assert after.hashes[1,] not in by_day.hashes.values()


def test_the_borders_between_columns_count(store: Store, mariadb_url: str) -> None:
    rows = ["'a', NULL, 'b'", "NULL, 'a', 'b'", "'a', 'b', NULL", "'a,b', NULL, NULL", "NULL, 'a,b', NULL"]
    rows += ["'NULL', NULL, NULL", "NULL, NULL, NULL", "'', '', ''", "',', '', ''", "'', ',', ''", "'-', NULL, '-'"]
    execute_on_mariadb(mariadb_url, "CREATE TABLE t (id INT PRIMARY KEY, a TEXT, b TEXT, c BLOB)")
    hashes: set[bytes] = set()
    for row in rows:
        execute_on_mariadb(mariadb_url, f"REPLACE INTO t VALUES (1, {row})")
        found = picture(store, hashed=True)
        assert found.hashes is not None
        hashes.update(found.hashes.values())
    assert len(hashes) == len(rows)


def test_truth_is_told_by_bits_too(store: Store, mariadb_url: str) -> None:
    filled(mariadb_url, "BIT", ["b'1'", "b'0'"])
    for number, truth in ((1, True), (2, False)):
        [answer] = store.look([ask("SELECT v FROM t WHERE id = :id", id=number)])
        assert getattr(answer, "is_true", None) is truth
