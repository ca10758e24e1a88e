"""Whether the declaration of a store holds together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from guardrail.declare.configuration import StoreDeclaration
from guardrail.declare.faults import Fault, Place
from guardrail.declare.known import request_faults
from guardrail.declare.resources import Key, Resource
from guardrail.query.urls import proxy_of, url_of

_OF_HTTP: Final = ("headers", "resources", "absent", "private", "proxy", "ca")


def store_faults(name: str, store: StoreDeclaration) -> Iterator[Fault]:
    """What is wrong with an entry of `stores`."""
    place = ("stores", name)
    if store.is_http:
        yield from _http_faults(store, place)
        return
    if store.dialect is None:
        yield Fault((*place, "url"), "has another scheme than sqlite, postgres, mysql, mariadb, http or https")
    for field in _OF_HTTP:
        given = getattr(store, field) != StoreDeclaration.model_fields[field].default
        if store.dialect is not None and given:
            yield Fault((*place, field), "speaks of an HTTP store, and the URL is that of a database")


def _http_faults(store: StoreDeclaration, place: Place) -> Iterator[Fault]:
    try:
        if "?" in url_of(store.url).target:
            yield Fault((*place, "url"), "holds a query", "write it with each resource, under `query`")
    except ValueError as error:
        yield Fault((*place, "url"), str(error))
    try:
        if store.proxy is not None:
            proxy_of(store.proxy)
    except ValueError as error:
        yield Fault((*place, "proxy"), str(error))
    folded = [header.lower() for header in store.headers]
    for header in store.headers:
        if folded.count(header.lower()) > 1:
            yield Fault((*place, "headers", header), "is given twice; the case of letters makes no difference")
    for name, resource in store.resources.items():
        yield from _resource_faults(resource, (*place, "resources", name))


def _resource_faults(resource: Resource, place: Place) -> Iterator[Fault]:
    yield from request_faults(resource.get, resource.query, place)
    yield from key_faults(resource.key, place)


def key_faults(key: Key | None, place: Place) -> Iterator[Fault]:
    """What is wrong with a key."""
    columns = (key,) if isinstance(key, str) else key
    if columns is not None and (not columns or len(set(columns)) < len(columns)):
        yield Fault((*place, "key"), "must name at least one column, and each once", rests_on=((*place, "key"),))
