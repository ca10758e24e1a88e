"""What only the Claude Agent SDK has: a program that makes the calls and may deny them, hooks, sessions that go on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import claude_agent_sdk
import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    query,
)

from guardrail import Configuration, Guard, Run, RunStopped
from guardrail_claude_agent import guarded
from support.kits.claude_agent import Program, server
from support.kits.pages import run_page, shop_of_the_page
from support.kits.stage import Script, asked

FAIL, NOTE = asked("fail"), asked("note")


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    tools = {"fail": {"effect": "write"}, "note": {"effect": "write"}}
    return Guard(Configuration.model_validate({"ledger": str(tmp_path / "ledger.db"), "tools": tools}))


async def fail() -> dict[str, str]:
    return {"error": "it is away"}


async def note() -> str:
    return "noted"


def options(**more: Any) -> ClaudeAgentOptions:
    return ClaudeAgentOptions(mcp_servers={"shop": server([fail, note])}, **more)


async def ask(given: ClaudeAgentOptions, program: Program) -> None:
    async for _ in query(prompt="Do it.", options=given, transport=program):
        pass


def outcomes(guard: Guard, run: Run) -> list[tuple[str, str, bool]]:
    history = guard.ledger.load_run(run.id)
    assert history is not None
    ended = [(recorded.call.tool, recorded.outcome) for recorded in history.calls]
    return [(tool, outcome.outcome, outcome.executed) for tool, outcome in ended if outcome is not None]


async def test_a_call_that_the_program_denies_by_itself_holds_nothing(guard: Guard) -> None:
    script = Script([NOTE], [FAIL], "Denied.")
    async with guard.run() as run:
        await ask(guarded(options(), guard), Program(script, denied=["note"]))
        assert run.open_holds == 1
    assert outcomes(guard, run) == [("note", "error", False), ("fail", "error", True)]


@pytest.mark.parametrize(("allowed", "outcome"), [(True, ("note", "ok", True)), (False, ("note", "error", False))])
async def test_a_call_that_the_user_denies_was_not_made(
    guard: Guard, allowed: bool, outcome: tuple[str, str, bool]
) -> None:
    async def may(name: str, args: Any, context: Any) -> Any:
        return PermissionResultAllow() if allowed else PermissionResultDeny("no")

    async with guard.run() as run:
        await ask(guarded(options(can_use_tool=may), guard), Program(Script([NOTE], "Done."), doubtful=["note"]))
        assert outcomes(guard, run) == [outcome]
        assert run.open_holds == 0


async def test_a_write_that_was_interrupted_is_in_doubt(guard: Guard) -> None:
    async with guard.run() as run:
        await ask(guarded(options(), guard), Program(Script([NOTE], "Done."), interrupted=["note"]))
    assert outcomes(guard, run) == [("note", "in_doubt", True)]
    assert run.open_holds == 1


async def test_a_session_that_was_stopped_is_not_gone_on_with(guard: Guard) -> None:
    script = Script([FAIL], [NOTE], "Done.", [NOTE], "Done.")
    with pytest.raises(RunStopped):
        async with guard.run(), ClaudeSDKClient(guarded(options(), guard), Program(script)) as client:
            for _ in range(2):
                await client.query("Do it.")
                async for _ in client.receive_response():
                    pass
    assert script.requests == 2


async def test_without_an_open_run_no_call_is_made(guard: Guard) -> None:
    script = Script([NOTE], "Done.")
    await ask(guarded(options(), guard), Program(script))
    assert "no run is open" in script.seen[1][0]


async def test_where_the_guard_itself_fails_the_session_ends() -> None:
    class Broken:
        @property
        def standing(self) -> Any:
            raise OSError("the disk is full")

    script = Script([NOTE], "Done.")
    await ask(guarded(options(), Broken()), Program(script))
    assert script.requests == 0
    told = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {}, "tool_use_id": "call_1"}
    [said] = await hooked(guarded(None, Broken()), "PreToolUse", told)
    assert said["continue_"] is False
    assert said["hookSpecificOutput"]["permissionDecision"] == "deny"


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ("mcp__shop__note", "note"),
        ("mcp__shop__eu__note", "mcp__shop__eu__note"),
        ("mcp__other__note", "mcp__other__note"),
        ("Bash", "Bash"),
    ],
)
async def test_only_tools_of_servers_in_this_process_go_by_their_own_names(guard: Guard, tool: str, name: str) -> None:
    servers = {"shop": server([note]), "shop__eu": {"type": "http", "url": "http://127.0.0.1:1/mcp"}}
    given = guarded(ClaudeAgentOptions(mcp_servers=servers), guard)
    told = {"tool_name": tool, "tool_input": {}, "tool_use_id": "call_1", "session_id": "session"}
    async with guard.run() as run:
        assert await hooked(given, "PreToolUse", told) == [{}]
        ended = {**told, "hook_event_name": "PostToolUse", "tool_response": "done"}
        assert await hooked(given, "PostToolUse", ended) == [{}]
    assert outcomes(guard, run) == [(name, "ok", True)]


async def test_the_users_own_hooks_stay_and_the_options_are_not_changed(guard: Guard) -> None:
    async def own(told: Any, tool_use_id: str | None, context: Any) -> Any:
        return {"systemMessage": "seen"}

    given = options(hooks={"PreToolUse": [HookMatcher(hooks=[own])]})
    told = {"tool_name": "Bash", "tool_input": {}, "tool_use_id": "call_1", "session_id": "session"}
    async with guard.run():
        assert await hooked(guarded(given, guard), "PreToolUse", told) == [{"systemMessage": "seen"}, {}]
        assert await hooked(given, "PreToolUse", told) == [{"systemMessage": "seen"}]


async def hooked(given: ClaudeAgentOptions, event: Any, told: Any) -> Sequence[Any]:
    """What the hooks of an event say."""
    matchers = (given.hooks or {})[event]
    return [await hook(told, told["tool_use_id"], {"signal": None}) for matcher in matchers for hook in matcher.hooks]


def test_the_code_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    refund_order = shop_of_the_page(tmp_path).refund_order

    async def refund(order_id: int, amount: str) -> dict[str, object]:
        return refund_order(order_id, amount)

    program = Program(Script([asked("refund_order", order_id=17, amount="19.90")], "Refunded."))
    monkeypatch.setattr(claude_agent_sdk, "ClaudeSDKClient", partial(ClaudeSDKClient, transport=program))
    refund.__name__ = "refund_order"
    run_page("claude-agent", shop=server([refund]))
    assert capsys.readouterr().out == "verified\n"
