"""What an exception means: never sent, turned down, not there, given up, or in doubt.

A write that raised is in doubt unless its exception says that nothing was done. The design names the
two sides: a timeout, a lost connection, a 5xx and a cancellation are in doubt; a refused connection, a 4xx
and an exception of validation are an error. It is silent about all other exceptions, and there doubt is the
safe side: a tool that commits and then trips over the answer (a KeyError, a RuntimeError of its client) looks
from outside just like one that tripped before, and to repeat the first writes twice. So every exception that
is not known to come before the write counts as in doubt; a tool whose exceptions mean less declares `raises`.

Classes are known by their names along the method resolution order, so that no client library is imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from traceback import walk_tb
from typing import Final, cast

from guardrail.calls import Effect, Judgement, Outcome
from guardrail.judge.fields import Fields, fields_of, is_list, is_mapping, listed, peek
from guardrail.judge.meanings import LONGEST_MESSAGE, Meaning, conclude, of_code, of_status
from guardrail.judge.sentences import Sentences

# The call was given up, or the connection lost, when the other side may have had it.
_IN_DOUBT: Final = listed("""
    TimeoutError Timeout TimeoutException ReadTimeout WriteTimeout ServerTimeoutError ReadTimeoutError APITimeoutError
    SocketTimeoutError DeadlineExceeded GatewayTimeout RequestTimeout ConnectionError ConnectionResetError
    ConnectionAbortedError BrokenPipeError ConnectionClosed ConnectionClosedError RemoteDisconnected IncompleteRead
    BadStatusLine ProtocolError RemoteProtocolError ReadError WriteError CloseError NetworkError TransportError
    ServerDisconnectedError ClientOSError ClientPayloadError ClientConnectionError APIConnectionError ChunkedEncodingError
    ContentDecodingError SSLError OperationalError InterfaceError ServiceUnavailable InternalServerError BadGateway
    EndpointConnectionError JSONDecodeError UnicodeError ResponseValidationError
""")

# Nothing was sent: no connection, no such address, or a request that could not be made.
_NOT_SENT: Final = listed("""
    ConnectionRefusedError gaierror ConnectError ConnectTimeout ConnectTimeoutError ConnectionTimeoutError PoolTimeout
    NewConnectionError NameResolutionError ClientConnectorError ClientConnectorDNSError ClientConnectorCertificateError
    SSLCertVerificationError UnsupportedProtocol LocalProtocolError InvalidURL InvalidSchema MissingSchema InvalidHeader
    NonHttpUrlClientError NoCredentialsError
""")

# The call was turned down as it was given; a transaction that the database rolled back was not carried out. By
# NotImplementedError Python means an operation that is still to be written, which so has done nothing. Not here stand the
# mistakes of a tool's own code (NameError, ImportError): it trips over them behind the write as well as before.
_INVALID: Final = listed("""
    ValueError ValidationError AssertionError NotImplementedError ToolException ToolError
    ModelRetry ProgrammingError DataError NotSupportedError SerializationFailure DeadlockDetected LockNotAvailable
    FileNotFoundError FileExistsError IsADirectoryError NotADirectoryError BadRequest BadRequestError InvalidArgument
    Unauthorized Unauthenticated AuthenticationError TooManyRequests RateLimitError ParamValidationError
    sqlite3.OperationalError ToolFailed
""")

_REJECTED: Final = listed("""
    PermissionError PermissionDenied PermissionDeniedError Forbidden ForbiddenError AccessDenied IntegrityError Conflict
    ConflictError AlreadyExists FailedPrecondition UnprocessableEntity UnprocessableEntityError ConditionalCheckFailedException
