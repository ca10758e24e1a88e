"""What every adapter must do, in every mode of its framework: played by a scripted model, with real tools."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from guardrail import RunNotOpen, RunStopped
from support.kits.stage import Asked, Turn, asked
from support.kits.theatre import Played, Theatre

LOOK = asked("lookup_order", order_id=17)
LOOK_IN_VAIN = asked("lookup_order", order_id=99)
REFUND = asked("refund_order", order_id=17, amount="19.90")
NOTE = asked("note_order", order_id=17, note="done")
CANCEL = asked("cancel_order", order_id=17)
SHIP = asked("ship_order", order_id=17)
WAIT = asked("wait_order", order_id=17)
UNKNOWN = asked("shred_order", order_id=17)
LACKING = asked("note_order")

SCRIPTS: dict[str, tuple[Turn, ...]] = {
    "a good run": ([LOOK], [REFUND], "Refunded."),
    "a batch": ([LOOK, asked("lookup_order", order_id=18)], "Both are paid."),
    "a failure in an answer that looks well": ([CANCEL], [LOOK], "Cancelled."),
    "an empty lookup": ([LOOK_IN_VAIN], "There is no such order."),
    "an error of the tool's": ([SHIP], "Shipped."),
    "a tool that there is not": ([UNKNOWN], [LOOK], "Done."),
    "arguments that do not fit": ([LACKING], [LOOK], "Done."),
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_what_is_allowed_is_as_without_a_guard(theatre: Theatre, script: tuple[Turn, ...]) -> None:
    bare, guarded = theatre.bare(*script), theatre.play(*script)
    assert guarded.told == bare.told
    assert guarded.begun == bare.begun
    assert guarded.said == bare.said
    assert (type(guarded.error), str(guarded.error)) == (type(bare.error), str(bare.error))


def test_a_good_run_is_verified(theatre: Theatre) -> None:
    played = theatre.play([LOOK], [REFUND], "Refunded.", task="refund_order")
    assert_verified(played)
    assert played.outcomes == [("lookup_order", "ok"), ("refund_order", "ok")]


def test_the_adapter_may_be_given_a_run_instead_of_a_guard(theatre: Theatre) -> None:
    assert_verified(theatre.play([LOOK], [REFUND], "Refunded.", task="refund_order", of_run=True))


def test_a_call_is_recorded_under_the_id_that_the_model_gave_it(theatre: Theatre) -> None:
    played = theatre.play([LOOK, NOTE], [LOOK], "Done.")
    assert sorted(map(str, played.ids)) == ["call_1_0", "call_1_1", "call_2_0"]


@pytest.mark.parametrize(
    ("call", "outcome"),
    [(CANCEL, "rejected"), (LOOK_IN_VAIN, "empty")],
    ids=lambda part: str(part)[:40],
)
def test_a_tools_no_opens_a_hold(theatre: Theatre, call: Asked, outcome: str) -> None:
    assert_held(theatre.play([call], "All done."), call.name, outcome)


def test_a_write_that_raises_is_in_doubt(theatre: Theatre) -> None:
    assert_held(theatre.play([SHIP], "All done."), "ship_order", "in_doubt")


def test_a_call_whose_precondition_fails_is_not_made_and_the_model_is_told(theatre: Theatre) -> None:
    wrong = asked("refund_order", order_id=17, amount="-19.90")
    played = theatre.play([LOOK], [wrong], [REFUND], "Refunded.", task="refund_order")
    assert_verified(played)
    assert played.outcomes == [("lookup_order", "ok"), ("refund_order", "precondition_failed"), ("refund_order", "ok")]
    assert "was not carried out" in "".join(played.told[2])


def test_a_mistake_of_the_models_holds_nothing(theatre: Theatre) -> None:
    played = theatre.play([UNKNOWN], [LACKING], [LOOK], [REFUND], "Refunded.", task="refund_order")
    assert_verified(played)
    assert played.begun == ["lookup_order", "refund_order"]


def test_the_right_retry_resolves_a_hold(theatre: Theatre) -> None:
    played = theatre.play([CANCEL], [LOOK], [CANCEL], [NOTE], "Done.", tools=theatre.tools(refusals=1))
    assert played.error is None
    assert played.run is not None
    assert played.run.open_holds == 0
    assert played.begun == ["cancel_order", "lookup_order", "cancel_order", "note_order"]


def test_a_write_under_a_hold_stops_the_run_for_good(theatre: Theatre) -> None:
    played = theatre.play([CANCEL], [NOTE], [LOOK], [REFUND], "All done.")
    assert_stopped(played, "write_under_hold", requests=2)
    assert played.begun == ["cancel_order"]


@pytest.mark.parametrize("call", [CANCEL, LOOK_IN_VAIN, SHIP], ids=lambda call: call.name)
def test_a_strict_policy_stops_at_the_first_no(theatre: Theatre, call: Asked) -> None:
    played = theatre.play([call], [LOOK], [REFUND], "All done.", policy="strict")
    assert_stopped(played, None, requests=1)
    assert played.begun == [call.name]


def test_no_tool_begins_after_a_stop_in_the_same_batch(theatre: Theatre) -> None:
    notes = [asked("note_order", order_id=17, note=str(n)) for n in range(8)]
    played = theatre.play([CANCEL, *notes, LOOK], [LOOK], "All done.", policy="strict")
    assert_stopped(played, "rejected", requests=1)
    assert played.late == []


def test_a_run_that_is_taken_up_stays_stopped(theatre: Theatre) -> None:
    tools = theatre.tools()
    first = theatre.play([CANCEL], [NOTE], "All done.", tools=tools, id="ticket-1")
    assert_stopped(first, "write_under_hold", requests=2)
    again = theatre.play([LOOK], [REFUND], "All done.", tools=tools, id="ticket-1")
    assert isinstance(again.error, RunStopped), again.error
    assert tools.begun == ["cancel_order"]
    assert again.requests == 0


def test_a_call_outside_of_a_run_is_told_to_the_program_and_not_only_to_the_model(theatre: Theatre) -> None:
    played = theatre.outside([REFUND], [NOTE], "Refunded.")
    assert played.begun == []
    assert isinstance(cause_of(played.error), RunNotOpen), played.error
    assert played.requests == 1


def test_two_runs_at_once_do_not_touch_each_other(theatre: Theatre) -> None:
    tools = [theatre.tools(), theatre.tools()]
    scripts: list[tuple[Turn, ...]] = [([CANCEL], [NOTE], "All done."), ([LOOK], [NOTE], "Noted.")]
    guard = theatre.guard(tools[0])
    played: dict[int, Played] = {}

    def play(number: int) -> None:
        played[number] = theatre.play(*scripts[number], tools=tools[number], guard=guard)

    threads = [threading.Thread(target=play, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_stopped(played[0], "write_under_hold", requests=2)
    assert played[1].error is None, played[1].error
    assert played[1].outcomes == [("lookup_order", "ok"), ("note_order", "ok")]


@pytest.mark.asynchronous
def test_two_runs_in_one_loop_do_not_touch_each_other(theatre: Theatre) -> None:
    tools = [theatre.tools(), theatre.tools()]
    guard = theatre.guard(tools[0])
    scripts: list[tuple[Turn, ...]] = [([CANCEL], [NOTE], "All done."), ([LOOK], [NOTE], "Noted.")]
    scenes = [theatre.scene(tools[n], scripts[n], guard) for n in range(2)]

    async def both() -> list[Any]:
        return await asyncio.gather(*(theatre.aguarded(guard.run(), scene) for scene in scenes))

    (_, stopped), (said, error) = asyncio.run(both())
    assert isinstance(stopped, RunStopped)
    assert (said, error) == ("Noted.", None)
    assert [tools[0].begun, tools[1].begun] == [["cancel_order"], ["lookup_order", "note_order"]]


@pytest.mark.asynchronous
def test_a_cancellation_wins_and_leaves_a_write_in_doubt(theatre: Theatre) -> None:
    tools = theatre.tools()
    guard = theatre.guard(tools)
    run = guard.run()
    scene = theatre.scene(tools, ([WAIT], "Waited."), guard)

    async def cut_off() -> None:
        task = asyncio.create_task(theatre.aguarded(run, scene))
        assert await asyncio.to_thread(tools.waiting.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        tools.go_on.set()

    asyncio.run(cut_off())
    history = guard.ledger.load_run(run.id)
    assert history is not None
    assert [call.outcome and call.outcome.outcome for call in history.calls] == ["in_doubt"]


def test_a_call_has_one_span_below_that_of_its_run(theatre: Theatre) -> None:
    theatre.play([LOOK], [NOTE, LOOK], "Noted.")
    spans = theatre.spans()
    [root] = [span for span in spans if span.parent is None]
    assert root.name.startswith("invoke_agent")
    tools = [span for span in spans if (span.attributes or {}).get("gen_ai.operation.name") == "execute_tool"]
    assert sorted(str((span.attributes or {}).get("gen_ai.tool.name")) for span in tools) == [
        "lookup_order",
        "lookup_order",
        "note_order",
    ]
    assert all(span.context.trace_id == root.context.trace_id for span in tools)


@pytest.mark.nested
def test_a_stop_in_an_agent_that_is_a_tool_stops_the_whole_run(theatre: Theatre) -> None:
    ask = asked("ask_clerk", question="Please see to it.")
    played = theatre.play([ask], [LOOK], "All done.", inner=([CANCEL], [NOTE], "All done."))
    assert isinstance(played.error, RunStopped), played.error
    assert played.begun == ["cancel_order"]
    assert played.requests == 1


@pytest.mark.nested
def test_an_agent_that_is_a_tool_may_do_its_work(theatre: Theatre) -> None:
    ask = asked("ask_clerk", question="Please see to it.")
    played = theatre.play([ask], "Refunded.", inner=([LOOK], [REFUND], "It is done."), task="refund_order")
    assert_verified(played)


def cause_of(error: BaseException | None) -> BaseException | None:
    """What a framework's own error was raised from, in the first place."""
    while error is not None and not isinstance(error, RunNotOpen):
        error = error.__cause__ or error.__context__
    return error


def assert_verified(played: Played) -> None:
    assert played.error is None, played.error
    assert played.run is not None
    assert played.run.verdict is not None
    assert played.run.verdict.kind == "verified", played.run.verdict
    assert played.run.open_holds == 0


def assert_held(played: Played, tool: str, outcome: str) -> None:
    assert played.outcomes == [(tool, outcome)]
    assert played.run is not None
    assert played.run.open_holds == 1


def assert_stopped(played: Played, reason: str | None, *, requests: int) -> None:
    assert isinstance(played.error, RunStopped), played.error
    if reason is not None:
        assert played.error.stop.reason == reason
    assert played.requests == requests
