"""What is declared of an HTTP API, made ready to be asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from guardrail.query.requests import Request
from guardrail.query.urls import Proxy, Url


@dataclass(frozen=True, slots=True)
class Next:
    """How to find the next page: at the steps `at` of this one (None: in its Link header).

    What stands there is a URL, or, where `parameter` is given, a cursor that this parameter of the query takes.
    """

    at: tuple[str, ...] | None
    parameter: str | None = None


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource that can be watched: the request for it, where its rows stand, and what names them.

    `whole`: what it answers is all that there is, whatever the answer says of more.
    """

    name: str
    request: Request
    rows: tuple[str, ...]
    key: tuple[str, ...] | None
    next: Next | None
    absent: frozenset[int]
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where an API is, and the headers that go with every request, which are not in the repr."""

    url: Url
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


@dataclass(frozen=True, slots=True)
class Api:
    """An API: its declared place, its resources by name, and what may be done to reach it.

    `absent` are the statuses that mean that there is none. `private` allows addresses of this machine and of private
    networks. `ca` is the path of the certificates that its own is checked with (None: the known ones).
    """

    place: Place
    resources: Mapping[str, Resource]
    absent: frozenset[int]
    private: bool = False
    proxy: Proxy | None = None
    ca: str | None = None
