"""How connections are made: to an address that was looked up once and checked, and within the time of one look."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address
from typing import Final, cast

import httpcore

from guardrail.errors import StoreError
from guardrail.stores.http.addresses import refusal
from guardrail.threads import in_thread_apart, within

_TRANSIENT: Final = (socket.EAI_AGAIN,)


_SIP: Final = 8 * 2**10
"""How many bytes are read at once where a loop waits."""


class Away(StoreError):
    """The server cannot be reached, or broke off: that may be another time, or at another try."""


class Late(StoreError):
    """The time of the look is up."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a look must have ended: `allowed` seconds after it began; `ends` is a time of the monotonic clock."""

    allowed: float
    ends: float

    @classmethod
    def in_seconds(cls, allowed: float) -> Deadline:
        """The end of a look that begins now."""
        return cls(allowed, time.monotonic() + allowed)

    @property
    def left(self) -> float:
        """How many seconds are left. Raises `Late` when none are."""
        left = self.ends - time.monotonic()
        if left <= 0:
            raise self.late
        return left

    def allows(self, wait: float) -> bool:
        """Whether there is time for something after so many seconds."""
        return time.monotonic() + wait < self.ends

    @property
    def late(self) -> Late:
        """That the time is up."""
        return Late(f"it took longer than {self.allowed:g} s; narrow what is asked, or raise the store's timeout")


@dataclass(frozen=True, slots=True)
class Doors:
    """The addresses of the hosts of one look, each looked up once, so that nobody can change them in between.

    `private` allows those of private networks; `unchecked` is the host of a declared proxy, which may be anywhere.
    """

    private: bool
    unchecked: str | None = None
    _known: dict[tuple[str, int], tuple[str, ...]] = field(default_factory=dict[tuple[str, int], tuple[str, ...]])

    def of(self, host: str, port: int, deadline: Deadline) -> tuple[str, ...]:
        """The addresses of a host that may be connected to. Raises `StoreError`."""
        if (host, port) not in self._known:
            try:
                found = within(partial(_looked_up, host, port), deadline.left)
            except TimeoutError as error:
                raise deadline.late from error
            self._known[host, port] = self._checked(host, found)
        return self._known[host, port]

    async def aof(self, host: str, port: int) -> tuple[str, ...]:
        """The same without blocking the loop; the caller bounds the time."""
        if (host, port) not in self._known:
            found = await in_thread_apart(partial(_looked_up, host, port))
            self._known[host, port] = self._checked(host, cast("tuple[str, ...]", found))
        return self._known[host, port]

    def _checked(self, host: str, addresses: tuple[str, ...]) -> tuple[str, ...]:
        """The addresses, if all of them may be connected to: a host that is in two worlds is in none."""
        for address in addresses if host != self.unchecked else ():
            why = refusal(address, private=self.private)
            if why:
                raise StoreError(f"its host leads to {address}, {why}")
        return addresses


def _looked_up(host: str, port: int) -> tuple[str, ...]:
    try:
        return (str(ip_address(host)),)
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        kind = Away if error.errno in _TRANSIENT else StoreError
        raise kind(f"its host name cannot be looked up ({error.strerror})") from error
    except (OSError, UnicodeError) as error:
        raise StoreError("its host name cannot be looked up") from error
    return tuple(dict.fromkeys(str(place[0]) for *_, place in found))


Options = Iterable[tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]]


class Network(httpcore.NetworkBackend):
    """Makes connections by blocking, ends every wait with the look, and closes what was left open on the way."""

    def __init__(self, doors: Doors, deadline: Deadline) -> None:
        self._doors = doors
        self._deadline = deadline
        self._plain = httpcore.SyncBackend()
        self._made: list[httpcore.NetworkStream] = []

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Options | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address that lets itself be connected to. Raises `StoreError` and httpcore's errors."""
        addresses = self._doors.of(host, port, self._deadline)
        for number, address in enumerate(addresses):
            share = self._deadline.left / (len(addresses) - number)
            try:
                self._made.append(self._plain.connect_tcp(address, port, share, None, socket_options))
                return _Timed(self._made[-1], self._deadline)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if number == len(addresses) - 1:
                    raise
        raise Away("its host has no address")

    def close(self) -> None:
        """Close every connection: one that is given up in the middle of a handshake is nobody else's to close."""
        for stream in self._made:
            stream.close()


class _Timed(httpcore.NetworkStream):
    """A connection of which no wait is longer than what is left of the look, however little comes at a time."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.left)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.left)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        stream = self._stream.start_tls(ssl_context, server_hostname, self._deadline.left)
        return _Timed(stream, self._deadline)

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)


class AsyncNetwork(httpcore.AsyncNetworkBackend):
    """Makes connections by awaiting; whoever asks bounds the time."""

    def __init__(self, doors: Doors, deadline: Deadline) -> None:
        self._doors = doors
        self._deadline = deadline
        self._plain = cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())
        self._made: list[httpcore.AsyncNetworkStream] = []

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,
        socket_options: Options | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """As `Network.connect_tcp`."""
        addresses = await self._doors.aof(host, port)
        for number, address in enumerate(addresses):
            share = self._deadline.left / (len(addresses) - number)
            try:
                self._made.append(await self._plain.connect_tcp(address, port, share, None, socket_options))
                return _Sipped(self._made[-1])
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if number == len(addresses) - 1:
                    raise
        raise Away("its host has no address")

    async def aclose(self) -> None:
        """As `Network.close`."""
        for stream in self._made:
            await stream.aclose()


class _Sipped(httpcore.AsyncNetworkStream):
    """A connection that is read a little at a time: what a server sends between two waits is worked through at once."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        return await self._stream.read(min(max_bytes, _SIP), timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore.AsyncNetworkStream:
        return _Sipped(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)
