"""What should be known of a configuration before it is relied on: of its stores, and of its tasks in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from guardrail.declare.contracts import Watch
from guardrail.declare.faults import suggestion
from guardrail.errors import StoreError
from guardrail.pictures import Table
from guardrail.run.live import Live
from guardrail.stores.store import Remark, Store, tables_of
from guardrail.verification.contracts import LiveContract, LiveWatch
from guardrail.verification.fitting import named_columns

Tables = Mapping[str, Table]
"""A store's tables by name; names are folded, as databases tell them apart by their letters alone."""


def examine(live: Live) -> tuple[Remark, ...]:
    """Everything worth a remark, of the policy, the tools, the stores and the tasks; the stores are looked at."""
    stores = [remark for store in live.stores.values() for remark in store.examine()]
    return (*_of_policy(live), *_of_tools(live), *stores, *_of_tasks(live))


def _of_policy(live: Live) -> Iterator[Remark]:
    if not live.enforced:
        text = f"{live.policy.name} only observes: nothing is refused and no run is stopped"
        yield Remark("warning", "policy", text)


def _of_tools(live: Live) -> Iterator[Remark]:
    for name, tool in live.configuration.tools.items():
        if tool.effect == "unknown" or (tool.effect is None and tool.sql is None):
            text = "its effect is unknown: under a hold it is refused; declare read or write"
            yield Remark("warning", f"tools.{name}", text)


def _of_tasks(live: Live) -> Iterator[Remark]:
    contracts: list[LiveContract] = []
    for name in live.configuration.tasks:
        try:
            contract = live.contract(name)
        except Exception as error:  # noqa: BLE001 - the import of a check's module may raise anything
            yield Remark("error", f"tasks.{name}", f"it cannot be made ready: {type(error).__name__}: {error}")
        else:
            assert contract is not None
            contracts.append(contract)
    tables = {name: found for name, store in live.stores.items() if (found := _tables(store, contracts)) is not None}
    for contract in contracts:
        yield from _of_watches(contract, tables)
        yield from _of_changes(contract, tables)


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
        yield from _of_columns(place, watch.place, table, _named(watch.declared, watch.key or ()))
    elif watch.place in (contract.task.watch or ()):  # one that is only expected to change is told of as that
        yield _missing(place, watch.place, tables)


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
