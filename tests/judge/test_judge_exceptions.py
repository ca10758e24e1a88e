"""What a call came to whose tool raised."""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
from collections.abc import Callable
from concurrent.futures import CancelledError as FutureCancelled
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pydantic
import pytest

from guardrail.calls import Effect, Judgement, Outcome, Raised, Returned
from guardrail.declare import bundled
from guardrail.declare.tools import Tool
from guardrail.errors import RunHalted
from guardrail.judge.result import ResultRules, judge, open_value

RULES = ResultRules.of(Tool(), bundled.sentences())


def came_to(error: BaseException, effect: Effect = "write", **tool: Any) -> Judgement:
    return judge(Raised(error), effect, ResultRules.of(Tool(**tool), bundled.sentences()) if tool else RULES)


def raised_by(action: Callable[[], object]) -> BaseException:
    with pytest.raises(BaseException) as caught:  # noqa: PT011  # of every kind
        action()
    return caught.value


def named(
    name: str, *bases: str, module: str = "client", words: str = "it went wrong", **attributes: object
) -> BaseException:
    """An exception as a library that is not installed here would raise it."""
    cls: type[Exception] = Exception
    for base in reversed(bases):
        cls = cast("type[Exception]", type(base, (cls,), {"__module__": module}))
    return cast("type[Exception]", type(name, (cls,), {"__module__": module, **attributes}))(words)


def rpc_error(code: str) -> BaseException:
    def told(_: object) -> SimpleNamespace:
        return SimpleNamespace(name=code)

    return named("_InactiveRpcError", "RpcError", code=told)


def broken(_: object) -> object:
    raise RuntimeError("no attribute")


def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def validation_error() -> BaseException:
    class Amount(pydantic.BaseModel):
        cents: int

    return raised_by(lambda: Amount.model_validate({"cents": "many"}))


def sql_error(statement: str) -> BaseException:
    connection = sqlite3.connect(":memory:")
    connection.execute("create table t (id integer primary key, n not null)")
    connection.execute("insert into t values (1, 1)")
    try:
        return raised_by(lambda: connection.execute(statement))
    finally:
        connection.close()


def http_error(status: int) -> BaseException:
    response = httpx.Response(status, request=httpx.Request("POST", "http://shop.test/"))
    return raised_by(response.raise_for_status)


def refused() -> BaseException:
    url = f"http://127.0.0.1:{closed_port()}/"
    return raised_by(lambda: httpx.post(url, trust_env=False))


