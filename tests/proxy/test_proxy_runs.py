"""Runs are the host's to begin and to end: by `_meta`, by the session, by idleness."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from guardrail.ledger.records import RunHistory
from proxy.conftest import Start
from proxy.test_proxy_calls import is_final
from support.project import Project

Runs = Callable[[], list[RunHistory]]
RUN, TASK, INPUTS, END = "guardrail/run_id", "guardrail/task", "guardrail/inputs", "guardrail/end"
REFUND = {TASK: "refund_order", INPUTS: {"order_id": 17, "amount": "19.90"}}


def kinds(runs: Runs) -> dict[str, str]:
    return {run.run.id: run.verdict.kind for run in runs() if run.verdict is not None}


def test_a_session_is_one_run_of_the_task_of_the_command_line(start: Start, runs: Runs) -> None:
    peer = start("--task", "refund_order", "--input", "order_id=17", "--input", "amount=19.90")
    assert not peer.call("refund_order", order_id=17, amount="19.90")["isError"]
    assert peer.close() == 0
    (run,) = runs()
    assert run.run.task == "refund_order"
    assert run.verdict is not None
    assert run.verdict.kind == "verified"
    assert b"verdict='verified'" in peer.log


def test_a_silent_failure_is_found_when_the_session_ends(start: Start, runs: Runs) -> None:
    peer = start("--task", "refund_order", "--input", "order_id=17", "--input", "amount=19.90")
    peer.call("refund_order", order_id=17, amount="1.00")
    assert peer.close() == 0
    assert list(kinds(runs).values()) == ["silent_failure"]
    assert b"silent_failure" in peer.log


def test_the_host_names_runs_and_ends_them_and_is_told_the_verdict(start: Start, runs: Runs, project: Project) -> None:
    peer = start()
    peer.call("refund_order", {RUN: "R1", **REFUND}, order_id=17, amount="19.90")
    last = peer.call("lookup_order", {RUN: "R1", END: True}, order_id=17)
    assert last["_meta"] == {RUN: "R1", "guardrail/verdict": "verified"}
    assert last["structuredContent"]["status"] == "refunded"
    other = {RUN: "R2", TASK: "refund_order", INPUTS: {"order_id": 18, "amount": "5.00"}}
    peer.call("lookup_order", other, order_id=18)
    told = peer.ask("ping", {"_meta": {RUN: "R2", END: True}})
    assert told["result"]["_meta"]["guardrail/verdict"] == "silent_failure"
    assert kinds(runs) == {"R1": "verified", "R2": "silent_failure"}
    for line in (project.folder / "heard").read_text().splitlines():
        assert "guardrail/" not in json.dumps(json.loads(line))


def test_a_notification_ends_a_run(start: Start, runs: Runs) -> None:
    peer = start()
    peer.call("lookup_order", {RUN: "R1"}, order_id=17)
    peer.send({"method": "notifications/progress", "params": {"_meta": {RUN: "R1", END: True}}})
    peer.close()
    assert kinds(runs) == {"R1": "unverified"}
    assert runs()[0].ended is not None


def test_a_stop_of_one_run_is_none_of_another_and_outlasts_its_end(start: Start, runs: Runs) -> None:
    peer = start()
    peer.call("cancel_order", {RUN: "R1"}, order_id=17)
    assert is_final(peer.call("refund_order", {RUN: "R1"}, order_id=17, amount="19.90"))
    assert not peer.call("refund_order", {RUN: "R2"}, order_id=17, amount="19.90")["isError"]
    assert not peer.call("lookup_order", order_id=17)["isError"]
    assert peer.ask("ping", {"_meta": {RUN: "R1", END: True}})["result"]["_meta"]["guardrail/verdict"] == "stopped"
    assert is_final(peer.call("lookup_order", {RUN: "R1"}, order_id=17))
    peer.close()
    assert kinds(runs)["R1"] == "stopped"


def test_an_idle_run_is_judged_and_the_next_call_opens_another(start: Start, runs: Runs) -> None:
    peer = start("--idle", "300ms")
    peer.call("lookup_order", order_id=17)
    while b"run_ended" not in peer.log:
        time.sleep(0.05)
    peer.call("lookup_order", order_id=17)
    peer.close()
    assert len(runs()) == 2


def test_a_stopped_session_stays_stopped_when_its_run_has_been_idle(start: Start, runs: Runs) -> None:
    peer = start("--idle", "300ms")
    peer.call("cancel_order", order_id=17)
    peer.call("refund_order", order_id=17, amount="19.90")
    while b"run_ended" not in peer.log:
        time.sleep(0.05)
    assert is_final(peer.call("lookup_order", order_id=17))
    peer.close()
    assert len(runs()) == 1


def test_a_run_of_another_session_is_refused(start: Start) -> None:
    one, other = start(), start()
    one.call("lookup_order", {RUN: "R1"}, order_id=17)
    denied = other.call("lookup_order", {RUN: "R1"}, order_id=17)
    assert denied["error"]["code"] == -32602
    assert "R1" in denied["error"]["message"]
    assert not one.call("lookup_order", {RUN: "R1"}, order_id=17)["isError"]


@pytest.mark.parametrize(
    "meta",
    [
        {RUN: 7},
        {RUN: ""},
        {RUN: "R\n1"},
        {INPUTS: ["order_id"]},
        {END: "yes"},
        {"guardrail/runid": "R1"},
        {RUN: "R1", TASK: "refund_order", INPUTS: {"order_id": "no integer"}},
        {RUN: "R1", TASK: "refund_order", INPUTS: {"order": 17}},
    ],
)
def test_words_that_cannot_be_followed_are_an_error_of_the_protocol_and_nothing_is_called(
    start: Start, project: Project, meta: dict[str, object]
) -> None:
    peer = start()
    assert peer.call("lookup_order", meta, order_id=17)["error"]["code"] == -32602
    assert "lookup_order" not in (project.folder / "heard").read_text()


def test_a_run_keeps_its_task(start: Start) -> None:
    peer = start()
    peer.call("lookup_order", {RUN: "R1", **REFUND}, order_id=17)
    denied = peer.call("lookup_order", {RUN: "R1", TASK: "is_paid"}, order_id=17)
    assert "is_paid" in denied["error"]["message"]
