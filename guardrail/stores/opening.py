"""Opening a store: from a URL, a path, or a factory of connections."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from guardrail.errors import StoreError
from guardrail.stores.sqlite.sessions import Factory, File
from guardrail.stores.sqlite.store import SqliteStore
from guardrail.stores.store import Store

if TYPE_CHECKING:
    from guardrail.stores.http.api import Api

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_FORMS: Final = (
    "`sqlite:///relative.db`, `sqlite:////absolute.db`, a path, or a callable that opens a new sqlite3.Connection"
)


def open_store(name: str, where: object, timeout: float) -> Store:
    """Open the store called `name`; the database itself is first touched by a look.

    `where` is a SQLite URL, a path (text or `Path`), or a callable that returns a new `sqlite3.Connection` for
    every look, which is turned read-only and closed after it. A relative path is relative to the working
    directory of now. `timeout` bounds one look, in seconds. Raises `StoreError` for what is none of these.
    """
    if timeout <= 0:
        raise StoreError(f"the timeout of the store {name} must be more than 0 s, not {timeout:g}")
    if callable(where):
        return SqliteStore(name, Factory(where), timeout)
    if isinstance(where, str | Path) and "\0" in str(where):
        raise StoreError(f"the store {name} cannot be opened: its path holds a NUL character")
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
    # Imported with the first such store: what speaks HTTP is no light import.
    from guardrail.stores.http.sources import Source
    from guardrail.stores.http.store import HttpStore

    return HttpStore(name, api, Source(name, api.place, where), timeout)


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
    if scheme[1].lower() != "sqlite":
        raise StoreError(f"the store {name} has the scheme {scheme[1]}, which is not supported; give {_FORMS}")
    rest = text[scheme.end() :]
    if (rest.strip("/") and not rest.startswith("///")) or "?" in rest:
        raise StoreError(f"the store {name} has a SQLite URL with a host or with options; give {_FORMS}")
    return rest.removeprefix("///") if rest.startswith("///") else ""
