"""How a query is proved: its text, its tokens, its tree, and what is written back from the tree."""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from itertools import accumulate
from threading import local
from typing import Final

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect as Grammar
from sqlglot.dialects.mysql import MySQL
from sqlglot.dialects.postgres import Postgres
from sqlglot.dialects.sqlite import SQLite
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError

from guardrail.errors import QueryRefused
from guardrail.query.proved import Dialect, Query
from guardrail.query.vocabulary import FUNCTIONS, NODES, is_internal

LONGEST: Final = 50_000
DEEPEST: Final = 40
"""Limits of a query: characters, and brackets within brackets (the parser recurses)."""


class GuardrailSQLite(SQLite):
    """SQLite, with identifiers written in back quotes.

    SQLite takes a double-quoted name that it does not know for a string, so a mistyped column would compare
    silently instead of failing; in back quotes it stays a name. https://sqlite.org/quirks.html#dblquote
    """

    class Tokenizer(SQLite.Tokenizer):
        """The first form is the one that is written."""

        IDENTIFIERS = ["`", '"', ("[", "]")]  # noqa: RUF012 (the base class declares it so)


_GRAMMARS: Final[dict[Dialect, Grammar]] = {"sqlite": GuardrailSQLite(), "postgres": Postgres(), "mysql": MySQL()}

_OPENERS: Final = {TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.L_PAREN}
_ROOTS: Final = (exp.Select, exp.SetOperation, exp.Values, exp.Subquery)
_BRACKETS: Final = {TokenType.L_PAREN: 1, TokenType.L_BRACKET: 1, TokenType.R_PAREN: -1, TokenType.R_BRACKET: -1}
_CASES: Final = {TokenType.CASE: 1, TokenType.END: -1}

# No two ways to read a text, so a failed match tries each character once. Possessive groups would say the same, but
# Python before 3.11.5 matches them wrongly.
_BLOCK: Final = r"/\*(?!M?!)(?:[^*/]|\*(?!/)|/(?!\*))*\*/"
_LINE: Final = r"[^\n]*(?![^\n])"
_BETWEEN: Final[dict[Dialect, re.Pattern[str]]] = {
    "sqlite": re.compile(rf"(?:\s|{_BLOCK}|--{_LINE})*"),
    "postgres": re.compile(rf"(?:\s|{_BLOCK}|--{_LINE})*"),
    "mysql": re.compile(rf"(?:\s|{_BLOCK}|--(?=\s|$){_LINE}|\#{_LINE})*"),
}
"""What may stand between tokens: blanks, and comments that every server ends where the parser does."""
_EXECUTABLE: Final = re.compile(r"/\*M?!")

_CALL: Final = re.compile(r"(\w+)\(.*\)", re.DOTALL)
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_TYPE: Final = re.compile(r"[A-Za-z_][\w. ]*(?:\([\d, ]*\))?(?:\[\])?")
_SYNTAX_ERROR: Final = re.compile(r"near \".*\": syntax error|incomplete input", re.DOTALL)
_UNWRITABLE: Final = re.compile("[\0\ud800-\udfff]")
_WORD: Final = re.compile(r"\w+")
_MARK: Final = re.compile("\0(\\w+)\0")

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
        with _unheard():
            return _inspected(text, dialect, functions, condition)
    except QueryRefused:
        raise
    except RecursionError:
        raise QueryRefused("it is nested too deeply to be checked; write it flatter") from None
    except Exception as error:  # noqa: BLE001
        # The parser raises its own errors, and on odd texts whatever its code runs into: not proved is refused.
        raise QueryRefused(f"it cannot be read as {dialect}: {_saying(error)}") from None


@contextmanager
def _unheard() -> Generator[None]:
    """Keep the parser's warnings (of a JSON path that is SQLite's own) out of the host's log, on this thread."""
    _inspecting.busy = True
    try:
        yield
    finally:
        _inspecting.busy = False


_inspecting: Final = local()
logging.getLogger("sqlglot").addFilter(lambda record: not getattr(_inspecting, "busy", False))


def _inspected(text: str, dialect: Dialect, functions: frozenset[str], condition: bool) -> Query:
    tokens = _tokens(text, dialect, condition)
    tree = _condition(text, tokens, dialect) if condition else _statement(text, tokens, dialect)
    for node in tree.walk():
        _check(node, dialect, FUNCTIONS[dialect] | functions)
    if dialect == "sqlite":
        _check_signs(tree, tokens)
    tree = _canonical(tree, dialect)
    parameters = _parameters(tree)
    rendered = _rendered(tree, dialect, parameters, condition)
    return Query(text, dialect, rendered, parameters, _tables(tree, dialect), functions)


