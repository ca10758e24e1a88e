"""What looks like a secret: names of fields, and passages of a text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

REDACTED: Final = "[redacted]"
LONGEST: Final = 4096
"""How many characters of a text are kept."""

NO_NAMES: Final[frozenset[str]] = frozenset()

# The last word of a name says what the field is: an access_token is a token, a token_count is a count.
_SECRETS = frozenset(
    {
        "password", "passwd", "passphrase", "passcode", "passwort", "kennwort", "senha", "contraseña", "pwd", "psw",
        "secret", "credential", "cred", "token", "jwt", "bearer", "auth", "authorization", "cookie", "csrf", "xsrf",
        "apikey", "sid", "jsessionid", "phpsessid", "otp", "totp", "pin", "cvv", "cvc",
    }
)  # fmt: skip
_PAIRS = frozenset(
    {
        ("api", "key"), ("private", "key"), ("access", "key"), ("secret", "key"), ("signing", "key"), ("master", "key"),
        ("encryption", "key"), ("ssh", "key"), ("auth", "key"), ("account", "key"), ("shared", "key"),
        ("storage", "key"), ("service", "key"), ("session", "key"), ("session", "id"), ("connection", "string"),
        ("security", "code"), ("user", "pass"), ("db", "pass"), ("smtp", "pass"), ("access", "tokens"),
        ("refresh", "tokens"), ("auth", "tokens"), ("api", "tokens"), ("bearer", "tokens"), ("session", "tokens"),
    }
)  # fmt: skip
_WHOLE = frozenset({"pass", "pw"})
_JOINED = (
    "password", "passwd", "passphrase", "apikey", "secretkey", "privatekey", "accesskey", "accesstoken", "authtoken",
    "refreshtoken", "clientsecret", "sessionid",
)  # fmt: skip
# A last word that only says in which form the secret is there.
_CARRIERS = frozenset(
    {
        "value", "text", "string", "hash", "header", "data", "b64", "base64", "hex", "pem", "encoded", "encrypted",
        "plain", "plaintext", "raw", "old", "new", "current", "confirm", "confirmation", "again", "repeat", "id",
    }
)  # fmt: skip
# An access_key_id goes with its key; the id of one of these is no secret.
_KEEP_ID = frozenset({"token", "secret", "pin", "auth"})
# A token of one of these is a place in a list or in a text.
_POSITIONS = frozenset(
    {"page", "next", "previous", "prev", "continuation", "cursor", "pagination", "sync", "eos", "bos", "pad", "stop"}
)

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+")


@lru_cache(maxsize=4096)
def _judged(name: str) -> bool:
    if "%" in name:
        name = unquote(name)
    if not name.isascii():
        name = unicodedata.normalize("NFKC", name)
    words = [word.lower() for word in _WORD.findall(name)]
    while words and (words[-1].isdigit() or (words[-1] in _CARRIERS and not _is_pair(words) and _carries(words))):
        words.pop()
    if not words:
        return False
    last = words[-1]
    if last == "token" and len(words) > 1 and words[-2] in _POSITIONS:
        return False
    singular = last[:-1] if last.endswith("s") and last != "tokens" else last
    return (
        last in _SECRETS
        or singular in _SECRETS
        or last.endswith(_JOINED)
        or _is_pair(words)
        or _is_pair([*words[:-1], singular])
        or (len(words) == 1 and last in _WHOLE)
    )


def _is_pair(words: list[str]) -> bool:
    return tuple(words[-2:]) in _PAIRS


def _carries(words: list[str]) -> bool:
    """Whether the last word may be left off: an access_key_id goes with its key, a token_id is an identifier."""
    return not (words[-1] == "id" and len(words) > 1 and words[-2] in _KEEP_ID)


def is_secret(name: str) -> bool:
    """Whether a field of this name looks like a secret, by the whole words of the name.

    `api_key`, `apiKey`, `X-Api-Key`, `_auth` and `password_confirmation` do; `token_count`, `keyboard`, `author` and
    `primary_key` do not.
    """
    return _judged(name if len(name) <= 200 else name[:100] + "_" + name[-100:])


@dataclass(frozen=True, slots=True)
class SecretNames:
    """The names of what must not be told: the declared ones, and all that look like a secret's."""

    declared: frozenset[str]

    def __contains__(self, name: object) -> bool:
        """Whether what is called so must not be told."""
        return name in self.declared or (isinstance(name, str) and is_secret(name))


