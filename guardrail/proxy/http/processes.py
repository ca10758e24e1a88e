"""Servers over pipes that are asked over HTTP: a process for each session, behind what looks like one server."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Final, TypeAlias

import httpx

from guardrail.errors import GuardrailError
from guardrail.proxy.http.events import event_of
from guardrail.proxy.http.front import SESSION
from guardrail.proxy.http.responses import EVENTS, JSON
from guardrail.proxy.messages import INVALID_REQUEST, METHOD_NOT_FOUND, Message, failure, mapping, read
from guardrail.proxy.server import Server
from guardrail.telemetry.logs import get_logger

MOST: Final = 100
"""How many processes run at once; one more takes the place of the one that was not used for the longest time."""

_MOST_KEPT: Final = 1_000
"""How many messages are kept for a client that listens to none of its server's."""

_ENDED: Final = "it has ended"

Said: TypeAlias = asyncio.Queue[Message | httpx.ReadError]
"""What a server says in one stream, or why it will say no more there."""


class Processes(httpx.AsyncBaseTransport):
    """A transport of HTTP whose other end are processes of a server, started with `env` as sessions begin."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], longest: int) -> None:
        self._command = command
        self._env = env
        self._longest = longest
        self._open: dict[str, _Process] = {}
        """The processes by the names of their sessions, the one that was used last at the end."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The response to a request. Raises `httpx.ConnectError` and `httpx.ReadError`."""
        raw = await request.aread()
        name = request.headers.get(SESSION)
        if name is None:
            return await self._begin(raw)
        if name not in self._open:
            return _no(404, None, INVALID_REQUEST, "there is no such session: it has ended, or its server has")
        process = self._open[name] = self._open.pop(name)
        match request.method:
            case "POST":
                return await process.post(_message(raw))
            case "GET":
                return process.listen()
            case _:
                del self._open[name]
                await process.end()
                return _whole(200)

    async def aclose(self) -> None:
        """End all processes."""
        await asyncio.gather(*(process.end() for process in tuple(self._open.values())))

    def kill(self) -> None:
        """End all processes at once."""
        for process in self._open.values():
            process.kill()

    async def _begin(self, raw: bytes) -> httpx.Response:
        message = _message(raw) if raw else None
        if message is None or message.method != "initialize":
            # What clients of protocol 2026-07-28 take for a server of the time before, with which they begin a session.
            id = None if message is None else message.id
            return _no(400, id, METHOD_NOT_FOUND, "this server has sessions: begin one with initialize")
        if len(self._open) >= MOST and not await self._make_room():
            return _no(503, message.id, INVALID_REQUEST, f"{MOST} sessions are under way: end some first")
        try:
            server = await Server.start(self._command, self._env)
        except GuardrailError as error:
            raise httpx.ConnectError(str(error)) from error
        name = secrets.token_urlsafe(24)
        process = self._open[name] = _Process(server, self._longest)
        process.reading.add_done_callback(lambda _: self._open.pop(name, None))
        response = await process.post(message)
        response.headers[SESSION] = name
        return response

    async def _make_room(self) -> bool:
        unused = next((name for name, process in self._open.items() if not process.is_busy), None)
        if unused is None:
            return False
        await self._open.pop(unused).end()
        return True


