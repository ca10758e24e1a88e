"""`guardrail doctor`: will a guard work here?"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from inline_snapshot import snapshot

from guardrail.ledger.ledger import Ledger
from guardrail.ledger.processes import this_host
from guardrail.ledger.records import RunRecord
from support.apis import Crm, Reply
from support.command_line import command
from support.ledgers import asked, connected, in_schema, schema_of
from support.project import Project
from support.servers import execute_on_mariadb


def places(project: Project, level: str) -> list[str]:
    """Where there are remarks of this level."""
    told = command("doctor", "--json").json
    return [remark["place"] for remark in told["remarks"] if remark["level"] == level]


def test_what_works_has_no_errors(project: Project) -> None:
    project.shop.path.chmod(stat.S_IRUSR)
    ended = command("doctor", "--json")
    assert (ended.code, ended.json["errors"]) == (0, 0)


def test_remarks_are_shown_in_a_table(project: Project) -> None:
    project.replace("lookup_order: {effect: read}", "lookup_order: {}")
    project.replace("shop.refunds: {key: id}", "shop.refund: {key: id}")
    ended = command("doctor")
    assert ended.code == 1
    rows = [line for line in ended.lines if "shop.db may be written" not in line]
    assert rows[0].split() == ["where", "what"]
    assert ended.lines[-1] == "guardrail.yaml: 1 error, 1 warning"
    assert max(map(len, ended.lines)) <= 80


def test_a_watched_table_that_is_not_there_is_an_error(project: Project) -> None:
    project.replace("shop.refunds: {key: id}", "shop.refund: {key: id}")
    ended = command("doctor", "--json")
    assert ended.code == 1
    assert [r for r in ended.json["remarks"] if r["level"] == "error"] == snapshot(
        [
            {
                "level": "error",
                "place": "tasks.refund_order.watch.shop.refund",
                "text": "there is no table refund in shop (did you mean `refunds`?)",
            }
        ]
    )


def test_a_column_that_is_not_there_is_an_error(project: Project) -> None:
    project.replace("ignore: [updated_at]", "ignore: [updatedat]")
    assert errors() == [
        ("tasks.refund_order.watch.shop.orders", "shop.orders has no column updatedat (did you mean `updated_at`?)")
    ]


def errors() -> list[tuple[str, str]]:
    """The errors: where, and what."""
    remarks = command("doctor", "--json").json["remarks"]
    return [(remark["place"], remark["text"]) for remark in remarks if remark["level"] == "error"]


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("key: {id: $order_id}", "key: {idd: $order_id}", "shop.orders has no column idd (did you mean `id`?)"),
        (
            "values: {status: refunded}",
            "values: {statu: done}",
            "shop.orders has no column statu (did you mean `status`?)",
        ),
        ("amount: $amount}", "amuont: $amount}", "shop.refunds has no column amuont (did you mean `amount`?)"),
        (
            "- inserted: shop.refunds",
            "- inserted: shop.refnds",
            "there is no table refnds in shop (did you mean `refunds`?)",
        ),
    ],
)
def test_a_change_is_looked_up_in_the_store(project: Project, right: str, wrong: str, said: str) -> None:
    project.replace(right, wrong)
    assert errors() == [("tasks.refund_order", said)]


@pytest.mark.parametrize("watch", ["", "    watch: {shop.orders: {key: id}}\n"])
def test_what_is_allowed_in_an_alternative_is_looked_up_in_the_store(project: Project, watch: str) -> None:
    project.write(
        f"""\
version: 1
stores: {{shop: {{url: "sqlite:///shop.db"}}}}
tasks:
  tidy:
{watch}    any_of:
      some:
        expect: nothing
        allow:
          - {{updated: shop.orders, columns: [statu], values: {{stat: x}}}}
          - {{deleted: shop.order_notes}}
