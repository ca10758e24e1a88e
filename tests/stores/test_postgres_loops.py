"""Looks beside other work of an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any

import psycopg
import pytest

from guardrail.pictures import Answer
from guardrail.stores.store import Question, Store
from support.postgres_looks import photo, taken

BIG = """
CREATE TABLE t AS
SELECT n AS id, n * 2 AS a, n::numeric / 7 AS b, 'text ' || n AS c, now() + n * interval '1 s' AS d, n % 2 = 0 AS e, md5(n::text) AS f,
       jsonb_build_object('a', n) AS g, current_date + n % 100 AS h, n::float8 / 3 AS i
FROM generate_series(1, 10000) AS s (n);
ALTER TABLE t ADD PRIMARY KEY (id);
"""


async def beside(work: Awaitable[list[Answer]]) -> tuple[list[Answer], list[float]]:
    """What some work comes to, and after how many seconds each the loop got round to something else meanwhile."""
    gaps: list[float] = []

    async def tick() -> None:
        last = perf_counter()
        while True:
            await asyncio.sleep(0)
            gaps.append(perf_counter() - last)
            last = perf_counter()

    ticking = asyncio.ensure_future(tick())
    await asyncio.sleep(0)
    try:
        return await work, gaps
    finally:
        ticking.cancel()


@pytest.mark.parametrize("asked", [photo(), photo(hashed=False), photo(hashed=True)], ids=["any", "whole", "hashed"])
async def test_a_picture_of_ten_thousand_rows_leaves_the_loop_to_others(
    admin: psycopg.Connection[Any], pg: Store, asked: Question, record_property: Callable[[str, object], None]
) -> None:
    admin.execute(BIG)
    await pg.alook([asked])
    [answer], gaps = await beside(pg.alook([asked]))
    record_property("longest", f"{max(gaps) * 1000:.1f} ms of {sum(gaps) * 1000:.0f} ms without a turn")
    assert taken(answer).size == 10_000
    assert len(gaps) > 20, "it got its turn between portions"
