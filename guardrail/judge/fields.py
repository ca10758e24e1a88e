"""The fields of a value: mappings, models, dataclasses and plain objects, one level deep, without side effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Final, TypeAlias, cast

from guardrail.declare.pointers import MISSING

Fields: TypeAlias = Mapping[str, object]

# What results of frameworks may carry as a property or a slot instead of an instance attribute.
_SPOKEN: Final = ("content", "is_error", "isError", "structured_content", "structuredContent", "status", "status_code")
_FIELDLESS: Final = (str, bytes, bytearray, int, float, complex, list, tuple, set, frozenset, type, ModuleType)
_DEEPEST: Final = 50


def fields_of(value: object) -> Fields | None:
    """The named fields of a value, or None for what has none (scalars, lists, generators, locks).

    Nothing is consumed, copied deeply or called but properties of a few known names. What an attribute
    raises is taken as its absence.
    """
    if isinstance(value, dict):
        return cast("Fields", value)
    if value is None or (isinstance(value, _FIELDLESS) and not is_named(value)):
        return None
    if isinstance(value, Mapping):
        return _copied(cast("Fields", value))
    return _declared(value) or _attributes(value)


def is_named(value: object) -> bool:
    """Whether a value is a named tuple."""
    return isinstance(value, tuple) and hasattr(value, "_fields")


def peek(value: object, name: str) -> object:
    """An attribute of a foreign object, None where it has none."""
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001  # a foreign property may raise anything; it then is as good as absent
        return None


def reach(value: object, steps: Sequence[str]) -> object:
    """What stands at the steps of a JSON pointer, or MISSING; goes through models and dataclasses too."""
    for step in steps:
        if isinstance(value, list | tuple) and not is_named(value):
            value = _entry(cast("Sequence[object]", value), step)
        else:
            found = fields_of(value)
            value = MISSING if found is None else found.get(step, MISSING)
        if value is MISSING:
            break
    return value


def plain(value: object, depth: int = _DEEPEST) -> object:
    """The same value with its models, dataclasses and named tuples as dicts, down to a bounded depth.

    A dict, and a list of dicts, is taken to be plain and comes back as it is.
    """
    if type(value) is dict or depth == 0:
        return value
    if isinstance(value, list | tuple) and not is_named(value):
        entries = cast("Sequence[object]", value)
        return value if all(type(entry) in _PLAIN for entry in entries) else [plain(e, depth - 1) for e in entries]
    found = fields_of(value)
    return value if found is None else {name: plain(kept, depth - 1) for name, kept in found.items()}


_PLAIN: Final = frozenset({dict, str, int, float, bool, type(None)})


def _entry(value: Sequence[object], step: str) -> object:
    position = int(step) if step.isascii() and step.isdigit() and len(step) < 10 else len(value)
    return value[position] if position < len(value) else MISSING


def _copied(value: Fields) -> Fields | None:
    try:
        return dict(value)
    except Exception:  # noqa: BLE001  # a foreign mapping may load lazily and raise anything: then nothing is seen of it
        return None


def _declared(value: object) -> Fields | None:
    """The fields of a pydantic model, a dataclass, a named tuple or an attrs class."""
    cls = type(value)
    if hasattr(cls, "__pydantic_fields__"):
        return _model(value)
    names = peek(cls, "__dataclass_fields__") or peek(cls, "_fields") or _attrs(cls)
    if not isinstance(names, dict | tuple | list):
        return None
    listed = cast("Sequence[object]", tuple(cast("Sequence[object]", names)))
    return {name: peek(value, name) for name in listed if isinstance(name, str)} or None


def _attrs(cls: type) -> list[object]:
    attributes = peek(cls, "__attrs_attrs__")
    listed = cast("tuple[object, ...]", attributes) if isinstance(attributes, tuple) else ()
    return [peek(attribute, "name") for attribute in listed]


def _model(value: object) -> Fields | None:
    """A pydantic model's fields by name, with its extra ones. `model_dump` would copy all of it, and may raise."""
    extra = peek(value, "__pydantic_extra__")
    return {**_own(value), **(cast("Fields", extra) if isinstance(extra, dict) else {})} or None


def _attributes(value: object) -> Fields | None:
    if callable(value):  # functions, clients and mocks say nothing by their attributes
        return None
    found = {name: kept for name, kept in _own(value).items() if not name.startswith("_")}
    for name in _SPOKEN:
        if name not in found and hasattr(type(value), name):
            spoken = peek(value, name)
            if spoken is not None and not callable(spoken):
                found[name] = spoken
    return found or None


def _own(value: object) -> Fields:
    own = peek(value, "__dict__")
    return cast("Fields", own) if isinstance(own, dict) else {}
