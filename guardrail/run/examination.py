"""What should be known of a configuration before it is relied on: of its stores, and of its tasks in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from guardrail.declare.contracts import Watch
from guardrail.errors import StoreError
from guardrail.run.contracts import LiveContract, LiveWatch
from guardrail.run.live import Live
from guardrail.stores.store import Remark, Store, Table

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
        if tool.effect is None or tool.effect == "unknown":
            text = "its effect is unknown: under a hold it is refused; declare read or write"
            yield Remark("warning", f"tools.{name}", text)


def _of_tasks(live: Live) -> Iterator[Remark]:
    tables = {name: found for name, store in live.stores.items() if (found := _tables(store)) is not None}
    for name in live.configuration.tasks:
        try:
            contract = live.contract(name)
        except Exception as error:  # noqa: BLE001 - the import of a check's module may raise anything
            yield Remark("error", f"tasks.{name}", f"it cannot be made ready: {type(error).__name__}: {error}")
        else:
            assert contract is not None
            yield from _of_watches(contract, tables)


def _tables(store: Store) -> Tables | None:
    """The tables of a store; None where it is away, which its own remarks say."""
    try:
        return {table.name.casefold(): table for table in store.tables(count_up_to=0)}
    except StoreError:
        return None


def _of_watches(contract: LiveContract, tables: Mapping[str, Tables]) -> Iterator[Remark]:
    for watch in contract.watched or ():
        found = tables.get(watch.store)
        if found is not None:
            yield from _of_watch(f"tasks.{contract.name}.watch.{watch.place}", watch, found.get(watch.table.casefold()))


def _of_watch(place: str, watch: LiveWatch, table: Table | None) -> Iterator[Remark]:
    if table is None:
        yield Remark("error", place, f"there is no table {watch.table} in {watch.store}")
        return
    if watch.key is None and not table.key:
        yield Remark("error", place, "nothing tells its rows apart: declare a key")
    known = {column.casefold() for column in (*table.columns, *(table.key or ()))}
    unknown = [column for column in _named(watch.declared, watch.key or ()) if column.casefold() not in known]
    if unknown:
        yield Remark("error", place, f"the table has no column {', '.join(unknown)}")


def _named(watch: Watch, key: tuple[str, ...]) -> Iterator[str]:
    """The columns that a watch names, but for those of its condition."""
    yield from (*key, *watch.ignore, *watch.compare)
