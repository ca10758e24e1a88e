"""The proxy over streamable HTTP: many clients, one server behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from guardrail.errors import GuardrailError
from guardrail.proxy.access import Access, address_of, credential, is_loopback
from guardrail.proxy.events import Event, Events, TooLong, event_of
from guardrail.proxy.exchange import Exchange, ServerAway, ServerLost, Unanswered
from guardrail.proxy.messages import INVALID_REQUEST, LONGEST, Malformed, Message, failure, read, read_strictly
from guardrail.proxy.runs import Runs
from guardrail.proxy.session import Session, with_meta
from guardrail.proxy.signals import told_to_end
from guardrail.proxy.words import Words, passed_on
from guardrail.telemetry.logs import get_logger

SESSION: Final = "mcp-session-id"
JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
MOST_SESSIONS: Final = 10_000
CONNECTING: Final = 10.0
"""How many seconds a connection to the server may take; what it takes to answer is for its client to bound."""

_HOP: Final = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "upgrade"),
        *("transfer-encoding", "content-length", "content-encoding", "accept-encoding", "host", "origin", "date", "server"),
    }
)
"""Headers that are between two neighbours, or that each writes for itself."""

Adapt: TypeAlias = Callable[[Message], Awaitable[Message | None]]
"""What becomes of an answer; None: the client gets none."""


class Front:
    """What clients talk to. `headers` are sent to the server with every request; they win over a client's."""

    def __init__(
        self, runs: Runs, url: str, access: Access, *, name: str, headers: Mapping[str, str], longest: int = LONGEST
    ) -> None:
        self._runs = runs
        self._url = url
        self._access = access
        self._name = name
        self._headers = {key.lower(): value for key, value in headers.items()}
        self._longest = longest
        self._sessions: dict[str, Session] = {}
        self._beside: set[asyncio.Task[None]] = set()
        self._http = httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=CONNECTING),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
            trust_env=False,
        )
        path = urlsplit(url).path or "/"
        self.app = Starlette(routes=[Route(path, self._serve, methods=["GET", "POST", "DELETE"])])

    async def close(self) -> None:
        """End all sessions, and judge their runs."""
        await asyncio.gather(*(session.close() for session in tuple(self._sessions.values())))
        await self._runs.close()
        for task in tuple(self._beside):
            task.cancel()
        await self._http.aclose()

    async def _serve(self, request: Request) -> Response:
        denied = self._access.denied(request.headers)
        if denied is not None:
            status, why = denied
            headers = {"www-authenticate": "Bearer"} if status == 401 else None
            return _error(status, failure(None, INVALID_REQUEST, why), headers)
        try:
            match request.method:
                case "POST":
                    return await self._post(request)
                case "GET":
                    return await self._listen(request)
                case _:
                    return await self._delete(request)
        except Malformed as error:
            return _error(400, failure(error.id, error.code, str(error)))
        except ConnectionError as error:
            return _error(502, failure(None, INVALID_REQUEST, str(error)))
        except ClientDisconnect:
            return Response(status_code=499)

    # Requests.

    async def _post(self, request: Request) -> Response:
        message = read_strictly(await self._body(request))
        session = self._session(request, message)
        if session.is_call(message):
            return await self._call(request, session, message)
        words = Words.of(message)
        if message.method == "notifications/cancelled":
            session.cancel(message)

        async def adapt(answer: Message) -> Message | None:
            if message.method == "tools/list":
                session.learn_tools(answer)
            return with_meta(answer, await session.end_run(words)) if words.end else answer

        heeded = message.is_request and (words.end or message.method == "tools/list")
        response = await self._ask(request, passed_on(message, {}).raw)
        if words.end and not message.is_request:
            await session.end_run(words)
        return await self._through(response, adapt if heeded else None)

    async def _listen(self, request: Request) -> Response:
        """A stream of what the server says by itself, and of what a client missed when its stream broke."""
        session = self._sessions.get(_session_name(request))

        async def adapt(message: Message) -> Message | None:
            exchange = None if session is None else session.deliver(message)
            if exchange is not None:
                return await exchange.said
            return message if session is None else session.replayed(message)

        return await self._through(await self._ask(request, b""), adapt)

    async def _delete(self, request: Request) -> Response:
        response = await self._ask(request, b"")
        session = self._known(request)
        if session is not None:
            self._sessions.pop(session.name, None)
            await session.close()
        return await self._through(response, None)

    async def _call(self, request: Request, session: Session, message: Message) -> Response:
        """A call: answered at once in JSON, or by a stream where the server has something to say before."""
        if request.headers.get(SESSION) is not None and session.is_taken(message):
            raise Malformed(INVALID_REQUEST, f"the id {message.key} is that of a request under way: use another")
        relay = Relay(lambda raw: self._ask(request, raw), self._longest)
        exchange = relay.exchange = session.call(message, relay.send)
        gone = asyncio.create_task(_gone(request))
        try:
            await asyncio.wait({exchange.said, relay.streaming, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
        if relay.streaming.done():
            left = BackgroundTask(self._left, session, relay, message)
            return _Stream(relay.events(), relay.status, _passed(relay.headers, EVENTS), left)
        if not exchange.said.done():
            self._left(session, relay, message)
            return Response(status_code=499)
        try:
            said = exchange.said.result()
        except HttpRefused as error:
            return error.response
        if said is None:
            return Response(status_code=202)
        return Response(said.raw, relay.status, _passed(relay.headers, JSON))

    def _left(self, session: Session, relay: Relay, message: Message) -> None:
        """The client has let go of a stream: before sessions were abolished that meant nothing, since then it cancels."""
        relay.abandoned()
        if message.is_stateless and not relay.exchange.said.done():
            session.give_up(relay.exchange)

    # Sessions.

    def _session(self, request: Request, message: Message) -> Session:
        """The session of a request; without one, of all that come from the same client with the same credential."""
        known = self._known(request)
        if known is not None:
            return known
        name = _session_name(request, message)
        if name in self._sessions:
            return self._sessions[name]
        if len(self._sessions) >= MOST_SESSIONS:  # a stop is not forgotten with its session
            old = next((old for old, it in self._sessions.items() if not it.is_busy), None)
            self._sessions.pop(old or "", None)
        owner = credential(request.headers) or name
        session = self._sessions[name] = Session(self._runs, name, owner, self._name)
        return session

    def _known(self, request: Request) -> Session | None:
        """The session that a request names. Raises `Malformed` where it was opened with another credential."""
        if SESSION not in request.headers:
            return None
        session = self._sessions.get(_session_name(request))
        if session is not None and session.owner != (credential(request.headers) or session.name):
            raise Malformed(INVALID_REQUEST, "this session was opened with another credential")
        return session

    # The server.

    async def _ask(self, request: Request, raw: bytes) -> httpx.Response:
        """The server's response to a request, its body not yet read. Raises `ServerAway` and `ServerLost`."""
        hidden = _HOP if self._access.token is None else _HOP | {"authorization"}
        headers = {name: value for name, value in request.headers.items() if name not in hidden}
        headers |= {"accept-encoding": "identity", **self._headers}
        query = f"?{request.url.query}" if request.url.query else ""
        asked = self._http.build_request(request.method, self._url + query, headers=headers, content=raw or None)
        try:
            response = await self._http.send(asked, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol) as error:
            raise ServerAway(f"the server cannot be reached: {error}") from error
        except httpx.HTTPError as error:
            raise ServerLost(f"the connection to the server broke: {error}") from error
        if response.status_code == 404 and (session := self._known(request)) is not None:
            self._sessions.pop(session.name, None)
            self._do(session.close())
        return response

    async def _through(self, response: httpx.Response, adapt: Adapt | None) -> Response:
        """A response as it is; with `adapt`, its answers as that makes them."""
        kind = _kind(response)
        if adapt is not None and kind == JSON:
            raw = await _whole(response, self._longest)
            with contextlib.suppress(Malformed):
                found = read(raw)
                adapted = await adapt(found) if isinstance(found, Message) and found.is_answer else None
                raw = raw if adapted is None else adapted.raw
            return Response(raw, response.status_code, _passed(response.headers, kind))
        body = _adapted_events(response, adapt, self._longest) if adapt and kind == EVENTS else _raw(response)
        return _Stream(body, response.status_code, _passed(response.headers, kind), BackgroundTask(response.aclose))

    async def _body(self, request: Request) -> bytes:
        parts: list[bytes] = []
        size = 0
        async for chunk in request.stream():
            size += len(chunk)
            if size > self._longest:
                raise Malformed(INVALID_REQUEST, f"this message has more than {self._longest:,} bytes")
            parts.append(chunk)
        return b"".join(parts)

    def _do(self, task: Awaitable[None]) -> None:
        running = asyncio.ensure_future(task)
        self._beside.add(running)
        running.add_done_callback(self._beside.discard)


class HttpRefused(Unanswered):
    """The server has turned a request down by the status of its response; `status_code` is what a judge looks at."""

    def __init__(self, response: Response) -> None:
        self.status_code = response.status_code
        self.response = response
        super().__init__(f"status {response.status_code}")


class Relay:
    """One request for a call, and the server's response to it: what comes before the answer goes by as it comes."""

    exchange: Exchange

    def __init__(self, ask: Callable[[bytes], Awaitable[httpx.Response]], longest: int) -> None:
        self._ask = ask
        self._longest = longest
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue(64)
        self._reading: asyncio.Task[None] | None = None
        self._abandoned = False
        self.status = 200
        self.headers: Mapping[str, str] = {}
        self.streaming: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the server has begun a stream."""

    async def send(self, message: Message) -> None:
        """Send the request; the answer goes to the exchange. Raises what is no answer."""
        response = await self._ask(message.raw)
        self.status, self.headers = response.status_code, response.headers
        if response.status_code == 200 and _kind(response) == EVENTS:
            self._reading = asyncio.create_task(self._read(response))
            self.streaming.set_result(None)
            return
        raw = await _whole(response, self._longest)
        try:
            found = read(raw)
        except Malformed:
            found = []
        if isinstance(found, Message) and found.is_answer and found.key == message.key:
            self.exchange.answer(found)
        elif response.status_code >= 400:
            raise HttpRefused(Response(raw, response.status_code, _passed(response.headers, _kind(response))))
        else:
            raise ServerLost(f"the server has answered something else (status {response.status_code})")

    async def events(self) -> AsyncIterator[bytes]:
        """What the client gets, as it comes; the answer last."""
        while (event := await self._queue.get()) is not None:
            yield event.raw

    def abandoned(self) -> None:
        """Nobody reads the events any more; what the call comes to is still to be known."""
        self._abandoned = True
        while not self._queue.empty():
            self._queue.get_nowait()

    async def _read(self, response: httpx.Response) -> None:
        exchange, resumable = self.exchange, False
        why = "the connection to the server broke before it had answered"
        try:
            async for event in _events(response, self._longest):
                resumable = resumable or event.has_id
                await self._take(event, exchange)
        except ServerLost as error:
            why = str(error)
        except TooLong:
            why, resumable = f"the server's answer had more than {self._longest:,} bytes", False
        finally:
            await response.aclose()
        if not exchange.is_answered and not resumable:  # else the client takes the stream up again
            exchange.fail(ServerLost(why))
            if (said := await exchange.said) is not None:
                await self._put(event_of(said))
        await self._put(None)

    async def _take(self, event: Event, exchange: Exchange) -> None:
        async def adapt(message: Message) -> Message | None:
            if message.key != exchange.request.key:
                return message
            exchange.answer(message)
            return await exchange.said

        for adapted in await _adapted(event, adapt):
            await self._put(adapted)

    async def _put(self, event: Event | None) -> None:
        if not self._abandoned:
            await self._queue.put(event)


async def serve(
    runs: Runs,
    url: str,
    listen: str,
    *,
    name: str,
    headers: Mapping[str, str],
    token: str | None,
    origins: Sequence[str],
) -> None:
    """Listen until this process is told to end, then judge what is open.

    Raises `GuardrailError` for an address beyond this machine without a token, and for a URL that is none.
    """
    host, port = address_of(listen)
    if not url.startswith(("http://", "https://")):
        raise GuardrailError(f"--url {url}: the server's URL begins with http:// or https://")
    local = is_loopback(host)
    if not local and not token:
        raise GuardrailError(f"--listen {listen}: others can reach this address: demand a --token of them")
    listening = _bound(host, port)
    front = Front(runs, url, Access(local, token or None, origins), name=name, headers=headers)
    config = uvicorn.Config(
        front.app, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=2, lifespan="off"
    )
    get_logger().info("guardrail.listening", host=host, port=listening.getsockname()[1])
    listener = _Listener(config)
    serving = asyncio.create_task(listener.serve([listening]))
    try:
        await asyncio.wait({serving, told_to_end(runs.abort)}, return_when=asyncio.FIRST_COMPLETED)
        listener.should_exit = True
        await serving
    finally:
        await front.close()


class _Listener(uvicorn.Server):
    """A listener that leaves signals alone: what comes after it, the verdicts, is not to be cut off by them."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Capture none."""
        yield


def _bound(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise GuardrailError(f"--listen {host}:{port}: {error.strerror or error}") from error


class _Stream(StreamingResponse):
    """A stream that does what is left to do also when its reader has gone."""

    def __init__(
        self, body: AsyncIterator[bytes], status: int, headers: Mapping[str, str], left: BackgroundTask
    ) -> None:
        super().__init__(body, status, headers)
        self._left = left

    async def __call__(self, scope: object, receive: object, send: object) -> None:
        try:
            await super().__call__(scope, receive, send)  # type: ignore[arg-type]  # they are starlette's own
        finally:
            await self._left()


async def _gone(request: Request) -> None:
    while not await request.is_disconnected():
        await asyncio.sleep(1)


def _session_name(request: Request, message: Message | None = None) -> str:
    if SESSION in request.headers:
        return f"session {request.headers[SESSION]}"
    client = message.meta.get("io.modelcontextprotocol/clientInfo") if message is not None else None
    host = request.client.host if request.client is not None else ""
    return f"client {json.dumps([credential(request.headers), host, client], sort_keys=True)}"


def _kind(response: httpx.Response) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _passed(headers: Mapping[str, str], kind: str) -> dict[str, str]:
    """A response's headers as they are passed on."""
    kept = {name.lower(): value for name, value in headers.items() if name.lower() not in _HOP}
    return {**kept, "content-type": kind} if kind else kept


def _error(status: int, message: Message, headers: Mapping[str, str] | None = None) -> Response:
    return Response(message.raw, status, headers, JSON)


async def _adapted(event: Event, adapt: Adapt) -> list[Event]:
    """An event whose answers are adapted; the event itself where that changes nothing."""
    messages = event.messages
    adapted = [await adapt(message) if message.is_answer else message for message in messages]
    if all(one is other for one, other in zip(messages, adapted, strict=True)):
        return [event]
    return [event.carrying(message) for message in adapted if message is not None]


async def _adapted_events(response: httpx.Response, adapt: Adapt, longest: int) -> AsyncIterator[bytes]:
    with contextlib.suppress(ServerLost, TooLong):
        async for event in _events(response, longest):
            for adapted in await _adapted(event, adapt):
                yield adapted.raw


async def _events(response: httpx.Response, longest: int) -> AsyncIterator[Event]:
    """The events of a response; raises `ServerLost` where it breaks off, and `TooLong`."""
    events = Events(longest)
    try:
        async for chunk in response.aiter_raw():
            for event in events.cut(chunk):
                yield event
    except httpx.HTTPError as error:
        raise ServerLost(f"the connection to the server broke: {error}") from error


async def _raw(response: httpx.Response) -> AsyncIterator[bytes]:
    with contextlib.suppress(httpx.HTTPError):
        async for chunk in response.aiter_raw():
            yield chunk


async def _whole(response: httpx.Response, longest: int) -> bytes:
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
