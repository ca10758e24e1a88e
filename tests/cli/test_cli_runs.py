"""`guardrail runs`: what the ledger knows."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from guardrail import Guard, Run
from guardrail.calls import Action, Effect, Outcome, Stop
from guardrail.ledger.ledger import Ledger
from guardrail.ledger.processes import this_host
from guardrail.ledger.records import (
    CallRecord,
    FindingRecord,
    HoldRecord,
    HoldResolved,
    OutcomeRecord,
    RunRecord,
    StopRecord,
    UserTurn,
    VerdictRecord,
)
from support.command_line import Ended, command, on_terminal
from support.ledgers import in_schema
from support.project import Project

BEGAN = 1_796_000_000.0  # 2026-11-30 00:53:20 UTC


def gone() -> int:
    """The id of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


class Story:
    """Writes runs into a ledger as a guard would, at times of its own."""

    def __init__(self, path: Path) -> None:
        self.ledger = Ledger(path)

    def open(self, run: str, task: str | None = "refund_order", *, pid: int = 4242, host: str = "shop-1") -> None:
        inputs = '{"order_id": 17, "amount": "19.90"}'
        self.ledger.open_run(RunRecord(run, task, inputs, "balanced", "enforce", BEGAN, pid, host, "4bf92f3577b34da6"))

    def open_here(self, run: str) -> None:
        """A run of this process."""
        self.ledger.open_run(RunRecord(run, None, "{}", "balanced", "enforce", time.time(), os.getpid(), this_host()))

    def call(self, run: str, number: int, tool: str, effect: Effect, args: str) -> CallRecord:
        return CallRecord(run, number, tool, None, effect, args, f"d{number}", f"o{number}", BEGAN + number)

    def made(
        self, call: CallRecord, outcome: Outcome, action: Action, message: str = "", *, executed: bool = True
    ) -> None:
        ended = call.started + 0.0123
        record = OutcomeRecord(call.run, call.number, outcome, "", message, action, executed, ended, call=call)
        self.ledger.record(record)

    def held(self, call: CallRecord, outcome: Outcome, by: str | None) -> None:
        self.ledger.record(HoldRecord(call.run, call.number, call.number, call.tool, outcome, "", call.args))
        if by is not None:
            self.ledger.record(HoldResolved(call.run, call.number, by, call.started + 0.5))


def tell_all(story: Story) -> None:
    """A stopped run with a bit of everything."""
    run = "refund-17"
    story.open(run)
    lookup = story.call(run, 1, "lookup_order", "read", '{"order_id": 71}')
    story.made(lookup, "empty", "hold")
    story.held(lookup, "empty", "call 2")
    story.made(story.call(run, 2, "lookup_order", "read", '{"order_id": 17}'), "ok", "allow")
    story.ledger.record(UserTurn(run, BEGAN + 2.5))
    cancel = story.call(run, 3, "cancel_order", "write", '{"order_id": 17}')
    story.made(cancel, "rejected", "hold", "only an [bold]open\x1b[0m order can be cancelled")
    story.held(cancel, "rejected", None)
    refund = story.call(run, 4, "refund_order", "write", '{"order_id": 17, "amount": "19.90"}')
    story.made(refund, "refused", "stop", "stopped at call 4", executed=False)
    detail = "call 3 (cancel_order) was rejected: only an open order can be cancelled"
    story.ledger.record(StopRecord(run, "write_under_hold", 4, "refund_order", detail, BEGAN + 4))
    findings = (
        FindingRecord("check_error", "paid", "paid could not be made: the store is away"),
        FindingRecord(
            "missing_change", "shop.orders", "shop.orders id=17: status is 'paid', expected 'refunded'", '{"id": 17}'
        ),
        FindingRecord("unrequested_change", "shop.audit", "shop.audit id=1: the row was inserted", warning=True),
    )
    story.ledger.close_run(VerdictRecord(run, "stopped", "", 1, None, 1, BEGAN + 5.2, findings))


