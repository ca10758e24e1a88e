"""What changed, and how it differs from the contract: pure functions over pictures."""

from guardrail.state.comparison import Comparison, Incomparable, Sealed
from guardrail.state.contract import Contract
from guardrail.state.differences import Change, differences, unseen
from guardrail.state.evidence import Evidence
from guardrail.state.expectations import Verified, keys_wanted, unsettled, verify
from guardrail.state.matching import Window

__all__ = [
    "Change",
    "Comparison",
    "Contract",
    "Evidence",
    "Incomparable",
    "Sealed",
    "Verified",
    "Window",
    "differences",
    "keys_wanted",
    "unseen",
    "unsettled",
    "verify",
]
