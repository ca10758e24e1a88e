"""Columns of what a function in FROM answers: PostgreSQL takes a name that is none for one more function to call."""

from __future__ import annotations

from collections import defaultdict

from sqlglot import exp

from guardrail.errors import QueryRefused


def check_columns(tree: exp.Expr) -> None:
    """Refuse `f.name` where `f` is a function's result and `name` no column that the query gives it.

    `SELECT f.pg_read_file FROM unnest(ARRAY['/etc/passwd']) AS f` calls that function with the value of `f`. Of a
    table, `t.name` can only call a function that the database's owner made for its rows. The columns are those that
    the alias lists, else one named like the result; `key`, `value` and `ordinality` are what PostgreSQL's own functions
    name theirs. `tree` is canonical.
    """
    columns: defaultdict[str, list[frozenset[str]]] = defaultdict(list)
    for source in tree.find_all(exp.Table, exp.Unnest, exp.Lateral):
        if function := _function(source):
            name = source.alias or function
            columns[name].append(_listed(source) or frozenset({name, "key", "value"}))
    for column in tree.find_all(exp.Column):
        for names in columns.get(column.table, []):
            if not isinstance(column.this, exp.Star) and column.name not in names | {"ordinality"}:
                raise QueryRefused(
                    f"{column.table}.{column.name} is not allowed: {column.table} is what a function answers, "
                    f"with the columns {', '.join(sorted(names))}; list others like {column.table}(a, b)"
                )


def _function(source: exp.Expr) -> str:
    """The name of the function whose result a source is, else nothing; PostgreSQL calls the result by it."""
    called = source.this
    match source:
        case exp.Unnest():
            return "unnest"
        case exp.Table() if together := source.args.get("rows_from"):
            return _function(together[0])
        case _:
            return str(called.this).lower() if isinstance(called, exp.Anonymous) else ""


def _listed(source: exp.Expr) -> frozenset[str]:
    alias, place = source.args.get("alias"), source.args.get("offset")  # the parser takes a last column out of the list
    columns = alias.args.get("columns") or [] if isinstance(alias, exp.TableAlias) else []
    return frozenset(column.name for column in [*columns, *([place] if isinstance(place, exp.Identifier) else [])])
