"""Many looks at once while another process writes: every one sees a moment between two transactions."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import pytest

from guardrail.pictures import Picture, Rows
from guardrail.query.proof import prove
from guardrail.stores.opening import open_store
from guardrail.stores.store import Ask, Photograph, Question, Store

Database = Callable[[str], Path]

ACCOUNTS = """
CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INT);
CREATE TABLE transfers (id INTEGER PRIMARY KEY, amount INT);
INSERT INTO accounts VALUES (1, 1000), (2, 1000);
"""
TRANSFERS = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
connection.execute("PRAGMA synchronous = OFF")
print("ready", flush=True)
number = 0
while True:
    number += 1
    amount = number % 7 - 3
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE accounts SET balance = balance - ? WHERE id = 1", [amount])
    connection.execute("INSERT INTO transfers VALUES (?, ?)", [number, amount])
    connection.execute("UPDATE accounts SET balance = balance + ? WHERE id = 2", [amount])
    connection.execute("COMMIT")
"""
QUESTIONS: list[Question] = [
    Photograph("bank.accounts", "accounts"),
    Ask(prove("SELECT count(*) AS n, coalesce(sum(amount), 0) AS total FROM transfers", "sqlite")),
    Photograph("bank.accounts", "accounts", hashed=True, pinned=((1,), (2,))),
]


@contextmanager
def transfers(path: Path) -> Generator[None]:
    """Another process that moves amounts between the two accounts, one transaction after the other."""
    writer = subprocess.Popen([sys.executable, "-c", TRANSFERS, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        yield
    finally:
        writer.kill()
        writer.communicate()


def moment(store: Store) -> int:
    """One look, which must be consistent; the number of transfers made before it."""
    whole, counted, hashed = store.look(QUESTIONS)
    assert isinstance(whole, Picture), whole
    assert isinstance(counted, Rows), counted
    assert isinstance(hashed, Picture), hashed
    ((number, total),) = counted.rows
    assert isinstance(number, int)
    assert isinstance(total, int)
    assert whole.rows == hashed.rows == {(1,): (1, 1000 - total), (2,): (2, 1000 + total)}
    return number


@pytest.mark.parametrize(("mode", "moments"), [("wal", 30), ("delete", 3)])
def test_every_picture_is_consistent_while_another_process_writes(database: Database, mode: str, moments: int) -> None:
    path = database(f"PRAGMA journal_mode = {mode};{ACCOUNTS}")
    store = open_store("bank", path, 60)
    seen: set[int] = set()

    def look() -> int:
        looks = 0
        while looks < 10 or len(seen) < moments:
            seen.add(moment(store))
            looks += 1
        return looks

    with transfers(path), ThreadPoolExecutor(8) as pool:
        done = [pool.submit(look) for _ in range(8)]
        assert all(future.result() >= 10 for future in done)
    assert len(seen) >= moments


def test_a_look_after_another_never_sees_an_earlier_moment(database: Database) -> None:
    path = database(f"PRAGMA journal_mode = wal;{ACCOUNTS}")
    store = open_store("bank", path, 60)
    with transfers(path):
        moments = [moment(store) for _ in range(30)]
    assert moments == sorted(moments)


def count_in_child(path: str) -> int:
    return moment(open_store("bank", path, 5))


def test_a_store_works_on_in_a_forked_process(database: Database) -> None:
    path = database(ACCOUNTS)
    assert moment(open_store("bank", path, 5)) == 0
    context = get_context("fork")
    with context.Pool(1) as pool:
        assert pool.apply(count_in_child, [str(path)]) == 0
