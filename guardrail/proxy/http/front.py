"""What clients talk to over HTTP: sessions, calls through the guard, everything else to the server and back."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Coroutine, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from guardrail.proxy import traces
from guardrail.proxy.exchange import ServerAway, ServerLost
from guardrail.proxy.http.access import Access, credential
from guardrail.proxy.http.relay import HttpRefused, Relay
from guardrail.proxy.http.responses import (
    EVENTS,
    HOP,
    JSON,
    Adapt,
    Stream,
    adapted_events,
    kind_of,
    passed,
    raw_of,
    refusal,
    whole,
)
from guardrail.proxy.messages import (
    CONNECTION_LOST,
    GUARD_FAILED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    LONGEST,
    Malformed,
    Message,
    failure,
    read,
    read_strictly,
)
from guardrail.proxy.runs import Runs
from guardrail.proxy.session import Session, with_meta
from guardrail.proxy.words import Words, passed_on
from guardrail.telemetry.logs import get_logger

SESSION: Final = "mcp-session-id"
MOST_SESSIONS: Final = 10_000
CONNECTING: Final = 10.0
"""How many seconds a connection to the server may take; what it takes to answer is for its client to bound."""


class Front:
    """What clients talk to. `headers` are sent to the server with every request; they win over a client's.

    `transport` is the way to the server, where it is not HTTP over the network.
    """

    def __init__(
        self,
        runs: Runs,
        url: str,
        access: Access,
        *,
        name: str,
        headers: Mapping[str, str],
        transport: httpx.AsyncBaseTransport | None = None,
        longest: int = LONGEST,
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
            transport=transport,
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
            return refusal(status, failure(None, INVALID_REQUEST, why), headers)
        try:
            match request.method:
                case "POST":
                    return await self._post(request)
                case "GET":
                    return await self._listen(request)
                case _:
                    return await self._delete(request)
        except Malformed as error:
            return refusal(400, failure(error.id, error.code, str(error)))
        except ConnectionError as error:
            return refusal(502, failure(None, CONNECTION_LOST, str(error)))
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:  # noqa: BLE001 - the guard's own failure: the request gets no further
            get_logger().error("guardrail.guard_error", error=type(error).__name__, why=str(error))
            return refusal(500, failure(None, INTERNAL_ERROR, GUARD_FAILED))

    # Requests.

    async def _post(self, request: Request) -> Response:
        message = read_strictly(await self._body(request))
        try:
            return await self._answer(request, message)
        except ConnectionError as error:
            return refusal(502, failure(message.id, CONNECTION_LOST, str(error)))

    async def _answer(self, request: Request, message: Message) -> Response:
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
        relay = Relay(lambda raw: self._ask(request, raw, traces.current()), self._longest)
        exchange = relay.exchange = session.call(message, relay.send, request.headers)
        gone = asyncio.create_task(_gone(request))
        try:
            awaited: tuple[asyncio.Future[Any], ...] = (exchange.said, relay.streaming, gone)
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
        if relay.streaming.done():
            left = BackgroundTask(self._left, session, relay, message)
            return Stream(relay.events(), relay.status, passed(relay.headers, EVENTS), left)
        if not exchange.said.done():
            self._left(session, relay, message)
            return Response(status_code=499)
        try:
            said = exchange.said.result()
        except HttpRefused as error:
            return error.response
        if said is None:
            return Response(status_code=202)
        return Response(said.raw, relay.status, passed(relay.headers, JSON))

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

    async def _ask(self, request: Request, raw: bytes, trace: Mapping[str, str] = {}) -> httpx.Response:
        """The server's response to a request, its body not yet read. Raises `ServerAway` and `ServerLost`.

        `trace` is the guard's, which the server gets to know in the place of the client's.
        """
        hidden = HOP if self._access.token is None else HOP | {"authorization"}
        hidden = hidden | traces.FIELDS if trace else hidden
        headers = {name: value for name, value in request.headers.items() if name not in hidden}
        headers |= {"accept-encoding": "identity", **trace, **self._headers}
        url = httpx.URL(self._url).copy_merge_params(query) if (query := request.url.query) else self._url
        asked = self._http.build_request(request.method, url, headers=headers, content=raw or None)
        try:
            response = await self._http.send(asked, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol) as error:
            raise ServerAway(f"the server cannot be reached: {error}") from error
        except httpx.HTTPError as error:
            raise ServerLost(f"the connection to the server broke: {error}") from error
        if response.has_redirect_location:  # a client that followed it would talk to the server without a guard
            await response.aclose()
            kind = ServerAway if response.status_code in (307, 308) else ServerLost  # those want the same request again
            raise kind(f"the server is somewhere else: give its place as --url: {response.headers['location']}")
        if response.status_code == 404 and (session := self._known(request)) is not None:
            self._sessions.pop(session.name, None)
            self._do(self._lost(session))
        return response

    async def _lost(self, session: Session) -> None:
        """The server knows a session no more: it ends, once its calls have been told so."""
        await session.quiet(CONNECTING)
        await session.close()

    async def _through(self, response: httpx.Response, adapt: Adapt | None) -> Response:
        """A response as it is; with `adapt`, its answers as that makes them."""
        kind = kind_of(response)
        if adapt is not None and kind == JSON:
            raw = await whole(response, self._longest)
            with contextlib.suppress(Malformed):
                found = read(raw)
                adapted = await adapt(found) if isinstance(found, Message) and found.is_answer else None
                raw = raw if adapted is None else adapted.raw
            return Response(raw, response.status_code, passed(response.headers, kind))
        body = adapted_events(response, adapt, self._longest) if adapt and kind == EVENTS else raw_of(response)
        return Stream(body, response.status_code, passed(response.headers, kind), BackgroundTask(response.aclose))

    async def _body(self, request: Request) -> bytes:
        parts: list[bytes] = []
        size = 0
        async for chunk in request.stream():
            size += len(chunk)
            if size > self._longest:
                raise Malformed(INVALID_REQUEST, f"this message has more than {self._longest:,} bytes")
            parts.append(chunk)
        return b"".join(parts)

    def _do(self, task: Coroutine[object, object, None]) -> None:
        running = asyncio.create_task(task)
        self._beside.add(running)
        running.add_done_callback(self._beside.discard)


async def _gone(request: Request) -> None:
    """Until the client has gone: its request was read, so nothing else comes."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _session_name(request: Request, message: Message | None = None) -> str:
    if SESSION in request.headers:
        return f"session {request.headers[SESSION]}"
    client = message.meta.get("io.modelcontextprotocol/clientInfo") if message is not None else None
    host = request.client.host if request.client is not None else ""
    return f"client {json.dumps([credential(request.headers), host, client], sort_keys=True)}"
