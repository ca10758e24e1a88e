"""What a look needs of a session of MariaDB or MySQL, and how a session of the user's gets back what it had."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from math import ceil
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from pymysql.cursors import Cursor

from guardrail.stores.mysql.values import CONVERSIONS

if TYPE_CHECKING:
    import pymysql

Connection: TypeAlias = "pymysql.Connection[Any]"

SHARE: Final = 0.9
"""The part of a look's time that one statement may take, so that the server speaks before the connection is cut off."""

_MODES: Final = "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
_FIXED: Final[Mapping[str, object]] = {
    "time_zone": "+00:00",
    "character_set_client": "utf8mb4",
    "character_set_results": "utf8mb4",
    "collation_connection": "utf8mb4_bin",  # it decides where no column does: texts compare exactly
    "group_concat_max_len": 2**30,  # what is longer would be cut off without a word, as would
    "sql_select_limit": 2**64 - 1,  # rows beyond so many
    "sql_auto_is_null": 0,
    "div_precision_increment": 4,
    "default_week_format": 0,
    "lc_time_names": "en_US",
}
_CLIENT: Final[Mapping[str, object]] = {
    "encoding": "utf8",
    "use_unicode": True,
    "encoders": {kind: write for kind, write in CONVERSIONS.items() if not isinstance(kind, int)},
    "decoders": {kind: read for kind, read in CONVERSIONS.items() if isinstance(kind, int)},
}
"""What the driver itself knows of a connection."""


def is_mariadb(connection: Connection) -> bool:
    """Whether it leads to MariaDB; otherwise to MySQL."""
    return "mariadb" in _version(connection).lower()


def _version(connection: Connection) -> str:
    """What the server calls itself, such as `10.11.6-MariaDB` or `8.4.3`."""
    return str(cast("Any", connection).get_server_info())


def pin(connection: Connection, timeout: float) -> None:
    """Give a session of the store's own what a look needs. `timeout` bounds the look, in seconds."""
    _set(connection, _wanted(connection, timeout))


@contextmanager
def pinned(connection: Connection, timeout: float) -> Generator[None]:
    """Give a session of the user's the same for the length of the block."""
    wanted = _wanted(connection, timeout)
    client = {name: getattr(connection, name) for name in _CLIENT}
    _take_on(connection, _CLIENT)
    try:
        had = _values(connection, wanted)
        _set(connection, wanted)
        try:
            yield
        finally:
            if connection.open:
                _set(connection, had)
    finally:
        _take_on(connection, client)


def _wanted(connection: Connection, timeout: float) -> Mapping[str, object]:
    transaction = "tx" if _is_early_mariadb(_version(connection)) else "transaction"
    common = {
        **_FIXED,
        f"{transaction}_isolation": "REPEATABLE-READ",
        # Not only the transaction reads only: a CREATE or DROP ends it, and would be carried out behind it.
        f"{transaction}_read_only": 1,
        # Of a connection that was cut off in the middle of an answer the server may hear nothing; it holds the tables.
        "net_write_timeout": max(1, ceil(timeout)),
    }
    limit = timeout * SHARE
    if is_mariadb(connection):
        return {**common, "sql_mode": _MODES, "max_statement_time": limit}
    return {**common, "sql_mode": f"ONLY_FULL_GROUP_BY,{_MODES}", "max_execution_time": ceil(limit * 1000)}


def _is_early_mariadb(version: str) -> bool:
    """Whether it is MariaDB before 11.1, where variables of a transaction had another name."""
    release = _mariadb(version)
    return release is not None and release < (11, 1)


def _mariadb(version: str) -> tuple[int, int] | None:
    """The release of MariaDB, such as (10, 11); None of MySQL."""
    found = re.search(r"(\d+)\.(\d+)\.\d+-mariadb", version.lower())
    return None if found is None else (int(found[1]), int(found[2]))


def _values(connection: Connection, names: Mapping[str, object]) -> Mapping[str, object]:
    with connection.cursor(Cursor) as cursor:
        cursor.execute(f"SELECT {', '.join(f'@@SESSION.{name}' for name in names)}")
        [row] = cursor.fetchall()
    return dict(zip(names, row, strict=True))


def _set(connection: Connection, values: Mapping[str, object]) -> None:
    with connection.cursor(Cursor) as cursor:
        cursor.execute(f"SET {', '.join(f'SESSION {name} = %({name})s' for name in values)}", dict(values))


def _take_on(connection: Connection, attributes: Mapping[str, object]) -> None:
    for name, value in attributes.items():
        setattr(connection, name, value)
