"""B19: a broken policy file means: no rules."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from guardrail import ConfigurationError, Guard, RunStopped
from support.cases import answering

STRICT = """\
version: 1
policy: strict
ledger: memory
tools:
  refund: {effect: write, args: {country: {in: ["NO", SE]}}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "guardrail.yaml"


@pytest.fixture
def guard(file: Path) -> Iterator[Guard]:
    file.write_text(STRICT)
    with Guard.load(file) as made:
        yield made


def refused(file: Path, text: str) -> str:
    """The words with which a file of this text is refused."""
    file.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        Guard.load(file)
    return str(caught.value)


def is_strict(guard: Guard) -> bool:
    """Whether a run is stopped as `strict` says."""
    run = guard.run()
    with pytest.raises(RunStopped), run:
        run.call("refund", {"country": "SE"}, answering({"error": "no"}))
    return run.stop is not None and run.stop.reason == "error" and guard.configuration.policy == "strict"


@pytest.mark.case("B19", "syntax error at start")
def test_a_file_that_is_no_yaml_is_refused_with_file_and_line(file: Path) -> None:
    said = refused(file, "version: 1\ntools: [refund")
    assert f"{file}:2:" in said
    assert "YAML" in said


@pytest.mark.case("B19", "syntax error at reload")
def test_a_reload_that_fails_keeps_the_former_set_and_is_seen(
    guard: Guard, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = guard.configuration
    file.write_text("tools: [refund")
    with pytest.raises(ConfigurationError, match="YAML"):
        guard.reload()
    assert guard.configuration is before
    assert is_strict(guard)
    [line] = [record for record in caplog.records if "guardrail.reload_failed" in record.getMessage()]
    assert line.levelno == logging.ERROR
    assert str(file) in line.getMessage()


@pytest.mark.parametrize("text", ["", "policy: no_such\n", "tools: {refund: {effect: reed}}\n", "- a list\n"])
def test_no_bad_file_makes_a_reload_permissive(guard: Guard, file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigurationError):
        guard.reload()
    file.unlink()
    with pytest.raises(ConfigurationError):
        guard.reload()
    assert is_strict(guard)


def test_a_good_reload_holds_for_the_runs_that_are_opened_after_it(guard: Guard, file: Path) -> None:
    earlier = guard.run()
    with pytest.raises(RunStopped), earlier:
        file.write_text(STRICT.replace("policy: strict", "policy: balanced"))
        guard.reload()
        with guard.run() as later:
            later.call("refund", {"country": "SE"}, answering({"error": "no"}))
        assert (later.stop, later.open_holds) == (None, 1)
        earlier.call("refund", {"country": "SE"}, answering({"error": "no"}))
    assert guard.configuration.policy == "balanced"


@pytest.mark.case("B19", "valid YAML, unknown key")
def test_an_unknown_key_is_refused_with_the_one_that_is_meant(file: Path) -> None:
    said = refused(file, "version: 1\ntols: {}\n")
    assert f"{file}:2: tols:" in said
    assert "`tools`" in said


@pytest.mark.case("B19", "empty file")
@pytest.mark.parametrize("text", ["", "\n", "# nothing yet\n", "---\n...\n"])
def test_an_empty_file_is_refused(file: Path, text: str) -> None:
    assert "empty" in refused(file, text)


@pytest.mark.case("B19", "key on unquoted")
@pytest.mark.parametrize("text", ["rules:\n  - on: error\n", "tools:\n  refund:\n    on: error\n", "tools: {on: {}}\n"])
def test_a_key_that_is_true_to_some_readers_is_refused_with_the_hint_to_quote_it(file: Path, text: str) -> None:
    said = refused(file, text)
    assert "`on`" in said
    assert "quote it" in said


def test_a_quoted_key_is_a_name_like_any_other(file: Path) -> None:
    file.write_text('ledger: memory\ntools: {"on": {effect: read}}\n')
    with Guard.load(file) as guard:
        assert list(guard.configuration.tools) == ["on"]


@pytest.mark.case("B19", "value NO unquoted")
def test_the_country_no_is_never_false(guard: Guard, file: Path) -> None:
    with guard.run() as run:
        assert run.call("refund", {"country": "NO"}, answering({"ok": True})) == {"ok": True}
    with pytest.raises(RunStopped) as caught, guard.run() as run:
        run.call("refund", {"country": False}, answering({"ok": True}))
    assert caught.value.stop.reason == "precondition_failed"
    said = refused(file, STRICT.replace('"NO"', "NO"))
    assert f"{file}:5: tools.refund.args.country.in[0]" in said
    assert "quote it" in said


@pytest.mark.case("B19", "duplicate key")
def test_a_key_that_is_given_twice_is_refused_with_both_lines(file: Path) -> None:
    said = refused(file, "tools:\n  refund: {effect: read, empty: stop}\n  refund: {effect: read, empty: allow}\n")
    assert f"{file}:3: tools.refund: is given twice, first in line 2" in said


@pytest.mark.case("B19", "second of two files broken")
def test_of_two_files_of_which_one_is_broken_nothing_goes_live(guard: Guard, file: Path, tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text("tools: {refund: {effect: read}}\n")
    (tmp_path / "broken.yaml").write_text("tools:\n  lookup: {effect: read\n")
    file.write_text("policy: observe\nledger: memory\ninclude: [good.yaml, broken.yaml]\n")
    with pytest.raises(ConfigurationError, match=r"broken\.yaml:3"):
        guard.reload()
    assert is_strict(guard)
    assert guard.configuration.tools["refund"].effect == "write"
    with pytest.raises(ConfigurationError):
        Guard.load(file)


@pytest.mark.case("B19", "number-like values")
def test_what_looks_like_a_number_is_what_was_written_or_refused(file: Path) -> None:
    assert "version: must be 1, the only version there is, not 1.10" in refused(file, "version: 1.10\n")
    declared = "ledger: memory\ntools: {{refund: {{effect: write, args: {{id: {id}, at: {at}}}}}}}\n"
    said = refused(file, declared.format(id="012", at="12:30:45"))
    assert f"{file}:2: tools.refund.args.id: `012` has a leading zero: quote it" in said
    file.write_text(declared.format(id='"012"', at="12:30:45"))
    with Guard.load(file) as guard, guard.run() as run:
        run.call("refund", {"id": "012", "at": "12:30:45"}, answering({"ok": True}))
    assert run.open_holds == 0


@pytest.mark.case("B19", "rule names a tool that does not exist")
def test_a_tool_that_no_rule_names_is_told_once_with_the_name_that_is_near(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file.write_text("ledger: memory\ntools: {refnd: {effect: write, once_per: [id]}, look_*: {effect: read}}\n")
    with Guard.load(file) as guard:
        for _ in range(2):
            with guard.run() as run:
                run.call("refund", {"id": 1}, answering({"ok": True}))
                run.call("look_up", {"id": 1}, answering({"id": 1}))
    [line] = [record.getMessage() for record in caplog.records]
    assert "guardrail.tool_not_declared" in line
    assert "tool='refund'" in line
    assert "did you mean `refnd`?" in line


def test_a_rule_that_names_a_tool_that_nothing_declares_is_refused(file: Path) -> None:
    said = refused(file, "tools: {refund: {effect: write, requires: [{earlier: lookp}]}, lookup: {effect: read}}\n")
    assert "lookp" in said
    assert "`lookup`" in said


@pytest.mark.case("B19", "guard setting fail mode")
@pytest.mark.parametrize(
    "requires",
    [
        {"cel": "args.amount < 100"},  # the argument is missing: the expression fails
        {"store": "gone", "sql": "select count(*) = 0 from refunds"},  # the store is away
    ],
)
def test_a_check_that_fails_itself_stops_the_run_as_the_guards_own_error(
    tmp_path: Path, file: Path, requires: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    file.write_text(
        "ledger: memory\n"
        f"stores: {{gone: {{url: 'sqlite:///{tmp_path}/gone.db'}}}}\n"
        f"tools: {{refund: {{effect: write, requires: [{requires!r}]}}}}\n"
    )
    executed: list[dict[str, object]] = []
    with Guard.load(file) as guard:
        run = guard.run()
        with pytest.raises(RunStopped) as caught, run:
            run.call("refund", {"id": 1}, answering({"ok": True}, executed))
    assert (caught.value.stop.reason, executed) == ("guard_error", [])
    assert any("guardrail.guard_error" in record.getMessage() for record in caplog.records)
