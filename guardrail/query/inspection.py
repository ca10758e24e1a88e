"""How a query is proved: every node of its tree is looked at, and the tree is written anew."""

from __future__ import annotations

import logging
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from threading import local
from typing import Final

from sqlglot import Token, TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

from guardrail.errors import QueryRefused
from guardrail.query.forms import canonical
from guardrail.query.proved import Dialect, Query
from guardrail.query.reading import clipped, text_of, tokens_of, tree_of
from guardrail.query.results import check_columns
from guardrail.query.vocabulary import AGGREGATES, FUNCTIONS, MODIFIERS, NODES, SEQUENCES, VALUES, is_internal
from guardrail.query.writing import written

_ROOTS: Final = (exp.Select, exp.SetOperation, exp.Values, exp.Subquery)
_CALL: Final = re.compile(r"(\w+)\(.*\)", re.DOTALL)
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_WORD: Final = re.compile(r"\w+", re.ASCII)
_TYPE_NAME: Final = r'(?:[A-Za-z_][\w. ]*|(?:\w+\.|"(?:[^"]|"")+"\.)?"(?:[^"]|"")+")'
_TYPE: Final = re.compile(rf"{_TYPE_NAME}(?:\([\d, ]*\))?(?:\[\d*\])*(?: CHARACTER SET \w+)?")

_NO_CONDITION: Final = (exp.Query, exp.Exists, exp.Table, exp.Window, exp.AggFunc, exp.Alias, exp.Star)
"""What makes a condition depend on more than the row it is asked of, or is none."""

_WORDING: Final = {
    "Anonymous": "a quoted function name",
    "Lock": "a row lock",
    "Into": "SELECT INTO",
    "Parameter": "a parameter of another form than :name",
    "SessionParameter": "a session variable",
    "PropertyEQ": "an assignment",
    "Dot": "a call through a schema, or a field of a value,",
    "Hint": "an optimizer hint",
}


def inspect(text: str, dialect: Dialect, functions: frozenset[str], *, condition: bool) -> Query:
    """Prove `text` as a query or as a condition; raises `QueryRefused`."""
    try:
        with unheard():
            return _inspected(text, dialect, functions, condition)
    except QueryRefused:
        raise
    except RecursionError:
        raise QueryRefused("it is nested too deeply to be checked; write it flatter") from None
    except Exception as error:  # noqa: BLE001
        # The parser raises its own errors, and on odd texts whatever its code runs into: not proved is refused.
        raise QueryRefused(f"it cannot be read as {dialect}: {saying(error)}") from None


@contextmanager
def unheard() -> Generator[None]:
    """Keep the parser's warnings (of a JSON path that is SQLite's own) out of the host's log, on this thread."""
    _inspecting.busy = True
    try:
        yield
    finally:
        _inspecting.busy = False


_inspecting: Final = local()
logging.getLogger("sqlglot").addFilter(lambda record: not getattr(_inspecting, "busy", False))


def _inspected(text: str, dialect: Dialect, functions: frozenset[str], condition: bool) -> Query:
    tokens = tokens_of(text, dialect, condition)
    tree = tree_of(text, tokens, dialect, condition=condition)
    _check_root(tree, dialect, condition)
    for node in tree.walk():
        _check(node, dialect, FUNCTIONS[dialect] | functions)
    _check_signs(tree, tokens)
    tree = canonical(tree, dialect)
    if dialect == "postgres":
        check_columns(tree)
    parameters = _parameters(tree)
    rendered = written(tree, dialect, parameters, condition)
    return Query(text, dialect, rendered, parameters, tables_of(tree, dialect), functions)


def _check_root(tree: exp.Expr, dialect: Dialect, condition: bool) -> None:
    if not condition and not isinstance(tree, _ROOTS):
        raise _refusal(tree, dialect)
    for node in tree.walk() if condition else ():
        if isinstance(node, _NO_CONDITION) or (isinstance(node, exp.In) and node.args.get("field")) or _is_total(node):
            raise QueryRefused(
                f"{clipped(text_of(node, dialect))} is not allowed in a condition: "
                "it is one expression over the row's columns, without subqueries and aggregates"
            )


def _is_total(node: exp.Expr) -> bool:
    """Whether it is a call of an aggregate; `max` and `min` of several values are none in SQLite."""
    name = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
    return name in AGGREGATES and not (name in {"max", "min"} and len(node.expressions) > 1)


