"""A result judged: how a tool's execution ended, and what is declared of it, give the outcome."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from guardrail.calls import Effect, Ending, Judgement, Outcome, Raised
from guardrail.declare.policies import Sentence
from guardrail.declare.tools import Tool
from guardrail.judge.declared import DeclaredBatch, DeclaredSignal, Steps
from guardrail.judge.emptiness import absence
from guardrail.judge.envelope import OPENERS, Envelope, open_envelope
from guardrail.judge.fields import has_any, is_list, is_mapping, plain, reach
from guardrail.judge.meanings import LONGEST_MESSAGE, OK, conclude, of_status
from guardrail.judge.raised import judge_raised
from guardrail.judge.sentences import Sentences
from guardrail.judge.signals import find_refusal, find_sign
from guardrail.judge.texts import Unparsed, announced_failure, parse
from guardrail.judge.wording import weigh, words
from guardrail.pointers import MISSING, tokens

_ENVELOPED: Final = frozenset(("type", "tool_call_id", "goto"))
"""Of the first item of a list: the list is one of blocks, messages or updates of a graph's state, and none of rows."""

_SCALARS: Final = frozenset({type(None), bool, int, float})


@dataclass(frozen=True, slots=True)
class ResultRules:
    """How one tool's results are judged: what is declared of them, precompiled.

    `generic` is true where nothing is declared that changes how a value without an envelope is judged.
    """

    sentences: Sentences
    returns: Literal["json", "text", "any"] = "any"
    root: Steps = ()
    data: frozenset[str] = frozenset()
    signals: tuple[DeclaredSignal, ...] = ()
    batch: DeclaredBatch | None = None
    raises: Mapping[str, Outcome] = field(default_factory=dict[str, Outcome])
    generic: bool = True

    @staticmethod
    def of(tool: Tool, sentences: Sequence[Sentence]) -> ResultRules:
        """The rules of a declared tool; `sentences` are tried after the tool's own.

        Raises ValueError for a pointer or a pattern that is none.
        """
        return ResultRules(
            sentences=Sentences.of((*tool.sentences, *sentences)),
            returns=tool.returns,
            root=tokens(tool.root),
            data=frozenset(tool.data),
            signals=tuple(map(DeclaredSignal.of, tool.signals)),
            batch=None if tool.batch is None else DeclaredBatch.of(tool.batch),
            raises=dict(tool.raises),
            generic=tool.returns == "any" and not (tool.root or tool.signals or tool.batch),
        )


def judge(ending: Ending, effect: Effect, rules: ResultRules, tool: str = "") -> Judgement:
    """What a call came to. Pure, and never raises, whatever the tool returned or raised. `tool` is its name, where known.

    Declarations come first; then what the envelope says, then the generic signs of failure, then sentences,
    then emptiness (of a write, to return nothing is normal).
    """
    try:
        if isinstance(ending, Raised):
            return judge_raised(ending.error, effect, rules.sentences, rules.raises, tool)
        if rules.generic:
            return _judge_generic(ending.value, effect, rules)
        envelope = open_envelope(ending.value, parsing=rules.returns != "text")
        return _judge_envelope(envelope, effect, rules)
    except Exception as error:  # noqa: BLE001  # a foreign value's own methods (a lazy mapping, a hash) may raise anything
        return conclude("in_doubt", effect, "unreadable", f"the result cannot be read: {type(error).__name__}")


def _judge_generic(value: object, effect: Effect, rules: ResultRules) -> Judgement:
    """Judge where nothing is declared of the shape: what has no envelope goes the short way, to the same end."""
    if isinstance(value, str):
        found = parse(value)
        if found is Unparsed.NOT_JSON:
            return _judge_text(value, effect, rules) or _judge_absence(value, effect)
        value = found
    if is_mapping(value):
        is_bare = not has_any(value, OPENERS)
    else:
        is_bare = _is_of_rows(value) if is_list(value) else type(value) in _SCALARS
    return _judge_value(value, effect, rules) if is_bare else _judge_envelope(open_envelope(value), effect, rules)


def _is_of_rows(value: Sequence[object]) -> bool:
    first = value[0] if value else None
    return first is None or (is_mapping(first) and _ENVELOPED.isdisjoint(first))


def open_value(ending: Ending, rules: ResultRules) -> object:
    """The opened value at the declared root, None if the tool raised or the root leads nowhere.

    This is what facts and late-bound inputs are read from by JSON pointer: without the transport's envelopes,
    JSON texts parsed, models and dataclasses as dicts; a wrapper that is the tool's own (`{"result": ...}`)
    stays. Never raises.
    """
    if isinstance(ending, Raised):
        return None
    try:
        envelope = open_envelope(ending.value, parsing=rules.returns != "text")
        found = next(_found(envelope, rules.root), None)
        return found if envelope.is_plain else plain(found)
    except Exception:  # noqa: BLE001  # a foreign value's own methods may raise anything: then there is nothing to read
        return None


