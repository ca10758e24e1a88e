"""A look at a SQL server as a flow: batches of statements within one read-only transaction, and answers from their results.

Every question has a flow of its own, and they go side by side: in each round the statements of all are one batch. How
statements are written is the server's `Grammar`; who carries them out is a driver, synchronous or not.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import islice
from operator import itemgetter
from typing import Final, Protocol, TypeAlias, cast

from guardrail.errors import StoreError
from guardrail.pictures import Answer, ColumnKind, Key, Picture, Row, Rows, Table, Tables, as_spelled
from guardrail.query.proof import Dialect, Query
from guardrail.stores.answers import answered, check_dialect, missing, no_api, unanswered
from guardrail.stores.photographs import by_key, check_hashed, check_pinned, check_size, check_unique, fitted, keys
from guardrail.stores.store import MOST_ANSWERED, Ask, Fetch, Photograph, Question, Survey
from guardrail.stores.structures import packed, structure

Values: TypeAlias = Sequence[object] | Mapping[str, object]
"""The values of a statement's parameters, as the driver takes them."""

Take: TypeAlias = Callable[[Sequence[Row]], None]


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a look.

    Its rows are read if there are at most `most`. With `take` they are given to it in portions, and not kept.
    `binary`: all its columns are of types that the driver also reads in the server's binary form.
    """

    sql: str
    values: Values = ()
    most: int = 1_000_000
    take: Take | None = None
    binary: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """What a statement gave. `rows` is empty where `count` tells of more than were to be read, or they were taken."""

    columns: tuple[str, ...] = ()
    rows: Sequence[Row] = ()
    count: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """A statement could not be carried out, and why."""

    why: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Statements that do not depend on each other's results. After the `last` batch the transaction is given up."""

    statements: Sequence[Statement]
    last: bool = False


Answering: TypeAlias = Generator[Batch, Sequence[Result], Answer]
"""The flow of one question; `StoreError` is thrown into it when one of its statements fails."""

Looking: TypeAlias = Generator[Batch, Sequence[Result | Failure], list[Answer]]


class Column(Protocol):
    """A column of a table, as the server's catalog has it."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def kind(self) -> ColumnKind:
        """How its values compare."""
        ...

    @property
    def generated(self) -> bool:
        """Whether the database may fill it by itself."""
        ...

    @property
    def zoneless(self) -> bool:
        """Whether it holds days with a time of the day, and no zone."""
        ...

    @property
    def read(self) -> str:
        """The expression by which it is read."""
        ...

    @property
    def hashed(self) -> str | None:
        """The expression that goes into a row's hash: it differs where values differ.

        None: it is a document that the server cannot hash by its structure, so that it is read, and hashed here.
        """
        ...

    def parameter(self, value: object) -> object | None:
        """A value as a parameter that is compared with the column; None where no row can have it."""
        ...


@dataclass(frozen=True, slots=True)
class Described:
    """A table or view as the server's catalog has it; see `Table`."""

    name: str
    key: tuple[str, ...] | None
    columns: Mapping[str, Column]
    hides_rows: bool = False
    keys: tuple[tuple[str, ...], ...] = ()

    @property
    def table(self) -> Table:
        """The same for those who ask which tables there are."""
        return Table(
            self.name,
            self.key,
            tuple(self.columns),
            {name: column.kind for name, column in self.columns.items()},
            frozenset(name for name, column in self.columns.items() if column.generated),
            hides_rows=self.hides_rows,
            keys=self.keys,
            zoneless=frozenset(name for name, column in self.columns.items() if column.zoneless),
        )


@dataclass(frozen=True, slots=True)
class Scope:
    """The rows of a table that a picture covers: those that meet a condition, or have a key."""

    table: str
    where: Query | None = None
    values: Mapping[str, object] = field(default_factory=dict[str, object])
    key: Sequence[tuple[Column, object]] = ()


