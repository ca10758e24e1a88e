"""What should be known of a configuration before it is relied on: of its stores, and of its tasks in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from guardrail.declare.contracts import Task, Watch
from guardrail.declare.faults import suggestion
from guardrail.declare.matchers import Conditions, check
from guardrail.errors import InputError, StoreError
from guardrail.pictures import Table
from guardrail.run.live import Live
from guardrail.state.contract import Allowed, Expected
from guardrail.stores.store import Remark, Store, Trial, tables_of
from guardrail.verification.columns import Column
from guardrail.verification.contracts import LiveContract, LiveWatch
from guardrail.verification.fitting import named_columns

Tables = Mapping[str, Table]
"""A store's tables by name; names are folded, as databases tell them apart by their letters alone."""


def examine(live: Live, inputs: Mapping[str, object] | None = None) -> tuple[Remark, ...]:
    """Everything worth a remark, of the policy, the tools, the stores and the tasks; the stores are looked at.

    Resources of APIs that take inputs are tried with these. Raises `InputError` where these fit no task.
    """
    given = inputs or {}
    _check_inputs(live.configuration.tasks, given)
    contracts, unready = _contracts(live)
    stores = [
        remark for store in live.stores.values() for remark in store.examine(_trial(store.name, contracts, given))
    ]
    return (*_of_policy(live), *_of_tools(live), *stores, *unready, *_of_tasks(live, contracts))


def input_types(tasks: Mapping[str, Task]) -> dict[str, str]:
    """The types of all inputs of tasks, by name; one that tasks declare differently is a text, as it is in a URL."""
    found: dict[str, set[str]] = {}
    for task in tasks.values():
        for name, declared in task.inputs.items():
            found.setdefault(name, set()).add(declared if isinstance(declared, str) else declared.type)
    return {name: types.pop() if len(types) == 1 else "text" for name, types in found.items()}


def _check_inputs(tasks: Mapping[str, Task], given: Mapping[str, object]) -> None:
    """Refuse what is no input of any task, or not of its type. Raises `InputError`."""
    types = input_types(tasks)
    wrong = [f"{name} is an input of no task" for name in given if name not in types]
    for name, value in given.items():
        kind = types.get(name, "any")
        misfit = check(Conditions(type=kind), value) if kind != "any" else None  # type: ignore[arg-type]
        wrong += [f"{name} {misfit}"] if misfit is not None else []
    if wrong:
        raise InputError(f"the inputs: {'; '.join(wrong)} (the inputs of tasks are: {', '.join(types) or 'none'})")


def _trial(store: str, contracts: Iterable[LiveContract], inputs: Mapping[str, object]) -> Trial:
    """What the resources of a store are tried with."""
    keys: dict[str, Sequence[str]] = {}
    columns: dict[str, list[str]] = {}
    for contract in contracts:
        for watch in contract.watched or ():
            if watch.store == store:
                keys.update({watch.table: watch.key} if watch.key else {})
                columns.setdefault(watch.table, []).extend(_named(watch.declared, ()))
        for place, named in _changed(contract).items():
            name, _, table = place.partition(".")
            if name == store:
                columns.setdefault(table, []).extend(named)
    return Trial(inputs, keys, {table: tuple(dict.fromkeys(names)) for table, names in columns.items()})


def _of_policy(live: Live) -> Iterator[Remark]:
    if not live.enforced:
        text = f"{live.policy.name} only observes: nothing is refused and no run is stopped"
        yield Remark("warning", "policy", text)


def _of_tools(live: Live) -> Iterator[Remark]:
    for name, tool in live.configuration.tools.items():
        if tool.effect == "unknown" or (tool.effect is None and tool.sql is None):
            text = "its effect is unknown: under a hold it is refused; declare read or write"
            yield Remark("warning", f"tools.{name}", text)


def _contracts(live: Live) -> tuple[list[LiveContract], list[Remark]]:
    """The contracts of all tasks, and an error for each that cannot be made ready."""
    contracts: list[LiveContract] = []
    unready: list[Remark] = []
    for name in live.configuration.tasks:
        try:
            contract = live.contract(name)
        except Exception as error:  # noqa: BLE001 - the import of a check's module may raise anything
            text = f"it cannot be made ready: {type(error).__name__}: {error}"
            unready.append(Remark("error", f"tasks.{name}", text))
        else:
            assert contract is not None
            contracts.append(contract)
    return contracts, unready


def _of_tasks(live: Live, contracts: Sequence[LiveContract]) -> Iterator[Remark]:
    tables = {name: found for name, store in live.stores.items() if (found := _tables(store, contracts)) is not None}
    for contract in contracts:
        yield from _of_watches(contract, tables)
        yield from _of_changes(contract, tables)
        yield from _of_values(contract, tables, live)


