"""The proof that a query only reads (rule 17 of the design)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, TypeAlias, get_args

from guardrail.errors import QueryRefused

Dialect: TypeAlias = Literal["sqlite", "postgres", "mysql"]
"""The dialects that can be proved; `mysql` also covers MariaDB."""

DIALECTS: Final[tuple[Dialect, ...]] = get_args(Dialect)


@dataclass(frozen=True, slots=True)
class Query:
    """A query, or a condition, that was proved to only read.

    `text` is what was written, `rendered` what is executed: written anew from the checked tree, without
    comments, identifiers quoted, parameters in the way of the dialect's driver (sqlite `:name`, postgres `$1`
    by position in `parameters`, mysql `%(name)s` with a literal `%` doubled). `parameters` are the names to
    bind, each once; `tables` the tables read, sorted, without those that a WITH defines;
    `functions` the further functions that the caller allowed.
    """

    text: str
    dialect: Dialect
    rendered: str
    parameters: tuple[str, ...]
    tables: tuple[str, ...]
    functions: frozenset[str] = frozenset()


def prove(text: str, dialect: str | None, *, functions: frozenset[str] = frozenset()) -> Query:
    """Prove that `text` is one statement that only reads.

    `functions` names further functions, in lower case, that the caller knows to only read. Proofs are
    kept by text and dialect. Raises `QueryRefused`, which says which part is not allowed.
    """
    return _proved(text, _known(dialect), functions, condition=False)


def prove_condition(text: str, dialect: str | None, *, functions: frozenset[str] = frozenset()) -> Query:
    """Prove that `text` is exactly one expression over a table's columns, as `where` of a watch takes it.

    No subqueries, aggregates or windows, so that each row is in scope or not by itself. Raises `QueryRefused`.
    """
    return _proved(text, _known(dialect), functions, condition=True)


def _known(dialect: str | None) -> Dialect:
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
