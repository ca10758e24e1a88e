"""Benchmarks of pictures by hash of tables with JSON that is kept as text, on every database that is there."""

from __future__ import annotations

import json
import statistics
import time
from contextlib import closing
from functools import partial
from pathlib import Path

from benchmarks.measuring import say
from guardrail.pictures import Picture
from guardrail.stores.opening import open_store
from guardrail.stores.store import Photograph
from support.databases import KINDS, Database, Kind, opened

_ROWS = 100_000
_ROUNDS = 5
_COLUMNS: dict[str, dict[Kind, str]] = {
    "text": {"sqlite": "text", "postgres": "text", "mariadb": "longtext"},
    "json": {"sqlite": "json", "postgres": "json", "mariadb": "json"},
    "jsonb": {"postgres": "jsonb"},
}
"""Types of the column that holds the documents: as a mere text, of which a hash is the least that there can be, and as
JSON."""


def json_pictures(folder: Path) -> None:
    """Pictures of 100,000 documents of 265 bytes: CPU time of this process, and wall time, in which servers work."""
    for kind in KINDS:
        with opened(kind, folder, folder) as database:
            for writing in ("plain", "escaped"):
                for column, spelled in _COLUMNS.items():
                    if kind in spelled:
                        _fill(database, spelled[kind], _documents(writing))
                        ms = _measured(database)
                        say("picture, hashed", database=kind, column=column, writing=writing, **ms)


def _documents(writing: str) -> list[str]:
    """Documents as an application keeps them; those that are escaped hold letters and line ends."""
    odd = writing == "escaped"
    documents = [
        {
            "order": number,
            "customer": {"name": f"Customer {number}", "email": f"c{number}@example.com", "vip": number % 3 == 0},
            "lines": [
                {"sku": f"S{number % 97}", "n": number % 5, "price": number % 1000 / 100},
                {"sku": "B-1", "n": 2, "price": 5.25},
            ],
            "tags": ["a", "b", "new"],
            "note": "très\npressé" if odd else "text of ordinary length",
            "paid": None,
        }
        for number in range(_ROWS)
    ]
    return list(map(json.dumps, documents))


def _fill(database: Database, spelled: str, documents: list[str]) -> None:
    database.execute("drop table if exists items")
    database.execute(f"create table items (id integer primary key, state varchar(20), document {spelled})")
    row = f"(?, 'open', ?::{spelled})" if database.kind == "postgres" else "(?, 'open', ?)"
    for start in range(0, _ROWS, 1_000):
        some = documents[start : start + 1_000]
        values = [value for number, text in enumerate(some, start) for value in (number, text)]
        database.execute(f"insert into items values {', '.join([row] * len(some))}", *values)


def _measured(database: Database) -> dict[str, float]:
    """Medians in milliseconds."""
    with closing(open_store("shop", database.url, 600)) as store:
        look = partial(store.look, [Photograph("shop.items", "items", hashed=True)])
        look()
        times: list[tuple[float, float]] = []
        for _ in range(_ROUNDS):
            wall, cpu = time.perf_counter(), time.process_time()
            [found] = look()
            times.append((time.process_time() - cpu, time.perf_counter() - wall))
            assert isinstance(found, Picture), found
            assert found.size == _ROWS
    cpus, walls = zip(*times, strict=True)
    return {"cpu_ms": statistics.median(cpus) * 1e3, "wall_ms": statistics.median(walls) * 1e3}