class Grammar(Protocol):
    """How the statements of a look are written for one server."""

    @property
    def dialect(self) -> Dialect:
        """The dialect of the queries that it takes."""
        ...

    @property
    def server(self) -> str:
        """The server's name in messages."""
        ...

    def ask(self, question: Ask, most: int) -> Statement:
        """A query with its values bound, of which up to `most` rows are read. Raises `StoreError`."""
        ...

    def names(self) -> Statement:
        """Asks for the names of all tables, one a row, without the server's own."""
        ...

    def schema(self, table: str) -> Sequence[Statement]:
        """Asks for what `described` takes."""
        ...

    def described(self, table: str, results: Sequence[Result]) -> Described | None:
        """The table or view of this name; None where there is none."""
        ...

    def count(self, table: str, most: int) -> Statement:
        """Asks for the number of a table's rows, counted up to a limit."""
        ...

    def hash(self, hashed: Sequence[str]) -> str:
        """The expression for a hash of expressions, at least one, which is read as `bytes`."""
        ...

    def select(self, read: Sequence[str], scope: Scope, most: int, take: Take | None = None) -> Statement:
        """Asks for expressions of the rows in scope, and for one row more than `most`. Raises `StoreError`."""
        ...


def look(questions: Sequence[Question], grammar: Grammar, store: str) -> Looking:
    """The flow of a look. A statement that fails costs the question that it is for."""
    flows = [_answering(question, grammar) for question in questions]
    answers: dict[int, Answer] = {}
    wanted: dict[int, Batch] = {}

    def go_on(number: int, given: Sequence[Result] | StoreError | None) -> None:
        """Let a flow go on until it wants another batch or has its answer."""
        wanted.pop(number, None)
        flow = flows[number]
        try:
            wanted[number] = flow.throw(given) if isinstance(given, StoreError) else _send(flow, given)
        except StopIteration as done:
            answers[number] = done.value
        except StoreError as error:
            answers[number] = unanswered(store, questions[number], str(error))

    for number in range(len(flows)):
        go_on(number, None)
    while wanted:
        # What is the last of its question waits for the last batch of all, where it holds nobody up.
        batches = {number: batch for number, batch in wanted.items() if not batch.last} or dict(wanted)
        every = Batch(
            [statement for batch in batches.values() for statement in batch.statements],
            last=all(batch.last for batch in batches.values()),
        )
        results = iter((yield every))
        for number, batch in batches.items():
            go_on(number, _own(islice(results, len(batch.statements))))
    return [answers[number] for number in range(len(flows))]


def _send(flow: Answering, given: Sequence[Result] | None) -> Batch:
    return next(flow) if given is None else flow.send(given)


def _own(results: Iterable[Result | Failure]) -> list[Result] | StoreError:
    """The results of a question's batch; the first failure among them."""
    good: list[Result] = []
    for result in list(results):
        if isinstance(result, Failure):
            return StoreError(result.why)
        good.append(result)
    return good


def _answering(question: Question, grammar: Grammar) -> Answering:
    check_dialect(question, grammar.dialect, grammar.server)
    match question:
        case Ask():
            return (yield from _rows(question, grammar))
        case Photograph():
            return (yield from _picture(question, grammar))
        case Fetch():
            raise no_api(grammar.server)
        case Survey():
            return (yield from _tables(question, grammar))


def _rows(question: Ask, grammar: Grammar) -> Generator[Batch, Sequence[Result], Rows]:
    [result] = yield Batch([grammar.ask(question, MOST_ANSWERED)], last=True)
    return answered(result.columns, result.rows, result.count)


def _tables(question: Survey, grammar: Grammar) -> Generator[Batch, Sequence[Result], Tables]:
    names = yield from _names(grammar)
    schemas = {name: grammar.schema(name) for name in (*names, *question.named)}
    count_up_to = question.count_up_to
    counting = count_up_to is not None
    results = iter((yield Batch([s for schema in schemas.values() for s in schema], last=not counting)))
    described = [grammar.described(name, list(islice(results, len(schema)))) for name, schema in schemas.items()]
    found = [one.table for one in described if one is not None]
    if count_up_to is None or not found:
        return Tables(tuple(found))
    counts = yield Batch([grammar.count(table.name, count_up_to + 1) for table in found], last=True)
    return Tables(tuple(replace(table, rows=_number(count)) for table, count in zip(found, counts, strict=True)))


def _names(grammar: Grammar) -> Generator[Batch, Sequence[Result], list[str]]:
    [result] = yield Batch([grammar.names()])
    return [str(name) for name, *_ in result.rows]


def _number(result: Result) -> int:
    return int(str(result.rows[0][0]))


