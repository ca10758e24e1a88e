"""PostgreSQL that is away, hangs, ends sessions or takes too long: looks end in their time, and say why."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from guardrail.pictures import Rows
from guardrail.query.proof import prove_condition
from guardrail.stores.store import Store
from support.ports import free_port
from support.postgres_looks import Meddling, See, ask, execute, make_url, only, photo, shop, taken, unproved, why
from support.postgres_servers import Server, missing, program, server

Admin = psycopg.Connection[Any]

COUNT = ask("SELECT count(*) FROM t")
ONE = ask("SELECT 1 AS one")
PID = unproved("SELECT pg_backend_pid()")
ENDLESS = ask("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM r) SELECT count(*) FROM r")
SLOW = (
    "it took longer than the store's timeout; narrow the question (a watched table by `where`, and `ignore` its long columns, "
    "JSON kept as text above all), or raise the timeout"
)
LOCKED = (
    "another's lock on it was held for longer than a look can wait, which is a part of the timeout: raise the timeout"
)


@pytest.fixture
def table(admin: Admin) -> Admin:
    admin.execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
    return admin


# Connections that are lost.


def test_a_connection_that_was_lost_while_it_was_idle_is_replaced(table: Admin, pg: Store, see: See) -> None:
    for _ in range(3):
        lost = only(*see(pg, [PID]))
        table.execute("SELECT pg_terminate_backend(%s, 10000)", [lost])
        count, picture, pid = see(pg, [COUNT, photo(), PID])
        assert (only(count), taken(picture).size) == (3, 3)
        assert only(pid) != lost


def test_all_kept_connections_may_be_lost_at_once(table: Admin, postgres_url: str) -> None:
    async def look() -> list[object]:
        answers = await asyncio.gather(*(store.alook([PID]) for _ in range(10)))
        lost = [only(*answer) for answer in answers]
        table.execute("SELECT pg_terminate_backend(pid, 10000) FROM unnest(%s::int[]) AS s (pid)", [lost])
        return [only(*await store.alook([COUNT])) for _ in range(6)]

    with closing(shop(postgres_url)) as store:
        assert asyncio.run(look()) == [3] * 6


@pytest.mark.parametrize("looks_before", [0, 1])
def test_a_connection_that_is_lost_during_a_look_is_told(
    table: Admin, postgres_url: str, see: See, looks_before: int
) -> None:
    url = make_url(postgres_url, application_name=os.urandom(6).hex())
    ending = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = %s"
    values = Meddling(lambda: table.execute(ending, [conninfo_to_dict(url)["application_name"]]), least=1)
    with closing(shop(url)) as store:
        for _ in range(looks_before):
            assert only(*see(store, [COUNT])) == 3
        answers = see(store, [photo(where=prove_condition("id >= :least", "postgres"), values=values), COUNT])
        said = {why(answer) for answer in answers}
        assert len(said) == 1
        assert "terminating connection" in str(said) or "it cannot be reached: " in str(said)
        assert only(*see(store, [COUNT])) == 3


# What takes too long.


def test_what_takes_too_long_costs_its_own_answer_only(table: Admin, postgres_url: str, see: See) -> None:
    with closing(shop(postgres_url, timeout=2)) as store:
        asked = [COUNT, ENDLESS, photo(), photo(hashed=True), ask("SELECT 1 / 0"), COUNT]
        count, endless, picture, hashed, failed, last = see(store, asked)
        assert (only(count), taken(picture).size, taken(hashed).size, only(last)) == (3, 3, 3, 3)
        assert why(endless) == SLOW
        assert "division by zero" in why(failed)
        assert only(*see(store, [COUNT])) == 3


def test_many_statements_that_take_too_long_together_are_told(postgres_url: str, see: See) -> None:
    naps = [unproved(f"SELECT {n}, pg_sleep(0.4)") for n in range(6)]
    with closing(shop(postgres_url, timeout=1)) as store:
        answers = see(store, naps)
        answered = [isinstance(answer, Rows) for answer in answers]
        assert answered == sorted(answered, reverse=True)
        assert why(answers[-1]) == SLOW
        assert only(*see(store, [ONE])) == 1


def test_a_lock_is_waited_for_and_then_told(table: Admin, postgres_url: str, see: See) -> None:
    with closing(shop(postgres_url, timeout=1)) as store, psycopg.connect(postgres_url) as agent:
        agent.execute("ALTER TABLE t ADD COLUMN added int")
        assert {why(answer) for answer in see(store, [COUNT, photo()])} == {LOCKED}
        assert only(*see(store, [ONE])) == 1
        agent.rollback()
        assert only(*see(store, [COUNT])) == 3


# A server that hangs, is away, or is somebody else's.


@pytest.fixture(scope="module")
def own() -> Generator[Server]:
    with server(hba=["host all secretive 127.0.0.1/32 scram-sha-256"]) as made:
        with made.connect() as admin:
            execute(admin, "CREATE ROLE secretive LOGIN PASSWORD 's3cret'; CREATE TABLE t AS SELECT 1 AS id")
        yield made


def test_a_server_that_hangs_ends_no_look_late(own: Server) -> None:
    with closing(shop(own.url, timeout=1)) as kept, closing(shop(own.url, timeout=1)) as new:
        assert only(*kept.look([COUNT])) == 1
        own.pause()
        try:
            assert why(*kept.look([COUNT])) == SLOW
            assert "cannot be reached: " in why(*new.look([COUNT]))
        finally:
            own.resume()
        assert [only(*store.look([COUNT])) for store in (kept, new)] == [1, 1]


async def test_a_server_that_hangs_does_not_hold_the_loop_up(own: Server) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    with closing(shop(own.url, timeout=1)) as kept, closing(shop(own.url, timeout=1)) as new:
        assert only(*await kept.alook([COUNT])) == 1
        own.pause()
        ticking = asyncio.ensure_future(tick())
        try:
            slow, away = await asyncio.gather(kept.alook([COUNT]), new.alook([COUNT]))
        finally:
            own.resume()
            ticking.cancel()
        assert ticks > 10
        assert why(*slow) == SLOW
        assert "cannot be reached: " in why(*away)
        assert [only(*await store.alook([COUNT])) for store in (kept, new)] == [1, 1]


def test_a_pooler_that_accepts_and_says_nothing_ends_no_look_late(see: See) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        closing(shop(f"postgresql://root@127.0.0.1:{silent.getsockname()[1]}/db", timeout=1)) as store,
    ):
        assert "cannot be reached: " in why(*see(store, [ONE]))


def test_a_server_that_was_away_is_found_again(own: Server, see: See) -> None:
    with closing(shop(own.url)) as store:
        assert only(*see(store, [COUNT])) == 1
        own.stop()
        assert "cannot be reached: connection failed: connection to server at" in why(*see(store, [COUNT]))
        own.start()
        assert only(*see(store, [COUNT])) == 1


AWAY = {
    "nobody listens": ("postgresql://root:s3cret@127.0.0.1:{free}/db", "Connection refused"),
    "no such host": (
        "postgresql://root:s3cret@no-such-host.invalid/db",
        "failed to resolve host 'no-such-host.invalid'",
    ),
    "no port": ("postgresql://root:s3cret@127.0.0.1:no/db", "invalid"),
    "no such database": ("postgresql://root:s3cret@127.0.0.1:{port}/nothing", 'database "nothing" does not exist'),
    "no such role": ("postgresql://nobody:s3cret@127.0.0.1:{port}/postgres", 'role "nobody" does not exist'),
    "wrong password": (
        "postgresql://secretive:s3cret2@127.0.0.1:{port}/postgres",
        'authentication failed for user "secretive"',
    ),
    "no password": ("postgresql://secretive@127.0.0.1:{port}/postgres", "no password supplied"),
    "no right path": ("postgresql://root:s3cret@/postgres?host=/nowhere", "No such file"),
    "no setting": ("postgresql://root:s3cret@127.0.0.1:{port}/postgres?options=-cnonsense%3D1", "nonsense"),
    "no TLS": ("postgresql://root:s3cret@127.0.0.1:{port}/postgres?sslmode=require", "SSL"),
}


@pytest.mark.parametrize(("url", "said"), AWAY.values(), ids=AWAY)
def test_a_server_that_cannot_be_reached_is_told_without_the_password(
    own: Server, see: See, caplog: pytest.LogCaptureFixture, url: str, said: str
) -> None:
    with closing(shop(url.format(port=own.port, free=free_port()), timeout=3)) as store:
        answers = see(store, [COUNT, photo()])
    assert [why(answer).startswith("it cannot be reached: ") for answer in answers] == [True, True]
    assert said in why(answers[0])
    texts = f"{answers}{store!r}{vars(store)!r}{caplog.text}"
    assert "s3cret" not in texts


def test_the_right_password_lets_in(own: Server, see: See) -> None:
    with own.connect() as admin:
        execute(admin, "GRANT SELECT ON t TO secretive")
    with closing(shop(f"postgresql://secretive:s3cret@127.0.0.1:{own.port}/postgres")) as store:
        assert only(*see(store, [COUNT])) == 1


def test_text_that_is_no_utf_8_costs_its_own_answer_only(own: Server, see: See) -> None:
    with own.connect() as admin:
        execute(admin, "CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    try:
        url = make_url(own.url, dbname="ascii")
        with psycopg.connect(url, autocommit=True) as admin:
            execute(admin, "CREATE TABLE t (id int PRIMARY KEY, x text); INSERT INTO t VALUES (1, E'\\xff')")
        with closing(shop(url)) as store:
            text, picture, count, hashed = see(store, [ask("SELECT x FROM t"), photo(), COUNT, photo(hashed=True)])
            assert why(text) == why(picture) == "character not in repertoire (22021)"
            assert (only(count), taken(hashed).size) == (1, 1)
    finally:
        with own.connect() as admin:
            execute(admin, "DROP DATABASE ascii (FORCE)")


# TLS.


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Server, Path]]:
    """A server that speaks TLS, and its certificate."""
    if (
        "openssl"
        not in subprocess.run([program("pg_config"), "--configure"], check=True, capture_output=True, text=True).stdout
    ):
        missing("a PostgreSQL that was built with OpenSSL")
    if shutil.which("openssl") is None:
        missing("the command openssl")
    folder = tmp_path_factory.mktemp("certificates")
    for name in ("server", "other"):
        made = [
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            f"/CN={name}",
            "-addext",
            "subjectAltName=DNS:localhost",
        ]
        files = ["-keyout", f"{name}.key", "-out", f"{name}.crt"]
        subprocess.run(["openssl", "req", "-x509", *made, *files], check=True, capture_output=True, cwd=folder)
    rules = ["hostssl all all 127.0.0.1/32 trust", "hostnossl all tls_only 127.0.0.1/32 reject"]
    with server(hba=rules, files=[folder / "server.key", folder / "server.crt"], settings={"ssl": "on"}) as made_server:
        yield made_server, folder


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("sslmode=require", None),
        ("sslmode=verify-ca&sslrootcert={folder}/server.crt", None),
        ("sslmode=verify-full&sslrootcert={folder}/server.crt&host=localhost&hostaddr=127.0.0.1", None),
        (
            "sslmode=verify-full&sslrootcert={folder}/other.crt&host=localhost&hostaddr=127.0.0.1",
            "certificate verify failed",
        ),
        ("sslmode=verify-full&sslrootcert={folder}/server.crt", "does not match host name"),
        ("sslmode=verify-full&sslrootcert={folder}/none.crt", "root certificate file"),
        ("sslmode=disable&user=tls_only", "no encryption"),
        ("sslmode=nonsense", "sslmode"),
    ],
)
def test_tls_is_as_the_url_says(certified: tuple[Server, Path], see: See, options: str, said: str | None) -> None:
    running, folder = certified
    url = f"{running.url}?{options.format(folder=folder)}"
    encrypted = unproved("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
    with closing(shop(url)) as store:
        [answer] = see(store, [encrypted])
        if said is None:
            assert only(answer) is True
            assert only(*see(store, [encrypted])) is True, "kept"
        else:
            assert why(answer).startswith("it cannot be reached: ")
            assert said in why(answer)
