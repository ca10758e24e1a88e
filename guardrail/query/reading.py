"""How a query is read: its text, its tokens, and the tree that the parser makes of them."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from itertools import accumulate, zip_longest
from typing import ClassVar, Final

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect as Grammar
from sqlglot.dialects.mysql import MySQL
from sqlglot.dialects.postgres import Postgres
from sqlglot.dialects.sqlite import SQLite
from sqlglot.errors import ErrorLevel

from guardrail.errors import QueryRefused
from guardrail.query.proved import LONGEST, Dialect

DEEPEST: Final = 40
"""The most brackets within brackets: the parser recurses."""


class GuardrailSQLite(SQLite):
    """SQLite, with identifiers written in back quotes.

    SQLite takes a double-quoted name that it does not know for a string, so a mistyped column would compare
    silently instead of failing; in back quotes it stays a name. https://sqlite.org/quirks.html#dblquote
    """

    class Tokenizer(SQLite.Tokenizer):
        """The first form is the one that is written."""

        IDENTIFIERS = ["`", '"', ("[", "]")]  # noqa: RUF012 (the base class declares it so)


class _WholeSQLite(GuardrailSQLite):
    class Tokenizer(GuardrailSQLite.Tokenizer):
        COMMANDS: ClassVar[set[TokenType]] = set()


class _WholePostgres(Postgres):
    class Tokenizer(Postgres.Tokenizer):
        COMMANDS: ClassVar[set[TokenType]] = set()


class _WholeMySQL(MySQL):
    class Tokenizer(MySQL.Tokenizer):
        COMMANDS: ClassVar[set[TokenType]] = set()


_WHOLE: Final[dict[Dialect, Grammar]] = {"sqlite": _WholeSQLite(), "postgres": _WholePostgres(), "mysql": _WholeMySQL()}
"""The grammars, but that also what follows a command's word (EXPLAIN, REPLACE) is cut into tokens."""

GRAMMARS: Final[dict[Dialect, Grammar]] = {"sqlite": GuardrailSQLite(), "postgres": Postgres(), "mysql": MySQL()}

_OPENERS: Final = {TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.L_PAREN}
_BRACKETS: Final = {TokenType.L_PAREN: 1, TokenType.L_BRACKET: 1, TokenType.R_PAREN: -1, TokenType.R_BRACKET: -1}
_CASES: Final = {TokenType.CASE: 1, TokenType.END: -1}
_BEFORE_AN_ARGUMENT: Final = {TokenType.L_PAREN, TokenType.COMMA}
_MOMENTS: Final = {TokenType.DATE, TokenType.TIME, TokenType.TIMESTAMPTZ}

# No two ways to read a text, so a failed match tries each character once. Possessive groups would say the same, but
# Python before 3.11.5 matches them wrongly.
_BLOCK: Final = r"/\*(?!M?!)(?:[^*/]|\*(?!/)|/(?!\*))*\*/"
_LINE: Final = r"[^\n]*(?![^\n])"
_BETWEEN: Final[dict[Dialect, re.Pattern[str]]] = {
    "sqlite": re.compile(rf"(?:\s|{_BLOCK}|--{_LINE})*", re.ASCII),
    "postgres": re.compile(rf"(?:\s|{_BLOCK}|--{_LINE})*", re.ASCII),
    "mysql": re.compile(rf"(?:\s|{_BLOCK}|--(?=\s|$){_LINE}|\#{_LINE})*", re.ASCII),
}
"""What may stand between tokens: blanks, and comments that every server ends where the parser does."""
_EXECUTABLE: Final = re.compile(r"/\*M?!")
_UNWRITABLE: Final = re.compile("[\0\ud800-\udfff]")


def tokens_of(text: str, dialect: Dialect, condition: bool) -> list[Token]:
    """The tokens of the one statement, after checks that only the text can answer. Raises `QueryRefused`."""
    tokens = _cut(text, GRAMMARS[dialect])
    if not condition and tokens and tokens[0].token_type not in _OPENERS | {TokenType.SEMICOLON}:
        raise QueryRefused(f"{tokens[0].text.upper()} is not allowed: a query starts with SELECT, WITH or VALUES")
    _check_between(text, tokens, dialect)
    _check_spelling(text, tokens, dialect)
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise QueryRefused("there is no statement in it")
    if any(token.token_type is TokenType.SEMICOLON for token in tokens):
        raise QueryRefused("it holds more than one statement; only one is run")
    _check_depth(tokens)
    return tokens


def statements_of(text: str, dialect: Dialect) -> list[list[Token]]:
    """The tokens of each statement of a text, whatever it does, after the same checks.

    Raises `QueryRefused`, and whatever the tokenizer raises.
    """
    tokens = _cut(text, _WHOLE[dialect])
    _check_between(text, tokens, dialect)
    _check_spelling(text, tokens, dialect)
    found: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            found.append([])
        else:
            found[-1].append(token)
    cut = [statement for statement in found if statement]
    for statement in cut:
        _check_depth(statement)
    return cut


