"""B17: the tool changes its arguments, and a credential reaches the trace."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from guardrail import CallRefused, Guard, RunStopped
from support.cases import answering, history_of, outcome_of
from support.recorder import Recorder
from support.shop import Guards

KEY = "sk-test-000"
ARGUMENTS = "gen_ai.tool.call.arguments"
RESULT = "gen_ai.tool.call.result"


class HTTPError(Exception):
    """The error of a client, whose text holds the URL that was asked."""


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def guard(guards: Guards, recorder: Recorder) -> Guard:
    return guards(
        tools={"crm_get": {"effect": "read"}, "crm_set": {"effect": "write"}},
        tracer_provider=recorder.tracers,
        meter_provider=recorder.meters,
        logger_provider=recorder.loggers,
        content={"spans": True},
    )


def recorded(guard: Guard, run: str, recorder: Recorder) -> Any:
    """The arguments of the one call as they were recorded: the same in the ledger and in the span."""
    [call] = history_of(guard, run).calls
    arguments = json.loads(call.call.args)
    assert json.loads(recorder.attributes("execute_tool crm_get")[ARGUMENTS]) == arguments
    return arguments


def is_nowhere(secret: str, guards: Guards, recorder: Recorder, caplog: pytest.LogCaptureFixture) -> bool:
    """Whether a secret is in no span, event or log line, and not in the ledger's file."""
    files = b"".join(path.read_bytes() for path in guards.ledger.parent.glob("ledger.db*"))
    return secret not in recorder.everything() and secret not in caplog.text and secret.encode() not in files


@pytest.mark.case("B17", "key added during the call")
def test_what_a_tool_adds_to_its_arguments_is_in_no_record(
    guard: Guard, guards: Guards, recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    args: dict[str, Any] = {"path": "/v1/c/8", "headers": {}}

    def crm_get(path: str, headers: dict[str, str]) -> dict[str, object]:
        headers["X-Api-Key"] = KEY
        return {"id": 8}

    with guard.run() as run:
        run.call("crm_get", args, crm_get)
    assert args["headers"] == {"X-Api-Key": KEY}  # the tool was given the real thing, not the picture of it
    assert recorded(guard, run.id, recorder) == {"path": "/v1/c/8", "headers": {}}
    guard.ledger.flush()
    assert is_nowhere(KEY, guards, recorder, caplog)


@pytest.mark.case("B17", "key in the call itself")
def test_a_key_among_the_arguments_is_redacted_by_its_name_at_any_depth(
    guard: Guard, guards: Guards, recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    given: list[dict[str, object]] = []
    args: dict[str, object] = {"path": "/x", "api_key": KEY, "nested": [{"password": "p"}]}
    with guard.run() as run:
        run.call("crm_get", args, answering({"id": 8}, given))
    assert given == [args]
    assert recorded(guard, run.id, recorder) == {
        "path": "/x",
        "api_key": "[redacted]",
        "nested": [{"password": "[redacted]"}],
    }
    guard.ledger.flush()
    assert is_nowhere(KEY, guards, recorder, caplog)


@pytest.mark.case("B17", "key in a URL of an exception text")
@pytest.mark.parametrize("policy", ["balanced", "strict"])
def test_a_key_in_the_text_of_an_exception_reaches_no_record(
    guards: Guards, recorder: Recorder, caplog: pytest.LogCaptureFixture, policy: str
) -> None:
    caplog.set_level(logging.DEBUG)
    guard = guards(
        policy=policy,
        tools={"crm_get": {"effect": "read"}},
        tracer_provider=recorder.tracers,
        meter_provider=recorder.meters,
        logger_provider=recorder.loggers,
        content={"spans": True},
    )

    def crm_get(path: str) -> None:
        raise HTTPError(f"GET https://api.test/x?key={KEY} failed")

    run = guard.run()
    with pytest.raises((HTTPError, RunStopped)) as caught, run:
        run.wrap(crm_get)("/x")
    assert str(recorder.attributes("execute_tool crm_get")["error.type"]).endswith("HTTPError")
    assert "api.test" in outcome_of(history_of(guard, run.id), 1).message
    guard.ledger.flush()
    assert is_nowhere(KEY, guards, recorder, caplog)
    if policy == "strict":
        assert KEY not in str(caught.value)
        assert "api.test" in str(caught.value)


@pytest.mark.case("B17", "key in the result")
def test_a_key_in_the_result_reaches_no_record(
    guard: Guard, guards: Guards, recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    with guard.run() as run:
        assert run.call("crm_get", {}, answering({"token": KEY, "id": 8})) == {"token": KEY, "id": 8}
    assert json.loads(recorder.attributes("execute_tool crm_get")[RESULT]) == {"token": "[redacted]", "id": 8}
    guard.ledger.flush()
    assert is_nowhere(KEY, guards, recorder, caplog)


class Client:
    """An object that cannot be copied."""

    def __init__(self) -> None:
        self.lock = threading.RLock()


@pytest.mark.case("B17", "argument holds a lock")
def test_an_argument_that_holds_a_lock_is_recorded_by_its_type(guard: Guard, recorder: Recorder) -> None:
    client = Client()
    given: list[dict[str, object]] = []
    with guard.run() as run:
        run.call("crm_get", {"client": client}, answering({"ok": True}, given))
    assert given[0]["client"] is client
    assert recorded(guard, run.id, recorder) == {"client": "<Client>"}


@pytest.mark.case("B17", "argument is a generator or file")
def test_a_file_or_generator_among_the_arguments_is_not_consumed(
    guard: Guard, recorder: Recorder, tmp_path: Path
) -> None:
    path = tmp_path / "report.txt"
    path.write_text("all of it")

    def crm_get(f: Any, rows: Iterator[int]) -> dict[str, object]:
        return {"text": f.read(), "rows": list(rows)}

    with path.open() as file, guard.run() as run:
        result = run.call("crm_get", {"f": file, "rows": (n for n in range(3))}, crm_get)
    assert result == {"text": "all of it", "rows": [0, 1, 2]}
    assert recorded(guard, run.id, recorder) == {"f": "<TextIOWrapper>", "rows": "<generator>"}


@pytest.mark.case("B17", "content capture off")
def test_with_content_off_no_arguments_are_in_spans_and_duplicates_are_told_all_the_same(
    guards: Guards, recorder: Recorder
) -> None:
    guard = guards(
        tools={"crm_set": {"effect": "write", "once_per": ["api_key", "path"]}}, tracer_provider=recorder.tracers
    )
    args = {"path": "/x", "api_key": KEY}
    with guard.run() as run:
        run.call("crm_set", args, answering({"ok": True}))
        with pytest.raises(CallRefused, match="already done"):
            run.call("crm_set", args, answering({"ok": True}))
        # Told by what was really given, not by the redacted picture of it.
        run.call("crm_set", {**args, "api_key": "sk-test-001"}, answering({"ok": True}))
    calls = [span for span in recorder.spans if span.name == "execute_tool crm_set"]
    assert len(calls) == 3
    assert all(name not in (span.attributes or {}) for span in calls for name in (ARGUMENTS, RESULT))


@pytest.mark.case("B17", "harmless names")
def test_names_that_only_look_like_secrets_are_left_alone(guard: Guard, recorder: Recorder) -> None:
    args: Mapping[str, object] = {"token_count": 5, "keyboard": "de", "author": "kim"}
    with guard.run() as run:
        run.call("crm_get", args, answering({"ok": True}))
    assert recorded(guard, run.id, recorder) == args
