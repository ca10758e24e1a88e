"""Where a store's connections come from, whatever the server: what a source is, and the user's factory of sources."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeAlias, TypeVar, cast

from guardrail.errors import StoreError

C = TypeVar("C")
C_co = TypeVar("C_co", covariant=True)

Place: TypeAlias = tuple[object, ...]
"""Which database a connection leads to, such as host, port and name."""

MOST: Final = 8
"""How many of the sources that a factory has named are kept."""


@dataclass(frozen=True, slots=True)
class Lease(Generic[C_co]):
    """A connection for one look.

    `used`: it has been idle, so its server may be gone, and another connection is worth a try.
    """

    connection: C_co
    place: Place
    used: bool = False


class Source(Protocol[C_co]):
    """Where connections come from. `patience` bounds the wait for one, in seconds."""

    @property
    def is_async(self) -> bool | None:
        """Whether its connections are asynchronous; None: it has both kinds."""
        ...

    def lease(self, patience: float) -> AbstractContextManager[Lease[C_co]]:
        """A connection to oneself, by blocking. Raises the driver's errors, or `StoreError`."""
        ...

    def for_run(self) -> Source[C_co]:
        """The source as one run sees it."""
        ...

    def close(self) -> None:
        """Give up what it holds."""
        ...


class AsyncSource(Source[C_co], Protocol[C_co]):
    """A source of a driver that can wait for its server without blocking."""

    def alease(self, patience: float) -> AbstractAsyncContextManager[Lease[C_co]]:
        """A connection to oneself, by awaiting; otherwise as `lease`."""
        ...

    def for_run(self) -> AsyncSource[C_co]:
        """See `Source`."""
        ...


class Factory(Generic[C]):
    """The user's own way to a database: called for every look, it answers a URL, a pool, or a new connection.

    So credentials may change and every tenant may have a database. A URL's connections are kept; a new connection is
    closed after the look by the source that `opened` makes of it. Only if these sources are such can it be leased from
    by awaiting.
    """

    is_async = None

    def __init__(self, make: Callable[[], object], opened: Callable[[object], Source[C]]) -> None:
        self._make = make
        self._opened = opened
        self._sources: dict[str, Source[C]] = {}

    @contextmanager
    def lease(self, patience: float) -> Generator[Lease[C]]:
        """See `Source`."""
        made = self._made()
        if inspect.isawaitable(made):
            _drop(made)
            raise StoreError("its factory is asynchronous, and the run is not: open the run by `async with`")
        source = self._source(made)
        if source.is_async:
            raise StoreError("its factory answers an asynchronous connection, and the run is not: use `async with`")
        with source.lease(patience) as lease:
            yield lease

    @asynccontextmanager
    async def alease(self, patience: float) -> AsyncGenerator[Lease[C]]:
        """See `Source`."""
        made = self._made()
        if inspect.isawaitable(made):
            made = await _awaited(cast("Awaitable[object]", made))
        async with cast("AsyncSource[C]", self._source(made)).alease(patience) as lease:
            yield lease

    def for_run(self) -> AsyncSource[C]:
        """See `Source`."""
        return _Pinned(self)

    def close(self) -> None:
        """See `Source`."""
        while self._sources:
            self._sources.popitem()[1].close()

    def _made(self) -> object:
        try:
            return self._make()
        except Exception as error:
            raise StoreError(_failed(error)) from error

    def _source(self, made: object) -> Source[C]:
        """The source that the factory's answer stands for; those of URLs are kept, the oldest gives way."""
        if not isinstance(made, str):
            return self._opened(made)
        if made not in self._sources:
            if len(self._sources) >= MOST:
                self._sources.pop(next(iter(self._sources))).close()
            self._sources[made] = self._opened(made)
        return self._sources[made]


class _Pinned(Generic[C]):
    """A factory in one run: it must go on leading to the database that it led to first."""

    is_async = None

    def __init__(self, factory: Factory[C]) -> None:
        self._factory = factory
        self._place: Place | None = None

    @contextmanager
    def lease(self, patience: float) -> Generator[Lease[C]]:
        """See `Source`."""
        with self._factory.lease(patience) as lease:
            self._check(lease.place)
            yield lease

    @asynccontextmanager
    async def alease(self, patience: float) -> AsyncGenerator[Lease[C]]:
        """See `Source`."""
        async with self._factory.alease(patience) as lease:
            self._check(lease.place)
            yield lease

    def for_run(self) -> AsyncSource[C]:
        """See `Source`."""
        return _Pinned(self._factory)

    def close(self) -> None:
        """See `Source`: the factory is not the run's."""

    def _check(self, place: Place) -> None:
        if self._place is None:
            self._place = place
        if place != self._place:
            raise StoreError("its factory led to another database than at the run's first look")


def _failed(error: Exception) -> str:
    return f"its factory failed: {type(error).__name__}: {error}"


def _drop(made: object) -> None:
    """Let go of a coroutine that nobody will await."""
    close = getattr(made, "close", None)
    if callable(close):
        close()


async def _awaited(made: Awaitable[object]) -> object:
    try:
        return await made
    except Exception as error:
        raise StoreError(_failed(error)) from error