""")

_NOT_THERE: Final = listed("NotFound NotFoundError DoesNotExist ObjectDoesNotExist NoResultFound")


def _all(names: tuple[str, ...], meaning: Meaning) -> dict[str, Meaning]:
    return dict.fromkeys(names, meaning)


_CLASSES: Final[Mapping[str, Meaning]] = {
    "CancelledError": "cancelled",
    **_all(_IN_DOUBT, "in_doubt"),
    **_all((*_NOT_SENT, *_INVALID), "error"),
    **_all(_REJECTED, "rejected"),
    **_all(_NOT_THERE, "empty"),
}
_WRAPPERS: Final = frozenset(listed("ToolException ToolError ToolFailed ModelRetry"))
"""What frameworks have for a tool that failed, whatever it failed of."""

_READABLE: Final = _WRAPPERS | {"ValueError"}
# A database's words for a row that points to one that is not there.
_DANGLING: Final = re.compile(r"is not present in table|cannot add or update a child row", re.IGNORECASE)
_NOT_FOUND_CLASS: Final = re.compile(
    r"(?!File|Module).*(?:NotFound(?:Error|Exception)?|DoesNotExist(?:Error|Exception)?)"
)

# The interpreter's words for a call that does not fit the tool's signature: raised before its first line runs.
_MISFIT: Final = re.compile(
    r"(?:[\w.<>]+\.)?(?P<function>[\w<>]+)\(\) (?:got (?:an unexpected keyword argument|multiple values for argument|some positional-only arguments)|"
    r"missing \d+ required|takes (?:no|from|exactly|at most|\d+)).*",
    re.DOTALL,
)
_MOST_LEAVES: Final = 20
_LONGEST_CHAIN: Final = 8

# The worst first: what a group of exceptions comes to.
_SEVERITY: Final[tuple[Meaning, ...]] = ("in_doubt", "error", "rejected", "empty", "cancelled")


def judge_raised(
    error: BaseException, effect: Effect, sentences: Sentences, declared: Mapping[str, Outcome], tool: str = ""
) -> Judgement:
    """What a call came to whose tool raised. `declared` gives the outcome by class name, and wins; `tool` is its name."""
    message = described(error)
    for name in _names(error) if declared else ():
        if name in declared:
            return Judgement(declared[name], "declared", message)
    return conclude(_meaning(error, effect, sentences, tool), effect, "exception", message)


def described(error: BaseException) -> str:
    """The class and the words of an exception; never empty, whatever its own text does."""
    return f"{type(error).__name__}: {text}"[:LONGEST_MESSAGE] if (text := _text(error)) else type(error).__name__


def _text(error: BaseException) -> str:
    try:
        return str(error).strip()
    except Exception:  # noqa: BLE001  # an exception's own __str__ may raise anything; its class still says something
        return ""


def _names(error: BaseException) -> Iterator[str]:
    """The names of an exception's classes, the most special first, each with and without its module."""
    for cls in type(error).__mro__:
        yield f"{cls.__module__}.{cls.__name__}"
        yield cls.__name__


def _meaning(error: BaseException, effect: Effect, sentences: Sentences, tool: str) -> Meaning:
    leaves = _leaves(error)
    if leaves[0] is not error:
        return _worst({_meaning(leaf, effect, sentences, tool) for leaf in leaves})
    if not isinstance(error, Exception):  # a cancellation, an interrupt, an exit, the guard's own signal
        return "cancelled"
    if (coded := _coded(error)) is not None:
        return coded
    name = next((name for name in _names(error) if name in _CLASSES), None)
    meaning = _CLASSES.get(name or "")
    if meaning in ("in_doubt", None) and _was_never_sent(error):
        return "error"
    if name == "IntegrityError" and _DANGLING.search(_text(error)):
        return "empty"
    if isinstance(error, TypeError) and _is_misfit(error, tool):
        return "error"
    if name in _WRAPPERS and _rests_on_doubt(error):
        return "in_doubt"
    return _read(error, name, meaning, effect, sentences)


def _is_misfit(error: TypeError, tool: str) -> bool:
    """Whether it was the tool's own call that did not fit, and not that of a function which the tool calls in its turn."""
    misfit = _MISFIT.fullmatch(_text(error))
    if misfit is None:
        return False
    return tool in ("", misfit["function"]) or _was_raised_by_the_call(error)


def _was_raised_by_the_call(error: BaseException) -> bool:
    """Whether no line of a tool's, or of a framework's, had run: the innermost frame is the guard's."""
    *_, (innermost, _) = walk_tb(error.__traceback__) if error.__traceback__ else [(None, 0)]
    return innermost is not None and str(innermost.f_globals.get("__name__")).startswith("guardrail.")


def _rests_on_doubt(error: BaseException) -> bool:
    """Whether a framework's word for a failed tool stands for a call that was given up or lost."""
    causes = [cause for name in ("__cause__", "inner_exception") if isinstance(cause := peek(error, name), Exception)]
    return any(
        _CLASSES.get(name) == "in_doubt" or (name in _RPC_ERRORS and _coded(cause) is None)
        for cause in causes
        for name in _names(cause)
    )


