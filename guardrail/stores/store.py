"""What a store is: questions in, answers out, all of one look from one read-only snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeAlias

from guardrail.pictures import Answer, ColumnKind, Key
from guardrail.query.proof import Dialect, Query

MOST_ANSWERED: Final = 10_000
"""How many rows a query may answer; a longer answer is refused, not cut off."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A proved query and the values of its parameters; it is answered by `Rows`."""

    query: Query
    values: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class Photograph:
    """A table to take a picture of; it is answered by a `Picture`.

    `name` is `store.table`, `table` the table's name in the database. `key`: the columns that name a row (None:
    found in the schema). `where`: a proved condition, with its `values`. `ignore`: columns that are not read.
    Up to `whole_rows` rows the picture holds whole rows; above it key and row hash, and whole rows only for the
    `pinned` keys; above `most_rows` it is refused. `hashed` asks for the form of an earlier picture, so that the
    two compare; None lets the size decide.
    """

    name: str
    table: str
    key: tuple[str, ...] | None = None
    where: Query | None = None
    values: Mapping[str, object] = field(default_factory=dict[str, object])
    ignore: frozenset[str] = frozenset()
    whole_rows: int = 10_000
    most_rows: int = 1_000_000
    pinned: tuple[Key, ...] = ()
    hashed: bool | None = None


Question: TypeAlias = Ask | Photograph


@dataclass(frozen=True, slots=True)
class Table:
    """A table or view as the schema has it.

    `key` names the columns that tell its rows apart (None: nothing does), `columns` all columns, `kinds` how
    they compare, `generated` those that the database fills by itself. `rows` counts its rows up to the
    asked limit plus one (None: not counted).
    """

    name: str
    key: tuple[str, ...] | None
    columns: tuple[str, ...]
    kinds: Mapping[str, ColumnKind]
    generated: frozenset[str] = frozenset()
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Remark:
    """What `doctor` tells about a store: `place` is the store or `store.table`.

    An `error` makes checks fail, a `warning` may; a `note` says what is so and need not be mended.
    """

    level: Literal["note", "warning", "error"]
    place: str
    text: str


class Store(Protocol):
    """A live datastore that is only read. Every method may be called from several threads."""

    @property
    def name(self) -> str:
        """Its name in the configuration."""
        ...

    @property
    def dialect(self) -> Dialect:
        """The dialect that its queries are written in."""
        ...

    def look(self, questions: Sequence[Question]) -> list[Answer]:
        """Answer all questions from one fresh snapshot, which is given up before the return.

        Never raises: what cannot be answered is `Unanswered`, and says why; everything is, when the store is away.
        """
        ...

    def tables(self, count_up_to: int = 1_000_000) -> tuple[Table, ...]:
        """Its tables, by name, without those of the database itself. Raises `StoreError`."""
        ...

    def examine(self) -> tuple[Remark, ...]:
        """What should be known about it before it is relied on; empty when all is well."""
        ...

    def close(self) -> None:
        """Give up what it holds; it is not asked again."""
        ...
