"""A call through the proxy: what the server sees, what the client gets, what the ledger knows."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from guardrail.errors import FINAL
from guardrail.ledger.records import RunHistory
from proxy.conftest import Start
from support.project import Project

Runs = Callable[[], list[RunHistory]]


def text(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


def is_final(result: dict[str, Any]) -> bool:
    return result["isError"] and text(result) == FINAL and result["_meta"]["guardrail/stopped"] is True


def test_what_is_allowed_goes_through_byte_for_byte(start: Start, project: Project) -> None:
    peer = start()
    request = b'{"id": 5,"jsonrpc":"2.0", "params":{"arguments":{"order_id":17}, "name":"lookup_order"},"method":"tools/call"}'
    peer.send(request)
    answer = peer.answer_to(5)
    assert answer["result"]["structuredContent"] == {"id": 17, "status": "paid"}
    assert request in (project.folder / "heard").read_bytes().splitlines()
    assert peer.raw[-1] == json.dumps({"jsonrpc": "2.0", "id": 5, "result": answer["result"]}).encode()


def test_a_write_after_a_failed_write_stops_the_session_for_good(start: Start, project: Project, runs: Runs) -> None:
    peer = start()
    assert "only an open order" in text(peer.call("cancel_order", order_id=17))
    stopped = peer.call("refund_order", order_id=17, amount="19.90")
    assert is_final(stopped)
    assert is_final(peer.call("lookup_order", order_id=17))
    assert peer.ask("ping")["result"] == {}
    assert project.shop.execute("select count(*) from refunds") == [(0,)]
    assert peer.close() == 0
    (run,) = runs()
    assert run.run.id == stopped["_meta"]["guardrail/run_id"]
    assert run.verdict is not None
    assert run.verdict.kind == "stopped"
    assert [call.outcome.outcome for call in run.calls if call.outcome] == ["rejected", "refused", "refused"]
    heard = (project.folder / "heard").read_text()
    assert "refund_order" not in heard
    assert heard.count("lookup_order") == 0


def test_a_refused_call_says_why_and_the_session_goes_on(start: Start, project: Project) -> None:
    peer = start()
    assert not peer.call("refund_order", order_id=17, amount="19.90")["isError"]
    again = peer.call("refund_order", order_id=17, amount="19.90")
    assert again["isError"]
    assert again["_meta"]["guardrail/refused"] == "duplicate"
    assert text(again) != FINAL
    assert project.shop.execute("select count(*) from refunds") == [(1,)]
    assert not peer.call("lookup_order", order_id=17)["isError"]


@pytest.mark.parametrize(
    ("code", "outcome"),
    [(-32602, "error"), (-32601, "error"), (-32603, "in_doubt"), (-32000, "in_doubt"), (-32042, "in_doubt")],
)
def test_an_error_of_the_protocol_is_a_raised_one_and_reaches_the_client_as_it_is(
    start: Start, runs: Runs, code: int, outcome: str
) -> None:
    peer = start()
    assert peer.call("fail", code=code)["error"] == {"code": code, "message": "as asked for"}
    peer.close()
    (run,) = runs()
    assert [call.outcome.outcome for call in run.calls if call.outcome] == [outcome]


@pytest.mark.parametrize(
    ("tool", "args"), [("no_such_tool", {}), ("fail", {"code": -32603, "text": "Input validation error: code"})]
)
def test_a_call_that_the_server_says_it_did_not_make_holds_nothing(
    start: Start, project: Project, runs: Runs, tool: str, args: dict[str, Any]
) -> None:
    peer = start()
    unmade = peer.call(tool, **args)
    assert unmade.get("isError") or unmade["error"] == {"code": -32603, "message": "Input validation error: code"}
    assert not peer.call("refund_order", order_id=17, amount="19.90")["isError"]
    peer.close()
    (run,) = runs()
    first = run.calls[0]
    assert first.outcome is not None
    assert (first.call.tool, first.outcome.outcome, first.outcome.sign) == (tool, "error", "not_made")
    assert project.shop.execute("select count(*) from refunds") == [(1,)]


def test_the_hosts_id_of_a_call_is_recorded_and_kept_from_the_server(
    start: Start, project: Project, runs: Runs
) -> None:
    peer = start()
    peer.call("lookup_order", {"guardrail/call_id": "call_7"}, order_id=17)
    id = peer.begin_call("lookup_order", order_id=17)
    peer.result_of(id)
    peer.close()
    assert [call.call.call_id for call in runs()[0].calls] == ["call_7", str(id)]
    assert b"call_7" not in (project.folder / "heard").read_bytes()


@pytest.mark.parametrize(("trusted", "effect"), [("true", "read"), ("false", "unknown")])
def test_annotations_of_a_trusted_server_lower_the_effect(
    start: Start, project: Project, runs: Runs, trusted: str, effect: str
) -> None:
    project.replace("  shop:\n    env:", f"  shop:\n    trust_annotations: {trusted}\n    env:")
    peer = start()
    peer.ask("tools/list")
    peer.call("undeclared", order_id=17)
    peer.close()
    assert [call.call.effect for call in runs()[0].calls] == [effect]


def test_progress_and_changes_and_requests_of_the_server_go_by(start: Start) -> None:
    peer = start()
    id = peer.begin_call("report", {"progressToken": "p"})
    assert text(peer.result_of(id)) == '"reported"'
    assert [message["params"].get("progress") for message in peer.said if "params" in message] == [1, 2]
    assert [message["method"] for message in peer.said][-1] == "notifications/tools/list_changed"
    peer.said.clear()
    id = peer.begin_call("ask_client")
    asked = peer.hear(lambda message: message.get("method") == "sampling/createMessage")
    peer.send({"id": asked["id"], "result": {"role": "assistant", "content": {"type": "text", "text": "yes"}}})
    assert "yes" in text(peer.result_of(id))


def test_a_call_that_needs_input_first_is_one_call(start: Start, runs: Runs, project: Project) -> None:
    peer = start()
    first = peer.call("need_input", order_id=17)
    assert first["resultType"] == "input_required"
    params = {"name": "need_input", "arguments": {"order_id": 17}, "requestState": first["requestState"]}
    done = peer.ask("tools/call", {**params, "inputResponses": {"confirm": {"action": "accept"}}})
    assert not done["result"]["isError"]
    peer.close()
    (run,) = runs()
    assert [(call.call.tool, call.outcome.outcome) for call in run.calls if call.outcome] == [("need_input", "ok")]
    assert project.shop.execute("select count(*) from refunds") == [(1,)]


def test_a_call_that_needs_input_and_gets_none_is_in_doubt_and_holds_nobody_up(start: Start, runs: Runs) -> None:
    peer = start()
    assert peer.call("need_input", order_id=17)["resultType"] == "input_required"
    peer.close()
    (run,) = runs()
    assert [call.outcome.outcome for call in run.calls if call.outcome] == ["in_doubt"]


def test_a_stop_reaches_a_call_that_waits_for_input(start: Start, project: Project) -> None:
    peer = start()
    first = peer.call("need_input", order_id=17)
    peer.call("cancel_order", order_id=18)
    assert is_final(peer.call("refund_order", order_id=18, amount="5.00"))
    params = {"name": "need_input", "arguments": {"order_id": 17}, "requestState": first["requestState"]}
    assert is_final(peer.ask("tools/call", params)["result"])
    assert project.shop.execute("select count(*) from refunds") == [(0,)]


def test_a_task_ends_when_its_result_is_fetched(start: Start, runs: Runs) -> None:
    peer = start()
    assert peer.call("begin_task")["task"]["taskId"] == "t1"
    assert not peer.ask("tasks/result", {"taskId": "t1"})["result"]["isError"]
    peer.close()
    assert [call.outcome.outcome for call in runs()[0].calls if call.outcome] == ["ok"]


def test_the_server_gets_the_environment_that_it_is_given_and_no_other(start: Start) -> None:
    peer = start(GUARDRAIL_SECRET="not for the server")
    seen = json.loads(text(peer.call("show_env")))
    assert seen["SHOP_KEY"] == "s3cret-key"
    assert seen["PATH"]
    assert not [name for name in seen if "GUARDRAIL" in name or name == "PYTHONPATH"]
    peer.close()
    assert b"s3cret-key" not in peer.log
