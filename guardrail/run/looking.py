"""A look at the live state by hand: a task's contract held against what is there now, without a run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from opentelemetry._logs import NoOpLoggerProvider
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.trace import NoOpTracerProvider

from guardrail.call.drivers import complete
from guardrail.calls import Verdict
from guardrail.errors import GuardrailError
from guardrail.ledger.ledger import Ledger
from guardrail.run.live import Live
from guardrail.run.verdicts import verdict_of
from guardrail.telemetry.traces import Telemetry
from guardrail.verification.inputs import Inputs
from guardrail.verification.verification import Verification

_WHY = "only the state of now was looked at"


def look_now(live: Live, task: str, inputs: Mapping[str, object]) -> Verdict:
    """What the state of now comes to under a task's contract; nothing is recorded.

    Judged are the checks, and of the expectations what can be told from the end alone; whatever needs a picture from
    before is a `check_error`. So the kind is `silent_failure` (something is wrong), `unverified` or `verified`.
    Raises `GuardrailError` when no such task is declared, `InputError` when the inputs do not fit it.
    """
    contract = live.contract(task)
    if contract is None:
        raise GuardrailError(live.why_no_contract(task))
    verification = Verification(
        "look",
        contract,
        inputs=Inputs(task, contract.task.inputs, inputs),
        stores=live.stores,
        ledger=Ledger(),
        trace=_silence().open_run("look", task, live.policy.name, live.policy.mode),
        secret=live.secret,
        opened=datetime.now(UTC),
    )
    complete(verification.go_without(_WHY))
    return verdict_of(complete(verification.judge(hurried=True)), stop=None, agent_error=None, open_holds=0)


def _silence() -> Telemetry:
    """Telemetry that tells nobody: a look by hand is no run."""
    return Telemetry(
        tracer_provider=NoOpTracerProvider(),
        meter_provider=NoOpMeterProvider(),
        logger_provider=NoOpLoggerProvider(),
    )
