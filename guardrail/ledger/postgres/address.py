"""Where a ledger on PostgreSQL lies: what its URL says, and what may be shown of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from guardrail.errors import LedgerError

SCHEMA: Final = "guardrail"
"""The schema that the tables lie in, unless the URL names another."""

_OPTION: Final = re.compile(r"(?<=[?&])schema=([^&]*)&?")
_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")  # needs no quotes, and the server does not cut it
_PORTS: Final = re.compile(r"[0-9,]*")


@dataclass(frozen=True, slots=True)
class Address:
    """A server's database and a schema in it.

    `name` is what is shown: host, port, database and schema, never the user, the password or an option. `conninfo`
    is for the driver only.
    """

    name: str
    schema: str
    conninfo: str = field(repr=False)


def read_address(url: str) -> Address:
    """The address that a `postgresql://` URL means, as libpq reads it; `?schema=name` and a `+driver` are not libpq's.

    Raises `LedgerError`, which shows nothing of the URL, as a password that is not encoded may be anywhere in it.
    """
    scheme, _, rest = url.partition("://")
    named = _OPTION.search(rest)
    schema = SCHEMA if named is None else unquote(named[1])
    conninfo = f"{scheme.partition('+')[0]}://{_OPTION.sub('', rest).rstrip('?&')}"
    try:
        found = {key: str(value) for key, value in conninfo_to_dict(conninfo).items()}
    except psycopg.Error:
        raise LedgerError(
            "the ledger's URL cannot be read: write it as postgresql://user:password@host:port/database?option=value "
            "with the options that libpq knows"
        ) from None
    host, port, database = (found.get(key, "") for key in ("host", "port", "dbname"))
    if "@" in host or not _PORTS.fullmatch(port) or set(database) & set("@/:"):
        raise LedgerError(
            "the ledger's URL cannot be read: percent-encode whatever is special in its user name and password "
            "(`@` as %40, `/` as %2F, `:` as %3A, `?` as %3F, `#` as %23)"
        )
    if not _NAME.fullmatch(schema) or schema.startswith("pg_"):
        raise LedgerError(
            "the ledger's URL names a schema that is none: use small letters, digits and _, at most 63, no pg_ at first"
        )
    where = f"{host or 'localhost'}{port and f':{port}'}/{database}"
    shown = "" if schema == SCHEMA else f"?schema={schema}"
    return Address(f"postgresql://{where}{shown}", schema, conninfo)
