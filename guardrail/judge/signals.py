"""The generic net: signs of failure at the root of an answer, as many services give them.

Only the root's own fields are looked at, and the rows of its list of results; what stands deeper is data.
Each look knows one family of services. Words are compared, never searched for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from guardrail.judge.fields import MANY, Fields, fields_of, http_status, is_list, is_mapping, listed
from guardrail.judge.meanings import Meaning, is_failure, is_failure_word
from guardrail.judge.rows import failed_rows, is_no, left_names, row_name
from guardrail.judge.sentences import Sentences
from guardrail.judge.wording import path_of, weigh, words


class Sign(NamedTuple):
    """A sign of failure: what it means, a word for its kind, the tool's own words, the items that failed."""

    meaning: Meaning
    kind: str
    message: str = ""
    failed_items: tuple[str, ...] = ()


_Look: TypeAlias = Callable[[Fields, Sentences], Sign | None]

_ROW_LISTS: Final = listed("results items responses outcomes records entries Results Records Entries")
_ROW_NAMES: Final = frozenset(_ROW_LISTS)


def find_sign(value: object, sentences: Sentences, data: frozenset[str] = frozenset()) -> Sign | None:
    """The first sign of failure at the root of an answer, or None. Fields named in `data` are no signs."""
    if is_mapping(value):
        return _mapping_sign(value, sentences, data)
    return _rows_sign(value, data) if is_list(value) else None


def _mapping_sign(value: Fields, sentences: Sentences, data: frozenset[str]) -> Sign | None:
    if data:
        value = {name: kept for name, kept in value.items() if name not in data}
    present = _SIGNS.intersection(value) if len(value) <= MANY else {name for name in _SIGNS if name in value}
    if not present:
        return None
    for names, look in _LOOKS:
        if not names.isdisjoint(present) and (sign := look(value, sentences)):
            return sign
    return None if _ROW_NAMES.isdisjoint(present) else _listed_rows_sign(value, data)


def _listed_rows_sign(value: Fields, data: frozenset[str]) -> Sign | None:
    for name in _ROW_LISTS:
        rows = value.get(name)
        if is_list(rows) and (sign := _rows_sign(rows, data)):
            return sign
    return None


def _rows_sign(rows: Sequence[object], data: frozenset[str] = frozenset(), kind: str = "rows") -> Sign | None:
    """Some rows that failed are `partial`, all are an error."""
    failed = failed_rows(rows, data)
    if not failed:
        return None
    meaning: Meaning = "error" if len(failed) == len(rows) else "partial"
    return Sign(meaning, kind, words([error for _, error in failed]), tuple(name for name, _ in failed))


# --- search engines


def _shards(value: Fields, _: Sentences) -> Sign | None:
    """Elasticsearch: shards that did not answer, which make an empty list of hits worthless."""
    shards = fields_of(value["_shards"]) or {}
    failed = shards.get("failed")
    if isinstance(failed, int) and failed > 0:
        reasons = words(shards.get("failures"))
        return Sign("partial" if shards.get("successful") else "error", "shards", f"{failed} shards failed {reasons}")
    return Sign("partial", "shards", "timed out") if value.get("timed_out") is True else None


def _bulk(value: Fields, _: Sentences) -> Sign | None:
    """Elasticsearch bulk: `errors: true`, and items by operation."""
    items = value.get("items")
    if value.get("errors") is not True or not is_list(items):
        return None
    return _rows_sign(items, kind="bulk") or Sign("partial", "bulk", "some items failed")


# --- batches

_LEFT_OVER: Final = listed(
    "UnprocessedItems UnprocessedKeys UnprocessedEntries UnprocessedIdentityIds UnprocessedStatistics unprocessedItems "
    "unprocessedKeys unprocessed_items"
)
_FAILED_LISTS: Final = (
    ("Failed", "Successful"),
    ("failed", "successful"),
    ("failed", "succeeded"),
    ("Errors", "Deleted"),
)
_FAILED_COUNTS: Final = (
    ("FailedEntryCount", "Entries"),
    ("FailedRecordCount", "Records"),
    ("FailedPutCount", "RequestResponses"),
)


