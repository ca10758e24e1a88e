"""The YAML reader."""

from __future__ import annotations

import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.declare.documents import DEEPEST, MOST_BYTES, Document, parse, read

HERE = Path(__file__).parent


def table(name: str) -> list[Any]:
    """A data file's cases, with numbers as exact as the reader's, as parameters."""
    cases = json.loads((HERE / name).read_text("utf-8"), parse_float=Decimal)
    return [pytest.param(case, id=case["name"]) for case in cases]


def only_fault(document: Document) -> tuple[int | None, str]:
    """The line and the text of the one thing that makes a document unreadable."""
    assert not document.readable
    assert document.value is None
    (fault,) = document.faults
    return fault.line, fault.what


@pytest.mark.parametrize("case", table("readings.json"))
def test_a_text_is_read_by_the_rules_of_version_1_2(case: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_bytes(case["text"].encode())

    document = read(path)

    assert document.faults == ()
    assert as_json(document.value) == as_json(case["value"])


def as_json(value: object) -> str:
    """A value as text, in which 1, true, 1.0 and "1" all differ."""
    return json.dumps(value, default=lambda number: {"decimal": str(number)})


@pytest.mark.parametrize("case", table("unreadable.json"))
def test_what_is_no_document_is_refused_with_its_line(case: dict[str, Any]) -> None:
    line, what = only_fault(parse(case["text"], "file.yaml"))

    assert line == case["line"]
    assert what.startswith(case["what"])


def test_an_environment_mark_in_braces_is_refused_with_the_advice_to_quote_it() -> None:
    (fault,) = parse("a: {url: ${env:X}}", "file.yaml").faults

    assert "quote" in fault.advice


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=20,
)


@given(value=JSON, indent=st.none() | st.integers(0, 3), escaped=st.just(True) | st.just(False))
def test_any_json_document_reads_as_the_same_value(value: Any, indent: int | None, escaped: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=escaped or not printable(value))

    document = parse(text, "file.yaml")

    assert document.faults == ()
    assert as_json(document.value) == as_json(json.loads(text, parse_float=Decimal))


def printable(value: object) -> bool:
    """Whether a value's texts hold only what YAML allows to stand unescaped, and no foreign line ends."""
    text = json.dumps(value, ensure_ascii=False)
    return text.isprintable() and not set(text) & set("\x7f\x85\u2028\u2029\ufeff\ufffe\uffff")


@given(st.dictionaries(st.text("abcdef", min_size=1, max_size=5), st.integers(0, 9), min_size=1, max_size=6))
def test_each_key_is_found_at_its_line(entries: dict[str, int]) -> None:
    text = "".join(f"# {name}\n{name}:\n  inner: [{value}]\n" for name, value in entries.items())

    document = parse(text, "file.yaml")

    for position, name in enumerate(entries):
        assert document.line((name,)) == 3 * position + 2
        assert document.line((name, "inner", 0)) == 3 * position + 3
        assert document.line((name, "inner", "nowhere", 5)) == 3 * position + 3


@given(st.text(max_size=60) | st.text("ab:-[]{}#&*!|>'\"%@`\n\t ,?<0.1~$\\", max_size=60))
def test_no_text_makes_the_reader_raise(text: str) -> None:
    document = parse(text, "file.yaml")

    assert document.readable or document.faults


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    assert only_fault(read(tmp_path / "nowhere.yaml")) == (None, "there is no such file")


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    assert only_fault(read(tmp_path)) == (None, "is a directory, not a file")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    assert only_fault(read(tmp_path / "pipe")) == (None, "is not a regular file")


def test_a_path_with_a_nul_is_refused() -> None:
    assert only_fault(read(Path("a\0b"))) == (None, "cannot be read: embedded null byte")


def test_text_that_is_not_utf_8_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes("a: 1\nb: Å\n".encode("latin-1"))

    assert only_fault(read(path)) == (2, "is not UTF-8")


def test_utf_16_is_refused_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "wide.yaml"
    path.write_bytes("a: 1\n".encode("utf-16"))

    assert only_fault(read(path)) == (1, "is UTF-16, not UTF-8")


def test_a_huge_file_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "huge.yaml"
    path.write_bytes(b"a: 1\n" * (MOST_BYTES // 5 + 1))

    assert only_fault(read(path)) == (None, f"is larger than {MOST_BYTES:,} bytes")


def test_aliases_cannot_make_a_small_file_large() -> None:
    lines = ["a0: &a0 [1, 1]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))]

    line, what = only_fault(parse("\n".join(lines), "bomb.yaml"))

    assert line is not None
    assert "aliases repeat" in what


def test_aliases_cannot_make_a_flat_file_deep() -> None:
    lines = ["a0: &a0 [1]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, DEEPEST + 2))]

    assert only_fault(parse("\n".join(lines), "deep.yaml"))[1] == f"is nested more than {DEEPEST} deep"


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_deep_nesting_is_refused(opening: str) -> None:
    assert only_fault(parse(opening * 2000, "deep.yaml"))[1] == f"is nested more than {DEEPEST} deep"


def test_half_a_character_is_refused() -> None:
    (fault,) = parse('a: "\\ud800"', "file.yaml").faults

    assert fault.what == "holds half of a character (a lone surrogate)"
