"""The public interface as a user's code sees it: read by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import assert_type

from guardrail import Configuration, Finding, Guard, GuardrailError, Run, RunStopped, SilentFailure, Stop, Verdict


def lookup_order(order_id: int) -> dict[str, str]:
    return {"status": f"{order_id} is paid"}


async def refund_order(order_id: int, amount: Decimal) -> bool:
    return order_id > 0 and amount > 0


async def events(order_id: int) -> AsyncIterator[str]:
    yield f"{order_id} was paid"


def a_guard_is_loaded_from_a_file_or_made_in_python() -> None:
    assert_type(Guard.load("guardrail.yaml"), Guard)
    assert_type(Guard.load(Path("guardrail.yaml")), Guard)
    assert_type(Guard(Configuration()), Guard)
    with Guard.load("guardrail.yaml", stores={"shop": "sqlite:///shop.db"}) as guard:
        assert_type(guard, Guard)
        assert_type(guard.current(), Run | None)


def a_guarded_tool_has_the_type_of_the_tool(guard: Guard) -> None:
    with guard.run("refund_order", inputs={"order_id": 17, "amount": "19.90"}) as run:
        assert_type(run, Run)
        assert_type(run.wrap(lookup_order)(17), dict[str, str])
        assert_type(guard.tool(lookup_order)(17), dict[str, str])
        run.wrap(lookup_order)("17")  # type: ignore[arg-type]


async def an_asynchronous_tool_stays_asynchronous(guard: Guard) -> None:
    async with guard.run("refund_order", inputs={"order_id": 17}) as run:
        assert_type(run, Run)
        assert_type(await run.wrap(refund_order)(17, Decimal("19.90")), bool)
        async for event in run.wrap(events)(17):
            assert_type(event, str)


def several_tools_are_wrapped_at_once_and_called_by_hand(run: Run) -> None:
    lookup, refund = run.wrap(lookup_order, refund_order)
    lookup(17)
    refund(17, Decimal(1))
    for name in run.wrap({"lookup": lookup_order, "refund": refund_order}):
        assert_type(name, str)
    run.call("lookup_order", {"order_id": 17}, lookup_order)
    run.user_turn()
    run.abandon("the user hung up")


def a_run_tells_what_it_came_to(run: Run) -> Verdict | None:
    assert_type(run.id, str)
    assert_type(run.stop, Stop | None)
    assert_type(run.verdict, Verdict | None)
    return run.verdict


def a_verdict_tells_what_is_wrong(verdict: Verdict) -> str:
    assert_type(verdict.findings, tuple[Finding, ...])
    assert_type(verdict.state_is_wrong, bool)
    if verdict.kind == "verfied":  # type: ignore[comparison-overlap]  # a misspelt kind is an error
        return "never"
    return verdict.kind


def what_leaves_a_run_says_why(guard: Guard) -> str:
    try:
        with guard.run("refund_order"):
            return "the agent ran"
    except RunStopped as stopped:
        assert_type(stopped.stop, Stop)
        return str(stopped.verdict)
    except SilentFailure as failure:
        assert_type(failure.verdict, Verdict)
        return str(failure)
    except GuardrailError as error:
        return str(error)
