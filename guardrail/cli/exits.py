"""The exit codes of all commands: the one place where they are said."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from guardrail.errors import GuardrailError

if TYPE_CHECKING:
    from guardrail.calls import Verdict


class Exit(IntEnum):
    """How a command ends.

    GOOD: what was asked for is right, or was done. WRONG: the thing that was checked is wrong. MISUSE: the command
    could not be carried out as given (usage, configuration, a file, a ledger); stderr says why. UNVERIFIED: it could
    not be told. CUT_SHORT: Ctrl-C, or whoever read the output has gone.
    """

    GOOD = 0
    WRONG = 1
    MISUSE = 2
    UNVERIFIED = 3
    CUT_SHORT = 130

    @classmethod
    def of_verdict(cls, verdict: Verdict) -> Exit:
        """The exit code of a verdict."""
        return {"verified": cls.GOOD, "unverified": cls.UNVERIFIED}.get(verdict.kind, cls.WRONG)


class Misuse(GuardrailError):
    """A command cannot be carried out as given; says what to do."""
