"""How a text is classified: cut into its statements, each proved to read or else read for what it would change.

The text is executed by somebody else, as it is, and not written anew from the tree that was checked. So what
the settings of a session decide (whether a backslash ends a text) makes it illegible.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from sqlglot import Token, TokenType, exp
from sqlglot.errors import ErrorLevel

from guardrail.errors import QueryRefused
from guardrail.query.classified import Statement, Trait
from guardrail.query.inspection import saying, tables_of, unheard
from guardrail.query.proof import prove
from guardrail.query.proved import Dialect
from guardrail.query.reading import GRAMMARS, statements_of

_QUOTED_QUOTE: Final = re.compile(r"\\['\"`]")

_DDL: Final = (exp.Create, exp.Drop, exp.Alter, exp.TruncateTable, exp.Comment, exp.Grant, exp.Revoke)
_DDL_WORDS: Final = frozenset({"CREATE", "DROP", "ALTER", "TRUNCATE", "RENAME", "COMMENT", "GRANT", "REVOKE"})
_LEGIBLE: Final = (
    *(*_DDL, exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Query, exp.Copy),
    *(exp.Transaction, exp.Commit, exp.Rollback, exp.Set, exp.Use, exp.Pragma, exp.Attach, exp.Detach, exp.Analyze),
)
"""The statements whose trees show what they do to rows and to the schema."""

_NAME: Final = r"""(?:[\w$.]+|"[\w .]+"|`[\w .]+`)"""
_LIKE: Final = r"""(?:\s+LIKE\s+'[^'\\]*')?"""
_FROM: Final = rf"(?:\s+(?:FROM|IN)\s+{_NAME})"
_PRAGMAS: Final = (
    "table_info|table_xinfo|table_list|index_list|index_info|index_xinfo|foreign_key_list|foreign_key_check|"
    "database_list|collation_list|compile_options|function_list|module_list|pragma_list|integrity_check|quick_check"
)
_SHOWN: Final = (
    "DATABASES|SCHEMAS|TABLES|TABLE STATUS|COLUMNS|FIELDS|INDEX|INDEXES|KEYS|STATUS|VARIABLES|WARNINGS|ERRORS"
)
_LOOKS: Final[dict[Dialect, re.Pattern[str]]] = {
    "sqlite": re.compile(rf"PRAGMA\s+(?:\w+\.)?(?:{_PRAGMAS})(?:\s*\(\s*(?:{_NAME}|'[\w .]+')\s*\))?", re.I | re.A),
    "postgres": re.compile(rf"SHOW\s+{_NAME}", re.I | re.A),
    "mysql": re.compile(
        rf"SHOW\s+(?:FULL\s+|GLOBAL\s+|SESSION\s+)?(?:{_SHOWN}){_FROM}{{0,2}}{_LIKE}"
        rf"|SHOW\s+CREATE\s+(?:TABLE|VIEW)\s+{_NAME}|(?:DESCRIBE|DESC|EXPLAIN)\s+{_NAME}",
        re.I | re.A,
    ),
}
"""Commands that only tell what there is; nothing that is evaluated can stand in them."""

_OPTIONS: Final = r"(?:\s+(?:ANALYZE|VERBOSE|EXTENDED|FORMAT\s*=\s*\w+|QUERY\s+PLAN)\b)*(?:\s*\([\w\s,]*\))?"
_EXPLAINING: Final = re.compile(rf"(?:EXPLAIN|DESCRIBE|DESC){_OPTIONS}\s+(?=SELECT\b|WITH\b|VALUES\b|\()", re.I | re.A)
"""What stands before a query whose plan is asked for; it may execute the query."""

_MARKERS: Final[dict[Dialect, re.Pattern[str]]] = {
    "sqlite": re.compile(r"\?\d*"),
    "postgres": re.compile(r"\$\d+|%s\b|%\(\w+\)s\b"),
    "mysql": re.compile(r"\?|%s\b|%\(\w+\)s\b"),
}
"""How drivers mark parameters, beside `:name`."""
_MARKING: Final = frozenset({TokenType.PLACEHOLDER, TokenType.PARAMETER, TokenType.MOD})


def statements(text: str, dialect: Dialect) -> tuple[Statement, ...]:
    """The statements of a text, classified; one that is illegible where the text cannot be cut into them."""
    if dialect != "sqlite" and _QUOTED_QUOTE.search(text):
        return (_illegible("a backslash before a quote ends a text or not, as the session is set"),)
    try:
        cut = statements_of(text, dialect)
        return tuple(_statement(_renamed(text, tokens, dialect), dialect) for tokens in cut)
    except QueryRefused as error:
        return (_illegible(str(error)),)
    except Exception as error:  # noqa: BLE001 - the parser raises whatever its code runs into
        return (_illegible(saying(error)),)


def _illegible(because: str) -> Statement:
    return Statement("write", legible=False, because=because)


def _renamed(text: str, tokens: Sequence[Token], dialect: Dialect) -> str:
    """A statement with its parameters marked as the proof wants them."""
    return "".join(_pieces(text, tokens, dialect))


def _pieces(text: str, tokens: Sequence[Token], dialect: Dialect) -> Iterator[str]:
    done = tokens[0].start
    for token in tokens:
        mark = _MARKERS[dialect].match(text, token.start) if token.token_type in _MARKING else None
        if mark is not None and token.start >= done:
            yield f"{text[done : token.start]}:p"
            done = mark.end()
    yield text[done : tokens[-1].end + 1]


def _statement(text: str, dialect: Dialect) -> Statement:
    if _LOOKS[dialect].fullmatch(text):
        return Statement("read")
    explaining = _EXPLAINING.match(text)
    try:
        query = prove(text[explaining.end() :] if explaining else text, dialect)
    except QueryRefused as error:
        return _writing(text, dialect, str(error))
    return Statement("read", query.tables)


def _writing(text: str, dialect: Dialect, because: str) -> Statement:
    """A statement that was not proved to read, for what its tree shows."""
    [tokens] = statements_of(text, dialect)
    first = tokens[0]
    word = first.text.upper()
    if word == "REPLACE":  # the parser knows nothing of it; an INSERT that deletes what is in its way
        tokens[0] = Token(TokenType.INSERT, "INSERT", first.line, first.col, first.start, first.end)
    try:
        with unheard():
            [tree] = GRAMMARS[dialect].parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, text)
    except Exception:  # noqa: BLE001 - the parser raises whatever its code runs into
        tree = None
    if isinstance(tree, _LEGIBLE):
        return Statement("write", tables_of(tree, dialect), frozenset(_traits(tree)), because=because)
    if word in _DDL_WORDS:
        return Statement("write", traits=frozenset({"ddl"}), because=because)
    return _illegible(because)


def _traits(tree: exp.Expr) -> Iterator[Trait]:
    if isinstance(tree, _DDL) or tree.find(exp.Into):
        yield "ddl"
    if isinstance(tree, exp.TruncateTable) or any(map(_changes_all, tree.find_all(exp.Update, exp.Delete))):
        yield "no_where"


def _changes_all(node: exp.Expr) -> bool:
    """Whether an UPDATE or DELETE chooses no rows; that of a MERGE has those that were matched."""
    where = node.args.get("where")
    return not isinstance(node.parent, exp.When) and (where is None or where.find(exp.Column) is None)
