"""A task's contract made ready: its values read once, its alternatives side by side."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, TypeVar

from guardrail.declare.contracts import (
    Allowance,
    AllowedDelete,
    AllowedInsert,
    AllowedUpdate,
    Deleted,
    Expectation,
    Inserted,
    Loosely,
    Task,
    Updated,
    Watch,
)
from guardrail.declare.values import Reference, Value, read
from guardrail.pictures import as_spelled

T = TypeVar("T")

Deed: TypeAlias = Literal["update", "insert", "delete"]
"""What is done to a row."""


@dataclass(frozen=True, slots=True)
class Watched:
    """How a watched table is looked at: columns left out, columns compared loosely, and whether others write.

    `key` holds the key columns, where they are declared.
    """

    ignore: frozenset[str] = frozenset()
    compare: Mapping[str, Loosely] = field(default_factory=dict[str, Loosely])
    shared: bool = False
    key: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Expected:
    """A change that must have happened.

    `key` (updates and deletes) finds the row, by columns that need not be the table's key. `each` is the list of
    which every item is expected, `name` what the row is called in other expectations.
    """

    deed: Deed
    table: str
    key: Mapping[str, Value] = field(default_factory=dict[str, Value])
    values: Mapping[str, Value] = field(default_factory=dict[str, Value])
    count: int = 1
    each: Reference | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Allowed:
    """A change that may happen: of the row `key` (None: any), in `columns` (None: any), to `values`, `most` times."""

    deed: Deed
    table: str
    key: Mapping[str, Value] | None = None
    columns: frozenset[str] | None = None
    values: Mapping[str, Value] = field(default_factory=dict[str, Value])
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """One way in which the task may end well; `conditional` says that a `when` chooses it."""

    name: str | None
    expected: tuple[Expected, ...]
    allowed: tuple[Allowed, ...]
    conditional: bool = False


@dataclass(frozen=True, slots=True)
class Contract:
    """What a task must have done to the state.

    `branches` holds the alternatives of `any_of` (each with what the task itself expects and allows), or one without
    a name; it is empty for a task of checks alone that watches nothing, of which no change is judged. `watched` holds
    the declared tables; None: every table of the task's stores is watched.
    """

    task: str
    branches: tuple[Branch, ...]
    watched: Mapping[str, Watched] | None

    @classmethod
    def of(cls, task: Task, name: str) -> Contract:
        """The contract of a task. ValueError: a value cannot be read (the loader has said so with its line)."""
        declared = task.watched
        watched = None if declared is None else {table: _watched(watch) for table, watch in declared.items()}
        return cls(name, _branches(task), watched)

    def watch(self, table: str) -> Watched:
        """How a table is looked at."""
        return Watched() if self.watched is None else self.watched.get(table, Watched())

    def spelled(self, columns: Mapping[str, Collection[str]]) -> Contract:
        """The contract with columns named as the tables spell them, of which these are the columns."""
        spell = _Spelling(columns)
        watched = self.watched and {table: spell.watched(table, watched) for table, watched in self.watched.items()}
        return replace(self, branches=tuple(map(spell.branch, self.branches)), watched=watched)


@dataclass(frozen=True, slots=True)
class _Spelling:
    """The columns of tables, by which what is said of them is spelled."""

    columns: Mapping[str, Collection[str]]

    def branch(self, branch: Branch) -> Branch:
        return replace(
            branch,
            expected=tuple(map(self._expected, branch.expected)),
            allowed=tuple(map(self._allowed, branch.allowed)),
        )

    def watched(self, table: str, said: Watched) -> Watched:
        return replace(
            said,
            ignore=frozenset(self._names(table, said.ignore)),
            compare=self._by_name(table, said.compare),
            key=tuple(self._names(table, said.key)),
        )

    def _expected(self, said: Expected) -> Expected:
        return replace(said, key=self._by_name(said.table, said.key), values=self._by_name(said.table, said.values))

    def _allowed(self, said: Allowed) -> Allowed:
        return replace(
            said,
            key=said.key and self._by_name(said.table, said.key),
            columns=said.columns and frozenset(self._names(said.table, said.columns)),
            values=self._by_name(said.table, said.values),
        )

    def _names(self, table: str, names: Iterable[str]) -> Iterator[str]:
        return (as_spelled(name, self.columns.get(table, ())) for name in names)

    def _by_name(self, table: str, said: Mapping[str, T]) -> Mapping[str, T]:
        """What is said of columns; as it was said where two names would become one."""
        spelled = dict(zip(self._names(table, said), said.values(), strict=True))
        return spelled if len(spelled) == len(said) else said


def _watched(watch: Watch) -> Watched:
    key = (watch.key,) if isinstance(watch.key, str) else watch.key or ()
    return Watched(frozenset(watch.ignore), watch.compare, watch.shared, key)


def _branches(task: Task) -> tuple[Branch, ...]:
    expected, allowed = _expected(task.expect or ()), tuple(map(_allowed, task.allow))
    if task.any_of:
        return tuple(
            Branch(
                name,
                (*expected, *_expected(branch.expect)),
                (*allowed, *map(_allowed, branch.allow)),
                branch.when is not None,
            )
            for name, branch in task.any_of.items()
        )
    judged = task.expect is not None or task.watch is not None
    return (Branch(None, expected, allowed),) if judged else ()


def _expected(expectations: Literal["nothing"] | Sequence[Expectation]) -> tuple[Expected, ...]:
    return () if expectations == "nothing" else tuple(_one_expected(each) for each in expectations)


def _one_expected(said: Expectation) -> Expected:
    match said:
        case Updated():
            return Expected(
                "update", said.updated, values_of(said.key), values_of(said.values), 1, _each(said.each), said.name
            )
        case Inserted():
            values = values_of(said.values)
            return Expected("insert", said.inserted, {}, values, said.count, _each(said.each), said.name)
        case Deleted():
            return Expected("delete", said.deleted, values_of(said.key), {}, 1, _each(said.each))


def _allowed(said: Allowance) -> Allowed:
    match said:
        case AllowedUpdate():
            columns = None if said.columns is None else frozenset(said.columns)
            return Allowed("update", said.updated, _key(said.key), columns, values_of(said.values), said.max)
        case AllowedInsert():
            return Allowed("insert", said.inserted, values=values_of(said.values), most=said.max)
        case AllowedDelete():
            return Allowed("delete", said.deleted, _key(said.key), most=said.max)


def values_of(raw: Mapping[str, Any]) -> dict[str, Value]:
    """The values of an expectation by column. ValueError: one cannot be read, with its column."""
    return {column: _value_of(column, value) for column, value in raw.items()}


def _value_of(column: str, raw: object) -> Value:
    try:
        return read(raw)
    except ValueError as error:
        raise ValueError(f"{column}: {error}") from error


def _key(raw: Mapping[str, Any] | None) -> dict[str, Value] | None:
    return None if raw is None else values_of(raw)


def _each(raw: str | None) -> Reference | None:
    if raw is None:
        return None
    value = read(raw)
    if isinstance(value, Reference):
        return value
    raise ValueError(f"each: {raw!r} is no reference; write ${raw}")
