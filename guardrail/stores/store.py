"""What a store is: questions in, answers out, all of one look from one read-only snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeAlias

from guardrail.errors import StoreError
from guardrail.pictures import Answer, Key, Table, Tables, Unanswered
from guardrail.query.proof import Dialect, Query
from guardrail.query.requests import Request

MOST_ANSWERED: Final = 10_000
"""How many rows a query may answer; a longer answer is refused, not cut off."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A proved query and the values of its parameters; it is answered by `Rows`."""

    query: Query
    values: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class Fetch:
    """A value of an HTTP store: what stands `at` a JSON pointer of what a request answers.

    `values` are the request's inputs. It is answered by `Rows`: of one column and one row, or of no row where there is
    no such thing.
    """

    request: Request
    at: str = ""
    values: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class Photograph:
    """A table to take a picture of; it is answered by a `Picture`.

    `name` is `store.table`, `table` the table's name in the database. `named` are columns that the picture has even
    where a store without a schema knows of no value in them. `key`: the columns that name a row (None:
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
    named: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Survey:
    """Which tables there are; it is answered by `Tables`. Each one's rows are counted up to a limit, None: not at all.

    A database may have tables that it only shows to those who know their names, such as those of other schemas; they
    may be `named`.
    """

    count_up_to: int | None = None
    named: tuple[str, ...] = ()


Question: TypeAlias = Ask | Fetch | Photograph | Survey


@dataclass(frozen=True, slots=True)
class Remark:
    """What `doctor` tells about a store: `place` is the store or `store.table`.

    An `error` makes checks fail, a `warning` may; a `note` says what is so and need not be mended.
    """

    level: Literal["note", "warning", "error"]
    place: str
    text: str


@dataclass(frozen=True, slots=True)
class Trial:
    """What an API's resources are tried with when it is examined.

    `inputs` are values of inputs by name. `keys` are the columns that contracts name as a resource's key, `columns` all
    others that they name of it, by resource.
    """

    inputs: Mapping[str, object] = field(default_factory=dict[str, object])
    keys: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])


class Store(Protocol):
    """A live datastore that is only read. Every method may be called from several threads."""

    @property
    def name(self) -> str:
        """Its name in the configuration."""
        ...

    @property
    def dialect(self) -> Dialect | None:
        """The dialect that its queries are written in; None: it takes none, and its tables have no schema."""
        ...

    def look(self, questions: Sequence[Question]) -> list[Answer]:
        """Answer all questions from one fresh snapshot, which is given up before the return.

        Never raises: what cannot be answered is `Unanswered`, and says why; everything is, when the store is away.
        """
        ...

    async def alook(self, questions: Sequence[Question]) -> list[Answer]:
        """The same without blocking the loop."""
        ...

    def for_run(self) -> Store:
        """The store as one run sees it: the same database from the first look to the last.

        A store whose database is told by a factory of the user's is bound to the one that it tells first.
        """
        ...

    def examine(self, trial: Trial | None = None) -> tuple[Remark, ...]:
        """What should be known about it before it is relied on; empty when all is well.

        `trial` is for a store without a schema, which is known by what it answers.
        """
        ...

    def close(self) -> None:
        """Give up what it holds; it is not asked again."""
        ...


def tables_of(store: Store, count_up_to: int | None = None, named: Iterable[str] = ()) -> tuple[Table, ...]:
    """The tables of a store, by name; see `Survey`. Raises `StoreError`."""
    [answer] = store.look([Survey(count_up_to, tuple(named))])
    return surveyed(answer)


def surveyed(answer: Answer) -> tuple[Table, ...]:
    """The tables that the answer to a `Survey` names. Raises `StoreError`."""
    if isinstance(answer, Unanswered):
        raise StoreError(answer.why)
    assert isinstance(answer, Tables)
    return answer.tables
