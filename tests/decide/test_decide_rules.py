"""What an outcome does to the run, and which calls open holds let through."""

from __future__ import annotations

from guardrail.calls import Effect, Judgement, Outcome, Stop, ToolCall
from guardrail.decide.holds import Hold
from guardrail.decide.operations import Operation, after, repeat
from guardrail.decide.rules import Actions, Consequence, Refusal, after_user_turn, consequence, of_repeat, under_holds

EFFECTS: tuple[Effect, ...] = ("read", "write", "unknown")
HELD = ("error", "rejected", "empty", "in_doubt")
ACTIONS: Actions = {**{(o, e): "hold" for o in HELD for e in EFFECTS}, ("empty_list", "read"): "allow"}


def judged(
    outcome: Outcome,
    effect: Effect = "write",
    *,
    holds: tuple[Hold, ...] = (),
    listed: bool = False,
    tool: str = "update",
    number: int = 2,
    **args: object,
) -> Consequence:
    call = ToolCall(tool, args)
    return consequence(number, call, effect, Judgement(outcome, listed=listed), actions=ACTIONS, holds=holds)


def failed(tool: str = "update", effect: Effect = "write", outcome: Outcome = "error", **args: object) -> Hold:
    return Hold(1, tool, effect, outcome, args)


def test_a_failed_write_opens_a_hold() -> None:
    result = judged("error", id=1)
    assert result.action == "hold"
    assert [(h.tool, h.outcome) for h in result.holds] == [("update", "error")]


def test_an_empty_list_opens_none_and_an_empty_lookup_does() -> None:
    assert judged("empty", "read", listed=True).holds == ()
    assert len(judged("empty", "read").holds) == 1


def test_an_empty_last_page_ends_a_listing_that_found_something() -> None:
    stopping: Actions = {("empty_list", "read"): "stop"}
    last = ToolCall("list_tickets", {"queue": "a", "page_token": "p2"})

    def action(earlier: dict[str, object] | None) -> str:
        empty = Judgement("empty", listed=True)
        return consequence(2, last, "read", empty, actions=stopping, holds=(), series=earlier).action

    assert action({"queue": "a"}) == "allow"
    assert action({"queue": "a", "page_token": "p1"}) == "allow"
    assert action({"queue": "b"}) == "stop"
    assert action(None) == "stop"


def test_an_outcome_that_no_rule_names_stops() -> None:
    assert judged("partial").action == "stop"


def test_a_write_under_a_hold_stops_the_run_and_a_read_goes_on() -> None:
    holds = (failed(id=1),)
    assert isinstance(under_holds(2, ToolCall("ship", {"id": 1}), "write", holds, 3), Stop)
    assert under_holds(2, ToolCall("lookup", {"id": 1}), "read", holds, 3) is None


def test_the_retry_is_let_through() -> None:
    assert under_holds(2, ToolCall("update", {"id": 1}), "write", (failed(id=1),), 3) is None


def test_the_retry_of_one_failure_is_stopped_by_another_that_is_open() -> None:
    holds = (failed(id=1), failed("charge", id=1))
    assert isinstance(under_holds(3, ToolCall("update", {"id": 1}), "write", holds, 3), Stop)


def test_a_call_of_unknown_effect_is_refused_without_stopping() -> None:
    answer = under_holds(2, ToolCall("poke", {}), "unknown", (failed(id=1),), 3)
    assert isinstance(answer, Refusal)
    assert "declared" in answer.text


def test_the_retrys_success_resolves_the_hold() -> None:
    assert judged("ok", holds=(failed(id=1),), id=1).holds == ()


def test_a_failed_retry_takes_the_place_of_the_hold_and_counts() -> None:
    result = judged("error", holds=(failed(id=1),), id=1)
    assert [h.retries for h in result.holds] == [1]


def test_a_failed_call_may_be_tried_again_so_often_and_no_more() -> None:
    holds: tuple[Hold, ...] = ()
    for number in (1, 2, 3):
        assert under_holds(number, ToolCall("update", {"id": 1}), "write", holds, 2) is None
        holds = judged("error", holds=holds, number=number, id=1).holds
    stop = under_holds(4, ToolCall("update", {"id": 1}), "write", holds, 2)
    assert isinstance(stop, Stop)
    assert stop.reason == "retries_used_up"


def test_a_write_in_doubt_stays_open_beside_its_failed_repeat() -> None:
    doubtful = failed("update", outcome="in_doubt", id=1)
    assert [h.outcome for h in judged("error", holds=(doubtful,), id=1).holds] == ["in_doubt", "error"]


def test_a_turn_of_the_user_resolves_all_but_a_write_in_doubt() -> None:
    doubtful = failed("charge", outcome="in_doubt")
    assert after_user_turn((failed(), doubtful)) == (doubtful,)


def operation(state: str, digest: str = "d", *, declared: bool = True) -> Operation:
    return Operation("k", digest, declared, state, 1)  # type: ignore[arg-type]


def test_a_second_success_with_the_same_key_is_a_duplicate_or_a_conflict() -> None:
    assert repeat("d", operation("done")) == "duplicate"
    assert repeat("other", operation("done")) == "conflict"
    assert repeat("d", operation("running")) == "running"
    assert repeat("other", operation("running")) == "running"


def test_an_equal_write_under_no_declared_key_is_only_flagged() -> None:
    assert repeat("d", operation("done", declared=False)) == "equal"
    assert of_repeat(2, ToolCall("refund", {}), "equal", 1) is None


def test_a_repeat_of_a_write_in_doubt_is_refused_whoever_named_the_key() -> None:
    assert repeat("d", operation("in_doubt", declared=False)) == "in_doubt"
    assert isinstance(of_repeat(2, ToolCall("refund", {}), "in_doubt", 1), Refusal)


def test_a_conflict_stops_the_run() -> None:
    assert isinstance(of_repeat(2, ToolCall("refund", {}), "conflict", 1), Stop)


def test_an_operation_that_failed_did_not_happen() -> None:
    running = operation("running")
    assert after(running, "error") is None
    assert after(running, "rejected") is None
    done, doubtful = after(running, "ok"), after(running, "partial")
    assert done is not None
    assert doubtful is not None
    assert (done.state, doubtful.state) == ("done", "in_doubt")