@pytest.fixture
def story(project: Project) -> Iterator[Story]:
    project.ledger.parent.mkdir()
    made = Story(project.ledger)
    yield made
    made.ledger.close()


# One run.


def test_a_run_is_told_from_beginning_to_end(story: Story) -> None:
    tell_all(story)
    ended = command("runs", "show", "refund-17")
    assert ended.code == 0
    assert ended.shown == snapshot("""\
refund_order stopped
run      refund-17
inputs   order_id=17, amount='19.90'
policy   balanced (enforce)
started  2026-11-30 00:53:20, 5.2 s
process  4242 on shop-1
trace    4bf92f3577b34da6

#  call                                        effect  outcome   decision   took
────────────────────────────────────────────────────────────────────────────────
1  lookup_order(order_id=71)                   read    empty     hold      12 ms
   held until call 2
2  lookup_order(order_id=17)                   read    ok        allow     12 ms
   — the user spoke —
3  cancel_order(order_id=17)                   write   rejected  hold      12 ms
   only an [bold]open\\x1b[0m order can be
   cancelled
   held to the end
4  refund_order(order_id=17, amount='19.90')   write   refused   stop          -
   the run was stopped here

■ stopped at call 4 (refund_order), write under hold: call 3 (cancel_order) was rejected: only an open order can be cancelled
stopped: 1 finding, 1 warning, 1 thing could not be checked, 1 open hold
  ✗ shop.orders id=17: status is 'paid', expected 'refunded'
  ! shop.audit id=1: the row was inserted
  ? paid could not be made: the store is away\
""")
    assert max(map(len, table_of(ended))) <= 80


def table_of(ended: Ended) -> list[str]:
    """The lines of the table of calls."""
    start = next(number for number, line in enumerate(ended.lines) if line.startswith("#"))
    return ended.lines[start : ended.lines.index("", start)]


def test_a_run_as_json(story: Story) -> None:
    tell_all(story)
    told = command("runs", "show", "refund-17", "--json").json
    assert [(call["tool"], call["outcome"], call["decision"]) for call in told["calls"]] == [
        ("lookup_order", "empty", "hold"),
        ("lookup_order", "ok", "allow"),
        ("cancel_order", "rejected", "hold"),
        ("refund_order", "refused", "stop"),
    ]
    assert [hold["resolved_by"] for hold in told["holds"]] == ["call 2", None]
    assert told["inputs"] == {"order_id": 17, "amount": "19.90"}
    assert told["stop"]["reason"] == "write_under_hold"
    assert (told["state"], told["ended"]) == ("stopped", "2026-11-30T00:53:25.200000+00:00")
    assert [found["kind"] for found in told["verdict"]["findings"]][:2] == ["check_error", "missing_change"]
    assert told["verdict"]["findings"][1]["key"] == {"id": 17}


def test_a_run_that_was_cut_off_is_shown_with_its_write_in_doubt(story: Story) -> None:
    story.open("refund-17", pid=gone(), host=this_host())
    story.ledger.intend(story.call("refund-17", 1, "refund_order", "write", "{}"))
    ended = command("runs", "show", "refund-17")
    assert ended.lines[0] == "refund_order cut off"
    assert any(line.split()[-1] == "doubt" for line in table_of(ended))
    assert "  ! call 1 (refund_order) may or may not have been carried out" in ended.lines
    assert "guardrail verify --run refund-17" in ended.out
    assert command("runs", "show", "refund-17", "--json").json["writes_in_doubt"] == [1]


def test_a_write_in_doubt_of_a_verified_run_was_made_once(story: Story) -> None:
    story.open("refund-17")
    story.made(story.call("refund-17", 1, "refund_order", "write", "{}"), "in_doubt", "hold")
    story.ledger.close_run(VerdictRecord("refund-17", "verified", "", 1, None, 1, BEGAN + 5.2))
    said = "call 1 (refund_order) was in doubt; the state is verified, so what the task wants was done, once"
    assert f"  ✓ {said}" in command("runs", "show", "refund-17").lines


