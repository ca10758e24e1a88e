"""Databases and HTTP servers to look at, and the two ways to look at PostgreSQL."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from guardrail.stores.opening import open_store
from guardrail.stores.store import Store
from support.apis import Api, Asking, Crm
from support.mariadb_servers import Server, running
from support.postgres_looks import See
from support.statements import SHOP

Database = Callable[[str], Path]
"""Makes a database file from a script of SQL."""


@pytest.fixture
def database(tmp_path: Path) -> Database:
    def make(script: str) -> Path:
        path = tmp_path / "shop.db"
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(script)
        return path

    return make


@pytest.fixture
def shop(database: Database) -> Path:
    """The database of the table of statements."""
    return database(SHOP)


@pytest.fixture
def store(shop: Path) -> Generator[Store]:
    opened = open_store("shop", shop, 5)
    yield opened
    opened.close()


@pytest.fixture
def mariadb_server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Server]:
    """A MariaDB server of the test's own, with an empty database."""
    with running(tmp_path_factory.getbasetemp()) as server:
        yield server


@pytest.fixture
def api() -> Generator[Api]:
    """A server that answers what a test tells it to."""
    made = Api()
    yield made
    made.close()


@pytest.fixture
def crm() -> Generator[Crm]:
    """A ticket system."""
    made = Crm()
    yield made
    made.close()


@pytest.fixture(params=["blocking", "awaiting"])
def ask(request: pytest.FixtureRequest) -> Asking:
    """Puts questions to a store in both of the ways in which a run may."""
    if request.param == "blocking":
        return lambda store, questions: store.look(questions)
    return lambda store, questions: asyncio.run(store.alook(questions))


@pytest.fixture(params=["look", "alook"])
def see(request: pytest.FixtureRequest) -> Generator[See]:
    """Looks at a store by blocking, and by awaiting."""
    if request.param == "look":
        yield lambda store, questions: store.look(questions)
    else:
        with asyncio.Runner() as runner:
            yield lambda store, questions: runner.run(store.alook(questions))


@pytest.fixture
def admin(postgres_url: str) -> Generator[psycopg.Connection[Any]]:
    """A connection to the empty schema, of a role that may do everything; it commits each statement."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def pg(postgres_url: str) -> Generator[Store]:
    """The empty schema as a store."""
    opened = open_store("shop", postgres_url, 30)
    yield opened
    opened.close()
