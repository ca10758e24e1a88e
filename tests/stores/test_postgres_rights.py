"""What a role may see and do in PostgreSQL: rows that are hidden from it, tables that it may not read, and what `doctor` says."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from guardrail import Configuration, Guard, Verdict
from guardrail.stores.store import tables_of
from support.command_line import command
from support.ports import free_port
from support.postgres_looks import See, ask, execute, make_url, only, photo, role, shop, taken, unproved, why

Admin = psycopg.Connection[Any]


@pytest.fixture
def tables(admin: Admin) -> Admin:
    """Orders of two tenants, of which policies show one."""
    admin.execute("CREATE TABLE orders (id int PRIMARY KEY, tenant int, status text)")
    admin.execute("CREATE TABLE plain (id int PRIMARY KEY)")
    admin.execute("INSERT INTO orders VALUES (1, 1, 'paid'), (2, 2, 'paid')")
    admin.execute("ALTER TABLE orders ENABLE ROW LEVEL SECURITY")
    admin.execute("CREATE POLICY own ON orders USING (tenant = 1)")
    return admin


def test_a_table_whose_rows_may_be_hidden_is_known(tables: Admin, see: See, postgres_url: str) -> None:
    with role(tables, postgres_url, "SELECT ON orders, plain") as url, closing(shop(url)) as store:
        answers = see(store, [photo("orders"), photo("orders", hashed=True), photo("plain")])
        assert [taken(answer).hides_rows for answer in answers] == [True, True, False]
        assert [taken(answer).size for answer in answers] == [1, 1, 0]
        assert {table.name: table.hides_rows for table in tables_of(store)} == {"orders": True, "plain": False}
    with closing(shop(postgres_url)) as everything:
        [picture] = see(everything, [photo("orders")])
        assert (taken(picture).hides_rows, taken(picture).size) == (False, 2), "no policy holds a superuser"


def test_an_owner_is_held_by_its_own_policies_only_where_they_are_forced(
    tables: Admin, see: See, postgres_url: str
) -> None:
    with role(tables, postgres_url) as url, closing(shop(url)) as store:
        tables.execute(f"ALTER TABLE orders OWNER TO {conninfo_to_dict(url)['user']}".encode())
        assert taken(*see(store, [photo("orders")])).hides_rows is False
        tables.execute("ALTER TABLE orders FORCE ROW LEVEL SECURITY")
        assert taken(*see(store, [photo("orders")])).hides_rows is True
        tables.execute("ALTER TABLE orders OWNER TO CURRENT_USER")


def judged(url: str, watch: str = "shop.orders") -> Verdict:
    """What a run comes to whose task must leave a table as it is."""
    document: dict[str, object] = {
        "stores": {"shop": {"url": url, "timeout": "30s"}},
        "tasks": {"look": {"watch": {watch: {}}, "expect": "nothing"}},
        "ledger": "memory",
    }
    with Guard(Configuration.model_validate(document)) as guard:
        with guard.run("look") as run:
            pass
        assert run.verdict is not None
        return run.verdict


def test_the_verdict_warns_of_rows_that_may_be_hidden(tables: Admin, postgres_url: str) -> None:
    with role(tables, postgres_url, "SELECT ON orders") as url:
        verdict = judged(url)
    assert verdict.kind == "verified"
    [warning] = verdict.findings
    assert (warning.kind, warning.place, warning.warning) == ("check_error", "shop.orders", True)
    assert "row-level security may hide rows from the store's role" in warning.text
    assert judged(postgres_url).findings == ()


def test_a_table_that_the_role_may_not_read_makes_a_run_unverified(tables: Admin, postgres_url: str) -> None:
    with role(tables, postgres_url, "SELECT ON plain") as url:
        verdict = judged(url)
    assert verdict.kind == "unverified"
    assert "permission denied for table orders: grant SELECT to the store's role" in str(verdict.findings[0])


def test_a_column_that_the_role_may_not_read_can_be_ignored(tables: Admin, see: See, postgres_url: str) -> None:
    tables.execute(
        "CREATE TABLE secrets (id int PRIMARY KEY, open text, hidden text); INSERT INTO secrets VALUES (1, 'a', 'b')"
    )
    with role(tables, postgres_url, "SELECT (id, open) ON secrets") as url, closing(shop(url)) as store:
        denied, picture = see(store, [photo("secrets"), photo("secrets", ignore=frozenset({"hidden"}))])
        assert "permission denied for table secrets" in why(denied)
        assert taken(picture).rows == {(1,): (1, "a")}


def test_a_schema_that_the_role_may_not_use_is_told(tables: Admin, see: See, postgres_url: str) -> None:
    with role(tables, postgres_url, "SELECT ON orders") as url, closing(shop(url)) as store:
        [[schema]] = tables.execute("SELECT current_schema()").fetchall()
        execute(tables, f"REVOKE USAGE ON SCHEMA {schema} FROM {conninfo_to_dict(url)['user']}")
        picture, count = see(store, [photo("orders"), ask("SELECT count(*) FROM orders")])
        assert why(picture) == "there is no table orders"
        assert why(count) == 'relation "orders" does not exist'


# What `doctor` says.


def remarks(url: str, timeout: float = 30) -> set[tuple[str, str, str]]:
    """What should be known of a store: level, place and text."""
    with closing(shop(url, timeout)) as store:
        return {(remark.level, remark.place, remark.text) for remark in store.examine()}


def named(url: str) -> object:
    """The role of a URL."""
    return conninfo_to_dict(url)["user"]


def test_nothing_is_said_of_a_role_that_may_only_select(admin: Admin, postgres_url: str) -> None:
    admin.execute("CREATE TABLE plain (id int PRIMARY KEY)")
    with role(admin, postgres_url, "SELECT ON plain") as url:
        assert remarks(url) == set()


@pytest.mark.parametrize(
    "right",
    ["INSERT ON orders", "UPDATE ON orders", "UPDATE (status) ON orders", "DELETE ON orders", "TRUNCATE ON orders"],
)
def test_a_role_that_could_write_is_warned_of(tables: Admin, postgres_url: str, right: str) -> None:
    with role(tables, postgres_url, "SELECT ON orders, plain", right) as url:
        text = f"its role {named(url)} may write orders: give it one that may only SELECT"
        assert ("warning", "shop", text) in remarks(url)


def test_a_role_that_could_write_much_is_not_told_of_every_table(admin: Admin, postgres_url: str) -> None:
    for n in range(8):
        execute(admin, f"CREATE TABLE t{n} (id int PRIMARY KEY)")
    with role(admin, postgres_url, "ALL ON t0, t1, t2, t3, t4, t5, t6, t7") as url:
        text = f"its role {named(url)} may write t0, t1, t2, t3, t4 and 3 more: give it one that may only SELECT"
        assert remarks(url) == {("warning", "shop", text)}


def test_a_superuser_a_missing_key_and_hidden_rows_are_warned_of(tables: Admin, postgres_url: str) -> None:
    tables.execute("CREATE TABLE heap (a int)")
    keyless = ("warning", "shop.heap", "nothing tells its rows apart; declare a key")
    super_ = "its role root is a superuser, whom no right and no row-level security holds: give it one that may SELECT"
    assert remarks(postgres_url) == {keyless, ("warning", "shop", super_)}
    with role(tables, postgres_url, "SELECT ON orders, heap") as url:
        hidden = "row-level security may hide rows from its role, so that their changes cannot be seen"
        unseen = f"its role {named(url)} may not read plain: GRANT SELECT, or do not watch it"
        assert remarks(url) == {keyless, ("warning", "shop.orders", hidden), ("warning", "shop", unseen)}


def test_an_empty_schema_is_warned_of(admin: Admin, postgres_url: str) -> None:
    with role(admin, postgres_url) as url:
        assert remarks(url) == {("warning", "shop", "it has no tables on its search path; is it the right database?")}


def test_a_server_that_cannot_be_reached_is_an_error() -> None:
    [(level, place, text)] = remarks(f"postgresql://root:s3cret@127.0.0.1:{free_port()}/db", 2)
    assert (level, place) == ("error", "shop")
    assert "the tables of shop could not be read: it cannot be reached: " in text
    assert "s3cret" not in text


def test_names_that_need_quotes_do_not_keep_a_store_from_being_examined(admin: Admin, postgres_url: str) -> None:
    [[schema]] = admin.execute("SELECT current_schema()").fetchall()
    execute(admin, f'CREATE SCHEMA "{schema} X.y"; CREATE TABLE "{schema} X.y"."o.r" (id int PRIMARY KEY)')
    try:
        with role(admin, postgres_url) as url:
            execute(
                admin,
                f'GRANT USAGE ON SCHEMA "{schema} X.y" TO {named(url)}; GRANT SELECT ON "{schema} X.y"."o.r" TO {named(url)}',
            )
            assert remarks(make_url(url, options=f'-csearch_path="{schema}\\ X.y"')) == set()
    finally:
        execute(admin, f'DROP SCHEMA "{schema} X.y" CASCADE')


CONFIGURATION = """\
stores:
  shop: {{url: "{url}"}}
