"""A small shop, and guards around its tools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.shop import Guards, Shop


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "shop.db")


@pytest.fixture
def guards(shop: Shop, tmp_path: Path) -> Iterator[Guards]:
    made = Guards(shop, tmp_path)
    yield made
    made.close()
