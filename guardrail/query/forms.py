"""One form for what can be written in several: how trees are compared, and what is written anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from guardrail.query.proved import Dialect
from guardrail.query.reading import GRAMMARS, text_of

_UNITS_FIRST: Final = frozenset({"timestampadd", "timestampdiff"})
"""MySQL's functions whose first argument is a unit of time, which the parser takes for a column."""


def canonical(tree: exp.Expr, dialect: Dialect) -> exp.Expr:
    """The tree with names folded as the server would and quoted, literals plain, and as calls what is written as such.

    It is changed in place.
    """
    tree = rewritten(tree, lambda node: _plain(node, dialect))
    for identifier in tree.find_all(exp.Identifier):
        if dialect == "postgres":
            GRAMMARS[dialect].normalize_identifier(identifier)
        identifier.set("quoted", True)
    return tree


def rewritten(tree: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """The tree with each node as `change` makes it, from the leaves to the root. It is changed in place."""
    for node in [*tree.walk()][::-1]:
        changed = change(node)
        if changed is not node:
            tree = changed if node is tree else tree
            node.replace(changed)
    return tree


def _plain(node: exp.Expr, dialect: Dialect) -> exp.Expr:
    match node, dialect:
        case (exp.RawString() | exp.Heredoc(), _) | (exp.ByteString(), "postgres"):
            return exp.Literal.string(str(node.this))
        case (exp.JSONExtract() | exp.JSONExtractScalar(), _):
            return _extraction(node, dialect)
        case exp.Pow(), "postgres":
            return _call("POWER", node.this, node.expression)
        case exp.StrPosition(), "mysql":
            return _call("LOCATE", node.args["substr"], node.this)
        case exp.CurrentTimestamp() | exp.CurrentTime(), "mysql":
            return _call(node.sql_name())
        case exp.Concat(expressions=parts), "mysql":
            return _call("CONCAT", *parts)
        case exp.GroupConcat(), "mysql" if not node.args.get("separator"):
            node.set("separator", exp.Literal.string(","))
            return node
        case exp.Anonymous(expressions=[exp.Column(table="") as unit, *_]), "mysql" if _has_unit(node):
            unit.replace(exp.Var(this=unit.name.upper()))
            return node
        case exp.Table(this=exp.Identifier(this=str(name), quoted=False)), "mysql" if name.lower() == "dual":
            node.set("this", exp.Var(this="DUAL"))
            return node
        case _:
            return node


def _has_unit(node: exp.Anonymous) -> bool:
    return isinstance(node.this, str) and node.this.lower() in _UNITS_FIRST


def _extraction(node: exp.JSONExtract | exp.JSONExtractScalar, dialect: Dialect) -> exp.Expr:
    """What is left of `->` without the brackets that reading put around it; for MySQL the function behind it."""
    match node.this:
        case exp.Paren(this=exp.Paren(this=exp.Column() as column)):
            node.set("this", column)
        case _:
            pass
    if dialect != "mysql":
        return node
    path = GRAMMARS[dialect].parse(text_of(node.expression, dialect))[0]
    value = _call("JSON_EXTRACT", node.this, path)
    return _call("JSON_UNQUOTE", value) if isinstance(node, exp.JSONExtractScalar) else value


def _call(name: str, *arguments: object) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=[*arguments])
