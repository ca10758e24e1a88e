"""A contract: what a task must have done to the state.

Values of an expectation are written as they stand in a file and read once when the configuration is made
live: a plain value, `$name` (an input, a `let` row, an `as` row, `$each`), `$$` for a literal dollar, or one
of the forms below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

from guardrail.declare.choices import BY_FORM, ITEMS, KEYS, PLAIN, by_key, kind, one_of
from guardrail.declare.durations import Duration
from guardrail.declare.matchers import TypeName
from guardrail.declare.model import Count, Declaration, Flag, Positive
from guardrail.declare.resources import HttpReading, Key
from guardrail.declare.texts import Filled, Name, Pointer, Zone, function_name
from guardrail.pictures import ColumnKind


class From(Declaration):
    """A late-bound input: bound once, by an earlier good result of `tool`, at a JSON pointer."""

    tool: Filled
    at: Pointer


class Input(Declaration):
    """An input of a task. With `source` (`from` in a file) it is bound during the run."""

    type: TypeName = "any"
    source: From | None = Field(default=None, validation_alias="from", serialization_alias="from")
    optional: Flag = False


class Let(Declaration):
    """Rows read in the before-picture's snapshot, for use as `$name.column` or in `each`."""

    store: str
    rows: str


def _tolerance(value: object) -> object:
    try:
        distance = Decimal(str(value)) if isinstance(value, (str, int, float, Decimal)) else None
    except InvalidOperation:
        distance = None
    if distance is None or isinstance(value, bool) or not distance.is_finite() or distance < 0:
        raise ValueError("must be a number from 0")
    return value


Tolerance: TypeAlias = Annotated[str | int | Decimal | float, BeforeValidator(_tolerance)]
"""By how much two numbers may differ."""


class Loosely(Declaration):
    """How a column compares more loosely than by its type.

    `case` and `blanks`: `ignore` folds them. `unordered`: lists compare as multisets. `tolerance`: numbers
    may differ by so much. `zone`: instants without an offset are read in this IANA zone. `kind`: the
    column compares as this kind whatever its declared type.
    """

    case: Literal["exact", "ignore"] = "exact"
    blanks: Literal["exact", "ignore"] = "exact"
    unordered: Flag = False
    tolerance: Tolerance | None = None
    zone: Zone | None = None
    kind: ColumnKind | None = None


class Watch(Declaration):
    """A watched table: `store.table` is its name in the contract; for an HTTP store, `store.resource`.

    key: the columns that name a row (found in the schema, or in the resource's declaration, when left out).
    where: one expression without subqueries over the table's columns, `:name` takes an input; not for resources.
    ignore: columns that may change freely.
    compare: columns that compare loosely.
    shared: others write here too: an unattributed change is a warning, not a failure.
    whole_rows: up to how many rows whole rows are kept; above it key and row hash.
    most_rows: above how many rows the picture is refused.
    """

    key: Key | None = None
    where: str | None = None
    ignore: tuple[Filled, ...] = ()
    compare: Mapping[Filled, Loosely] = {}
    shared: Flag = False
    whole_rows: Count = 10_000
    most_rows: Positive = 1_000_000


Columns: TypeAlias = Annotated[Mapping[Filled, Any], Field(min_length=1)]
"""Values by column, at least one."""


class Updated(Declaration):
    """A row that must have been updated; columns that are not named must be as they were."""

    updated: Filled
    key: Columns
    values: Columns
    each: str | None = None
    name: Name | None = Field(default=None, validation_alias="as", serialization_alias="as")


class Inserted(Declaration):
    """A row that must have been inserted; it is found by its content. Columns not named are open."""

    inserted: Filled
    values: Mapping[Filled, Any]
    count: Positive = 1
    each: str | None = None
    name: Name | None = Field(default=None, validation_alias="as", serialization_alias="as")


class Deleted(Declaration):
    """A row that must have been deleted."""

    deleted: Filled
    key: Columns
    each: str | None = None


Expectation = Updated | Inserted | Deleted

_Expectation: TypeAlias = Annotated[
    Annotated[Updated, kind("updated")] | Annotated[Inserted, kind("inserted")] | Annotated[Deleted, kind("deleted")],
    by_key("updated", "inserted", "deleted"),
    one_of("updated", "inserted", "deleted"),
]


def _expected(items: tuple[Expectation, ...]) -> tuple[Expectation, ...]:
    if not items:
        raise ValueError(
            "is an empty list, which says nothing; to say that nothing may change, write `expect: nothing`"
        )
    return items


_Expectations: TypeAlias = Annotated[
    Annotated[Literal["nothing"], PLAIN] | Annotated[tuple[_Expectation, ...], AfterValidator(_expected), ITEMS],
    BY_FORM,
]


