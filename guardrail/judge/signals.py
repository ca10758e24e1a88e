"""The generic net: signs of failure at the root of an answer, as many services give them.

Only the root's own fields are looked at, and the rows of its list of results; what stands deeper is data.
Each look knows one family of services. Words are compared, never searched for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias, cast

from guardrail.judge.envelope import MANY, has_any, http_status
from guardrail.judge.fields import Fields, fields_of
from guardrail.judge.meanings import LONGEST_MESSAGE, Meaning, is_failure, is_failure_word, of_code, of_status
from guardrail.judge.sentences import Sentences


class Sign(NamedTuple):
    """A sign of failure: what it means, a word for its kind, the tool's own words, the items that failed."""

    meaning: Meaning
    kind: str
    message: str = ""
    failed_items: tuple[str, ...] = ()


Look: TypeAlias = Callable[[Fields, Sentences], Sign | None]


def find_sign(value: object, sentences: Sentences, data: frozenset[str] = frozenset()) -> Sign | None:
    """The first sign of failure at the root of an answer, or None. Fields named in `data` are no signs."""
    if isinstance(value, dict):
        return _mapping_sign(cast("Fields", value), sentences, data)
    if isinstance(value, list | tuple):
        return _rows_sign(cast("Sequence[object]", value), data)
    return None


def _mapping_sign(value: Fields, sentences: Sentences, data: frozenset[str]) -> Sign | None:
    if data:
        value = {name: kept for name, kept in value.items() if name not in data}
    present = SIGNS.intersection(value) if len(value) <= MANY else {name for name in SIGNS if name in value}
    if not present:
        return None
    for names, look in _LOOKS:
        if not names.isdisjoint(present) and (sign := look(value, sentences)):
            return sign
    return None if _ROW_LISTS.isdisjoint(present) else _listed_rows_sign(value, data)


def _listed_rows_sign(value: Fields, data: frozenset[str]) -> Sign | None:
    for place in _ROW_PLACES:
        rows = value.get(place)
        if isinstance(rows, list) and (sign := _rows_sign(cast("list[object]", rows), data)):
            return sign
    return None


# --- what an error says

_MESSAGES: Final = ["message", "Message", "msg", "reason", "detail", "error_description", "description", "errorMessage", "error_message", "faultstring", "value", "title", "error", "errors", "code", "Code", "type"]
_CODES: Final = ("code", "Code", "status", "error_code", "errorCode", "type", "reason", "error")
_STATUSES: Final = ("status", "code", "status_code", "statusCode", "http_status", "httpStatusCode", "httpStatus")


def weigh(error: object, beside: Fields, sentences: Sentences) -> tuple[Meaning, str]:
    """What an error means, and its words.

    Its HTTP status, its code and its sentence are asked in that order for something more precise than
    "error"; the fields `beside` it count where the error itself says nothing.
    """
    own = fields_of(error) or {}
    message = words(error) or words({name: beside[name] for name in _MESSAGES if name in beside and name != "code"})
    told = next(
        (meaning for meaning in _told(error, own, beside, message, sentences) if meaning not in _VAGUE), "error"
    )
    return cast("Meaning", told), message


_VAGUE: Final = (None, "ok", "error")


def _told(error: object, own: Fields, beside: Fields, message: str, sentences: Sentences) -> Iterator[Meaning | None]:
    status = http_status(own, _STATUSES) or http_status(beside, _STATUSES)
    yield of_status(status) if status and status >= 400 else None
    for code in (error, *(own.get(name) for name in _CODES), *(beside.get(name) for name in _CODES)):
        yield of_code(code) if isinstance(code, str) else None
    meaning = sentences.read(message)
    yield "empty" if meaning == "empty_list" else meaning


def words(value: object, depth: int = 4) -> str:
    """The words of an error, in whichever form it comes; several errors are joined. "" if it has none."""
    if isinstance(value, str):
        return value[:LONGEST_MESSAGE].strip()
    if isinstance(value, list | tuple):
        entries = cast("Sequence[object]", value)[:20]
        return (
            "; ".join(filter(None, (words(entry, depth - 1) for entry in entries)))[:LONGEST_MESSAGE] if depth else ""
        )
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if abs(value) < 10**20 else ""
    if isinstance(value, Exception):
        return words(value.args, depth - 1)
    found = fields_of(value)
    return _field_words(found, depth) if found and depth else ""


