"""Fields that may be written in several forms: which form is meant is decided first, so that a mistake is named once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from pydantic import BaseModel, BeforeValidator, Discriminator, Tag

from guardrail.declare.faults import suggestion

PLAIN: Final = Tag("<a single value>")
"""The form that is a text, a number, true, false or null."""
KEYS: Final = Tag("<a mapping>")
"""The form that is a mapping, or the model that it becomes."""
ITEMS: Final = Tag("<a list>")
"""The form that is a list."""


def _form(value: object) -> str:
    if isinstance(value, (Mapping, BaseModel)):
        return KEYS.tag
    return ITEMS.tag if isinstance(value, (list, tuple)) else PLAIN.tag


BY_FORM: Final = Discriminator(_form)
"""Chooses between `PLAIN`, `KEYS` and `ITEMS`."""


def kind(key: str) -> Tag:
    """The form of a mapping that is known by one of its keys."""
    return Tag(f"<{key}>")


def by_key(*keys: str) -> Discriminator:
    """Chooses between the kinds of a mapping by the one key of `keys` that it has; see `one_of`."""

    def which(value: object) -> str | None:
        return next((kind(key).tag for key in keys if _has(value, key)), None)

    return Discriminator(which)


def one_of(*keys: str) -> BeforeValidator:
    """Refuses a mapping that has none of `keys`, or more than one."""

    def checked(value: object) -> object:
        found = [key for key in keys if _has(value, key)]
        if len(found) > 1:
            raise ValueError(f"has more than one of {_quoted(found, 'and')}; write one item for each")
        if not found and isinstance(value, (Mapping, BaseModel)):
            raise ValueError(f"has none of the keys {_quoted(keys, 'or')}{_nearest(cast('object', value), keys)}")
        if not found:
            raise ValueError(f"must be a mapping with one of the keys {_quoted(keys, 'or')}")
        return value

    return BeforeValidator(checked)


def single(*types: type, what: str) -> BeforeValidator:
    """Refuses what is of none of `types`; true and false are numbers to Python, and to nobody else."""

    def checked(value: object) -> object:
        if isinstance(value, types) and (bool in types or not isinstance(value, bool)):
            return value
        raise ValueError(f"must be {what}")

    return BeforeValidator(checked)


def _has(value: object, key: str) -> bool:
    if isinstance(value, Mapping):
        return key in cast("Mapping[object, object]", value)
    return isinstance(value, BaseModel) and key in type(value).model_fields


def _nearest(value: object, keys: tuple[str, ...]) -> str:
    given = [str(key) for key in cast("Mapping[object, object]", value)] if isinstance(value, Mapping) else []
    found = next((near for key in given if (near := suggestion(key, keys))), "")
    return f"; {found}" if found else ""


def _quoted(keys: list[str] | tuple[str, ...], last: str) -> str:
    *first, final = (f"`{key}`" for key in keys)
    return f"{', '.join(first)} {last} {final}" if first else final
