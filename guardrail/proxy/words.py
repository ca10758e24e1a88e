"""What the host says to the guard in `_meta`: which run a message belongs to, and when that run ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from guardrail.meta import CALL_ID, END, INPUTS, PREFIX, RUN_ID, TASK
from guardrail.proxy.messages import INVALID_PARAMS, Malformed, Message, write
from guardrail.proxy.traces import FIELDS

_KNOWN: Final = (RUN_ID, TASK, INPUTS, END, CALL_ID)
_LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class Words:
    """The host's words: the run's id (None: the session's own run), its task and inputs, and whether it ends here.

    `call` is the host's id of a call, under which its model knows it.
    """

    run: str | None = None
    task: str | None = None
    inputs: Mapping[str, object] | None = None
    end: bool = False
    call: str | None = None

    @classmethod
    def of(cls, message: Message) -> Words:
        """The words of a message; raises `Malformed` for those that nobody can follow."""
        meta = message.meta
        said = [name for name in meta if name.startswith(PREFIX)]
        if not said:
            return SILENCE
        unknown = [name for name in said if name not in _KNOWN]
        if unknown:
            raise _wrong(message, f"_meta holds {unknown[0]}, which says nothing: known are {', '.join(_KNOWN)}")
        inputs = meta.get(INPUTS)
        if inputs is not None and not isinstance(inputs, dict):
            raise _wrong(message, f"{INPUTS} must be an object")
        end = meta.get(END, False)
        if not isinstance(end, bool):
            raise _wrong(message, f"{END} must be true or false")
        run, task, call = (_text(message, name) for name in (RUN_ID, TASK, CALL_ID))
        return cls(run, task, cast("Mapping[str, object] | None", inputs), end, call)


SILENCE: Final = Words()
"""A host that says nothing."""


def passed_on(message: Message, trace: Mapping[str, str]) -> Message:
    """The message as the server gets it: without words that are not for it, and below the guard's span.

    One that has no such words, and is traced by nobody here, goes on byte for byte.
    """
    meta = message.meta
    if not trace and not any(name.startswith(PREFIX) for name in meta):
        return message
    replaced = FIELDS if trace else ()
    kept = {name: value for name, value in meta.items() if not name.startswith(PREFIX) and name not in replaced}
    return write({**message.body, "params": {**message.params, "_meta": {**kept, **trace}}})


def _text(message: Message, name: str) -> str | None:
    value = message.meta.get(name)
    if value is None:
        return None
    if isinstance(value, str) and value and len(value) <= _LONGEST and value.isprintable():
        return value
    raise _wrong(message, f"{name} must be a text of 1 to {_LONGEST} printable characters")


def _wrong(message: Message, text: str) -> Malformed:
    return Malformed(INVALID_PARAMS, text, message.id)