def _tokens(text: str, dialect: Dialect, condition: bool) -> list[Token]:
    """The tokens of the one statement, after checks that only the text can answer."""
    if len(text) > LONGEST:
        raise QueryRefused(f"it has {len(text)} characters; at most {LONGEST} are checked")
    if _UNWRITABLE.search(text):
        raise QueryRefused("it holds a character that no database takes: NUL, or half of a surrogate pair")
    tokens = _GRAMMARS[dialect].tokenize(text)
    if not condition and tokens and tokens[0].token_type not in _OPENERS | {TokenType.SEMICOLON}:
        raise QueryRefused(f"{tokens[0].text.upper()} is not allowed: a query starts with SELECT, WITH or VALUES")
    _check_between(text, tokens, dialect)
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise QueryRefused("there is no statement in it")
    if any(token.token_type is TokenType.SEMICOLON for token in tokens):
        raise QueryRefused("it holds more than one statement; only one is run")
    _check_depth(tokens)
    return tokens


def _check_between(text: str, tokens: list[Token], dialect: Dialect) -> None:
    starts = [token.start for token in tokens]
    ends = [token.end + 1 for token in tokens]
    for left, right in zip([0, *ends], [*starts, len(text)], strict=True):
        between = text[left:right]
        if _EXECUTABLE.search(between):
            raise QueryRefused(f"the executable comment {_clipped(between.strip())} is not allowed: servers run it")
        if not _BETWEEN[dialect].fullmatch(between):
            raise QueryRefused(f"{_clipped(between.strip())} is no comment that {dialect} and the checker read alike")


def _check_depth(tokens: list[Token]) -> None:
    # How deep the parser itself can go depends on the Python that runs it; each kind counts alone, for `end` may
    # be a column as well.
    for what, steps in (("brackets", _BRACKETS), ("CASE expressions", _CASES)):
        if max(accumulate(steps.get(token.token_type, 0) for token in tokens)) > DEEPEST:
            raise QueryRefused(f"{what} are nested deeper than {DEEPEST}; write it flatter")


def _statement(text: str, tokens: list[Token], dialect: Dialect) -> exp.Expr:
    tree = _parsed(text, tokens, dialect)
    if not isinstance(tree, _ROOTS):
        raise _refusal(tree, dialect)
    return tree


def _condition(text: str, tokens: list[Token], dialect: Dialect) -> exp.Expr:
    tree = _parsed(text, tokens, dialect, condition=True)
    for node in tree.walk():
        if isinstance(node, _NO_CONDITION) or (isinstance(node, exp.In) and node.args.get("field")):
            raise QueryRefused(
                f"{_clipped(_text(node, dialect))} is not allowed in a condition: "
                "it is one expression over the row's columns, without subqueries and aggregates"
            )
    return tree


def _parsed(text: str, tokens: list[Token], dialect: Dialect, *, condition: bool = False) -> exp.Expr:
    parser = _GRAMMARS[dialect].parser(error_level=ErrorLevel.IMMEDIATE)
    parsed = parser.parse_into(exp.Condition, tokens, text) if condition else parser.parse(tokens, text)
    trees = [tree for tree in parsed if tree is not None]
    if len(trees) != 1:
        raise QueryRefused("there is no statement in it" if not trees else "it holds more than one statement")
    return trees[0]


def _check(node: exp.Expr, dialect: Dialect, functions: frozenset[str]) -> None:
    """Refuse a node that is not known to only read."""
    if type(node).__name__ not in NODES:
        _check_call(node, dialect, functions)
    match node:
        case exp.Select() if not node.expressions:
            raise QueryRefused("a SELECT without columns is not allowed")
        case exp.Identifier() if node.name.startswith("$") and not node.args.get("quoted"):
            raise QueryRefused(f"{node.name} is no parameter of a query; write :{node.name[1:]}")
        case exp.Placeholder() if not (isinstance(node.this, str) and _NAME.fullmatch(node.this)):
            raise QueryRefused(f"the parameter {_text(node, dialect)} has no name; write :name")
        case exp.Var() if not _WORD.fullmatch(node.name):
            raise QueryRefused(f"{_clipped(node.name)} is not allowed")
        case exp.DataType() if not _TYPE.fullmatch(_text(node, dialect)):
            raise QueryRefused(f"the type {_clipped(_text(node, dialect))} is not allowed")
        case exp.Table() if dialect == "sqlite" and is_internal(node.name):
            raise QueryRefused(f"{node.name} is not allowed: it is no table of the database")
        case _:
            pass


def _check_signs(tree: exp.Expr, tokens: list[Token]) -> None:
    """Refuse a `+` before an operand: the parser drops it, and SQLite converts and indexes differently then."""
    if sum(token.token_type is TokenType.PLUS for token in tokens) != len(list(tree.find_all(exp.Add))):
        raise QueryRefused("a + before a value is not allowed; leave it out, or write CAST")


def _check_call(node: exp.Expr, dialect: Dialect, functions: frozenset[str]) -> None:
    """Refuse what is no call of an allowed function under its own, unqualified name."""
    name = _called(node, dialect) if isinstance(node, exp.Func) else None
    if name is None:
        raise _refusal(node, dialect)
    if name.lower() not in functions:
        raise QueryRefused(f"the function {name} is not allowed: it is not on the list of those that only compute")
    if isinstance(node.parent, exp.Table) and node.parent.db:
        raise QueryRefused(f"the function {name} is not allowed through a schema")


