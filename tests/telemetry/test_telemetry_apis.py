"""What is told of looks at HTTP APIs, and what they are told of the trace."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from inline_snapshot import snapshot
from opentelemetry import baggage, context, propagate
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.sdk.trace import ReadableSpan

from guardrail import CallRefused, Configuration, Guard
from support.apis import Crm, Reply
from support.recorder import Recorder

SECRET = "s3cret-t0ken"


@pytest.fixture
def crm() -> Iterator[Crm]:
    made = Crm()
    yield made
    made.close()


@pytest.fixture
def guard(crm: Crm, recorder: Recorder) -> Iterator[Guard]:
    """A guard around the ticket system, of which several things are asked."""
    tickets = {
        "get": "/customers/:customer_id/tickets",
        "query": {"state": "open", "token": SECRET},
        "rows": "/items",
        "key": "id",
    }
    check = {"store": "crm", "name": "ticket is open", "get": "/tickets/:ticket_id", "at": "/state", "equals": "open"}
    whole: dict[str, Any] = {
        "ledger": "memory",
        "stores": {
            "crm": {
                "url": crm.base,
                "private": True,
                "timeout": "2s",
                "headers": {"Authorization": f"Bearer {SECRET}"},
                "resources": {"tickets": tickets},
            }
        },
        "tools": {"close_ticket": {"effect": "write", "requires": [{**check, "name": None}]}},
        "tasks": {
            "task": {
                "inputs": {"customer_id": "integer", "ticket_id": "integer"},
                "watch": {"crm.tickets": {}},
                "expect": "nothing",
                "checks": [check],
            }
        },
    }
    del whole["tools"]["close_ticket"]["requires"][0]["name"]
    made = Guard(
        Configuration.model_validate(whole),
        tracer_provider=recorder.tracers,
        meter_provider=recorder.meters,
        logger_provider=recorder.loggers,
    )
    yield made
    made.close()


INPUTS = {"customer_id": 3, "ticket_id": 7}


def looks(recorder: Recorder) -> list[ReadableSpan]:
    """The spans of questions to the API."""
    return [span for span in recorder.spans if span.name.startswith("GET ")]


def test_a_look_is_a_client_span_by_the_conventions(guard: Guard, crm: Crm, recorder: Recorder) -> None:
    crm.replies["/api/tickets/7"] = Reply({}, 404)
    with guard.run("task", inputs=INPUTS):
        pass
    before, after, check = ({**(span.attributes or {}), "span": span.name} for span in looks(recorder))
    for told in (before, after, check):
        assert told.pop("server.port") == crm.port
        assert isinstance(told["url.full"], str)
        told["url.full"] = told["url.full"].replace(str(crm.port), "PORT")
        del told["guardrail.run.id"]
    assert before == after
    assert before == snapshot(
        {
            "gen_ai.evaluation.name": "crm.tickets",
            "guardrail.store": "crm",
            "http.request.method": "GET",
            "server.address": "127.0.0.1",
            "url.full": "http://127.0.0.1:PORT/api/customers/{customer_id}/tickets?state=REDACTED&token=[redacted]",
            "url.template": "/api/customers/{customer_id}/tickets",
            "http.response.status_code": 200,
            "span": "GET /api/customers/{customer_id}/tickets",
        }
    )
    assert check == snapshot(
        {
            "gen_ai.evaluation.name": "ticket is open",
            "guardrail.store": "crm",
            "http.request.method": "GET",
            "server.address": "127.0.0.1",
            "url.full": "http://127.0.0.1:PORT/api/tickets/{ticket_id}",
            "url.template": "/api/tickets/{ticket_id}",
            "guardrail.check.outcome": "fail",
            "http.response.status_code": 404,
            "span": "GET /api/tickets/{ticket_id}",
        }
    )
    assert {span.kind.name for span in looks(recorder)} == {"CLIENT"}
    # That there is no such ticket is an answer, and no failure of the request.
    assert all(span.status.is_unset for span in looks(recorder))


@pytest.mark.parametrize(
    ("reply", "error"),
    [(Reply({}, 403), "403"), (Reply(b"<html>"), "guardrail.check_error"), (Reply(status=302), "302")],
)
def test_a_look_that_failed_is_told_as_a_failed_request(
    guard: Guard, crm: Crm, recorder: Recorder, reply: Reply, error: str
) -> None:
    crm.replies["/api/tickets/7"] = reply
    with guard.run("task", inputs=INPUTS):
        pass
    span = recorder.span("GET /api/tickets/{ticket_id}")
    assert (span.attributes or {})["error.type"] == error
    assert span.status.status_code.name == "ERROR"


def test_a_server_that_is_away_is_told_without_a_status(guard: Guard, crm: Crm, recorder: Recorder) -> None:
    with guard.run("task", inputs=INPUTS, stores={"crm": "http://127.0.0.1:1/api"}):
        pass
    told = looks(recorder)[0].attributes or {}
    assert (told["error.type"], "http.response.status_code" in told) == ("connection_error", False)
    assert told["server.port"] == 1


@pytest.mark.parametrize("kind", ["blocking", "awaiting"])
def test_no_secret_and_no_value_of_an_input_is_told(guard: Guard, crm: Crm, recorder: Recorder, kind: str) -> None:
    inputs = {"customer_id": 123456789, "ticket_id": 987654321}
    crm.replies["/api/tickets/987654321"] = Reply({"state": SECRET}, 500)

    async def live() -> None:
        async with guard.run("task", inputs=inputs):
            pass

    if kind == "blocking":
        with guard.run("task", inputs=inputs):
            pass
    else:
        asyncio.run(live())
    assert len(looks(recorder)) == 3
    assert not any(part in recorder.everything() for part in (SECRET, "123456789", "987654321"))


def spans_named_by(crm: Crm, recorder: Recorder) -> list[str]:
    """The names of the spans that the server was told of, request by request."""
    names = {f"{span.context.span_id:016x}": span.name for span in recorder.spans if span.context}
    return [names[asked.headers["traceparent"].split("-")[2]] for asked in crm.asked]


@pytest.mark.parametrize("kind", ["blocking", "awaiting"])
def test_a_server_is_told_in_which_span_it_is_asked_and_no_baggage(
    guard: Guard, crm: Crm, recorder: Recorder, kind: str
) -> None:
    def close_ticket(ticket_id: int) -> str:
        return "closed"

    def agent(run: Any) -> None:
        crm.tickets[7]["state"] = "pending"
        with pytest.raises(CallRefused):
            run.wrap(close_ticket)(7)

    async def live() -> None:
        async with guard.run("task", inputs=INPUTS) as run:
            agent(run)

    token = context.attach(baggage.set_baggage("customer", "of mine"))
    if kind == "blocking":
        with guard.run("task", inputs=INPUTS) as run:
            agent(run)
    else:
        asyncio.run(live())
    context.detach(token)
    run_span, call, verify = "invoke_agent task", "execute_tool close_ticket", "guardrail.verify task"
    assert spans_named_by(crm, recorder) == [run_span, call, verify, verify]
    assert not any("baggage" in asked.headers for asked in crm.asked)


class Broken(TextMapPropagator):
    """A propagator that tells what cannot be sent, and raises."""

    def extract(self, carrier: Any, context: Any = None, getter: Any = None) -> Any:
        raise RuntimeError

    def inject(self, carrier: Any, context: Any = None, setter: Any = None) -> None:
        carrier.update({"x-trace": "a\r\nb", "host": "evil", "a b": "c", "x-number": 1, "x-good": "yes"})
        raise RuntimeError

    @property
    def fields(self) -> set[str]:
        return set()


def test_a_propagator_that_does_not_work_does_not_break_a_look(guard: Guard, crm: Crm) -> None:
    usual = propagate.get_global_textmap()
    propagate.set_global_textmap(Broken())
    try:
        with guard.run("task", inputs=INPUTS) as run:
            pass
    finally:
        propagate.set_global_textmap(usual)
    assert run.verdict is not None
    assert run.verdict.kind == "verified"
    assert crm.asked[0].headers["x-good"] == "yes"
    assert not {"x-trace", "a b", "x-number"} & crm.asked[0].headers.keys()


def test_without_a_trace_a_server_is_told_of_none(crm: Crm) -> None:
    declared: Mapping[str, Any] = {
        "ledger": "memory",
        "stores": {"crm": {"url": crm.base, "private": True}},
        "tasks": {"task": {"checks": [{"store": "crm", "get": "/tickets/7"}]}},
    }
    with Guard(Configuration.model_validate(declared)) as guard, guard.run("task") as run:
        pass
    assert run.verdict is not None
    assert run.verdict.kind == "verified"
    assert not {"traceparent", "baggage"} & crm.asked[0].headers.keys()
