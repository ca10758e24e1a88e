"""The Claude Agent SDK. Its command-line program is played by a transport, which says and asks what the program would."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ResultMessage,
    SdkMcpTool,
    Transport,
    create_sdk_mcp_server,
    query,
)

from guardrail_claude_agent import guarded
from support.kits.stage import Asked, Mode, Scene, Script, call_id

logging.getLogger("claude_agent_sdk").setLevel(logging.CRITICAL)

PREFIX = "mcp__shop__"


class Over(Exception):
    """A hook has said that the session is not to go on."""


class Program(Transport):
    """The program, with a scripted model and the tools of one in-process server.

    It asks the hooks that it was told of, and has the agent `inner` behind the tool `ask_clerk`. The calls in `denied`
    it denies by itself, those in `doubtful` if the user does, and those in `interrupted` somebody interrupts.
    """

    def __init__(
        self,
        script: Script,
        inner: Script | None = None,
        *,
        denied: Sequence[str] = (),
        doubtful: Sequence[str] = (),
        interrupted: Sequence[str] = (),
    ) -> None:
        self._script = script
        self._inner = inner
        self._denied = denied
        self._doubtful = doubtful
        self._interrupted = interrupted
        self._said: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._answers: dict[str, asyncio.Future[Any]] = {}
        self._hooks: Mapping[str, Sequence[Mapping[str, Any]]] = {}
        self._tools: frozenset[str] = frozenset()
        self._playing: set[asyncio.Task[None]] = set()
        self._asked = 0

    async def connect(self) -> None:
        pass

    def is_ready(self) -> bool:
        return True

    async def end_input(self) -> None:
        self._said.put_nowait(None)

    async def close(self) -> None:
        for task in self._playing:
            task.cancel()
        await asyncio.gather(*self._playing, return_exceptions=True)
        self._said.put_nowait(None)

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        while (message := await self._said.get()) is not None:
            yield message

    async def write(self, data: str) -> None:
        message = json.loads(data)
        if message["type"] == "control_request":
            self._configured(message)
        elif message["type"] == "control_response":
            response = message["response"]
            self._answers.pop(response["request_id"]).set_result(response)
        elif message["type"] == "user":
            task = asyncio.create_task(self._play())
            self._playing.add(task)
            task.add_done_callback(self._playing.discard)

    def _configured(self, message: Mapping[str, Any]) -> None:
        if message["request"]["subtype"] == "initialize":
            self._hooks = message["request"]["hooks"] or {}
        done = {"commands": [], "hook_on_failure_supported": True, "hooks_applied": True}
        response = {"subtype": "success", "request_id": message["request_id"], "response": done}
        self._said.put_nowait({"type": "control_response", "response": response})

    async def _play(self) -> None:
        said = ""
        try:
            await self._connect()
            await self._hook("UserPromptSubmit", {"prompt": "Do it."})
            said = await self._talk(self._script, None)
            await self._hook("Stop", {"stop_hook_active": False})
        except Over:
            pass
        result = {"type": "result", "subtype": "success", "is_error": False, "num_turns": 1, "result": said}
        self._said.put_nowait({**result, "duration_ms": 1, "duration_api_ms": 1, "session_id": "session"})

    async def _talk(self, script: Script, agent: str | None) -> str:
        """One agent's turns, until it has nothing more to ask for."""
        told: list[str] = []
        number, turn = script.next(told)
        while not isinstance(turn, str):
            for place, asked in enumerate(turn):
                told.append(await self._call(asked, call_id(number, place), agent))
            number, turn = script.next(told)
        return turn

    async def _call(self, asked: Asked, id: str, agent: str | None) -> str:
        """Make a tool call, between what the hooks say before and after it; what the model is told of it."""
        nested = asked.name == "ask_clerk"
        if not nested and asked.name not in self._tools:
            return f"No such tool available: {asked.name}"
        name = asked.name if nested else PREFIX + asked.name
        call = {"tool_name": name, "tool_input": dict(asked.args), "tool_use_id": id}
        of = {} if agent is None else {"agent_id": agent}
        for said in await self._hook("PreToolUse", {**call, **of}):
            decision = said.get("hookSpecificOutput") or {}
            if decision.get("permissionDecision") == "deny":
                return str(decision["permissionDecisionReason"])
        if asked.name in self._denied or (asked.name in self._doubtful and not await self._may(call)):
            return "It was denied."
        if asked.name in self._interrupted:
            await self._hook("PostToolUseFailure", {**call, **of, "error": "It was interrupted.", "is_interrupt": True})
            raise Over
        text, failed = await self._delegated() if nested else await self._made(asked)
        if failed:
            await self._hook("PostToolUseFailure", {**call, **of, "error": text})
        else:
            await self._hook("PostToolUse", {**call, **of, "tool_response": [{"type": "text", "text": text}]})
        return text

    async def _may(self, call: Mapping[str, Any]) -> bool:
        about = {"input": call["tool_input"], "tool_name": call["tool_name"], "tool_use_id": call["tool_use_id"]}
        return bool((await self._ask("can_use_tool", **about))["response"]["behavior"] == "allow")

    async def _delegated(self) -> tuple[str, bool]:
        assert self._inner is not None
        said = await self._talk(self._inner, "clerk")
        await self._hook("SubagentStop", {"agent_id": "clerk", "stop_hook_active": False})
        return said, False

    async def _made(self, asked: Asked) -> tuple[str, bool]:
        result = await self._mcp("tools/call", {"name": asked.name, "arguments": dict(asked.args)})
        return "\n".join(block["text"] for block in result["content"]), result.get("isError", False)

    async def _hook(self, event: str, told: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """What the hooks of an event say; raises `Over`. One that fails blocks, if it was to."""
        said: list[Mapping[str, Any]] = []
        for matcher in self._hooks.get(event, ()):
            for callback in matcher["hookCallbackIds"]:
                about = {"hook_event_name": event, "session_id": "session", "transcript_path": "", "cwd": "", **told}
                answer = await self._ask("hook_callback", callback_id=callback, input=about, tool_use_id=None)
                if answer["subtype"] == "error":
                    assert matcher["onFailure"] == "block"
                    raise Over
                said.append(answer["response"])
        if any(each.get("continue") is False for each in said):
            raise Over
        return said

    async def _connect(self) -> None:
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "program", "version": "1"}}
        await self._mcp("initialize", about)
        await self._ask("mcp_message", server_name="shop", message=_rpc("notifications/initialized", {}))
        listed = await self._mcp("tools/list", {})
        self._tools = frozenset(tool["name"] for tool in listed["tools"])

    async def _mcp(self, method: str, params: Mapping[str, Any]) -> Any:
        message = _rpc(method, params, id=self._asked)
        answer = await self._ask("mcp_message", server_name="shop", message=message)
        return answer["response"]["mcp_response"]["result"]

    async def _ask(self, subtype: str, **request: Any) -> Any:
        self._asked += 1
        id = f"ask_{self._asked}"
        answer = self._answers[id] = asyncio.get_running_loop().create_future()
        self._said.put_nowait({"type": "control_request", "request_id": id, "request": {"subtype": subtype, **request}})
        return await answer


