"""The shop on real servers, opened once for all tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from guardrail.query.proof import Dialect
from support.servers import mariadb, postgres
from support.shops import Shop, maria_shop, postgres_shop


@pytest.fixture(scope="session")
def shop_on(postgres_folder: Path) -> Iterator[Callable[[Dialect], Shop]]:
    """The shop on the server of a dialect; it is opened when it is first asked for."""
    opened: dict[Dialect, Shop] = {}
    with ExitStack() as stack:

        def shop(dialect: Dialect) -> Shop:
            if dialect not in opened:
                found = postgres_shop(postgres(postgres_folder)) if dialect == "postgres" else maria_shop(mariadb())
                opened[dialect] = stack.enter_context(found)
            return opened[dialect]

        yield shop
