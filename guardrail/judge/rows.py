"""Rows of a list of results that failed, each by its own error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from guardrail.judge.fields import Fields, fields_of, has_any, http_status, is_list, is_mapping, listed
from guardrail.judge.meanings import LONGEST_ITEM_NAME, is_failure
from guardrail.judge.wording import words

_ERRORS: Final = listed("error errors Error Errors")
_CODES: Final = listed("errorCode ErrorCode")
_FLAGS: Final = listed("success ok")
_SIGNS: Final = frozenset((*_ERRORS, *_CODES, *_FLAGS, "httpStatusCode"))
_NAMES: Final = listed("id _id Id ID key Key name MessageId url referenceId")
_MOST_FIELDS_OF_AN_ERROR: Final = 6
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})


def failed_rows(rows: Sequence[object], data: frozenset[str] = frozenset()) -> Sequence[tuple[str, object]]:
    """The rows that failed: their names and what makes them failed. Fields named in `data` are no signs.

    A name is the row's own id or key, else its place in the list.
    """
    suspects = [(place, row) for place, row in enumerate(rows) if not _is_plain(row)]
    failed = ((place, row, error) for place, row in suspects if (error := _error_of(row, data)) is not None)
    return [(row_name(row, str(place)), error) for place, row, error in failed]


def row_name(row: object, otherwise: str) -> str:
    """The name of a row: its own id or key, or else what it is called otherwise."""
    found = _operation(fields_of(row) or {})
    named = (found.get(name) for name in _NAMES)
    return next((str(name) for name in named if isinstance(name, str | int)), otherwise)[:LONGEST_ITEM_NAME]


def left_names(left: object) -> Iterator[str]:
    """The names of what a batch left over: a list of items, or lists of items by table."""
    by_table = left if is_mapping(left) else {"": left}
    for table, items in by_table.items():
        entries = items if is_list(items) else [items] if items else []
        yield from (row_name(entry, f"{table}/{place}".lstrip("/")) for place, entry in enumerate(entries))


def is_no(value: object) -> bool:
    """Whether a flag says no."""
    return value is False or (isinstance(value, str) and value.strip().lower() == "false")


def _is_plain(row: object) -> bool:
    """Whether a row can be passed over at once: a scalar, or a mapping without any sign."""
    if not is_mapping(row):
        return type(row) in _SCALARS
    return _SIGNS.isdisjoint(row) and (len(row) != 1 or not is_mapping(next(iter(row.values()))))


def _error_of(row: object, data: frozenset[str]) -> object:
    found = _operation(fields_of(row) or {})
    if not has_any(found, _SIGNS):
        return None
    if data:
        found = {name: kept for name, kept in found.items() if name not in data}
    error = next((found[name] for name in _ERRORS if is_failure(found.get(name))), None)
    return error if error is not None else _denial(found)


def _denial(found: Fields) -> str | None:
    """A row that is nothing but a coded error, a flag that says no, or an HTTP status of its own."""
    is_coded = len(found) <= _MOST_FIELDS_OF_AN_ERROR and any(found.get(name) for name in _CODES)
    has_failed = (http_status(found, ("httpStatusCode",)) or 0) >= 400
    if is_coded or has_failed or any(is_no(found.get(name)) for name in _FLAGS):
        return words(found) or "failed"
    return None


def _operation(row: Fields) -> Fields:
    """The row itself, or what stands under its operation: {"index": {"_id": "b", "error": {...}}}."""
    return (fields_of(next(iter(row.values()))) or row) if len(row) == 1 and _SIGNS.isdisjoint(row) else row
