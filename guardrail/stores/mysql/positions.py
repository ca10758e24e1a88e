"""How far a MariaDB or MySQL server is in the stream of changes, in global transaction ids."""

from __future__ import annotations

from typing import Final

from guardrail.query.proof import Query
from guardrail.stores.store import Ask

# MariaDB alone reads what stands in /*M! */, MySQL what stands in /*!80000 */; neither knows the other's names.
_PRIMARY: Final = """
    SELECT CAST(@@GLOBAL.read_only AS CHAR) NOT IN ('0', 'OFF') OR /*M! (
               SELECT VARIABLE_VALUE > 0 FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'SLAVES_RUNNING'
           ) */ /*!80000 FALSE */ AS is_replica,
           IF(@@GLOBAL.log_bin /*!80000 AND @@GLOBAL.gtid_mode = 'ON' */,
              /*M! @@GLOBAL.gtid_binlog_pos */ /*!80000 REPLACE(@@GLOBAL.gtid_executed, '\\n', '') */,
              NULL) AS position
"""
_REACHED: Final = """
    SELECT /*M! @@GLOBAL.gtid_slave_pos <> '' OR (
               SELECT VARIABLE_VALUE > 0 FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'SLAVES_RUNNING'
           ) */ /*!80000 TRUE */ AS is_replica,
           /*M! MASTER_GTID_WAIT(%(position)s, 0) = 0 */
           /*!80000 GTID_SUBSET(%(position)s, @@GLOBAL.gtid_executed) */ AS reached
"""


class MysqlPositions:
    """Positions in the binary log; see `Positions`. MySQL tells an ordinary user of a replica only that it is read-only."""

    needed = "set `log_bin`, and `gtid_mode = ON` for MySQL"

    def primary(self) -> Ask:
        """See `Positions`."""
        return Ask(Query(_PRIMARY, "mysql", _PRIMARY, (), ()))

    def reached(self, position: str) -> Ask:
        """See `Positions`."""
        return Ask(Query(_REACHED, "mysql", _REACHED, ("position",), ()), {"position": position})
