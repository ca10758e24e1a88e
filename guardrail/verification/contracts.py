"""A task's contract made live: its queries proved, its tables named, ready to be asked about."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from guardrail.declare.contracts import Alternative, Check, HttpCheck, PythonCheck, Task, Watch
from guardrail.declare.durations import seconds
from guardrail.declare.texts import function_name
from guardrail.declare.values import Value, read
from guardrail.pictures import Key
from guardrail.query.proof import Dialect, Query, prove, prove_condition
from guardrail.query.requests import Request, prove_request
from guardrail.state.contract import Contract
from guardrail.state.readings import Reading
from guardrail.stores.store import Ask, Fetch, Photograph
from guardrail.verification.fitting import named_columns


@dataclass(frozen=True, slots=True)
class LiveWatch:
    """A declared table: where it lies, and how it is looked at.

    `named` are the columns of it that the contract names. A resource of an HTTP store has no schema: its columns are
    those of the rows that it has.
    """

    store: str
    table: str
    declared: Watch
    key: tuple[str, ...] | None
    where: Query | None
    named: tuple[str, ...] = ()
    has_schema: bool = True

    @property
    def place(self) -> str:
        """Its name in the contract."""
        return f"{self.store}.{self.table}"

    def photograph(
        self, inputs: Mapping[str, object], pinned: tuple[Key, ...], hashed: bool | None
    ) -> tuple[str, Photograph]:
        """The store, and the picture to be taken of the table there."""
        return self.store, Photograph(
            name=self.place,
            table=self.table,
            key=self.key,
            where=self.where,
            values=inputs,
            ignore=frozenset(self.declared.ignore),
            whole_rows=self.declared.whole_rows,
            most_rows=self.declared.most_rows,
            pinned=pinned,
            hashed=hashed,
            named=self.named,
        )


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """A proved query and the store it is for."""

    store: str
    query: Query

    def ask(self, inputs: Mapping[str, object]) -> tuple[str, Ask]:
        """The store, and the question to it."""
        return self.store, Ask(self.query, inputs)


@dataclass(frozen=True, slots=True)
class StoredReading:
    """A value of an HTTP store: the request for it, where in what that answers it stands, and what it must be."""

    store: str
    request: Request
    at: str
    reading: Reading

    def ask(self, inputs: Mapping[str, object]) -> tuple[str, Fetch]:
        """The store, and the question to it."""
        return self.store, Fetch(self.request, self.at, inputs)


ExpectedRows: TypeAlias = tuple[Mapping[str, Value], ...]
"""The rows that an answer must have, each by column, in this order."""


@dataclass(frozen=True, slots=True)
class LiveCheck:
    """A check of the end state: a query with the answer it must give (None: one true value), a value, or a function."""

    name: str
    because: str
    query: StoredQuery | StoredReading | None = None
    equals: Value | ExpectedRows | None = None
    function: Callable[..., Any] | None = None


class LiveContract:
    """What a run of the task must have done, ready to be verified."""

    def __init__(self, name: str, task: Task, dialects: Mapping[str, Dialect | None]) -> None:
        self.name = name
        self.task = task
        self.contract = Contract.of(task, name)
        self.settle = seconds(task.settle)
        self._dialects = dialects
        self._named = _named(self.contract)
        self.stores = task.stores if task.stores is not None else tuple(dialects)
        self.watched = (
            None
            if task.watched is None
            else tuple(self.watch(*_parts(place), watch) for place, watch in task.watched.items())
        )
        self.lets = {n: StoredQuery(let.store, prove(let.rows, dialects[let.store])) for n, let in task.let.items()}
        alternatives: Mapping[str, Alternative] = task.any_of or {}
        self.whens = {
            branch: StoredQuery(a.when.store, prove(a.when.sql, dialects[a.when.store]))
            for branch, a in alternatives.items()
            if a.when is not None
        }
        self.checks = tuple(_check(check, number, dialects) for number, check in enumerate(task.checks, 1))
        self.branch_checks = {
            branch: tuple(_check(check, number, dialects) for number, check in enumerate(a.checks, 1))
            for branch, a in alternatives.items()
        }

    @property
    def looks(self) -> bool:
        """Whether pictures are taken at all (a task of checks alone may watch nothing)."""
        return bool(self.contract.branches)

    def watch(self, store: str, table: str, declared: Watch) -> LiveWatch:
        """A watched table of a store."""
        dialect = self._dialects[store]
        key = (declared.key,) if isinstance(declared.key, str) else declared.key
        where = None if declared.where is None else prove_condition(declared.where, dialect)
        named = self._named.get(f"{store}.{table}", ())
        return LiveWatch(store, table, declared, key, where, named, has_schema=dialect is not None)


def _named(contract: Contract) -> dict[str, tuple[str, ...]]:
    """The columns that a contract names, by table."""
    found: dict[str, dict[str, None]] = {}
    for branch in contract.branches:
        for table, column in named_columns(branch):
            found.setdefault(table, {})[column] = None
    return {table: tuple(columns) for table, columns in found.items()}


def _parts(place: str) -> tuple[str, str]:
    store, _, table = place.partition(".")
    return store, table


def _check(check: Check, number: int, dialects: Mapping[str, Dialect | None]) -> LiveCheck:
    name = check.name or f"check {number}"
    if isinstance(check, PythonCheck):
        return LiveCheck(name, check.because, function=_function(check.python))
    if isinstance(check, HttpCheck):
        request = prove_request(check.get, check.query)
        return LiveCheck(name, check.because, StoredReading(check.store, request, check.at, Reading.of(check)))
    query = StoredQuery(check.store, prove(check.sql, dialects[check.store]))
    return LiveCheck(name, check.because, query, _expected(check.equals))


def _expected(raw: Any) -> Value | ExpectedRows | None:
    """The answer that a check expects: None is one true value, a list of mappings are rows by column."""
    if raw is True:
        return None
    rows = _rows(raw)
    if rows:
        return tuple({column: read(value) for column, value in row.items()} for row in rows)
    return read(raw)


def _rows(raw: object) -> Sequence[Mapping[str, object]]:
    """The rows that a list holds; none, where something in it is no row."""
    given = cast("Sequence[object]", raw) if isinstance(raw, (list, tuple)) else ()
    rows = [cast("Mapping[str, object]", row) for row in given if isinstance(row, Mapping)]
    return rows if len(rows) == len(given) else ()


def _function(named: str | Callable[..., Any]) -> Callable[..., Any]:
    if callable(named):
        return named
    module, name = function_name(named)
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return cast("Callable[..., Any]", found)
