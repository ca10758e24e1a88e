"""B25: the check looks at an old picture."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest

from guardrail import Configuration, Guard, Verdict
from support.shop import Guards, Shop

PAID = {"updated": "shop.orders", "key": {"id": 17}, "values": {"status": "refunded"}}
PAY: dict[str, Any] = {
    "watch": {"shop.orders": {"key": "id"}},
    "expect": [PAID],
}
TOOLS = {"pay": {"effect": "write"}}


@pytest.fixture
def wal(shop: Shop) -> Shop:
    """A shop whose readers and writers do not wait for each other."""
    shop.execute("pragma journal_mode = wal")
    return shop


class Timeline:
    """A store that tells when it is looked at, so that others act between two looks however long these take."""

    def __init__(self, shop: Shop, *between: str | Callable[[], object]) -> None:
        self._shop = shop
        self._between = list(between)
        self.looks = 0
        self.open = False

    def connect(self) -> sqlite3.Connection:
        """A new connection; before each look after the first one of the run's end, what comes next happens."""
        self.looks += self.open
        if self.looks > 1 and self._between:
            happens = self._between.pop(0)
            self._shop.execute(happens) if isinstance(happens, str) else happens()
        return sqlite3.connect(self._shop.path)


def verdict(guards: Guards, shop: Shop, task: dict[str, Any], timeline: Timeline, first: str) -> Verdict:
    """What a run comes to whose one call does `first`, and during whose verification the timeline goes on."""
    whole = guards(tools=TOOLS, tasks={"pay": task}).configuration.model_copy(update={"ledger": "memory"})
    with Guard(whole, stores={"shop": timeline.connect}) as guard, guard.run("pay") as run:
        run.call("pay", {}, lambda: shop.execute(first))
        timeline.open = True
    assert run.verdict is not None
    return run.verdict


def set_status(status: str) -> str:
    return f"update orders set status = '{status}' where id = 17"


NOTHING = "select 1"


def test_every_look_is_a_fresh_transaction_however_long_others_hold_theirs(guards: Guards, wal: Shop) -> None:
    requires = [{"store": "shop", "sql": "select status = 'paid' from orders where id = 17"}]
    guard = guards(tools={"pay": {"effect": "write", "requires": requires}}, tasks={"pay": PAY})
    with closing(sqlite3.connect(wal.path, isolation_level=None)) as old:
        old.execute("begin")
        assert old.execute("select status from orders where id = 17").fetchall() == [("paid",)]
        with guard.run("pay") as run:  # looks before the call, at the precondition, and at the end
            run.call("pay", {}, lambda: wal.execute(set_status("refunded")))
        assert old.execute("select status from orders where id = 17").fetchall() == [("paid",)]
    assert run.verdict is not None
    assert (run.verdict.kind, run.verdict.looks) == ("verified", 1)


@pytest.mark.case("B25", "check on a connection with an old snapshot")
def test_a_connection_that_keeps_its_snapshots_shows_each_look_the_present(postgres_url: str) -> None:
    tasks = {"pay": {"watch": {"shop.orders": {"key": "id"}}, "expect": [PAID]}}
    whole = {"ledger": "memory", "stores": {"shop": {"url": postgres_url}}, "tools": TOOLS, "tasks": tasks}
    with psycopg.connect(postgres_url) as kept, psycopg.connect(postgres_url, autocommit=True) as tool:
        tool.execute("create table orders (id int primary key, status text)")
        tool.execute("insert into orders values (17, 'paid')")
        kept.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        with Guard(Configuration.model_validate(whole), stores={"shop": kept}) as guard, guard.run("pay") as run:
            run.call("pay", {}, lambda: tool.execute("update orders set status = 'refunded' where id = 17"))
    assert run.verdict is not None
    assert run.verdict.kind == "verified"


@pytest.mark.case("B25", "row appears after 300 ms")
def test_a_row_that_appears_within_the_time_to_settle_is_met(guards: Guards, shop: Shop) -> None:
    late = threading.Timer(0.3, shop.execute, [set_status("refunded")])
    found = verdict(guards, shop, {**PAY, "settle": "30s"}, Timeline(shop, late.start), NOTHING)
    late.join()
    assert found.kind == "verified"
    assert found.looks > 1


@pytest.mark.case("B25", "row never appears")
def test_a_row_that_never_appears_is_missing_after_the_whole_time_to_settle(guards: Guards, shop: Shop) -> None:
    guard = guards(tools=TOOLS, tasks={"pay": {**PAY, "settle": "400ms"}})
    with guard.run("pay") as run:
        run.call("pay", {}, lambda: {"ok": True})
        started = time.monotonic()
    assert time.monotonic() - started >= 0.4
    assert run.verdict is not None
    assert [finding.kind for finding in run.verdict.findings] == ["missing_change"]


