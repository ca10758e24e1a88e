"""A session of one client with one server: every call goes through the guard, everything else goes by."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Mapping
from typing import Final, cast

from opentelemetry import context as contexts

from guardrail.call.drivers import adrive
from guardrail.call.flow import guarded
from guardrail.call.hints import hints_of
from guardrail.calls import Answer, Halted, Hints, Raised, Refused, Returned, ToolCall, Unmade
from guardrail.errors import FINAL, GuardrailError
from guardrail.judge.unmade import says_unmade
from guardrail.meta import REFUSED, RUN_ID, STOPPED, VERDICT
from guardrail.proxy import traces
from guardrail.proxy.exchange import Exchange, Send, ServerLost, Unanswered, awaited, going_on
from guardrail.proxy.messages import (
    CONNECTION_LOST,
    INVALID_PARAMS,
    Malformed,
    Message,
    failure,
    mapping,
    tool_failure,
    write,
)
from guardrail.proxy.runs import OpenRun, RunOver, Runs
from guardrail.proxy.words import Words, passed_on
from guardrail.telemetry.logs import get_logger

_MOST_WITHHELD: Final = 1_000
_MOST_TOOLS: Final = 10_000


class Session:
    """What the guard knows of one session.

    `name` is the session's own; `owner` is who may use the runs that it opens: the session, or the credential that
    several sessions share. `server` is the server's name in the configuration, "" where it has none there.
    """

    def __init__(self, runs: Runs, name: str, owner: str, server: str) -> None:
        self.name = name
        self.owner = owner
        self._server = server
        self._runs = runs
        self._hints: dict[str, Hints] = {}
        self._others: dict[str, Message] = {}
        """The requests under way that are no calls."""
        self._flying: dict[str, Exchange] = {}
        """The calls under way, by the id of their latest request."""
        self._waiting: dict[str, Exchange] = {}
        """The calls that wait for the client to go on with them, by what that will look like."""
        self._withheld: dict[str, Message] = {}
        """What the client got in the place of a result, by the request's id: a stream may be played to it again."""
        self._tasks: dict[Exchange, asyncio.Task[None]] = {}

    @property
    def is_busy(self) -> bool:
        """Whether calls are under way."""
        return bool(self._tasks)

    # From the client.

    def is_call(self, request: Message) -> bool:
        """Whether a request is a call, or goes on with one."""
        return request.is_request and (request.method == "tools/call" or going_on(request) in self._waiting)

    def is_taken(self, request: Message) -> bool:
        """Whether a request has the id of one that is under way: nobody could tell their answers apart."""
        return request.is_request and (request.key in self._flying or request.key in self._others)

    def ask(self, request: Message) -> None:
        """A request that is no call goes to the server."""
        self._others[request.key] = request

    def call(self, request: Message, send: Send, headers: Mapping[str, str] = {}) -> Exchange:
        """Begin a call, or go on with one; what the client gets for the request is `said` by the exchange.

        `headers` are those of the transport, if it has any: they may say which trace the call belongs to.
        """
        exchange = self._waiting.pop(going_on(request) or "", None)
        if exchange is not None:
            exchange.resume(request, send)
        else:
            exchange = Exchange(request, send, traces.told(request, headers))
            task = self._tasks[exchange] = asyncio.create_task(self._carry_out(exchange))
            task.add_done_callback(lambda _: self._tasks.pop(exchange))
        self._flying[request.key] = exchange
        return exchange

    def cancel(self, notification: Message) -> None:
        """The client does not wait any more for a request; a write that was sent is in doubt."""
        request = Message(b"", {"id": notification.params.get("requestId")})
        if (exchange := self._flying.get(request.key)) is not None:
            self.give_up(exchange)

    def give_up(self, exchange: Exchange) -> None:
        """Nobody waits for a call any more."""
        if (task := self._tasks.get(exchange)) is not None:
            task.cancel()

    async def end_run(self, words: Words) -> Mapping[str, object]:
        """End the run that the words name; what the host gets to know of it. Raises `Malformed`."""
        try:
            ended = await self._runs.end(self.name, self.owner, words)
        except GuardrailError as error:
            raise Malformed(INVALID_PARAMS, str(error)) from error
        if ended is None:
            return {}
        run, verdict = ended
        return {RUN_ID: run, VERDICT: None if verdict is None else verdict.kind}

    # From the server.

    def deliver(self, answer: Message) -> Exchange | None:
        """Give an answer to the call that it belongs to, which then says what the client gets; None: to no call."""
        exchange = self._flying.get(answer.key)
        if exchange is not None:
            exchange.answer(answer)
        return exchange

    def learn(self, answer: Message) -> bool:
        """Whether an answer is one to a request under way that was no call. A list of tools says what each is like."""
        request = self._others.pop(answer.key, None)
        if request is not None and request.method == "tools/list":
            self.learn_tools(answer)
        return request is not None

    def learn_tools(self, answer: Message) -> None:
        """A list of tools says what the server says of each."""
        tools = answer.result.get("tools")
        for tool in cast("list[object]", tools) if isinstance(tools, list) else ():
            if isinstance(tool, dict) and isinstance(name := cast("dict[str, object]", tool).get("name"), str):
                self._learn(name, hints_of(cast("dict[str, object]", tool).get("annotations"), self._server))

    def _learn(self, tool: str, hints: Hints | None) -> None:
        if hints is None:
            self._hints.pop(tool, None)
        elif len(self._hints) < _MOST_TOOLS:
            self._hints[tool] = hints

    def replayed(self, answer: Message) -> Message:
        """An answer that the client gets a second time: what stood in its place the first time, if something did."""
        return self._withheld.get(answer.key, answer)

    def lose(self, why: str) -> list[Message]:
        """The server will answer nothing that is under way: what the client gets for all that is no call."""
        for exchange in tuple(self._flying.values()):
            exchange.fail(ServerLost(why))
        lost = [failure(request.id, CONNECTION_LOST, why) for request in self._others.values()]
        self._others.clear()
        return lost

    async def quiet(self, seconds: float) -> None:
        """Wait, so long, for the calls that the server is at."""
        waiting = tuple(self._waiting.values())
        busy = [task for exchange, task in self._tasks.items() if exchange not in waiting]
        if busy:
            await asyncio.wait(busy, timeout=seconds)

    async def close(self) -> None:
        """End the session: give up the calls under way, and judge its own run."""
        for task in tuple(self._tasks.values()):
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await self._runs.leave(self.name, self.owner)

    # A call.

    async def _carry_out(self, exchange: Exchange) -> None:
        """Carry a call out, and say what the client gets: the one place where that is decided."""
        said: Message | Unanswered | None = None
        try:
            said = await self._guarded(exchange)
        except Malformed as error:
            said = failure(exchange.request.id, error.code, str(error))
        except RunOver as error:
            said = tool_failure(exchange.request, FINAL, {STOPPED: True, RUN_ID: error.run})
        except GuardrailError as error:
            said = failure(exchange.request.id, INVALID_PARAMS, str(error))
        except ConnectionError as error:
            said = failure(exchange.request.id, CONNECTION_LOST, str(error))
        except Unanswered as error:
            said = error
        except asyncio.CancelledError:
            pass  # nobody waits for an answer
        except Exception as error:  # noqa: BLE001 - the guard's own failure: nothing of the result gets through
            get_logger().error("guardrail.guard_error", error=type(error).__name__, why=str(error))
            said = tool_failure(exchange.request, FINAL, {STOPPED: True})
        finally:
            self._say(exchange, said)

    async def _guarded(self, exchange: Exchange) -> Message | None:
        request = exchange.request
        words = Words.of(request)
        call = _call(request, words, self._hints)
        opened = await self._runs.find(self.name, self.owner, words, exchange.host)
        with opened.in_use():
            # For as long as this task, which is the call's own.
            contexts.attach(opened.run.standing.journal.trace.adopt(exchange.host))
            flow = guarded(opened.run.standing, call)
            execute = functools.partial(self._execute, call.name, exchange, opened)
            say = functools.partial(_said, exchange, opened)
            said = await adrive(flow, cast("functools.partial[object]", execute), say)
        if words.end:
            told = await self.end_run(words)
            said = None if said is None else with_meta(cast("Message", said), told)
        return cast("Message | None", said)

    async def _execute(self, tool: str, exchange: Exchange, opened: OpenRun) -> object:
        """Have the server carry the call out; what it came to is returned or raised, as by any tool."""
        answer = await exchange.ask(_traced)
        while (like := awaited(exchange.request, answer)) is not None:
            await self._until_resumed(exchange, opened, like)
            answer = await exchange.ask(_traced)
        if says_unmade(tool, answer.failure):
            return Unmade(answer.result)
        if (error := answer.error) is not None:
            raise error
        return answer.result

    async def _until_resumed(self, exchange: Exchange, opened: OpenRun, like: str) -> None:
        """Pass on that the call goes on later, and wait for that; the end of the run gives it up."""
        give_up = functools.partial(self.give_up, exchange)
        self._waiting[like] = exchange
        opened.pending.add(give_up)
        try:
            resumed = asyncio.ensure_future(exchange.resumed())
            self._say(exchange, exchange.last)
            await resumed
        finally:
            opened.pending.discard(give_up)
            if self._waiting.get(like) is exchange:
                del self._waiting[like]
        if opened.run.stop is not None:
            raise RunOver(opened.run.id)

    def _say(self, exchange: Exchange, said: Message | Unanswered | None) -> None:
        key = exchange.request.key
        if self._flying.get(key) is exchange:
            del self._flying[key]
        if exchange.is_answered and isinstance(said, Message) and said is not exchange.last:
            if len(self._withheld) >= _MOST_WITHHELD:
                del self._withheld[next(iter(self._withheld))]
            self._withheld[key] = said
        exchange.say(said)


