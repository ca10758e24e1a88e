"""Lines of bytes, as they travel over pipes: one message each."""

from __future__ import annotations

import asyncio
import os
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
    """What a file descriptor gives, read by a thread: of standard input nobody knows what it is, and who shares it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue(16)
        threading.Thread(target=self._read, name="guardrail-input", daemon=True).start()

    async def read(self) -> bytes:
        """The next bytes; none when there will be no more."""
        return await self._chunks.get()

    def _read(self) -> None:
        chunk = b"-"
        while chunk:
            try:
                chunk = os.read(self._descriptor, CHUNK)
            except OSError:
                chunk = b""
            try:
                asyncio.run_coroutine_threadsafe(self._chunks.put(chunk), self._loop).result()
            except RuntimeError:  # the loop has ended
                return


class Output:
    """What goes to a file descriptor, written by a thread, for the same reason."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Condition()
        self._waiting: list[bytes] = []
        self._size = 0
        self._error: OSError | None = None
        self._room = asyncio.Event()
        self._room.set()
        threading.Thread(target=self._write, name="guardrail-output", daemon=True).start()

    async def line(self, text: bytes) -> None:
        """Write a line, or wait until there is room for it; raises OSError when nobody reads any more."""
        await self._room.wait()
        with self._lock:
            if self._error is not None:
                raise self._error
            self._waiting.append(text + b"\n")
            self._size += len(text) + 1
            if self._size > _BACKLOG:
                self._room.clear()
            self._lock.notify()

    async def flushed(self) -> None:
        """Wait until all is written, or nobody reads any more."""
        while self._size and self._error is None:
            self._room.clear()
            await self._room.wait()

    def _write(self) -> None:
        while True:
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
            try:
                self._loop.call_soon_threadsafe(self._make_room)
            except RuntimeError:  # the loop has ended
                return
            if self._error is not None:
                return

    def _write_all(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def _make_room(self) -> None:
        if self._size <= _BACKLOG or self._error is not None:
            self._room.set()
