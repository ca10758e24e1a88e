"""Recorded runs of one's own: the format, what it forgives and what it says."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from guardrail.recorded.backtest import backtest
from guardrail.recorded.format import RecordedRunsError, read

TABLES = {"orders": {"key": ["id"], "rows": [{"id": 1, "status": "paid", "tags": ["a"], "price": 1.5, "open": True}]}}
PAID_BACK = {"table": "orders", "kind": "update", "key": [1], "after": {"status": "refunded"}}
TASK: dict[str, Any] = {"task_id": "t", "expected_changes": [PAID_BACK]}


def call(*changes: dict[str, Any], result: object = "done", **more: Any) -> dict[str, Any]:
    return {"tool": "refund", "args": {"id": 1}, "result": result, "writes": True, "changes": list(changes), **more}


def run(name: str, passed: bool, *calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"run_id": name, "task_id": "t", "passed": passed, "calls": list(calls), **more}


def write(folder: Path, runs: list[dict[str, Any]], tasks: list[dict[str, Any]] | None = None) -> Path:
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, tasks or [TASK])))
    (folder / "runs.jsonl").write_text("\n".join(map(json.dumps, runs)) + "\n\n")
    (folder / "database.json").write_text(json.dumps({"tables": TABLES}))
    return folder


def verdicts(folder: Path) -> dict[str, str]:
    return {replayed.run_id: replayed.verdict for replayed in backtest(folder, jobs=1).replayed}


def test_each_kind_of_change_is_replayed_and_judged(tmp_path: Path) -> None:
    deletes = {"table": "orders", "kind": "delete", "key": [1]}
    inserts = {"table": "orders", "kind": "insert", "key": [2], "after": {"id": 2, "status": "x", "tags": {"b": None}}}
    retags = {"table": "orders", "kind": "update", "key": [1], "after": {"tags": ["a", "b"]}}
    folder = write(
        tmp_path,
        [
            run("right", True, call(PAID_BACK)),
            run("nothing", False),
            run("deletes", False, call(deletes)),
            run("inserts too", False, call(PAID_BACK, inserts)),
            run("retags too", False, call(PAID_BACK), call(retags)),
            run("there and back", False, call(PAID_BACK), call({**PAID_BACK, "after": {"status": "paid"}})),
        ],
    )
    assert verdicts(folder) == {
        "right": "verified",
        "nothing": "silent_failure",
        "deletes": "silent_failure",
        "inserts too": "silent_failure",
        "retags too": "silent_failure",
        "there and back": "silent_failure",
    }


def test_values_that_look_like_a_contracts_forms_stand_for_themselves(tmp_path: Path) -> None:
    odd = {**PAID_BACK, "after": {"status": "$5 off", "tags": {"any": True}}}
    folder = write(
        tmp_path,
        [
            run("right", True, call(odd)),
            run("other", False, call({**odd, "after": {"status": "$5 off", "tags": {"x": 1}}})),
        ],
        [{"task_id": "t", "expected_changes": [odd]}],
    )
    assert verdicts(folder) == {"right": "verified", "other": "silent_failure"}


def test_the_wording_of_free_text_is_left_open(tmp_path: Path) -> None:
    task = {**TASK, "free_text_columns": {"orders": ["status"]}}
    folder = write(tmp_path, [run("reworded", True, call({**PAID_BACK, "after": {"status": "paid back"}}))], [task])
    assert verdicts(folder) == {"reworded": "verified"}


def test_a_table_of_a_task_of_its_own_wins_and_runs_may_be_compressed(tmp_path: Path) -> None:
    task: dict[str, Any] = {**TASK, "tables": {"orders": {"key": ["id"], "rows": []}}, "expected_changes": []}
    write(tmp_path, [], [task])
    (tmp_path / "runs.jsonl").unlink()
    with gzip.open(tmp_path / "runs.jsonl.gz", "wt") as file:
        file.write(json.dumps(run("still", True)))
    assert verdicts(tmp_path) == {"still": "verified"}


def test_stops_are_counted_by_label_and_by_fault(tmp_path: Path) -> None:
    no = call(result={"error": "not allowed"})
    other = {**call(PAID_BACK), "tool": "reopen"}
    folder = write(
        tmp_path,
        [
            run("went on", False, no, other, fault="goes_on"),
            run("held", False, no, fault="gives_up"),
            run("right", True, call(PAID_BACK)),
        ],
    )
    told = backtest(folder, jobs=1).as_json()
    assert told["runs"] == 3
    assert told["stops"] == {"passed": [0, 1], "failed": [1, 2], "by_fault": {"gives_up": [0, 1], "goes_on": [1, 1]}}
    assert told["open_holds"] == {
        "passed": [0, 1],
        "failed": [1, 2],
        "by_fault": {"gives_up": [1, 1], "goes_on": [0, 1]},
    }


def test_a_turn_of_the_user_resolves_what_failed(tmp_path: Path) -> None:
    no = call(result={"error": "not allowed"}, turn=1)
    folder = write(tmp_path, [run("asked", True, no, {**call(PAID_BACK, turn=2), "tool": "reopen"})])
    assert backtest(folder, jobs=1).as_json()["stops"]["passed"] == [0, 1]


def test_runs_of_uncertain_label_are_left_out(tmp_path: Path) -> None:
    folder = write(tmp_path, [run("sure", False), run("unsure", True, label_uncertain=True)])
    assert list(verdicts(folder)) == ["sure"]


def test_several_processes_give_the_same_report_as_one(tmp_path: Path) -> None:
    tasks = [{**TASK, "task_id": f"t{n}"} for n in range(6)]
    runs = [
        {**run(f"r{n}", n % 2 == 0, *([call(PAID_BACK)] if n % 2 == 0 else [])), "task_id": f"t{n}"} for n in range(6)
    ]
    folder = write(tmp_path, runs, tasks)
    one, two = backtest(folder, jobs=1), backtest(folder, jobs=2)
    assert one.replayed == two.replayed


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("runs.jsonl", '{"run_id": "a"}', r"runs\.jsonl:1: .*task_id"),
        ("runs.jsonl", "\n{not json", r"runs\.jsonl:2: "),
        ("runs.jsonl", '{"run_id": "a", "task_id": "zz", "passed": true, "calls": []}', "of task zz"),
        ("tasks.jsonl", "[]", r"tasks\.jsonl:1: "),
        ("database.json", "{}", r"database\.json: tables"),
        (
            "runs.jsonl",
            '{"run_id": "a", "task_id": "t", "passed": true, "calls": [{"tool": "x", "args": {}, "result": 1, '
            '"changes": [{"table": "ghosts", "kind": "delete", "key": [1]}]}]}',
            "ghosts is changed, but nothing says what its key is",
        ),
    ],
)
def test_a_mistake_is_told_with_file_and_line(tmp_path: Path, file: str, text: str, message: str) -> None:
    write(tmp_path, [run("a", True)])
    (tmp_path / file).write_text(text)
    with pytest.raises(RecordedRunsError, match=message):
        read(tmp_path)


def test_a_folder_that_holds_no_recording_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(RecordedRunsError, match=r"has no tasks\.jsonl"):
        read(tmp_path)
    with pytest.raises(RecordedRunsError, match="no folder"):
        read(tmp_path / "nowhere")


@pytest.mark.parametrize(("file", "place"), [("tasks.jsonl", ":1"), ("runs.jsonl", ":1"), ("database.json", "")])
def test_a_file_that_is_nested_too_deeply_is_told_with_its_line(tmp_path: Path, file: str, place: str) -> None:
    folder = write(tmp_path, [run("right", True, call(PAID_BACK))])
    (folder / file).write_text("[" * 100_000 + "\n")
    with pytest.raises(RecordedRunsError) as caught:
        read(folder)
    assert str(caught.value) == f"{folder / file}{place}: it is nested too deeply to be read"
