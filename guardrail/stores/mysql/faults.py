"""What went wrong with MariaDB or MySQL, in words that hold no values of rows or parameters and no passwords."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from pymysql import Error, InterfaceError
from pymysql.constants import ER

from guardrail.errors import StoreError
from guardrail.stores.answers import NARROW

_CLIENT: Final = range(2000, 3000)
"""Errors of the driver's own: the connection could not be made, or was lost."""
_LOST: Final = frozenset({ER.SERVER_SHUTDOWN, 1927, 3169, 4031})
"""The connection is ended: the server stops, it was killed (MariaDB, MySQL), it was idle for too long (MySQL)."""
_LATE: Final = frozenset({ER.STATEMENT_TIMEOUT, ER.QUERY_TIMEOUT, ER.LOCK_WAIT_TIMEOUT})
_KEPT_OUT: Final = frozenset({ER.ACCESS_DENIED_ERROR, 1698, ER.HOST_NOT_PRIVILEGED, 3118, 3955, 4151})
"""Wrong credentials, the wrong way to log in or the wrong host, and accounts that are locked."""
_FORBIDDEN: Final = frozenset(
    {ER.DBACCESS_DENIED_ERROR, ER.TABLEACCESS_DENIED_ERROR, ER.COLUMNACCESS_DENIED_ERROR}
    | {ER.SPECIFIC_ACCESS_DENIED_ERROR, ER.PROCACCESS_DENIED_ERROR}
)
_HARMLESS: Final = frozenset(
    {ER.NO_SUCH_TABLE, ER.BAD_DB_ERROR, ER.BAD_FIELD_ERROR, ER.NON_UNIQ_ERROR, ER.SP_DOES_NOT_EXIST}
    | {ER.WRONG_FIELD_WITH_GROUP, ER.MIX_OF_GROUP_FUNC_AND_FIELDS, ER.UNKNOWN_SYSTEM_VARIABLE}
    | {ER.CANT_AGGREGATE_2COLLATIONS, ER.CANT_AGGREGATE_3COLLATIONS, ER.CANT_AGGREGATE_NCOLLATIONS}
    | {ER.SUBQUERY_NO_1_ROW, ER.OPERAND_COLUMNS, ER.WRONG_NUMBER_OF_COLUMNS_IN_SELECT, ER.VIEW_INVALID}
    | {ER.TABLE_DEF_CHANGED, ER.CON_COUNT_ERROR, ER.USER_LIMIT_REACHED, ER.TOO_MANY_USER_CONNECTIONS}
    | {ER.NOT_KEYFILE, ER.CRASHED_ON_USAGE, ER.NET_PACKET_TOO_LARGE, ER.HOST_IS_BLOCKED}
)
"""Errors whose messages name objects of the database and nothing else; others may quote the query, and so its values."""

_WORDS: Final[Mapping[int, str]] = {
    1525: "a value is none of its type",
    1690: "a number is out of range",
    1792: "the transaction is read-only",
    3140: "a text is not JSON",
    3141: "a text is not JSON",
    3143: "a path into JSON is none",
}
"""Errors that the driver has no name for."""

_TIMEOUT: Final = f"it took longer than the store's timeout; {NARROW}, or raise the timeout"


def is_away(error: Error) -> bool:
    """Whether the connection is gone, rather than a statement refused."""
    code = _code(error)
    return isinstance(error, InterfaceError) or code in _CLIENT or code in _LOST


def reason(error: Exception) -> str:
    """What went wrong and what to do."""
    match error:
        case TimeoutError():
            return _TIMEOUT
        case Error():
            return _said(error)
        case StoreError():
            return str(error)
        case _:
            return f"{type(error).__name__}: {error}"


def _said(error: Error) -> str:
    code, message = _code(error), _message(error)
    if code in _LATE:
        return _TIMEOUT
    if is_away(error):
        return f"it cannot be reached: {message}"
    if code in _KEPT_OUT:
        return f"its user was not let in ({code}): check the store's URL and its credentials"
    if code in _FORBIDDEN:
        return f"{message}: grant SELECT to the store's user"
    if code in _HARMLESS or not code:
        return message
    return f"{_names().get(code, 'the server refused it with its error')} ({code})"


def _code(error: Error) -> int:
    """The number of the error, 0 where it has none: then the driver speaks."""
    return error.args[0] if error.args and isinstance(error.args[0], int) else 0


def _message(error: Error) -> str:
    lines = str(error.args[-1]).splitlines() if error.args else []
    return lines[0] if lines else "the connection is closed"


@cache
def _names() -> Mapping[int, str]:
    """The server's errors in words, such as "parse error"."""
    words = {code: name.replace("_", " ").lower() for name, code in vars(ER).items() if isinstance(code, int)}
    return {**words, **_WORDS}
