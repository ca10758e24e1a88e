"""The proxy over standard input and output: one client, one server, one session."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Mapping, Sequence
from typing import Final

from guardrail.proxy.exchange import Exchange, ServerLost
from guardrail.proxy.lines import Input, Output, lines
from guardrail.proxy.messages import (
    GUARD_FAILED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Id,
    Malformed,
    Message,
    failure,
    read_strictly,
)
from guardrail.proxy.runs import Runs
from guardrail.proxy.server import Server
from guardrail.proxy.session import Session, with_meta
from guardrail.proxy.signals import GaveUp, Signals
from guardrail.proxy.words import Words, passed_on
from guardrail.telemetry.logs import get_logger

NAME: Final = "stdio"
"""The name of the one session, which owns its runs."""


class Pipes:
    """A client at one end, a server at the other; `longest` bounds a message, in bytes, from either."""

    def __init__(self, session: Session, client: tuple[Input, Output], server: Server, longest: int) -> None:
        self._session = session
        self._input, self._output = client
        self._server = server
        self._longest = longest
        self._beside: set[asyncio.Task[None]] = set()
        self._ending: dict[str, Words] = {}
        self._log = get_logger()

    async def from_client(self) -> None:
        """Take what the client says until it has no more to say."""
        async for line in lines(self._input.read, self._longest):
            id: Id | None = None
            try:
                message = self._read(line)
                id = message.id
                await self._asked(message)
            except Malformed as error:
                await self._output.line(failure(error.id, error.code, str(error)).raw)
            except OSError:  # the client has gone
                raise
            except Exception as error:  # noqa: BLE001 - the guard's own failure: the message gets no further
                self._log.error("guardrail.guard_error", error=type(error).__name__, why=str(error))
                await self._output.line(failure(id, INTERNAL_ERROR, GUARD_FAILED).raw)

    async def from_server(self) -> None:
        """Take what the server says until it has ended."""
        async for message in self._server.messages(self._longest):
            if message is None:
                await self.lose(f"the server's answer had more than {self._longest:,} bytes")
                continue
            try:
                await self._said(message)
            except OSError:  # the client has gone
                raise
            except Exception as error:  # noqa: BLE001 - the guard's own failure
                self._log.error("guardrail.guard_error", error=type(error).__name__, why=str(error))
                await self.lose(GUARD_FAILED)

    async def lose(self, why: str) -> None:
        """Nothing that is under way will be answered by the server any more."""
        self._log.error("guardrail.server_lost", why=why)
        for message in self._session.lose(why):
            await self._output.line(message.raw)

    async def settled(self) -> None:
        """Wait until all that is done beside has been done, and all is written."""
        while self._beside:
            await asyncio.wait(self._beside)
        await self._output.flushed()

    def _read(self, line: bytes | None) -> Message:
        if line is None:
            raise Malformed(INVALID_REQUEST, f"this message has more than {self._longest:,} bytes")
        message = read_strictly(line)
        if self._session.is_taken(message):
            raise Malformed(INVALID_REQUEST, f"the id {message.key} is that of a request under way: use another")
        return message

    async def _asked(self, message: Message) -> None:
        if self._session.is_call(message):
            self._do(self._answer(self._session.call(message, self._send)))
            return
        words = Words.of(message)
        if message.method == "notifications/cancelled":
            self._session.cancel(message)
        if message.is_request:
            self._session.ask(message)
            if words.end:
                self._ending[message.key] = words
        elif words.end:
            self._do(self._end(words, None))
        with contextlib.suppress(ServerLost):  # then all under way is lost, and `from_server` says so
            await self._send(passed_on(message, {}))

    async def _said(self, message: Message) -> None:
        if not message.is_answer:
            await self._output.line(message.raw)
        elif self._session.deliver(message) is not None:
            pass  # the call says what the client gets
        elif not self._session.learn(message):
            self._log.warning("guardrail.answer_dropped", why="no request with this id is under way")
        elif (words := self._ending.pop(message.key, None)) is not None:
            self._do(self._end(words, message))
        else:
            await self._output.line(message.raw)

    async def _answer(self, exchange: Exchange) -> None:
        said = await exchange.said
        if said is not None:
            await self._output.line(said.raw)

    async def _end(self, words: Words, answer: Message | None) -> None:
        """End a run, and tell its verdict in the answer to the request that ended it."""
        try:
            told = await self._session.end_run(words)
        except Malformed as error:
            answer = failure(None if answer is None else answer.id, error.code, str(error))
        else:
            answer = None if answer is None else with_meta(answer, told)
        if answer is not None:
            await self._output.line(answer.raw)

    async def _send(self, message: Message) -> None:
        try:
            await self._server.line(message.raw)
        except OSError as error:
            raise ServerLost("the server does not read any more") from error

    def _do(self, task: Coroutine[object, object, None]) -> None:
        running = asyncio.create_task(self._unheard(task))
        self._beside.add(running)
        running.add_done_callback(self._beside.discard)

    async def _unheard(self, task: Coroutine[object, object, None]) -> None:
        with contextlib.suppress(OSError):  # the client has gone: `relay` knows from its input, or its output
            await task


async def relay(
    runs: Runs, command: Sequence[str], env: Mapping[str, str], *, name: str, longest: int, drain: float
) -> int | None:
    """Relay between this process's client and a server until one of them ends, or a signal comes.

    `name` is the server's in the configuration. Returns the code with which the server ended by itself, None if it was
    not the first to end. Raises `GuardrailError` where the server cannot be started, and `GaveUp`.
    """
    server = await Server.start(command, env)
    session = Session(runs, NAME, NAME, name)
    pipes = Pipes(session, (Input(0), Output(1)), server, longest)
    client, said = (asyncio.create_task(part) for part in (_quietly(pipes.from_client()), pipes.from_server()))
    signals = Signals()

    async def ended() -> int | None:
        by_itself = said.done()
        if by_itself:
            await _quietly(pipes.lose("the server has ended"))
        quiet = asyncio.create_task(session.quiet(drain))
        await asyncio.wait({quiet, signals.end}, return_when=asyncio.FIRST_COMPLETED)
        server.hang_up()
        _, code = await asyncio.gather(_judged(session, runs), server.end())
        await pipes.settled()
        return code if by_itself else None

    try:
        await asyncio.wait({client, said, signals.end}, return_when=asyncio.FIRST_COMPLETED)
        return await signals.wait(ended())
    except GaveUp:
        runs.abort()
        server.kill()
        await asyncio.gather(_judged(session, runs), server.end())
        raise
    finally:
        client.cancel()
        said.cancel()


async def _judged(session: Session, runs: Runs) -> None:
    await session.close()
    await runs.close()


async def _quietly(part: Coroutine[object, object, None]) -> None:
    """Until the client has gone: then there is nobody to tell."""
    with contextlib.suppress(OSError):
        await part
