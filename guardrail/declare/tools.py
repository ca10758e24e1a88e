"""What is declared of a tool: its effect, what its results mean, what it demands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field

from guardrail.calls import Action, Effect
from guardrail.declare.choices import BY_FORM, KEYS, PLAIN, by_key, kind, one_of, single
from guardrail.declare.matchers import Matcher
from guardrail.declare.model import Count, Declaration, Flag
from guardrail.declare.policies import Outcomes, Sentence
from guardrail.declare.resources import HttpReading
from guardrail.declare.texts import Filled, Pointer
from guardrail.query.classified import Trait
from guardrail.query.proved import Dialect

_SIMPLE = single(str, int, bool, what="a text, a whole number, true or false")
_SIMPLE_OR_NULL = single(str, int, bool, type(None), what="a text, a whole number, true, false or null")


def _argument(text: str) -> str:
    steps = text.split(".")
    if len(steps) < 2 or steps[0] != "args" or not all(step.isidentifier() for step in steps):
        raise ValueError("must name an argument: args.name")
    return text


class EffectByArgument(Declaration):
    """An effect that an argument decides: `{by: args.action, read: [get, list], write: [update]}`.

    A value on neither list makes the call's effect `unknown`.
    """

    by: Annotated[str, AfterValidator(_argument)]
    read: tuple[Annotated[str | int | bool, _SIMPLE], ...] = ()
    write: tuple[Annotated[str | int | bool, _SIMPLE], ...] = ()


class Signal(Declaration):
    """A field of the result that tells the outcome: `{at: /state, in: [failed], means: error}`.

    `at` is a JSON pointer from the declared root; `is_in` (`in` in a file) lists the values.
    """

    at: Pointer
    is_in: tuple[Annotated[str | int | bool | None, _SIMPLE_OR_NULL], ...] = Field(
        validation_alias="in", serialization_alias="in", min_length=1
    )
    means: Literal["ok", "empty", "rejected", "error", "partial", "in_doubt"]


class Batch(Declaration):
    """Where a batch's result lists its items, and what makes one failed.

    `items` and `error` are JSON pointers (from the root, and from an item), `key` names an item.
    """

    items: Pointer
    error: Pointer
    key: str | None = None


class CelRequirement(Declaration):
    """A CEL expression over `args`, `inputs` and `run` that must be true."""

    cel: str
    because: str = ""


class SqlRequirement(Declaration):
    """A query that must answer one row with one true value; `:name` takes an argument or an input."""

    store: str
    sql: str
    because: str = ""


class HttpRequirement(HttpReading):
    """A value of an HTTP store; `:name` in its path or query and `$name` in `equals` take an argument or an input."""

    because: str = ""


class EarlierRequirement(Declaration):
    """A fact of this run: an earlier good result of the tool `earlier`.

    `same` lists arguments that must be equal in both calls. `at` is a JSON pointer into that result and
    `is_` (`is` in a file) what must stand there; without `at` any good, non-empty result will do. An
    empty, incomplete or failed result is never a fact.
    """

    earlier: str
    same: tuple[Filled, ...] = ()
    at: Pointer | None = None
    is_: Matcher | None = Field(default=None, validation_alias="is", serialization_alias="is")
    because: str = ""


Requirement = CelRequirement | SqlRequirement | HttpRequirement | EarlierRequirement

_Requirement: TypeAlias = Annotated[
    Annotated[CelRequirement, kind("cel")]
    | Annotated[SqlRequirement, kind("sql")]
    | Annotated[HttpRequirement, kind("get")]
    | Annotated[EarlierRequirement, kind("earlier")],
    by_key("cel", "sql", "get", "earlier"),
    one_of("cel", "sql", "get", "earlier"),
]


class Tool(Declaration):
    """What is declared of a tool, or of every tool whose name matches a glob pattern.

    effect: `read`, `write`, `unknown`, or decided by an argument. None: by `sql`, else by what whoever offers the tool
    says, else `unknown`.
    sql: the argument whose text the tool executes as SQL; what its statements do decides the effect.
    dialect: that of `sql`; None: that of the SQL stores, if they have one.
    forbids: what no statement may do (`no_where`, `ddl`); the call is not carried out.
    empty: what an empty answer of any shape does (`allow`, `hold`, `stop`).
    outcomes: what each outcome does for this tool, over the policy.
    returns: `json` (anything else is an error), `text` (never read as a sentence), `any`.
    root: JSON pointer to the part of the result that is judged.
    data: names of top-level fields that look like a status and are data (`status`, `success`).
    signals: declared fields that tell the outcome; they win over everything generic.
    sentences: declared patterns, before the bundled ones.
    batch: how a batch's result lists its items.
    raises: outcome by exception class name, for exceptions that mean something else than usual.
    idempotent: a repeat of a write in doubt is harmless, so it is let through.
    once_per: the arguments that name one operation; a second success with the same is refused.
    args: what each argument must be.
    requires: preconditions.
    retries: cap of retries for this tool, over the policy.
    redact: names of arguments, result fields and columns that are never stored or shown.
    """

    effect: Annotated[Annotated[Effect, PLAIN] | Annotated[EffectByArgument, KEYS], BY_FORM] | None = None
    sql: Filled | None = None
    dialect: Dialect | None = None
    forbids: tuple[Trait, ...] = ()
    description: str = ""
    empty: Action | None = None
    outcomes: Outcomes = Outcomes()
    returns: Literal["json", "text", "any"] = "any"
    root: Pointer = ""
    data: tuple[Filled, ...] = ()
    signals: tuple[Signal, ...] = ()
    sentences: tuple[Sentence, ...] = ()
    batch: Batch | None = None
    raises: Mapping[Filled, Literal["error", "rejected", "empty", "in_doubt", "cancelled"]] = {}
    idempotent: Flag = False
    once_per: tuple[Filled, ...] = ()
    args: Mapping[str, Matcher] = {}
    requires: tuple[_Requirement, ...] = ()
    retries: Count | None = None
    redact: tuple[Filled, ...] = ()
