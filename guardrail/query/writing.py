"""How a checked tree is written: what is executed, shown to read back as the very tree that was checked."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import Final

from sqlglot import exp

from guardrail.errors import QueryRefused
from guardrail.query.forms import canonical, rewritten
from guardrail.query.proved import Dialect
from guardrail.query.reading import clipped, text_of, tokens_of, tree_of

_MARK: Final = re.compile("\0(\\w+)\0")
_REGEXP: Final = "\0~\0"
_SYNTAX_ERROR: Final = re.compile(r"near \".*\": syntax error|incomplete input", re.DOTALL)


def written(tree: exp.Expr, dialect: Dialect, parameters: tuple[str, ...], condition: bool) -> str:
    """The text for the dialect's driver: sqlite `:name`, postgres `$1`, mysql `%(name)s` with each `%` doubled.

    `tree` is canonical and no text in it holds a NUL, so what is marked with one is ours. Raises `QueryRefused`
    where the text would not read back as `tree`.
    """
    marked = text_of(rewritten(tree.copy(), _WRITING[dialect]), dialect).replace(f"LIKE {_REGEXP}", "REGEXP")
    plain = _MARK.sub(r":\1" if dialect == "sqlite" else r" :\1", marked)
    again = tree_of(plain, tokens_of(plain, dialect, condition), dialect, condition=condition)
    if canonical(again, dialect) != tree:
        raise QueryRefused(f"it is not kept exactly; write it like this, if this is what it means: {plain}")
    match dialect:
        case "sqlite":
            _check_syntax(plain, parameters, condition)
            return plain
        case "postgres":
            return _MARK.sub(lambda mark: f"${parameters.index(mark[1]) + 1}", marked)
        case "mysql":
            return _MARK.sub(r"%(\1)s", marked.replace("%", "%%"))


def _parameter(node: exp.Expr) -> exp.Expr:
    """A parameter as a mark that no text can hold, to be replaced by what the driver takes."""
    return exp.Var(this=f"\0{node.this}\0") if isinstance(node, exp.Placeholder) else node


def _for_sqlite(node: exp.Expr) -> exp.Expr:
    """Without the parser's translations that would mean something else to SQLite.

    A type keeps its name, which decides how a value is converted; a comma stays a comma, as CROSS JOIN
    forbids the optimizer to reorder.
    """
    if isinstance(node, exp.DataType):
        name = "BLOB" if node.is_type("varbinary") else node.sql()
        return exp.DataType(this=exp.DataType.Type.USERDEFINED, kind=name)
    if isinstance(node, exp.Join) and node.args.get("kind") == "CROSS":
        node.set("kind", None)
    return _parameter(node)


def _for_postgres(node: exp.Expr) -> exp.Expr:
    """A text with a backslash as `E'..'`, which means the same whatever `standard_conforming_strings` says."""
    if isinstance(node, exp.Literal) and node.is_string and "\\" in node.name:
        return exp.ByteString(this=node.name)
    return _parameter(node)


def _for_mysql(node: exp.Expr) -> exp.Expr:
    """REGEXP as the operator that it was: the function that the parser makes of it is unknown to MariaDB."""
    if isinstance(node, exp.RegexpLike):
        return exp.Like(this=node.this, expression=exp.Introducer(this=_REGEXP, expression=node.expression))
    return _parameter(node)


_WRITING: Final = {"sqlite": _for_sqlite, "postgres": _for_postgres, "mysql": _for_mysql}


def _check_syntax(text: str, parameters: tuple[str, ...], condition: bool) -> None:
    """Let SQLite itself read the text, without running it, in a database without tables."""
    with closing(sqlite3.connect(":memory:")) as blank:
        try:
            blank.execute(f"EXPLAIN {'SELECT ' if condition else ''}{text}", dict.fromkeys(parameters))
        except sqlite3.Error as error:
            if _SYNTAX_ERROR.fullmatch(str(error)):
                raise QueryRefused(f"SQLite cannot read it: {error} in {clipped(text)}") from None
