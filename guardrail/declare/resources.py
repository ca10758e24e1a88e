"""What can be read of an HTTP store: resources that are watched like tables, and single values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias

from pydantic import AfterValidator, Field

from guardrail.declare.choices import BY_FORM, ITEMS, KEYS, PLAIN, single
from guardrail.declare.model import Count, Declaration, Flag
from guardrail.declare.texts import Filled, Pointer, pointer
from guardrail.query.requests import QueryValue

_ABOUT_THE_ASKER: Final = frozenset({401, 407, 408, 425, 429})
"""Statuses of the range 400 to 499 that say nothing about what was asked for."""

Key: TypeAlias = Annotated[Annotated[Filled, PLAIN] | Annotated[tuple[Filled, ...], ITEMS], BY_FORM]
"""The columns that name a row: one, or several."""

_SIMPLE = single(str, int, bool, float, what="a text, a number, true or false")

UrlQuery: TypeAlias = Mapping[
    Filled,
    Annotated[
        Annotated[QueryValue, _SIMPLE, PLAIN] | Annotated[tuple[Annotated[QueryValue, _SIMPLE], ...], ITEMS], BY_FORM
    ],
]
"""What stands behind the ? of a request: values by name, a list for a name that stands there several times."""


def _absent(status: int) -> int:
    if status != 204 and (not 400 <= status < 500 or status in _ABOUT_THE_ASKER):
        raise ValueError(
            "does not say that there is none: give 204, or a status from 400 to 499 but for 401, 407, 408, 425 and 429"
        )
    return status


Absent: TypeAlias = tuple[Annotated[Count, AfterValidator(_absent)], ...]
"""The statuses that mean: there is none."""


class Cursor(Declaration):
    """Where a page has the cursor of the next one (`at`, a JSON pointer), and the query parameter that takes it (`as`)."""

    at: Pointer
    parameter: Filled = Field(validation_alias="as", serialization_alias="as")


def _next(text: str) -> str:
    if not text:
        raise ValueError("must be `link`, `none`, or a JSON pointer to the next page's URL")
    return text if text in ("link", "none") else pointer(text)


class Resource(Declaration):
    """A resource of an HTTP store, which can be watched like a table.

    get: the path from the store's URL on; `:name` takes an input of the task.
    query: what stands behind the ?; a value `:name` takes an input. It is not in the repr: it may hold a key.
    rows: JSON pointer to the list of rows, or to the one object that is the row.
    key: the columns that name a row; a watch may name them instead.
    next: how to find the next page: a JSON pointer to its URL, `link` (the Link header), or a cursor; `none`: what is
    answered is all that there is, whatever it says of more.
    absent: statuses that mean that there are no rows, over those of the store.
    """

    get: Filled
    query: UrlQuery = Field(default={}, repr=False)
    rows: Pointer = ""
    key: Key | None = None
    next: Annotated[Annotated[str, AfterValidator(_next), PLAIN] | Annotated[Cursor, KEYS], BY_FORM] | None = None
    absent: Absent | None = None


class HttpReading(Declaration):
    """One value that is read of an HTTP store, and what it must be.

    get, query: as of a resource. at: JSON pointer to the value in what was answered. `equals`: what it must be, in
    the notation of an expectation's values; without it, there must be any value but null. `exists: false`: there must
    be none.
    """

    store: str
    get: Filled
    query: UrlQuery = Field(default={}, repr=False)
    at: Pointer = ""
    equals: Any = None
    exists: Flag = True

    @property
    def compares(self) -> bool:
        """Whether the value must be a certain one; `equals: null` is not the same as no `equals`."""
        return "equals" in self.model_fields_set