class _Process:
    """The process of one session, and the streams in which its client hears of it."""

    def __init__(self, server: Server, longest: int) -> None:
        self._server = server
        self._asked: dict[str, tuple[Message, Said]] = {}
        """The requests under way by their ids, and where what belongs to them goes."""
        self._listening: Said | None = None
        self._kept: deque[Message] = deque(maxlen=_MOST_KEPT)
        self.reading = asyncio.create_task(self._read(longest))

    @property
    def is_busy(self) -> bool:
        """Whether requests are under way."""
        return bool(self._asked)

    async def post(self, message: Message) -> httpx.Response:
        """Tell the server something; a request is answered in JSON, or in events where it says something before."""
        if not message.is_request:
            await self._tell(message)
            return _whole(202)
        if message.key in self._asked:
            return _no(400, message.id, INVALID_REQUEST, f"the id {message.key} is that of a request under way")
        said: Said = asyncio.Queue()
        self._asked[message.key] = message, said
        await self._tell(message)
        first = await _next(said)
        if first.is_answer:
            return _whole(200, first)
        return _stream(_events(first, said))

    def listen(self) -> httpx.Response:
        """What the server says by itself, from here on, and what nobody has heard yet."""
        if self._listening is not None:
            return _no(409, None, INVALID_REQUEST, "there is a stream of this session: one is enough")
        self._listening = asyncio.Queue()
        return _stream(self._heard(self._listening))

    async def end(self) -> None:
        """End the process, and with it what its client still waits for."""
        await self._server.end()
        await asyncio.shield(self.reading)

    def kill(self) -> None:
        """End the process at once."""
        self._server.kill()

    async def _tell(self, message: Message) -> None:
        try:
            await self._server.line(message.raw)
        except OSError as error:
            self._asked.pop(message.key, None)
            raise httpx.ReadError("it does not read any more") from error

    async def _read(self, longest: int) -> None:
        async for message in self._server.messages(longest):
            if message is None:
                self._lose(f"its answer had more than {longest:,} bytes")
            elif message.is_answer:
                _, said = self._asked.pop(message.key, (None, None))
                if said is not None:
                    said.put_nowait(message)
                else:
                    get_logger().warning("guardrail.answer_dropped", why="no request with this id is under way")
            else:
                self._hear(message)
        self._lose(_ENDED)
        if self._listening is not None:
            self._listening.put_nowait(httpx.ReadError(_ENDED))
        await self._server.end()

    def _hear(self, message: Message) -> None:
        """What the server says by itself: about a request that is under way where it says so, or nobody listens."""
        token = message.params.get("progressToken")
        asked = [said for request, said in self._asked.values() if token is None or _token(request) == token]
        if asked and (token is not None or self._listening is None):
            asked[-1].put_nowait(message)
        elif self._listening is not None:
            self._listening.put_nowait(message)
        else:
            self._kept.append(message)

    async def _heard(self, said: Said) -> AsyncGenerator[bytes]:
        try:
            while self._kept:
                yield event_of(self._kept.popleft()).raw
            while isinstance(message := await said.get(), Message):
                yield event_of(message).raw
        finally:
            self._listening = None

    def _lose(self, why: str) -> None:
        """What is under way will not be answered any more."""
        for _, said in self._asked.values():
            said.put_nowait(httpx.ReadError(why))
        self._asked.clear()


class _Body(httpx.AsyncByteStream):
    """A response's body, as it comes."""

    def __init__(self, parts: AsyncGenerator[bytes]) -> None:
        self._parts = parts

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._parts

    async def aclose(self) -> None:
        """Nobody reads on."""
        await self._parts.aclose()


async def _events(first: Message, said: Said) -> AsyncGenerator[bytes]:
    message = first
    yield event_of(message).raw
    while not message.is_answer:
        message = await _next(said)
        yield event_of(message).raw


async def _next(said: Said) -> Message:
    message = await said.get()
    if isinstance(message, Message):
        return message
    raise message


def _stream(parts: AsyncGenerator[bytes]) -> httpx.Response:
    return httpx.Response(200, headers={"content-type": EVENTS}, stream=_Body(parts))


def _message(raw: bytes) -> Message:
    """A client's message as one line: a line break is between two tokens, for in a text it would be escaped."""
    found = read(raw.replace(b"\n", b" ").replace(b"\r", b" "))
    assert isinstance(found, Message), "batches are refused before"
    return found


def _token(request: Message) -> object:
    return mapping(request.meta).get("progressToken")


def _whole(status: int, message: Message | None = None) -> httpx.Response:
    headers = {} if message is None else {"content-type": JSON}
    return httpx.Response(status, headers=headers, stream=httpx.ByteStream(b"" if message is None else message.raw))


def _no(status: int, id: str | int | None, code: int, why: str) -> httpx.Response:
    return _whole(status, failure(id, code, why))
