"""JSON pointers (RFC 6901): where in a result or a JSON column something stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast


class _Missing:
    """What stands where nothing stands."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "missing"


MISSING: Final = _Missing()


def tokens(pointer: str) -> tuple[str, ...]:
    """The steps of a pointer; "" is the whole value. Raises ValueError when it is no pointer."""
    if pointer == "":
        return ()
    if not pointer.startswith("/"):
        raise ValueError(f"{pointer!r} is no JSON pointer: it must be empty or begin with '/'")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))


def pointer(steps: Sequence[str]) -> str:
    """The pointer made of these steps."""
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)


def follow(value: object, steps: Sequence[str]) -> object:
    """What stands at these steps of a value, or `MISSING`."""
    for step in steps:
        if isinstance(value, Mapping):
            value = cast("Mapping[str, object]", value).get(step, MISSING)
        elif isinstance(value, (list, tuple)):
            items = cast("Sequence[object]", value)
            value = items[int(step)] if step.isdecimal() and int(step) < len(items) else MISSING
        else:
            return MISSING
    return value


def resolve(value: object, at: str) -> object:
    """What stands at a pointer of a value, or `MISSING`."""
    return follow(value, tokens(at))
