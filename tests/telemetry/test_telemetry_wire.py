"""Over the wire: what an OTLP endpoint gets of guarded runs, as decoded protobufs, and what becomes of a bad one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import pytest

from guardrail import Guard, RunStopped, State
from support.receiver import Conduct, Received, Receiver, Sender, endpoint, plain
from support.shop import Guards, Shop

ERROR, UNSET = 2, 0
TOOL, RUN = "execute_tool", "invoke_agent"
SECRETS = ("19.90", "57.31", "sk-live-4242", "Ben", "only an open order")
"""What is in arguments, results, errors, rows and inputs of these runs."""

CHECKED: dict[str, Any] = {
    "watch": {"shop.orders": {"key": "id", "ignore": ["updated_at"]}, "shop.refunds": {"key": "id"}},
    "inputs": {"order_id": "integer", "amount": "decimal"},
    "checks": [{"store": "shop", "sql": "select count(*) = 1 from refunds where order_id = :order_id", "name": "once"}],
    "expect": [
        {"updated": "shop.orders", "key": {"id": "$order_id"}, "values": {"status": "refunded"}},
        {"inserted": "shop.refunds", "values": {"id": {"any": True}, "order_id": "$order_id", "amount": "$amount"}},
    ],
}


@pytest.fixture
def sender(receiver: Receiver) -> Iterator[Sender]:
    made = Sender(receiver.url)
    yield made
    made.close()


@pytest.fixture
def guards(tmp_path: Path) -> Iterator[Guards]:
    made = Guards(Shop(tmp_path / "shop.db"), tmp_path)
    yield made
    made.close()


def charge_card(card: str, amount: str) -> dict[str, Any]:
    """A tool that answers, and a secret goes in and comes out."""
    return {"customer": "Ben", "token": card, "amount": amount}


def guarding(guards: Guards, sender: Sender, **parts: Any) -> Guard:
    tools = {"charge_card": {"effect": "read"}}
    return guards(tools=tools, tasks={"refund_order": CHECKED}, **sender.providers, **parts)


def play(guard: Guard, shop: Shop, amount: str = "57.31") -> str:
    """A run that pays another amount back than it was asked to, after a refused cancellation of another order."""
    with guard.run("refund_order", inputs={"order_id": 17, "amount": "19.90"}) as run:
        run.call("charge_card", {"card": "sk-live-4242", "amount": "19.90"}, charge_card, id="call_1")
        run.call("cancel_order", {"order_id": 18}, shop.cancel_order)
        run.user_turn()
        run.call("lookup_order", {"order_id": 18}, shop.lookup_order)
        run.call("refund_order", {"order_id": 17, "amount": amount}, shop.refund_order)
    return run.id


class TestARun:
    """One silent failure, as it arrives."""

    @pytest.fixture
    def got(self, guards: Guards, receiver: Receiver, sender: Sender) -> Receiver:
        play(guarding(guards, sender), guards.shop)
        sender.flush()
        return receiver

    def test_its_tree_is_the_run_its_tools_and_its_verification(self, got: Receiver) -> None:
        assert got.parent(f"{RUN} refund_order") is None
        assert got.children(f"{RUN} refund_order") == [
            "SELECT orders",
            "SELECT refunds",
            f"{TOOL} charge_card",
            f"{TOOL} cancel_order",
            f"{TOOL} lookup_order",
            f"{TOOL} refund_order",
            "guardrail.verify refund_order",
        ]
        assert sorted(got.children("guardrail.verify refund_order")) == [
            "SELECT orders",
            "SELECT refunds",
            "SELECT refunds",
        ]
        assert len({span.item.trace_id for span in got.spans}) == 1

    def test_the_run_bears_its_verdict(self, got: Receiver) -> None:
        run = got.span(f"{RUN} refund_order")
        assert run.attributes["guardrail.verdict"] == "silent_failure"
        assert run.attributes["guardrail.flagged"] is True
        assert run.attributes["guardrail.calls.total"] == 4
        assert (run.item.status.code, run.attributes["error.type"]) == (ERROR, "guardrail.silent_failure")

    @pytest.mark.parametrize(
        ("tool", "effect", "outcome", "failure"),
        [
            ("charge_card", "read", "ok", None),
            ("lookup_order", "read", "ok", None),
            ("cancel_order", "write", "rejected", "guardrail.rejected"),
            ("refund_order", "write", "ok", None),
        ],
    )
    def test_a_tool_bears_what_it_is_and_what_it_came_to(
        self, got: Receiver, tool: str, effect: str, outcome: str, failure: str | None
    ) -> None:
        span = got.span(f"{TOOL} {tool}")
        told = span.attributes
        assert (told["gen_ai.operation.name"], told["gen_ai.tool.name"]) == (TOOL, tool)
        assert (told["guardrail.call.effect"], told["guardrail.call.outcome"]) == (effect, outcome)
        assert told.get("error.type") == failure
        assert span.item.status.code == (ERROR if failure else UNSET)

    def test_a_check_is_a_question_to_a_database(self, got: Receiver) -> None:
        [check] = [span for span in got.spans if span.attributes.get("gen_ai.evaluation.name") == "once"]
        assert check.item.kind == 3  # a client's
        assert check.attributes["db.system.name"] == "sqlite"
        assert check.attributes["guardrail.check.outcome"] == "pass"
        assert ":order_id" in check.attributes["db.query.text"]

    def test_its_events_lead_to_the_spans_that_they_are_about(self, got: Receiver) -> None:
        names = {span.item.span_id: span.item.name for span in got.spans}
        traces = {record.item.trace_id for record in got.records}
        assert traces == {got.spans[0].item.trace_id}
        assert [(names[record.item.span_id], *said(record)) for record in got.records] == [
            (f"{TOOL} cancel_order", "guardrail.decision", "hold"),
            (f"{RUN} refund_order", "guardrail.user_turn", None),
            (f"{RUN} refund_order", "guardrail.hold.resolved", None),
            ("guardrail.verify refund_order", "once", "pass"),
            ("guardrail.verify refund_order", "guardrail.state", "fail"),
            (f"{RUN} refund_order", "guardrail.run", "fail"),
        ]

    def test_its_metrics_have_names_units_and_few_series(self, got: Receiver) -> None:
        assert {name: (metric.item.unit, series(metric)) for name, metric in got.metrics.items()} == {
            "gen_ai.execute_tool.duration": (
                "s",
                [
                    {"gen_ai.tool.name": "cancel_order", "error.type": "guardrail.rejected"},
                    {"gen_ai.tool.name": "charge_card"},
                    {"gen_ai.tool.name": "lookup_order"},
                    {"gen_ai.tool.name": "refund_order"},
                ],
            ),
            "guardrail.decisions": (
                "{decision}",
                [
                    {
                        "guardrail.decision": "hold",
                        "gen_ai.tool.name": "cancel_order",
                        "guardrail.call.effect": "write",
                        "guardrail.call.outcome": "rejected",
                    }
                ],
            ),
            "guardrail.runs": (
                "{run}",
                [{"guardrail.verdict": "silent_failure", "guardrail.task.name": "refund_order"}],
            ),
            "guardrail.verification.duration": (
                "s",
                [{"guardrail.verification.outcome": "fail", "guardrail.task.name": "refund_order"}],
            ),
        }

    def test_a_duration_leads_to_the_span_that_it_is_of(self, got: Receiver) -> None:
        [point] = [
            point
            for point in got.metrics["gen_ai.execute_tool.duration"].item.histogram.data_points
            if any(pair.value.string_value == "refund_order" for pair in point.attributes)
        ]
        assert [one.span_id for one in point.exemplars] == [got.span(f"{TOOL} refund_order").item.span_id]

    def test_everything_comes_from_the_application_and_this_library(self, got: Receiver) -> None:
        everything = [*got.spans, *got.records, *got.metrics.values()]
        assert {one.resource["service.name"] for one in everything} == {"refund-agent"}
        assert {one.scope for one in everything} == {"guardrail"}

    @pytest.mark.parametrize("secret", SECRETS)
    def test_no_byte_of_it_is_of_arguments_results_rows_or_inputs(self, got: Receiver, secret: str) -> None:
        assert {path for path, _ in got.bodies} == {"/v1/traces", "/v1/logs", "/v1/metrics"}
        assert [path for path, body in got.bodies if secret.encode() in body] == []


def said(record: Received) -> tuple[str, str | None]:
    """An evaluation by its name and label, any other event by its own name and the decision that it tells."""
    told = record.attributes
    if record.item.event_name == "gen_ai.evaluation.result":
        return told["gen_ai.evaluation.name"], told["gen_ai.evaluation.score.label"]
    return record.item.event_name, told.get("guardrail.decision")


def series(metric: Received) -> list[dict[str, Any]]:
    kind = metric.item.WhichOneof("data")
    found = [plain(point.attributes) for point in getattr(metric.item, kind).data_points]
    return sorted(found, key=lambda one: str(one.get("gen_ai.tool.name")))


def test_with_content_on_arguments_and_results_arrive_redacted(
    guards: Guards, receiver: Receiver, sender: Sender
) -> None:
    guard = guarding(guards, sender, content={"spans": True, "redact": ["customer", "amount"]})
    run = play(guard, guards.shop)
    sender.flush()

    told = receiver.span(f"{TOOL} charge_card").attributes
    hidden = dict.fromkeys(("customer", "token", "amount"), "[redacted]")
    assert json.loads(told["gen_ai.tool.call.arguments"]) == {"card": "[redacted]", "amount": "[redacted]"}
    assert json.loads(told["gen_ai.tool.call.result"]) == hidden
    assert json.loads(receiver.span(f"{TOOL} lookup_order").attributes["gen_ai.tool.call.result"])["status"] == "paid"
    assert [secret for secret in SECRETS[:4] for _, body in receiver.bodies if secret.encode() in body] == []
    history = guard.ledger.load_run(run)
    assert history is not None
    assert [call.call.args for call in history.calls if "sk-live" in call.call.args or "19.90" in call.call.args] == []


def test_a_stopped_run_shows_what_was_refused(guards: Guards, receiver: Receiver, sender: Sender) -> None:
    guard = guarding(guards, sender)
    with pytest.raises(RunStopped), guard.run("look_only") as run:
        run.wrap(guards.shop.cancel_order)(17)
        run.wrap(guards.shop.refund_order)(17, "19.90")
    sender.flush()

    refused = receiver.span(f"{TOOL} refund_order")
    assert refused.attributes["guardrail.call.executed"] is False
    assert refused.attributes["guardrail.decision"] == "stop"
    assert refused.item.status.code == ERROR
    assert receiver.span(f"{RUN} look_only").attributes["guardrail.stop.reason"] == "write_under_hold"


def test_a_check_that_could_not_be_made_arrives_as_an_error(guards: Guards, receiver: Receiver, sender: Sender) -> None:
    def broken(state: State) -> bool:
        raise KeyError("57.31")

    odd: dict[str, Any] = {"watch": {"shop.orders": {}}, "checks": [{"python": broken, "name": "odd"}]}
    with guards(tasks={"odd": odd}, **sender.providers).run("odd"):
        pass
    sender.flush()

    check = receiver.span("guardrail.check odd")
    assert (check.item.status.code, check.attributes["error.type"]) == (ERROR, "guardrail.check_error")
    assert receiver.span(f"{RUN} odd").attributes["guardrail.verdict"] == "unverified"
    assert [path for path, body in receiver.bodies if b"57.31" in body] == []


@pytest.mark.parametrize("conduct", ["dead", "hanging", "refusing", "busy", "cutting"])
def test_an_endpoint_that_is_no_good_changes_nothing_of_a_run(
    guards: Guards, conduct: Conduct | Literal["dead"], caplog: pytest.LogCaptureFixture
) -> None:
    with endpoint(conduct) as url, closing(Sender(url, timeout=0.2)) as sender:
        guard = guarding(guards, sender)
        flushing = threading.Thread(target=sender.flush)

        run = guard.run("refund_order", inputs={"order_id": 17, "amount": "19.90"})
        with run:
            run.call("refund_order", {"order_id": 17, "amount": "19.90"}, guards.shop.refund_order)
            flushing.start()  # what was told so far is being sent while the run goes on
            run.call("lookup_order", {"order_id": 17}, guards.shop.lookup_order)
        flushing.join()

        assert run.verdict is not None
        assert run.verdict.kind == "verified"
        assert [record.message for record in caplog.records if record.name == "guardrail"] == []


def test_what_was_told_while_the_endpoint_was_busy_arrives_when_it_is_not(guards: Guards) -> None:
    receiver = Receiver("busy")
    sender = Sender(receiver.url)
    play(guarding(guards, sender), guards.shop)
    flushing = threading.Thread(target=sender.flush)
    flushing.start()
    while not receiver.requests:
        assert flushing.is_alive()
    receiver.conduct = "live"
    flushing.join()
    sender.close()
    receiver.close()

    assert receiver.span(f"{RUN} refund_order").attributes["guardrail.flagged"] is True
