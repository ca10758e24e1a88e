"""How far a server has come: what a primary has written, and whether a replica has it already."""

from __future__ import annotations

from guardrail.errors import StoreError
from guardrail.stores.looks import Statement
from guardrail.stores.mysql.drivers import run
from guardrail.stores.mysql.settings import Connection, is_mariadb

_MARIADB = "SELECT @@GLOBAL.log_bin, @@GLOBAL.gtid_binlog_pos"
_MYSQL = "SELECT @@GLOBAL.log_bin AND @@GLOBAL.gtid_mode = 'ON', @@GLOBAL.gtid_executed"


def position(connection: Connection) -> str:
    """What the server has committed until now, in global transaction ids. Raises `StoreError` where it keeps none."""
    mariadb = is_mariadb(connection)
    [(logs, text)] = run(connection, Statement(_MARIADB if mariadb else _MYSQL)).rows
    if not logs:
        needed = "`log_bin`" if mariadb else "`log_bin` and `gtid_mode = ON`"
        raise StoreError(f"it keeps no log for replicas: set {needed} on the primary")
    return str(text).replace("\n", "")


def has_reached(connection: Connection, position: str, seconds: float) -> bool:
    """Whether the server has what another had at this position, or gets it within so many seconds.

    It may not be asked within a snapshot, which would go on showing what was there before. Raises `StoreError`
    where the server cannot say.
    """
    function = "MASTER_GTID_WAIT" if is_mariadb(connection) else "WAIT_FOR_EXECUTED_GTID_SET"
    values = {"position": position, "seconds": seconds}
    [(answer,)] = run(connection, Statement(f"SELECT {function}(%(position)s, %(seconds)s)", values)).rows
    if answer is None:
        raise StoreError("it cannot wait for what its primary has; is it a replica?")
    return answer == 0
