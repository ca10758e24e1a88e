"""Whether a task's contract holds together: what it watches, what it expects, and the names it uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, Literal

from guardrail.declare.contracts import (
    Allowance,
    Check,
    Deleted,
    Expectation,
    HttpCheck,
    Input,
    SqlCheck,
    Task,
    Watch,
    subject,
)
from guardrail.declare.faults import Fault, Place, suggestion
from guardrail.declare.known import Known
from guardrail.declare.matchers import TypeName
from guardrail.declare.store_consistency import key_faults
from guardrail.declare.values import Reference, mentioned, read
from guardrail.errors import QueryRefused
from guardrail.query.proof import Query
from guardrail.query.requests import Request, prove_request

EACH: Final = "each"
"""The name of the item that an expectation with `each` is read for."""


def task_faults(name: str, task: Task, known: Known) -> Iterator[Fault]:
    """What is wrong with an entry of `tasks`."""
    place = ("tasks", name)
    scope = _Scope.of(task, known)
    yield from _form_faults(task, place)
    yield from _input_faults(task, place, known)
    yield from _let_faults(task, place, scope)
    for position, store in enumerate(task.stores or ()):
        yield from known.store(store, (*place, "stores", position))
    yield from _watch_faults(task, place, scope)
    yield from _ending_faults(task, place, scope)


@dataclass(frozen=True, slots=True)
class _Scope:
    """The names that a contract may use. `rows` are those that expectations give with `as`, at `own` among others."""

    known: Known
    stores: tuple[str, ...] | None
    watch: Mapping[str, Watch] | None
    inputs: Mapping[str, TypeName]
    lets: frozenset[str]
    rows: frozenset[str] = frozenset()
    each: Literal["no", "items", "rows"] = "no"
    own: Place | None = None

    @classmethod
    def of(cls, task: Task, known: Known) -> _Scope:
        inputs: dict[str, TypeName] = {
            name: item.type if isinstance(item, Input) else item for name, item in task.inputs.items()
        }
        return cls(known, task.stores, task.watch, inputs, frozenset(task.let))

    def holds_rows(self, name: str) -> bool:
        """Whether a name stands for rows."""
        return name in self.lets or name in self.rows

    def unknown(self, name: str, place: Place, mark: str) -> Fault:
        """The fault of a name that stands for nothing; `mark` is how such names are written."""
        names = self.inputs if mark == ":" else (*self.inputs, *self.lets, *self.rows)
        what = "an input of the task" if mark == ":" else "an input, a `let` or an `as` of the task"
        sources = tuple((*place[:2], key) for key in (("inputs",) if mark == ":" else ("inputs", "let", "expect")))
        rests_on = sources if mark == ":" or self.own is None else (*sources, self.own)
        return Fault(place, f"`{mark}{name}` is not {what}", suggestion(name, names, "there are"), rests_on=rests_on)


def _form_faults(task: Task, place: Place) -> Iterator[Fault]:
    if task.expect is None and task.any_of is None and not task.checks:
        advice = "write `expect`, `any_of` or `checks`, or `expect: nothing`"
        endings = tuple((*place, key) for key in ("expect", "any_of", "checks"))
        yield Fault(place, "does not say what it expects", advice, rests_on=endings)
    if task.any_of is not None and not task.any_of:
        yield Fault((*place, "any_of"), "has no alternative", rests_on=((*place, "any_of"),))
    if task.any_of and task.expect == "nothing":
        yield Fault((*place, "expect"), "says that nothing may change, and `any_of` says otherwise", "leave it out")


def _input_faults(task: Task, place: Place, known: Known) -> Iterator[Fault]:
    for name, item in task.inputs.items():
        inner = (*place, "inputs", name)
        if name == EACH:
            yield _reserved(inner)
        if isinstance(item, Input) and item.source is not None:
            yield from known.tool(item.source.tool, (*inner, "from", "tool"))


def _let_faults(task: Task, place: Place, scope: _Scope) -> Iterator[Fault]:
    for name, let in task.let.items():
        inner = (*place, "let", name)
        if name == EACH:
            yield _reserved(inner)
        if name in task.inputs:
            yield Fault(inner, f"`{name}` is already the name of an input")
        yield from _query_faults(let.rows, let.store, inner, "rows", scope)


def _reserved(place: Place) -> Fault:
    return Fault(place, "cannot be called `each`: `$each` is the item of a list")


def _query_faults(text: str, store: str, place: Place, field: str, scope: _Scope) -> Iterator[Fault]:
    yield from scope.known.store(store, (*place, "store"))
    query = yield from scope.known.query(text, store, (*place, field))
    yield from _parameter_faults(query, (*place, field), scope)


def _parameter_faults(query: Query | Request | None, place: Place, scope: _Scope) -> Iterator[Fault]:
    for name in query.parameters if query is not None else ():
        if name not in scope.inputs:
            yield scope.unknown(name, place, ":")


def _watch_faults(task: Task, place: Place, scope: _Scope) -> Iterator[Fault]:
    if task.watch is None:
        yield from _every_table_faults(task, place, scope)
    elif not task.watch:
        advice = "leave it out, and every table of the stores is watched"
        yield Fault((*place, "watch"), "watches nothing", advice, rests_on=((*place, "watch"),))
    for table, watch in (task.watch or {}).items():
        inner = (*place, "watch", table)
        store = table.partition(".")[0]
        yield from _table_name_faults(table, inner, scope)
        yield from _resource_faults(table, watch, inner, scope)
        yield from _column_faults(watch, inner)
        if watch.where is not None:
            query = yield from scope.known.query(watch.where, store, (*inner, "where"), condition=True)
            yield from _parameter_faults(query, (*inner, "where"), scope)


def _every_table_faults(task: Task, place: Place, scope: _Scope) -> Iterator[Fault]:
    """A contract of no table at all would call every state right."""
    stores = scope.known.stores if task.stores is None else task.stores
    if not stores and (task.expect is not None or task.any_of is not None):
        yield Fault(place, "has no store whose tables could be watched", "declare one under `stores`", rests_on=((),))
    for store in stores if task.expect is not None or task.any_of is not None else ():
        declared = scope.known.stores.get(store)
        for name in declared.resources if declared is not None and declared.is_http else ():
            yield from _resource_faults(f"{store}.{name}", Watch(), place, scope)


def _resource_faults(table: str, watch: Watch, place: Place, scope: _Scope) -> Iterator[Fault]:
    """Whether a watched table that is a resource of an HTTP store has its key, and its inputs."""
    store, _, name = table.partition(".")
    declared = scope.known.stores.get(store)
    resource = declared.resources.get(name) if declared is not None and declared.is_http else None
    if resource is None:
        return
    if watch.key is None and resource.key is None:
        what = f"has no key: nothing tells the rows of `{table}` apart"
        yield Fault(place, what, "name the `key` of the resource", rests_on=(place, ("stores", store)))
    try:
        parameters = prove_request(resource.get, resource.query).parameters
    except QueryRefused:  # told of the resource itself
        return
    for parameter in parameters:
        if parameter not in scope.inputs:
            what = f"`{table}` takes :{parameter}, which is not an input of the task"
            yield Fault(
                place, what, suggestion(parameter, scope.inputs, "there are"), rests_on=((*place[:2], "inputs"),)
            )


def _table_name_faults(table: str, place: Place, scope: _Scope) -> Iterator[Fault]:
    store, dot, name = table.partition(".")
    if not (store and dot and name):
        yield Fault(place, f"`{table}` is no table of a store", "write it as store.table")
        return
    yield from scope.known.store(store, place)
    if scope.stores is not None and store in scope.known.stores and store not in scope.stores:
        stores = (*place[:2], "stores")
        yield Fault(place, f"the store `{store}` is not among the task's `stores`", rests_on=(stores,))
    declared = scope.known.stores.get(store)
    if declared is not None and declared.is_http and name not in declared.resources:
        advice = suggestion(name, declared.resources, "they are") or "declare it under `resources`"
        yield Fault(place, f"`{store}` has no resource `{name}`", advice, rests_on=(("stores", store),))


def _subject_faults(table: str, place: Place, scope: _Scope) -> Iterator[Fault]:
    """What is wrong with the table that an expectation or an allowance speaks of; it is watched if it is not yet."""
    yield from _table_name_faults(table, place, scope)
    if scope.watch is not None and table not in scope.watch:
        yield from _resource_faults(table, Watch(), place, scope)


def _column_faults(watch: Watch, place: Place) -> Iterator[Fault]:
    yield from key_faults(watch.key, place)
    key = (watch.key,) if isinstance(watch.key, str) else watch.key
    for column in watch.ignore:
        if column in (key or ()):
            yield Fault((*place, "ignore"), f"`{column}` is part of the key, which cannot be ignored")
        if column in watch.compare:
            yield Fault((*place, "compare", column), "is compared loosely and ignored; it can only be one of them")


def _ending_faults(task: Task, place: Place, scope: _Scope) -> Iterator[Fault]:
    common = () if task.expect is None or task.expect == "nothing" else task.expect
    yield from _expectations_faults(common, (), (*place, "expect"), scope)
    yield from _further_faults(task.allow, task.checks, place, _with_rows(scope, common, (*place, "expect")))
    for name, alternative in (task.any_of or {}).items():
        inner = (*place, "any_of", name)
        if not (alternative.expect or common or alternative.checks or task.checks):
            advice = "write `expect: nothing` if nothing may change"
            yield Fault(inner, "does not say what it expects", advice, rests_on=(inner,))
        if alternative.when is not None:
            when = alternative.when
            yield from _query_faults(when.sql, when.store, (*inner, "when"), "sql", scope)
        own = () if alternative.expect == "nothing" else alternative.expect
        yield from _expectations_faults(own, common, (*inner, "expect"), scope)
        yield from _further_faults(
            alternative.allow, alternative.checks, inner, _with_rows(scope, (*common, *own), (*inner, "expect"))
        )


def _further_faults(
    allow: Sequence[Allowance], checks: Sequence[Check], place: Place, scope: _Scope
) -> Iterator[Fault]:
    for position, allowance in enumerate(allow):
        yield from _allowance_faults(allowance, (*place, "allow", position), scope)
    for position, check in enumerate(checks):
        match check:
            case SqlCheck():
                yield from _check_faults(check, (*place, "checks", position), scope)
            case HttpCheck():
                yield from _reading_faults(check, (*place, "checks", position), scope)
            case _:
                pass


def _check_faults(check: SqlCheck, place: Place, scope: _Scope) -> Iterator[Fault]:
    yield from _query_faults(check.sql, check.store, place, "sql", scope)
    if isinstance(check.equals, Mapping):
        yield Fault((*place, "equals"), "is a mapping", "write a single value, or a list of rows")
    else:
        yield from _value_faults(check.equals, (*place, "equals"), scope, None)


def _reading_faults(check: HttpCheck, place: Place, scope: _Scope) -> Iterator[Fault]:
    request = yield from scope.known.reading(check, place)
    yield from _parameter_faults(request, (*place, "get"), scope)
    yield from _value_faults(check.equals, (*place, "equals"), scope, None)


def _with_rows(scope: _Scope, expectations: Sequence[Expectation], own: Place) -> _Scope:
    return replace(scope, rows=frozenset(name for item in expectations if (name := _name(item)) is not None), own=own)


def _name(item: Expectation) -> str | None:
    return None if isinstance(item, Deleted) else item.name


def _expectations_faults(
    items: Sequence[Expectation], before: Sequence[Expectation], place: Place, scope: _Scope
) -> Iterator[Fault]:
    scope = _with_rows(scope, (*before, *items), place)
    taken = {*scope.inputs, *scope.lets, EACH, *(_name(item) for item in before)}
    for position, item in enumerate(items):
        name = _name(item)
        if name is not None and name in taken:
            yield Fault((*place, position, "as"), f"`{name}` is already the name of something else in this task")
        taken.add(name)
        yield from _expectation_faults(item, (*place, position), scope)
    yield from _cycle_faults(items, place)


def _expectation_faults(item: Expectation, place: Place, scope: _Scope) -> Iterator[Fault]:
    table = subject(item)
    yield from _subject_faults(table, (*place, _deed(item)), scope)
    if item.each is not None:
        yield from _each_faults(item.each, (*place, EACH), scope)
        scope = replace(scope, each="rows" if scope.holds_rows(item.each.removeprefix("$")) else "items")
    for field in ("key", "values"):
        for column, value in _columns(item, field).items():
            inner = (*place, field, column)
            yield from _ignored_faults(table, column, inner, scope)
            yield from _value_faults(value, inner, scope, _name(item))


def _deed(item: Expectation | Allowance) -> str:
    """The key that names the table."""
    return next(key for key in ("updated", "inserted", "deleted") if hasattr(item, key))


def _columns(item: Expectation | Allowance, field: str) -> Mapping[str, Any]:
    return getattr(item, field, None) or {}


def _ignored_faults(table: str, column: str, place: Place, scope: _Scope) -> Iterator[Fault]:
    watch = (scope.watch or {}).get(table)
    if watch is not None and column in watch.ignore:
        yield Fault(place, f"the column `{column}` is ignored by the watch of `{table}`, so nothing is known of it")


def _allowance_faults(item: Allowance, place: Place, scope: _Scope) -> Iterator[Fault]:
    table = subject(item)
    yield from _subject_faults(table, (*place, _deed(item)), scope)
    for field in ("key", "values"):
        for column, value in _columns(item, field).items():
            yield from _ignored_faults(table, column, (*place, field, column), scope)
            yield from _value_faults(value, (*place, field, column), scope, None)


def _each_faults(text: str, place: Place, scope: _Scope) -> Iterator[Fault]:
    try:
        reference = read(text)
    except ValueError as error:
        yield Fault(place, str(error))
        return
    if not isinstance(reference, Reference) or reference.name == EACH:
        yield Fault(place, "must be a reference to rows or a list, such as `$due`")
    elif not scope.holds_rows(reference.name) and reference.name not in scope.inputs:
        yield scope.unknown(reference.name, place, "$")
    elif (
        reference.name in scope.inputs
        and reference.column is None
        and scope.inputs[reference.name] not in ("list", "any")
    ):
        yield Fault(place, f"`{reference}` is no list: the input is declared as {scope.inputs[reference.name]}")


def _value_faults(raw: object, place: Place, scope: _Scope, own: str | None) -> Iterator[Fault]:
    """What is wrong with a value; `own` is the name that its expectation gives its row."""
    try:
        value = read(raw)
    except ValueError as error:
        yield Fault(place, str(error))
        return
    for reference in mentioned(value):
        if reference.name == own:
            yield Fault(place, f"`{reference}` is the row that is being looked for")
        else:
            yield from _reference_faults(reference, place, scope)


def _reference_faults(reference: Reference, place: Place, scope: _Scope) -> Iterator[Fault]:
    name, column = reference.name, reference.column
    if name == EACH:
        if scope.each == "no":
            what = "`$each` is the item of a list, and the expectation has no `each`"
            yield Fault(place, what, rests_on=(place[:-2],))
        elif scope.each == "rows" and column is None:
            yield _row(reference, place)
    elif scope.holds_rows(name):
        if column is None:
            yield _row(reference, place)
    elif name not in scope.inputs:
        yield scope.unknown(name, place, "$")
    elif column is not None and scope.inputs[name] not in ("object", "any"):
        yield Fault(place, f"`{reference}` has no parts: the input is declared as {scope.inputs[name]}")


def _row(reference: Reference, place: Place) -> Fault:
    return Fault(place, f"`{reference}` is a row, and no value", f"name one of its columns, as in `{reference}.id`")


def _cycle_faults(items: Sequence[Expectation], place: Place) -> Iterator[Fault]:
    """Rows that can only be found when they have been found already."""
    graph = {name: set(_mentions(item)) - {name} for item in items if (name := _name(item)) is not None}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = " → ".join(f"${name}" for name in error.args[1])
        yield Fault(place, f"the rows refer to each other in a circle: {circle}")


def _mentions(item: Expectation) -> Iterator[str]:
    for field in ("key", "values"):
        for value in _columns(item, field).values():
            try:
                yield from (reference.name for reference in mentioned(read(value)))
            except ValueError:  # Named already, at its place.
                continue