def _rpc(method: str, params: Mapping[str, Any], **id: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params, **id}


class Query:
    """`query`, for one prompt."""

    name = "claude-agent query"
    modes: Sequence[Mode] = ("async",)
    limits: Mapping[str, str] = {
        "test_a_write_that_raises_is_in_doubt": (
            "An exception comes as an answer with its text (claude_agent_sdk:create_sdk_mcp_server), so it is an error."
        ),
        "test_a_call_outside_of_a_run_is_told_to_the_program_and_not_only_to_the_model": (
            "A hook can deny a call and raise nothing (claude_agent_sdk._internal.query:Query._handle_control_request)."
        ),
    }
    nests = True

    def play(self, scene: Scene, mode: Mode) -> str:
        raise NotImplementedError("the SDK does not block")

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        options = ClaudeAgentOptions(mcp_servers={"shop": server(scene.functions(mode))})
        if scene.runs is not None:
            options = guarded(options, scene.runs)
        return await self.told(options, Program(scene.script, scene.inner))

    async def told(self, options: ClaudeAgentOptions, program: Program) -> str:
        """What the result says."""
        messages = [message async for message in query(prompt="Do it.", options=options, transport=program)]
        return _result(messages)


class Client(Query):
    """A client, whose session can be gone on with."""

    name = "claude-agent client"

    async def told(self, options: ClaudeAgentOptions, program: Program) -> str:
        async with ClaudeSDKClient(options, program) as client:
            await client.query("Do it.")
            messages = [message async for message in client.receive_response()]
        return _result(messages)


def _result(messages: Sequence[object]) -> str:
    return "\n".join(str(message.result) for message in messages if isinstance(message, ResultMessage))


def server(functions: Sequence[Callable[..., Any]]) -> Any:
    """An in-process server with these tools."""
    return create_sdk_mcp_server("shop", tools=[_tool(function) for function in functions])


def _tool(function: Callable[..., Any]) -> SdkMcpTool[Any]:
    annotations = {name: kind for name, kind in function.__annotations__.items() if name != "return"}
    properties = {name: {"type": "integer" if "int" in str(kind) else "string"} for name, kind in annotations.items()}

    async def handler(args: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": json.dumps(await function(**args))}]}

    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return SdkMcpTool(function.__name__, function.__doc__ or "", schema, handler)


KITS = [Query(), Client()]
