"""Names of spans, attributes, events and metrics: the one place where they are written.

The `gen_ai.*`, `db.*`, `http.*`, `server.*`, `url.*` and `error.*` names are those of the OpenTelemetry semantic conventions. The GenAI ones
are in development and have moved to a repository of their own, for which no package exists; so they are
written here as constants and a test compares them with the installed `opentelemetry-semantic-conventions`
wherever it still has them. Everything of the library's own is under `guardrail.`; nothing else is added under
a name of the conventions.

Values that are words of the library (outcome, effect, verdict) are those of `guardrail.calls`.

`error.type` is the class of the exception that ended the operation; `tool_error` for an error that a tool
returned; else `guardrail.` and the outcome or verdict: `guardrail.rejected`, `guardrail.empty`,
`guardrail.refused`, `guardrail.silent_failure`, `guardrail.stopped` and so on.
"""

from __future__ import annotations

from typing import Final

SCOPE: Final = "guardrail"
"""The name of the instrumentation scope."""

# Operations, and the first words of the spans' names: `invoke_agent {task}`, `execute_tool {tool}`.
INVOKE_AGENT: Final = "invoke_agent"
EXECUTE_TOOL: Final = "execute_tool"
VERIFY: Final = "guardrail.verify"
CHECK: Final = "guardrail.check"

# Conventions: what is being done.
OPERATION: Final = "gen_ai.operation.name"
AGENT_NAME: Final = "gen_ai.agent.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
SESSION_ID: Final = "session.id"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_CALL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_CALL_RESULT: Final = "gen_ai.tool.call.result"
ERROR_TYPE: Final = "error.type"

# Conventions: evaluations.
EVALUATION_NAME: Final = "gen_ai.evaluation.name"
EVALUATION_SCORE: Final = "gen_ai.evaluation.score.value"
EVALUATION_LABEL: Final = "gen_ai.evaluation.score.label"
EVALUATION_EXPLANATION: Final = "gen_ai.evaluation.explanation"

# Conventions: databases.
DB_SYSTEM: Final = "db.system.name"
DB_COLLECTION: Final = "db.collection.name"
DB_OPERATION: Final = "db.operation.name"
DB_SUMMARY: Final = "db.query.summary"
DB_TEXT: Final = "db.query.text"
DB_ROWS: Final = "db.response.returned_rows"

# Conventions: HTTP clients.
HTTP_METHOD: Final = "http.request.method"
HTTP_RESENDS: Final = "http.request.resend_count"
HTTP_STATUS: Final = "http.response.status_code"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
URL_FULL: Final = "url.full"
URL_TEMPLATE: Final = "url.template"

# A run.
RUN_ID: Final = "guardrail.run.id"
TASK_NAME: Final = "guardrail.task.name"
POLICY_NAME: Final = "guardrail.policy.name"
MODE: Final = "guardrail.mode"
VERDICT: Final = "guardrail.verdict"
FLAGGED: Final = "guardrail.flagged"
ALTERNATIVE: Final = "guardrail.alternative"
CALLS: Final = "guardrail.calls.total"
CALLS_WRITING: Final = "guardrail.calls.writing"
CALLS_REFUSED: Final = "guardrail.calls.refused"
OPEN_HOLDS: Final = "guardrail.holds.open"
FINDINGS: Final = "guardrail.findings.total"
STOP_REASON: Final = "guardrail.stop.reason"
STOP_CALL: Final = "guardrail.stop.call"

# A call.
CALL_NUMBER: Final = "guardrail.call.number"
CALL_EFFECT: Final = "guardrail.call.effect"
CALL_OUTCOME: Final = "guardrail.call.outcome"
CALL_EXECUTED: Final = "guardrail.call.executed"
CALL_SIGN: Final = "guardrail.call.sign"
DECISION: Final = "guardrail.decision"

# A look at the state.
STORE: Final = "guardrail.store"
CHECK_OUTCOME: Final = "guardrail.check.outcome"
VERIFICATION_OUTCOME: Final = "guardrail.verification.outcome"
LOOKS: Final = "guardrail.looks"
FINDING_KIND: Final = "guardrail.finding.kind"
FINDING_PLACE: Final = "guardrail.finding.place"
FINDING_COLUMN: Final = "guardrail.finding.column"

# Events.
EVALUATION_RESULT: Final = "gen_ai.evaluation.result"
DECIDED: Final = "guardrail.decision"
HOLD_RESOLVED: Final = "guardrail.hold.resolved"
USER_TURN: Final = "guardrail.user_turn"
ABANDONED: Final = "guardrail.run.abandoned"

# What is evaluated: the values of `gen_ai.evaluation.name` that are not names of checks.
RUN_EVALUATION: Final = "guardrail.run"
STATE_EVALUATION: Final = "guardrail.state"

# Metrics.
TOOL_DURATION: Final = "gen_ai.execute_tool.duration"
DECISIONS: Final = "guardrail.decisions"
RUNS: Final = "guardrail.runs"
VERIFICATION_DURATION: Final = "guardrail.verification.duration"
TELEMETRY_ERRORS: Final = "guardrail.telemetry.errors"

# Values.
TOOL_ERROR: Final = "tool_error"
OTHER: Final = "_OTHER"
"""What stands for every name beyond the first hundred; the conventions' word for it."""

CAPTURE_CONTENT: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The environment variable of the conventions that lets arguments and results into spans."""