def _found(envelope: Envelope, steps: Steps) -> Iterator[object]:
    """What stands at a pointer, from the outside in."""
    wholes = (envelope.shown,) if envelope.shown is envelope.value else (envelope.shown, envelope.value)
    return (found for whole in wholes if (found := reach(whole, steps)) is not MISSING)


def _judge_envelope(envelope: Envelope, effect: Effect, rules: ResultRules) -> Judgement:
    if isinstance(envelope.value, BaseException):  # gathered with return_exceptions, or simply returned
        return judge_raised(envelope.value, effect, rules.sentences, rules.raises)
    declared = _judge_declared(envelope, rules)
    has_failed = envelope.failed or envelope.status is not None
    if declared is not None and not (has_failed and declared.outcome == "ok"):
        return declared
    if has_failed:
        return _judge_failed(envelope, effect, rules.sentences)
    if rules.returns == "json" and not envelope.is_json and str(envelope.value).strip():
        return Judgement("error", "not_json", words(envelope.value))
    if not envelope.is_whole or envelope.value is Unparsed.TOO_LONG:
        return Judgement("ok", "too_long")
    return _judge_root(envelope, effect, rules)


def _judge_declared(envelope: Envelope, rules: ResultRules) -> Judgement | None:
    """The first declared signal that holds."""
    for signal in rules.signals:
        for value in _found(envelope, (*rules.root, *signal.at)):
            if signal.holds(value):
                root = next(_found(envelope, rules.root), None)
                return Judgement(signal.means, "declared", "" if signal.means == "ok" else words(root))
    return None


def _judge_failed(envelope: Envelope, effect: Effect, sentences: Sentences) -> Judgement:
    meaning, message = weigh(envelope.value, {}, sentences)
    status = envelope.status
    if status is None:
        return conclude(meaning, effect, "error_flag", message)
    told = of_status(status)
    return conclude(meaning if told == "error" else told, effect, "status", message or f"status {status}")


def _judge_root(envelope: Envelope, effect: Effect, rules: ResultRules) -> Judgement:
    if not rules.root:
        return _judge_answer(envelope.value, envelope, effect, rules)
    found = next(_found(envelope, rules.root), MISSING)
    if found is not MISSING:
        return _judge_answer(found, envelope, effect, rules)
    whole = _judge_answer(envelope.value, envelope, effect, rules)
    if whole.outcome != "ok" or absence(envelope.value):
        return whole
    return Judgement("error", "root_missing", f"there is nothing at the declared root /{'/'.join(rules.root)}")


def _judge_answer(value: object, envelope: Envelope, effect: Effect, rules: ResultRules) -> Judgement:
    if rules.batch is not None:
        wholes = (value,) if rules.root else (value, envelope.shown)
        if judgement := next((found for whole in wholes if (found := rules.batch.judge(whole))), None):
            return judgement
    return _judge_value(value, effect, rules)


def _judge_value(value: object, effect: Effect, rules: ResultRules) -> Judgement:
    """What a value means by the generic signs, its sentence and its emptiness."""
    if isinstance(value, str) and rules.returns != "text" and (judgement := _judge_text(value, effect, rules)):
        return judgement
    if sign := find_sign(value, rules.sentences, rules.data):
        return conclude(sign.meaning, effect, sign.kind, sign.message, sign.failed_items)
    if effect != "read" and (no := find_refusal(value)):
        return conclude(no.meaning, effect, no.kind, no.message)
    return _judge_absence(value, effect)


def _judge_text(text: str, effect: Effect, rules: ResultRules) -> Judgement | None:
    head = text[:64].lstrip()[:1]
    if head == "{" or (head == "[" and text[-64:].rstrip()[-1:] == "]"):
        return None  # data in some notation that is not JSON, such as Python's own
    if head in ("<", "T") and (failure := announced_failure(text)):
        return Judgement("error", failure[0], failure[1][:LONGEST_MESSAGE])
    meaning = rules.sentences.read(text)
    return None if meaning in (None, "ok") else conclude(meaning, effect, "sentence", text)


def _judge_absence(value: object, effect: Effect) -> Judgement:
    """To return nothing is normal for a write; a tool of unknown effect may be one, and looked for nothing then."""
    found = None if effect == "write" else absence(value)
    if found is None or (found == "empty" and effect != "read"):
        return OK
    return conclude(found, effect, "absence")