# Runs that are only observed.


@contextmanager
def going_on(project: Project, mode: str) -> Generator[Run]:
    """An observed run in which a note is written though the order could not be cancelled; it ends with the block."""
    project.replace("version: 1\n", f"version: 1\n{mode}\n")
    with Guard.load(project.file) as guard, guard.run("is_paid", inputs={"order_id": 18}, id="ticket-9") as run:
        lookup, cancel, note = run.wrap(project.shop.lookup_order, project.shop.cancel_order, project.shop.note_order)
        lookup(18)
        cancel(18)
        note(18, "cancelled")
        guard.ledger.flush()
        yield run


def went_on(project: Project, mode: str) -> Stop | None:
    """Such a run to its end; gives the stop that it was spared."""
    with going_on(project, mode) as run:
        pass
    return run.would_stop


@pytest.mark.parametrize(
    ("mode", "came_to"),
    [
        ("mode: observe", "would stop: write under hold at call 3"),
        ("mode: observe\npolicy: strict", "would stop: rejected at call 2"),
    ],
)
def test_an_observed_run_tells_where_it_would_have_been_stopped(project: Project, mode: str, came_to: str) -> None:
    spared = went_on(project, mode)
    assert spared is not None
    listed = " ".join(command("runs", "list").out.split())
    assert came_to in listed
    told = {"reason": spared.reason, "call": spared.call, "tool": spared.tool, "detail": spared.detail}
    assert command("runs", "list", "--json").json["runs"][0]["would_stop"] == told
    assert command("runs", "show", "ticket-9", "--json").json["would_stop"] == told
    shown = command("runs", "show", "ticket-9")
    assert f"□ would have been {spared}" in shown.lines
    assert shown.out.count(f"would have been {spared}") == 1


def test_an_observed_run_that_goes_on_tells_where_it_would_have_been_stopped(project: Project) -> None:
    with going_on(project, "mode: observe"):
        told = command("runs", "list", "--json").json["runs"][0]["would_stop"]
    assert told == {"reason": "write_under_hold", "call": 3, "tool": "note_order", "detail": ""}


def test_an_observed_run_tells_that_the_guard_itself_would_have_stopped_it(project: Project) -> None:
    project.replace(
        "lookup_order: {effect: read}", "lookup_order: {effect: read, requires: [{cel: 'args.no.thing > 0'}]}"
    )
    spared = went_on(project, "mode: observe")
    assert spared is not None
    told = command("runs", "list", "--json").json["runs"][0]["would_stop"]
    assert (told["reason"], told["call"], told["detail"]) == (spared.reason, spared.call, spared.detail)


def test_a_call_of_a_run_that_goes_on_is_running(story: Story) -> None:
    story.open_here("refund-17")
    story.ledger.intend(story.call("refund-17", 1, "refund_order", "write", "{}"))
    ended = command("runs", "show", "refund-17")
    assert ended.lines[0] == "no task open"
    assert any("running" in line for line in table_of(ended))


def test_the_beginning_of_an_id_must_mean_one_run(story: Story) -> None:
    story.open("refund-17")
    story.open("refund-18")
    assert command("runs", "show", "refund-18").code == 0
    ended = command("runs", "show", "refund")
    assert ended.code == 2
    assert "2 runs begin with refund: refund-17, refund-18" in ended.err
    assert command("runs", "show", "").code == 2


# Lists.


def test_runs_are_listed_with_what_they_came_to(story: Story) -> None:
    tell_all(story)
    story.open("3f2a9c0e51d84b7a9d0c1e2f3a4b5c6d", "close_account", pid=gone(), host=this_host())
    story.ledger.intend(story.call("3f2a9c0e51d84b7a9d0c1e2f3a4b5c6d", 1, "close", "write", "{}"))
    story.open("ticket-9", None)
    story.open("ticket-8\x1b[2J", "look[/b]_only")
    story.ledger.close_run(VerdictRecord("ticket-8\x1b[2J", "verified", "", 0, None, 1, BEGAN + 9))
    ended = command("runs", "list")
    assert ended.code == 0
    assert ended.shown == snapshot("""\
run              started           task           calls  came to
────────────────────────────────────────────────────────────────────────────────
3f2a9c0e51d8     2026-11-30 00:53  close_account      1  cut off: 1 write in
                                                         doubt
refund-17        2026-11-30 00:53  refund_order       4  stopped: write under
                                                         hold, 3 findings, 1
                                                         open hold
ticket-8\\x1b[2J  2026-11-30 00:53  look[/b]_only      0  verified
ticket-9         2026-11-30 00:53  -                  0  open elsewhere\
""")


