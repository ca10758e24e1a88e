"""`guardrail verify`: the state of now, and what a run left that was cut off."""

from __future__ import annotations

import re
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest
from inline_snapshot import snapshot

from support import crashing
from support.apis import Crm
from support.command_line import ENVIRON, command, on_terminal
from support.project import Project

NOW = ("refund_order", "--input", "order_id=17", "--input", "amount=19.90")


def crash(project: Project, run_id: str, how: str = "killed") -> None:
    """Let an agent's process be killed in the middle of a run."""
    ended = subprocess.run(
        [sys.executable, crashing.__file__, str(project.folder), run_id, how], env=ENVIRON, capture_output=True
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr


# The state of now.


def test_a_task_of_checks_alone_is_verified(project: Project) -> None:
    ended = command("verify", "is_paid", "--input", "order_id=17")
    assert (ended.code, ended.lines) == (0, ["is_paid as it is now", "verified"])


def test_a_check_that_says_no_is_wrong(project: Project) -> None:
    project.shop.refund_order(17, "19.90")
    ended = command("verify", "is_paid", "--input", "order_id=17")
    assert ended.code == 1
    assert ended.lines[1:] == ["wrong: 1 finding", "  ✗ paid: answered false, expected true"]


def test_what_needs_a_picture_from_before_is_listed_as_not_checkable(project: Project) -> None:
    project.shop.refund_order(17, "19.90")
    ended = command("verify", *NOW)
    assert ended.code == 3
    assert ended.lines[1] == "unverified: 2 things could not be checked"
    assert [line[:3] for line in ended.lines[2:]] == ["  ?", "  ?"]
    told = command("verify", *NOW, "--json").json
    assert (told["verdict"], told["findings"]) == ("unverified", [])
    assert [item["place"] for item in told["not_checkable"]] == ["shop.orders", "shop.refunds"]


def test_what_is_wrong_is_told_even_where_not_all_can_be_checked(project: Project) -> None:
    ended = command("verify", *NOW, "--json")
    assert ended.code == 1
    assert [(found["kind"], found["place"]) for found in ended.json["findings"]] == [
        ("missing_change", "shop.orders"),
        ("missing_change", "shop.refunds"),
    ]
    assert ended.json["findings"][0]["key"] == {"id": 17}
    assert len(ended.json["not_checkable"]) == 2


def test_on_a_terminal_the_further_lines_of_a_finding_are_indented(project: Project) -> None:
    ended = on_terminal("verify", *NOW, folder=project.folder, NO_COLOR="1")
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in ended.lines]
    start = next(number for number, line in enumerate(lines) if line.startswith("  ? shop.orders"))
    assert lines[start + 1].startswith("    ")
    assert max(map(len, lines)) <= 80


def test_a_look_leaves_nothing_behind(project: Project) -> None:
    before = project.shop.path.read_bytes()
    command("verify", *NOW)
    assert project.shop.path.read_bytes() == before
    assert not project.ledger.exists()


