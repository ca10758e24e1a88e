"""Where the connections to a MariaDB store come from, and how those of the user's are given back."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, urlsplit

import pymysql
import pytest
from pymysql.constants import CLIENT, FIELD_TYPE
from pymysql.cursors import DictCursor, SSCursor

from guardrail.errors import StoreError
from guardrail.stores.opening import open_store
from guardrail.stores.store import Store
from support.mariadb_servers import running
from support.mysql_looks import ask, picture, value, why
from support.servers import connect_mariadb, empty_database, execute_on_mariadb

NAME = "SELECT name FROM t WHERE id = 1"
TABLE = (
    "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20), ok BIT, at TIMESTAMP NULL)",
    "INSERT INTO t VALUES (1, 'ünï 😀', 1, '2024-01-01 12:00:00')",
)
STATE = (
    "SELECT @@sql_mode, @@time_zone, @@tx_isolation, @@tx_read_only, @@autocommit, @@character_set_client, "
    "@@character_set_results, @@character_set_connection, @@collation_connection, @@group_concat_max_len, "
    "@@sql_select_limit, @@max_statement_time, @@net_write_timeout, @@lc_time_names, @@div_precision_increment, "
    "@@sql_auto_is_null, @@default_week_format, @mine, DATABASE(), CONNECTION_ID()"
)


@pytest.fixture
def url(mariadb_url: str) -> str:
    execute_on_mariadb(mariadb_url, *TABLE)
    return mariadb_url


@pytest.fixture
def connection(url: str) -> Generator[pymysql.Connection]:
    opened = connect_mariadb(url)
    yield opened
    if opened.open:
        opened.close()


def refused(store: Store) -> str:
    [answer] = store.look([ask(NAME)])
    return why(answer).removeprefix("shop.t could not be looked at: ")


@pytest.mark.parametrize("scheme", ["mysql", "mariadb", "mysql+pymysql"])
def test_a_url_is_opened_whatever_its_scheme_is_called(url: str, scheme: str) -> None:
    store = open_store("shop", url.replace("mysql", scheme, 1), 5)
    assert (store.name, store.dialect) == ("shop", "mysql")
    assert value(store, NAME) == "ünï 😀"
    store.close()


def test_names_and_passwords_of_a_url_may_hold_any_letter(url: str) -> None:
    user, password = f"u:@/{secrets.token_hex(4)}", "p@ss:/?#[]% 'ünï"
    execute_on_mariadb(url, f"CREATE USER `{user}`@`%` IDENTIFIED BY '{password.replace(chr(39), chr(39) * 2)}'")
    try:
        execute_on_mariadb(url, f"GRANT SELECT ON *.* TO `{user}`@`%`")
        there = urlsplit(url)
        login = f"{quote(user, safe='')}:{quote(password, safe='')}"
        store = open_store("shop", f"mysql://{login}@{there.hostname}:{there.port}{there.path}", 5)
        assert value(store, NAME) == "ünï 😀"
        store.close()
        wrong = open_store("shop", f"mysql://{quote(user, safe='')}:wrong@{there.hostname}:{there.port}{there.path}", 5)
        assert refused(wrong) == "its user was not let in (1045): check the store's URL and its credentials"
    finally:
        execute_on_mariadb(url, f"DROP USER `{user}`@`%`")


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("mysql://u:secret@host:3306/", "names no database"),
        ("mysql://u:secret@host", "names no database"),
        ("mysql://u:secret@host:port/shop", "cannot be read"),
        ("mysql://u:secret@[::1/shop", "cannot be read"),
        ("mysql://u:secret@host/shop?sslmode=require", "option sslmode, which is none of ssl_mode"),
        ("mysql://u:secret@host/shop?ssl-mode=maybe", "none of disabled, preferred, required"),
        ("mysql://u:secret@host/shop?connect_timeout=soon", "no number of seconds"),
        ("mysql://u:secret@host/shop?ssl_ca=/not/there.pem", "TLS files cannot be used"),
        ("mysql://u:secret@host/shop?ssl_cert=/not/there.pem", "TLS files cannot be used"),
    ],
)
def test_a_url_that_says_no_such_thing_is_refused_without_its_password(where: str, says: str) -> None:
    with pytest.raises(StoreError, match="the store shop cannot be opened: its ") as refusal:
        open_store("shop", where, 5)
    assert says in str(refusal.value)
    assert "secret" not in str(refusal.value)


def test_the_driver_is_asked_for_by_the_name_of_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith(("pymysql", "guardrail.stores.mysql"))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "pymysql", None)
    with pytest.raises(StoreError, match=r"the store shop needs PyMySQL.*pip install 'guardrail-runtime\[mysql\]'"):
        open_store("shop", "mysql://root@host/shop", 5)


def test_a_connection_is_given_back_as_it_was(url: str) -> None:
    readers = {**pymysql.converters.conversions, FIELD_TYPE.LONG: str}
    with (
        closing(connect_mariadb(url, cursorclass=DictCursor, autocommit=False, charset="latin1", conv=readers)) as mine,
        mine.cursor() as cursor,
    ):
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        cursor.execute("SET SESSION sql_mode = 'ANSI_QUOTES', time_zone = '+05:00', sql_select_limit = 7, @mine = 17")
        cursor.execute("SET SESSION character_set_results = NULL, max_statement_time = 1.5")
        cursor.execute(STATE)
        had, client = cursor.fetchone(), known(mine)
        store = open_store("shop", mine, 5, "mysql")
        assert value(store, NAME) == "ünï 😀"
        [row] = picture(store).rows.values()
        assert (row[0], row[2], str(row[3])) == (1, 1, "2024-01-01 12:00:00+00:00")
        assert "doesn't exist" in why(*store.look([ask("SELECT 1 FROM nowhere")]))
        cursor.execute(STATE)
        assert cursor.fetchone() == had
        assert known(mine) == client
        cursor.execute("UPDATE t SET name = 'x'")
        mine.rollback()
        assert value(store, NAME) == "ünï 😀"


def known(connection: pymysql.Connection) -> tuple[object, ...]:
    """What the driver knows of a connection beside the session."""
    names = ("charset", "encoding", "collation", "use_unicode", "cursorclass", "encoders", "decoders", "sql_mode")
    return tuple(getattr(connection, name) for name in (*names, "autocommit_mode", "client_flag"))


def test_a_connection_in_the_middle_of_a_transaction_is_refused_and_left_alone(url: str) -> None:
    with closing(connect_mariadb(url, autocommit=False)) as mine, mine.cursor() as cursor:
        store = open_store("shop", mine, 5, "mysql")
        cursor.execute("SELECT name FROM t")  # which opens a snapshot
        assert "in the middle of a transaction" in refused(store)
        cursor.execute("UPDATE t SET name = 'x'")
        assert "in the middle of a transaction" in refused(store)
        cursor.execute("SELECT name FROM t")
        assert cursor.fetchone() == ("x",)
        mine.rollback()
        assert value(store, NAME) == "ünï 😀"


def test_a_connection_in_the_middle_of_an_answer_is_refused_and_left_alone(connection: pymysql.Connection) -> None:
    store = open_store("shop", connection, 5, "mysql")
    with connection.cursor(SSCursor) as cursor:
        cursor.execute("SELECT seq FROM seq_1_to_5")
        assert cursor.fetchone() == (1,)
        assert "in the middle of an answer" in refused(store)
        assert cursor.fetchall() == [(2,), (3,), (4,), (5,)]
    assert value(store, NAME) == "ünï 😀"


def test_a_connection_that_takes_several_statements_at_once_is_refused(url: str) -> None:
    with closing(connect_mariadb(url, client_flag=CLIENT.MULTI_STATEMENTS)) as mine:
        assert "takes several statements at once" in refused(open_store("shop", mine, 5, "mysql"))


def test_a_connection_without_a_database_is_refused(url: str) -> None:
    with closing(connect_mariadb(url, database=None)) as mine:
        assert "has no database selected" in refused(open_store("shop", mine, 5, "mysql"))


def test_a_closed_connection_is_refused(connection: pymysql.Connection) -> None:
    store = open_store("shop", connection, 5, "mysql")
    connection.close()
    assert "is closed" in refused(store)


def test_one_connection_serves_one_look_at_a_time(connection: pymysql.Connection) -> None:
    store = open_store("shop", connection, 30, "mysql")
    with ThreadPoolExecutor(8) as pool:
        looks = [pool.submit(value, store, "SELECT :n", n=number) for number in range(40)]
    assert [look.result() for look in looks] == [*range(40)]


async def test_a_connection_serves_asynchronous_runs_too(connection: pymysql.Connection) -> None:
    [answer] = await open_store("shop", connection, 5, "mysql").alook([ask(NAME)])
    assert getattr(answer, "rows", None) == (("ünï 😀",),)


def test_a_new_connection_of_a_factory_is_closed_after_the_look(url: str) -> None:
    made: list[pymysql.Connection] = []

    def connect() -> pymysql.Connection:
        made.append(connect_mariadb(url))
        return made[-1]

    store = open_store("shop", connect, 5, "mysql")
    assert [value(store, NAME) for _ in range(2)] == ["ünï 😀"] * 2
    assert [connection.open for connection in made] == [False, False]


def test_a_factory_of_urls_follows_credentials_that_change(url: str) -> None:
    users = [f"u_{secrets.token_hex(4)}" for _ in range(2)]
    execute_on_mariadb(url, *(f"CREATE USER {user}@`%` IDENTIFIED BY 'pw'" for user in users))
    try:
        execute_on_mariadb(url, *(f"GRANT SELECT ON *.* TO {user}@`%`" for user in users))
        urls: Iterator[str] = (url.replace("root@", f"{user}:pw@", 1) for user in users)
        store = open_store("shop", lambda: next(urls), 5, "mysql").for_run()
        who = "SELECT substring_index(current_user(), '@', 1)"
        functions = frozenset({"current_user", "substring_index"})
        for user in users:
            [answer] = store.look([ask(who, functions)])
            assert getattr(answer, "rows", None) == ((user,),)
        store.close()
    finally:
        execute_on_mariadb(url, *(f"DROP USER {user}@`%`" for user in users))


def test_a_run_is_not_led_to_another_database_halfway(url: str) -> None:
    with empty_database(url) as other:
        execute_on_mariadb(other, *TABLE)
        where = url
        makes: list[Callable[[], object]] = [lambda: where, lambda: connect_mariadb(where)]
        for make in makes:
            where = url
            store = open_store("shop", make, 5, "mysql")
            run, next_run = store.for_run(), store.for_run()
            assert value(run, NAME) == "ünï 😀"
            where = other
            assert "led to another database than at the run's first look" in refused(run)
            assert value(next_run, NAME) == "ünï 😀"
            store.close()


def test_what_a_factory_does_wrong_is_said(url: str) -> None:
    async def later() -> str:
        return url

    def fail() -> str:
        raise ConnectionError("the vault is closed")

    with pytest.raises(StoreError, match="its factory is asynchronous, and PyMySQL is not"):
        open_store("shop", later, 5, "mysql")
    assert refused(open_store("shop", fail, 5, "mysql")) == "its factory failed: ConnectionError: the vault is closed"
    assert "int is neither a URL, nor a PyMySQL connection" in refused(open_store("shop", lambda: 17, 5, "mysql"))


@pytest.mark.parametrize("where", [17, None, object()])
def test_what_is_none_of_these_is_refused(where: object) -> None:
    with pytest.raises(StoreError, match="is neither a URL, nor a PyMySQL connection, or a factory of one"):
        open_store("shop", where, 5, "mysql")


def test_connections_are_used_again(url: str) -> None:
    store = open_store("shop", url, 5)
    numbers = {only_number(store) for _ in range(5)}
    assert len(numbers) == 1
    store.close()


def only_number(store: Store) -> object:
    [answer] = store.look([ask("SELECT connection_id()", frozenset({"connection_id"}))])
    return getattr(answer, "rows", None)


def test_no_more_than_ten_connections_are_opened_and_few_are_kept(url: str) -> None:
    store = open_store("shop", url, 30)
    with closing(connect_mariadb(url)) as admin, admin.cursor() as cursor:
        cursor.execute("LOCK TABLES t WRITE")
        with ThreadPoolExecutor(24) as pool:
            looks = [pool.submit(value, store, NAME) for _ in range(24)]
            while (count := connections(url)) < 11:  # the store's and this one
                pass
            assert count == 11
            cursor.execute("UNLOCK TABLES")
            assert {look.result() for look in looks} == {"ünï 😀"}
    while (count := connections(url)) > 4:  # the server takes its time to see that one is closed
        pass
    assert count == 4
    store.close()


def connections(url: str) -> int:
    name = urlsplit(url).path.strip("/")
    with closing(connect_mariadb(url, database=None)) as admin, admin.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM information_schema.PROCESSLIST WHERE DB = %s", (name,))
        [[count]] = cursor.fetchall()
        return int(count)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the certificate of a server on 127.0.0.1, and one that signed nothing."""
    openssl = shutil.which("openssl")
    if openssl is None:
        if os.environ.get("GUARDRAIL_CI"):
            pytest.fail("CI needs openssl to make certificates")
        pytest.skip("needs openssl to make certificates")
    folder = tmp_path_factory.mktemp("certificates")
    for name in ("server", "other"):
        subprocess.run(
            [
                *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"),
                *("-addext", "subjectAltName=DNS:localhost", "-keyout", f"{folder}/{name}.key"),
                *("-out", f"{folder}/{name}.pem"),
            ],
            check=True,
            capture_output=True,
        )
    return folder


