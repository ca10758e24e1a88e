"""The benchmarks: `make bench` prints one JSON line a figure.

Times are microseconds of CPU time of all threads of the process unless the name says wall; medians, with the plain
form of the same beside them.
"""

from __future__ import annotations

import gc
import sqlite3
import sys
import tempfile
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.documents import json_pictures
from benchmarks.guarded import guarded, lookup_order, sdk
from benchmarks.ledgers import intents
from benchmarks.measuring import beside, compiled, cpu, in_fresh_process, say, wall
from benchmarks.proxy import proxy
from benchmarks.servers import checks, runs_at_once, server_pictures
from benchmarks.telemetry import endpoints, sampling
from guardrail import Configuration, Guard
from guardrail.pictures import Picture
from guardrail.stores.opening import open_store
from guardrail.stores.sqlite.pictures import digest
from guardrail.stores.store import Photograph


def reads(folder: Path) -> None:
    """A guarded no-op read, without an SDK and with one, and with more declared tools."""
    plain = partial(lookup_order, order_id=17)
    for name, count, providers in (
        ("no SDK", 1, {}),
        ("SDK and batch processor", 1, sdk()),
        ("no SDK, 50 tools", 50, {}),
        ("no SDK, 500 tools", 500, {}),
    ):
        with guarded(folder, count, **providers) as read:
            cpu(partial(read, order_id=17), 300)
            us, bare, _ = beside(partial(read, order_id=17), plain, 1000)
            say("guarded no-op read", case=name, us=us, plain_us=bare)


