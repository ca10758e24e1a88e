"""What a proof comes to: a query that is known to only read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

Dialect: TypeAlias = Literal["sqlite", "postgres", "mysql"]
"""The dialects that can be proved; `mysql` also covers MariaDB."""

DIALECTS: Final[tuple[Dialect, ...]] = get_args(Dialect)

LONGEST: Final = 50_000
"""The most characters of a text that is read."""


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