def _field_words(found: Fields, depth: int) -> str:
    said = next((text for name in _MESSAGES if name in found and (text := words(found[name], depth - 1))), "")
    if not said:  # errors by field, as forms give them: {"email": ["is required"]}
        said = "; ".join(
            f"{name}: {text}" for name, kept in list(found.items())[:10] if (text := words(kept, depth - 1))
        )
    path = found.get("path")
    return f"{said} (at {_path(path)})" if isinstance(path, list) and path else said


def _path(path: object) -> str:
    return ".".join(str(step)[:80] for step in cast("list[object]", path)[:10] if isinstance(step, str | int))


# --- the looks

_ROW_PLACES: Final = tuple(["results", "items", "responses", "outcomes", "records", "entries", "Results", "Records", "Entries"])
_ROW_LISTS: Final = frozenset(_ROW_PLACES)
_MANY: Final = (
    *_ROW_PLACES,
    "data",
    "successful",
    "Successful",
    "succeeded",
    "Deleted",
    "created",
    "updated",
    "inserted",
)


def _shards(value: Fields, _: Sentences) -> Sign | None:
    """Elasticsearch: shards that did not answer, which make an empty list of hits worthless."""
    shards = fields_of(value["_shards"]) or {}
    failed = shards.get("failed")
    if isinstance(failed, int) and failed > 0:
        successful = shards.get("successful")
        return Sign(
            "partial" if successful else "error", "shards", f"{failed} shards failed: {words(shards.get('failures'))}"
        )
    return Sign("partial", "shards", "timed out") if value.get("timed_out") is True else None


def _bulk(value: Fields, _: Sentences) -> Sign | None:
    """Elasticsearch bulk: `errors: true`, and items by operation."""
    items = value.get("items")
    if value.get("errors") is not True or not isinstance(items, list):
        return None
    return _rows_sign(cast("list[object]", items), frozenset(), kind="bulk") or Sign("partial", "bulk", "items failed")


_LEFT_OVER: Final = ["UnprocessedItems", "UnprocessedKeys", "UnprocessedEntries", "UnprocessedIdentityIds", "UnprocessedStatistics", "unprocessedItems", "unprocessedKeys", "unprocessed_items"]
_FAILED_LISTS: Final = (
    ("Failed", "Successful"),
    ("failed", "successful"),
    ("failed", "succeeded"),
    ("Errors", "Deleted"),
)
_FAILED_COUNTS: Final = {
    "FailedEntryCount": "Entries",
    "FailedRecordCount": "Records",
    "FailedPutCount": "RequestResponses",
}


def _left_overs(value: Fields, _: Sentences) -> Sign | None:
    """AWS: items of a batch that were not processed."""
    for name in _LEFT_OVER:
        if left := tuple(_left(value.get(name))):
            return Sign("partial", "unprocessed", f"{name} is not empty", left)
    for name, done in _FAILED_LISTS:
        failed = value.get(name)
        if isinstance(failed, list) and failed and done in value:
            return _rows_of_failed(cast("list[object]", failed), value[done])
    for name, place in _FAILED_COUNTS.items():
        count = value.get(name)
        if isinstance(count, int) and count > 0:
            return _counted(count, value.get(place))
    return None


def _left(left: object) -> Iterator[str]:
    by_table = cast("Fields", left) if isinstance(left, dict) else {"": left}
    for table, items in by_table.items():
        entries = cast("list[object]", items) if isinstance(items, list) else [items] if items else []
        yield from (_name(entry, f"{table}/{position}".lstrip("/")) for position, entry in enumerate(entries))


def _rows_of_failed(failed: Sequence[object], done: object) -> Sign:
    names = tuple(_name(row, str(position)) for position, row in enumerate(failed))
    return Sign("partial" if done else "error", "unprocessed", words(failed), names)


