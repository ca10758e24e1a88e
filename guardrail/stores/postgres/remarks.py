"""What `doctor` tells of a PostgreSQL store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from guardrail.errors import StoreError
from guardrail.pictures import Rows, Table, Unanswered
from guardrail.query.proof import Query
from guardrail.stores.store import Ask, Remark, tables_of

if TYPE_CHECKING:
    from guardrail.stores.store import Store

# Not written by a user, so not proved: its functions tell of the server and are on no list.
_ROLE: Final = """
    SELECT current_user AS role, r.rolsuper AS is_super, pg_is_in_recovery() AS is_replica, of_tables.*
    FROM pg_roles r
    CROSS JOIN (
        SELECT array_agg(name) FILTER (WHERE has_any_column_privilege(id, 'INSERT, UPDATE') OR has_table_privilege(id, 'DELETE, TRUNCATE')) AS written,
               array_agg(name) FILTER (WHERE NOT has_any_column_privilege(id, 'SELECT')) AS unseen
        FROM (
            SELECT c.oid AS id, c.relname::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't'
              AND n.nspname <> 'pg_catalog' AND n.nspname = ANY (current_schemas(false))
            ORDER BY 2
        ) AS tables
    ) AS of_tables
    WHERE r.rolname = current_user
"""
_QUESTION: Final = Ask(Query(_ROLE, "postgres", _ROLE, (), ()))
_MOST_NAMED: Final = 5


def remarks(store: Store) -> tuple[Remark, ...]:
    """What should be known of the store before it is relied on."""
    try:
        tables = tables_of(store)
    except StoreError as error:
        return (Remark("error", store.name, str(error)),)
    [answer] = store.look([_QUESTION])
    if isinstance(answer, Unanswered):
        return (Remark("error", store.name, answer.why),)
    assert isinstance(answer, Rows)
    return (*_of_role(store.name, answer.mappings()[0]), *_of_tables(store.name, tables))


def _of_role(store: str, found: Mapping[str, Any]) -> Iterator[Remark]:
    role = found["role"]
    if found["is_super"]:
        text = f"its role {role} is a superuser, whom no right and no row-level security holds: give it one that may SELECT"
        yield Remark("warning", store, text)
    elif found["written"]:
        text = f"its role {role} may write {_named(found['written'])}: give it one that may only SELECT"
        yield Remark("warning", store, text)
    if found["unseen"]:
        text = f"its role {role} may not read {_named(found['unseen'])}: GRANT SELECT, or do not watch it"
        yield Remark("warning", store, text)
    if found["is_replica"]:
        text = "it is a replica, which may lag behind: name the primary as `url` and this as `replica`"
        yield Remark("warning", store, text)


def _named(tables: Sequence[str]) -> str:
    more = len(tables) - _MOST_NAMED
    return ", ".join(tables[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _of_tables(store: str, tables: tuple[Table, ...]) -> Iterator[Remark]:
    if not tables:
        yield Remark("warning", store, "it has no tables on its search path; is it the right database?")
    for table in tables:
        if not table.key:
            yield Remark("warning", f"{store}.{table.name}", "nothing tells its rows apart; declare a key")
        if table.hides_rows:
            text = "row-level security may hide rows from its role, so that their changes cannot be seen"
            yield Remark("warning", f"{store}.{table.name}", text)
