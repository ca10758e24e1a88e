"""Answers that one run keeps with their entity tags, so that what is the same need not be sent again."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Final

from guardrail.stores.http.messages import Message

MOST_KEPT: Final = 4 * 2**20
"""How many bytes of answers one run keeps of one store; the oldest go first."""


class Kept:
    """Answers with a strong tag, by what they answer. May be used from several threads."""

    def __init__(self) -> None:
        self._messages: OrderedDict[str, Message] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def get(self, target: str) -> Message | None:
        """The last answer to a request, if it is kept."""
        with self._lock:
            return self._messages.get(target)

    def put(self, target: str, message: Message) -> None:
        """Keep an answer in the place of an earlier one to the same request, if it bears a strong tag."""
        with self._lock:
            former = self._messages.pop(target, None)
            self._size -= len(former.body) if former else 0
            if message.tag is None:
                return
            self._messages[target] = message
            self._size += len(message.body)
            while self._size > MOST_KEPT:
                self._size -= len(self._messages.popitem(last=False)[1].body)
