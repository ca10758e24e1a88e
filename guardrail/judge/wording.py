"""What an error says: its words, and what its status, its code and its sentence mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from guardrail.judge.fields import Fields, fields_of, http_status, is_list, listed
from guardrail.judge.meanings import LONGEST_MESSAGE, Meaning, of_code, of_status
from guardrail.judge.sentences import Sentences

_WORDS: Final = listed(
    "message Message msg reason detail error_description description errorMessage ErrorMessage error_message faultstring "
    "value title error errors code Code type"
)
_WORDS_BESIDE: Final = tuple(name for name in _WORDS if name not in ("code", "Code", "type", "value"))
_CODES: Final = listed("code Code status error_code errorCode type reason error")
_STATUSES: Final = listed("status code status_code statusCode http_status httpStatusCode httpStatus")
_DEEPEST: Final = 4
_MOST_ERRORS: Final = 20


def weigh(error: object, beside: Fields, sentences: Sentences) -> tuple[Meaning, str]:
    """What an error means, and its words.

    Its HTTP status, its code and its sentence are asked in that order for something more precise than
    "error"; the fields `beside` it count where the error itself says nothing.
    """
    own = fields_of(error) or {}
    message = words(error) or words({name: beside[name] for name in _WORDS_BESIDE if name in beside})
    told = _told(error, own, beside, message, sentences)
    precise: Meaning | None = next((meaning for meaning in told if meaning not in (None, "ok", "error")), None)
    return precise or "error", message


def words(value: object, depth: int = _DEEPEST) -> str:
    """The words of an error, in whichever form it comes; several errors are joined. "" if it has none."""
    if isinstance(value, str):
        return value[:LONGEST_MESSAGE].strip()
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if abs(value) < 10**20 else ""
    if not depth:
        return ""
    if is_list(value):
        parts = (words(entry, depth - 1) for entry in value[:_MOST_ERRORS])
        return "; ".join(part for part in parts if part)[:LONGEST_MESSAGE]
    if isinstance(value, Exception):
        return words(value.args, depth - 1)
    found = fields_of(value)
    return _field_words(found, depth - 1) if found else ""


def path_of(error: object) -> str:
    """The place that a GraphQL error names, dotted; "" if it names none."""
    path = (fields_of(error) or {}).get("path")
    steps = path[:_MOST_ERRORS] if is_list(path) else ()
    return ".".join(str(step)[:80] for step in steps if isinstance(step, str | int))


def _told(error: object, own: Fields, beside: Fields, message: str, sentences: Sentences) -> Iterator[Meaning | None]:
    status = http_status(own, _STATUSES) or http_status(beside, _STATUSES)
    yield of_status(status) if status and status >= 400 else None
    for code in (error, *(own.get(name) for name in _CODES), *(beside.get(name) for name in _CODES)):
        yield of_code(code) if isinstance(code, str) else None
    meaning = sentences.read(message)
    yield "empty" if meaning == "empty_list" else meaning


def _field_words(found: Fields, depth: int) -> str:
    said = next((text for name in _WORDS if name in found and (text := words(found[name], depth))), "")
    path = path_of(found)
    return f"{said or _by_field(found, depth)} (at {path})" if path else said or _by_field(found, depth)


def _by_field(found: Fields, depth: int) -> str:
    """Errors by field, as forms give them: {"email": ["is required"]}."""
    some = list(found.items())[:_MOST_ERRORS]
    return "; ".join(f"{str(name)[:80]}: {text}" for name, kept in some if (text := words(kept, depth)))
