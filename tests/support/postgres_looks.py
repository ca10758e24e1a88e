"""What tests of PostgreSQL stores ask, and read from the answers."""

from __future__ import annotations

import secrets
from collections import UserDict
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from guardrail.pictures import Answer, Picture, Rows, Unanswered
from guardrail.query.proof import Query, prove
from guardrail.stores.opening import open_store
from guardrail.stores.store import Ask, Photograph, Question, Store

See: TypeAlias = Callable[[Store, Sequence[Any]], list[Answer]]
"""Looks at a store, by blocking or by awaiting."""


def ask(sql: str, **values: object) -> Question:
    """A query with its values."""
    return Ask(prove(sql, "postgres"), values)


def unproved(sql: str) -> Question:
    """A query that nobody has proved, such as whoever has got round the proof would ask."""
    return Ask(Query(sql, "postgres", sql, (), ("orders",)))


def shop(url: object, timeout: float = 30) -> Store:
    """A store called `shop`; a test is not to fail because its machine is busy."""
    return open_store("shop", url, timeout, "postgres")


def photo(table: str = "t", **asked: Any) -> Question:
    """A table to take a picture of."""
    return Photograph(f"shop.{table}", table, **asked)


def rows(answer: Answer) -> tuple[tuple[object, ...], ...]:
    """The rows that a query answered."""
    assert isinstance(answer, Rows), answer
    return answer.rows


def only(answer: Answer) -> object:
    """The one value that a query answered."""
    [[value]] = rows(answer)
    return value


def taken(answer: Answer) -> Picture:
    """The picture that was asked for."""
    assert isinstance(answer, Picture), answer
    return answer


def why(answer: Answer) -> str:
    """Why a question was not answered, without the words that say so."""
    assert isinstance(answer, Unanswered), answer
    return answer.why.partition(" could not be looked at: ")[2]


class Meddling(UserDict[str, object]):
    """Values of a picture's condition. They are bound when the look has begun already, and that lets somebody in."""

    def __init__(self, meddle: Callable[[], object], **values: object) -> None:
        super().__init__(values)
        self.meddle = meddle

    def __getitem__(self, name: str) -> object:
        self.meddle()
        return super().__getitem__(name)


@contextmanager
def role(admin: psycopg.Connection[Any], url: str, *rights: str) -> Generator[str]:
    """The URL for a new role with rights such as `SELECT ON orders`; it sees the schema that the URL sees."""
    name = f"r_{secrets.token_hex(6)}"
    execute(admin, f"CREATE ROLE {name} LOGIN")
    try:
        [[schema]] = admin.execute("SELECT current_schema()").fetchall()
        execute(admin, f'GRANT USAGE ON SCHEMA "{schema}" TO {name}')
        for right in rights:
            execute(admin, f"GRANT {right} TO {name}")
        yield make_url(url, user=name)
    finally:
        execute(admin, f"DROP OWNED BY {name}; DROP ROLE {name}")


def make_url(url: str, **changed: Any) -> str:
    """A URL for the same database with other settings of the connection."""
    settings = conninfo_to_dict(url, **changed).items()
    return f"postgresql://?{'&'.join(f'{name}={quote(str(value))}' for name, value in settings)}"


def can(connection: psycopg.Connection[Any], sql: str) -> bool:
    """Whether the server was built with what a statement needs; if so it is done."""
    try:
        execute(connection, sql)
    except psycopg.errors.FeatureNotSupported:
        return False
    return True


LOOSE = "CREATE COLLATION loose (PROVIDER = icu, LOCALE = 'und-u-ks-level2', DETERMINISTIC = false)"
"""A collation for which texts are equal that differ by the case of letters."""


def execute(connection: psycopg.Connection[Any], sql: str) -> psycopg.Cursor[Any]:
    """Execute a text that the test made, which may be several statements."""
    return connection.execute(sql.encode())
