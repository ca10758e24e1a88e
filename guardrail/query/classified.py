"""What a text of SQL is classified as: its statements, and what each of them does."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Trait: TypeAlias = Literal["no_where", "ddl"]
"""What a policy may forbid: to change every row of a table; to change what tables there are and who may use them."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement: a read if that is proved, else a write.

    `tables` are those that it names, sorted, as `table` or `schema.table`, without those that a WITH defines.
    `legible` is false where nobody can tell what it does: it names no tables and has no traits then. `because` says
    why it is no read; it may quote the text.
    """

    effect: Literal["read", "write"]
    tables: tuple[str, ...] = ()
    traits: frozenset[Trait] = frozenset()
    legible: bool = True
    because: str = ""

    def forbidden(self, forbids: Collection[Trait]) -> str | None:
        """Why a policy that forbids this does not let it be executed, without a word of its text; None: it does."""
        if not self.legible:
            return "cannot be read, so that nobody can tell what it would do"
        return next((_WORDING[trait] for trait in forbids if trait in self.traits), None)


_WORDING: Final[dict[Trait, str]] = {
    "no_where": "has no WHERE that names a column, and would change every row",
    "ddl": "would change the schema or the rights in it",
}


@dataclass(frozen=True, slots=True)
class Classification:
    """What a text does: its statements in order. One that writes makes the text a write."""

    statements: tuple[Statement, ...]

    @property
    def effect(self) -> Literal["read", "write"]:
        """What executing the text does; a text without a statement counts as a write, as it is none."""
        reads = self.statements and all(statement.effect == "read" for statement in self.statements)
        return "read" if reads else "write"

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that are named, sorted."""
        return tuple(sorted({table for statement in self.statements for table in statement.tables}))

    def forbidden(self, forbids: Collection[Trait]) -> str | None:
        """Which statement a policy does not let be executed, by its number from 1, and why; None: it lets all."""
        for number, statement in enumerate(self.statements, 1):
            why = statement.forbidden(forbids)
            if why is not None:
                return f"statement {number} {why}"
        return None
