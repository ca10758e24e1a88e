"""One call under way: its requests to the server, the server's answers, and what the client gets.

Mostly that is one request and one answer. But a server may answer that it needs something first (`input_required`), and
the client asks again with what was needed; or that it works on a task, whose result the client fetches later. To the
guard that is all one call: it has ended when its result is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from opentelemetry.context import Context

from guardrail.proxy.messages import Message, mapping
from guardrail.telemetry.canonical import canonical

Send: TypeAlias = Callable[[Message], Awaitable[None]]
"""Passes a request on to the server."""


class ServerLost(ConnectionResetError):
    """The server has gone, or said nothing that could be understood: it is not known whether the call was made."""


class ServerAway(ConnectionRefusedError):
    """The server cannot be reached: the call was not made."""


class Unanswered(Exception):
    """The server has turned a request down in its transport's own way, in which the client gets to know it."""


class Exchange:
    """A call's requests and answers, and the `host`'s context in which it was asked for.

    `said` is what the client gets for the latest request; None: nothing.
    """

    def __init__(self, request: Message, send: Send, host: Context) -> None:
        self.request = request
        self.host = host
        self._loop = asyncio.get_running_loop()
        self.said: asyncio.Future[Message | None] = self._loop.create_future()
        self.last: Message | None = None
        """The server's latest answer."""
        self._send = send
        self._answered: asyncio.Future[Message] = self._loop.create_future()
        self._resumed: asyncio.Future[None] = self._loop.create_future()

    @property
    def is_answered(self) -> bool:
        """Whether the server has answered the latest request."""
        return self._answered.done()

    async def ask(self, adapt: Callable[[Message], Message]) -> Message:
        """Send the latest request, as it is adapted for the server, and wait for its answer."""
        await self._send(adapt(self.request))
        self.last = await self._answered
        return self.last

    def answer(self, message: Message) -> None:
        """The server has answered."""
        if not self._answered.done():
            self._answered.set_result(message)

    def fail(self, error: Exception) -> None:
        """There will be no answer."""
        if not self._answered.done():
            self._answered.set_exception(error)

    def say(self, message: Message | Unanswered | None) -> None:
        """Give the client what it gets for the latest request."""
        if self.said.done():
            return
        if isinstance(message, Unanswered):
            self.said.set_exception(message)
            self.said.exception()  # which may be all that is ever heard of it: the client may have gone
        else:
            self.said.set_result(message)

    async def resumed(self) -> None:
        """Wait until the client goes on with the call."""
        await self._resumed

    def resume(self, request: Message, send: Send) -> None:
        """The client goes on with the call by another request."""
        self.request, self._send = request, send
        self.said, self._answered = self._loop.create_future(), self._loop.create_future()
        self._resumed.set_result(None)
        self._resumed = self._loop.create_future()


def awaited(request: Message, answer: Message) -> str | None:
    """What the request will look like that goes on with a call (see `going_on`); None: the call has its result."""
    result = answer.result
    if result.get("resultType") == "input_required":
        return _again(request, result.get("requestState"))
    if "task" in result and "content" not in result:
        return _fetching(mapping(result["task"]).get("taskId"))
    return None


def going_on(request: Message) -> str | None:
    """What a request looks like that goes on with a call; None for one that begins something new."""
    params = request.params
    if request.method == "tasks/result":
        return _fetching(params.get("taskId"))
    if request.method == "tools/call" and ("inputResponses" in params or "requestState" in params):
        return _again(request, params.get("requestState"))
    return None


def _again(request: Message, state: object) -> str:
    return canonical(["again", request.params.get("name"), request.params.get("arguments"), state])


def _fetching(task: object) -> str:
    return canonical(["task", task])