def test_a_list_can_be_narrowed(story: Story) -> None:
    tell_all(story)
    story.open("ticket-9", "look_only")

    def listed(*options: object) -> list[str]:
        return [run["id"] for run in command("runs", "list", *options, "--json").json["runs"]]

    assert sorted(listed()) == ["refund-17", "ticket-9"]
    assert listed("--open") == ["ticket-9"]
    assert listed("--task", "refund_order") == ["refund-17"]
    assert listed("--verdict", "stopped") == ["refund-17"]
    assert listed("--verdict", "verified") == []
    for written in ("silent-failure", "silent failure", "Silent_Failure"):
        assert listed("--verdict", written) == []
    assert len(listed("--limit", 1)) == 1


def test_a_list_as_json(story: Story) -> None:
    tell_all(story)
    assert command("runs", "list", "--json").json == snapshot(
        {
            "runs": [
                {
                    "id": "refund-17",
                    "task": "refund_order",
                    "state": "stopped",
                    "verdict": "stopped",
                    "started": "2026-11-30T00:53:20+00:00",
                    "ended": "2026-11-30T00:53:25.200000+00:00",
                    "policy": "balanced",
                    "mode": "enforce",
                    "calls": 4,
                    "findings": 3,
                    "writes_in_doubt": 0,
                    "open_holds": 1,
                    "stop": "write_under_hold",
                    "would_stop": None,
                    "records_lost": 0,
                    "trace_id": "4bf92f3577b34da6",
                }
            ]
        }
    )


def test_no_runs_are_no_error(story: Story) -> None:
    story.open("ticket-9")
    ended = command("runs", "list", "--task", "nothing")
    assert (ended.code, ended.lines) == (0, ["there are no such runs"])


def test_an_unknown_verdict_is_misuse(project: Project) -> None:
    ended = command("runs", "list", "--verdict", "good")
    assert ended.code == 2
    assert "silent_failure" in ended.err


# Deleting.


def test_a_run_is_deleted_by_its_id(story: Story) -> None:
    tell_all(story)
    assert command("runs", "delete", "refund-17", "--yes").lines == ["deleted 1 run"]
    assert command("runs", "list", "--json").json == {"runs": []}


def test_old_runs_are_deleted_and_open_ones_stay(story: Story) -> None:
    tell_all(story)
    story.open_here("ticket-9")
    told = command("runs", "delete", "--older-than", "0m", "--yes", "--json")
    assert (told.code, told.json) == (0, {"deleted": 1})
    assert [run["id"] for run in command("runs", "list", "--json").json["runs"]] == ["ticket-9"]


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_who_cannot_be_asked_must_have_agreed(story: Story, options: list[str]) -> None:
    tell_all(story)
    ended = command("runs", "delete", "refund-17", *options)
    assert (ended.code, ended.out) == (2, "")
    assert "say --yes" in ended.err
    assert command("runs", "show", "refund-17").code == 0


def test_who_wants_json_is_not_asked(story: Story, project: Project) -> None:
    tell_all(story)
    story.ledger.flush()
    ended = on_terminal("runs", "delete", "refund-17", "--json", folder=project.folder, typed="y\n")
    assert (ended.code, "say --yes" in ended.out) == (2, True)
    assert command("runs", "show", "refund-17").code == 0


