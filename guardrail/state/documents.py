"""JSON documents: a value put at a pointer, and the pointers at which two documents differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import TypeAlias

from guardrail.declare.values import is_list, is_object
from guardrail.pointers import MISSING, follow, pointer, tokens

Difference: TypeAlias = tuple[str, object, object]
"""A JSON pointer, the value there before and the value there after; `MISSING` where there is none."""


def put(document: object, at: str, value: object) -> object:
    """The document with this value at a pointer (`MISSING`: with none there); the given one stays as it is.

    Objects on the way are made where there are none.
    """
    return _put(document, tokens(at), value)


def document_differences(
    before: object, after: object, same: Callable[[object, object], bool], at: Sequence[str] = ()
) -> Iterator[Difference]:
    """The deepest pointers at which two documents differ, in the order of their names, as databases may order these anew.

    Lists differ item by item where they are of one length or one begins with the other, else as a whole.
    """
    if before is not MISSING and after is not MISSING and same(before, after):
        return
    if is_object(before) and is_object(after):
        for name in sorted({*before, *after}, key=str):
            old, new = before.get(name, MISSING), after.get(name, MISSING)
            yield from document_differences(old, new, same, (*at, str(name)))
    elif is_list(before) and is_list(after) and _are_alike(before, after, same):
        for place, (old, new) in enumerate(zip_longest(before, after, fillvalue=MISSING)):
            yield from document_differences(old, new, same, (*at, str(place)))
    elif before is not after:
        yield pointer(at), before, after


def _are_alike(one: Sequence[object], other: Sequence[object], same: Callable[[object, object], bool]) -> bool:
    return len(one) == len(other) or all(map(same, one, other))


def _put(document: object, steps: Sequence[str], value: object) -> object:
    if not steps or (document is MISSING and value is MISSING):
        return value
    step, *further = steps
    inner = _put(follow(document, [step]), further, value)
    if is_list(document):
        found = [] if inner is MISSING else [inner]
        return [*document[: int(step)], *found, *document[int(step) + 1 :]] if step.isdecimal() else document
    fields = {name: item for name, item in document.items() if name != step} if is_object(document) else {}
    return fields if inner is MISSING else {**fields, step: inner}
