"""The names that a configuration declares, and what is wrong with those that do not stand for anything."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass

from guardrail.declare.configuration import Configuration
from guardrail.declare.faults import Fault, Place, suggestion
from guardrail.declare.patterns import matches
from guardrail.errors import QueryRefused
from guardrail.query.proof import Dialect, Query, prove, prove_condition


@dataclass(frozen=True, slots=True)
class Known:
    """The names that a configuration declares, those of entries included that could not be read.

    `stores` gives each store's dialect, None where it is not known. `inputs` are those of all tasks,
    None when a task takes any.
    """

    stores: Mapping[str, Dialect | None]
    tools: frozenset[str]
    inputs: frozenset[str] | None

    @classmethod
    def of(cls, configuration: Configuration) -> Known:
        """What a configuration declares."""
        tasks = configuration.tasks.values()
        inputs = frozenset(name for task in tasks for name in task.inputs)
        return cls(
            stores={name: store.dialect for name, store in configuration.stores.items()},
            tools=frozenset(configuration.tools),
            inputs=inputs if tasks and all(task.inputs for task in tasks) else None,
        )

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
        dialect = self.stores.get(store)
        if dialect is None:
            return None
        try:
            return prove_condition(text, dialect) if condition else prove(text, dialect)
        except QueryRefused as error:
            yield Fault(place, f"the {'condition' if condition else 'query'} is refused: {error}")
            return None
