"""Benchmarks of stores on PostgreSQL; they need the server of the tests. Times are wall time."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg
from psycopg import RawCursor

from benchmarks.measuring import beside, say, wall
from guardrail import Configuration, Guard
from guardrail.pictures import Picture
from guardrail.query.proof import prove, prove_condition
from guardrail.stores.opening import open_store
from guardrail.stores.store import Ask, Photograph, Store
from support.servers import empty_schema, postgres

_CHECK = "SELECT status = 'paid' FROM orders WHERE id = $1"
_COLUMNS = "id, customer, amount, at, kind, paid, note, token"
_HASHED = f"SELECT id, hash_record_extended(ROW({_COLUMNS}), 0) FROM orders"
_BIG = f"""
    CREATE TABLE orders ({_COLUMNS.split(", ")[0]} bigint PRIMARY KEY, customer text, amount numeric(12, 2),
        at timestamptz DEFAULT now(), kind int, paid boolean, note text, token uuid DEFAULT gen_random_uuid());
    INSERT INTO orders (id, customer, amount, kind, paid, note)
        SELECT i, 'customer ' || i, i * 1.01, i % 100, i % 2 = 0, repeat('x', 60) FROM generate_series(1, 1000000) i;
    CREATE INDEX ON orders (kind)
"""


@contextmanager
def _schema(folder: Path, script: str) -> Generator[tuple[Store, psycopg.Connection[Any]]]:
    """A store in a schema of its own, and a connection to it beside the store's."""
    with empty_schema(postgres(folder)) as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute(script.encode())
        store = open_store("shop", url, 60)
        try:
            yield store, connection
        finally:
            store.close()


def checks(folder: Path) -> None:
    """So many checks in one look, beside the same statements by hand in psycopg's pipeline."""
    query = prove("select status = 'paid' from orders where id = :id", "postgres")
    script = "CREATE TABLE orders (id int PRIMARY KEY, status text); INSERT INTO orders SELECT i, 'paid' FROM generate_series(1, 1000) i"
    with _schema(folder, script) as (store, connection):
        for count in (1, 10, 100):
            asked = [Ask(query, {"id": number + 1}) for number in range(count)]
            us, by_hand, ratio = beside(partial(store.look, asked), partial(_by_hand, connection, count), 20, wall)
            say("checks on PostgreSQL, wall", checks=count, us=us, by_hand_us=by_hand, ratio=ratio)


def _by_hand(connection: psycopg.Connection[Any], count: int) -> list[list[Any]]:
    with connection.pipeline():
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute("SET LOCAL statement_timeout = '5s'")
        cursors = [RawCursor(connection).execute(_CHECK, (number + 1,)) for number in range(count)]
        connection.execute("COMMIT")
    return [cursor.fetchall() for cursor in cursors]


def server_pictures(folder: Path) -> None:
    """Pictures of a million rows by hash, and of a hundredth of them by index, beside the bare queries."""
    one_percent = prove_condition("kind = 7", "postgres")
    cases: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("hashed, 1e6 rows", _HASHED, {"hashed": True}),
        ("hashed, found to be too many, 1e6 rows", _HASHED, {}),
        ("hashed, 1 % by index", f"{_HASHED} WHERE kind = 7", {"where": one_percent, "hashed": True}),
        ("whole, 1 % by index", f"SELECT {_COLUMNS} FROM orders WHERE kind = 7", {"where": one_percent}),
    )
    with _schema(folder, _BIG) as (store, connection):
        connection.execute("VACUUM ANALYZE orders")
        for case, bare, asked in cases:
            work = partial(_picture, store, Photograph("shop.orders", "orders", **asked))
            times, rounds = (1, 7) if "1e6" in case else (5, 15)
            us, plain, ratio = beside(work, partial(_fetched, connection, bare), times, wall, rounds)
            say("picture on PostgreSQL, wall", case=case, ms=us / 1000, bare_ms=plain / 1000, ratio=ratio)


def _picture(store: Store, photograph: Photograph) -> Picture:
    [picture] = store.look([photograph])
    assert isinstance(picture, Picture), picture
    return picture


def _fetched(connection: psycopg.Connection[Any], query: str) -> list[Any]:
    return connection.execute(query.encode()).fetchall()