@pytest.mark.parametrize(("typed", "left", "code"), [("n\n", 1, 0), ("y\n", 0, 0), ("\x04", 1, 130)])
def test_who_can_be_asked_is_asked(story: Story, project: Project, typed: str, left: int, code: int) -> None:
    tell_all(story)
    story.ledger.flush()
    ended = on_terminal("runs", "delete", "refund-17", folder=project.folder, typed=typed)
    assert "Delete run refund-17? [y/N]" in ended.out
    assert ended.code == code
    assert len(command("runs", "list", "--json").json["runs"]) == left


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "one of them"),
        (("refund-17", "--older-than", "30d"), "one of them"),
        (("--older-than", "soon", "--yes"), "'soon' is no age"),
        (("nobody", "--yes"), "there is no run nobody"),
    ],
)
def test_deleting_nothing_in_particular_is_misuse(story: Story, arguments: tuple[str, ...], why: str) -> None:
    tell_all(story)
    ended = command("runs", "delete", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert why in ended.err


def test_a_run_of_a_living_process_is_not_deleted(story: Story) -> None:
    story.open_here("ticket-9")
    ended = command("runs", "delete", "ticket-9", "--yes")
    assert ended.code == 2
    assert f"process {os.getpid()}" in ended.err


# Which ledger.


def test_the_ledger_can_be_named_without_a_configuration(story: Story, project: Project) -> None:
    tell_all(story)
    project.file.unlink()
    assert command("runs", "list", "--ledger", project.ledger, "--json").json["runs"][0]["id"] == "refund-17"


def test_the_ledger_of_a_configuration_lies_beside_it(
    story: Story, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell_all(story)
    monkeypatch.chdir(tmp_path)
    assert command("runs", "list", "--config", "project/guardrail.yaml", "--json").json["runs"][0]["id"] == "refund-17"


def test_a_ledger_that_is_not_there_is_misuse_and_is_not_made(project: Project) -> None:
    ended = command("runs", "list")
    assert (ended.code, ended.out) == (2, "")
    assert "there is no ledger runs/ledger.db" in ended.err
    assert not project.ledger.exists()


def test_a_ledger_in_memory_cannot_be_read(project: Project) -> None:
    project.replace("ledger: runs/ledger.db", "ledger: memory")
    ended = command("runs", "list")
    assert ended.code == 2
    assert "memory" in ended.err


def test_a_file_that_is_no_ledger_is_told_without_a_traceback(project: Project) -> None:
    ended = command("runs", "list", "--ledger", project.shop.path)
    assert (ended.code, ended.out) == (2, "")
    assert "another application's database" in ended.err


def test_a_ledger_on_a_server_is_named_by_its_url(project: Project, postgres_url: str) -> None:
    project.file.unlink()
    place = in_schema(postgres_url)
    assert command("runs", "list", "--ledger", place, "--json").json == {"runs": []}
    with closing(Ledger(place)) as ledger:
        ledger.open_run(RunRecord("refund-17", None, "{}", "balanced", "enforce", BEGAN, os.getpid(), this_host()))
        ledger.close_run(VerdictRecord("refund-17", "verified", "", 0, None, 1, BEGAN + 5.2))
    assert command("runs", "list", "--ledger", place, "--json").json["runs"][0]["id"] == "refund-17"
    assert command("runs", "show", "refund", "--ledger", place, "--json").json["state"] == "verified"
    assert command("runs", "delete", "refund-17", "--yes", "--ledger", place, "--json").json == {"deleted": 1}
    assert command("runs", "list", "--ledger", place).out == "there are no such runs\n"


@pytest.mark.parametrize(
    "place",
    ["postgresql://me:h0rse/@127.0.0.1/shop", "postgresql://me:h0rse@127.0.0.1/shop?x=1", "mysql://me:h0rse@x/y"],
)
def test_the_url_of_a_ledger_that_cannot_be_is_not_shown(project: Project, place: str) -> None:
    ended = command("runs", "list", "--ledger", place)
    assert (ended.code, ended.out) == (2, "")
    assert "h0rse" not in ended.err
