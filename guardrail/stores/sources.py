"""Where a store's connections come from, whatever the server: what a source is, and the user's factory of sources."""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeAlias, TypeVar, cast

from guardrail.errors import StoreError
from guardrail.threads import in_thread

C = TypeVar("C")
C_co = TypeVar("C_co", covariant=True)

Place: TypeAlias = tuple[object, ...]
"""Which database a connection leads to, such as host, port and name."""

MOST: Final = 8
"""How many of the sources that a factory has named are kept."""


@dataclass(frozen=True, slots=True)
class Lease(Generic[C_co]):
    """A connection for one look.

    `used`: it has been idle, so its server may be gone, and another connection is worth a try. `own`: the store opened
    it, so nothing that was set in its session is meant.
    """

    connection: C_co
    place: Place
    used: bool = False
    own: bool = False


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

    async def found(self) -> AsyncSource[C_co]:
        """The source to be leased from: itself, or what a factory of the user's answers. Raises `StoreError`."""
        ...

    def for_run(self) -> AsyncSource[C_co]:
        """See `Source`."""
        ...


class Factory(Generic[C]):
    """The user's own way to a database: called for every look, it answers a URL, a pool, or a new connection.

    So credentials may change and every tenant may have a database. A URL's connections are kept; a new connection is
    closed after the look by the source that `opened` makes of it.
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
            source.close()
            raise StoreError("its factory answers an asynchronous connection, and the run is not: use `async with`")
        with source.lease(patience) as lease:
            yield lease

    @asynccontextmanager
    async def alease(self, patience: float) -> AsyncGenerator[Lease[C]]:
        """See `AsyncSource`."""
        async with (await self.found()).alease(patience) as lease:
            yield lease

    async def found(self) -> AsyncSource[C]:
        """See `AsyncSource`. A plain function may block, so it is called on a thread."""
        made = self._made() if inspect.iscoroutinefunction(self._make) else await in_thread(self._made)
        if inspect.isawaitable(made):
            made = await _awaited(cast("Awaitable[object]", made))
        return cast("AsyncSource[C]", self._source(made))

    def for_run(self) -> AsyncSource[C]:
        """See `Source`."""
        return _OfRun(self, _First())

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
        source = self._sources.get(made)
        if source is None:
            source = self._sources.setdefault(made, self._opened(made))
            while len(self._sources) > MOST:
                oldest = self._sources.pop(next(iter(self._sources)), None)
                if oldest is not None:
                    oldest.close()
        return source


@dataclass(slots=True)
class _First:
    """Where the first connection of a run led to."""

    place: Place | None = None

    def check(self, place: Place) -> None:
        """Refuse a connection that leads elsewhere. Raises `StoreError`."""
        if self.place is None:
            self.place = place
        if place != self.place:
            raise StoreError("its factory led to another database than at the run's first look")


@dataclass(frozen=True, slots=True)
class _OfRun(Generic[C]):
    """A factory in one run, or what it answered: all must lead to the same database."""

    source: AsyncSource[C]
    first: _First

    @property
    def is_async(self) -> bool | None:
        """See `Source`."""
        return self.source.is_async

    @contextmanager
    def lease(self, patience: float) -> Generator[Lease[C]]:
        """See `Source`."""
        with self.source.lease(patience) as lease:
            self.first.check(lease.place)
            yield lease

    @asynccontextmanager
    async def alease(self, patience: float) -> AsyncGenerator[Lease[C]]:
        """See `AsyncSource`."""
        async with self.source.alease(patience) as lease:
            self.first.check(lease.place)
            yield lease

    async def found(self) -> AsyncSource[C]:
        """See `AsyncSource`."""
        return _OfRun(await self.source.found(), self.first)

    def for_run(self) -> AsyncSource[C]:
        """See `Source`."""
        return _OfRun(self.source, _First())

    def close(self) -> None:
        """See `Source`: the factory is not the run's."""


_PASSWORDS: Final = re.compile(r"(?<=:)[^\s:@/]+(?=@)|(?<=password=)('[^']*'|[^\s&]+)", re.IGNORECASE)


def told(error: Exception) -> str:
    """An error of the user's code, without the passwords that are written in a URL or in settings of a connection."""
    return f"{type(error).__name__}: {_PASSWORDS.sub('***', str(error))}"


def _failed(error: Exception) -> str:
    return f"its factory failed: {told(error)}"


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