@pytest.fixture
def uncommitted(wal: Shop) -> Iterator[Callable[[], object]]:
    """A tool that says that all went well before it has committed."""
    connection = sqlite3.connect(wal.path, isolation_level=None)

    def pay() -> dict[str, bool]:
        connection.execute("begin")
        connection.execute(set_status("refunded"))
        return {"ok": True}

    yield pay
    connection.close()


@pytest.mark.case("B25", "agent has not committed yet")
def test_a_write_that_was_not_committed_is_missing_and_the_verdict_says_what_to_look_for(
    guards: Guards, uncommitted: Callable[[], object]
) -> None:
    guard = guards(tools=TOOLS, tasks={"pay": PAY})
    with guard.run("pay") as run:
        run.call("pay", {}, uncommitted)
    assert run.verdict is not None
    assert [finding.kind for finding in run.verdict.findings] == ["missing_change"]
    assert "visible to another connection" in run.verdict.because
    assert "committed" in run.verdict.because


def test_the_hint_is_given_only_where_a_write_came_out_well_and_nothing_is_seen_of_it(
    guards: Guards, shop: Shop
) -> None:
    guard = guards(tools=TOOLS, tasks={"pay": PAY})
    with guard.run("pay") as idle:
        pass
    with guard.run("pay") as wrong:
        wrong.call("pay", {}, lambda: shop.execute(set_status("lost")))
    for run in (idle, wrong):
        assert run.verdict is not None
        assert (run.verdict.kind, run.verdict.because) == ("silent_failure", "")


@pytest.mark.case("B25", "wrong value at first, right later")
def test_a_value_that_becomes_right_is_met(guards: Guards, shop: Shop) -> None:
    timeline = Timeline(shop, NOTHING, set_status("refunded"))
    found = verdict(guards, shop, {**PAY, "settle": "30s"}, timeline, NOTHING)
    assert (found.kind, found.looks) == ("verified", 3)


@pytest.mark.case("B25", "right at first, wrong later")
def test_a_value_that_is_right_is_met_at_the_first_look(guards: Guards, shop: Shop) -> None:
    timeline = Timeline(shop, set_status("open"))
    found = verdict(guards, shop, {**PAY, "settle": "30s"}, timeline, set_status("refunded"))
    assert (found.kind, found.looks, timeline.looks) == ("verified", 1, 1)


@pytest.mark.case("B25", "no-change expectation")
def test_that_nothing_else_changed_is_not_waited_for(guards: Guards, shop: Shop) -> None:
    collateral = "update orders set note = 'oops' where id = 18"
    undo = "update orders set note = null where id = 18"
    nothing = {**PAY, "expect": "nothing", "settle": "30s"}
    found = verdict(guards, shop, nothing, Timeline(shop, undo), collateral)
    assert (found.kind, found.looks) == ("silent_failure", 1)

    shop.execute(undo)
    # Where something is waited for, what else changed is told by the look after that.
    settling = {**PAY, "settle": "30s"}
    timeline = Timeline(shop, NOTHING, f"{set_status('refunded')}", collateral)
    assert verdict(guards, shop, settling, timeline, NOTHING).kind == "verified"
    shop.execute(set_status("paid"))
    timeline = Timeline(shop, collateral, set_status("refunded"), undo)
    found = verdict(guards, shop, settling, timeline, NOTHING)
    assert [(finding.kind, finding.column) for finding in found.findings] == [("unrequested_change", "note")]
    assert found.looks == 3


@pytest.mark.case("B25", "check endpoint down")
@pytest.mark.parametrize("task", [PAY, {"checks": [{"store": "shop", "sql": "select count(*) = 2 from orders"}]}])
def test_a_store_that_is_down_makes_a_check_error_and_is_never_met(
    guards: Guards, shop: Shop, task: dict[str, Any]
) -> None:
    down = threading.Event()

    def connect() -> sqlite3.Connection:
        if down.is_set():
            raise ConnectionError("nobody listens at db.test")
        return sqlite3.connect(shop.path)

    whole = {**guards(tools=TOOLS, tasks={"pay": task}).configuration.model_dump(by_alias=True), "ledger": "memory"}
    with Guard(Configuration.model_validate(whole), stores={"shop": connect}) as guard, guard.run("pay") as run:
        run.call("pay", {}, lambda: shop.execute(set_status("refunded")))
        down.set()
    assert run.verdict is not None
    assert run.verdict.kind == "unverified"
    assert {finding.kind for finding in run.verdict.findings} == {"check_error"}
    assert "nobody listens at db.test" in run.verdict.because
