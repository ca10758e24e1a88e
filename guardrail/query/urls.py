"""URLs of HTTP servers, read strictly: what is not plainly one is refused, so that two readers never differ about it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote, urljoin

_SCHEME: Final = re.compile(r"(https?)://", re.IGNORECASE)
_URL: Final = re.compile(
    r"""https?://
        (?P<host> [a-z0-9](?:[a-z0-9._-]*[a-z0-9])?\.? | \[[0-9a-f:.]+\] )
        (?: :(?P<port>[0-9]{1,5}) )?
        (?P<target> [/?][\x21-\x7e]* )?""",
    re.IGNORECASE | re.VERBOSE,
)
_NO_URL: Final = "is no plain URL such as https://api.example.com/v2"
_PORTS: Final = {"http": 80, "https": 443}
_KEPT: Final = "!#$%&'()*+,/:;=?@[]~"
"""What may stand in a reference to a URL; everything else is percent-encoded."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a server is: scheme, host (in lower case, an IPv6 address without its brackets) and port."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        """The origin as a URL has it."""
        return f"{self.scheme}://{self.authority}"

    @property
    def authority(self) -> str:
        """Host and port, the port only where it is not the usual one of the scheme."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.unusual_port is None else f"{host}:{self.port}"

    @property
    def unusual_port(self) -> int | None:
        """The port, if it is not the usual one of the scheme."""
        return None if self.port == _PORTS[self.scheme] else self.port


@dataclass(frozen=True, slots=True)
class Url:
    """A URL: its origin, and the path and query that are asked for there."""

    origin: Origin
    target: str

    def __str__(self) -> str:
        """The URL as a whole."""
        return f"{self.origin}{self.target}"

    @property
    def path(self) -> str:
        """The path, without the query."""
        return self.target.partition("?")[0]

    def at(self, reference: str) -> Url:
        """What a reference that was found there leads to. Raises ValueError where that is no URL of an HTTP server."""
        try:
            found = urljoin(str(self), quote(reference.strip(), safe=_KEPT))
        except ValueError as error:
            raise ValueError(_NO_URL) from error
        return url_of(found.partition("#")[0])


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy that requests go through, and what it is told who asks (None: nothing), which is not in the repr."""

    origin: Origin
    credentials: tuple[str, str] | None = field(default=None, repr=False)


def is_http(text: str) -> bool:
    """Whether a text begins as the URL of an HTTP server does."""
    return _SCHEME.match(text) is not None


def url_of(text: str) -> Url:
    """The URL that a text is. ValueError says what is wrong with it, and quotes nothing of it."""
    scheme = _SCHEME.match(text)
    if scheme is None:
        raise ValueError("is no URL that begins with http:// or https://")
    authority = re.split(r"[/?#]", text[scheme.end() :], maxsplit=1)[0]
    if "@" in authority:
        raise ValueError("holds a user or a password before the host; send credentials as a header")
    if not text.isascii():
        raise ValueError("holds letters beyond ASCII; write the host in its xn-- form, the path percent-encoded")
    if "#" in text:
        raise ValueError("holds a # part, which is never sent")
    found = _URL.fullmatch(text)
    if found is None or "\\" in text:
        raise ValueError(_NO_URL)
    known = scheme[1].lower()
    port = int(found["port"]) if found["port"] else _PORTS[known]
    if not 0 < port < 65_536:
        raise ValueError("has a port that is none")
    target = found["target"] or "/"
    origin = Origin(known, found["host"].lower().strip("[]"), port)
    return Url(origin, target if target.startswith("/") else f"/{target}")


def proxy_of(text: str) -> Proxy:
    """The proxy whose URL a text is, with user and password or without. ValueError as of `url_of`."""
    scheme, _, rest = text.partition("://")
    userinfo, found, place = rest.rpartition("@")
    url = url_of(f"{scheme}://{place}")
    if url.target != "/":
        raise ValueError("holds a path, and a proxy has none")
    user, _, password = userinfo.partition(":")
    return Proxy(url.origin, (unquote(user), unquote(password)) if found else None)
