"""What pydantic finds in a declaration, said in the words of the file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from types import UnionType
from typing import Annotated, Any, Final, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel, Tag, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from guardrail.declare.contracts import HttpCheck, SqlCheck
from guardrail.declare.faults import Fault, Place, at, suggestion
from guardrail.declare.matchers import Conditions
from guardrail.declare.model import Declaration
from guardrail.declare.tools import EarlierRequirement, HttpRequirement

Model = TypeVar("Model", bound=BaseModel)

_KINDS: Final[Mapping[str, str]] = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "string_type": "a text",
    "tuple_type": "a list",
    "mapping_type": "a mapping",
    "dict_type": "a mapping",
    "model_type": "a mapping",
}
"""What a field must be, by pydantic's word for the error."""

_TAG: Final = re.compile(r"<.+>")
_QUOTED: Final = re.compile(r"'([^']*)'")
_KEY: Final = "[key]"


def validated(model: type[Model], value: object, shown: object) -> tuple[Model | None, list[Fault]]:
    """The model that a plain value of a file says, or None and what is wrong, each mistake named once.

    `shown` is the same value as the file has it, with no secret filled in: only that is quoted.
    """
    try:
        # A file uses the keys (`from`), never the names of Python's fields (`source`).
        declared = model.model_validate(value, by_alias=True, by_name=False)
    except ValidationError as error:
        details = error.errors(include_url=False)
        found = [_fault(detail, model, shown) for detail in details if not _follows(detail, shown)]
        return None, _once(found)
    return declared, []


def _once(found: list[Fault]) -> list[Fault]:
    """The faults without those of keys that are only missing because they are misspelt, which is named too."""
    meant = {(fault.place[:-1], fault.advice) for fault in found}
    return [f for f in found if not (f.what == _missing(f.place) and (f.place[:-1], _meant(f.place)) in meant)]


def _missing(place: Place) -> str:
    return f"the key `{place[-1]}` is missing" if place else ""


def _meant(place: Place) -> str:
    return f"did you mean `{place[-1]}`?"


def _follows(detail: ErrorDetails, shown: object) -> bool:
    """Whether an error only follows from others: a list is not empty because its items are wrong."""
    return detail["type"] == "too_short" and bool(at(shown, _place(detail)))


def _fault(detail: ErrorDetails, model: type[BaseModel], shown: object) -> Fault:
    place = _place(detail)
    match detail["type"]:
        case "extra_forbidden":
            known = {key for found in _models(model, detail["loc"][:-1]) for key in keys(found)}
            return Fault(place, f"unknown key `{place[-1]}`", suggestion(str(place[-1]), known, "the keys are"))
        case "missing":
            return Fault(place, _missing(place))
        case "literal_error":
            expected = detail.get("ctx", {})["expected"]
            allowed = _QUOTED.findall(expected) or [expected]
            value = at(shown, place)
            advice = suggestion(value, allowed) if isinstance(value, str) else ""
            what = f"one of {', '.join(allowed)}" if len(allowed) > 1 else f"`{allowed[0]}`"
            return Fault(place, f"must be {what}{_instead(value)}", advice)
        case _:
            return Fault(place, _what(detail, place, shown), rests_on=(place,))


def _what(detail: ErrorDetails, place: Place, shown: object) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if detail["loc"][-1:] == (_KEY,):
        return f"the name `{place[-1]}` {context.get('error', detail['msg'])}"
    instead = _instead(at(shown, place))
    match kind:
        case "value_error":
            return f"{context['error']}{instead if str(context['error']).startswith('must be ') else ''}"
        case "union_tag_invalid":
            return f"must be {' or '.join(_QUOTED.findall(context['expected_tags']))}{instead}".translate(_PLAIN)
        case "too_short":
            return "must not be empty"
        case "greater_than_equal":
            return f"must be at least {context['ge']}{instead}"
        case _:
            return f"must be {_KINDS[kind]}{instead}" if kind in _KINDS else detail["msg"]


_PLAIN: Final = str.maketrans("", "", "<>")


def _place(detail: ErrorDetails) -> Place:
    """Where an error is, without the forms that were chosen on the way there (see `choices`)."""
    return tuple(part for part in detail["loc"] if isinstance(part, int) or not (part == _KEY or _TAG.fullmatch(part)))


def _instead(value: object) -> str:
    """Words for what stands there instead of what must."""
    match value:
        case None:
            return ", and is empty"
        case bool():
            return f", not {str(value).lower()}"
        case str():
            return f", not {value[:60]!r}"
        case int() | float() | Decimal():
            return f", not {str(value)[:60]}"
        case list():
            return ", not a list"
        case Mapping():
            return ", not a mapping"
        case _:
            return ""


def keys(model: type[BaseModel]) -> list[str]:
    """The keys that a file can give for a model."""
    return [_key(name, field) for name, field in model.model_fields.items()]


def _models(kind: Any, steps: tuple[int | str, ...]) -> Iterator[type[BaseModel]]:
    """The models that can stand behind the steps of an error's location, beginning with a type."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        yield from _models(inner[0], steps)
    elif origin in (Union, UnionType):
        for member in inner:
            tag = _tag(member)
            if tag is None or steps[:1] == (tag,):
                yield from _models(member, steps if tag is None else steps[1:])
    elif origin in (tuple, Mapping):
        yield from _models(inner[0 if origin is tuple else 1], steps[1:])
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        yield from _fields(kind, steps)


def _fields(model: type[BaseModel], steps: tuple[int | str, ...]) -> Iterator[type[BaseModel]]:
    if not steps:
        yield model
    for name, field in model.model_fields.items():
        if steps and steps[0] == _key(name, field):
            yield from _models(field.annotation, steps[1:])


def _tag(member: Any) -> str | None:
    tags = (
        [item.tag for item in get_args(member)[1:] if isinstance(item, Tag)] if get_origin(member) is Annotated else []
    )
    return tags[0] if tags else None


_NULLABLE: Final = frozenset(
    {
        *((model, "equals") for model in (Conditions, SqlCheck, HttpCheck, HttpRequirement)),
        (Conditions, "is_not"),
        (EarlierRequirement, "is_"),
    }
)
"""Where null is a value, and not a key that somebody left empty."""


def emptied(declared: object, place: Place = ()) -> Iterator[Fault]:
    """The keys that stand in a file with nothing behind them: whoever wrote `effect:` meant something."""
    if isinstance(declared, Declaration):
        for name, field in type(declared).model_fields.items():
            value, inner = getattr(declared, name), (*place, _key(name, field))
            if value is not None:
                yield from emptied(value, inner)
            elif name in declared.model_fields_set and (type(declared), name) not in _NULLABLE:
                yield Fault(inner, "is empty", "give it a value, or leave the key out")
    elif isinstance(declared, Mapping):
        for key, value in cast("Mapping[str, object]", declared).items():
            yield from emptied(value, (*place, key))
    elif isinstance(declared, tuple):
        for position, value in enumerate(cast("tuple[object, ...]", declared)):
            yield from emptied(value, (*place, position))


def _key(name: str, field: FieldInfo) -> str:
    return str(field.validation_alias or name)
