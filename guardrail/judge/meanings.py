"""What a failure means, before the call's effect decides its outcome."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

from guardrail.calls import Effect, Judgement, Outcome
from guardrail.judge.fields import is_list, is_mapping

Meaning: TypeAlias = Literal[
    "ok", "empty", "empty_list", "incomplete", "partial", "rejected", "error", "in_doubt", "cancelled"
]
"""What a sign means. `empty` looked for one thing, `empty_list` is a list without entries."""

LONGEST_MESSAGE: Final = 500
MOST_FAILED_ITEMS: Final = 1_000
LONGEST_ITEM_NAME: Final = 200

OK: Final = Judgement("ok")

# 408 and 499 are the two 4xx that tell of a connection given up, not of a request turned down.
_STATUSES: Final[dict[int, Meaning]] = {
    402: "rejected",
    403: "rejected",
    404: "empty",
    408: "in_doubt",
    409: "rejected",
    410: "empty",
    412: "rejected",
    422: "rejected",
    423: "rejected",
    451: "rejected",
    499: "in_doubt",
}

_WORDS: Final[dict[str, Meaning]] = {
    "accessdenied": "rejected",
    "alreadyexists": "rejected",
    "conditionalcheckfailed": "rejected",
    "conflict": "rejected",
    "failedprecondition": "rejected",
    "forbidden": "rejected",
    "insufficientfunds": "rejected",
    "permissiondenied": "rejected",
    "preconditionfailed": "rejected",
    "resourceinuse": "rejected",
    "deadlineexceeded": "in_doubt",
    "gatewaytimeout": "in_doubt",
    "internal": "in_doubt",
    "internalerror": "in_doubt",
    "internalfailure": "in_doubt",
    "internalservererror": "in_doubt",
    "requesttimeout": "in_doubt",
    "serviceunavailable": "in_doubt",
    "timeout": "in_doubt",
    "unavailable": "in_doubt",
}
_HARMLESS: Final = frozenset(("none", "null", "nil", "no error", "no errors", "n/a", "ok", "success", "false", "0"))
_FAILURES: Final = frozenset(("error", "failed", "failure", "fail", "failing"))
FINE: Final = frozenset(("ok", "success", "succeeded", "successful", "complete", "completed", "done"))
"""Words for a status that says that all went well."""

_DEEPEST_ERROR: Final = 4
_NO_LETTER: Final = re.compile(r"[^a-z]+")
_TAIL: Final = re.compile(r"(?:exception|error)$")


def of_status(status: int) -> Meaning:
    """The meaning of an HTTP status from 400 on: 5xx in doubt, 404 not found, the ones of a rule rejected."""
    return "in_doubt" if status >= 500 else _STATUSES.get(status, "error")


def of_code(code: str) -> Meaning | None:
    """The meaning of an error code that is one word: `NOT_FOUND`, `ResourceNotFoundException`, `NoSuchKey`."""
    if len(code) > 80 or " " in code or "/" in code:
        return None
    letters = _NO_LETTER.sub("", code.lower())
    word = _TAIL.sub("", letters)
    if word.endswith("notfound") or word.startswith("nosuch") or word == "doesnotexist":
        return "empty"
    return _WORDS.get(letters) or _WORDS.get(word)


def is_failure_word(value: object) -> bool:
    """Whether a value is a word that says that something failed, as a status does."""
    return isinstance(value, str) and value.strip().lower() in _FAILURES


def is_failure(error: object, depth: int = _DEEPEST_ERROR) -> bool:
    """Whether the value of an error field tells of a failure.

    None, False, 0, blank texts, "none" and the like, empty collections and collections of such values
    do not; neither does a fraction, which is a measured error.
    """
    if error is None or isinstance(error, float):
        return False
    if isinstance(error, str):
        return error.strip().lower() not in _HARMLESS if error.strip() else False
    if isinstance(error, int):
        return error != 0
    if is_mapping(error):
        error = tuple(error.values())
    return any(is_failure(part, depth - 1) for part in error) if is_list(error) and depth else True


def conclude(
    meaning: Meaning, effect: Effect, sign: str, message: str = "", failed_items: tuple[str, ...] = ()
) -> Judgement:
    """The judgement of a sign.

    Only a write can be in doubt: a read that timed out is an error. "Not found" is an empty answer of a
    read and a rejection of a write. A call of unknown effect counts as a write, but a list
    without entries is no failure of it.
    """
    outcome, listed = _outcome(meaning, effect)
    failed = failed_items[:MOST_FAILED_ITEMS]
    return Judgement(outcome, sign, message.strip()[:LONGEST_MESSAGE], listed, failed, meaning == "empty")


def _outcome(meaning: Meaning, effect: Effect) -> tuple[Outcome, bool]:
    match meaning:
        case "empty":
            return ("empty" if effect == "read" else "rejected"), False
        case "empty_list":
            return ("rejected", False) if effect == "write" else ("empty", True)
        case "in_doubt":
            return ("error" if effect == "read" else "in_doubt"), False
        case "cancelled":
            return ("cancelled" if effect == "read" else "in_doubt"), False
        case _:
            return meaning, False
