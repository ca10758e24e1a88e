"""What stores make of what they were given: answers, and words for what could not be answered."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from guardrail.errors import StoreError
from guardrail.pictures import Row, Rows, Unanswered
from guardrail.query.proof import Dialect
from guardrail.stores.store import MOST_ANSWERED, Ask, Fetch, Photograph, Question, Survey

NARROW: Final = (
    "narrow the question (a watched table by `where`, and `ignore` its long columns, JSON kept as text above all)"
)
"""What to do about a question that takes too long."""


def unanswered(store: str, question: Question, why: str) -> Unanswered:
    """That a question could not be answered: of which tables, and why."""
    match question:
        case Ask(query):
            place = ", ".join(f"{store}.{table}" for table in query.tables) or store
        case Fetch(request):
            place = f"{store} {request.text}"
        case Photograph(name=place):
            pass
        case Survey():
            return Unanswered(f"the tables of {store} could not be read: {why}")
    return Unanswered(f"{place} could not be looked at: {why}")


def check_dialect(question: Question, dialect: Dialect, database: str) -> None:
    """Refuse a query that was proved for another database. Raises `StoreError`."""
    query = question.query if isinstance(question, Ask) else getattr(question, "where", None)
    if query is not None and query.dialect != dialect:
        raise StoreError(f"its query was proved for {query.dialect}, and the database is {database}")


def no_api(database: str) -> StoreError:
    """That a database is asked what only an HTTP store can answer."""
    return StoreError(f"it is no HTTP store, but {database}")


def answered(columns: tuple[str, ...], rows: Sequence[Row], count: int) -> Rows:
    """The rows of a query, which gave `count` of them. Raises `StoreError` for too many, or for doubled columns."""
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise StoreError(f"the query answers two columns called {', '.join(twice)}; name them apart with AS")
    if count > MOST_ANSWERED:
        raise StoreError(f"the query answers more than {MOST_ANSWERED:,} rows; narrow it")
    return Rows(columns, tuple(rows))


def missing(table: str, tables: Sequence[str]) -> str:
    """That there is no such table among those that there are."""
    return f"there is no table {table}{near(table, tables)}"


def near(name: str, known: Sequence[str]) -> str:
    """The question whether a known name like this one is meant; empty where none is like it."""
    close = get_close_matches(name, known, 1)
    return f"; did you mean {close[0]}?" if close else ""