def runs_at_once(folder: Path) -> None:
    """Fifty asynchronous runs at once: how long they hold up the event loop, beside the same statements by hand.

    A hold is by how much the loop came late, whatever kept it; of the steps that the loop takes, the longest is named,
    without what Python's garbage collection took of it.
    """
    script = """
        CREATE TABLE orders (id int PRIMARY KEY, status text, amount numeric(10, 2), at timestamptz DEFAULT now());
        CREATE TABLE lines (id int PRIMARY KEY, what text, price numeric);
        INSERT INTO orders SELECT i, 'open', i * 1.1 FROM generate_series(1, 1000) i;
        INSERT INTO lines SELECT i, 'thing ' || i, i FROM generate_series(1, 1000) i
    """
    with empty_schema(postgres(folder)) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(script.encode())
        for round_ in range(5):
            by_hand = asyncio.run(_held_up(lambda: _fifty_by_hand(url)))
            ours = asyncio.run(_fifty(url, round_))
            for who, held in (("guarded", ours), ("by hand", by_hand)):
                say("50 asynchronous runs at once on PostgreSQL", who=who, **asdict(held))


@dataclass(frozen=True)
class Held:
    """What held up a loop, in milliseconds."""

    longest_hold_ms: float
    longest_step_ms: float
    longest_collection_ms: float


async def _held_up(work: Callable[[], Awaitable[object]]) -> Held:
    """What held up the running loop while some work went on in it."""
    late, steps, collections = [0.0], [0.0], [0.0]
    run, began = asyncio.Handle._run, [0.0]

    async def tick() -> None:
        while True:
            due = time.perf_counter() + 0.001
            await asyncio.sleep(0.001)
            late.append(time.perf_counter() - due)

    def step(handle: asyncio.Handle) -> None:
        started, collected = time.perf_counter(), sum(collections)
        run(handle)
        steps.append(time.perf_counter() - started - (sum(collections) - collected))

    def collect(phase: str, _: object) -> None:
        if phase == "start":
            began[0] = time.perf_counter()
        else:
            collections.append(time.perf_counter() - began[0])

    ticking = asyncio.create_task(tick())
    gc.callbacks.append(collect)
    try:
        with patch.object(asyncio.Handle, "_run", step):
            await work()
    finally:
        gc.callbacks.remove(collect)
        ticking.cancel()
    return Held(*(max(found) * 1000 for found in (late, steps, collections)))


async def _fifty_by_hand(url: str) -> None:
    """What the guarded runs ask, as one would write it with psycopg: two looks each, on ten connections."""
    free: list[psycopg.AsyncConnection[Any]] = []
    gate = asyncio.Semaphore(10)

    async def look(id: int) -> list[Any]:
        async with gate:
            connection = free.pop() if free else await psycopg.AsyncConnection.connect(url, autocommit=True)
            async with connection.pipeline():
                await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                orders = await connection.execute("SELECT * FROM orders WHERE id = %s", (id,))
                lines = await connection.execute("SELECT * FROM lines")
                await connection.execute("ROLLBACK")
            found = await orders.fetchall() + await lines.fetchall()
            free.append(connection)
        return found

    async def run(id: int) -> None:
        before = await look(id)
        assert await look(id) == before

    await asyncio.gather(*map(run, range(2, 52)))
    for connection in free:
        await connection.close()


async def _fifty(url: str, round_: int) -> Held:
    configuration = Configuration.model_validate(
        {
            "ledger": "memory",
            "stores": {"shop": {"url": url, "timeout": "60s"}},
            "tools": {"pay": {"effect": "write"}},
            "tasks": {
                "pay": {
                    "inputs": {"id": "integer", "status": "text"},
                    "watch": {"shop.orders": {"where": "id = :id"}, "shop.lines": {}},
                    "expect": [{"updated": "shop.orders", "key": {"id": "$id"}, "values": {"status": "$status"}}],
                    "checks": [{"store": "shop", "sql": "select status = :status from orders where id = :id"}],
                }
            },
        }
    )
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        turn = asyncio.Lock()

        async def pay(id: int, status: str) -> dict[str, object]:
            async with turn:
                await connection.execute("UPDATE orders SET status = %s WHERE id = %s", (status, id))
            return {"paid": id}

        async def run(id: int) -> None:
            args = {"id": id, "status": f"paid {round_}"}
            async with guard.run("pay", inputs=args) as run:
                await run.acall("pay", args, pay)
            kinds.append(None if run.verdict is None else run.verdict.kind)

        kinds: list[str | None] = []
        with Guard(configuration) as guard:
            await run(1)
            held_up = await _held_up(lambda: asyncio.gather(*map(run, range(2, 52))))
        assert kinds == ["verified"] * 51, kinds
        return held_up
