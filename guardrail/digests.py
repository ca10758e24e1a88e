"""Values kept as keyed digests: they can be compared with a live value, and not be read back."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice
from typing import cast
from uuid import UUID

from guardrail.pictures import Picture

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, repr=False)
class Digest:
    """A redacted value: a key and the digest of the value under that key, 16 bytes each.

    Two digests are equal when key and value are, so digests under one key serve as keys of a mapping.
    The key lies beside the digest: it keeps equal values of different pictures apart and makes tables
    computed in advance useless; somebody who has both can still try out a value that is easy to guess.
    """

    key: bytes
    code: bytes

    @classmethod
    def of(cls, value: object, key: bytes) -> Digest:
        """The digest of a value under a key; a digest stays what it is. `TypeError` for a value that is no plain one."""
        return value if isinstance(value, Digest) else cls(key, _code(value, key))

    def matches(self, value: object) -> bool:
        """Whether a live value is the one that was digested.

        Equal means what `==` means in Python for plain values: 1 is 1.0 and Decimal("1.00"), an instant is
        the same in every zone; texts are compared exactly. But "not a number" matches itself.
        """
        return self == value if isinstance(value, Digest) else _code(value, self.key) == self.code

    def __repr__(self) -> str:
        return "<redacted>"


def new_key() -> bytes:
    """A random key for digests that are to be comparable with each other."""
    return secrets.token_bytes(16)


def digested_like(picture: Picture, before: Picture) -> Picture:
    """A live picture, with the columns that `before` holds as digests digested under the same key.

    Then rows of the two can be compared as they are: a digest equals another when the values do.
    """
    keys = _keys(before)

    def digested(values: tuple[object, ...]) -> tuple[object, ...]:
        named = zip(picture.columns, values, strict=False)  # a key has the first columns only
        return tuple(Digest.of(value, keys[name]) if name in keys else value for name, value in named)

    if not keys:
        return picture
    hashes = picture.hashes and {digested(key): code for key, code in picture.hashes.items()}
    return replace(picture, rows={digested(k): digested(row) for k, row in picture.rows.items()}, hashes=hashes)


def _keys(picture: Picture) -> dict[str, bytes]:
    """The keys under which columns of a picture are digested: a column is so in every row, or in none."""
    rows = [*islice(picture.rows.values(), 1), *islice(picture.hashes or (), 1)]
    pairs = [pair for row in rows for pair in zip(picture.columns, row, strict=False)]
    return {name: value.key for name, value in pairs if isinstance(value, Digest)}


def _code(value: object, key: bytes) -> bytes:
    return hashlib.blake2b(_canonical(value), key=key, digest_size=16).digest()


def _canonical(value: object) -> bytes:
    """Bytes that are the same for values that are equal, and different for others."""
    match value:
        case str():
            return b"s" + value.encode("utf-8", "surrogatepass")
        case int() | float() | Decimal():
            return b"#" + _number(value)
        case None:
            return b"n"
        case bytes() | bytearray():
            return b"b" + value
        case datetime() if value.tzinfo is not None:
            return b"i%d" % ((value - _EPOCH) // _TICK)
        case date() | time():
            return b"d" + value.isoformat().encode()
        case timedelta():
            return b"t%d" % (value // _TICK)
        case UUID():
            return b"u" + value.bytes
        case Mapping():
            return b"m" + _mapping(cast("Mapping[object, object]", value))
        case list() | tuple():
            return b"l" + _framed(_canonical(item) for item in cast("Sequence[object]", value))
        case _:
            raise TypeError(f"a value of type {type(value).__name__} cannot be digested")


def _number(value: float | Decimal) -> bytes:
    """A number as the fraction that it is exactly; what is not finite by its name."""
    try:
        return b"%x/%x" % value.as_integer_ratio()
    except OverflowError:
        return b"inf" if value > 0 else b"-inf"
    except ValueError:
        return b"nan"


def _mapping(value: Mapping[object, object]) -> bytes:
    return _framed(sorted(_framed((_canonical(name), _canonical(item))) for name, item in value.items()))


def _framed(parts: Iterable[bytes]) -> bytes:
    """Parts joined so that no other list of parts gives the same bytes."""
    return b"".join(b"%d:" % len(part) + part for part in parts)
