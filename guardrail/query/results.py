"""Columns of what a function in FROM answers: PostgreSQL takes a name that is none for one more function to call."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from sqlglot import exp

from guardrail.errors import QueryRefused
from guardrail.query.reading import clipped, text_of

NAMED_BY_FUNCTIONS: Final = frozenset({"key", "value", "ordinality"})
"""Columns that PostgreSQL's own functions name; none of them is a function."""


def check_columns(tree: exp.Expr) -> None:
    """Refuse `f.name` where `f` is a function's result and `name` no column that the query gives it.

    `SELECT f.pg_read_file FROM unnest(ARRAY['/etc/passwd']) AS f` calls that function with the value of `f`. Of a
    table, `t.name` can only call a function that the database's owner made for its rows. The columns are those that
    the alias lists, else one named like the result, and those that PostgreSQL's own functions name. `tree` is canonical.
    """
    columns: defaultdict[str, list[frozenset[str]]] = defaultdict(list)
    for source in tree.find_all(exp.Table, exp.Unnest, exp.Lateral):
        if function := _function(source):
            name = source.alias or function
            columns[name].append((_listed(source) or frozenset({name})) | NAMED_BY_FUNCTIONS)
    for column in tree.find_all(exp.Column):
        for names in columns.get(column.table, []):
            if not isinstance(column.this, exp.Star) and column.name not in names:
                raise QueryRefused(
                    f"{column.table}.{column.name} is not allowed: {column.table} is what a function answers, "
                    f"with the columns {', '.join(sorted(names - NAMED_BY_FUNCTIONS))}; list others like {column.table}(a, b)"
                )


def _function(source: exp.Expr) -> str:
    """The name of the function whose result a source is, else nothing; PostgreSQL calls the result by it."""
    match source, source.this:
        case (exp.Unnest(), _) | (exp.Lateral(), exp.Unnest()):
            return "unnest"
        case exp.Table(), None:
            return _function(source.args["rows_from"][0])
        case _, exp.Anonymous(this=str(name)):
            return name.lower()
        case (exp.Table(), exp.Identifier()) | (exp.Lateral(), exp.Subquery()):
            return ""
        case _:  # what is called by syntax of its own, such as TRIM, goes by another name
            raise QueryRefused(f"{clipped(text_of(source, 'postgres'))} is not allowed in FROM: it is no plain call")


def _listed(source: exp.Expr) -> frozenset[str]:
    alias, place = source.args.get("alias"), source.args.get("offset")  # the parser takes a last column out of the list
    columns: list[exp.Expr] = alias.args.get("columns") or [] if isinstance(alias, exp.TableAlias) else []
    return frozenset(column.name for column in [*columns, place] if isinstance(column, exp.Expr))