def _left_overs(value: Fields, _: Sentences) -> Sign | None:
    """AWS and others: items of a batch that were not done, beside the ones that were."""
    for name in _LEFT_OVER:
        if left := tuple(left_names(value.get(name))):
            return Sign("partial", "unprocessed", f"{name} is not empty", left)
    for name, done in _FAILED_LISTS:
        failed = value.get(name)
        if is_list(failed) and failed and done in value:
            return _failed_list(failed, value[done])
    for name, place in _FAILED_COUNTS:
        count = value.get(name)
        if isinstance(count, int) and count > 0:
            return _failed_count(count, value.get(place))
    return None


def _failed_list(failed: Sequence[object], done: object) -> Sign:
    names = tuple(row_name(row, str(place)) for place, row in enumerate(failed))
    return Sign("partial" if done else "error", "unprocessed", words(failed), names)


def _failed_count(count: int, entries: object) -> Sign:
    sign = _rows_sign(entries, kind="unprocessed") if is_list(entries) else None
    return sign or Sign("partial", "unprocessed", f"{count} entries failed")


# --- interfaces with an error field


def _graphql(value: Fields, sentences: Sentences) -> Sign | None:
    """GraphQL: `data` beside `errors`; data without any value is nothing done."""
    data, errors = value["data"], value.get("errors")
    if not is_failure(errors):
        is_void = data is None and value.keys() <= {"data", "errors", "extensions"}
        return Sign("error", "graphql", "data is null") if is_void else None
    meaning, message = weigh(errors, {}, sentences)
    if not is_list(errors) or not _has_value(data):
        return Sign(meaning, "graphql", message)
    paths = (path_of(error) for error in errors)
    return Sign("partial", "graphql", message, tuple(path for path in paths if path))


def _has_value(data: object) -> bool:
    return any(value is not None for value in data.values()) if is_mapping(data) else bool(data)


_ERRORS: Final = listed("error errors Error Errors err Fault odata.error")
_TYPED: Final = frozenset(listed("errorType errorCode stackTrace"))
_DONE: Final = (*_ROW_LISTS, *listed("data successful Successful succeeded Deleted created updated inserted"))


def _errors(value: Fields, sentences: Sentences) -> Sign | None:
    """An error field that says something: Slack, Stripe, Google, OData, JSON-RPC, JSON:API and most others."""
    name = next((name for name in _ERRORS if name in value and is_failure(value[name])), None)
    if name is None:
        return _typed_error(value, sentences)
    meaning, message = weigh(value[name], value, sentences)
    if is_list(value[name]) and any(is_list(value.get(done)) and value[done] for done in _DONE):
        meaning = "partial"
    return Sign(meaning, "json_rpc" if "jsonrpc" in value else "error_field", message)


def _typed_error(value: Fields, sentences: Sentences) -> Sign | None:
    """A function's own error document: `errorMessage` beside its type or its stack."""
    if not is_failure(value.get("errorMessage")) or _TYPED.isdisjoint(value):
        return None
    meaning, message = weigh(value["errorMessage"], value, sentences)
    return Sign(meaning, "error_field", message)


# --- flags

_SUCCESSES: Final = listed("success ok accepted acknowledged Success succeeded successful isSuccess")
_FAILURES: Final = listed("isError is_error hasErrors hasError")


def _flags(value: Fields, sentences: Sentences) -> Sign | None:
    """A flag that says no."""
    is_denied = any(is_no(value.get(name)) for name in _SUCCESSES)
    if not is_denied and not any(value.get(name) is True for name in _FAILURES):
        return None
    meaning, message = weigh(None, value, sentences)
    return Sign(meaning, "success_field" if is_denied else "error_flag", message)


# --- statuses