"""
    )
    assert [text.partition(" (")[0] for _, text in errors()] == [
        "shop.orders has no column statu",
        "shop.orders has no column stat",
        "there is no table order_notes in shop",
    ]


UNZONED = "cannot be told: declare `compare: {at: {zone: UTC}}`"
COLUMNS = """\
create table deeds (
    id integer primary key, ref text not null unique, other text unique, n integer, amount decimal, day date, hour time,
    at timestamp default current_timestamp, seen timestamp, ok boolean, moment datetime
)
"""


def remarks_on_deeds(
    project: Project, values: str, *, url: str = "sqlite:///deeds.db", watch: str = "{}"
) -> list[tuple[str, str]]:
    """The remarks on a task that expects these values of a table with columns of many types."""
    project.write(
        f"""\
version: 1
ledger: memory
stores: {{shop: {{url: "{url}"}}}}
tasks:
  deed:
    inputs: {{when: instant, day: date, much: decimal, word: text}}
    watch: {{shop.deeds: {watch}}}
    expect: [{{inserted: shop.deeds, values: {values}}}]
"""
    )
    told = command("doctor", "--json").json["remarks"]
    return [(r["level"], r["text"]) for r in told if r["place"].startswith("tasks.")]


NEVER = "is of the kind {}, and never holds what the contract has there"


@pytest.mark.parametrize(
    ("values", "level", "said"),
    [
        ("{id: abc}", "error", NEVER.format("integer")),
        ("{id: '17', n: {not: abc}, amount: $word, at: '2024-01-01 10:00', ok: 'yes', ref: 17}", None, ""),
        ("{n: abc}", "warning", NEVER.format("integer")),
        ("{n: 1.5}", "warning", NEVER.format("integer")),
        ("{amount: {in: [much, more]}}", "warning", NEVER.format("decimal")),
        ("{amount: {in: [much, 1]}}", None, ""),
        ("{at: {during: run}}", "warning", UNZONED),
        ("{at: {at_least: $when}}", "warning", UNZONED),
        ("{seen: {during: run}}", None, ""),
        ("{seen: $when, amount: $much, day: $day}", None, ""),
        ("{n: {during: run}}", "warning", "never tells whether it is as the contract has it: the value is no instant"),
        ("{hour: {during: run}}", "warning", "it holds times of the day, and not on which day"),
        ("{day: {during: run}}", "warning", "declare `compare: {day: {zone: UTC}}`"),
    ],
)
def test_what_a_column_can_never_hold_or_tell_is_remarked_on(
    project: Project, values: str, level: str | None, said: str
) -> None:
    with closing(sqlite3.connect(project.folder / "deeds.db")) as database:
        database.execute(COLUMNS)
    found = remarks_on_deeds(project, values)
    assert [level for level, _ in found] == ([] if level is None else [level])
    assert all(said in text for _, text in found)
    softened = "{compare: {at: {zone: UTC}, day: {zone: UTC}, n: {kind: text}, amount: {kind: text}}}"
    assert remarks_on_deeds(project, values, watch=softened) == (
        found if "id: abc" in values or "hour" in values else []
    )


SERVED = [
    ("{at: {during: run}}", UNZONED),
    ("{at: {at_most: $when}}", UNZONED),
    ("{at: $when}", UNZONED),
    ("{at: {at_most: '2024-01-01 10:00'}}", ""),
    ("{seen: {during: run}}", ""),
    ("{seen: '2024-01-01 10:00'}", "seen is compared with a time without a zone"),
    ("{seen: {in: ['2024-01-01 10:00', '2024-01-01 10:00Z']}}", ""),
    ("{seen: soon}", NEVER.format("instant")),
    ("{n: $word, at: $word}", ""),
    ("{n: abc}", NEVER.format("integer")),
    ("{n: {at_least: abc}}", "one of two values is neither a number nor an instant"),
    ("{ok: 'yes'}", NEVER.format("boolean")),
    ("{ok: 1, amount: '1.50', day: $day, word: {during: run}}", ""),
]


SERVED_COLUMNS = "id integer primary key, n integer, amount decimal(9, 2), day date, ok boolean, word varchar(9)"


@pytest.fixture(params=["postgres", "mariadb"])
def served(request: pytest.FixtureRequest) -> str:
    """The URL of a database on a server with a table `deeds`."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    if request.param == "postgres":
        with closing(psycopg.connect(url, autocommit=True)) as server:
            server.execute(f"create table deeds ({SERVED_COLUMNS}, at timestamp, seen timestamptz)".encode())
    else:
        execute_on_mariadb(url, f"create table deeds ({SERVED_COLUMNS}, at datetime, seen timestamp null)")
    return url


