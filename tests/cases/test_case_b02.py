"""B02: an MCP result says isError=false while its body reports a failure.

Of the outcomes that the reports call an error, the library tells those in which a rule or state forbids the call: they
are `rejected`.
"""

from __future__ import annotations

from typing import Any

import pytest

from support.cases import told, variant


def mcp(text: str, *, flag: bool = False, **more: object) -> dict[str, object]:
    return {"content": [{"type": "text", "text": text}], "isError": flag, **more}


@pytest.mark.parametrize(
    ("result", "outcome", "words"),
    [
        variant(
            "B02",
            "prose starting with Error",
            mcp("Error opening case: list index out of range"),
            "error",
            "index out of range",
        ),
        variant(
            "B02",
            "JSON text with status error",
            mcp('{"status":"error","reason":"phase not allowed"}'),
            "rejected",
            "phase not allowed",
        ),
        variant(
            "B02",
            "ok:false in structured part only",
            mcp("done", structuredContent={"ok": False, "error": "layer locked"}),
            "error",
            "layer locked",
        ),
        variant("B02", "flag true, friendly text", mcp("Nothing to worry about", flag=True), "error", "worry"),
    ],
)
def test_a_failure_in_the_body_stops_the_run_whatever_the_flag_says(
    result: dict[str, object], outcome: str, words: str
) -> None:
    seen = told(result)
    assert seen.stopped
    assert seen.outcome.outcome == outcome
    assert words in seen.outcome.message


CROSS: dict[str, Any] = {"sentences": [{"pattern": "❌ .*", "means": "error"}]}


@pytest.mark.case("B02", "unknown tool as text with a symbol in front")
def test_a_servers_own_way_to_say_no_is_declared_as_a_sentence() -> None:
    unknown = mcp("❌ Unknown tool: close_cas")
    seen = told(unknown, **CROSS)
    assert seen.stopped
    assert (seen.outcome.outcome, seen.outcome.sign) == ("error", "sentence")
    assert told(unknown).stopped  # the bundled sentences know this one, whatever stands in front of it
    assert told(mcp("❌ close_cas"), **CROSS).stopped
    assert told(mcp("❌ close_cas")).went_on  # what a symbol means is not the same for all servers
    assert told(unknown, returns="text").went_on  # a document's line is no sentence about the call


@pytest.mark.case("B02", "counter-example: an article that mentions errors")
def test_an_article_about_errors_is_no_error() -> None:
    assert told(mcp("Chapter 4. Error budgets and how teams spend them.")).went_on
