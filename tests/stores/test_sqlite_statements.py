"""The table of statements against SQLite itself: what passes only reads, what is refused could do nothing anyway."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from guardrail.pictures import Rows, Unanswered
from guardrail.query.proof import Query, prove
from guardrail.stores.store import Ask, Store
from support.statements import Statement, statements

Traces = dict[str, str]


def traces(folder: Path) -> Traces:
    """Every file of the folder with the hash of its contents."""
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def as_if_proved(text: str) -> Query:
    return Query(text, "sqlite", text, (), ())


@pytest.mark.parametrize("statement", statements("sqlite", "allowed"))
def test_what_passes_answers_as_it_was_written_and_changes_nothing(
    statement: Statement, store: Store, shop: Path
) -> None:
    before = traces(shop.parent)
    (answer,) = store.look([Ask(prove(statement.sql, "sqlite"), statement.values)])
    assert traces(shop.parent) == before
    if not statement.runs:
        assert isinstance(answer, Unanswered)
        return
    assert isinstance(answer, Rows)
    with closing(sqlite3.connect(shop)) as connection:
        assert list(answer.rows) == connection.execute(statement.sql, statement.values).fetchall()


@pytest.mark.parametrize("statement", statements("sqlite", "refused"))
def test_what_is_refused_could_do_nothing_even_if_it_passed(
    statement: Statement, store: Store, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop.parent)
    before = traces(shop.parent)
    (answer,) = store.look([Ask(as_if_proved(statement.sql))])
    assert traces(shop.parent) == before
    if statement.harmful:
        assert isinstance(answer, Unanswered)


@pytest.mark.parametrize("statement", statements("sqlite", "refused"))
def test_what_is_refused_leaves_the_answers_beside_it_alone(statement: Statement, store: Store) -> None:
    count = Ask(prove("SELECT count(*) FROM orders", "sqlite"))
    first, _, last = store.look([count, Ask(as_if_proved(statement.sql)), count])
    assert first == last == Rows(("COUNT(*)",), ((3,),))


def test_the_files_that_refused_statements_would_leave_are_seen(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other tests rest on `traces`: without the guard, the same statements do leave them."""
    monkeypatch.chdir(shop.parent)
    before = traces(shop.parent)
    with closing(sqlite3.connect(f"file:{shop}?mode=ro", uri=True, isolation_level=None)) as unguarded:
        unguarded.execute("ATTACH 'other.db' AS other")
        unguarded.execute("CREATE TABLE other.stolen AS SELECT * FROM orders")
        unguarded.execute("VACUUM INTO 'copy.db'")
    assert traces(shop.parent).keys() - before.keys() == {"other.db", "copy.db"}


def test_a_view_is_held_to_the_same_functions(store: Store, shop: Path) -> None:
    with closing(sqlite3.connect(shop)) as connection:
        connection.execute("CREATE VIEW bomb AS SELECT randomblob(1000000000) AS bytes")
    (answer,) = store.look([Ask(prove("SELECT * FROM bomb", "sqlite"))])
    assert isinstance(answer, Unanswered)
    assert "randomblob" in answer.why
