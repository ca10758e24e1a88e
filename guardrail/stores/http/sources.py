"""Where an HTTP store is: as declared, or as the user says in its place, once or for every look."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Lock
from typing import Final, cast

from guardrail.errors import StoreError
from guardrail.query.headers import header_name, header_text
from guardrail.query.urls import Url, url_of
from guardrail.stores.http.api import Place

_FORMS: Final = (
    "give a URL, a mapping with `url` and `headers` or one of them, or a function that returns one of these for every "
    "look"
)


class Source:
    """Tells where a store is. What a function tells may have other headers every time, as credentials change."""

    def __init__(self, store: str, declared: Place, where: object) -> None:
        """Raises `StoreError` for what is no place. `where`: see `_FORMS`; None is the declared place."""
        self._store = store
        self._declared = declared
        self._where = where
        self.asks = callable(where)
        """Whether a function of the user's is asked, which may take its time."""
        self._fixed = declared if self.asks else self._read(where)

    def place(self) -> Place:
        """Where the store is now. Raises `StoreError`, and whatever a function of the user's does."""
        return self._read(cast("Callable[[], object]", self._where)()) if self.asks else self._fixed

    def bound(self) -> Source:
        """The same for one run, for which a function must always tell the same URL."""
        return _Bound(self._store, self._declared, self._where) if self.asks else self

    def _read(self, where: object) -> Place:
        if where is None:
            return self._declared
        if isinstance(where, str):
            return replace(self._declared, url=self._url(where))
        if not isinstance(where, Mapping):
            raise StoreError(f"the HTTP store {self._store} cannot be opened from {type(where).__name__}; {_FORMS}")
        given = cast("Mapping[object, object]", where)
        if not given or not {"url", "headers"}.issuperset(given):
            raise StoreError(f"the place of the HTTP store {self._store} has other keys than url and headers; {_FORMS}")
        url = self._url(given["url"]) if "url" in given else self._declared.url
        headers = given.get("headers", {})
        if not isinstance(headers, Mapping):
            raise StoreError(f"the headers of the HTTP store {self._store} are no mapping; {_FORMS}")
        return Place(url, {**self._declared.headers, **self._headers(cast("Mapping[object, object]", headers))})

    def _url(self, text: object) -> Url:
        try:
            url = url_of(text if isinstance(text, str) else "")
        except ValueError as error:
            raise StoreError(f"the URL of the HTTP store {self._store} {error}") from error
        if "?" in url.target:
            raise StoreError(f"the URL of the HTTP store {self._store} holds a query")
        return url

    def _headers(self, headers: Mapping[object, object]) -> dict[str, str]:
        known = {name.lower(): name for name in self._declared.headers}
        found: dict[str, str] = {}
        for name, text in headers.items():
            try:
                if not isinstance(name, str) or not isinstance(text, str):
                    raise ValueError("is no text")
                given = header_name(name)
                found[known.get(given.lower(), given)] = header_text(text)
            except ValueError as error:
                raise StoreError(f"a header of the HTTP store {self._store} {error}") from error
        return found


class _Bound(Source):
    """A source whose function has to tell one URL during one run."""

    def __init__(self, store: str, declared: Place, where: object) -> None:
        super().__init__(store, declared, where)
        self._first: Url | None = None
        self._lock = Lock()

    def place(self) -> Place:
        place = super().place()
        with self._lock:
            self._first = self._first or place.url
        if place.url != self._first:
            raise StoreError("its function tells another URL than at the beginning of the run")
        return place

    def bound(self) -> Source:
        return self
