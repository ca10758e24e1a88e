"""Who may use a proxy that listens: by Host, Origin and token."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from guardrail.errors import GuardrailError

_SINGLE: Final = ("host", "origin", "authorization", "mcp-session-id")
"""The headers that say who asks: of each there may be one."""


def is_loopback(host: str) -> bool:
    """Whether a host is this machine and no other can reach it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def address_of(listen: str) -> tuple[str, int]:
    """The host and the port of HOST:PORT; raises `GuardrailError`."""
    host, found, port = listen.rpartition(":")
    if not found or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise GuardrailError(f"--listen {listen}: write it as HOST:PORT, such as 127.0.0.1:8765")
    return host.strip("[]"), int(port)


@dataclass(frozen=True, slots=True)
class Access:
    """Who is let in.

    A page of the web may call what listens on its reader's machine: so a request that names an origin must name a
    loopback one, or one of `origins`, and on loopback the Host must be one too (a name that an attacker has pointed
    here is not). `token`, if there is one, must be shown.
    """

    local: bool
    token: str | None
    origins: Sequence[str]

    def denied(self, headers: Headers) -> tuple[int, str] | None:
        """The status and the reason with which a request is turned away; None: it is let in."""
        for name in _SINGLE:
            if len(headers.getlist(name)) > 1:
                return 400, f"the header {name} stands twice: one reader may take the first, another the last"
        if self.local and not is_loopback(_name(f"//{headers.get('host', '')}")):
            return 421, "this proxy serves this machine only, under the name localhost or its address"
        origin = headers.get("origin")
        if origin is not None and origin not in self.origins and not is_loopback(_name(origin)):
            return 403, "pages of this origin may not call: allow it with --origin"
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        shown = shown.strip() if scheme.lower() == "bearer" else ""
        if self.token is not None and not hmac.compare_digest(shown.encode(), self.token.encode()):
            return 401, "show the proxy's token: Authorization: Bearer ..."
        return None


def credential(headers: Mapping[str, str]) -> str | None:
    """What tells one credential from another, from which it cannot be learnt; None: none was shown."""
    shown = headers.get("authorization")
    return hashlib.sha256(shown.encode()).hexdigest() if shown else None


def _name(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
