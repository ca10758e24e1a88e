"""B15: others write at the same time.

What changed is found and named here; who changed it is the matter of attribution, which comes later.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from guardrail import Run
from support.shop import Guards, Shop

TICKETS = (
    "create table tickets (id integer primary key, owner text, updated_at timestamp, sla_due timestamp, n integer)"
)
OWNER = {"updated": "shop.tickets", "key": {"id": "$id"}, "values": {"owner": "$owner"}}


@pytest.fixture
def desk(shop: Shop) -> Shop:
    shop.execute(TICKETS)
    for ticket in (4, 9):
        shop.execute("insert into tickets values (?, 'lee', '2026-11-30 09:00:00', null, 5)", ticket)
    return shop


def own(shop: Shop, ticket: int, owner: str) -> Callable[[], object]:
    def set_owner() -> object:
        shop.execute("update tickets set owner = ? where id = ?", owner, ticket)
        return {"owner": owner}

    return set_owner


def sync(shop: Shop) -> None:
    """What another program writes meanwhile."""
    shop.execute("update tickets set updated_at = '2026-11-30 10:00:05' where id = 4")
    shop.execute("update tickets set sla_due = '2026-12-02 00:00:00' where id = 9")


def steal(shop: Shop) -> None:
    """What another person does meanwhile."""
    shop.execute("update tickets set owner = 'lea' where id = 4")


def task(watch: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    inputs = {"id": "integer", "owner": "text"}
    return {"inputs": inputs, "watch": {"shop.tickets": {"key": "id", **(watch or {})}}, "expect": [OWNER], **more}


def run_of(guards: Guards, shop: Shop, declared: dict[str, Any], meanwhile: Callable[[Shop], None]) -> Run:
    guard = guards(policy="strict", tools={"set_owner": {"effect": "write"}}, tasks={"own": declared})
    with guard.run("own", inputs={"id": 4, "owner": "kim"}) as run:
        run.wrap(own(shop, 4, "kim"))()
        meanwhile(shop)
    return run


def told(run: Run) -> tuple[str, list[tuple[object, str | None, bool]]]:
    assert run.verdict is not None
    found = [(finding.key.get("id"), finding.column, finding.warning) for finding in run.verdict.findings]
    return run.verdict.kind, found


@pytest.mark.case("B15", "agent's column right, a sync touched time stamps")
def test_columns_that_a_sync_may_touch_are_declared(guards: Guards, desk: Shop) -> None:
    allow = [{"updated": "shop.tickets", "columns": ["updated_at", "sla_due"]}]
    assert told(run_of(guards, desk, task(allow=allow), sync)) == ("verified", [])


@pytest.mark.case("B15", "same, nothing allowed")
def test_what_a_sync_touched_is_found_where_nothing_is_allowed(guards: Guards, desk: Shop) -> None:
    found = [(4, "updated_at", False), (9, "sla_due", False)]
    assert told(run_of(guards, desk, task(), sync)) == ("silent_failure", found)


def test_in_a_table_that_is_declared_as_shared_it_is_shown_and_not_counted(guards: Guards, desk: Shop) -> None:
    found = [(4, "updated_at", True), (9, "sla_due", True)]
    assert told(run_of(guards, desk, task({"shared": True}), sync)) == ("verified", found)


@pytest.mark.case("B15", "overwritten by another actor after the agent's good write")
def test_a_value_that_another_overwrote_is_wrong_even_in_a_shared_table(guards: Guards, desk: Shop) -> None:
    run = run_of(guards, desk, task({"shared": True}), steal)
    assert told(run) == ("silent_failure", [(4, "owner", False)])
    assert run.verdict is not None
    assert [finding.kind for finding in run.verdict.findings] == ["wrong_value"]


@pytest.mark.case("B15", "two guarded runs at once on different rows")
def test_two_runs_at_once_see_each_its_own_rows(guards: Guards, desk: Shop) -> None:
    guard = guards(
        policy="strict", tools={"set_owner": {"effect": "write"}}, tasks={"own": task({"where": "id = :id"})}
    )
    written = threading.Barrier(2, timeout=10)
    runs: dict[int, Run] = {}

    def agent(ticket: int, owner: str) -> None:
        with guard.run("own", inputs={"id": ticket, "owner": owner}) as run:
            run.wrap(own(desk, ticket, owner))()
            written.wait()
        runs[ticket] = run

    threads = [threading.Thread(target=agent, args=args) for args in ((4, "kim"), (9, "ann"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {ticket: told(run) for ticket, run in runs.items()} == {4: ("verified", []), 9: ("verified", [])}


@pytest.mark.case("B15", "increment by the database")
@pytest.mark.parametrize(
    ("expected", "verdict"), [({"increased_by": {"at_least": 1}}, "verified"), (6, "silent_failure")]
)
def test_an_increment_that_others_make_too_needs_a_relative_expectation(
    guards: Guards, desk: Shop, expected: object, verdict: str
) -> None:
    expect = [{"updated": "shop.tickets", "key": {"id": 4}, "values": {"owner": "kim", "n": expected}}]

    def both(shop: Shop) -> None:
        for _ in range(2):
            shop.execute("update tickets set n = n + 1 where id = 4")

    assert told(run_of(guards, desk, task(expect=expect), both))[0] == verdict
