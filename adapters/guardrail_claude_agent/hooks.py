"""The Claude Agent SDK's hooks, by which its command-line program tells of the tool calls that it makes.

A hook must never raise: the program would go on without it, or wait for ever. So whatever goes wrong here is told as
a denial, and a hook that fails all the same blocks the call (`on_failure`).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, PermissionResultDeny
from claude_agent_sdk.types import (
    CanUseTool,
    HookCallback,
    HookContext,
    HookEvent,
    PermissionResult,
    ToolPermissionContext,
)

from guardrail.call.drivers import Parted
from guardrail.calls import Ending, Halted, Raised, Refused, Returned, ToolCall, Unmade
from guardrail.errors import FINAL, RunNotOpen
from guardrail.judge.unmade import says_unmade
from guardrail.run.adapter import Adapter, Runs

Told = Mapping[str, Any]
"""What the program tells a hook."""

Agent = tuple[str, str | None]
"""A session, and the agent of it that has a task of its own (None: the session's own)."""


def guarded(options: ClaudeAgentOptions | None, runs: Runs) -> ClaudeAgentOptions:
    """The options with the guard around every tool call, for `query` and `ClaudeSDKClient`.

    `runs` is a guard, whose open run each call then belongs to, or one run. Tools of in-process servers go by their
    own names, all others by those that the program gives them: `Bash`, `mcp__server__tool`.
    """
    options = options or ClaudeAgentOptions()
    hooks = _Hooks(runs, options)
    ours: dict[HookEvent, Callable[[Told], Awaitable[dict[str, Any]]]] = {
        "PreToolUse": hooks.before,
        "PostToolUse": hooks.after,
        "PostToolUseFailure": hooks.after,
        "UserPromptSubmit": hooks.asked,
        "Stop": hooks.idle,
        "SubagentStop": hooks.idle,
    }
    merged = dict(options.hooks or {})
    for event, hook in ours.items():
        merged[event] = [*merged.get(event, ()), HookMatcher(hooks=[_unfailing(hook)], on_failure="block")]
    allowed = None if options.can_use_tool is None else hooks.permission(options.can_use_tool)
    return replace(options, hooks=merged, can_use_tool=allowed)


class _Calls(Adapter[Told]):
    """A call is what the program tells a hook."""

    def __init__(self, runs: Runs, options: ClaudeAgentOptions) -> None:
        super().__init__(runs)
        servers = options.mcp_servers if isinstance(options.mcp_servers, dict) else {}
        self._in_process = {_prefix(name): server.get("type") == "sdk" for name, server in servers.items()}
        self._prefixes = sorted(self._in_process, key=len, reverse=True)  # one may be the beginning of another

    def describe(self, native: Told) -> ToolCall:
        return ToolCall(self.name(native["tool_name"]), native["tool_input"], native["tool_use_id"])

    def name(self, told: str) -> str:
        """The name under which the policy knows a tool."""
        prefix = next((prefix for prefix in self._prefixes if told.startswith(prefix)), "")
        return told.removeprefix(prefix) if self._in_process.get(prefix) else told


class _Hooks:
    """The hooks of one session's options, and the calls that the program is making."""

    def __init__(self, runs: Runs, options: ClaudeAgentOptions) -> None:
        self._calls = _Calls(runs, options)
        self._begun: dict[str, tuple[Agent, Parted]] = {}

    async def before(self, told: Told) -> dict[str, Any]:
        """A call is about to be made."""
        try:
            call = self._calls.parted(told)
        except RunNotOpen as error:
            return _denied(str(error))
        answer = await call.begin()
        match answer:
            case None:
                self._begun[told["tool_use_id"]] = _agent(told), call
                return {}
            case Halted():
                return {**_OVER, **_denied(FINAL)}
            case Refused(text=text):
                return _denied(text)
            case Raised(error=why):
                return _denied(str(why))
            case Returned():
                return _denied("it was made already")

    async def after(self, told: Told) -> dict[str, Any]:
        """A call was made, well or not."""
        _, call = self._begun.pop(told["tool_use_id"], (None, None))
        if call is None:  # it was begun before there was a guard
            return {}
        answer = await call.end(_ending(self._calls.name(told["tool_name"]), told))
        return {**_OVER} if isinstance(answer, Halted) else {}

    async def asked(self, told: Told) -> dict[str, Any]:
        """The model is about to be asked something new. Calls of before whose end nobody told were cut off."""
        for call in self._taken(_agent(told)):
            call.give_up()
        return {**_OVER, "decision": "block", "reason": FINAL} if self._calls.stop is not None else {}

    async def idle(self, told: Told) -> dict[str, Any]:
        """An agent has nothing more to do: its calls whose end nobody told were denied by somebody else."""
        for call in self._taken(_agent(told)):
            await call.end(_DENIED)
        return {}

    def permission(self, allow: CanUseTool) -> CanUseTool:
        """The user's own answer to whether a call may be made; where it may not, it was not."""

        async def can_use_tool(name: str, args: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
            result = await allow(name, args, context)
            if isinstance(result, PermissionResultDeny):
                _, call = self._begun.pop(context.tool_use_id or "", (None, None))
                if call is not None:
                    await call.end(_DENIED)
            return result

        return can_use_tool

    def _taken(self, agent: Agent) -> list[Parted]:
        """The calls of an agent whose end nobody told, which are forgotten here."""
        ids = [id for id, (of, _) in self._begun.items() if of == agent]
        return [self._begun.pop(id)[1] for id in ids]


_DENIED: Final = Returned(Unmade(None))


def _unfailing(hook: Callable[[Told], Awaitable[dict[str, Any]]]) -> HookCallback:
    """The hook as the program calls it: where the guard itself fails, the session ends."""

    async def unfailing(told: Any, tool_use_id: str | None, context: HookContext) -> Any:
        try:
            return await hook(told)
        except Exception as error:  # noqa: BLE001 - a hook must not raise
            why = f"The guard has failed: {type(error).__name__}: {error}"
            denied = _denied(why) if told.get("hook_event_name") == "PreToolUse" else {}
            return {**_OVER, **denied, "stopReason": why}

    return unfailing


_OVER: Final[Mapping[str, Any]] = {"continue_": False, "stopReason": FINAL}


def _denied(why: str) -> dict[str, Any]:
    decision = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": why}
    return {"hookSpecificOutput": decision}


def _ending(tool: str, told: Told) -> Ending:
    """How a call ended. Of one that failed the program tells the text only."""
    if told["hook_event_name"] == "PostToolUse":
        return Returned(told["tool_response"])
    if told.get("is_interrupt"):
        return Raised(asyncio.CancelledError())
    error = told["error"]
    failed = {"isError": True, "content": [{"type": "text", "text": error}]}
    return Returned(Unmade(failed) if says_unmade(tool, error) else failed)


def _agent(told: Told) -> Agent:
    return told["session_id"], told.get("agent_id")


def _prefix(server: str) -> str:
    """How the program begins the names of a server's tools."""
    return f"mcp__{re.sub(r'[^a-zA-Z0-9_-]', '_', server)}__"
