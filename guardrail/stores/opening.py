"""Opening a store: from a URL, a path, or a factory of connections."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from guardrail.errors import StoreError
from guardrail.stores.sqlite.sessions import Factory, File
from guardrail.stores.sqlite.store import SqliteStore
from guardrail.stores.store import Store

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