def test_what_a_column_of_a_server_can_never_hold_or_tell_is_an_error(project: Project, served: str) -> None:
    for values, said in SERVED:
        found = remarks_on_deeds(project, values, url=served)
        assert [level for level, _ in found] == (["error"] if said else []), (values, found)
        assert all(said in text for _, text in found), (values, found)
    assert remarks_on_deeds(project, "{n: 1}", url=served, watch="{key: id}") == []
    assert [level for level, _ in remarks_on_deeds(project, "{n: 1}", url=served, watch="{key: n}")] == ["warning"]


@pytest.mark.parametrize(
    ("key", "sure"),
    [("id", True), ("ref", True), ("[REF, n]", True), ("other", False), ("n", False), ("[n, other]", False)],
)
def test_a_declared_key_that_rows_may_share_is_a_warning(project: Project, key: str, sure: bool) -> None:
    with closing(sqlite3.connect(project.folder / "deeds.db")) as database:
        database.execute(COLUMNS)
    found = remarks_on_deeds(project, "{ref: x}", watch=f"{{key: {key}}}")
    assert [level for level, _ in found] == ([] if sure else ["warning"])
    assert all("rows may have the same key (" in text for _, text in found)


def test_names_in_the_store_are_compared_without_case(project: Project) -> None:
    project.replace("key: {id: $order_id}", "key: {ID: $order_id}")
    project.replace("values: {status: refunded}", "values: {STATUS: refunded}")
    project.replace("ignore: [updated_at]", "ignore: [Updated_At]")
    assert errors() == []


def test_that_this_process_may_write_the_database_is_a_note_and_no_warning(project: Project) -> None:
    ended = command("doctor", "--json")
    notes = [remark["place"] for remark in ended.json["remarks"] if remark["level"] == "note"]
    assert (notes, ended.json["warnings"], ended.code) == (["shop"], 0, 0)
    shown = command("doctor")
    assert "may be written by this process" in " ".join(shown.out.split())
    assert shown.lines[-1] == "guardrail.yaml: all is well"


def test_a_database_that_is_away_is_an_error_told_once(project: Project) -> None:
    project.shop.path.unlink()
    assert places(project, "error") == ["shop"]


def test_a_table_that_is_too_large_to_watch_without_being_named_is_an_error(project: Project) -> None:
    project.write(
        """\
version: 1
stores: {shop: {url: "sqlite:///shop.db"}}
tasks: {look: {most_rows: 1, expect: nothing}}
"""
    )
    assert places(project, "error") == ["configuration"]
    project.replace("expect: nothing", "any_of: {here: {expect: nothing}, there: {expect: nothing}}")
    assert places(project, "error") == ["configuration"]
    project.replace("most_rows: 1", "most_rows: 2")
    assert places(project, "error") == []


def test_a_check_whose_module_cannot_be_imported_is_an_error(project: Project) -> None:
    project.replace("{name: paid, store: shop,", "{name: other, python: no_such_module:check}\n      - {store: shop,")
    ended = command("doctor", "--json")
    assert ended.code == 1
    assert "no_such_module" in ended.json["remarks"][-1]["text"]


def test_a_policy_that_only_observes_is_a_warning(project: Project) -> None:
    project.replace("version: 1\n", "version: 1\npolicy: observe\n")
    assert "policy" in places(project, "warning")


