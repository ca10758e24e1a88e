"""What went wrong with PostgreSQL, in words that hold no values of rows and no passwords."""

from __future__ import annotations

from psycopg import DataError, Error, InterfaceError, OperationalError, errors

from guardrail.errors import StoreError
from guardrail.stores.answers import NARROW
from guardrail.stores.sources import told

_VALUES = ("22", "23", "P0")
"""Classes of errors whose messages quote values."""


def is_away(error: Exception) -> bool:
    """Whether the connection is gone, rather than a statement refused."""
    return isinstance(error, InterfaceError | OperationalError) and error.sqlstate in (None, "57P01", "57P02", "57P03")


def is_unreadable(error: Exception) -> bool:
    """Whether it is a value of the answer that psycopg could not make anything of."""
    return isinstance(error, DataError) and error.sqlstate is None


def reason(error: Exception) -> str:
    """What went wrong and what to do."""
    match error:
        case errors.LockNotAvailable():
            return "another's lock on it was held for longer than a look can wait, which is a part of the timeout: raise the timeout"
        case TimeoutError() | errors.QueryCanceled():
            return f"it took longer than the store's timeout; {NARROW}, or raise the timeout"
        case errors.InsufficientPrivilege():
            return f"{_said(error)}: grant SELECT to the store's role"
        case errors.InvalidPassword() | errors.InvalidAuthorizationSpecification():
            return f"its role was not let in ({error.sqlstate}): check the store's URL and its credentials"
        case OperationalError(sqlstate=None) | InterfaceError(sqlstate=None):
            return f"it cannot be reached: {_first_line(error)}"
        case Error(sqlstate=None) | UnicodeError():
            return f"a name or a value in it cannot be written or read ({type(error).__name__})"
        case Error():
            return _said(error)
        case StoreError():
            return str(error)
        case _:
            return told(error)


def _said(error: Error) -> str:
    """What the server says, without a message that may quote a value."""
    state = error.sqlstate or ""
    if state.startswith(_VALUES) or not error.diag.message_primary:
        return f"{_spaced(type(error).__name__)} ({state})"
    return error.diag.message_primary


def _spaced(name: str) -> str:
    """`DivisionByZero` as "division by zero"."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