def long_run(folder: Path) -> None:
    """The same read at the beginning, in the middle and late in one run."""
    windows: dict[str, list[float]] = {"1st": [], "1,000th": [], "10,000th": []}
    for _ in range(5):
        with guarded(folder) as read:
            call = partial(read, order_id=17)
            windows["1st"].append(cpu(call, 500))
            cpu(call, 500)
            windows["1,000th"].append(cpu(call, 500))
            cpu(call, 8_250)
            windows["10,000th"].append(cpu(call, 500))
    for at, figures in windows.items():
        say("guarded no-op read in a long run", call=at, us=sorted(figures)[len(figures) // 2])


def writes(folder: Path) -> None:
    """A guarded no-op write, whose intent is durable, beside a bare commit with the same settings."""
    bare = sqlite3.connect(folder / "bare.db", isolation_level=None)
    bare.execute("pragma journal_mode = wal")
    bare.execute("pragma synchronous = full")
    bare.execute("create table intents (run text, number integer, tool text, args text, started real)")
    row = ("r" * 32, 1, "pay", '{"order_id": 17, "amount": "19.90"}', 1.0)

    def commit() -> None:
        bare.execute("insert into intents values (?, ?, ?, ?, ?)", row)

    configuration = {"ledger": str(folder / "writes.db"), "tools": {"pay": {"effect": "write"}}}
    with Guard(Configuration.model_validate(configuration)) as guard, guard.run() as run:

        def pay(order_id: int) -> dict[str, object]:
            return {"paid": order_id}

        write = run.wrap(pay)
        number = iter(range(10**9))
        us, plain, ratio = beside(lambda: write(order_id=next(number)), commit, 40, wall)
        say("durable write, wall", us=us, bare_commit_us=plain, ratio=ratio)
        us, plain, _ = beside(lambda: write(order_id=next(number)), commit, 40)
        say("durable write, CPU", us=us, bare_commit_us=plain)


def pictures(folder: Path) -> None:
    """Pictures of tables beside the bare queries."""
    for rows in (1_000, 100_000, 1_000_000):
        path = folder / f"rows_{rows}.db"
        _fill(path, rows)
        store = open_store("shop", str(path), 600)
        rounds = 3 if rows == 1_000_000 else 7
        whole = partial(_picture, store, Photograph("shop.orders", "orders", whole_rows=rows, most_rows=rows))
        us, bare, ratio = beside(whole, partial(_bare, path, _WHOLE), 1, rounds=rounds)
        say("picture, whole rows", rows=rows, ms=us / 1e3, bare_ms=bare / 1e3, ratio=ratio)
        hashed = partial(_picture, store, Photograph("shop.orders", "orders", whole_rows=0, most_rows=rows))
        us, bare, ratio = beside(hashed, partial(_bare_hashed, path), 1, rounds=rounds)
        say("picture, hashed", rows=rows, ms=us / 1e3, bare_ms=bare / 1e3, ratio=ratio)
        store.close()


_WHOLE = "select id, customer, status, amount, note, city, placed, paid from orders"


def _fill(path: Path, rows: int) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(
            "create table orders (id integer primary key, customer text, status text, amount numeric, note text, "
            "city text, placed timestamp, paid timestamp)"
        )
        one = ("customer-%d", "paid", 19.5, "a note of ordinary length, as people write them", "Trondheim")
        connection.executemany(
            "insert into orders values (?, ?, ?, ?, ?, ?, '2026-11-30 10:00:00', '2026-11-30 11:00:00')",
            ((n, one[0] % n, *one[1:]) for n in range(rows)),
        )


def _picture(store: Any, photograph: Photograph) -> Picture:
    (picture,) = store.look([photograph])
    assert isinstance(picture, Picture), picture
    return picture


def _bare(path: Path, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(path)
    found = connection.execute(query).fetchall()
    connection.close()
    return found


def _bare_hashed(path: Path) -> list[tuple[Any, bytes]]:
    """The key and the row's hash by the same function, through the bare driver."""
    connection = sqlite3.connect(path)
    found = [(row[0], digest(row)) for row in connection.execute(_WHOLE)]
    connection.close()
    return found


def starting(folder: Path) -> None:
    """Importing the library, and loading a configuration of 50 tools and 50 tasks, in a fresh process."""
    compiled()
    timed = "import time; a = time.process_time(); {}; print((time.process_time() - a) * 1e3)"
    say("import guardrail", ms=in_fresh_process(timed.format("import guardrail")))
    path = folder / "guardrail.yaml"
    path.write_text(_configuration(folder))
    load = f"import guardrail; guardrail.Guard.load({str(path)!r})"
    say("load 50 tools and 50 tasks, imports included", ms=in_fresh_process(timed.format(load)))


def _configuration(folder: Path) -> str:
    sqlite3.connect(folder / "shop.db").executescript(
        "create table if not exists orders (id integer primary key, status)"
    )
    lines = ["version: 1", "ledger: memory", "stores:", f"  shop: {{url: 'sqlite:///{folder / 'shop.db'}'}}", "tools:"]
    for n in range(50):
        lines += [
            f"  tool_{n}:",
            "    effect: write",
            "    args: {amount: {type: decimal, above: 0}}",
            "    requires:",
            f"      - {{store: shop, sql: \"select status = 'paid' from orders where id = :id + {n}\"}}",
            f"      - {{cel: \"args.amount != '{n}'\"}}",
        ]
    lines.append("tasks:")
    for n in range(50):
        lines += [
            f"  task_{n}:",
            "    inputs: {id: integer}",
            f"    watch: {{shop.orders: {{key: id, where: 'id > :id + {n}'}}}}",
            "    expect:",
            "      - {updated: shop.orders, key: {id: $id}, values: {status: paid}}",
        ]
    return "\n".join(lines)


def memory(folder: Path) -> None:
    """What a run of 10,000 calls holds in memory."""
    with guarded(folder) as read:
        for _ in range(500):
            read(order_id=17)
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(10_000):
            read(order_id=number)
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
    say("memory of 10,000 calls", kib=held / 1024)


BENCHMARKS = (
    *(reads, sampling, endpoints, long_run, writes, intents, pictures, starting, memory),
    *(checks, server_pictures, json_pictures, runs_at_once, proxy),
)


def main() -> None:
    """Run the benchmarks that are named, or all."""
    wanted = set(sys.argv[1:])
    for benchmark in BENCHMARKS:
        if not wanted or benchmark.__name__ in wanted:
            with tempfile.TemporaryDirectory() as folder:
                benchmark(Path(folder))


if __name__ == "__main__":
    main()
