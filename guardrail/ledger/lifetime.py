"""What happens to everything that lives as long as the process, when the process forks or ends."""

from __future__ import annotations

import atexit
import os
from typing import Protocol
from weakref import WeakValueDictionary


class Lasting(Protocol):
    """Something that must know when its process forks or ends."""

    def before_fork(self) -> None:
        """The process is about to fork, in this thread: be still until it has."""
        ...

    def after_fork_in_parent(self) -> None:
        """Go on; called by the same thread."""
        ...

    def after_fork_in_child(self) -> None:
        """Begin anew: no other thread is here."""
        ...

    def before_exit(self) -> None:
        """The process ends. An error is shown by Python's report of errors at exit."""
        ...


_everything: WeakValueDictionary[int, Lasting] = WeakValueDictionary()
_forking: list[Lasting] = []


def accompany(thing: Lasting) -> None:
    """Tell a thing of forks and the end of the process, as long as somebody else holds it."""
    _everything[id(thing)] = thing


def _alive() -> list[Lasting]:
    return [thing for reference in _everything.valuerefs() if (thing := reference()) is not None]


def _before_fork() -> None:
    global _forking
    things = _alive()
    for thing in things:
        thing.before_fork()
    _forking = things


def _after_fork_in_parent() -> None:
    for thing in _forking:
        thing.after_fork_in_parent()


def _after_fork_in_child() -> None:
    for thing in _forking:
        thing.after_fork_in_child()


def _at_exit() -> None:
    errors: list[Exception] = []
    for thing in _alive():
        try:
            thing.before_exit()
        except Exception as error:  # noqa: BLE001 - the other things must be told first; then it is raised
            errors.append(error)
    if errors:
        raise errors[0]


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
