"""Runs whose state is in an HTTP API, alone and beside a database: contracts, checks and preconditions."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from guardrail import CallRefused, Configuration, Guard, RunStopped, State, Verdict
from guardrail.run.looking import look_now
from support.apis import Asked, Crm, Reply
from support.shop import Guards, Shop

TICKETS: dict[str, Any] = {"get": "/customers/:customer_id/tickets", "rows": "/items", "key": "id"}
INPUTS = {"customer_id": 3, "ticket_id": 7}
CLOSE: dict[str, Any] = {
    "inputs": {"customer_id": "integer", "ticket_id": "integer"},
    "watch": {"crm.tickets": {"ignore": ["updated_at"]}},
    "expect": [{"updated": "crm.tickets", "key": {"id": "$ticket_id"}, "values": {"state": "closed"}}],
}


class Guarding(Protocol):
    """Makes a guard around the ticket system: of a task, a tool and a store what differs from the usual."""

    def __call__(
        self, task: dict[str, Any] | None = None, *, tool: dict[str, Any] | None = None, **store: Any
    ) -> Guard: ...


class Judging(Protocol):
    """Runs an agent: what the run comes to."""

    def __call__(
        self, guard: Guard, agent: Callable[[Any], object], inputs: dict[str, object] | None = None
    ) -> Verdict: ...


@pytest.fixture
def crm() -> Iterator[Crm]:
    made = Crm()
    yield made
    made.close()


@pytest.fixture
def guarded(crm: Crm, tmp_path: Path) -> Iterator[Guarding]:
    """Makes guards around the ticket system."""
    made: list[Guard] = []

    def make(task: dict[str, Any] | None = None, *, tool: dict[str, Any] | None = None, **store: Any) -> Guard:
        declared = {"url": crm.base, "private": True, "resources": {"tickets": TICKETS}, **store}
        tools = {"close_ticket": {"effect": "write", **(tool or {})}, "open_ticket": {"effect": "write"}}
        whole = {"ledger": str(tmp_path / "ledger.db"), "stores": {"crm": declared}, "tools": tools}
        made.append(Guard(Configuration.model_validate({**whole, "tasks": {"task": task or CLOSE}})))
        return made[-1]

    yield make
    for guard in made:
        guard.close()


@pytest.fixture(params=["blocking", "awaiting"])
def judged(request: pytest.FixtureRequest) -> Judging:
    """Runs an agent in both of the ways in which it may be run: what the run comes to."""

    def run(guard: Guard, agent: Callable[[Any], object], inputs: dict[str, object] | None = None) -> Verdict:
        guarded_run = guard.run("task", inputs=INPUTS if inputs is None else inputs)
        if request.param == "blocking":
            with guarded_run:
                agent(guarded_run)
        else:

            async def live() -> None:
                async with guarded_run:
                    agent(guarded_run)

            asyncio.run(live())
        assert guarded_run.verdict is not None
        return guarded_run.verdict

    return run


def told(verdict: Verdict) -> list[tuple[str, str | None]]:
    return [(finding.kind, finding.column) for finding in verdict.findings]


def test_a_run_that_did_what_it_must_in_an_api_is_verified(crm: Crm, guarded: Guarding, judged: Judging) -> None:
    verdict = judged(guarded(), lambda run: run.wrap(crm.close_ticket)(7))
    assert verdict.kind == "verified"


DEEDS: list[tuple[Callable[[Crm], object], list[tuple[str, str | None]]]] = [
    (lambda crm: None, [("missing_change", "state")]),
    (lambda crm: crm.close_ticket(8), [("missing_change", "state"), ("unrequested_change", "state")]),
    (lambda crm: crm.tickets[7].update(state="pending"), [("wrong_value", "state")]),
    (lambda crm: crm.tickets.pop(7), [("missing_change", None), ("unrequested_change", None)]),
    (lambda crm: crm.tickets[7].update(state="closed", hours=2), [("unrequested_change", "hours")]),
    (lambda crm: crm.tickets[7].update(state="closed", new="x"), [("unrequested_change", "new")]),
    (
        lambda crm: crm.tickets[7].update(state="closed", tags=["b", "a"]),
        [("unrequested_change", "tags/0"), ("unrequested_change", "tags/1")],
    ),
    (lambda crm: (crm.close_ticket(7), crm.open_ticket(3, "x")), [("unrequested_change", None)]),
    (lambda crm: (crm.close_ticket(7), crm.tickets.pop(8)), [("unrequested_change", None)]),
    # None of these is a change: a value in another form, a null that is left out, an ignored column.
    (lambda crm: crm.tickets[7].update(state="closed", hours=1.50), []),
    (lambda crm: (crm.close_ticket(7), crm.tickets[7].pop("note")), []),
    (lambda crm: crm.tickets[7].update(state="closed", updated_at="now"), []),
]
"""What may be done to the tickets, and the findings that it makes: their kinds and columns."""


@pytest.mark.parametrize(("deed", "findings"), DEEDS)
@pytest.mark.parametrize("whole_rows", [10_000, 0])
def test_what_changed_in_a_resource_is_held_against_the_contract(
    crm: Crm, guarded: Guarding, deed: Callable[[Crm], object], findings: Any, whole_rows: int
) -> None:
    watch = {"crm.tickets": {"ignore": ["updated_at"], "whole_rows": whole_rows}}
    with guarded({**CLOSE, "watch": watch}).run("task", inputs=INPUTS) as run:
        deed(crm)
    assert run.verdict is not None
    if whole_rows == 0:
        # Of rows that the contract does not name, only hashes are kept: which column changed is not known.
        findings = [
            (kind, None if kind == "unrequested_change" and column == "state" else column) for kind, column in findings
        ]
    assert sorted(told(run.verdict), key=str) == sorted(findings, key=str)


def test_what_is_inserted_into_an_empty_resource_is_found_by_its_content(
    crm: Crm, guarded: Guarding, judged: Judging
) -> None:
    crm.tickets.clear()
    values: dict[str, Any] = {"id": {"generated": True}, "title": "help", "state": "open", "note": None}
    task: dict[str, Any] = {
        "inputs": {"customer_id": "integer"},
        "expect": [{"inserted": "crm.tickets", "values": values}],
        "watch": {"crm.tickets": {}},
    }
    verdict = judged(guarded(task), lambda run: run.wrap(crm.open_ticket)(3, "help"), {"customer_id": 3})
    assert verdict.kind == "verified"
    crm.tickets.clear()
    verdict = judged(guarded(task), lambda run: run.wrap(crm.open_ticket)(3, "other"), {"customer_id": 3})
    assert verdict.kind == "silent_failure"


def test_what_is_deleted_may_leave_nothing_behind(crm: Crm, guarded: Guarding, judged: Judging) -> None:
    resources = {"ticket": {"get": "/tickets/:ticket_id", "key": "id"}}
    task: dict[str, Any] = {
        "inputs": {"ticket_id": "integer"},
        "watch": {"crm.ticket": {}},
        "expect": [{"deleted": "crm.ticket", "key": {"id": "$ticket_id"}}],
    }
    guard = guarded(task, resources=resources)
    assert judged(guard, lambda run: crm.tickets.pop(7), {"ticket_id": 7}).kind == "verified"
    assert told(judged(guard, lambda run: None, {"ticket_id": 8})) == [("missing_change", None)]


def test_a_column_that_no_row_has_is_null(crm: Crm, guarded: Guarding) -> None:
    task = {**CLOSE, "expect": [{"updated": "crm.tickets", "key": {"id": 7}, "values": {"closed_by": "me"}}]}
    with guarded(task).run("task", inputs=INPUTS) as run:
        pass
    assert run.verdict is not None
    [finding] = run.verdict.findings
    assert (finding.kind, finding.column, finding.expected, finding.actual) == (
        "missing_change",
        "closed_by",
        "me",
        None,
    )


def test_a_path_that_was_not_there_before_nor_after_is_what_the_verdict_asks_of(
    crm: Crm, guarded: Guarding, judged: Judging
) -> None:
    said = (
        "crm.tickets: it answered 404 before and after the run, so nothing of it could have changed; is its path right?"
    )
    guard = guarded(resources={"tickets": {**TICKETS, "get": "/customer/:customer_id/tickets"}})
    agents: list[Callable[[Any], object]] = [lambda run: run.wrap(crm.close_ticket)(7), lambda run: None]
    for agent in agents:
        verdict = judged(guard, agent)
        assert (verdict.kind, verdict.because) == ("silent_failure", said)
        assert str(verdict).startswith(f"silent_failure: {said}; crm.tickets ")


def test_a_write_that_the_api_does_not_show_is_asked_for_in_the_words_of_an_api(
    crm: Crm, guarded: Guarding, judged: Judging
) -> None:
    verdict = judged(guarded(), lambda run: run.call("close_ticket", {}, lambda: {"closed": 7}))
    assert verdict.kind == "silent_failure"
    assert "the API answers as it did before: did the write go to this API" in str(verdict)
    assert "connection" not in verdict.because


@pytest.mark.parametrize(
    ("beside", "kind", "said"),
    [
        ({"has_more": True}, "unverified", "crm.tickets could not be looked at: it has more pages (/has_more says so)"),
        ({"total": 2}, "verified", None),
        ({"total": 1_234}, "verified", "crm.tickets: it says that there are 1,234, and 2 rows were read"),
    ],
)
def test_rows_of_which_an_api_says_that_they_are_not_all_are_told_of(
    crm: Crm, guarded: Guarding, judged: Judging, beside: dict[str, object], kind: str, said: str | None
) -> None:
    crm.replies["/api/customers/3/tickets"] = lambda asked: Reply({"items": list(crm.tickets.values()), **beside})
    verdict = judged(guarded(), lambda run: run.wrap(crm.close_ticket)(7))
    assert verdict.kind == kind
    assert [(f.kind, f.warning) for f in verdict.findings] == ([("check_error", kind == "verified")] if said else [])
    assert all(said is not None and said in finding.text for finding in verdict.findings)


def test_a_task_that_names_no_watch_watches_every_resource(crm: Crm, guarded: Guarding) -> None:
    task: dict[str, Any] = {"inputs": {"customer_id": "integer"}, "expect": "nothing"}
    for deed, kind in ((lambda: None, "verified"), (lambda: crm.close_ticket(8), "silent_failure")):
        with guarded(task).run("task", inputs={"customer_id": 3}) as run:
            deed()
        assert run.verdict is not None
        assert run.verdict.kind == kind


def test_more_rows_than_a_watch_allows_is_no_picture(crm: Crm, guarded: Guarding) -> None:
    with guarded({**CLOSE, "watch": {"crm.tickets": {"most_rows": 1}}}).run("task", inputs=INPUTS) as run:
        crm.close_ticket(7)
    assert run.verdict is not None
    assert run.verdict.kind == "unverified"


def checked(**check: Any) -> dict[str, Any]:
    return {
        "inputs": {"customer_id": "integer", "ticket_id": "integer"},
        "checks": [{"store": "crm", "get": "/tickets/:ticket_id", "name": "the check", "because": "so it is", **check}],
    }


@pytest.mark.parametrize(
    "check",
    [
        {"at": "/state", "equals": "open"},
        {"at": "/hours", "equals": 1.5},
        {"at": "/hours", "equals": "1.50"},
        {"at": "/id", "equals": "$ticket_id"},
        {"at": "/customer_id", "equals": "$customer_id"},
        {"at": "/tags", "equals": {"unordered": ["b", "a"]}},
        {"at": "/tags", "equals": ["a", "b"]},
        {"at": "/hours", "equals": {"at_least": 1}},
        {"at": "/state", "equals": {"in": ["open", "pending"]}},
        {"at": "/state", "equals": {"not": "closed"}},
        {"at": "/note", "equals": None},
        {"at": "/note", "exists": False},
        {"at": "/nothing", "exists": False},
        {"get": "/tickets/9", "exists": False},
        {"get": "/tickets/9", "at": "/state", "exists": False},
        {"at": "/state"},
        {"at": ""},
        {"equals": {"json": {"/state": "open"}, "rest": "any"}},
        {"get": "/tickets", "query": {"state": "open"}, "at": "/1/id", "equals": 8},
    ],
)
def test_a_value_of_an_api_that_is_as_it_must_be_passes(
    crm: Crm, guarded: Guarding, judged: Judging, check: dict[str, Any]
) -> None:
    assert judged(guarded(checked(**check)), lambda run: None).kind == "verified"


@pytest.mark.parametrize(
    ("check", "text"),
    [
        ({"at": "/state", "equals": "closed"}, "the check: answered 'open', expected 'closed' (so it is)"),
        ({"at": "/hours", "equals": 2}, "the check: answered 1.5, expected 2 (so it is)"),
        ({"at": "/customer_id", "equals": "$ticket_id"}, "the check: answered 3, expected 7 (so it is)"),
        (
            {"at": "/state", "exists": False},
            "there is something at /tickets/:ticket_id /state, and there must be nothing",
        ),
        ({"at": "/note"}, "the check: answered NULL, expected any value but NULL (so it is)"),
        ({"at": "/nothing"}, "there is nothing at /tickets/:ticket_id /nothing"),
        ({"at": "/nothing", "equals": None}, "there is nothing at /tickets/:ticket_id /nothing"),
        ({"get": "/tickets/9", "at": "/state", "equals": "open"}, "there is nothing at /tickets/9 /state"),
        ({"get": "/tickets/9"}, "there is nothing at /tickets/9"),
        ({"get": "/tickets/9", "at": "/state", "equals": {"not": "open"}}, "there is nothing at /tickets/9 /state"),
        ({"get": "/tickets/9", "at": "/state", "equals": {"any": True}}, "there is nothing at /tickets/9 /state"),
    ],
)
def test_a_value_of_an_api_that_is_not_as_it_must_be_fails(
    crm: Crm, guarded: Guarding, judged: Judging, check: dict[str, Any], text: str
) -> None:
    verdict = judged(guarded(checked(**check)), lambda run: None)
    assert (verdict.kind, [finding.kind for finding in verdict.findings]) == ("silent_failure", ["check_failed"])
    assert text in verdict.findings[0].text


@pytest.mark.parametrize("reply", [Reply({}, 401), Reply({}, 403), Reply({}, 500), Reply(b"<html>")])
def test_a_value_that_cannot_be_read_is_never_a_pass(
    crm: Crm, guarded: Guarding, judged: Judging, reply: Reply
) -> None:
    crm.replies["/api/tickets/7"] = reply
    for check in ({"at": "/state", "equals": "open"}, {"exists": False}):
        verdict = judged(guarded(checked(**check)), lambda run: None)
        assert (verdict.kind, [finding.kind for finding in verdict.findings]) == ("unverified", ["check_error"])


def test_a_resource_that_cannot_be_read_is_never_unchanged(crm: Crm, guarded: Guarding, judged: Judging) -> None:
    guard = guarded({**CLOSE, "expect": "nothing"})
    crm.replies["/api/customers/3/tickets"] = Reply({}, 403)
    assert judged(guard, lambda run: None).kind == "unverified"


def test_the_value_of_a_secret_field_is_in_no_finding(crm: Crm, guarded: Guarding) -> None:
    crm.tickets[7]["api_key"] = "s3cret-one"
    with guarded(checked(at="/api_key", equals="s3cret-two")).run("task", inputs=INPUTS) as run:
        pass
    assert run.verdict is not None
    assert [finding.kind for finding in run.verdict.findings] == ["check_failed"]
    assert "s3cret" not in repr(run.verdict.findings)


REQUIRED = {"store": "crm", "get": "/tickets/:ticket_id", "at": "/state", "because": "only an open ticket"}


@pytest.mark.parametrize(
    ("requirement", "runs"),
    [
        ({"equals": "open"}, True),
        ({"equals": {"in": ["open", "pending"]}}, True),
        ({"at": "/id", "equals": "$ticket_id"}, True),
        ({"at": "/customer_id", "equals": "$customer_id"}, True),
        ({}, True),
        ({"equals": "closed"}, False),
        ({"exists": False}, False),
        ({"at": "/nothing"}, False),
        ({"at": "/customer_id", "equals": "$ticket_id"}, False),
        ({"get": "/tickets/9"}, False),
        ({"get": "/tickets/9", "exists": False}, True),
    ],
)
def test_a_value_of_an_api_may_be_required_before_a_tool_runs(
    crm: Crm, guarded: Guarding, judged: Judging, requirement: dict[str, Any], runs: bool
) -> None:
    calls: list[int] = []

    def close_ticket(ticket_id: int) -> str:
        calls.append(ticket_id)
        return "closed"

    def agent(run: Any) -> None:
        if runs:
            run.wrap(close_ticket)(7)
        else:
            with pytest.raises(CallRefused, match="only an open ticket"):
                run.wrap(close_ticket)(7)

    judged(guarded(tool={"requires": [{**REQUIRED, **requirement}]}), agent)
    assert calls == ([7] if runs else [])


async def test_a_requirement_is_read_by_awaiting_where_the_tool_is_awaited(crm: Crm, guarded: Guarding) -> None:
    async def close_ticket(ticket_id: int) -> object:
        return crm.close_ticket(ticket_id)

    async with guarded(tool={"requires": [{**REQUIRED, "equals": "open"}]}).run("task", inputs=INPUTS) as run:
        close = run.wrap(close_ticket)
        await close(7)
        with pytest.raises(CallRefused, match="only an open ticket"):
            await close(7)


@pytest.mark.parametrize("ticket_id", ["7/../8", "..", "7/comments", "a" * 2000])
def test_a_model_cannot_lead_a_requirement_elsewhere_by_an_argument(
    crm: Crm, guarded: Guarding, ticket_id: str
) -> None:
    with pytest.raises(RunStopped) as caught, guarded(tool={"requires": [{**REQUIRED, "equals": "open"}]}).run() as run:
        run.wrap(crm.close_ticket)(ticket_id)  # type: ignore[arg-type]
    assert caught.value.stop.reason == "guard_error"
    assert crm.asked == []


def test_a_requirement_that_cannot_be_decided_stops_the_run(crm: Crm, guarded: Guarding) -> None:
    crm.replies["/api/tickets/7"] = Reply({}, 403)
    with pytest.raises(RunStopped) as caught, guarded(tool={"requires": [{**REQUIRED, "equals": "open"}]}).run() as run:
        run.wrap(crm.close_ticket)(7)
    assert caught.value.stop.reason == "guard_error"
    assert crm.tickets[7]["state"] == "open"


def test_a_requirement_whose_argument_is_missing_refuses_the_call(crm: Crm, guarded: Guarding) -> None:
    requirement = {**REQUIRED, "get": "/tickets/:number", "equals": "open"}
    with guarded(tool={"requires": [requirement]}).run() as run, pytest.raises(CallRefused, match="number is missing"):
        run.wrap(crm.close_ticket)(7)


def test_one_contract_holds_over_a_database_and_an_api(crm: Crm, shop: Shop, guards: Guards, judged: Judging) -> None:
    both: dict[str, Any] = {
        "inputs": {"order_id": "integer", "customer_id": "integer"},
        "let": {"due": {"store": "shop", "rows": "select amount from orders where id = :order_id"}},
        "watch": {
            "shop.orders": {"key": "id", "ignore": ["updated_at"]},
            "shop.refunds": {"key": "id"},
            "crm.tickets": {},
        },
        "expect": [
            {"updated": "shop.orders", "key": {"id": "$order_id"}, "values": {"status": "refunded"}},
            {"inserted": "shop.refunds", "as": "refund", "values": {"order_id": "$order_id", "amount": "$due.amount"}},
            {"inserted": "crm.tickets", "values": {"title": "refunded", "customer_id": "$customer_id"}},
        ],
        "checks": [
            {"store": "shop", "sql": "select count(*) = 1 from refunds"},
            {"store": "crm", "get": "/tickets/9", "at": "/state", "equals": "open"},
        ],
    }
    stores: dict[str, Any] = {
        "shop": {"url": shop.url},
        "crm": {"url": crm.base, "private": True, "resources": {"tickets": TICKETS}},
    }
    paid = {"store": "shop", "sql": "select status = 'paid' from orders where id = :order_id"}
    waiting = {"store": "crm", "get": "/tickets/7", "at": "/state", "equals": "open"}
    tools = {"refund_order": {"effect": "write", "requires": [waiting, paid]}, "open_ticket": {"effect": "write"}}
    guard = guards(stores=stores, tools=tools, tasks={"task": both})

    def agent(run: Any) -> None:
        refund, open_ticket = run.wrap(shop.refund_order, crm.open_ticket)
        refund(17, "19.90")
        open_ticket(3, "refunded")

    assert judged(guard, agent, {"order_id": 17, "customer_id": 3}).kind == "verified"
    verdict = judged(guard, lambda run: run.wrap(shop.refund_order)(18, "5.00"), {"order_id": 18, "customer_id": 3})
    places = {finding.place for finding in verdict.findings}
    assert verdict.kind == "silent_failure"
    assert places == {"crm.tickets", "check 1"}


def failing(times: int, reply: Reply, crm: Crm, path: str) -> None:
    """Let the server answer so at first, and then as before."""
    left, then = iter(range(times)), crm.replies[path]
    assert callable(then)
    crm.replies[path] = lambda asked: reply if next(left, None) is not None else then(asked)


def test_what_cannot_be_looked_at_for_a_moment_is_looked_at_again_while_the_state_settles(
    crm: Crm, guarded: Guarding, judged: Judging
) -> None:
    check = checked(at="/state", equals="closed")["checks"]
    guard = guarded({**CLOSE, "checks": check, "settle": "20s"})

    def agent(run: Any) -> None:
        run.wrap(crm.close_ticket)(7)
        # None of these is tried again within a look.
        failing(1, Reply({}, 500), crm, "/api/customers/3/tickets")
        failing(2, Reply({}, 403), crm, "/api/tickets/7")

    verdict = judged(guard, agent)
    assert (verdict.kind, verdict.looks) == ("verified", 3)


def test_a_check_that_comes_true_a_moment_later_is_waited_for(crm: Crm, guarded: Guarding) -> None:
    failing(2, Reply(dict(crm.tickets[7])), crm, "/api/tickets/7")
    task = {**checked(at="/state", equals="closed"), "settle": "20s"}
    with guarded(task).run("task", inputs=INPUTS) as run:
        crm.close_ticket(7)
    assert run.verdict is not None
    assert (run.verdict.kind, run.verdict.looks) == ("verified", 3)


def test_where_the_api_is_may_be_said_for_a_run(crm: Crm, guarded: Guarding) -> None:
    guard = guarded(url="http://127.0.0.1:1/never", timeout="2s")
    tokens = iter(range(100))

    def place() -> dict[str, object]:
        return {"url": crm.base, "headers": {"Authorization": f"Bearer {next(tokens)}"}}

    for where in (crm.base, {"url": crm.base}, place):
        crm.tickets[7]["state"] = "open"
        with guard.run("task", inputs=INPUTS, stores={"crm": where}) as run:
            crm.close_ticket(7)
        assert run.verdict is not None
        assert run.verdict.kind == "verified"
    assert [asked.headers.get("authorization") for asked in crm.asked[-2:]] == ["Bearer 0", "Bearer 1"]


def test_a_guard_lives_across_loops_and_threads(crm: Crm, guarded: Guarding) -> None:
    guard = guarded({**CLOSE, "expect": "nothing"})
    verdicts: list[Verdict | None] = []

    async def many() -> None:
        async def one() -> None:
            async with guard.run("task", inputs=INPUTS) as run:
                await asyncio.sleep(0)
            verdicts.append(run.verdict)

        await asyncio.gather(*(one() for _ in range(5)))

    def blocking() -> None:
        with guard.run("task", inputs=INPUTS) as run:
            pass
        verdicts.append(run.verdict)

    threads = [threading.Thread(target=asyncio.run, args=(many(),)) for _ in range(2)]
    threads += [threading.Thread(target=blocking) for _ in range(2)]
    asyncio.run(many())
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asyncio.run(many())
    assert [verdict.kind for verdict in verdicts if verdict] == ["verified"] * 22


async def test_while_an_api_is_slow_the_loop_goes_on(crm: Crm, guarded: Guarding) -> None:
    def slow(asked: Asked) -> Reply:
        time.sleep(0.3)
        return Reply({"items": []})

    crm.replies["/api/customers/3/tickets"] = slow
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    async with guarded({**CLOSE, "expect": "nothing"}).run("task", inputs=INPUTS) as run:
        assert ticks >= 5
    ticking.cancel()
    assert run.verdict is not None
    assert run.verdict.kind == "verified"


async def test_a_run_that_is_cancelled_while_it_looks_leaves_no_connection_behind(crm: Crm, guarded: Guarding) -> None:
    reached = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hang(asked: Asked) -> Reply:
        loop.call_soon_threadsafe(reached.set)
        crm.released.wait(30)
        return Reply({"items": []})

    crm.replies["/api/customers/3/tickets"] = hang

    async def live() -> None:
        async with guarded().run("task", inputs=INPUTS):
            pass

    task = asyncio.create_task(live())
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


CUT_OFF = """
import os, signal, sys
from guardrail import Guard
guard = Guard.load(sys.argv[1])
guard.run("task", inputs={"customer_id": 3, "ticket_id": 7}, id="cut-off").__enter__()
guard.ledger.close()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_run_that_was_cut_off_is_judged_from_the_picture_that_was_kept(crm: Crm, tmp_path: Path) -> None:
    crm.tickets[7]["token"] = "s3cret"
    declared = {"url": crm.base, "private": True, "resources": {"tickets": TICKETS}}
    file = tmp_path / "guardrail.yaml"
    file.write_text(json.dumps({"stores": {"crm": declared}, "tasks": {"task": CLOSE}}))
    assert subprocess.run([sys.executable, "-c", CUT_OFF, str(file)]).returncode == -signal.SIGKILL
    assert b"s3cret" not in (tmp_path / "guardrail.db").read_bytes()
    crm.close_ticket(7)
    crm.tickets[8]["priority"] = 1
    with Guard.load(file) as guard, guard.run(id="cut-off", inputs=INPUTS) as run:
        pass
    assert run.verdict is not None
    assert told(run.verdict) == [("unrequested_change", "priority")]