def test_tls_is_used_and_checked_as_the_url_says(certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    ours, other = certificates / "server.pem", certificates / "other.pem"
    cipher = "SELECT VARIABLE_VALUE <> '' FROM information_schema.SESSION_STATUS WHERE VARIABLE_NAME = 'Ssl_cipher'"

    def secured(options: str, host: str = "127.0.0.1") -> object:
        store = open_store("shop", f"{server.url.replace('127.0.0.1', host)}?{options}", 5)
        [answer] = store.look([ask(cipher)])
        store.close()
        return getattr(answer, "rows", None) or why(answer)

    options = (f"--ssl-cert={ours}", f"--ssl-key={certificates / 'server.key'}", f"--ssl-ca={ours}")
    with running(tmp_path_factory.getbasetemp(), *options) as server:
        assert secured("ssl-mode=DISABLED") == ((0,),)
        assert secured("ssl_mode=required") == ((1,),)
        assert secured(f"ssl-ca={ours}") == ((1,),)
        assert secured(f"ssl_mode=verify_identity&ssl_ca={ours}", "localhost") == ((1,),)
        assert "certificate" in str(secured(f"ssl_ca={other}"))
        assert "certificate" in str(secured("ssl_mode=verify_ca"))
        assert "certificate" in str(secured(f"ssl_mode=verify_identity&ssl_ca={ours}"))


def test_tls_that_is_asked_for_is_not_done_without(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running(tmp_path_factory.getbasetemp(), "--skip-ssl") as server:
        [answer] = open_store("shop", f"{server.url}?ssl_mode=required", 5).look([ask("SELECT 1")])
    assert "SSL is required but the server doesn't support it" in why(answer)