def test_mistakes_of_the_configuration_are_errors(project: Project) -> None:
    project.replace("effect: read", "efect: read")
    ended = command("doctor", "--json")
    assert ended.code == 1
    assert ended.json["remarks"][0]["text"].startswith("guardrail.yaml:6:")


def test_a_ledger_that_cannot_be_made_is_an_error(project: Project) -> None:
    (project.folder / "runs").write_text("a file, no folder", "utf-8")
    assert places(project, "error") == ["ledger"]


def test_a_ledger_that_is_none_is_an_error(project: Project) -> None:
    project.replace("ledger: runs/ledger.db", "ledger: shop.db")
    assert places(project, "error") == ["ledger"]


def test_a_ledger_in_memory_is_a_warning(project: Project) -> None:
    project.replace("ledger: runs/ledger.db", "ledger: memory")
    assert "ledger" in places(project, "warning")


def test_runs_that_were_cut_off_and_a_ledger_for_all_to_read_are_warnings(project: Project) -> None:
    ledger = Ledger(project.ledger)
    ledger.open_run(RunRecord("refund-17", None, "{}", "balanced", "enforce", 0.0, os.getpid(), this_host()))
    ledger.close()
    project.ledger.chmod(0o644)
    assert places(project, "warning").count("ledger") == 2


def test_a_ledger_on_a_server_is_looked_at_and_not_made(project: Project, postgres_url: str) -> None:
    place = in_schema(postgres_url)
    project.replace("ledger: runs/ledger.db", f'ledger: "{place}"')
    assert "ledger" not in places(project, "error") + places(project, "warning")
    assert asked(place, "SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace") == [(0,)]


def test_runs_that_were_cut_off_and_a_ledger_on_a_server_for_all_to_read_are_warnings(
    project: Project, postgres_url: str
) -> None:
    place = in_schema(postgres_url)
    project.replace("ledger: runs/ledger.db", f'ledger: "{place}"')
    with closing(Ledger(place)) as ledger:
        ledger.open_run(RunRecord("refund-17", None, "{}", "balanced", "enforce", 0.0, os.getpid(), "another-host"))
    with closing(connected(place)) as server:
        server.execute(f"GRANT USAGE ON SCHEMA {schema_of(place)} TO PUBLIC".encode())
        server.execute("GRANT SELECT ON calls TO PUBLIC")
        server.execute("UPDATE runs SET presence = presence + 1")  # another process than this
    told = [remark["text"] for remark in command("doctor", "--json").json["remarks"] if remark["place"] == "ledger"]
    assert len(told) == 2
    assert "can be read or changed by everyone" in told[0]
    assert told[1].startswith("1 run cut off")


def test_a_ledger_on_a_server_that_is_away_is_an_error(project: Project) -> None:
    project.replace("ledger: runs/ledger.db", "ledger: postgresql://me:h0rse@127.0.0.1:1/shop?connect_timeout=2")
    ended = command("doctor", "--json")
    (told,) = [remark for remark in ended.json["remarks"] if remark["place"] == "ledger"]
    assert (told["level"], "cannot be reached" in told["text"]) == ("error", True)
    assert "h0rse" not in ended.out


def test_a_ledger_at_an_address_of_something_else_is_an_error(project: Project) -> None:
    project.replace("ledger: runs/ledger.db", "ledger: mysql://me:h0rse@127.0.0.1/shop")
    ended = command("doctor", "--json")
    assert ended.code == 1
    assert "has another scheme than postgresql" in ended.out
    assert "h0rse" not in ended.out


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_without_a_configuration_there_is_nothing_to_examine(project: Project, options: list[str]) -> None:
    project.file.unlink()
    ended = command("doctor", *options)
    assert (ended.code, ended.out) == (2, "")
    assert "--config" in ended.err