def with_meta(answer: Message, meta: Mapping[str, object]) -> Message:
    """An answer that says more in its `_meta`; an error stays as it is."""
    if not meta or "result" not in answer.body:
        return answer
    merged = {**mapping(answer.result.get("_meta")), **meta}
    return write({**answer.body, "result": {**answer.result, "_meta": merged}})


def _call(request: Message, words: Words, hints: Mapping[str, Hints]) -> ToolCall:
    """The call that a request asks for; raises `Malformed`."""
    name, args = request.params.get("name"), request.params.get("arguments")
    if not isinstance(name, str) or not name:
        raise Malformed(INVALID_PARAMS, "a call names its tool")
    if args is not None and not isinstance(args, dict):
        raise Malformed(INVALID_PARAMS, "the arguments of a call are an object")
    return ToolCall(name, cast("Mapping[str, object]", args or {}), words.call or str(request.id), hints.get(name))


def _traced(request: Message) -> Message:
    """The request below the span that is current, which is the call's; untouched where nothing traces."""
    return passed_on(request, traces.current())


def _said(exchange: Exchange, opened: OpenRun, answer: Answer) -> Message | None:
    """What the client gets; what the server said goes through as it came."""
    request, run = exchange.request, opened.run.id
    match answer:
        case Returned():
            return exchange.last
        case Halted():
            return tool_failure(request, FINAL, {STOPPED: True, RUN_ID: run})
        case Refused(_, reason, text):
            return tool_failure(request, text, {REFUSED: reason, RUN_ID: run})
        case Raised(error):
            if exchange.last is not None and exchange.is_answered:
                return exchange.last
            raise error
