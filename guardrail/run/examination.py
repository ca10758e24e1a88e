"""What should be known of a configuration before it is relied on: of its stores, and of its tasks in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from guardrail.declare.contracts import Watch
from guardrail.errors import StoreError
from guardrail.run.contracts import LiveContract, LiveWatch
from guardrail.run.live import Live
from guardrail.stores.store import Remark, Store, Table

Tables = Mapping[str, Table]
"""A store's tables by name."""


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
        if tool.effect is None or tool.effect == "unknown":
            text = "its effect is unknown: under a hold it is refused; declare read or write"
            yield Remark("warning", f"tools.{name}", text)


def _of_tasks(live: Live) -> Iterator[Remark]:
    most = max((task.most_rows for task in live.configuration.tasks.values() if task.watch is None), default=0)
    tables = {name: found for name, store in live.stores.items() if (found := _tables(store, most)) is not None}
    for name in live.configuration.tasks:
        try:
            contract = live.contract(name)
        except Exception as error:  # noqa: BLE001 - the import of a check's module may raise anything
            yield Remark("error", f"tasks.{name}", f"it cannot be made ready: {type(error).__name__}: {error}")
        else:
            assert contract is not None
            yield from _of_watches(contract, tables)


def _tables(store: Store, most: int) -> Tables | None:
    """The tables of a store; None where it is away, which its own remarks say."""
    try:
        return {table.name: table for table in store.tables(count_up_to=most)}
    except StoreError:
        return None


def _of_watches(contract: LiveContract, tables: Mapping[str, Tables]) -> Iterator[Remark]:
    if contract.watched is None and contract.looks:
        for store in contract.stores:
            yield from _of_size(contract, store, tables.get(store, {}))
    for watch in contract.watched or ():
        found = tables.get(watch.store)
        if found is not None:
            yield from _of_watch(f"tasks.{contract.name}.watch.{watch.place}", watch, found.get(watch.table))


def _of_size(contract: LiveContract, store: str, tables: Tables) -> Iterator[Remark]:
    most = contract.task.most_rows
    for table in tables.values():
        if table.rows is not None and table.rows > most:
            text = f"{store}.{table.name} has more than {most:,} rows: name the tables to watch, or raise most_rows"
            yield Remark("error", f"tasks.{contract.name}", text)


def _of_watch(place: str, watch: LiveWatch, table: Table | None) -> Iterator[Remark]:
    if table is None:
        yield Remark("error", place, f"there is no table {watch.table} in {watch.store}")
        return
    if watch.key is None and not table.key:
        yield Remark("error", place, "nothing tells its rows apart: declare a key")
    unknown = sorted(set(_named(watch.declared, watch.key or ())) - set(table.columns))
    if unknown:
        yield Remark("error", place, f"the table has no column {', '.join(unknown)}")


def _named(watch: Watch, key: tuple[str, ...]) -> Iterator[str]:
    """The columns that a watch names, but for those of its condition."""
    yield from (*key, *watch.ignore, *watch.compare)