REAL: list[tuple[str, Callable[[], BaseException], Outcome, Outcome]] = [
    ("a timeout", TimeoutError, "error", "in_doubt"),
    ("a read timeout of httpx", lambda: httpx.ReadTimeout("slow"), "error", "in_doubt"),
    ("a connect timeout of httpx", lambda: httpx.ConnectTimeout("slow"), "error", "error"),
    ("a full pool of httpx", lambda: httpx.PoolTimeout("full"), "error", "error"),
    ("a connection lost by httpx", lambda: httpx.RemoteProtocolError("gone"), "error", "in_doubt"),
    ("a refused connection of httpx", refused, "error", "error"),
    ("a refused connection", ConnectionRefusedError, "error", "error"),
    ("a reset connection", ConnectionResetError, "error", "in_doubt"),
    ("a broken pipe", BrokenPipeError, "error", "in_doubt"),
    ("an unknown host", lambda: socket.gaierror(-2, "unknown"), "error", "error"),
    ("a cancellation", asyncio.CancelledError, "cancelled", "in_doubt"),
    ("a cancelled future", FutureCancelled, "cancelled", "in_doubt"),
    ("an interrupt", KeyboardInterrupt, "cancelled", "in_doubt"),
    ("an exit with the code 404", lambda: SystemExit(404), "cancelled", "in_doubt"),
    ("the guard's own signal", lambda: RunHalted(SimpleNamespace()), "cancelled", "in_doubt"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ("HTTP 500", lambda: http_error(500), "error", "in_doubt"),
    ("HTTP 400", lambda: http_error(400), "error", "error"),
    ("HTTP 403", lambda: http_error(403), "rejected", "rejected"),
    ("HTTP 404", lambda: http_error(404), "empty", "rejected"),
    ("HTTP 409", lambda: http_error(409), "rejected", "rejected"),
    ("HTTP 408", lambda: http_error(408), "error", "in_doubt"),
    ("a validation by pydantic", validation_error, "error", "error"),
    ("a value that is refused", lambda: ValueError("amount must be positive"), "error", "error"),
    ("a value that is not there", lambda: ValueError("order not found"), "empty", "rejected"),
    ("a value that a rule forbids", lambda: ValueError("order 17 cannot be refunded"), "rejected", "rejected"),
    ("a value error without text", ValueError, "error", "error"),
    ("an answer that is no JSON", lambda: raised_by(lambda: json.loads("<")), "error", "in_doubt"),
    ("an answer that is no text", lambda: raised_by(b"\xff".decode), "error", "in_doubt"),
    ("a failed assertion", AssertionError, "error", "error"),
    ("a missing part of the tool", NotImplementedError, "error", "error"),
    ("a name that the tool's code does not know", UnboundLocalError, "error", "in_doubt"),
    ("a module that is not there", ModuleNotFoundError, "error", "in_doubt"),
    ("a missing file", lambda: FileNotFoundError(2, "No such file or directory"), "error", "error"),
    ("a forbidden file", PermissionError, "rejected", "rejected"),
    ("an error of its own", lambda: RuntimeError("429 Too Many Requests from ledger"), "error", "in_doubt"),
    ("a missing key", lambda: KeyError("id"), "error", "in_doubt"),
    ("an unfulfilled constraint", lambda: sql_error("insert into t values (1, 1)"), "rejected", "rejected"),
    ("an unknown table", lambda: sql_error("select * from u"), "error", "error"),
]


@pytest.mark.parametrize(("make", "read", "write"), [row[1:] for row in REAL], ids=[row[0] for row in REAL])
def test_an_exception_comes_to_what_it_says_about_the_call(
    make: Callable[[], BaseException], read: Outcome, write: Outcome
) -> None:
    error = make()
    assert (came_to(error, "read").outcome, came_to(error).outcome) == (read, write)
    assert came_to(error, "unknown").outcome == write


DANGLING = 'Key (booking_id)=(9) is not present in table "bookings".'


FOREIGN: list[tuple[str, BaseException, Outcome]] = [
    ("requests: read timeout", named("ReadTimeout", "Timeout", "RequestException"), "in_doubt"),
    ("requests: connect timeout", named("ConnectTimeout", "ConnectionError", "Timeout"), "error"),
    ("requests: no URL", named("MissingSchema", "RequestException"), "error"),
    ("aiohttp: cannot connect", named("ClientConnectorError", "ClientOSError", "ClientError"), "error"),
    ("aiohttp: disconnected", named("ServerDisconnectedError", "ClientError"), "in_doubt"),
    ("aiohttp: a status", named("ClientResponseError", "ClientError", status=503), "in_doubt"),
    ("urllib3: no connection", named("NewConnectionError", "ConnectTimeoutError"), "error"),
    ("urllib3: read timeout", named("ReadTimeoutError", "HTTPError"), "in_doubt"),
    ("psycopg: server gone", named("OperationalError", "DatabaseError"), "in_doubt"),
    ("psycopg: deadlock", named("DeadlockDetected", "OperationalError", "DatabaseError"), "error"),
    ("psycopg: unique", named("UniqueViolation", "IntegrityError", "DatabaseError"), "rejected"),
    ("psycopg: a row that points nowhere", named("ForeignKeyViolation", "IntegrityError", words=DANGLING), "rejected"),
    ("psycopg: syntax", named("SyntaxError", "ProgrammingError", "DatabaseError"), "error"),
    ("django: no row", named("DoesNotExist", "ObjectDoesNotExist"), "rejected"),
    ("google: gone", named("DeadlineExceeded", "GatewayTimeout", code=504), "in_doubt"),
    ("stripe: a card", named("CardError", "StripeError", http_status=402), "rejected"),
    ("openai: no connection", named("APIConnectionError", "APIError"), "in_doubt"),
    ("mcp: a request that timed out", named("McpError", error=SimpleNamespace(code=408)), "in_doubt"),
    ("mcp: no such tool", named("MCPError", error=SimpleNamespace(code=-32602)), "error"),
    ("mcp: a connection that was closed", named("MCPError", error=SimpleNamespace(code=-32000)), "in_doubt"),
    ("another's code", named("LedgerError", error=SimpleNamespace(code=-32602)), "in_doubt"),
    ("pydantic-ai: a tool that says that it failed", named("ToolFailed"), "error"),
    ("langchain: a tool's exception", named("ToolException"), "error"),
    ("grpc: deadline", rpc_error("DEADLINE_EXCEEDED"), "in_doubt"),
    ("grpc: unavailable", rpc_error("UNAVAILABLE"), "in_doubt"),
    ("grpc: not found", rpc_error("NOT_FOUND"), "rejected"),
    ("grpc: argument", rpc_error("INVALID_ARGUMENT"), "error"),
    ("grpc: a code that raises", named("_InactiveRpcError", "RpcError", code=broken), "in_doubt"),
    ("aws: a condition", named("ClientError", response={"Error": {"Code": "ConditionalCheckFailedException"}}), "rejected"),
    ("aws: a status", named("ClientError", response={"Error": {"Code": "Odd"}, "ResponseMetadata": {"HTTPStatusCode": 400}}), "error"),
    ("a provider's error after delivery", named("ApiError"), "in_doubt"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "outcome"), [row[1:] for row in FOREIGN], ids=[row[0] for row in FOREIGN])
def test_exceptions_of_clients_are_known_by_their_names(error: BaseException, outcome: Outcome) -> None:
    assert came_to(error).outcome == outcome


def test_a_connection_error_that_rests_on_a_refusal_was_never_sent() -> None:
    reason = named("MaxRetryError", reason=named("NewConnectionError"))
    error = type("ConnectionError", (OSError,), {"__module__": "requests.exceptions"})(reason)
    assert came_to(error).outcome == "error"


def test_an_error_raised_from_a_refusal_was_never_sent() -> None:
    def fail() -> None:
        try:
            raise ConnectionRefusedError
        except ConnectionRefusedError as error:
            raise RuntimeError("no ledger") from error

    assert came_to(raised_by(fail)).outcome == "error"


def test_a_chain_of_causes_that_closes_on_itself_ends() -> None:
    first, second = RuntimeError("a"), RuntimeError("b")
    first.__cause__, second.__cause__ = second, first
    assert came_to(first).outcome == "in_doubt"


def test_a_call_that_does_not_fit_the_signature_was_never_made() -> None:
    def refund(order_id: int) -> None: ...

    misfits: list[Callable[[], object]] = [
        lambda: refund(order=1),  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
        lambda: refund(),  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
        lambda: refund(1, 2),  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    ]
    assert [came_to(raised_by(misfit)).outcome for misfit in misfits] == ["error"] * 3
    assert came_to(raised_by(lambda: 1 + "1")).outcome == "in_doubt"  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue]