def _picture(question: Photograph, grammar: Grammar) -> Generator[Batch, Sequence[Result], Picture]:
    described = grammar.described(question.table, (yield Batch(grammar.schema(question.table))))
    if described is None:
        names = yield from _names(grammar)
        spelled = as_spelled(question.table, names)
        if spelled == question.table:
            raise StoreError(missing(question.table, names))
        return (yield from _picture(replace(question, table=spelled), grammar))
    table = described.table
    key, columns = fitted(question, table)
    check_pinned(question, key)
    return (yield from _taken(question, grammar, table, key, [described.columns[name] for name in columns]))


def _taken(
    question: Photograph, grammar: Grammar, table: Table, key: tuple[str, ...], columns: Sequence[Column]
) -> Generator[Batch, Sequence[Result], Picture]:
    """The picture of these columns, in the form that the number of rows asks for."""
    whole = None if question.hashed else (yield from _whole(question, grammar, columns, key))
    if whole is None:
        rows, hashes = yield from _hashed(question, grammar, columns, key)
    else:
        rows, hashes = whole, None
    kinds: dict[str, ColumnKind] = {column.name: column.kind for column in columns}
    generated = table.generated.intersection(kinds)
    return Picture(question.name, key, tuple(kinds), kinds, rows, hashes, generated, table.hides_rows)


def _whole(
    question: Photograph, grammar: Grammar, columns: Sequence[Column], key: tuple[str, ...]
) -> Generator[Batch, Sequence[Result], dict[Key, Row] | None]:
    """The whole rows by key; None where there are too many of them, and their hashes are to be kept."""
    most = question.most_rows if question.hashed is False else min(question.whole_rows, question.most_rows)
    scope = Scope(question.table, question.where, question.values)
    select = grammar.select([column.read for column in columns], scope, most)
    [result] = yield Batch([select], last=question.hashed is False)
    check_size(result.count, question.most_rows)
    return None if result.count > most else by_key(result.rows, key)


_DIGEST: Final = 16
"""How many bytes a hash has that is made here."""

_MOST_ALIKE: Final = 100
"""How many rows are read of one key: to a server several may be equal that differ, such as `A` and `a`."""


def _hashed(
    question: Photograph, grammar: Grammar, columns: Sequence[Column], key: tuple[str, ...]
) -> Generator[Batch, Sequence[Result], tuple[dict[Key, Row], dict[Key, bytes]]]:
    """The whole rows of the pinned keys, and the hashes of all."""
    found: dict[Key, bytes] = {}
    scope = Scope(question.table, question.where, question.values)
    read = [column.read for column in columns]
    hashed = [column.hashed for column in columns if column.hashed is not None]
    here = [column.read for column in columns if column.hashed is None]
    hashes = grammar.select(
        [*read[: len(key)], grammar.hash(hashed or read[: len(key)]), *here],
        scope,
        question.most_rows,
        _taking(found, len(key)),
    )
    pinned = [
        grammar.select(read, replace(scope, key=named), _MOST_ALIKE)
        for values in question.pinned
        if (named := _named(columns, values)) is not None
    ]
    result, *results = yield Batch([hashes, *pinned], last=True)
    check_size(result.count, question.most_rows)
    check_unique(result.count, len(found), key)
    check_hashed(found)
    rows = [row for one in results for row in one.rows]
    return dict(zip(keys(rows, len(key)), rows, strict=True)), found


def _named(columns: Sequence[Column], values: Key) -> Sequence[tuple[Column, object]] | None:
    """The columns of a key with their values as parameters; None where no row can have one of them."""
    named = [
        (column, value if value is None else column.parameter(value))
        for column, value in zip(columns, values, strict=False)
    ]
    lost = any(parameter is None and value is not None for (_, parameter), value in zip(named, values, strict=True))
    return None if lost else named


def _taking(found: dict[Key, bytes], width: int) -> Take:
    """Collects hashes by key, from rows of both and, behind them, of documents that belong to the hash."""

    def take(rows: Sequence[Row]) -> None:
        hashes = cast("Iterable[bytes]", map(itemgetter(width), rows))
        if rows and len(rows[0]) > width + 1:
            hashes = [_with(of_others, row[width + 1 :]) for of_others, row in zip(hashes, rows, strict=True)]
        found.update(zip(keys(rows, width), hashes, strict=True))

    return take


def _with(of_others: bytes, documents: Row) -> bytes:
    """The hash of a row of which the server has hashed all but the documents; nothing where it could not do that."""
    if not of_others:
        return of_others
    return blake2b(packed((of_others, *map(structure, documents))), digest_size=_DIGEST).digest()