def tree_of(text: str, tokens: Sequence[Token], dialect: Dialect, *, condition: bool) -> exp.Expr:
    """The tree of the one statement or expression. Raises `QueryRefused`, and whatever the parser raises."""
    parser = GRAMMARS[dialect].parser(error_level=ErrorLevel.IMMEDIATE)
    prepared = [*_prepared(tokens, dialect)]
    parsed = parser.parse_into(exp.Condition, prepared, text) if condition else parser.parse(prepared, text)
    trees = [tree for tree in parsed if tree is not None]
    if len(trees) != 1:
        raise QueryRefused("there is no statement in it" if not trees else "it holds more than one statement")
    return trees[0]


def text_of(node: exp.Expr, dialect: Dialect) -> str:
    """The node as the dialect writes it, without comments."""
    return node.sql(GRAMMARS[dialect], comments=False, unsupported_level=ErrorLevel.RAISE)


def clipped(text: str) -> str:
    """A part of a query, short enough for a message."""
    return text if len(text) <= 80 else f"{text[:77]}..."


def _cut(text: str, grammar: Grammar) -> list[Token]:
    if len(text) > LONGEST:
        raise QueryRefused(f"it has {len(text)} characters; at most {LONGEST} are checked")
    if _UNWRITABLE.search(text):
        raise QueryRefused("it holds a character that no database takes: NUL, or half of a surrogate pair")
    return grammar.tokenize(text)


def _check_between(text: str, tokens: Sequence[Token], dialect: Dialect) -> None:
    starts = [token.start for token in tokens]
    ends = [token.end + 1 for token in tokens]
    for left, right in zip([0, *ends], [*starts, len(text)], strict=True):
        between = text[left:right]
        if _EXECUTABLE.search(between):
            raise QueryRefused(f"the executable comment {clipped(between.strip())} is not allowed: servers run it")
        if not _BETWEEN[dialect].fullmatch(between):
            raise QueryRefused(f"{clipped(between.strip())} is no comment that {dialect} and the checker read alike")


def _check_spelling(text: str, tokens: Sequence[Token], dialect: Dialect) -> None:
    """Refuse numbers and names that a server reads otherwise than the parser."""
    for token, following in zip_longest(tokens, tokens[1:]):
        written = text[token.start : token.end + 1]
        word = following and (following.text[:1].isalpha() or following.text[:1] == "_")
        if token.token_type is TokenType.NUMBER and following and following.start == token.end + 1 and word:
            raise QueryRefused(f"{clipped(written + following.text)} is no number that every server reads alike")
        if dialect != "sqlite" and written[:2].lower() == "0x":
            raise QueryRefused(f"{clipped(written)} is not allowed; write the number, or x'..' for a text")
        if dialect == "postgres" and written[:1] == '"' and text[token.start - 2 : token.start].lower() == "u&":
            raise QueryRefused(f"U&{clipped(written)} is not allowed; write the name without escapes")


def _check_depth(tokens: Sequence[Token]) -> None:
    # How deep the parser itself can go depends on the Python that runs it; each kind counts alone, for `end` may
    # be a column as well.
    for what, steps in (("brackets", _BRACKETS), ("CASE expressions", _CASES)):
        if max(accumulate(steps.get(token.token_type, 0) for token in tokens)) > DEEPEST:
            raise QueryRefused(f"{what} are nested deeper than {DEEPEST}; write it flatter")


def _prepared(tokens: Sequence[Token], dialect: Dialect) -> Generator[Token]:
    """The tokens in the form that the parser translates least.

    It takes a call of a function that it knows for that function's idea, and writes another call or an expression
    that comes close (`log10(x)` as `log(10, x)`, which rounds differently); told so, it keeps call and name.
    A column before `->` as an argument would be a parameter of a lambda, were it not in brackets; `TIME '..'` would
    be a cast, which cuts off MySQL's fractions.
    """
    before: Token | None = None
    for token, after in zip_longest(tokens, tokens[1:]):
        argument = before and before.token_type in _BEFORE_AN_ARGUMENT
        moment = dialect == "mysql" and before and before.token_type in _MOMENTS
        brackets = 0
        if argument and after and after.token_type is TokenType.ARROW:
            brackets = 2
        elif moment and token.token_type is TokenType.STRING:
            brackets = 1
        yield from (_bracket(TokenType.L_PAREN, "(", token) for _ in range(brackets))
        if token.token_type is TokenType.R_PAREN:
            token.comments.append(exp.SQLGLOT_ANONYMOUS)
        yield token
        yield from (_bracket(TokenType.R_PAREN, ")", token) for _ in range(brackets))
        before = token


def _bracket(kind: TokenType, text: str, beside: Token) -> Token:
    return Token(kind, text, beside.line, beside.col, beside.start, beside.end, [exp.SQLGLOT_ANONYMOUS])