_HTTP_STATUSES: Final = listed("statusCode status_code StatusCode httpStatusCode")
_STATUSES: Final = listed("status Status result code")
# The fields of an answer that is nothing but an envelope; a status among other fields is data.
_ENVELOPE: Final = frozenset(
    listed(
        "status statusCode status_code message msg reason error errors code detail details description data result "
        "error_code errorCode error_type errorType timestamp request_id requestId trace_id traceId path tool tool_name "
        "success ok hint suggestion suggestions title type instance retryable retry_after statusText"
    )
)
_REASONS: Final = frozenset(listed("message msg reason detail details description error_message hint"))


def _http_statuses(value: Fields, sentences: Sentences) -> Sign | None:
    """The status of a transport that names it so."""
    return _http_sign(http_status(value, _HTTP_STATUSES), "status", value, sentences)


def _statuses(value: Fields, sentences: Sentences) -> Sign | None:
    """A problem document (RFC 9457), and the status of an answer that is nothing but an envelope."""
    for name in _STATUSES:
        if name in value and (sign := _status_sign(value, name, sentences)):
            return sign
    return None


def _status_sign(value: Fields, name: str, sentences: Sentences) -> Sign | None:
    if is_failure_word(value[name]):
        return _status_word(value, name, sentences)
    if not isinstance(value[name], int):
        return None
    if "title" in value and ("type" in value or "detail" in value):
        return _http_sign(http_status(value, ("status",)), "problem", value, sentences)
    is_envelope = value.keys() <= _ENVELOPE and (name == "status" or not _REASONS.isdisjoint(value))
    return _http_sign(http_status(value, (name,)), "status", value, sentences) if is_envelope else None


def _http_sign(status: int | None, kind: str, value: Fields, sentences: Sentences) -> Sign | None:
    if status is None or status < 400:
        return None
    meaning, message = weigh(None, {**value, "status": status}, sentences)
    return Sign(meaning, kind, message or f"status {status}")


def _status_word(value: Fields, name: str, sentences: Sentences) -> Sign | None:
    """A word for a status: of an answer that is nothing but an envelope, or "error" beside its reason."""
    is_error = str(value[name]).strip().lower() == "error"
    if not (value.keys() <= _ENVELOPE or (is_error and not _REASONS.isdisjoint(value))):
        return None
    meaning, message = weigh(None, {other: kept for other, kept in value.items() if other != name}, sentences)
    return Sign(meaning, "status_field", message)


_REFUSALS: Final = frozenset(listed("denied rejected refused forbidden declined disallowed unauthorized"))


def find_refusal(value: object) -> Sign | None:
    """The no of a write by its status, of an answer that is nothing but an envelope: `{"status": "denied", "reason": ...}`.

    Of a read such an answer is data: what became of an application, a payment or a claim.
    """
    fields = fields_of(value)
    if not fields or _REASONS.isdisjoint(fields) or not fields.keys() <= _ENVELOPE:
        return None
    for name in _STATUSES:
        word = fields.get(name)
        if isinstance(word, str) and word.strip().lower() in _REFUSALS:
            return Sign("rejected", "status_field", words({other: fields[other] for other in fields if other != name}))
    return None


_LOOKS: Final[Sequence[tuple[frozenset[str], _Look]]] = (
    (frozenset(("_shards",)), _shards),
    (frozenset(("items",)), _bulk),
    (frozenset((*_LEFT_OVER, *(name for name, _ in (*_FAILED_LISTS, *_FAILED_COUNTS)))), _left_overs),
    (frozenset(("data",)), _graphql),
    (frozenset((*_ERRORS, "errorMessage")), _errors),
    (frozenset((*_SUCCESSES, *_FAILURES)), _flags),
    (frozenset(_HTTP_STATUSES), _http_statuses),
    (frozenset(_STATUSES), _statuses),
)
_SIGNS: Final[frozenset[str]] = _ROW_NAMES.union(*(names for names, _ in _LOOKS))
