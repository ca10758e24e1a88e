"""The connections of one look, by blocking and by awaiting; none outlives the look, so none is bound to a loop."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import TracebackType
from typing import Any, Self, cast

import httpcore

from guardrail.errors import StoreError
from guardrail.query.urls import Proxy, Url
from guardrail.stores.http.messages import Intake, Message
from guardrail.stores.http.network import AsyncNetwork, Away, Deadline, Doors, Network
from guardrail.threads import in_thread


@dataclass(frozen=True, slots=True)
class Send:
    """A GET of a URL, with headers that are not in the repr."""

    url: Url
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Route:
    """How servers are reached: certificates that are trusted, a proxy, and whether private addresses may be."""

    trust: ssl.SSLContext
    proxy: Proxy | None
    private: bool

    def doors(self) -> Doors:
        """The addresses of one look, none of which is known yet."""
        return Doors(self.private, None if self.proxy is None else self.proxy.origin.host)


@cache
def trust(ca: str | None) -> ssl.SSLContext:
    """Which certificates are trusted: those of a file, or the known ones. Made once, as reading them takes long.

    Raises `StoreError` when the file cannot be read.
    """
    if ca is None:
        context = httpcore.default_ssl_context()
        context.load_default_certs()
        return context
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        raise StoreError(
            f"the certificates in {ca} cannot be read ({error.strerror or type(error).__name__})"
        ) from error


class Connections:
    """The connections of one look, driven by blocking."""

    def __init__(self, route: Route, deadline: Deadline) -> None:
        self._network = Network(route.doors(), deadline)
        self._pool = _pool(route, network_backend=self._network)
        self._deadline = deadline

    def send(self, send: Send) -> Message:
        """Send a request and take the answer. Raises `StoreError`; `Away` where another try may do."""
        with _translated(self._deadline), self._pool.stream("GET", **_sent(send)) as response:
            intake = Intake(response.status, response.headers)
            for piece in response.iter_stream():
                if not intake.take(piece):
                    break
            return intake.message

    def __enter__(self) -> Self:
        """The connections themselves."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close them."""
        try:
            self._pool.close()
        finally:
            self._network.close()


class AsyncConnections:
    """The connections of one look, driven by awaiting, within one loop."""

    def __init__(self, route: Route, deadline: Deadline) -> None:
        self._network = AsyncNetwork(route.doors(), deadline)
        self._pool = _apool(route, network_backend=self._network)
        self._deadline = deadline

    async def send(self, send: Send) -> Message:
        """Send a request and take the answer. Raises as `Connections.send`."""
        with _translated(self._deadline):
            async with asyncio.timeout(self._deadline.left), self._pool.stream("GET", **_sent(send)) as response:
                intake = Intake(response.status, response.headers)
                async for piece in response.aiter_stream():
                    if not intake.take(piece):
                        break
                return intake.message

    async def __aenter__(self) -> Self:
        """The connections themselves."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close them."""
        try:
            await self._pool.aclose()
        finally:
            await self._network.aclose()


async def prepare() -> None:
    """Have imported what awaiting needs: that takes so long that a loop would feel it."""
    if not _is_prepared():
        await in_thread(_imported)


@cache
def _imported() -> None:
    from anyio.lowlevel import checkpoint

    asyncio.run(checkpoint())


def _is_prepared() -> bool:
    return _imported.cache_info().currsize > 0


def _pool(route: Route, **options: Any) -> httpcore.ConnectionPool:
    if route.proxy is None:
        return httpcore.ConnectionPool(route.trust, **options)
    return httpcore.HTTPProxy(_url(route.proxy), route.proxy.credentials, ssl_context=route.trust, **options)


def _apool(route: Route, **options: Any) -> httpcore.AsyncConnectionPool:
    if route.proxy is None:
        return httpcore.AsyncConnectionPool(route.trust, **options)
    return httpcore.AsyncHTTPProxy(_url(route.proxy), route.proxy.credentials, ssl_context=route.trust, **options)


def _url(place: Proxy | Url) -> httpcore.URL:
    target = place.target if isinstance(place, Url) else "/"
    origin = place.origin
    return httpcore.URL(scheme=origin.scheme, host=origin.host, port=origin.unusual_port, target=target)


def _sent(send: Send) -> dict[str, Any]:
    own = (("Host", send.url.origin.authority), ("Accept-Encoding", "gzip"))
    return {"url": _url(send.url), "headers": [*own, *send.headers]}


@contextmanager
def _translated(deadline: Deadline) -> Generator[None]:
    """Say what went wrong in words of our own: theirs may quote headers, and what a server sent."""
    try:
        yield
    except (TimeoutError, httpcore.TimeoutException) as error:
        raise deadline.late from error
    except httpcore.ConnectError as error:
        raise _of_connecting(error) from error
    except httpcore.ProxyError as error:
        raise StoreError("its proxy does not let the request through") from error
    except (httpcore.NetworkError, httpcore.RemoteProtocolError) as error:
        raise Away("it broke the connection off, or does not speak HTTP") from error
    except httpcore.LocalProtocolError as error:
        raise StoreError("a header cannot be sent as it is") from error


def _of_connecting(error: BaseException) -> StoreError:
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return StoreError(f"its certificate is not trusted: {cause.verify_message}")
        if isinstance(cause, ssl.SSLError):
            return StoreError(f"no secure connection can be made to it ({cause.reason or 'TLS'})")
    refused = any(isinstance(cause, ConnectionRefusedError) for cause in _causes(error))
    return Away("it cannot be connected to" + (": the connection is refused" if refused else ""))


def _causes(error: BaseException) -> Generator[BaseException]:
    """An error and all that led to it; several tries at once fail together."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        if isinstance(cause, BaseExceptionGroup):
            for inner in cast("BaseExceptionGroup[BaseException]", cause).exceptions:
                yield from _causes(inner)
        cause = cause.__cause__ or cause.__context__
