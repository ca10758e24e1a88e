"""One short line of text is read by anchored patterns, which are data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guardrail.calls import Returned
from guardrail.declare import bundled
from guardrail.declare.policies import Sentence
from guardrail.declare.tools import Tool
from guardrail.judge.result import ResultRules, judge
from guardrail.judge.sentences import Sentences

TABLE: dict[str, list[str]] = json.loads(Path(__file__).with_name("sentences.json").read_text("utf-8"))
LINES = [(line, None if meaning == "nothing" else meaning) for meaning, lines in TABLE.items() for line in lines]
BUNDLED = Sentences.of(bundled.sentences())


def outcome(text: str, tool: Tool | None = None) -> str:
    return judge(Returned(text), "read", ResultRules.of(tool or Tool(), bundled.sentences())).outcome


@pytest.mark.parametrize(("line", "meaning"), LINES)
def test_the_bundled_patterns_read_a_line_as_the_table_says(line: str, meaning: str | None) -> None:
    assert BUNDLED.read(line) == meaning


@pytest.mark.parametrize(("line", "meaning"), LINES)
def test_case_and_blanks_around_a_line_do_not_matter(line: str, meaning: str | None) -> None:
    assert BUNDLED.read(f"  {line.upper()} \n") == meaning


def test_the_words_of_a_pattern_leave_out_no_line_that_it_matches() -> None:
    without = Sentences.of([sentence.model_copy(update={"words": ()}) for sentence in bundled.sentences()])
    assert [BUNDLED.read(line) for line, _ in LINES] == [without.read(line) for line, _ in LINES]


def test_every_bundled_pattern_is_needed_by_a_line_of_the_table() -> None:
    def read_without(place: int) -> list[str | None]:
        rest = [sentence for other, sentence in enumerate(bundled.sentences()) if other != place]
        return [Sentences.of(rest).read(line) for line, _ in LINES]

    everything = [BUNDLED.read(line) for line, _ in LINES]
    unneeded = [s.pattern for place, s in enumerate(bundled.sentences()) if read_without(place) == everything]
    assert unneeded == []


def test_a_text_of_several_lines_is_no_sentence() -> None:
    assert outcome("Error: one\nError: two") == "ok"


def test_a_long_text_is_no_sentence() -> None:
    assert outcome("Error: " + "x" * 300) == "ok"


def test_a_tool_that_returns_texts_is_never_read() -> None:
    assert outcome("Error: disk full", Tool(returns="text")) == "ok"
    assert outcome('{"error": "disk full"}', Tool(returns="text")) == "ok"
    assert outcome("<Error><Message>x</Message></Error>", Tool(returns="text")) == "ok"


def test_a_tools_own_sentences_come_before_the_bundled_ones() -> None:
    fine = Sentence(pattern="Error: none to speak of", means="ok")
    assert outcome("Error: none to speak of", Tool(sentences=(fine,))) == "ok"


def test_a_pattern_is_anchored_at_both_ends() -> None:
    tool = Tool(sentences=(Sentence(pattern="halt", means="error"),))
    assert [outcome(text, tool) for text in ("Halt", "HALT", "halt!", "we halt")] == ["error", "error", "ok", "ok"]


def test_a_pattern_with_capitals_matches_as_well() -> None:
    tool = Tool(sentences=(Sentence(pattern=r"Kein \S+ gefunden", means="empty"),))
    assert outcome("kein Auftrag gefunden", tool) == "empty"


def test_symbols_in_front_of_a_line_are_passed_over() -> None:
    assert outcome("\N{WARNING SIGN} Order not found") == "empty"


def test_a_declared_symbol_in_front_of_a_line_counts() -> None:
    tool = Tool(sentences=(Sentence(pattern="\N{CROSS MARK} .*", means="rejected"),))
    assert outcome("\N{CROSS MARK} today is a holiday", tool) == "rejected"


def test_what_follows_a_word_for_a_failure_says_what_it_was() -> None:
    assert BUNDLED.read("Error: Tool execution failed: Order not found") == "empty"
    assert BUNDLED.read("Error: the moon is full") == "error"


def test_a_declared_word_is_asked_for_without_case() -> None:
    tool = Tool(sentences=(Sentence(pattern="njet.*", means="error", words=("Njet",)),))
    assert outcome("Njet, tovarishch", tool) == "error"
    assert outcome("njetski", tool) == "ok"


@pytest.mark.parametrize("pattern", ["(", "[a", "*"])
def test_a_pattern_that_is_none_is_named(pattern: str) -> None:
    broken = Sentence.model_construct(pattern=pattern, means="error", words=())
    with pytest.raises(ValueError, match="is no regular expression"):
        Sentences.of([broken])
