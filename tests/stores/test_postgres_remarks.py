"""What `doctor` and the verdict tell of a PostgreSQL store: what its role may do, and what is hidden from it."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import psycopg
import pytest

from guardrail import Configuration, Guard, Verdict
from guardrail.stores.opening import open_store
from support.postgres_looks import execute, role, shop

Admin = psycopg.Connection[Any]


@pytest.fixture(autouse=True)
def tables(admin: Admin) -> None:
    execute(
        admin,
        "CREATE TABLE orders (id int PRIMARY KEY, tenant text NOT NULL, status text);"
        "INSERT INTO orders VALUES (1, 'ours', 'open'), (2, 'theirs', 'open')",
    )


def remarks(url: object) -> list[tuple[str, str, str]]:
    with closing(shop(url)) as store:
        return [(remark.level, remark.place, remark.text) for remark in store.examine()]


def test_a_role_that_may_only_read_is_fine(admin: Admin, postgres_url: str) -> None:
    with role(admin, postgres_url, "SELECT ON orders") as url:
        assert remarks(url) == []


def test_a_role_that_could_write_is_told(admin: Admin, postgres_url: str) -> None:
    with role(admin, postgres_url, "SELECT, UPDATE ON orders") as url:
        [(level, place, text)] = remarks(url)
    assert (level, place) == ("warning", "shop")
    assert "may write orders: give it one that may only SELECT" in text


def test_a_superuser_is_told(postgres_url: str) -> None:
    assert [text.partition(",")[0] for _, _, text in remarks(postgres_url)] == ["its role root is a superuser"]


def test_a_table_that_may_not_be_read_and_one_without_a_key_are_told(admin: Admin, postgres_url: str) -> None:
    execute(admin, "CREATE TABLE heap (a int); CREATE TABLE closed (id int PRIMARY KEY)")
    with role(admin, postgres_url, "SELECT ON orders", "SELECT ON heap") as url:
        found = remarks(url)
    assert [(level, place) for level, place, _ in found] == [("warning", "shop"), ("warning", "shop.heap")]
    assert "may not read closed" in found[0][2]
    assert found[1][2] == "nothing tells its rows apart; declare a key"


def test_an_empty_schema_and_a_server_that_is_away_are_told(admin: Admin, postgres_url: str) -> None:
    execute(admin, "DROP TABLE orders")
    assert ("warning", "shop", "it has no tables on its search path; is it the right database?") in remarks(
        postgres_url
    )
    [(level, place, text)] = remarks("postgresql://root@127.0.0.1:9/test")
    assert (level, place) == ("error", "shop")
    assert "cannot be reached" in text


# Rows that a role may not see.


def hide(admin: Admin) -> None:
    execute(
        admin,
        "ALTER TABLE orders ENABLE ROW LEVEL SECURITY;CREATE POLICY ours ON orders FOR SELECT USING (tenant = 'ours')",
    )


def test_hidden_rows_are_told_by_doctor(admin: Admin, postgres_url: str) -> None:
    hide(admin)
    with role(admin, postgres_url, "SELECT ON orders") as url:
        [(level, place, text)] = remarks(url)
    assert (level, place) == ("warning", "shop.orders")
    assert text.startswith("row-level security may hide rows")


def judged(admin: Admin, url: str, change: str) -> Verdict:
    configuration = {
        "ledger": "memory",
        "stores": {"shop": {"url": url, "timeout": "30s"}},
        "tasks": {
            "close": {
                "watch": {"shop.orders": {}},
                "expect": [{"updated": "shop.orders", "key": {"id": 1}, "values": {"status": "closed"}}],
            }
        },
    }
    with Guard(Configuration.model_validate(configuration)) as guard:
        with guard.run("close") as run:
            execute(admin, change)
        assert run.verdict is not None
        return run.verdict


def test_a_verdict_warns_of_rows_that_it_could_not_see(admin: Admin, postgres_url: str) -> None:
    hide(admin)
    with role(admin, postgres_url, "SELECT ON orders") as url:
        verdict = judged(admin, url, "UPDATE orders SET status = 'closed'")
    assert verdict.kind == "verified"
    [warning] = verdict.findings
    assert (warning.place, warning.warning) == ("shop.orders", True)
    assert "row-level security may hide rows" in warning.text


def test_without_a_policy_the_same_run_is_a_silent_failure(admin: Admin, postgres_url: str) -> None:
    with role(admin, postgres_url, "SELECT ON orders") as url:
        verdict = judged(admin, url, "UPDATE orders SET status = 'closed'")
    assert verdict.kind == "silent_failure"
    assert [(finding.kind, finding.key) for finding in verdict.findings] == [("unrequested_change", {"id": 2})]


def test_a_table_that_may_not_be_read_leaves_a_run_unverified(admin: Admin, postgres_url: str) -> None:
    with role(admin, postgres_url) as url:
        verdict = judged(admin, url, "UPDATE orders SET status = 'closed' WHERE id = 1")
    assert verdict.kind == "unverified"
    assert "grant SELECT to the store's role" in str(verdict.findings[0])


def test_a_store_that_is_opened_touches_nothing(postgres_url: str) -> None:
    with closing(open_store("shop", "postgresql://nobody@127.0.0.1:9/none", 5)):
        pass