API = """\
version: 1
ledger: memory
stores:
  crm:
    url: {url}
    private: true
    timeout: 2s
    resources:
      tickets: {{get: /tickets, key: id}}
      {more}
tasks:
  close:
    inputs: {{customer_id: integer}}
    watch: {{crm.tickets: {{}}}}
    expect: [{{updated: crm.tickets, key: {{id: 7}}, values: {{closed_by: me}}}}]
"""


@pytest.fixture
def crm() -> Iterator[Crm]:
    made = Crm()
    yield made
    made.close()


def remarks_on(project: Project, crm: Crm, more: str = "", url: str = "") -> list[tuple[str, str, str]]:
    """The remarks on the store, with the resources that are declared beside its tickets."""
    project.write(API.format(url=url or crm.base, more=more))
    told = command("doctor", "--json").json["remarks"]
    return [(r["level"], r["place"], r["text"]) for r in told if r["place"] not in ("ledger", "policy")]


def test_an_api_that_answers_as_declared_has_no_remarks(project: Project, crm: Crm) -> None:
    crm.tickets[8]["closed_by"] = "me"
    assert remarks_on(project, crm) == []
    assert crm.targets == ["/api/tickets"]


@pytest.mark.parametrize(
    ("reply", "level", "text"),
    [
        (Reply({}, 401), "error", "it answered 401: it does not accept the credentials, or there are none"),
        (Reply({}, 403), "error", "it answered 403: these credentials may not read it"),
        (Reply({}, 500), "error", "it answered 500"),
        (Reply({}, 404), "warning", "it answers that there is none, which stands for no rows; is its path right?"),
        (Reply(b"<html>"), "error", "what it answers is no JSON"),
        (Reply({"items": 1}), "error", "not all of its rows have id, which is its key"),
        (Reply([{"number": 1}]), "error", "not all of its rows have id, which is its key"),
        (Reply(status=302, headers={"Location": "https://login.example"}), "error", "it redirects to https://login"),
    ],
)
def test_an_api_that_does_not_answer_as_declared_is_remarked_on(
    project: Project, crm: Crm, reply: Reply, level: str, text: str
) -> None:
    crm.replies["/api/tickets"] = reply
    [(found, place, said)] = remarks_on(project, crm)
    assert (found, place) == (level, "crm.tickets")
    assert said.startswith(text)


MINE = 'mine: {get: "/customers/:customer_id/tickets", rows: /items, key: id, next: /next}'


def remarks_with(project: Project, crm: Crm, *options: str, more: str = MINE) -> list[tuple[str, str, str]]:
    """The remarks on a resource `mine` that takes inputs, when some are given."""
    project.write(API.format(url=crm.base, more=more))
    told = command("doctor", "--json", *options).json["remarks"]
    return [(r["level"], r["place"], r["text"]) for r in told if r["place"] == "crm.mine"]


def test_a_resource_that_takes_inputs_is_not_tried_without_them_and_one_without_a_key_is_told(
    project: Project, crm: Crm
) -> None:
    assert remarks_with(project, crm, more='mine: {get: "/customers/:customer_id/tickets"}') == [
        ("warning", "crm.mine", "nothing tells its rows apart; declare a key, here or where it is watched"),
        (
            "note",
            "crm.mine",
            "it was not tried, as it takes inputs (:customer_id); give them: --input customer_id=VALUE",
        ),
    ]