def test_not_found_from_an_unknown_exception_of_a_write_stays_in_doubt() -> None:
    assert came_to(RuntimeError("channel not found")).outcome == "in_doubt"
    assert came_to(RuntimeError("channel not found"), "read").outcome == "empty"


def test_a_group_comes_to_its_worst_exception() -> None:
    group = ExceptionGroup("two", [ValueError("bad"), ExceptionGroup("inner", [TimeoutError()])])
    assert (came_to(group).outcome, came_to(group, "read").outcome) == ("in_doubt", "error")
    assert came_to(ExceptionGroup("one", [ValueError("bad")])).outcome == "error"
    assert came_to(BaseExceptionGroup("one", [asyncio.CancelledError()]), "read").outcome == "cancelled"


def test_a_declared_exception_wins() -> None:
    raises = {"LedgerDown": "in_doubt", "client.Known": "rejected", "TimeoutError": "error"}
    assert came_to(named("LedgerDown"), "read", raises=raises).outcome == "in_doubt"
    assert came_to(named("Known"), raises=raises).outcome == "rejected"
    assert came_to(named("Known", module="other"), raises=raises).outcome == "in_doubt"
    assert came_to(TimeoutError(), raises=raises).outcome == "error"
    assert came_to(type("Slow", (TimeoutError,), {})(), raises=raises).sign == "declared"


def test_the_message_is_never_empty_and_bounded() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    assert came_to(ValueError()).message == "ValueError"
    assert came_to(KeyError("id")).message == "KeyError: 'id'"
    assert came_to(Mute()).message == "Mute"
    assert len(came_to(RuntimeError("x" * 10_000)).message) == 500


def test_an_exception_that_is_returned_counts_as_raised() -> None:
    judgement = judge(Returned(TimeoutError("slow")), "write", RULES)
    assert (judgement.outcome, judgement.sign) == ("in_doubt", "exception")


def test_an_exception_whose_attributes_raise_is_judged() -> None:
    names = ("response", "status", "code", "reason", "args", "__cause__")
    hostile = type("Hostile", (Exception,), {name: property(broken) for name in names})
    assert came_to(hostile("x")).outcome == "in_doubt"


def test_a_raised_error_has_no_value_to_read() -> None:
    assert open_value(Raised(ValueError("x")), RULES) is None


def test_a_row_that_points_nowhere_was_given_the_wrong_identifier() -> None:
    error = named("ForeignKeyViolation", "IntegrityError", "DatabaseError", words=DANGLING)
    assert came_to(error, "write").not_found
    assert not came_to(named("UniqueViolation", "IntegrityError", "DatabaseError"), "write").not_found


def refund(order_id: int) -> None:
    """A tool; whoever calls it calls `notify`, too."""
    notify()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def notify(order_id: int) -> None: ...


def raised_in(error: BaseException, tool: str) -> Outcome:
    return judge(Raised(error), "write", RULES, tool).outcome


def test_a_call_that_does_not_fit_the_tool_was_not_made_and_one_within_the_tool_is_in_doubt() -> None:
    does_not_fit = raised_by(lambda: refund())  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    assert raised_in(does_not_fit, "refund") == "error"
    assert raised_in(raised_by(lambda: refund(17)), "refund") == "in_doubt"


@pytest.mark.parametrize("wrapper", ["ToolError", "ToolException"])
def test_a_frameworks_word_for_a_failed_tool_is_in_doubt_where_it_stands_for_a_lost_call(wrapper: str) -> None:
    for cause, outcome in (
        (TimeoutError(), "in_doubt"),
        (ConnectionResetError(), "in_doubt"),
        (KeyError("id"), "error"),
    ):
        error = named(wrapper)
        error.__cause__ = cause
        assert raised_in(error, "refund") == outcome