def _counted(count: int, rows: object) -> Sign:
    entries = cast("list[object]", rows) if isinstance(rows, list) else []
    failed = [(i, row) for i, row in enumerate(entries) if (fields_of(row) or {}).get("ErrorCode")]
    message = words([(fields_of(row) or {}).get("ErrorMessage") for _, row in failed]) or f"{count} entries failed"
    everything = bool(entries) and len(failed) == len(entries)
    return Sign("error" if everything else "partial", "unprocessed", message, tuple(str(i) for i, _ in failed))


def _graphql(value: Fields, sentences: Sentences) -> Sign | None:
    """GraphQL: `data` beside `errors`; data without any value is nothing done."""
    data, errors = value["data"], value.get("errors")
    if not is_failure(errors):
        nothing = data is None and value.keys() <= {"data", "extensions", "errors"}
        return Sign("error", "graphql", "data is null") if nothing else None
    meaning, message = weigh(errors, {}, sentences)
    if not isinstance(errors, list) or not _has_value(data):
        return Sign(meaning, "graphql", message)
    paths = tuple(_path((fields_of(error) or {}).get("path") or []) for error in cast("list[object]", errors))
    return Sign("partial", "graphql", message, tuple(filter(None, paths)))


def _has_value(data: object) -> bool:
    if isinstance(data, dict):
        return any(value is not None for value in cast("Fields", data).values())
    return bool(data)


_ERRORS: Final = ("error", "errors", "Error", "Errors", "err", "fault", "Fault", "odata.error", "exception")


def _errors(value: Fields, sentences: Sentences) -> Sign | None:
    """An error field that says something: Slack, Stripe, Google, OData, JSON-RPC, JSON:API and most others."""
    for name in _ERRORS:
        if name in value and is_failure(value[name]):
            meaning, message = weigh(value[name], value, sentences)
            some = (
                name.lower() == "errors"
                and isinstance(value[name], list)
                and any(_is_list(value.get(n)) for n in _MANY)
            )
            return Sign("partial" if some else meaning, "json_rpc" if "jsonrpc" in value else "error_field", message)
    if value.get("errorMessage") and ("errorType" in value or "errorCode" in value or "stackTrace" in value):
        meaning, message = weigh(value["errorMessage"], value, sentences)
        return Sign(meaning, "error_field", message)
    return None


def _is_list(value: object) -> bool:
    return isinstance(value, list) and bool(cast("list[object]", value))


_SUCCESSES: Final = ("success", "ok", "accepted", "acknowledged", "Success", "succeeded", "successful", "isSuccess")
_FLAGS: Final = ("isError", "is_error", "hasErrors", "hasError")


def _flags(value: Fields, sentences: Sentences) -> Sign | None:
    """A flag that says no."""
    denied = any(_is_no(value.get(name)) for name in _SUCCESSES)
    if denied or any(value.get(name) is True for name in _FLAGS):
        meaning, message = weigh(None, value, sentences)
        return Sign(meaning, "success_field" if denied else "error_flag", message)
    return None


def _is_no(value: object) -> bool:
    return value is False or (isinstance(value, str) and value.strip().lower() == "false")


# The fields of an answer that is nothing but an envelope; a status among other fields is data.
_ENVELOPE: Final = frozenset(
    ["status", "statusCode", "status_code", "message", "msg", "reason", "error", "errors", "code", "detail", "details", "description", "data", "result", "error_code", "errorCode", "error_type", "errorType", "timestamp", "request_id", "requestId", "trace_id", "traceId", "path", "tool", "tool_name", "success", "ok", "hint", "suggestion", "suggestions", "title", "type", "instance", "retryable", "retry_after", "statusText"]
)
_REASONS: Final = frozenset(["message", "msg", "reason", "detail", "details", "description", "error_message", "hint"])


def _statuses(value: Fields, sentences: Sentences) -> Sign | None:
    """A status of the transport, a problem document (RFC 9457), `status: "error"` of an envelope."""
    told = value.get("status")
    if isinstance(told, str):
        return _failed_status(value, "status", sentences)
    status, kind = _http_failure(value, told)
    if status < 400:
        return _failed_status(value, "Status" if "Status" in value else "result", sentences)
    meaning, message = weigh(None, {**value, "status": status}, sentences)
    return Sign(meaning, kind, message or f"status {status}")