@pytest.mark.parametrize(
    ("reply", "level", "text"),
    [
        (Reply({"items": [{"id": 7}], "next": None}), None, ""),
        (
            Reply({"items": [{"id": 7}], "next": "?page=2"}),
            "error",
            "a page that it named as the next one answered 404",
        ),
        (Reply({"items": [{"id": 7}], "next": "?page=3"}), None, ""),
        (
            Reply({"items": [{"id": 7}], "next": None, "has_more": True}),
            "error",
            "it has more pages (/has_more says so)",
        ),
        (Reply({"rows": [{"id": 7}]}), "error", "what it answers has at /items nothing, where its rows should be"),
        (Reply({"items": [{"number": 7}]}), "error", "not all of its rows have id, which is its key"),
        (Reply({}, 404), "warning", "it answers that there is none, which stands for no rows; are its path and these"),
    ],
)
def test_a_resource_that_takes_inputs_is_tried_with_those_that_are_given(
    project: Project, crm: Crm, reply: Reply, level: str | None, text: str
) -> None:
    crm.replies["/api/customers/3/tickets"] = reply
    crm.replies["/api/customers/3/tickets?page=2"] = Reply({}, 404)
    crm.replies["/api/customers/3/tickets?page=3"] = Reply({"items": [{"id": 8}], "next": "?page=2"})
    found = remarks_with(project, crm, "--input", "customer_id=3")
    assert [(remark[0], remark[2][: len(text)]) for remark in found] == ([] if level is None else [(level, text)])


def test_a_column_that_a_contract_names_is_looked_up_in_the_rows_that_were_tried(project: Project, crm: Crm) -> None:
    said = "a contract names its column {}, which none of the rows has that were tried"
    project.write(API.format(url=crm.base, more="").replace("crm.tickets: {}", "crm.tickets: {ignore: [hour]}"))
    told = command("doctor", "--json").json["remarks"]
    assert [(r["level"], r["text"]) for r in told if r["place"] == "crm.tickets"] == [
        ("warning", f"{said.format('hour')}; did you mean hours?"),
        ("note", f"{said.format('closed_by')}, as if it were null in all"),
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("customer=3", "customer is an input of no task (the inputs of tasks are: customer_id)"),
        ("customer_id=x", "customer_id must be a whole number"),
        ("customer_id", "is not NAME=VALUE"),
    ],
)
def test_an_input_that_fits_no_task_is_a_misuse(project: Project, crm: Crm, given: str, said: str) -> None:
    project.write(API.format(url=crm.base, more=MINE))
    ended = command("doctor", "--input", given)
    assert (ended.code, ended.out) == (2, "")
    assert said in " ".join(ended.err.split())
    assert crm.asked == []


def test_an_api_that_is_away_is_an_error(project: Project, crm: Crm) -> None:
    [(level, place, text)] = remarks_on(project, crm, url="http://127.0.0.1:1")
    assert (level, place, text) == ("error", "crm.tickets", "it cannot be connected to: the connection is refused")


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply({}, 404), []),
        (Reply({}, 401), [("warning", "crm", "its URL answers 401; are the credentials right?")]),
        (Reply({}, 500), [("error", "crm", "its URL answers 500")]),
        (Reply(status=302), [("error", "crm", "it answered 302, and does not say where to")]),
    ],
)
def test_where_no_resource_can_be_tried_the_api_itself_is(
    project: Project, crm: Crm, reply: Reply, expected: list[tuple[str, str, str]]
) -> None:
    crm.replies["/api"] = reply
    project.write(
        'version: 1\nledger: memory\nstores:\n  crm:\n    private: true\n    url: "' + crm.base + '"\n'
        '    resources: {one: {get: "/tickets/:id", key: id}}\n'
    )
    told = command("doctor", "--json").json["remarks"]
    found = [(r["level"], r["place"], r["text"]) for r in told if r["place"] == "crm"]
    assert found == expected


def test_headers_that_are_sent_unencrypted_are_a_warning(project: Project) -> None:
    project.write(
        'version: 1\nledger: memory\nstores:\n  crm: {url: "http://127.0.0.1:1", headers: {X-Key: s3cret}, timeout: 1s}\n'
    )
    ended = command("doctor", "--json")
    texts = [remark["text"] for remark in ended.json["remarks"]]
    assert "its headers are sent unencrypted; give an https:// URL" in texts
    assert any("a private address; say `private: true`" in text for text in texts)
    assert "s3cret" not in ended.out + ended.err
