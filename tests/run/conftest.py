"""A small shop, and guards around its tools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from guardrail import Guard
from support.databases import Database
from support.shop import Guards, Shop


@pytest.fixture
def shop(database: Database) -> Shop:
    return Shop(database)


@pytest.fixture
def guards(shop: Shop, tmp_path: Path) -> Iterator[Guards]:
    made = Guards(shop, tmp_path)
    yield made
    made.close()


@pytest.fixture
def guard(guards: Guards) -> Guard:
    return guards()
