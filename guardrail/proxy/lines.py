"""Lines of bytes, as they travel over pipes: one message each."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import stat
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Final, Protocol

CHUNK: Final = 1 << 16
_BACKLOG: Final = 1 << 20
"""How many bytes wait for a slow reader before whoever writes has to wait too."""


class TooLong(Exception):
    """A line was longer than it may be, and has been thrown away."""


class Splitter:
    """Cuts a stream of bytes into lines; of one that is too long, nothing is kept but that there was one."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._size = 0

    def lines(self, chunk: bytes) -> Iterator[bytes | None]:
        """The lines that a chunk completes, without their ends; None for one that was too long."""
        *complete, rest = chunk.split(b"\n")
        for part in complete:
            self._keep(part)
            yield self._taken()
        self._keep(rest)

    def last(self) -> bytes | None:
        """What stands behind the last line break, when the stream has ended."""
        return self._taken()

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._longest:
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _taken(self) -> bytes | None:
        line = None if self._size > self._longest else b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        # A carriage return is a line break to some readers, and means nothing else in JSON.
        return line.replace(b"\r", b" ").strip() if line and b"\r" in line else line


async def lines(read: Callable[[], Awaitable[bytes]], longest: int) -> AsyncIterator[bytes | None]:
    """The lines of what is read until nothing more comes, without empty ones; None for one that was too long."""
    splitter = Splitter(longest)
    while chunk := await read():
        for line in splitter.lines(chunk):
            if line != b"":
                yield line
    if rest := splitter.last():
        yield rest


class Writer(Protocol):
    """Where lines go."""

    async def line(self, text: bytes) -> None:
        """Write a line, or wait until there is room for it; raises OSError when nobody reads any more."""
        ...


class Input:
    """What a file descriptor gives. Its flags stay as they are: of standard input nobody knows who shares it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._readable = asyncio.Event()
        self._chunks: asyncio.Queue[bytes] | None = None
        try:
            self._loop.add_reader(descriptor, self._tell)
        except (NotImplementedError, OSError):
            # A loop of Windows watches no descriptors (NotImplementedError), and epoll no plain file (PermissionError): then
            # a thread reads.
            self._chunks = asyncio.Queue(16)
            threading.Thread(target=self._read_all, args=(self._chunks,), name="guardrail-input", daemon=True).start()

    async def read(self) -> bytes:
        """The next bytes; none when there will be no more."""
        if self._chunks is not None:
            return await self._chunks.get()
        await self._readable.wait()
        self._readable.clear()
        chunk = self._read()
        if chunk:
            self._loop.add_reader(self._descriptor, self._tell)
        return chunk

    def _tell(self) -> None:
        self._loop.remove_reader(self._descriptor)  # until somebody has read it
        self._readable.set()

    def _read(self) -> bytes:
        try:
            return os.read(self._descriptor, CHUNK)
        except OSError:
            return b""

    def _read_all(self, chunks: asyncio.Queue[bytes]) -> None:
        more = True
        while more:
            chunk = self._read()
            more = bool(chunk)
            try:
                asyncio.run_coroutine_threadsafe(chunks.put(chunk), self._loop).result()
            except RuntimeError:  # the loop has ended
                return


class Output:
    """What goes to a file descriptor: at once where it cannot block, else by a thread. Its flags stay as they are."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Condition()
        self._waiting: list[bytes] = []
        self._size = 0
        self._error: OSError | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._has_room = _room_in(descriptor)
        threading.Thread(target=self._write, name="guardrail-output", daemon=True).start()

    async def line(self, text: bytes) -> None:
        """Write a line, or wait until there is room for it; raises OSError when nobody reads any more."""
        await self._room.wait()
        if self._error is not None:
            raise self._error
        data = text + b"\n"
        if not self._size and self._has_room(len(data)):
            self._write_all(data)
            return
        with self._lock:
            self._waiting.append(data)
            self._size += len(data)
            if self._size > _BACKLOG:
                self._room.clear()
            self._lock.notify()

    async def flushed(self) -> None:
        """Wait until all is written, or nobody reads any more."""
        while self._size and self._error is None:
            self._room.clear()
            await self._room.wait()

    def _write(self) -> None:
        while self._error is None:
            with self._lock:
                self._lock.wait_for(lambda: self._waiting)
                data = b"".join(self._waiting)
                self._waiting.clear()
            try:
                self._write_all(data)
            except OSError as error:
                self._error = error
            with self._lock:
                self._size -= len(data)
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._make_room)

    def _write_all(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def _make_room(self) -> None:
        if self._size <= _BACKLOG or self._error is not None:
            self._room.set()


def _room_in(descriptor: int) -> Callable[[int], bool]:
    """Whether so many bytes can be written without waiting: known of a pipe only, which is written to when it can take
    a certain number of bytes.
    """
    if not hasattr(select, "poll") or not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        return lambda size: False
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return lambda size: size <= select.PIPE_BUF and any(event & select.POLLOUT for _, event in poll.poll(0))