def _worst(meanings: Set[Meaning]) -> Meaning:
    worst: Meaning | None = next((meaning for meaning in _SEVERITY if meaning in meanings), None)
    return worst or "in_doubt"


def _read(
    error: BaseException, name: str | None, meaning: Meaning | None, effect: Effect, sentences: Sentences
) -> Meaning:
    """Let the words of an exception say more precisely what it means, where they can do no harm.

    Of a write only exceptions of validation are read: "not found" from an unknown exception may speak of
    a look that came after the write.
    """
    if name not in _READABLE and not (name is None and effect == "read"):
        return meaning or "in_doubt"
    said = sentences.read(_text(error))
    if said is None or said == "ok":
        return meaning or "in_doubt"
    return "empty" if said == "empty_list" else said


def _leaves(group: BaseException, depth: int = 10) -> list[BaseException]:
    if not isinstance(group, BaseExceptionGroup) or not depth:
        return [group]
    inner = cast("BaseExceptionGroup[BaseException]", group).exceptions[:_MOST_LEAVES]
    return [leaf for error in inner for leaf in _leaves(error, depth - 1)][:_MOST_LEAVES]


def _was_never_sent(error: BaseException) -> bool:
    """Whether an exception of a connection rests on one that says that there was none."""
    links = [error]
    for link in links:
        args = peek(link, "args")
        reasons = (peek(link, "reason"), peek(link, "__cause__"), *(args[:2] if is_list(args) else ()))
        links += [reason for reason in reasons if isinstance(reason, BaseException) and len(links) < _LONGEST_CHAIN]
    return any(name in _NOT_SENT for link in links for name in _names(link))


def _coded(error: BaseException) -> Meaning | None:
    """What the code, the HTTP status or the name of an exception's class says."""
    if (code := _code(error)) is not None:
        return code
    if (status := _status(error)) is not None:
        return of_status(status)
    return "empty" if _NOT_FOUND_CLASS.fullmatch(type(error).__name__) else None


def _status(error: BaseException) -> int | None:
    """The HTTP status from 400 on that an exception of a client carries, on itself or on its response."""
    for holder in (error, peek(error, "response"), peek(error, "resp"), peek(error, "error")):
        if holder is None:
            continue
        for name in ("status_code", "http_status", "status", "code"):
            status = peek(holder, name)
            if isinstance(status, int) and 400 <= status <= 599:
                return int(status)
    metadata = _inside(peek(error, "response"), "ResponseMetadata")
    status = metadata.get("HTTPStatusCode")
    return status if isinstance(status, int) and 400 <= status <= 599 else None


def _code(error: BaseException) -> Meaning | None:
    """The meaning of a code: gRPC's `code().name`, AWS's `response["Error"]["Code"]`, JSON-RPC's of an error of MCP."""
    named = _inside(peek(error, "response"), "Error").get("Code")
    if isinstance(named, str):
        return of_code(named)
    if peek(peek(error, "error"), "code") in _RPC_TURNED_DOWN and any(name in _RPC_ERRORS for name in _names(error)):
        return "error"
    code = peek(error, "code")
    if not callable(code) or not any(name == "RpcError" for name in _names(error)):
        return None
    try:
        name = peek(code(), "name")
    except Exception:  # noqa: BLE001  # a client's method may raise anything; then there is no code to go by
        return None
    return _GRPC.get(name, "in_doubt") if isinstance(name, str) else None


# No request, no such method, parameters that do not fit: JSON-RPC's codes for what was not carried out.
_RPC_TURNED_DOWN: Final = (-32700, -32600, -32601, -32602)
_RPC_ERRORS: Final = ("McpError", "MCPError")

_GRPC: Final[Mapping[str, Meaning]] = {
    "INVALID_ARGUMENT": "error",
    "UNAUTHENTICATED": "error",
    "UNIMPLEMENTED": "error",
    "OUT_OF_RANGE": "error",
    "RESOURCE_EXHAUSTED": "error",
    "NOT_FOUND": "empty",
    "ALREADY_EXISTS": "rejected",
    "PERMISSION_DENIED": "rejected",
    "FAILED_PRECONDITION": "rejected",
    "ABORTED": "rejected",
}


def _inside(holder: object, name: str) -> Fields:
    return (fields_of(holder.get(name)) or {}) if is_mapping(holder) else {}
