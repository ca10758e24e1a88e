"""HTTP responses of client libraries, known by their attributes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Final, cast

from guardrail.judge.fields import own, peek

_BODIES: Final = ("_content", "_body")
_STREAMS: Final = frozenset((*_BODIES, "stream", "raw", "fp", "_fp"))


class Unread:
    """What stands for a body that was not read, or cannot be."""

    __slots__ = ()


_UNREAD: Final = Unread()


def is_response(value: object) -> bool:
    """Whether a value with a status is a response: it holds a body, or gives JSON."""
    return any(name in own(value) for name in _BODIES) or callable(peek(value, "json"))


def body_of(response: object) -> object:
    """The body of a response if it has been read. A stream is left alone, and nothing is awaited."""
    held = own(response)
    read = next((body for name in _BODIES if isinstance(body := held.get(name), bytes | str)), None)
    if read is not None:
        return read
    decode = peek(response, "json")
    if not _STREAMS.isdisjoint(held) or not callable(decode) or inspect.iscoroutinefunction(decode):
        return _UNREAD
    try:
        return cast("Callable[[], object]", decode)()
    except Exception:  # noqa: BLE001  # a body that is no JSON raises one of many errors: then its text is the body
        text = peek(response, "text")
        return text if isinstance(text, str) else _UNREAD