tasks:
  watching:
    watch:
      shop.plain: {{}}
      shop.{schema}.orders: {{ignore: [stats]}}
      shop.{schema}.heap: {{}}
      shop.{schema}.missing: {{}}
    expect:
      - updated: shop.{schema}.orders
        key: {{id: 1}}
        values: {{status: refunded}}
"""


def test_doctor_finds_tables_of_other_schemas(
    admin: Admin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres_url: str
) -> None:
    [[schema]] = admin.execute("SELECT current_schema()").fetchall()
    admin.execute("CREATE TABLE plain (id int PRIMARY KEY)")
    execute(admin, f"CREATE SCHEMA {schema}_sales; CREATE TABLE {schema}_sales.heap (a int)")
    execute(admin, f"CREATE TABLE {schema}_sales.orders (id int PRIMARY KEY, status text)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "guardrail.yaml").write_text(CONFIGURATION.format(url=postgres_url, schema=f"{schema}_sales"))
    try:
        told = command("doctor", "--json").json["remarks"]
        errors = {
            remark["place"].replace(str(schema), "s"): remark["text"].replace(str(schema), "s")
            for remark in told
            if remark["level"] == "error"
        }
    finally:
        execute(admin, f"DROP SCHEMA {schema}_sales CASCADE")
    watched = "tasks.watching.watch.shop.s_sales"
    assert errors == {
        f"{watched}.orders": "shop.s_sales.orders has no column stats (did you mean `status`?)",
        f"{watched}.heap": "nothing tells its rows apart: declare a key",
        f"{watched}.missing": "there is no table s_sales.missing in shop (did you mean `s_sales.orders`?)",
    }


def test_the_role_that_a_url_names_is_the_one_that_looks(tables: Admin, see: See, postgres_url: str) -> None:
    who = unproved("SELECT current_user::text")
    with role(tables, postgres_url, "SELECT ON orders") as other, role(tables, postgres_url, str(named(other))) as url:
        options = f"{conninfo_to_dict(url)['options']} -crole={named(other)}"
        with closing(shop(make_url(url, options=options))) as by_option, closing(shop(url)) as plain:
            assert only(*see(by_option, [who])) == named(other)
            assert only(*see(plain, [who])) == named(url)
        with psycopg.connect(url, autocommit=True) as mine:
            execute(mine, f"SET ROLE {named(other)}")
            assert only(*shop(mine).look([who])) == named(other)


def test_a_role_may_look_at_what_its_groups_may(tables: Admin, see: See, postgres_url: str) -> None:
    with (
        role(tables, postgres_url, "SELECT ON plain") as group,
        role(tables, postgres_url, str(named(group))) as url,
        closing(shop(url)) as store,
    ):
        assert only(*see(store, [ask("SELECT count(*) FROM plain")])) == 0