def _http_failure(value: Fields, told: object) -> tuple[int, str]:
    """The HTTP status of an answer, 0 for none, and the kind of sign it is."""
    if status := http_status(value, ("statusCode", "status_code", "StatusCode", "httpStatusCode")):
        return status, "status"
    if "title" in value and ("type" in value or "detail" in value):
        return http_status({"status": told}, ("status",)) or 0, "problem"
    return (http_status(value, ("status", "code")) or 0 if value.keys() <= _ENVELOPE else 0), "status"


def _failed_status(value: Fields, place: str, sentences: Sentences) -> Sign | None:
    """A word for a status: of an answer that is nothing but an envelope, or "error" beside its reason."""
    word = value.get(place)
    if not is_failure_word(word):
        return None
    if value.keys() <= _ENVELOPE or (str(word).strip().lower() == "error" and not _REASONS.isdisjoint(value)):
        meaning, message = weigh(None, {name: kept for name, kept in value.items() if name != place}, sentences)
        return Sign(meaning, "status_field", message)
    return None


# --- rows

_ROW_SIGNS: Final = frozenset(["error", "errors", "Error", "Errors", "success", "ok", "errorCode", "ErrorCode", "httpStatusCode"])
_ROW_NAMES: Final = ("id", "_id", "Id", "ID", "key", "Key", "name", "MessageId", "url", "referenceId")


def _rows_sign(rows: Sequence[object], data: frozenset[str], kind: str = "rows") -> Sign | None:
    """Rows of a batch that failed, each by its own error: some are `partial`, all are an error."""
    suspects = [(i, row) for i, row in enumerate(rows) if not (type(row) is dict and _is_unsuspected(row))]
    failed = [(i, error) for i, row in suspects if (error := _row_error(row, data)) is not None]
    if not failed:
        return None
    names = tuple(_name(rows[i], str(i)) for i, _ in failed)
    message = words([error for _, error in failed])
    return Sign("error" if len(failed) == len(rows) else "partial", kind, message, names)


def _is_unsuspected(row: Fields) -> bool:
    return _ROW_SIGNS.isdisjoint(row) and (len(row) != 1 or type(next(iter(row.values()))) is not dict)


def _row_error(row: object, data: frozenset[str]) -> object:
    """What makes a row a failed one, or None."""
    if row is None or isinstance(row, str | int | float | list):
        return None
    found = fields_of(row)
    if found is None:
        return None
    found = _operation(found)
    if not has_any(found, _ROW_SIGNS):
        return None
    if data:
        found = {name: kept for name, kept in found.items() if name not in data}
    return _own_error(found)


def _own_error(found: Fields) -> object:
    for name in ("error", "errors", "Error", "Errors"):
        if is_failure(found.get(name)):
            return found[name]
    status = http_status(found, ("httpStatusCode",))
    coded = any(found.get(name) for name in ("errorCode", "ErrorCode"))
    if (coded and len(found) <= 6) or _is_no(found.get("success")) or _is_no(found.get("ok")) or (status or 0) >= 400:
        return words(found) or "failed"
    return None


def _operation(row: Fields) -> Fields:
    """The row itself, or what stands under its operation: {"index": {"_id": "b", "error": {...}}}."""
    return (fields_of(next(iter(row.values()))) or row) if len(row) == 1 and _ROW_SIGNS.isdisjoint(row) else row


def _name(row: object, otherwise: str) -> str:
    found = _operation(fields_of(row) or {})
    named = (found.get(name) for name in _ROW_NAMES)
    return next((str(name)[:200] for name in named if isinstance(name, str | int)), otherwise)


_LOOKS: Final[Sequence[tuple[frozenset[str], Look]]] = (
    (frozenset(("_shards",)), _shards),
    (frozenset(("items",)), _bulk),
    (frozenset((*_LEFT_OVER, *_FAILED_COUNTS, *(name for name, _ in _FAILED_LISTS))), _left_overs),
    (frozenset(("data",)), _graphql),
    (frozenset((*_ERRORS, "errorMessage")), _errors),
    (frozenset((*_SUCCESSES, *_FLAGS)), _flags),
    (frozenset(["status", "Status", "result", "statusCode", "status_code", "StatusCode", "httpStatusCode", "code"]), _statuses),
)
SIGNS: Final[frozenset[str]] = _ROW_LISTS.union(*(names for names, _ in _LOOKS))
