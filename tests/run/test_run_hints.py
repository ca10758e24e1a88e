"""What a call's effect is when whoever offers the tool says it, and the policy does not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

import pytest

from guardrail import CallRefused, Configuration, Guard, Hints, RunStopped
from guardrail.call.hints import hints_of

SERVERS = {"ours": {"trust_annotations": True}, "theirs": {}}
READ: Final = "read"
WRITE: Final = "write"


def made(tools: dict[str, Any] | None = None) -> Guard:
    whole = {"ledger": "memory", "servers": SERVERS, "tools": {"fail": {"effect": "write"}, **(tools or {})}}
    return Guard(Configuration.model_validate(whole))


def recorded(guard: Guard, hints: Hints | None) -> str:
    """The effect that a call of `tool` has in the record."""
    with guard.run() as run:
        run.call("tool", {}, dict, hints=hints)
    [call] = guard.ledger.load_run(run.id).calls  # type: ignore[union-attr]
    return call.call.effect


@pytest.mark.parametrize(
    ("declared", "said", "server", "effect"),
    [
        (None, None, None, "unknown"),
        (None, "unknown", None, "unknown"),
        (None, READ, None, READ),
        (None, READ, "ours", READ),
        (None, READ, "theirs", "unknown"),
        (None, READ, "nobody's", "unknown"),
        (None, WRITE, None, WRITE),
        (None, WRITE, "ours", WRITE),
        (None, WRITE, "theirs", WRITE),
        (None, WRITE, "nobody's", WRITE),
        ({}, READ, None, READ),
        ({"empty": "hold"}, READ, "ours", READ),
        ({"empty": "hold"}, READ, "theirs", "unknown"),
        ({"effect": READ}, WRITE, None, READ),
        ({"effect": READ}, WRITE, "theirs", READ),
        ({"effect": WRITE}, READ, None, WRITE),
        ({"effect": "unknown"}, READ, None, "unknown"),
        ({"effect": {"by": "args.how", "write": ["w"]}}, READ, None, "unknown"),
    ],
)
def test_a_hint_decides_what_the_policy_leaves_open(
    declared: dict[str, Any] | None, said: Any, server: str | None, effect: str
) -> None:
    with made({} if declared is None else {"tool": declared}) as guard:
        assert recorded(guard, Hints(said, server=server)) == effect
        assert recorded(guard, None) == ("unknown" if declared is None or "effect" not in declared else effect)


def lost() -> None:
    raise TimeoutError


@pytest.mark.parametrize(
    ("declared", "server", "repeated"),
    [
        ({}, None, True),
        ({}, "ours", True),
        ({}, "theirs", False),
        ({"idempotent": False}, None, False),
        ({"effect": WRITE}, None, False),
        ({"effect": WRITE, "idempotent": True}, "theirs", True),
    ],
)
def test_a_repeat_in_doubt_is_let_through_where_somebody_who_is_trusted_calls_it_harmless(
    declared: dict[str, Any], server: str | None, repeated: bool
) -> None:
    hints = Hints(WRITE, idempotent=True, server=server)
    with made({"tool": declared}) as guard, guard.run() as run:
        with pytest.raises(TimeoutError):
            run.call("tool", {}, lost, hints=hints)
        if repeated:
            assert run.call("tool", {}, lambda: {"id": 1}, hints=hints) == {"id": 1}
        else:
            with pytest.raises(CallRefused, match="may have succeeded"):
                run.call("tool", {}, dict, hints=hints)


@pytest.mark.parametrize(
    ("hints", "ending"),
    [(Hints(READ), None), (Hints(WRITE), RunStopped), (Hints(READ, server="theirs"), CallRefused)],
)
def test_under_a_hold_a_call_goes_on_or_not_by_its_hint(hints: Hints, ending: type[Exception] | None) -> None:
    came_to: type[Exception] | None = None
    try:
        with made() as guard, guard.run() as run:
            run.call("fail", {}, lambda: {"error": "no"})
            run.call("tool", {}, dict, hints=hints)
    except (RunStopped, CallRefused) as error:
        came_to = type(error)
    assert came_to is ending


async def test_an_asynchronous_call_takes_hints_too() -> None:
    async def tool() -> dict[str, object]:
        return {}

    with made() as guard:
        async with guard.run() as run:
            await run.acall("tool", {}, tool, hints=Hints(READ))
        [call] = guard.ledger.load_run(run.id).calls  # type: ignore[union-attr]
    assert call.call.effect == READ


@pytest.mark.parametrize(
    ("hints", "warned"),
    [
        ([None, None], 1),
        ([Hints(READ)], 0),
        ([Hints(WRITE, server="ours")], 0),
        ([Hints(WRITE, server="theirs")], 1),
        ([Hints("unknown"), Hints(idempotent=True), Hints(READ, server="theirs"), None], 1),
    ],
)
def test_a_tool_that_nobody_who_is_trusted_speaks_of_is_warned_of_once(
    hints: list[Hints | None], warned: int, caplog: pytest.LogCaptureFixture
) -> None:
    with made() as guard:
        for said in hints:
            recorded(guard, said)
    assert sum("guardrail.tool_not_declared" in record.getMessage() for record in caplog.records) == warned


SAYS: list[tuple[dict[str, object], Hints | None]] = [
    ({}, None),
    ({"title": "Find", "openWorldHint": True}, None),
    ({"readOnlyHint": None, "destructiveHint": None}, None),
    ({"readOnlyHint": "true"}, None),
    ({"readOnlyHint": 1}, None),
    ({"readOnlyHint": True}, Hints(READ)),
    ({"readOnlyHint": True, "destructiveHint": True, "idempotentHint": True}, Hints(READ)),
    ({"readOnlyHint": False}, Hints(WRITE)),
    ({"readOnlyHint": False, "destructiveHint": False}, Hints(WRITE)),
    ({"readOnlyHint": False, "idempotentHint": True}, Hints(WRITE, idempotent=True)),
    ({"destructiveHint": True}, Hints(WRITE)),
    ({"destructiveHint": True, "idempotentHint": False}, Hints(WRITE)),
    ({"destructiveHint": False}, None),
    ({"idempotentHint": True}, Hints(idempotent=True)),
    ({"idempotentHint": False}, None),
]


def snake(name: str) -> str:
    return name.replace("Hint", "_hint").replace("readOnly", "read_only").replace("openWorld", "open_world")


@pytest.mark.parametrize(("said", "hints"), SAYS)
def test_annotations_are_read_in_every_spelling(said: dict[str, object], hints: Hints | None) -> None:
    snakes = {snake(name): value for name, value in said.items()}
    forms = (said, SimpleNamespace(**said), snakes, SimpleNamespace(**snakes))
    wanted = hints and Hints(hints.effect, hints.idempotent, "ours")
    assert [hints_of(form, "ours") for form in forms] == [wanted] * 4


@pytest.mark.parametrize("nothing", [None, "readOnlyHint", 7, []])
def test_what_is_no_annotation_says_nothing(nothing: object) -> None:
    assert hints_of(nothing, "ours") is None