def _tables(store: Store, contracts: Iterable[LiveContract]) -> Tables | None:
    """The tables of a store, also those that only contracts name; None where it is away, which its own remarks say."""
    places = {place for one in contracts for place in (*_changed(one), *(w.place for w in one.watched or ()))}
    named = [table for store_name, _, table in (place.partition(".") for place in places) if store_name == store.name]
    try:
        return {table.name.casefold(): table for table in tables_of(store, named=named)}
    except StoreError:
        return None


def _of_watches(contract: LiveContract, tables: Mapping[str, Tables]) -> Iterator[Remark]:
    for watch in contract.watched or ():
        found = tables.get(watch.store)
        if found is not None:
            yield from _of_watch(contract, watch, found)


def _of_watch(contract: LiveContract, watch: LiveWatch, tables: Tables) -> Iterator[Remark]:
    place, table = f"tasks.{contract.name}.watch.{watch.place}", tables.get(watch.table.casefold())
    if table is not None:
        if watch.key is None and not table.key:
            yield Remark("error", place, "nothing tells its rows apart: declare a key")
        yield from _of_key(place, watch, table)
        yield from _of_columns(place, watch.place, table, _named(watch.declared, watch.key or ()))
    elif watch.place in (contract.task.watch or ()):  # one that is only expected to change is told of as that
        yield _missing(place, watch.place, tables)


def _of_key(place: str, watch: LiveWatch, table: Table) -> Iterator[Remark]:
    """Of a declared key that rows may share, or lack."""
    declared = {name.casefold() for name in watch.key or ()}
    named = {name.casefold() for name in table.columns}
    sure = any({name.casefold() for name in key} <= declared for key in table.keys)
    if declared and declared <= named and not sure:
        names = ", ".join(watch.key or ())
        text = (
            f"rows may have the same key ({names}), and then cannot be told apart: no unique index over columns that "
            "are never null says otherwise"
        )
        yield Remark("warning", place, text)


def _of_changes(contract: LiveContract, stores: Mapping[str, Tables]) -> Iterator[Remark]:
    """Of the tables and columns that the task expects or allows to change."""
    place = f"tasks.{contract.name}"
    for name, columns in _changed(contract).items():
        store, _, table = name.partition(".")
        tables = stores.get(store, {})
        found = tables.get(table.casefold())
        if found is not None:
            yield from _of_columns(place, name, found, columns)
        elif store in stores and name not in (contract.task.watch or ()):
            yield _missing(place, name, tables)


def _of_values(contract: LiveContract, stores: Mapping[str, Tables], live: Live) -> Iterator[Remark]:
    """Of what a column can never hold, or never tells: an error where that is certain, and asked of every run."""
    places = {place: place.partition(".") for place in _changed(contract)}
    tables = {
        place: table
        for place, (store, _, name) in places.items()
        if (table := stores.get(store, {}).get(name.casefold())) is not None and table.columns
    }
    spelled = contract.contract.spelled({place: table.columns for place, table in tables.items()})
    found: dict[Remark, None] = {}
    for branch in spelled.branches:
        changes: tuple[Expected | Allowed, ...] = (*branch.expected, *branch.allowed)
        for said in changes:
            for column, value in (*(said.key or {}).items(), *said.values.items()) if said.table in tables else ():
                strict = live.dialects[places[said.table][0]] != "sqlite"
                looked_at = Column.of(column, tables[said.table], spelled.watch(said.table), strict=strict)
                why = looked_at.doubt(value, contract.task.inputs)
                if why:
                    sure = looked_at.strict and isinstance(said, Expected)
                    text = f"{said.table}.{column} {why}"
                    found[Remark("error" if sure else "warning", f"tasks.{contract.name}", text)] = None
    yield from found


def _changed(contract: LiveContract) -> dict[str, list[str]]:
    """The tables that are expected or allowed to change, each with the columns that are named of it."""
    columns: dict[str, list[str]] = {}
    for branch in contract.contract.branches:
        for table in (*(e.table for e in branch.expected), *(a.table for a in branch.allowed)):
            columns.setdefault(table, [])
        for table, column in named_columns(branch):
            columns[table].append(column)
    return columns


def _missing(place: str, name: str, tables: Tables) -> Remark:
    store, _, table = name.partition(".")
    advice = suggestion(table, [known.name for known in tables.values()], "its tables are")
    return Remark("error", place, f"there is no table {table} in {store}{f' ({advice})' if advice else ''}")


def _of_columns(place: str, name: str, table: Table, columns: Iterable[str]) -> Iterator[Remark]:
    """Of named columns that the table does not have; names are compared without case."""
    if not table.columns:  # a resource of an HTTP store: they are those of the rows that it has
        return
    known = (*table.columns, *(table.key or ()))
    folded = {column.casefold() for column in known}
    for column in dict.fromkeys(columns):
        if column.casefold() not in folded:
            advice = suggestion(column, known, "its columns are")
            yield Remark("error", place, f"{name} has no column {column}{f' ({advice})' if advice else ''}")


def _named(watch: Watch, key: tuple[str, ...]) -> Iterator[str]:
    """The columns that a watch names, but for those of its condition."""
    yield from (*key, *watch.ignore, *watch.compare)