def _called(node: exp.Func, dialect: Dialect) -> str | None:
    """The name under which a function is called in the text that is executed; None for other syntax."""
    if isinstance(node, exp.Anonymous):
        return node.this if isinstance(node.this, str) else None
    call = _CALL.fullmatch(_text(node, dialect))
    return call[1] if call else None


def _refusal(node: exp.Expr, dialect: Dialect) -> QueryRefused:
    kind = type(node).__name__
    what = _WORDING.get(kind) or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).upper()
    return QueryRefused(f"{what} is not allowed in a query that only reads: {_clipped(_text(node, dialect))}")


def _parameters(tree: exp.Expr) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(node.this) for node in tree.find_all(exp.Placeholder, bfs=False)))


def _tables(tree: exp.Expr, dialect: Dialect) -> tuple[str, ...]:
    """The tables read, sorted, as `table` or `schema.table`."""
    tables = [table for table in tree.find_all(exp.Table, bfs=False) if isinstance(table.this, exp.Identifier)]
    read = [table for table in tables if table.db or not _defined(table, dialect)]
    return tuple(sorted({".".join(part.name for part in table.parts) for table in read}))


def _defined(table: exp.Table, dialect: Dialect) -> bool:
    """Whether a WITH around the table's use defines its name."""
    above: exp.Expr | None = table
    inside: list[exp.Expr] = []
    while above := above.parent if above else None:
        inside.append(above)
        for cte in above.ctes if isinstance(above, exp.Query) else []:
            itself = any(cte is part for part in inside)
            recursive = dialect == "sqlite" or bool(cte.parent and cte.parent.args.get("recursive"))
            if cte.alias.lower() == table.name.lower() and (recursive or not itself):
                return True
    return False


def _canonical(tree: exp.Expr, dialect: Dialect) -> exp.Expr:
    """The tree as it is compared and written: names folded as the server would, then quoted; plain literals."""
    tree = tree.transform(_plain, copy=False)
    for identifier in tree.find_all(exp.Identifier):
        if dialect == "postgres":
            _GRAMMARS[dialect].normalize_identifier(identifier)
        identifier.set("quoted", True)
    return tree


def _plain(node: exp.Expr) -> exp.Expr:
    """A dollar-quoted text as a literal."""
    return exp.Literal.string(str(node.this)) if isinstance(node, exp.RawString | exp.Heredoc) else node


def _rendered(tree: exp.Expr, dialect: Dialect, parameters: tuple[str, ...], condition: bool) -> str:
    """What is executed, once it is shown that it reads back as the very tree that was checked."""
    writing = _writing_sqlite if dialect == "sqlite" else _writing
    marked = _text(tree.copy().transform(writing, copy=False), dialect)
    written = _MARK.sub(r":\1", marked)
    again = _parsed(written, _tokens(written, dialect, condition), dialect, condition=condition)
    if _canonical(again, dialect) != tree:
        raise QueryRefused(f"it is not kept exactly; write it like this, if this is what it means: {written}")
    match dialect:
        case "sqlite":
            _check_syntax(written, parameters, condition)
            return written
        case "postgres":
            return _MARK.sub(lambda mark: f"${parameters.index(mark[1]) + 1}", marked)
        case "mysql":
            return _MARK.sub(r"%(\1)s", marked.replace("%", "%%"))


def _writing(node: exp.Expr) -> exp.Expr:
    """A parameter as a mark that no text can hold, to be replaced by what the driver takes."""
    return exp.Var(this=f"\0{node.this}\0") if isinstance(node, exp.Placeholder) else node


def _writing_sqlite(node: exp.Expr) -> exp.Expr:
    """Likewise, without the parser's translations that would mean something else to SQLite.

    A type keeps its name, which decides how a value is converted; a comma stays a comma, as CROSS JOIN
    forbids the optimizer to reorder.
    """
    if isinstance(node, exp.DataType):
        name = "BLOB" if node.is_type("varbinary") else node.sql()
        return exp.DataType(this=exp.DataType.Type.USERDEFINED, kind=name)
    if isinstance(node, exp.Join) and node.args.get("kind") == "CROSS":
        node.set("kind", None)
    return _writing(node)


def _check_syntax(written: str, parameters: tuple[str, ...], condition: bool) -> None:
    """Let SQLite itself read the text, without running it, in a database without tables."""
    with closing(sqlite3.connect(":memory:")) as blank:
        try:
            blank.execute(f"EXPLAIN {'SELECT ' if condition else ''}{written}", dict.fromkeys(parameters))
        except sqlite3.Error as error:
            if _SYNTAX_ERROR.fullmatch(str(error)):
                raise QueryRefused(f"SQLite cannot read it: {error} in {_clipped(written)}") from None


def _text(node: exp.Expr, dialect: Dialect) -> str:
    return node.sql(_GRAMMARS[dialect], comments=False, unsupported_level=ErrorLevel.RAISE)


def _saying(error: Exception) -> str:
    """What the parser says; an error from within its code says nothing that helps."""
    if isinstance(error, ParseError) and error.errors:
        where = error.errors[0]
        return f"{where.get('description')}, line {where.get('line')}, column {where.get('col')}"
    return str(error).splitlines()[0] if isinstance(error, SqlglotError) else "the parser makes no sense of it"


def _clipped(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."
