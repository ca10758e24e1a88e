"""What a configuration declares of an HTTP store, made ready to be opened."""

from __future__ import annotations

from pathlib import Path

from guardrail.declare.configuration import StoreDeclaration
from guardrail.declare.resources import Cursor
from guardrail.declare.resources import Resource as Declared
from guardrail.pointers import tokens
from guardrail.query.requests import prove_request
from guardrail.query.urls import proxy_of, url_of
from guardrail.stores.http.api import Api, Next, Place, Resource


def api_of(declared: StoreDeclaration, base: Path | None) -> Api:
    """The API that is declared; a relative path of its certificates begins at `base`, or at the working directory."""
    absent = frozenset(declared.absent)
    return Api(
        place=Place(url_of(declared.url), declared.headers),
        resources={name: _resource(name, resource, absent) for name, resource in declared.resources.items()},
        absent=absent,
        private=declared.private,
        proxy=None if declared.proxy is None else proxy_of(declared.proxy),
        ca=None if declared.ca is None else str(((base or Path()) / declared.ca).absolute()),
    )


def _resource(name: str, declared: Declared, absent: frozenset[int]) -> Resource:
    return Resource(
        name=name,
        request=prove_request(declared.get, declared.query),
        rows=tokens(declared.rows),
        key=(declared.key,) if isinstance(declared.key, str) else declared.key,
        next=_next(declared.next),
        absent=absent if declared.absent is None else frozenset(declared.absent),
        whole=declared.next == "none",
    )


def _next(declared: str | Cursor | None) -> Next | None:
    if declared is None or declared == "none":
        return None
    if isinstance(declared, Cursor):
        return Next(tokens(declared.at), declared.parameter)
    return Next(None if declared == "link" else tokens(declared))