def _check(node: exp.Expr, dialect: Dialect, functions: frozenset[str]) -> None:
    """Refuse a node that is not known to only read."""
    if type(node).__name__ not in NODES:
        _check_call(node, dialect, functions)
    if any(isinstance(part, str) and "\0" in part for part in node.args.values()):
        raise QueryRefused("it holds a NUL character, which databases do not take alike")
    match node:
        case exp.Select() if not node.expressions:
            raise QueryRefused("a SELECT without columns is not allowed")
        case exp.Select() if found := {word.name.upper() for word in _modifiers(node)} - MODIFIERS:
            raise QueryRefused(f"SELECT {' '.join(sorted(found))} is not allowed")
        case exp.Column() if not node.table and _is_value(node.this, dialect):
            raise QueryRefused(
                f"{node.name} is no column to {dialect} unless it is quoted, and is not allowed otherwise"
            )
        case exp.Column() if dialect == "mysql" and node.db:
            # MariaDB 10.11 crashes on such a name where it does not know the database and a join has USING.
            raise QueryRefused(
                f"{clipped(text_of(node, dialect))} is not allowed: give the table a name with AS, and use it"
            )
        case exp.Column() if dialect == "mysql" and node.table and node.name.lower() in SEQUENCES:
            raise QueryRefused(
                f"{text_of(node, dialect)} is not allowed: some sessions of MariaDB take a number of a sequence"
            )
        case exp.Identifier() if node.name.startswith("$") and not node.args.get("quoted"):
            raise QueryRefused(f"{node.name} is no parameter of a query; write :{node.name[1:]}")
        case exp.Placeholder() if not (isinstance(node.this, str) and _NAME.fullmatch(node.this)):
            raise QueryRefused(f"the parameter {text_of(node, dialect)} has no name; write :name")
        case exp.Var() if not _WORD.fullmatch(node.name):
            raise QueryRefused(f"{clipped(node.name)} is not allowed")
        case exp.DataType() if not _TYPE.fullmatch(text_of(node, dialect)):
            raise QueryRefused(f"the type {clipped(text_of(node, dialect))} is not allowed")
        case exp.ColumnDef() if node.args.get("constraints"):
            raise QueryRefused(f"{clipped(text_of(node, dialect))} is not allowed: a column here has a name and a type")
        case exp.Table() if not isinstance(node.this, exp.Identifier | exp.Func | None):
            raise QueryRefused(f"{clipped(text_of(node, dialect))} is no table")
        case exp.Table() if dialect == "sqlite" and is_internal(node.name):
            raise QueryRefused(f"{node.name} is not allowed: it is no table of the database")
        case _:
            pass


def _modifiers(node: exp.Select) -> list[exp.Expr]:
    return node.args.get("operation_modifiers") or []


def _is_value(name: object, dialect: Dialect) -> bool:
    return isinstance(name, exp.Identifier) and not name.args.get("quoted") and name.name.lower() in VALUES[dialect]


def _check_signs(tree: exp.Expr, tokens: Sequence[Token]) -> None:
    """Refuse a `+` before an operand: the parser drops it, and servers convert, group and index differently then."""
    if sum(token.token_type is TokenType.PLUS for token in tokens) != len(list(tree.find_all(exp.Add))):
        raise QueryRefused("a + before a value is not allowed; leave it out, or write CAST")


def _check_call(node: exp.Expr, dialect: Dialect, functions: frozenset[str]) -> None:
    """Refuse what is no call of an allowed function under its own, unqualified name."""
    name = _called(node, dialect) if isinstance(node, exp.Func) else None
    if name is None:
        raise _refusal(node, dialect)
    if not name.isascii() or name.lower() not in functions:
        raise QueryRefused(f"the function {name} is not allowed: it is not on the list of those that only compute")
    if isinstance(node.parent, exp.Table) and node.parent.db:
        raise QueryRefused(f"the function {name} is not allowed through a schema")


def _called(node: exp.Func, dialect: Dialect) -> str | None:
    """The name under which a function is called in the text that is executed; None for other syntax."""
    match node:
        case exp.Anonymous(this=name):
            return name if isinstance(name, str) else None
        case exp.Unnest():
            return "UNNEST"
        case _:
            call = _CALL.fullmatch(text_of(node, dialect))
            return call[1] if call else None


def _refusal(node: exp.Expr, dialect: Dialect) -> QueryRefused:
    kind = type(node).__name__
    what = _WORDING.get(kind) or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).upper()
    return QueryRefused(f"{what} is not allowed in a query that only reads: {clipped(text_of(node, dialect))}")


def _parameters(tree: exp.Expr) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(node.this) for node in tree.find_all(exp.Placeholder, bfs=False)))


def tables_of(tree: exp.Expr, dialect: Dialect) -> tuple[str, ...]:
    """The tables that are named, sorted, as `table` or `schema.table`."""
    tables = [table for table in tree.find_all(exp.Table, bfs=False) if isinstance(table.this, exp.Identifier)]
    tables = [table for table in tables if not isinstance(table.parent, exp.UserDefinedFunction)]
    read = [table for table in tables if table.db or not _defined(table, dialect)]
    return tuple(sorted({".".join(part.name for part in table.parts) for table in read}))


def _defined(table: exp.Table, dialect: Dialect) -> bool:
    """Whether a WITH around the table's use defines its name."""
    above: exp.Expr | None = table
    inside: list[exp.Expr] = []
    while above := above.parent if above else None:
        inside.append(above)
        for cte in _defining(above):
            itself = any(cte is part for part in inside)
            recursive = dialect == "sqlite" or bool(cte.parent and cte.parent.args.get("recursive"))
            if cte.alias.lower() == table.name.lower() and (recursive or not itself):
                return True
    return False


def _defining(node: exp.Expr) -> list[exp.Expr]:
    """The queries that a WITH of the statement names."""
    found = node.args.get("with_")
    return found.expressions if isinstance(found, exp.With) else []


def saying(error: Exception) -> str:
    """What the parser says; an error from within its code says nothing that helps."""
    if isinstance(error, ParseError) and error.errors:
        where = error.errors[0]
        return f"{where.get('description')}, line {where.get('line')}, column {where.get('col')}"
    return str(error).splitlines()[0] if isinstance(error, SqlglotError) else "the parser makes no sense of it"
