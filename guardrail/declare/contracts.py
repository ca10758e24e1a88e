"""A contract: what a task must have done to the state.

Values of an expectation are written as they stand in a file and read once when the configuration is made
live: a plain value, `$name` (an input, a `let` row, an `as` row, `$each`), `$$` for a literal dollar, or one
of the forms below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from pydantic import Field

from guardrail.declare.matchers import TypeName
from guardrail.declare.model import Declaration


class From(Declaration):
    """A late-bound input: bound once, by an earlier good result of `tool`, at a JSON pointer."""

    tool: str
    at: str


class Input(Declaration):
    """An input of a task. With `source` (`from` in a file) it is bound during the run."""

    type: TypeName = "any"
    source: From | None = Field(default=None, alias="from")
    optional: bool = False


class Let(Declaration):
    """Rows read in the before-picture's snapshot, for use as `$name.column` or in `each`."""

    store: str
    rows: str


class Loosely(Declaration):
    """How a column compares more loosely than by its type.

    `case` and `blanks`: `ignore` folds them. `unordered`: lists compare as multisets. `tolerance`: numbers
    may differ by so much. `zone`: instants without an offset are read in this IANA zone. `kind`: the
    column compares as this kind whatever its declared type.
    """

    case: Literal["exact", "ignore"] = "exact"
    blanks: Literal["exact", "ignore"] = "exact"
    unordered: bool = False
    tolerance: str | int | float | None = None
    zone: str | None = None
    kind: str | None = None


class Watch(Declaration):
    """A watched table: `store.table` is its name in the contract.

    key: the columns that name a row (found in the schema when left out).
    where: one expression without subqueries over the table's columns, `:name` takes an input.
    ignore: columns that may change freely.
    compare: columns that compare loosely.
    shared: others write here too: an unattributed change is a warning, not a failure.
    whole_rows: up to how many rows whole rows are kept; above it key and row hash.
    most_rows: above how many rows the picture is refused.
    """

    key: str | tuple[str, ...] | None = None
    where: str | None = None
    ignore: tuple[str, ...] = ()
    compare: Mapping[str, Loosely] = {}
    shared: bool = False
    whole_rows: int = Field(default=10_000, ge=0)
    most_rows: int = Field(default=1_000_000, ge=1)


class Updated(Declaration):
    """A row that must have been updated; columns that are not named must be as they were."""

    updated: str
    key: Mapping[str, Any]
    values: Mapping[str, Any]
    each: str | None = None
    name: str | None = Field(default=None, alias="as")


class Inserted(Declaration):
    """A row that must have been inserted; it is found by its content. Columns not named are open."""

    inserted: str
    values: Mapping[str, Any]
    count: int = Field(default=1, ge=1)
    each: str | None = None
    name: str | None = Field(default=None, alias="as")


class Deleted(Declaration):
    """A row that must have been deleted."""

    deleted: str
    key: Mapping[str, Any]
    each: str | None = None


Expectation = Updated | Inserted | Deleted


class AllowedUpdate(Declaration):
    """Updates that may happen and need not: of the row `key` (or any), of the `columns` (or any)."""

    updated: str
    key: Mapping[str, Any] | None = None
    columns: tuple[str, ...] | None = None
    values: Mapping[str, Any] = {}
    max: int | None = Field(default=None, ge=1)


class AllowedInsert(Declaration):
    """Inserts that may happen and need not."""

    inserted: str
    values: Mapping[str, Any] = {}
    max: int | None = Field(default=None, ge=1)


class AllowedDelete(Declaration):
    """Deletes that may happen and need not."""

    deleted: str
    key: Mapping[str, Any] | None = None
    max: int | None = Field(default=None, ge=1)


Allowance = AllowedUpdate | AllowedInsert | AllowedDelete


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


class PythonCheck(Declaration):
    """A Python callable, or `module:function`; takes an `Evidence`, answers true, false or a text that says what is wrong."""

    python: str | Callable[..., Any]
    name: str = ""
    because: str = ""


Check = SqlCheck | PythonCheck


class Alternative(Declaration):
    """One way in which a task may end well."""

    when: When | None = None
    expect: Literal["nothing"] | tuple[Expectation, ...] = ()
    allow: tuple[Allowance, ...] = ()
    checks: tuple[Check, ...] = ()


class Task(Declaration):
    """A task's contract.

    Without `watch`, every table of the task's stores is watched, up to `most_rows` rows a table. `settle`
    is how long positive expectations may take to become true ("5s", "200ms"). `expect` or `any_of` must be
    given, or `checks`; `expect: nothing` says that nothing may change.
    """

    description: str = ""
    inputs: Mapping[str, TypeName | Input] = {}
    let: Mapping[str, Let] = {}
    stores: tuple[str, ...] | None = None
    watch: Mapping[str, Watch] | None = None
    most_rows: int = Field(default=10_000, ge=1)
    expect: Literal["nothing"] | tuple[Expectation, ...] | None = None
    any_of: Mapping[str, Alternative] | None = None
    allow: tuple[Allowance, ...] = ()
    checks: tuple[Check, ...] = ()
    settle: str = "0s"
    on_silent_failure: Literal["raise", "report"] | None = None
