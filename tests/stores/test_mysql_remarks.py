"""What `doctor` tells of a MariaDB store."""

from __future__ import annotations

import secrets
from collections.abc import Generator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from guardrail.stores.opening import open_store
from guardrail.stores.store import Remark
from support.mariadb_servers import running
from support.servers import execute_on_mariadb

ORDERS = "CREATE TABLE orders (id INT PRIMARY KEY)"


@contextmanager
def user(url: str, *grants: str) -> Generator[str]:
    """The URL for a user with these rights, in which `{db}` stands for the database."""
    name = f"u_{secrets.token_hex(4)}"
    database = urlsplit(url).path.strip("/")
    execute_on_mariadb(url, f"CREATE USER {name}@`%`")
    try:
        execute_on_mariadb(url, *(f"GRANT {grant.format(db=database)} TO {name}@`%`" for grant in grants))
        yield url.replace("root@", f"{name}@", 1)
    finally:
        execute_on_mariadb(url, f"DROP USER {name}@`%`")


def remarks(url: str) -> list[Remark]:
    store = open_store("shop", url, 5)
    try:
        return [*store.examine()]
    finally:
        store.close()


@pytest.mark.parametrize(
    "grants",
    [
        ["SELECT ON `{db}`.*"],
        ["SELECT, SHOW VIEW, EXECUTE ON `{db}`.*", "PROCESS, BINLOG MONITOR, SLAVE MONITOR, SHOW DATABASES ON *.*"],
        ["SELECT (id) ON `{db}`.orders"],
        ["SELECT ON *.*", "ALL PRIVILEGES ON `elsewhere`.*", "INSERT ON `{db}\\_`.*", "DELETE ON `{db}_`.*"],
    ],
)
def test_a_user_that_may_only_read_is_not_remarked_upon(mariadb_url: str, grants: list[str]) -> None:
    execute_on_mariadb(mariadb_url, ORDERS)
    with user(mariadb_url, *grants) as url:
        assert remarks(url) == []


@pytest.mark.parametrize(
    ("grants", "says"),
    [
        (["ALL PRIVILEGES ON *.*"], "may do everything on the server"),
        (["SELECT, FILE, SUPER, TRIGGER ON *.*"], "may do everything on the server"),
        (["ALL PRIVILEGES ON `{db}`.*"], "may do more than read (ALL PRIVILEGES on {db}.*)"),
        (["SELECT, FILE ON *.*"], "may do more than read (FILE on *.*)"),
        (["SELECT ON `{db}`.*", "INSERT (id), UPDATE ON `{db}`.orders"], "(INSERT, UPDATE on {db}.orders)"),
        (["SELECT ON `{db}`.*", "DELETE ON `t\\_%`.*"], "(DELETE on t\\_%.*)"),
        (
            ["SELECT ON `{db}`.*", "DROP ON `%`.*", "CREATE TEMPORARY TABLES ON *.*"],
            "(CREATE TEMPORARY TABLES on *.*; DROP on %.*)",
        ),
    ],
)
def test_a_user_that_may_write_is_told_of(mariadb_url: str, grants: list[str], says: str) -> None:
    execute_on_mariadb(mariadb_url, ORDERS)
    with user(mariadb_url, *grants) as url:
        [remark] = remarks(url)
    assert (remark.level, remark.place) == ("warning", "shop")
    assert says.format(db=urlsplit(url).path.strip("/")) in remark.text
    assert remark.text.endswith("give it one that may only SELECT")


def test_rights_that_come_by_a_role_count(mariadb_url: str) -> None:
    execute_on_mariadb(mariadb_url, ORDERS)
    role = f"r_{secrets.token_hex(4)}"
    execute_on_mariadb(mariadb_url, f"CREATE ROLE {role}", f"GRANT UPDATE ON orders TO {role}")
    try:
        with user(mariadb_url, "SELECT ON `{db}`.*") as url:
            name = urlsplit(url).username
            execute_on_mariadb(mariadb_url, f"GRANT {role} TO {name}@`%`", f"SET DEFAULT ROLE {role} FOR {name}@`%`")
            [remark] = remarks(url)
        assert "may do more than read (UPDATE on " in remark.text
    finally:
        execute_on_mariadb(mariadb_url, f"DROP ROLE {role}")


def test_tables_that_cannot_be_relied_on_are_told_of(mariadb_url: str) -> None:
    execute_on_mariadb(
        mariadb_url,
        ORDERS,
        "CREATE TABLE heap (a INT)",
        "CREATE TABLE old (id INT PRIMARY KEY) ENGINE = MyISAM",
        "CREATE TABLE `un readable` (id INT PRIMARY KEY)",
    )
    with user(mariadb_url, *(f"SELECT ON `{{db}}`.{table}" for table in ("orders", "heap", "old"))) as url:
        execute_on_mariadb(mariadb_url, f"GRANT INSERT ON `un readable` TO {urlsplit(url).username}@`%`")
        found = {(remark.place, remark.text.split(",")[0]) for remark in remarks(url) if remark.place != "shop"}
    assert {place for place, _ in found} == {"shop.heap", "shop.old", "shop.un readable"}
    assert ("shop.heap", "nothing tells its rows apart; declare a key") in found
    assert ("shop.old", "its engine MyISAM has no snapshots") in found
    [unreadable] = [text for place, text in found if place == "shop.un readable"]
    assert "SELECT command denied to user" in unreadable


def test_a_database_without_tables_is_told_of(mariadb_url: str) -> None:
    with user(mariadb_url, "SELECT ON `{db}`.*") as url:
        assert [remark.text for remark in remarks(url)] == [
            "it has no tables that its user may see; is it the right database?"
        ]


def test_a_store_that_cannot_be_looked_at_is_an_error(mariadb_url: str) -> None:
    [remark] = remarks(f"{mariadb_url}_none")
    assert (remark.level, remark.place) == ("error", "shop")
    assert "Unknown database" in remark.text


def test_a_server_that_is_read_only_is_told_of(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running(tmp_path_factory.getbasetemp(), "--read-only") as server:
        execute_on_mariadb(server.url, ORDERS)
        with user(server.url, "SELECT ON `{db}`.*", "SLAVE MONITOR ON *.*") as url:
            assert [(remark.level, remark.text) for remark in remarks(url)] == [
                ("note", "its server is read-only and no replica: nothing that a run does shows there")
            ]
        with user(server.url, "SELECT ON `{db}`.*") as url:
            [remark] = remarks(url)
        assert "its server is read-only, as replicas are" in remark.text
        assert "GRANT SLAVE MONITOR ON *.*" in remark.text
