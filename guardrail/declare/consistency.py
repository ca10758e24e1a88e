"""Whether a configuration holds together: its names, its queries, its expressions, and no contradictions.

What one field alone must be, its type says; here is what only shows when several are read together.
"""

from __future__ import annotations

from collections.abc import Iterator

from guardrail.declare.bundled import names
from guardrail.declare.configuration import Configuration, StoreDeclaration, dialect_of
from guardrail.declare.faults import Fault, suggestion
from guardrail.declare.known import Known
from guardrail.declare.store_consistency import store_faults
from guardrail.declare.task_consistency import task_faults
from guardrail.declare.tool_consistency import tool_faults


def faults(configuration: Configuration, known: Known | None = None) -> Iterator[Fault]:
    """Everything that is wrong with a configuration beyond its single fields."""
    known = known or Known.of(configuration)
    yield from _policy_faults(configuration)
    for key in ("include", "openapi"):
        if getattr(configuration, key):
            yield Fault((key,), "is read with a file, and this configuration is written in Python", "load it")
    for name, store in configuration.stores.items():
        yield from store_faults(name, store)
        if store.replica is not None:
            yield from _replica_faults(name, store, store.replica)
    for name, tool in configuration.tools.items():
        yield from tool_faults(name, tool, known)
    for name, task in configuration.tasks.items():
        yield from task_faults(name, task, known)


def _replica_faults(name: str, store: StoreDeclaration, replica: str) -> Iterator[Fault]:
    place = ("stores", name, "replica")
    if store.dialect not in ("postgres", "mysql"):
        yield Fault(place, "is only for PostgreSQL and MariaDB", "leave it out")
    elif dialect_of(replica) != store.dialect:
        yield Fault(place, "has another scheme than the store's `url`", "name a replica of that server")


def _policy_faults(configuration: Configuration) -> Iterator[Fault]:
    named = configuration.policy
    if isinstance(named, str) and named not in names():
        advice = suggestion(named, names(), "bundled are")
        yield Fault(("policy",), f"there is no bundled policy `{named}`", advice)
