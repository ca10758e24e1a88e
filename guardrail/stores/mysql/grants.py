"""What a user of MariaDB or MySQL may do, from what the server says to SHOW GRANTS."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_GRANT: Final = re.compile(r"GRANT (?P<rights>.+?) ON (?P<place>(?P<database>\*|`(?:[^`]|``)*`)\.\S+) TO .*", re.DOTALL)
_COLUMNS: Final = re.compile(r"\s*\([^)]*\)")
_READING: Final = frozenset(
    {"USAGE", "SELECT", "SHOW VIEW", "SHOW DATABASES", "SHOW_ROUTINE", "PROCESS", "REFERENCES", "EXECUTE"}
    | {"REPLICATION CLIENT", "REPLICATION SLAVE", "BINLOG MONITOR", "SLAVE MONITOR", "REPLICA MONITOR"}
)
"""Rights by which no table is changed; what a function would write, the read-only transaction refuses."""


def beyond_reading(grants: Sequence[str], database: str) -> list[str]:
    """What the grants allow in a database beside reading, such as `UPDATE on shop.orders`."""
    found: list[str] = []
    for grant in map(_GRANT.fullmatch, grants):
        if grant is not None and _covers(grant["database"], database):
            rights = {right.strip().upper() for right in _COLUMNS.sub("", grant["rights"]).split(",")} - _READING
            place = grant["place"].replace("`", "")
            found += [f"{', '.join(sorted(rights))} on {place}"] if rights else []
    return found


def _covers(pattern: str, database: str) -> bool:
    """Whether a grant's database, in which `%` and `_` stand for any letters unless escaped, is this one."""
    if pattern == "*":
        return True
    parts: list[str] = re.findall(r"\\.|.", pattern[1:-1].replace("``", "`"), re.DOTALL)
    wild = {"%": ".*", "_": "."}
    expression = "".join(wild.get(part) or re.escape(part[-1]) for part in parts)
    return re.fullmatch(expression, database, re.DOTALL) is not None
