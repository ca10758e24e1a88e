"""The fields of a value: mappings, models, dataclasses and plain objects, one level deep, without side effects."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import islice
from types import ModuleType
from typing import Final, TypeAlias, TypeGuard, cast

from guardrail.pointers import MISSING

Fields: TypeAlias = Mapping[str, object]

# What results of frameworks may carry as a property or a slot instead of an instance attribute.
_SPOKEN: Final = ("content", "is_error", "isError", "structured_content", "structuredContent", "status", "status_code")
_FIELDLESS: Final = (str, bytes, bytearray, int, float, complex, set, frozenset, type, ModuleType)
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_DEEPEST: Final = 50
_MOST_COPIED: Final = 100_000
_MOST_MADE: Final = 1_000_000

MANY: Final = 64
"""From how many fields on it is cheaper to look for the known names one by one."""


def is_mapping(value: object) -> TypeGuard[Fields]:
    """Whether a value is a dict."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Whether a value is a list, or a tuple without names."""
    return isinstance(value, list) or (isinstance(value, tuple) and not hasattr(cast("object", value), "_fields"))


def listed(text: str) -> tuple[str, ...]:
    """The names in a text: long tables of names read better that way."""
    return tuple(text.split())


def has_any(value: Fields, names: frozenset[str]) -> bool:
    """Whether a mapping has one of the names; the cost does not grow with the mapping."""
    if len(value) <= MANY:
        return not names.isdisjoint(value)
    return any(name in value for name in names)


def http_status(value: Fields, places: Sequence[str]) -> int | None:
    """The first of these fields that can be an HTTP status."""
    for place in places:
        status = value.get(place)
        if isinstance(status, int) and 100 <= status <= 599:
            return int(status)
    return None


def fields_of(value: object) -> Fields | None:
    """The named fields of a value, or None for what has none (scalars, lists, generators, locks).

    Nothing is consumed, copied deeply or called but properties of a few known names. What an attribute
    raises is taken as its absence. Raises ValueError for a foreign mapping without an end.
    """
    if is_mapping(value):
        return value
    if value is None or is_list(value) or isinstance(value, _FIELDLESS):
        return None
    if isinstance(value, Mapping):
        return _copied(cast("Fields", value))
    return _declared(value) or _attributes(value)


def peek(value: object, name: str) -> object:
    """An attribute of a foreign object, None where it has none."""
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001  # a foreign property may raise anything; it then is as good as absent
        return None


def own(value: object) -> Fields:
    """The attributes that an object holds itself, without those of its class."""
    found = peek(value, "__dict__")
    return found if is_mapping(found) else {}


def reach(value: object, steps: Sequence[str]) -> object:
    """What stands at the steps of a JSON pointer, or MISSING; goes through models and dataclasses too."""
    for step in steps:
        if is_list(value):
            value = _entry(value, step)
        else:
            found = fields_of(value)
            value = MISSING if found is None else found.get(step, MISSING)
        if value is MISSING:
            break
    return value


def plain(value: object) -> object:
    """The same value with its models, dataclasses and named tuples as dicts, down to a bounded depth."""
    return _plain(value, _DEEPEST, {})


def _plain(value: object, depth: int, made: dict[int, tuple[object, object]]) -> object:
    """`made` holds what each value became, and the value too: the id of one that is gone may be another's."""
    if type(value) in _SCALARS or not depth or len(made) >= _MOST_MADE:
        return value
    if id(value) in made:  # a value that holds itself, or is held twice
        return made[id(value)][1]
    became = value
    made[id(value)] = value, became
    if is_list(value):
        became = [_plain(entry, depth - 1, made) for entry in value]
    elif (found := fields_of(value)) is not None:
        became = {name: _plain(kept, depth - 1, made) for name, kept in found.items()}
    made[id(value)] = value, became
    return became


def _entry(value: Sequence[object], step: str) -> object:
    position = int(step) if step.isascii() and step.isdigit() and len(step) < 10 else len(value)
    return value[position] if position < len(value) else MISSING


def _copied(value: Fields) -> Fields | None:
    try:
        found = dict(islice(value.items(), _MOST_COPIED + 1))
    except Exception:  # noqa: BLE001  # a foreign mapping may load lazily and raise anything: then nothing is seen of it
        return None
    if len(found) > _MOST_COPIED:
        raise ValueError(f"a mapping of more than {_MOST_COPIED:,} entries that is no dict")
    return found


def _declared(value: object) -> Fields | None:
    """The fields of a pydantic model, a dataclass, a named tuple or an attrs class."""
    cls = type(value)
    if hasattr(cls, "__pydantic_fields__"):
        return _model(value)
    names = _dataclass_names(cls) or peek(cls, "_fields") or _attrs_names(cls)
    found = tuple(names) if is_mapping(names) or is_list(names) else ()
    return {name: peek(value, name) for name in found if isinstance(name, str)} or None


def _dataclass_names(cls: type) -> list[str]:
    """The fields of a dataclass; what it has for all its instances (`ClassVar`) is none of them."""
    return [field.name for field in dataclasses.fields(cls)] if dataclasses.is_dataclass(cls) else []


def _attrs_names(cls: type) -> list[object]:
    attributes = peek(cls, "__attrs_attrs__")
    return [peek(attribute, "name") for attribute in cast("Sequence[object]", attributes or ())]


def _model(value: object) -> Fields | None:
    """A pydantic model's fields by name, with its extra ones. `model_dump` would copy all of it, and may raise."""
    extra = peek(value, "__pydantic_extra__")
    return {**own(value), **(extra if is_mapping(extra) else {})} or None


def _attributes(value: object) -> Fields | None:
    if callable(value):  # functions, clients and mocks say nothing by their attributes
        return None
    found = {name: kept for name, kept in own(value).items() if not name.startswith("_")}
    for name in _SPOKEN:
        if name not in found and hasattr(type(value), name):
            spoken = peek(value, name)
            if spoken is not None and not callable(spoken):
                found[name] = spoken
    return found or None
