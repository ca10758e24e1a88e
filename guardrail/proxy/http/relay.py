"""The relay of one request for a call to a server over HTTP, and of what the server answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

import httpx
from starlette.responses import Response

from guardrail.proxy.exchange import Exchange, ServerLost, Unanswered
from guardrail.proxy.http.events import Event, TooLong, event_of
from guardrail.proxy.http.responses import EVENTS, adapted, events_of, kind_of, passed, whole
from guardrail.proxy.messages import Malformed, Message, read


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
        if response.status_code == 200 and kind_of(response) == EVENTS:
            self._reading = asyncio.create_task(self._read(response))
            self.streaming.set_result(None)
            return
        raw = await whole(response, self._longest)
        try:
            found = read(raw)
        except Malformed:
            found = []
        if isinstance(found, Message) and found.is_answer and found.key == message.key:
            self.exchange.answer(found)
        elif response.status_code >= 400:
            raise HttpRefused(Response(raw, response.status_code, passed(response.headers, kind_of(response))))
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
            async for event in events_of(response, self._longest):
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

        for part in await adapted(event, adapt):
            await self._put(part)

    async def _put(self, event: Event | None) -> None:
        if not self._abandoned:
            await self._queue.put(event)