def test_a_store_that_is_away_makes_it_unverified(project: Project) -> None:
    project.shop.path.unlink()
    ended = command("verify", "is_paid", "--input", "order_id=17")
    assert ended.code == 3
    assert "there is no database file" in ended.out


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("refund_ordr",), "did you mean `refund_order`?"),
        (("refund_order",), "order_id is missing; amount is missing"),
        (("is_paid", "--input", "order_id=x"), "order_id must be a whole number"),
        (("is_paid", "--input", "order_id"), "is not NAME=VALUE"),
        (("is_paid", "--input", "order_id=1", "--input", "order_id=2"), "given twice"),
        (("is_paid", "--input", "order_id=1", "--input", "colour=red"), "colour is not an input of it"),
        ((), "give a TASK"),
        (("is_paid", "--run", "x"), "one of them"),
        (("is_paid", "--config", "nowhere.yaml"), "there is no configuration nowhere.yaml"),
    ],
)
def test_misuse_is_told_on_stderr(project: Project, arguments: tuple[str, ...], why: str) -> None:
    ended = command("verify", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert why in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("how", ["text", "json"])
def test_a_configuration_with_mistakes_is_told_and_nothing_is_looked_at(project: Project, how: str) -> None:
    project.replace("effect: read", "efect: read")
    ended = command("verify", "is_paid", "--input", "order_id=17", *(["--json"] if how == "json" else []))
    assert (ended.code, ended.out) == (2, "")
    assert "guardrail.yaml:6:" in ended.err


def test_inputs_are_read_as_their_declared_types(project: Project) -> None:
    project.write(
        """\
version: 1
stores: {shop: {url: "sqlite:///shop.db"}}
tasks:
  read:
    inputs: {whole: integer, money: decimal, sure: boolean, word: text, items: list, free: any, open: any}
    checks:
      - python: readings:check
"""
    )
    (project.folder / "readings.py").write_text("def check(state):\n    return repr(state.inputs)\n", "utf-8")
    given = ["whole=3", "money=19.90", "sure=true", "word=17", 'items=[1, "a"]', "free=2", "open=two words=3"]
    ended = command("verify", "read", *(part for item in given for part in ("--input", item)), "--json")
    assert ended.json["findings"][0]["text"] == snapshot(
        "check 1: {'whole': 3, 'money': '19.90', 'sure': True, 'word': '17', 'items': [1, 'a'], 'free': 2, 'open': 'two words=3'}"
    )


# Runs that were cut off.


def test_a_run_that_was_cut_off_is_judged_by_its_kept_picture_and_closed(project: Project) -> None:
    crash(project, "refund-17")
    ended = command("verify", "--run", "refund-17", "--json")
    assert (ended.code, ended.json["verdict"], ended.json["open_holds"]) == (0, "verified", 1)
    listed = command("runs", "list", "--json").json["runs"]
    assert [(run["state"], run["writes_in_doubt"]) for run in listed] == [("verified", 1)]


def test_what_it_left_wrong_is_found(project: Project) -> None:
    crash(project, "refund-17", "killed:91.90")
    ended = command("verify", "--run", "refund-17")
    assert ended.code == 1
    assert ended.shown == snapshot("""\
refund_order run refund-17
silent failure: 1 finding, 1 open hold
  ✗ shop.refunds id=1: amount is 91.9, expected 19.90\
""")


def test_a_run_can_be_named_by_the_beginning_of_its_id(project: Project) -> None:
    crash(project, "refund-17")
    assert command("verify", "--run", "ref").code == 0


def test_a_run_that_was_judged_is_not_judged_again(project: Project) -> None:
    crash(project, "refund-17")
    command("verify", "--run", "refund-17")
    ended = command("verify", "--run", "refund-17")
    assert (ended.code, ended.out) == (2, "")
    assert "guardrail runs show refund-17" in ended.err


def test_a_run_of_a_living_process_is_refused_and_goes_on(project: Project) -> None:
    script = [sys.executable, crashing.__file__, str(project.folder), "refund-17", "waiting"]
    with subprocess.Popen(
        script, env=ENVIRON, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == "open\n"
        ended = command("verify", "--run", "refund-17")
        assert [run["state"] for run in command("runs", "list", "--open", "--json").json["runs"]] == ["open"]
        agent.communicate("\n", timeout=60)
    assert (ended.code, ended.out) == (2, "")
    assert f"process {agent.pid}" in ended.err
    assert [run["state"] for run in command("runs", "list", "--json").json["runs"]] == ["silent_failure"]


def test_a_run_of_another_host_is_judged_only_by_force(project: Project) -> None:
    crash(project, "refund-17")
    with closing(sqlite3.connect(project.ledger)) as connection, connection:
        connection.execute("update runs set host = 'elsewhere'")
    ended = command("verify", "--run", "refund-17")
    assert ended.code == 2
    assert "elsewhere" in ended.err
    assert socket.gethostname() not in ended.err
    assert command("verify", "--run", "refund-17", "--force").code == 0


def test_an_unknown_run_is_misuse(project: Project) -> None:
    crash(project, "refund-17")
    ended = command("verify", "--run", "nobody")
    assert (ended.code, ended.out) == (2, "")
    assert "there is no run nobody" in ended.err


def test_a_redacted_input_must_be_given_again(project: Project) -> None:
    project.replace(
        "{order_id: integer, amount: decimal}",
        "{order_id: integer, amount: decimal, pin: {type: text, optional: true}}",
    )
    crash(project, "refund-17")
    with closing(sqlite3.connect(project.ledger)) as connection, connection:
        connection.execute("""update runs set inputs = '{"order_id": 17, "amount": "[redacted]"}'""")
    ended = command("verify", "--run", "refund-17")
    assert ended.code == 2
    assert "amount is missing" in ended.err
    assert command("verify", "--run", "refund-17", "--input", "amount=19.90").code == 0


# In an HTTP API.

API = """\
version: 1
ledger: memory
stores:
  crm: {{url: "{url}", private: true, resources: {{tickets: {{get: /tickets, key: id}}}}}}
tasks:
  close:
    inputs: {{ticket_id: integer}}
    watch: {{crm.tickets: {{}}}}
    expect: [{{updated: crm.tickets, key: {{id: $ticket_id}}, values: {{state: closed}}}}]
    checks: [{{name: closed, store: crm, get: "/tickets/:ticket_id", at: /state, equals: closed}}]
"""


@pytest.fixture
def crm(project: Project) -> Iterator[Crm]:
    made = Crm()
    project.write(API.format(url=made.base))
    yield made
    made.close()


def test_the_state_of_an_api_is_looked_at(crm: Crm) -> None:
    asked = ("verify", "close", "--input", "ticket_id=7")
    assert command(*asked).lines[1:] == snapshot(
        [
            "wrong: 2 findings, 1 thing could not be checked",
            "  ✗ crm.tickets id=7: state is 'open', expected 'closed'",
            "  ✗ closed: answered 'open', expected 'closed'",
            "  ? crm.tickets: what changed in it cannot be told, without a picture from before the run: only the state of now was looked at",
        ]
    )
    crm.close_ticket(7)
    ended = command(*asked, "--json")
    assert (ended.code, ended.json["findings"]) == (3, [])
    assert [item["place"] for item in ended.json["not_checkable"]] == ["crm.tickets"]


def test_an_api_is_declared_as_such(crm: Crm) -> None:
    assert command("check", "--json").json["stores"] == {"crm": "http"}
    assert crm.asked == []
