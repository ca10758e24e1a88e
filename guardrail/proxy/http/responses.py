"""Responses of a server over HTTP: read, adapted, and passed on."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final, TypeAlias

import httpx
from starlette.background import BackgroundTask
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from guardrail.proxy.exchange import ServerLost
from guardrail.proxy.http.events import Event, Events, TooLong
from guardrail.proxy.messages import Malformed, Message
from guardrail.telemetry.logs import get_logger

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"

HOP: Final = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "upgrade"),
        *("content-length", "content-encoding", "transfer-encoding", "accept-encoding"),
        *("host", "origin", "date", "server"),
    }
)
"""Headers that are between two neighbours, or that each writes for itself."""

Adapt: TypeAlias = Callable[[Message], Awaitable[Message | None]]
"""What becomes of an answer; None: the client gets none."""


class Stream(StreamingResponse):
    """A stream that does what is left to do also when its reader has gone."""

    def __init__(
        self, body: AsyncIterator[bytes], status: int, headers: Mapping[str, str], left: BackgroundTask
    ) -> None:
        super().__init__(body, status, headers)
        self._left = left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._left()


def kind_of(response: httpx.Response) -> str:
    """The media type of a response's body, "" where it says none."""
    kind: str = response.headers.get("content-type", "")
    return kind.partition(";")[0].strip().lower()


def passed(headers: Mapping[str, str], kind: str) -> dict[str, str]:
    """A response's headers as they are passed on."""
    kept = {name.lower(): value for name, value in headers.items() if name.lower() not in HOP}
    return {**kept, "content-type": kind} if kind else kept


def refusal(status: int, message: Message, headers: Mapping[str, str] | None = None) -> Response:
    """The proxy's own no."""
    return Response(message.raw, status, headers, JSON)


async def adapted(event: Event, adapt: Adapt) -> list[Event]:
    """An event whose answers are adapted; the event itself where that changes nothing, nothing where it is no message."""
    try:
        before = event.messages
    except Malformed as error:
        get_logger().warning("guardrail.server_event_dropped", why=str(error), bytes=len(event.raw))
        return []
    after = [await adapt(message) if message.is_answer else message for message in before]
    if all(one is other for one, other in zip(before, after, strict=True)):
        return [event]
    return [event.carrying(message) for message in after if message is not None]


async def adapted_events(response: httpx.Response, adapt: Adapt, longest: int) -> AsyncIterator[bytes]:
    """A stream whose answers are adapted, to where it ends or breaks off."""
    with contextlib.suppress(ServerLost, TooLong):
        async for event in events_of(response, longest):
            for part in await adapted(event, adapt):
                yield part.raw


async def events_of(response: httpx.Response, longest: int) -> AsyncIterator[Event]:
    """The events of a response; raises `ServerLost` where it breaks off, and `TooLong`."""
    events = Events(longest)
    try:
        async for chunk in response.aiter_raw():
            for event in events.cut(chunk):
                yield event
    except httpx.HTTPError as error:
        raise ServerLost(f"the connection to the server broke: {error}") from error


async def raw_of(response: httpx.Response) -> AsyncIterator[bytes]:
    """A body as it comes, to where it ends or breaks off."""
    with contextlib.suppress(httpx.HTTPError):
        async for chunk in response.aiter_raw():
            yield chunk


async def whole(response: httpx.Response, longest: int) -> bytes:
    """A whole body; raises `ServerLost` where it breaks off or is too long."""
    parts: list[bytes] = []
    size = 0
    try:
        async for chunk in response.aiter_raw():
            size += len(chunk)
            if size > longest:
                raise ServerLost(f"the server's answer had more than {longest:,} bytes")
            parts.append(chunk)
    except httpx.HTTPError as error:
        raise ServerLost(f"the connection to the server broke: {error}") from error
    finally:
        await response.aclose()
    return b"".join(parts)
