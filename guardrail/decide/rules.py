"""The rules: whether a call may run, and what its outcome does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from guardrail.calls import Action, Effect, Judgement, Stop, ToolCall
from guardrail.decide.arguments import is_further_page
from guardrail.decide.holds import Hold, is_retry, resolves
from guardrail.decide.operations import Repeat

Actions: TypeAlias = Mapping[tuple[str, Effect], Action]
"""What each outcome does, by outcome (with `empty_list` apart from `empty`) and effect."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A call that must not run, while the run goes on; `text` may reach the model."""

    reason: str
    text: str

    def __str__(self) -> str:
        """The text, which is also what is recorded of the call."""
        return self.text


@dataclass(frozen=True, slots=True)
class Consequence:
    """What the outcome of a call does: the action, the holds that remain, and the stop if there is one."""

    action: Action
    holds: tuple[Hold, ...]
    stop: Stop | None = None
    opened: Hold | None = None


def under_holds(
    number: int, call: ToolCall, effect: Effect, holds: Sequence[Hold], retries: int
) -> Refusal | Stop | None:
    """Whether the open holds let a call run.

    Reads go on. A write that is the retry of the one failure, or of any while all others are retried by
    it too, is let through, so often as `retries` says; any other stops the run. A call of unknown effect is refused.
    """
    if effect == "read" or not holds:
        return None
    hold = next((hold for hold in holds if not is_retry(hold, call)), None)
    if hold is None:
        used_up = next((hold for hold in holds if hold.retries >= retries), None)
        if used_up is None:
            return None
        detail = f"it has failed {used_up.retries + 1} times: {used_up.detail}"
        return Stop("retries_used_up", number, call.name, detail)
    if effect == "unknown":
        return Refusal(
            "unknown_effect",
            f"{call.name} was not carried out: an earlier call to {hold.tool} failed, and it is not declared "
            f"whether {call.name} changes anything.",
        )
    return Stop("write_under_hold", number, call.name, f"call {hold.call} ({hold.tool}) {_came_to(hold)}")


def of_repeat(number: int, call: ToolCall, repeated: Repeat | None, earlier: int) -> Refusal | Stop | None:
    """Whether a write that repeats an earlier one may run."""
    match repeated:
        case "duplicate":
            return Refusal("duplicate", f"{call.name} was not carried out: the same was already done in this run.")
        case "in_doubt":
            return Refusal(
                "in_doubt",
                f"{call.name} was not carried out: an earlier attempt may have succeeded, and it must not be repeated.",
            )
        case "running":
            return Refusal("running", f"{call.name} was not carried out: the same is being carried out right now.")
        case "conflict":
            return Stop("conflict", number, call.name, f"call {earlier} did the same operation with other arguments")
        case "equal" | None:
            return None


def consequence(
    number: int,
    call: ToolCall,
    effect: Effect,
    judgement: Judgement,
    *,
    actions: Actions,
    holds: tuple[Hold, ...],
    series: Mapping[str, object] | None = None,
    idempotent: bool = False,
) -> Consequence:
    """What a judged call does to the run."""
    if judgement.outcome == "ok":
        return Consequence("allow", _unresolved(holds, number, call, effect)) if holds else _NOTHING
    outcome = "empty_list" if judgement.outcome == "empty" and judgement.listed else judgement.outcome
    if outcome == "empty_list" and is_further_page(series, call.args):
        return Consequence("allow", holds)
    action = actions.get((outcome, effect), "stop")
    if action == "allow":
        return Consequence("allow", holds)
    if action == "stop":
        return Consequence("stop", holds, Stop(judgement.outcome, number, call.name, judgement.said))
    hold = _hold(number, call, effect, judgement, holds=holds, series=series, idempotent=idempotent)
    # It takes the place of those that it tried again; but a write in doubt stays so when its repeat failed.
    remaining = (*(h for h in holds if h.outcome == "in_doubt" or not is_retry(h, call)), hold)
    return Consequence("hold", remaining, opened=hold)


_NOTHING = Consequence("allow", ())
"""The consequence of an ordinary call; made once, as nearly all calls have it."""


def _hold(
    number: int,
    call: ToolCall,
    effect: Effect,
    judgement: Judgement,
    *,
    holds: tuple[Hold, ...],
    series: Mapping[str, object] | None,
    idempotent: bool,
) -> Hold:
    """The hold that a failure opens; where it tried others again, it counts on."""
    retried = [hold for hold in holds if is_retry(hold, call)]
    return Hold(
        call=number,
        tool=call.name,
        effect=effect,
        outcome=judgement.outcome,
        args=call.args,
        detail=judgement.message,
        looked_for=judgement.not_found,
        retries=max((hold.retries + 1 for hold in retried), default=0),
        # A series is known from before the first failure; a failed retry does not end it.
        series=next((h.series for h in retried if h.series is not None), series),
        idempotent=idempotent,
    )


def after_user_turn(holds: tuple[Hold, ...]) -> tuple[Hold, ...]:
    """What a turn of the real user leaves: it resolves every hold but a write in doubt."""
    return tuple(hold for hold in holds if hold.outcome == "in_doubt")


def _unresolved(holds: tuple[Hold, ...], number: int, call: ToolCall, effect: Effect) -> tuple[Hold, ...]:
    """What a good call leaves. One that began before a failure, and ended after it, says nothing of it."""
    return tuple(hold for hold in holds if number < hold.call or not resolves(hold, call, effect))


def _came_to(hold: Hold) -> str:
    words = {"empty": "found nothing", "rejected": "was rejected", "in_doubt": "may or may not have happened"}
    came_to = words.get(hold.outcome, "failed")
    return f"{came_to}: {hold.detail}" if hold.detail else came_to
