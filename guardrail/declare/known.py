"""The names that a configuration declares, and what is wrong with those that do not stand for anything."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass

from guardrail.declare.configuration import Configuration, StoreDeclaration
from guardrail.declare.faults import Fault, Place, suggestion
from guardrail.declare.patterns import matches
from guardrail.declare.resources import HttpReading, UrlQuery
from guardrail.errors import QueryRefused
from guardrail.query.proof import Query, prove, prove_condition
from guardrail.query.requests import Request, prove_request


@dataclass(frozen=True, slots=True)
class Known:
    """The names that a configuration declares, those of entries included that could not be read.

    `stores` gives what is declared of each store, None where it could not be read. `inputs` are those of all tasks,
    None when a task takes any.
    """

    stores: Mapping[str, StoreDeclaration | None]
    tools: frozenset[str]
    inputs: frozenset[str] | None

    @classmethod
    def of(cls, configuration: Configuration) -> Known:
        """What a configuration declares."""
        tasks = configuration.tasks.values()
        inputs = frozenset(name for task in tasks for name in task.inputs)
        return cls(
            stores=configuration.stores,
            tools=frozenset(configuration.tools),
            inputs=inputs if tasks and all(task.inputs for task in tasks) else None,
        )

    def dialect(self, place: Place) -> Iterator[Fault]:
        """What is wrong with a place that names no dialect: that of the SQL stores is meant, if they have one."""
        if None in self.stores.values():
            return
        count = len({store.dialect for store in self.stores.values() if store is not None and store.dialect})
        if count != 1:
            why = "the SQL stores have several" if count else "no SQL store is declared that has one"
            yield Fault(place, f"is missing, and {why}", "write postgres, mysql or sqlite")

    def store(self, name: str, place: Place) -> Iterator[Fault]:
        """What is wrong with the name of a store at a place."""
        if name not in self.stores:
            advice = suggestion(name, self.stores, "the stores are") or "declare it under `stores`"
            yield Fault(place, f"there is no store `{name}`", advice, rests_on=((),))

    def tool(self, name: str, place: Place) -> Iterator[Fault]:
        """What is wrong with the name of a tool at a place."""
        if not any(matches(entry, name) for entry in self.tools):
            advice = suggestion(name, self.tools, "the tools are") or "declare it under `tools`"
            yield Fault(place, f"there is no tool `{name}`", advice, rests_on=((),))

    def query(
        self, text: str, store: str, place: Place, *, condition: bool = False
    ) -> Generator[Fault, None, Query | None]:
        """What is wrong with a query of a store; returns it proved, or None."""
        declared = self.stores.get(store)
        if declared is not None and declared.is_http:
            advice = (
                "narrow the resource by its path or query" if condition else "checks and requirements read it by `get`"
            )
            yield Fault(place, f"is SQL, and `{store}` is an HTTP store, which takes none", advice)
        if declared is None or declared.dialect is None:
            return None
        try:
            return prove_condition(text, declared.dialect) if condition else prove(text, declared.dialect)
        except QueryRefused as error:
            yield Fault(place, f"the {'condition' if condition else 'query'} is refused: {error}")
            return None

    def reading(self, reading: HttpReading, place: Place) -> Generator[Fault, None, Request | None]:
        """What is wrong with a value that is read of an HTTP store; returns the request for it, or None."""
        yield from self.store(reading.store, (*place, "store"))
        declared = self.stores.get(reading.store)
        if declared is not None and declared.dialect is not None:
            what = f"asks an HTTP store, and `{reading.store}` is a database"
            yield Fault((*place, "get"), what, "write a query under `sql`")
        if reading.compares and not reading.exists:
            what = "says that there must be nothing, and `equals` says what it must be"
            yield Fault((*place, "exists"), what, "leave one of them out")
        return (yield from request_faults(reading.get, reading.query, place))


def request_faults(get: str, query: UrlQuery, place: Place) -> Generator[Fault, None, Request | None]:
    """What is wrong with a path and a query; returns the request that they say, or None."""
    try:
        return prove_request(get, query)
    except QueryRefused as error:
        yield Fault((*place, "get"), str(error))
        return None