class AllowedUpdate(Declaration):
    """Updates that may happen and need not: of the row `key` (or any), of the `columns` (or any)."""

    updated: Filled
    key: Columns | None = None
    columns: tuple[Filled, ...] | None = None
    values: Mapping[Filled, Any] = {}
    max: Positive | None = None


class AllowedInsert(Declaration):
    """Inserts that may happen and need not."""

    inserted: Filled
    values: Mapping[Filled, Any] = {}
    max: Positive | None = None


class AllowedDelete(Declaration):
    """Deletes that may happen and need not."""

    deleted: Filled
    key: Columns | None = None
    max: Positive | None = None


Allowance = AllowedUpdate | AllowedInsert | AllowedDelete

_Allowance: TypeAlias = Annotated[
    Annotated[AllowedUpdate, kind("updated")]
    | Annotated[AllowedInsert, kind("inserted")]
    | Annotated[AllowedDelete, kind("deleted")],
    by_key("updated", "inserted", "deleted"),
    one_of("updated", "inserted", "deleted"),
]


class When(Declaration):
    """A query on the before-state: one row with one true value chooses this alternative."""

    store: str
    sql: str


class SqlCheck(Declaration):
    """A query on the end state: one row with one true value, or exactly `equals`.

    `equals` is a scalar for one row with one value, or a list of rows (mappings).
    """

    store: str
    sql: str
    equals: Any = True
    name: str = ""
    because: str = ""


def _function(value: object) -> object:
    if isinstance(value, str):
        function_name(value)
    elif not callable(value):
        raise ValueError("must be module:function")
    return value


class HttpCheck(HttpReading):
    """A value of an HTTP store at the end."""

    name: str = ""
    because: str = ""


class PythonCheck(Declaration):
    """A Python callable, or `module:function`; takes a `guardrail.State`, answers true, false or a text that says what is wrong."""

    python: Annotated[str | Callable[..., Any], BeforeValidator(_function)]
    name: str = ""
    because: str = ""


Check = SqlCheck | HttpCheck | PythonCheck

_Check: TypeAlias = Annotated[
    Annotated[SqlCheck, kind("sql")] | Annotated[HttpCheck, kind("get")] | Annotated[PythonCheck, kind("python")],
    by_key("sql", "get", "python"),
    one_of("sql", "get", "python"),
]


class Alternative(Declaration):
    """One way in which a task may end well."""

    when: When | None = None
    expect: _Expectations = ()
    allow: tuple[_Allowance, ...] = ()
    checks: tuple[_Check, ...] = ()


class Task(Declaration):
    """A task's contract.

    Without `watch`, every table of the task's stores is watched, up to `most_rows` rows a table; with it, the
    tables that it names and those that expectations and allowances name (see `watched`). `settle`
    is how long positive expectations may take to become true ("5s", "200ms"). `expect` or `any_of` must be
    given, or `checks`; `expect: nothing` says that nothing may change.
    """

    description: str = ""
    inputs: Mapping[Name, Annotated[Annotated[TypeName, PLAIN] | Annotated[Input, KEYS], BY_FORM]] = {}
    let: Mapping[Name, Let] = {}
    stores: tuple[Filled, ...] | None = None
    watch: Mapping[str, Watch] | None = None
    most_rows: Positive = 10_000
    expect: _Expectations | None = None
    any_of: Mapping[Filled, Alternative] | None = None
    allow: tuple[_Allowance, ...] = ()
    checks: tuple[_Check, ...] = ()
    settle: Duration = "0s"
    on_silent_failure: Literal["raise", "report"] | None = None

    @property
    def watched(self) -> Mapping[str, Watch] | None:
        """The watched tables: those declared, and whole, those that are expected or allowed to change; None: all."""
        if self.watch is None:
            return None
        endings: tuple[Task | Alternative, ...] = (self, *(self.any_of or {}).values())
        named = (table for ending in endings for table in _subjects(ending))
        return {**self.watch, **{table: Watch() for table in named if table not in self.watch}}


def subject(item: Expectation | Allowance) -> str:
    """The table that an expectation or an allowance speaks of, as `store.table`."""
    match item:
        case Updated() | AllowedUpdate():
            return item.updated
        case Inserted() | AllowedInsert():
            return item.inserted
        case Deleted() | AllowedDelete():
            return item.deleted


def _subjects(ending: Task | Alternative) -> tuple[str, ...]:
    expected = () if ending.expect is None or ending.expect == "nothing" else ending.expect
    return tuple(subject(item) for item in (*expected, *ending.allow))
