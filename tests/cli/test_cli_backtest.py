"""`guardrail backtest`: recorded runs under a policy."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from support.command_line import ENVIRON, arguments, command, on_terminal

TABLES = {
    "orders": {"key": ["id"], "rows": [{"id": 17, "status": "paid"}, {"id": 18, "status": "paid"}]},
}


def call(tool: str, result: object, *, writes: bool = False, status: str | None = None) -> dict[str, Any]:
    """A recorded call on order 17; with a status, it set that."""
    change = {"table": "orders", "kind": "update", "key": [17], "after": {"status": status}}
    return {
        "tool": tool,
        "args": {"order_id": 17},
        "result": result,
        "writes": writes,
        "turn": 1,
        "changes": [] if status is None else [change],
    }


LOOKED = call("find", {"id": 17})
NOT_FOUND = call("find", None)
NOTHING_LISTED = call("list", [])
REFUSED = call("cancel", {"error": "only an open order can be cancelled"}, writes=True)
REFUNDED = call("refund", {"ok": True}, writes=True, status="refunded")
LOST = call("refund", {"ok": True}, writes=True, status="lost")

RUNS: Mapping[str, tuple[bool, Sequence[Mapping[str, Any]]]] = {
    "right": (True, [LOOKED, REFUNDED]),
    "wrong-value": (False, [LOOKED, LOST]),
    "did-nothing": (False, [LOOKED, REFUSED]),
    "went-on": (False, [NOT_FOUND, LOST]),
    "empty-list": (True, [NOTHING_LISTED, REFUNDED]),
}


def written(path: Path, *lines: Mapping[str, Any]) -> None:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five recorded runs of one task, in the working directory."""
    monkeypatch.chdir(tmp_path)
    made = tmp_path / "recorded"
    made.mkdir()
    expected = {"table": "orders", "kind": "update", "key": [17], "after": {"status": "refunded"}}
    written(made / "tasks.jsonl", {"task_id": "refund", "expected_changes": [expected]})
    written(made / "database.json", {"tables": TABLES})
    runs = [
        {"run_id": name, "task_id": "refund", "passed": passed, "fault": name, "calls": calls}
        for name, (passed, calls) in RUNS.items()
    ]
    written(made / "runs.jsonl", *runs)
    return made


def stopped(told: Any) -> list[str]:
    """The runs that would have been stopped."""
    return [fault for fault, (count, _) in told["stops"]["by_fault"].items() if count]


def test_a_policy_is_told_by_tables(folder: Path) -> None:
    ended = command("backtest", folder)
    assert ended.code == 0
    assert ended.lines[0].startswith("recorded under balanced: 5 runs in ")
    assert "\n".join(ended.lines[2:]) == snapshot("""\
end state  judged wrong  judged right  unverified
─────────────────────────────────────────────────
is wrong              3             0
is right              0             2
either                                          0

runs         all  stopped      %  open hold      %
──────────────────────────────────────────────────
passed         2        0    0.0          0    0.0
failed         3        1   33.3          1   33.3

did-nothing    1        0    0.0          1  100.0
empty-list     1        0    0.0          0    0.0
right          1        0    0.0          0    0.0
went-on        1        1  100.0          0    0.0
wrong-value    1        0    0.0          0    0.0\
""")
    assert max(map(len, ended.lines)) <= 80


def test_a_policy_is_told_as_json(folder: Path) -> None:
    told = command("backtest", folder, "--json").json
    assert told.pop("seconds") >= 0
    assert told == snapshot(
        {
            "folder": "recorded",
            "policy": "balanced",
            "runs": 5,
            "state": {
                "true_positive": 3,
                "false_positive": 0,
                "true_negative": 2,
                "false_negative": 0,
                "unverified": 0,
            },
            "stops": {
                "passed": [0, 2],
                "failed": [1, 3],
                "by_fault": {
                    "did-nothing": [0, 1],
                    "empty-list": [0, 1],
                    "right": [0, 1],
                    "went-on": [1, 1],
                    "wrong-value": [0, 1],
                },
            },
            "open_holds": {
                "passed": [0, 2],
                "failed": [1, 3],
                "by_fault": {
                    "did-nothing": [1, 1],
                    "empty-list": [0, 1],
                    "right": [0, 1],
                    "went-on": [0, 1],
                    "wrong-value": [0, 1],
                },
            },
        }
    )


def test_flagged_runs_are_listed_with_their_stops_and_findings(folder: Path) -> None:
    ended = command("backtest", folder, "--runs")
    start = ended.lines.index("wrong-value failed, wrong-value silent failure")
    assert "\n".join(ended.lines[start:]) == snapshot("""\
wrong-value failed, wrong-value silent failure
  ✗ recorded.orders id=17: status is 'lost', expected 'refunded'

did-nothing failed, did-nothing silent failure
  ! ended with 1 open hold
  ✗ recorded.orders id=17: status is 'paid', expected 'refunded'

went-on failed, went-on silent failure
  ■ would have been stopped at call 2 (refund), write under hold: call 1 (find) found nothing
  ✗ recorded.orders id=17: status is 'lost', expected 'refunded'

3 flagged runs\
""")
    flagged = command("backtest", folder, "--runs", "--json").json["flagged"]
    assert [run["run_id"] for run in flagged] == ["wrong-value", "did-nothing", "went-on"]
    assert flagged[2]["stop"]["reason"] == "write_under_hold"