_NAME = re.compile(r"""(?<![\w.%-])([\w.%-]{1,100})(?:\\*["'])?[ \t]*(=>|[:=])[ \t]*""")
_VALUE = re.compile(
    r"""\[redacted\]
      | (?P<escaped>\\+["']) .*? (?:(?P=escaped)|\Z)
      | (?P<quote>["']) (?:[^"'\\] | \\. | (?!(?P=quote))["'])* (?:(?P=quote)|\Z)
      | [\[{(][^\n]*
      | (?:(?:Bearer|Basic|Digest|Token|ApiKey|Negotiate|AWS4-HMAC-SHA256)[ \t]+)? [^\s,;&"'<>)}\]]+""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_SIGNATURES = frozenset({"sig", "signature", "x-amz-signature", "x-goog-signature"})

_USERINFO = re.compile(r"([A-Za-z][\w+.-]{0,30}://)(?!\[redacted\]@)[^/\s?#\"'<>]+@")
_COOKIES = re.compile(r"((?<![\w-])(?:set-)?cookie[ \t]*:[ \t]*+)(?!\[redacted\])[^\r\n\"']+", re.IGNORECASE)
_ELEMENT = re.compile(r"(<(?:\w+:)?([\w.-]{1,100})(?:\s[^<>]{0,200})?>)(?!\[redacted\]<)[^<>]+(?=</)")
_KEY_BLOCK = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]{0,40}-----|\Z)", re.DOTALL)
_SCHEME = re.compile(
    r"""\b([Bb]earer|BEARER)\s+
        (?!\[redacted\]|(?:tokens?|auth\w*|scheme|realm|format|headers?|credentials?|keys?|is|was|not|and|or|of|in|for
            |must|required|expired|invalid|missing)\b)
        [^\s"'<>,;)}\]]{3,}
      | \b([Bb]asic|BASIC)\s+(?=[A-Za-z0-9+/]*(?:[0-9=+/]|[a-z][A-Z]))[A-Za-z0-9+/]{6,}={0,2}""",
    re.VERBOSE,
)
_KNOWN = re.compile(
    r"""(?<![A-Za-z0-9])(?:
        sk-(?=[\w-]*\d)[\w-]{6,}
      | [srp]k_(?:live|test)_\w{4,}
      | gh[pousr]_\w{10,} | github_pat_\w{10,} | glpat-[\w-]{10,}
      | xox[a-z]-[\w-]{8,}
      | (?:AKIA|ASIA)[0-9A-Z]{12,}
      | AIza[\w-]{20,} | ya29\.[\w.-]{8,}
      | eyJ[\w-]{8,}(?:\.[\w-]*){0,2}
      | SG\.[\w-]{10,}\.[\w-]{10,}
      | (?:whsec|npm|hf|shp(?:at|ss|ca|pa)|dop_v1|pypi|gsk|xai)[_-][\w-]{16,}
    )""",
    re.VERBOSE,
)


def redact_text(
    text: str, redact: Collection[str] = NO_NAMES, *, values: Collection[str] = (), longest: int = LONGEST
) -> str:
    """The text without what looks like a secret in it, cut to `longest` characters (the cut is marked).

    Masked are the values of secret-like names (`password=...`, `"api_key": "..."`, headers, query values, elements)
    and of the names in `redact`; the userinfo of URLs; what follows Bearer and Basic; private keys; tokens of
    well-known forms; and every occurrence of one of `values` (see `hidden_values`). Words are never masked for
    standing near a secret. Applying it twice changes nothing more.
    """
    # A passage that the cut would split is still recognised, because a longer piece is looked at.
    shown = text[: longest + 1024]
    if values:
        for value in sorted(values, key=len, reverse=True):
            shown = shown.replace(value, REDACTED)
    if "-----BEGIN" in shown:
        shown = _KEY_BLOCK.sub(REDACTED, shown)
    if "://" in shown:
        shown = _USERINFO.sub(rf"\1{REDACTED}@", shown)
    if ":" in shown or "=" in shown:
        shown = _mask_values(_COOKIES.sub(rf"\1{REDACTED}", shown), redact)
    if "</" in shown:
        shown = _ELEMENT.sub(lambda element: _mask_element(element, redact), shown)
    shown = _SCHEME.sub(lambda found: f"{found[1] or found[2]} {REDACTED}", shown)
    return cut(_KNOWN.sub(REDACTED, shown), longest, len(text) - longest - 1024)


def cut(text: str, longest: int, dropped: int = 0) -> str:
    """The text, at most about `longest` characters of it; `dropped` counts characters that went before."""
    more = len(text) - longest + max(dropped, 0)
    return text if more <= 0 else f"{text[:longest]}[truncated: {more} more]"


def sound(text: str) -> str:
    """The text without lone surrogates, which no exporter can encode."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _mask_values(text: str, redact: Collection[str]) -> str:
    parts: list[str] = []
    at = 0
    for found in _NAME.finditer(text):
        if found.start() < at or not _names_a_secret(text, found, redact):
            continue
        value = _VALUE.match(text, found.end())
        if value is not None:
            quote = value["escaped"] or value["quote"] or ""
            parts += (text[at : found.end()], quote, REDACTED, quote)
            at = value.end()
    return "".join((*parts, text[at:]))


def _names_a_secret(text: str, found: re.Match[str], redact: Collection[str]) -> bool:
    name = found[1]
    if name in redact or is_secret(name):
        return True
    if found[2] != "=":
        return False
    # In a query, a bare `key` is an API key; elsewhere it is any key.
    in_query = found.start() > 0 and text[found.start() - 1] in "?&"
    return name.lower() in _SIGNATURES or (in_query and name.lower() == "key")


def _mask_element(element: re.Match[str], redact: Collection[str]) -> str:
    return element[1] + REDACTED if element[2] in redact or is_secret(element[2]) else element[0]


def error_text(error: BaseException, redact: Collection[str] = NO_NAMES, *, values: Collection[str] = ()) -> str:
    """An exception as one text: its class and its message, redacted and bounded; never raises."""
    name = type(error).__name__
    message = ""
    with suppress(Exception):  # the error's own __str__
        message = redact_text(str(error), redact, values=values)
    return f"{name}: {message}" if message else name
