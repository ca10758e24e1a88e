"""What `doctor` tells of a MariaDB or MySQL store."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from guardrail.errors import StoreError
from guardrail.pictures import Rows, Table, Unanswered
from guardrail.query.proof import Query
from guardrail.stores.mysql.grants import beyond_reading
from guardrail.stores.mysql.types import quoted_table
from guardrail.stores.store import Ask, Remark, tables_of

if TYPE_CHECKING:
    from guardrail.stores.store import Store

_SERVER: Final = """
    SELECT DATABASE() AS name, SUBSTRING_INDEX(CURRENT_USER(), '@', 1) AS user,
           CAST(@@GLOBAL.read_only AS CHAR) NOT IN ('0', 'OFF') AS is_read_only, VERSION() LIKE '%%MariaDB%%' AS is_mariadb
"""
_UNSAFE: Final = """
    SELECT TABLE_NAME AS name, ENGINE AS engine FROM information_schema.TABLES
    WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')
      AND ENGINE NOT IN (SELECT ENGINE FROM information_schema.ENGINES WHERE TRANSACTIONS = 'YES')
    ORDER BY 1
"""
_EVERYTHING: Final = re.compile(r"(ALL PRIVILEGES|(.*, )?SUPER(, .*)?) on \*\.\*")


def remarks(store: Store) -> tuple[Remark, ...]:
    """What should be known of the store before it is relied on."""
    try:
        tables = tables_of(store)
        [server] = _rows(store, _SERVER)
        grants = [str(grant) for row in _rows(store, "SHOW GRANTS") for grant in row.values()]
        unsafe = _rows(store, _UNSAFE)
    except StoreError as error:
        return (Remark("error", store.name, str(error)),)
    return (
        *_of_user(store.name, str(server["user"]), beyond_reading(grants, str(server["name"]))),
        *_of_replica(store, server),
        *_of_tables(store, tables),
        *(_of_engine(store.name, row) for row in unsafe),
    )


def _rows(store: Store, sql: str) -> tuple[Mapping[str, object], ...]:
    """The answer to a query that no user has written: it is not proved, as it asks the server about itself."""
    [answer] = store.look([_ask(sql)])
    if isinstance(answer, Unanswered):
        raise StoreError(answer.why)
    assert isinstance(answer, Rows)
    return answer.mappings()


def _ask(sql: str) -> Ask:
    return Ask(Query(sql, "mysql", sql, (), ()))


def _of_user(store: str, user: str, rights: Sequence[str]) -> Iterator[Remark]:
    if any(map(_EVERYTHING.fullmatch, rights)):
        yield Remark(
            "warning", store, f"its user {user} may do everything on the server: give it one that may only SELECT"
        )
    elif rights:
        text = f"its user {user} may do more than read ({'; '.join(rights)}): give it one that may only SELECT"
        yield Remark("warning", store, text)


def _of_replica(store: Store, server: Mapping[str, object]) -> Iterator[Remark]:
    try:
        channels = _rows(store, "SHOW ALL SLAVES STATUS" if server["is_mariadb"] else "SHOW REPLICA STATUS")
    except StoreError:
        if server["is_read_only"]:
            text = (
                "its server is read-only, as replicas are, and its user may not ask how far it is behind: GRANT "
                f"{'SLAVE MONITOR' if server['is_mariadb'] else 'REPLICATION CLIENT'} ON *.* to the user; and name "
                "the primary as `url` and a replica as `replica`"
            )
            yield Remark("warning", store.name, text)
        return
    for channel in channels:
        behind = channel.get("Seconds_Behind_Master", channel.get("Seconds_Behind_Source"))
        lag = "and does not follow its primary now" if behind is None else f"{behind} s behind its primary"
        text = f"it is a replica, {lag}: name the primary as `url` and this as `replica`"
        yield Remark("warning", store.name, text)
    if server["is_read_only"] and not channels:
        yield Remark("note", store.name, "its server is read-only and no replica: nothing that a run does shows there")


def _of_tables(store: Store, tables: Sequence[Table]) -> Iterator[Remark]:
    if not tables:
        yield Remark("warning", store.name, "it has no tables that its user may see; is it the right database?")
    readable = store.look([_ask(f"SELECT 1 FROM {quoted_table(table.name)} LIMIT 0") for table in tables])
    for table, answer in zip(tables, readable, strict=True):
        if isinstance(answer, Unanswered):
            yield Remark("warning", f"{store.name}.{table.name}", answer.why)
        if not table.key:
            yield Remark("warning", f"{store.name}.{table.name}", "nothing tells its rows apart; declare a key")


def _of_engine(store: str, table: Mapping[str, object]) -> Remark:
    text = f"its engine {table['engine']} has no snapshots, so a look may see it half changed: use InnoDB"
    return Remark("warning", f"{store}.{table['name']}", text)
