"""The proof that a query only reads (rule 17 of the design)."""

from __future__ import annotations

from functools import lru_cache

from guardrail.errors import QueryRefused
from guardrail.query.proved import DIALECTS, Dialect, Query

__all__ = ["Dialect", "Query", "known_dialect", "prove", "prove_condition"]


def prove(text: str, dialect: str | None, *, functions: frozenset[str] = frozenset()) -> Query:
    """Prove that `text` is one statement that only reads.

    `functions` names further functions, in lower case, that the caller knows to only read. Proofs are
    kept by text and dialect. Raises `QueryRefused`, which says which part is not allowed.
    """
    return _proved(text, known_dialect(dialect), functions, condition=False)


def prove_condition(text: str, dialect: str | None, *, functions: frozenset[str] = frozenset()) -> Query:
    """Prove that `text` is exactly one expression over a table's columns, as `where` of a watch takes it.

    No subqueries, aggregates or windows, so that each row is in scope or not by itself. Raises `QueryRefused`.
    """
    return _proved(text, known_dialect(dialect), functions, condition=True)


def known_dialect(dialect: str | None) -> Dialect:
    """A dialect by its name. Raises `QueryRefused` for one that cannot be proved, and for none."""
    for known in DIALECTS:
        if dialect == known:
            return known
    named = f"the dialect {dialect!r} cannot be proved" if dialect else "no dialect is given"
    raise QueryRefused(f"{named}: name one of {', '.join(DIALECTS)}")


@lru_cache(maxsize=2048)
def _proved(text: str, dialect: Dialect, functions: frozenset[str], *, condition: bool) -> Query:
    # The parser is imported with the first query: it is the heaviest import of the library.
    from guardrail.query.inspection import inspect

    return inspect(text, dialect, functions, condition=condition)
