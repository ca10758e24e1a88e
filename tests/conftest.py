"""What tests of several rooms share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.databases import Database, Kind, opened
from support.servers import empty_database, empty_schema, mariadb, postgres

if TYPE_CHECKING:
    from support.receiver import Receiver

CHECKOUT = Path(__file__).parents[1]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """What receives by OTLP."""
    from support.receiver import Receiver  # environments of frameworks have no exporters

    made = Receiver()
    yield made
    made.close()


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of recorded runs: `GUARDRAIL_CORPUS`, else `../shared/corpus` beside the checkout.

    It is no part of the repository, so tests that read it skip where it is absent, but not under CI.
    """
    folder = Path(os.environ.get("GUARDRAIL_CORPUS") or CHECKOUT.parent / "shared" / "corpus")
    if folder.is_dir():
        return folder
    reason = f"no recorded runs at {folder}; set GUARDRAIL_CORPUS to their folder"
    if os.environ.get("GUARDRAIL_CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def postgres_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a PostgreSQL of the tests' own is made if need be, the same for all processes of one run."""
    shared = tmp_path_factory.getbasetemp()
    return (shared.parent if os.environ.get("PYTEST_XDIST_WORKER") else shared) / "postgres"


@pytest.fixture
def postgres_url(postgres_folder: Path) -> Iterator[str]:
    """The URL of an empty schema on a PostgreSQL server, for a role that may do everything."""
    with empty_schema(postgres(postgres_folder)) as url:
        yield url


@pytest.fixture
def mariadb_url() -> Iterator[str]:
    """The URL of an empty database on a MariaDB server, for a user who may do everything."""
    with empty_database(mariadb()) as url:
        yield url


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path, postgres_folder: Path) -> Iterator[Database]:
    """An empty database: a SQLite file, or what `on_every_database` says."""
    kind: Kind = getattr(request, "param", "sqlite")
    with opened(kind, tmp_path, postgres_folder) as made:
        yield made
