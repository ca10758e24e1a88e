"""Texts of a fixed form that declarations are made of: names, pointers, patterns, zones."""

from __future__ import annotations

import re
import warnings
from typing import Annotated, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator

from guardrail.query.headers import header_name, header_text

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_ESCAPE = re.compile(r"~(?![01])")
_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


def _name(text: str) -> str:
    if _NAME.fullmatch(text) is None:
        raise ValueError("must be a name of letters, digits and _ that does not begin with a digit")
    return text


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not hold a NUL character")
    return text


def _location(text: str) -> str:
    return _filled(_without_nul(text))


def _variable(text: str) -> str:
    if not text or "=" in text or "\0" in text:
        raise ValueError("must be the name of a variable of the environment")
    return text


def _ledger(text: str) -> str:
    scheme, found, _ = _location(text).partition("://")
    if found and scheme.lower().partition("+")[0] not in ("postgresql", "postgres"):
        raise ValueError("has another scheme than postgresql: give a path, `memory`, or a postgresql:// URL")
    return text


def pointer(text: str) -> str:
    """The text, which is a JSON pointer. Raises ValueError for any other."""
    if text and not text.startswith("/"):
        raise ValueError("must be a JSON pointer, which is empty or begins with /")
    if _ESCAPE.search(text):
        raise ValueError("must be a JSON pointer, where ~ is written ~0 (and / inside a name ~1)")
    return text


def _pattern(text: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # Python warns where a pattern will change its meaning.
            re.compile(text)
    except (re.error, OverflowError, RecursionError, Warning) as error:
        raise ValueError(f"must be a regular expression: {error}") from error
    return text


def _zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError("must be the name of a time zone such as Europe/Oslo or UTC") from error
    return text


Name: TypeAlias = Annotated[str, AfterValidator(_name)]
"""A name that `$name`, `:name` or `args.name` can stand for."""

Filled: TypeAlias = Annotated[str, AfterValidator(_filled)]
"""A text that is not blank."""

Location: TypeAlias = Annotated[str, AfterValidator(_location)]
"""Where something lies: a path or a URL."""

LedgerPlace: TypeAlias = Annotated[str, AfterValidator(_ledger)]
"""Where a ledger lies: a path, `memory`, or the URL of a PostgreSQL database."""

Variable: TypeAlias = Annotated[str, AfterValidator(_variable)]
"""The name of a variable of the environment."""

EnvironmentText: TypeAlias = Annotated[str, AfterValidator(_without_nul)]
"""The value of a variable of the environment."""

HeaderName: TypeAlias = Annotated[str, AfterValidator(header_name)]
"""The name of an HTTP header that is not the store's own to set."""

HeaderText: TypeAlias = Annotated[str, AfterValidator(header_text)]
"""The value of an HTTP header."""

Pointer: TypeAlias = Annotated[str, AfterValidator(pointer)]
"""A JSON pointer (RFC 6901); "" is the whole value."""

Pattern: TypeAlias = Annotated[str, AfterValidator(_pattern)]
"""A regular expression of Python's `re`."""

Zone: TypeAlias = Annotated[str, AfterValidator(_zone)]
"""A time zone's IANA name."""


def function_name(text: str) -> tuple[str, str]:
    """The module and the function that `module:function` names. Raises ValueError for any other text."""
    if _FUNCTION.fullmatch(text) is None:
        raise ValueError("must be module:function")
    module, _, function = text.partition(":")
    return module, function
