"""Server-sent events: how messages travel in an HTTP stream. What nobody has to change stays as it came."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass

from guardrail.proxy.messages import Message, read

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE = re.compile(rb"\r\n|\n|\r")


class TooLong(Exception):
    """An event has more bytes than a message may have."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its bytes, to the blank line that ends it."""

    raw: bytes

    @property
    def messages(self) -> list[Message]:
        """The messages that it carries: mostly one; none in a comment, or a first event that has only an id.

        Raises `Malformed` for one that carries something else: another reader might take it for a message.
        """
        data = b"\n".join(self._fields(b"data"))
        found = read(data) if data.strip() else []
        return found if isinstance(found, list) else [found]

    @property
    def has_id(self) -> bool:
        """Whether the stream can be taken up again after it."""
        return bool(self._fields(b"id"))

    def carrying(self, message: Message) -> Event:
        """The same event with another message."""
        kept = [line for line in _LINE.split(self.raw) if line and not line.startswith(b"data")]
        return Event(b"\n".join([*kept, b"data: " + message.raw, b"", b""]))

    def _fields(self, name: bytes) -> list[bytes]:
        start = name + b":"
        return [line[len(start) :].removeprefix(b" ") for line in _LINE.split(self.raw) if line.startswith(start)]


def event_of(message: Message) -> Event:
    """An event that carries a message."""
    return Event(b"event: message\ndata: " + message.raw + b"\n\n")


class Events:
    """Cuts a stream into events; raises `TooLong` for one that is longer than it may be."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._rest = bytearray()
        self._begun = False

    def cut(self, chunk: bytes) -> Iterator[Event]:
        """The events that a chunk completes."""
        begin, known = 0, len(self._rest)
        self._rest += chunk
        if not self._begun and len(self._rest) >= len(BOM_UTF8):
            self._begun = True
            if self._rest.startswith(BOM_UTF8):  # which belongs to the stream, and not to its first field's name
                del self._rest[: len(BOM_UTF8)]
        # A pair of line breaks may be cut in two, so the search begins a little before the chunk.
        ends = [end.end() for end in _END.finditer(self._rest, max(0, known - 3))]
        for end in ends:
            yield Event(bytes(self._rest[begin:end]))
            begin = end
        del self._rest[:begin]
        if len(self._rest) > self._longest:
            raise TooLong