def all_open(state: State) -> bool | str:
    first = state.value("crm", "/tickets/:id", "/state", id=7)
    return first == "open" and state.value("crm", "/tickets/9") is None


def sql_of_an_api(state: State) -> bool:
    return bool(state.rows("crm", "select 1"))


def value_of_a_database(state: State) -> bool:
    return state.value("nowhere", "/") is None


@pytest.mark.parametrize(
    ("function", "kind", "text"),
    [
        (all_open, "verified", ""),
        (sql_of_an_api, "unverified", "crm is an HTTP store, which takes no SQL"),
        (value_of_a_database, "unverified", "there is no store nowhere"),
    ],
)
def test_a_check_in_python_may_read_values_of_an_api(
    crm: Crm, guarded: Guarding, judged: Judging, function: Any, kind: str, text: str
) -> None:
    verdict = judged(guarded({"checks": [{"python": function}]}), lambda run: None, {})
    assert verdict.kind == kind
    assert text in "".join(finding.text for finding in verdict.findings)


def test_a_look_by_hand_judges_what_can_be_told_from_the_end_alone(crm: Crm, guarded: Guarding) -> None:
    guard = guarded({**CLOSE, "checks": checked(at="/state", equals="open")["checks"]})
    verdict = look_now(guard._live, "task", INPUTS)  # pyright: ignore[reportPrivateUsage]
    kinds = {finding.kind for finding in verdict.findings}
    assert (verdict.kind, kinds) == ("silent_failure", {"check_error", "missing_change"})
