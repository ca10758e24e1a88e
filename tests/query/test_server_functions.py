"""The lists of functions against the servers' own catalogs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from guardrail.query.proof import Dialect
from guardrail.query.results import NAMED_BY_FUNCTIONS
from guardrail.query.vocabulary import FUNCTIONS, VALUES
from support.shops import Shop

ShopOn: TypeAlias = Callable[[Dialect], Shop]

HARMLESS: Final = {
    "clock_timestamp": "reads the clock",
    "timeofday": "reads the clock",
    "random": "moves on the session's random numbers",
    "gen_random_uuid": "makes a value of the machine's random numbers",
}
"""Functions of PostgreSQL that are volatile, so that each call may answer something else, and why they are allowed."""

NO_FUNCTIONS: Final = {
    *("all", "array", "cast", "coalesce", "greatest", "grouping", "least", "nullif", "row", "some", "trim"),  # syntax
    *("any_value", "regexp_count", "regexp_instr", "regexp_like", "regexp_substr", "unistr"),  # of later versions
    *("date_bin", "string_to_table", "bit_xor", "trim_array"),
    *("similarity", "uuid_generate_v4"),  # of the extensions pg_trgm and uuid-ossp
}
"""What an older PostgreSQL need not have as a function."""

NO_RELATIONS: Final = ["regclass", "regproc", "regprocedure", "regoper", "refcursor", "internal", "cstring"]
"""Types of arguments that name a table, a function or a cursor, or that are the server's own."""

OF_MYSQL: Final = {"any_value", "bin_to_uuid", "grouping", "regexp_like", "uuid_to_bin"}
"""Functions that MySQL has and MariaDB has not."""

_BUILT_IN: Final = "pronamespace = 'pg_catalog'::regnamespace AND proname = ANY(:names)"


def asked(shop: Shop, text: str, **values: object) -> set[str]:
    return {str(row[0]) for row in shop.answer_to(text, values)}


def test_postgres_calls_no_listed_function_volatile_but_the_harmless(shop_on: ShopOn) -> None:
    volatile = asked(
        shop_on("postgres"),
        f"SELECT proname FROM pg_proc WHERE provolatile = 'v' AND {_BUILT_IN}",
        names=sorted(FUNCTIONS["postgres"]),
    )
    assert volatile == HARMLESS.keys()


def test_no_listed_function_of_postgres_takes_the_name_of_a_relation(shop_on: ShopOn) -> None:
    found = asked(
        shop_on("postgres"),
        "SELECT oid::regprocedure FROM pg_proc, unnest(proargtypes) AS argument "
        f"WHERE format_type(argument, NULL) = ANY(:types) AND {_BUILT_IN}",
        types=NO_RELATIONS,
        names=sorted(FUNCTIONS["postgres"]),
    )
    assert found == set()


def test_every_listed_function_of_postgres_is_its_own_or_is_named(shop_on: ShopOn) -> None:
    listed = FUNCTIONS["postgres"]
    built_in = asked(shop_on("postgres"), f"SELECT proname FROM pg_proc WHERE {_BUILT_IN}", names=sorted(listed))
    assert listed - built_in <= NO_FUNCTIONS


def test_nothing_that_postgres_runs_without_a_name_is_volatile(shop_on: ShopOn) -> None:
    """Operators, casts, what reads a text as a type, and what `t.name` can call with a row."""
    found = asked(
        shop_on("postgres"),
        """
        SELECT p.oid::regprocedure FROM pg_proc AS p
        WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.provolatile = 'v' AND (
            p.oid IN (SELECT oprcode FROM pg_operator) OR p.oid IN (SELECT castfunc FROM pg_cast)
            OR p.oid IN (SELECT typinput FROM pg_type) OR p.oid IN (SELECT typmodin FROM pg_type)
            OR p.pronargs - p.pronargdefaults <= 1 AND format_type(p.proargtypes[0], NULL) = ANY(:any)
        )
        """,
        any=["record", '"any"', "anyelement", "anynonarray", "anycompatible", "anycompatiblenonarray"],
    )
    assert found == set()


def test_the_names_of_results_columns_are_no_functions_of_postgres(shop_on: ShopOn) -> None:
    names = sorted(NAMED_BY_FUNCTIONS)
    assert asked(shop_on("postgres"), f"SELECT proname FROM pg_proc WHERE {_BUILT_IN}", names=names) == set()


def test_every_listed_function_of_mysql_is_mariadbs_own_or_is_named(shop_on: ShopOn) -> None:
    own = asked(
        shop_on("mysql"),
        "SELECT LOWER(function) FROM information_schema.sql_functions "
        "UNION SELECT LOWER(word) FROM information_schema.keywords",
    )
    assert FUNCTIONS["mysql"] - own == OF_MYSQL


def test_words_that_a_server_takes_for_values_are_reserved_there(shop_on: ShopOn) -> None:
    """So no column can have such a name without quotes, and none is refused in vain."""
    reserved = asked(shop_on("postgres"), "SELECT word FROM pg_get_keywords() WHERE catcode = 'R'")
    assert VALUES["postgres"] - {"system_user"} <= reserved  # that one since version 16
