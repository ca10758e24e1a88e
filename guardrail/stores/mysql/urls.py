"""URLs of MariaDB and MySQL databases: where one is, who is let in, and how the connection is secured."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from guardrail.errors import StoreError

_MODES: Final = ("disabled", "preferred", "required", "verify_ca", "verify_identity")
_FILES: Final = ("ssl_ca", "ssl_cert", "ssl_key")
_OPTIONS: Final = ("ssl_mode", *_FILES, "unix_socket", "connect_timeout", "charset")


def arguments(url: str, timeout: float) -> Mapping[str, Any]:
    """What PyMySQL connects by. `timeout` bounds each wait for the server, in seconds.

    The options are those of MySQL's own clients, written with `-` or `_`. Raises `StoreError`; the URL is not shown, as
    it may hold a password.
    """
    parts = _split(url)
    options = _options(parts.query)
    name = unquote(parts.path).strip("/")
    if not name:
        raise StoreError("its URL names no database (mysql://user@host:3306/name)")
    found: dict[str, Any] = {
        "host": parts.hostname or "localhost",
        "port": parts.port or 3306,
        "password": unquote(parts.password or "").encode(),
        "database": name,
        "connect_timeout": _seconds(options.get("connect_timeout")) or timeout,
        "read_timeout": timeout,
        "write_timeout": timeout,
        **_secured(options),
    }
    if parts.username:
        found["user"] = unquote(parts.username)
    if "unix_socket" in options:
        found["unix_socket"] = options["unix_socket"]
    return found


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise StoreError("its URL cannot be read (mysql://user@host:3306/name)") from None
    return parts


def _options(query: str) -> Mapping[str, str]:
    options = {name.replace("-", "_"): value for name, value in parse_qsl(query, keep_blank_values=True)}
    unknown = sorted(options.keys() - set(_OPTIONS))
    if unknown:
        raise StoreError(f"its URL has the option {unknown[0]}, which is none of {', '.join(_OPTIONS)}")
    return options


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else max(1.0, float(text))
    except ValueError:
        raise StoreError("its URL has a connect_timeout that is no number of seconds") from None


def _secured(options: Mapping[str, str]) -> Mapping[str, Any]:
    """How TLS is used: as MySQL's clients do, where it is available unless the mode says otherwise."""
    mode = options.get("ssl_mode", "verify_ca" if "ssl_ca" in options else "preferred").lower()
    if mode not in _MODES:
        raise StoreError(f"its URL has an ssl_mode that is none of {', '.join(_MODES)}")
    files = [options.get(name) for name in _FILES]
    match mode:
        case "disabled":
            return {"ssl_disabled": True}
        case "preferred" if not any(files):
            return {}
        case _:
            return {"ssl": _context(mode, *files)}


def _context(mode: str, ca: str | None, cert: str | None, key: str | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca)
        # The certificates that servers make for themselves do not meet what Python asks for since 3.13.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.check_hostname = mode == "verify_identity"
        context.verify_mode = ssl.CERT_REQUIRED if mode.startswith("verify") else ssl.CERT_NONE
        if cert is not None:
            context.load_cert_chain(cert, key, password="")
    except (OSError, ValueError) as error:
        raise StoreError(f"its TLS files cannot be used: {error}") from error
    return context
