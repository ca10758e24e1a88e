"""Policies: the bundled ones, and what each outcome does in the end."""

from __future__ import annotations

from typing import Any

import pytest
from inline_snapshot import snapshot

from guardrail.declare import bundled
from guardrail.declare.policies import FLOOR, ByEffect, Outcomes, Policy, actions, refined
from guardrail.declare.tools import Tool
from guardrail.errors import ConfigurationError


def table(policy: Policy, tool: Tool | None = None) -> dict[str, str]:
    """What each outcome does, for a read, a write, and a call of unknown effect."""
    found = actions(policy, tool or Tool())
    effects: tuple[Any, ...] = ("read", "write", "unknown")
    return {outcome: " ".join(found[outcome, effect] for effect in effects) for outcome in Outcomes.model_fields}


def test_three_policies_are_bundled() -> None:
    assert bundled.names() == ("balanced", "observe", "strict")


@pytest.mark.parametrize("name", bundled.names())
def test_a_bundled_policy_says_everything_itself(name: str) -> None:
    policy = bundled.policy(name)

    assert policy.name == name
    assert policy.description
    assert None not in {getattr(policy.outcomes, outcome) for outcome in Outcomes.model_fields}


def test_balanced_holds_what_fails() -> None:
    policy = bundled.policy("balanced")

    assert (policy.mode, policy.retries) == ("enforce", 3)
    assert table(policy) == snapshot(
        {
            "empty": "hold hold hold",
            "empty_list": "allow allow allow",
            "incomplete": "allow allow allow",
            "partial": "hold hold hold",
            "rejected": "hold hold hold",
            "error": "hold hold hold",
            "in_doubt": "hold hold hold",
            "cancelled": "allow hold hold",
            "precondition_failed": "hold hold hold",
        }
    )


def test_strict_stops_at_every_no() -> None:
    policy = bundled.policy("strict")

    assert policy.mode == "enforce"
    assert table(policy) == snapshot(
        {
            "empty": "stop stop stop",
            "empty_list": "allow allow allow",
            "incomplete": "allow allow allow",
            "partial": "stop stop stop",
            "rejected": "stop stop stop",
            "error": "stop stop stop",
            "in_doubt": "stop stop stop",
            "cancelled": "allow stop stop",
            "precondition_failed": "stop stop stop",
        }
    )


def test_observe_decides_like_balanced_and_enforces_nothing() -> None:
    policy = bundled.policy("observe")

    assert policy.mode == "observe"
    assert table(policy) == table(bundled.policy("balanced"))


def test_what_nobody_says_is_as_in_balanced() -> None:
    assert bundled.policy("balanced").outcomes == FLOOR
    assert table(Policy(name="silent")) == table(bundled.policy("balanced"))


def test_a_policy_that_is_not_bundled_is_refused_with_a_suggestion() -> None:
    with pytest.raises(ConfigurationError, match="did you mean `strict`"):
        bundled.policy("strikt")


def test_the_tool_wins_over_the_policy() -> None:
    tool = Tool(outcomes=Outcomes(error="allow", rejected=ByEffect(read="allow", write="hold")))

    found = table(bundled.policy("strict"), tool)

    assert found["error"] == "allow allow allow"
    assert found["rejected"] == "allow hold hold"
    assert found["empty"] == "stop stop stop"


def test_what_a_tool_says_of_emptiness_covers_every_shape() -> None:
    found = table(bundled.policy("balanced"), Tool(empty="stop"))

    assert found["empty"] == found["empty_list"] == "stop stop stop"


def test_a_configuration_refines_its_policy() -> None:
    policy = refined(bundled.policy("balanced"), "observe", Outcomes(error="stop"), 0)

    assert (policy.mode, policy.retries) == ("observe", 0)
    assert table(policy)["error"] == "stop stop stop"
    assert table(policy)["rejected"] == "hold hold hold"


def test_what_is_not_refined_stays() -> None:
    assert refined(bundled.policy("strict"), None, Outcomes(), None) == bundled.policy("strict")


def test_the_table_cannot_be_changed() -> None:
    found: Any = actions(bundled.policy("strict"), Tool())

    with pytest.raises(TypeError):
        found["error", "write"] = "allow"


def test_the_bundled_sentences_are_read() -> None:
    meanings = {sentence.means for sentence in bundled.sentences()}

    assert meanings >= {"empty", "rejected", "error"}