def test_another_policy_stops_others(folder: Path) -> None:
    assert stopped(command("backtest", folder, "--json").json) == ["went-on"]
    assert stopped(command("backtest", folder, "--policy", "strict", "--json").json) == ["did-nothing", "went-on"]


def test_the_file_of_a_policy_is_tried(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("version: 1\nname: own\noutcomes: {rejected: stop, error: stop}\n", "utf-8")
    told = command("backtest", folder, "--policy", "own.yaml", "--json").json
    assert (told["policy"], stopped(told)) == ("own", ["did-nothing", "went-on"])


def test_the_file_of_a_configuration_is_tried_with_its_tools(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "guardrail.yaml").write_text(
        """\
version: 1
on_silent_failure: raise
stores: {shop: {url: "sqlite:///nowhere.db"}}
tools:
  list: {empty: stop}
  refund:
    requires:
      - {store: shop, sql: "select 1 = 0", because: a store that the recording does not have}
      - {cel: "inputs.order_id > 0", because: inputs that the recording does not have}
""",
        "utf-8",
    )
    told = command("backtest", folder, "--policy", "guardrail.yaml", "--jobs", 1, "--json").json
    assert (told["policy"], stopped(told)) == ("balanced", ["empty-list", "went-on"])


def test_the_heading_names_the_file_of_the_policy(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("version: 1\nname: own\n", "utf-8")
    assert command("backtest", folder, "--policy", "own.yaml").lines[0].startswith("recorded under own of own.yaml: ")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"run_id": "a", "task_id": "refund", "calls": []}', "runs.jsonl:1: passed: is missing"),
        ('{"run_id": "a", "task_id": "refund", "passed": 3, "calls": []}', "passed: must be true or false"),
        ('{"run_id": "a", "task_id": "refund", "passed": true, "calls": [{"args": {}}]}', "calls[0].tool: is missing"),
        ('{"run_id": "a", "task_id": "refund", "passed": true, "calls": {}}', "calls: must be a list"),
        ("[]", "runs.jsonl:1: it must be an object"),
        ("{", "runs.jsonl:1: it is no JSON"),
    ],
)
def test_a_line_that_is_no_run_is_told_in_plain_words(folder: Path, line: str, why: str) -> None:
    (folder / "runs.jsonl").write_text(f"{line}\n", "utf-8")
    ended = command("backtest", folder)
    assert (ended.code, ended.out) == (2, "")
    assert why in ended.err


def test_a_table_of_unknown_key_is_told_where_to_give_it(folder: Path) -> None:
    (folder / "database.json").unlink()
    assert "give the table in database.json, which is missing" in command("backtest", folder).err


def test_only_so_many_runs_are_replayed(folder: Path) -> None:
    assert command("backtest", folder, "--limit", 2, "--json").json["runs"] == 2


def test_progress_is_shown_on_a_terminal_only(folder: Path, tmp_path: Path) -> None:
    assert "5/5" in on_terminal("backtest", folder, folder=tmp_path, typed="").out
    ended = on_terminal("backtest", folder, folder=tmp_path)
    assert "5/5" not in ended.out
    assert ended.err == ""


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--policy", "lenient"), "is no bundled policy (balanced, observe, strict)"),
        (("--policy", "broken.yaml"), "broken.yaml:2: outcomes"),
        (("--jobs", "0"), "--jobs"),
        (("--limit", "x"), "--limit"),
    ],
)
def test_misuse_is_told_on_stderr(folder: Path, tmp_path: Path, options: tuple[str, ...], why: str) -> None:
    (tmp_path / "broken.yaml").write_text("name: broken\noutcomes: {errors: stop}\n", "utf-8")
    ended = command("backtest", folder, *options)
    assert (ended.code, ended.out) == (2, "")
    assert why in ended.err
    assert "Traceback" not in ended.err


def test_a_folder_that_holds_no_runs_is_told(tmp_path: Path) -> None:
    ended = command("backtest", tmp_path)
    assert (ended.code, ended.out) == (2, "")
    assert "has no tasks.jsonl" in ended.err


# The recorded runs of real agents.


@pytest.mark.parametrize("name", ["airline", "thinkingbox_booking"])
def test_recorded_runs_of_real_agents_are_replayed(corpus: Path, name: str) -> None:
    told = command("backtest", corpus / name, "--limit", 40, "--jobs", 1, "--json").json
    state = told["state"]
    assert told["runs"] == 40
    assert (state["false_positive"], state["false_negative"], state["unverified"]) == (0, 0, 0)
    assert state["true_positive"] + state["true_negative"] == 40


def test_ctrl_c_ends_a_backtest_and_its_processes_quietly(corpus: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with subprocess.Popen(
        arguments("backtest", corpus / "thinkingbox_retail", "--jobs", 2, "--json"),
        env={**ENVIRON, "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as running:
        while running.poll() is None and len(list(scratch.glob("guardrail-*/*.db"))) < 2:
            time.sleep(0.01)
        os.killpg(running.pid, signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert (running.returncode, out, err) == (130, b"", b"")
    assert list(scratch.iterdir()) == []
