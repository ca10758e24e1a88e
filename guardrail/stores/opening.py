"""Opening a store: from a URL, a path, or what a driver connects by."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, cast

from guardrail.errors import StoreError
from guardrail.query.proof import Dialect
from guardrail.stores.replicated import Positioned, ReplicatedStore
from guardrail.stores.sqlite.sessions import Factory, File
from guardrail.stores.sqlite.store import SqliteStore
from guardrail.stores.store import Store

if TYPE_CHECKING:
    from guardrail.stores.http.api import Api

S = TypeVar("S")

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_FORMS: Final = (
    "a URL (`sqlite:///relative.db`, `sqlite:////absolute.db`, `postgresql://user@host/name`, "
    "`mysql://user@host/name`), the path of a SQLite file, or a callable, a connection or a pool of its driver"
)
_SCHEMES: Final[Mapping[str, Dialect]] = {
    "sqlite": "sqlite",
    "postgres": "postgres",
    "postgresql": "postgres",
    "mysql": "mysql",
    "mariadb": "mysql",
}


def open_store(name: str, where: object, timeout: float, dialect: Dialect | None = None) -> Store:
    """Open the store called `name`; the database itself is first touched by a look.

    `where` is a URL, the path of a SQLite file, a connection or a pool of the driver's, or a callable that answers
    one of these whenever the store is looked at. `dialect` is the declared one, which tells whose a callable is (SQLite's,
    if left out). A relative path is relative to the working directory of now. `timeout` bounds one look, in
    seconds. Raises `StoreError` for what is none of these, or where the driver is not installed.
    """
    _check_timeout(name, timeout)
    if isinstance(where, str | Path) and "\0" in str(where):
        raise StoreError(f"the store {name} cannot be opened: its path holds a NUL character")
    match _dialect(where, dialect):
        case "sqlite":
            return _sqlite(name, where, timeout)
        case "postgres":
            return _postgres(name, where, timeout)
        case "mysql":
            return _mysql(name, where, timeout)
        case _:
            raise StoreError(f"the store {name} has a scheme that is not supported; give {_FORMS}")


def open_replicated(name: str, where: object, replica: str, timeout: float, dialect: Dialect | None = None) -> Store:
    """Open a store whose looks go to a replica of the server at `where`; otherwise as `open_store`."""
    primary, copy = open_store(name, where, timeout, dialect), open_store(name, replica, timeout)
    return ReplicatedStore(cast("Positioned", primary), cast("Positioned", copy), timeout)


def _check_timeout(name: str, timeout: float) -> None:
    if timeout <= 0:
        raise StoreError(f"the timeout of the store {name} must be more than 0 s, not {timeout:g}")


def _dialect(where: object, declared: Dialect | None) -> Dialect | None:
    """Whose database it is: a URL says so; of anything else it is known from the declaration. None: nobody's."""
    if isinstance(where, Path):
        return "sqlite"
    if not isinstance(where, str):
        return declared or "sqlite"
    scheme = _SCHEME.match(where)
    return "sqlite" if scheme is None else _SCHEMES.get(scheme[1].lower().partition("+")[0])


def _sqlite(name: str, where: object, timeout: float) -> Store:
    if callable(where):
        return SqliteStore(name, Factory(where), timeout)
    if isinstance(where, Path):
        return SqliteStore(name, File(where.absolute()), timeout)
    if isinstance(where, str):
        return SqliteStore(name, File(_path(name, where).absolute()), timeout)
    raise StoreError(f"the store {name} cannot be opened from {type(where).__name__}; give {_FORMS}")


def open_api(name: str, where: object, api: Api, timeout: float) -> Store:
    """Open the HTTP store called `name`; the server is first asked by a look.

    `where` is a URL in the place of the declared one, a mapping with `url` and `headers` or one of them, or a function
    that returns one of these for every look; None: as declared. Raises `StoreError` for what is none of these, and
    when a file of certificates cannot be read.
    """
    _check_timeout(name, timeout)
    # Imported with the first such store: what speaks HTTP is no light import.
    from guardrail.stores.http.sources import Source
    from guardrail.stores.http.store import HttpStore

    return HttpStore(name, api, Source(name, api.place, where), timeout)


def _postgres(name: str, where: object, timeout: float) -> Store:
    try:
        from guardrail.stores.postgres import connections, store
    except ImportError as error:
        raise StoreError(_uninstalled(name, "psycopg", "postgres", error)) from error
    return store.PostgresStore(name, _given(name, lambda: connections.source(where, timeout)), timeout)


def _mysql(name: str, where: object, timeout: float) -> Store:
    try:
        from guardrail.stores.mysql import connections, store
    except ImportError as error:
        raise StoreError(_uninstalled(name, "PyMySQL", "mysql", error)) from error
    return store.MysqlStore(name, _given(name, lambda: connections.source(where, timeout)), timeout)


def _given(name: str, open_source: Callable[[], S]) -> S:
    """What was opened; an error names the store."""
    try:
        return open_source()
    except StoreError as error:
        raise StoreError(f"the store {name} cannot be opened: {error}") from error


def _uninstalled(name: str, driver: str, extra: str, error: ImportError) -> str:
    return (
        f"the store {name} needs {driver}, which is not installed ({error}): pip install 'guardrail-runtime[{extra}]'"
    )


def _path(name: str, where: str) -> Path:
    path = _of_url(name, where)
    if not path or path.startswith(":memory:"):
        raise StoreError(
            f"the store {name} would be a database in memory of its own, that nobody else can write; give a file, "
            "or a callable that opens `file:name?mode=memory&cache=shared`"
        )
    return Path(path)


def _of_url(name: str, text: str) -> str:
    """The path that a URL names, or the path itself."""
    scheme = _SCHEME.match(text)
    if scheme is None:
        return text
    rest = text[scheme.end() :]
    if (rest.strip("/") and not rest.startswith("///")) or "?" in rest:
        raise StoreError(f"the store {name} has a SQLite URL with a host or with options; give {_FORMS}")
    return rest.removeprefix("///") if rest.startswith("///") else ""
