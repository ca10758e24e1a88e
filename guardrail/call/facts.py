"""Facts of a run: earlier good results of the tools that a policy asks about."""

from __future__ import annotations

from collections.abc import Mapping

from guardrail.decide.arguments import changed

MOST = 100
"""How many results of one tool are remembered; the oldest go first."""


class Facts:
    """What earlier calls of the run found, by tool; only for the tools named in `wanted`."""

    def __init__(self, wanted: frozenset[str]) -> None:
        self.wanted = wanted
        self._known: dict[str, list[tuple[Mapping[str, object], object]]] = {}

    def learn(self, tool: str, args: Mapping[str, object], value: object) -> None:
        """Remember a good result, in its opened form."""
        if tool not in self.wanted:
            return
        known = self._known.setdefault(tool, [])
        known.append((args, value))
        del known[:-MOST]

    def latest(self, tool: str, same: Mapping[str, object]) -> tuple[bool, object]:
        """Whether there is a result of `tool` whose call had the arguments `same`, and the latest such."""
        for args, value in reversed(self._known.get(tool, ())):
            if not changed({name: args.get(name) for name in same}, same):
                return True, value
        return False, None
