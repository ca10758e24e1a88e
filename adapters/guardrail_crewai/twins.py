"""CrewAI's tools with the guard around them: each a twin of the one that it guards.

A twin has a class of its own below that of the other, and shares with it all that it holds: for the framework it is of
its kind, what changes in the one has changed in the other, and its copies are guarded too.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from functools import partial
from types import new_class
from typing import Any, ClassVar, cast

from crewai.tools import BaseTool

from guardrail.errors import RunNotOpen
from guardrail_crewai.calls import Call, Calls, NotCarriedOut

OWN = ("crewai.tools.agent_tools.", "crewai.tools.memory_tools", "crewai.skills.")
"""Where CrewAI's own tools come from that stay within the crew (delegation, questions, memory, files), so they are no
tool calls of the run. What is delegated is guarded in the agent that does it."""


def guarded_tools(tools: Iterable[BaseTool] | None, calls: Calls) -> list[BaseTool]:
    """The tools, guarded, but for those of the framework's own that stay within the crew."""
    return [tool if type(tool).__module__.startswith(OWN) else _guarded(tool, calls) for tool in tools or ()]


AT_WORK: ContextVar[bool] = ContextVar("guardrail_crewai_at_work", default=False)
"""Whether an agent is at work here, and no program that calls a tool by itself."""


class Outside(BaseException):
    """An agent called a tool outside of a run: told to the program, whose mistake it is, and not to the model."""

    def __init__(self, error: RunNotOpen) -> None:
        super().__init__(str(error))
        self.error = error


class Twin:
    """Something of CrewAI's with the guard around it; the names are such as no field of its has."""

    guarded_class: ClassVar[Any]
    guarding: ClassVar[Calls]


class Tool(Twin):
    """A tool: its calls are guarded, whichever way the framework makes them."""

    def run(self, *args: Any, **options: Any) -> Any:
        return self._made("run", args, options)

    def _run(self, *args: Any, **options: Any) -> Any:
        return self._made("_run", args, options)

    async def arun(self, *args: Any, **options: Any) -> Any:
        return await self._amade("arun", args, options)

    async def _arun(self, *args: Any, **options: Any) -> Any:
        return await self._amade("_arun", args, options)

    def _made(self, way: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        tool, call = self._call(args, options)
        try:
            return call.told(self.guarding.call(call, partial(call.execute, getattr(tool, way), args, options)))
        except RunNotOpen as error:
            if not AT_WORK.get():
                raise
            raise Outside(error) from error

    async def _amade(self, way: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        tool, call = self._call(args, options)
        try:
            return call.told(await self.guarding.acall(call, partial(call.aexecute, getattr(tool, way), args, options)))
        except RunNotOpen as error:
            if not AT_WORK.get():
                raise
            raise Outside(error) from error

    def _call(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, Call]:
        tool = _twin(self, self.guarded_class)
        return tool, self.guarding.identify(Call(tool, args, options))


def kind(around: type[Twin], of: Any, calls: Calls) -> Any:
    """The class of a twin of something, which may be a twin itself."""
    bare = cast("Any", of.guarded_class if isinstance(of, Twin) else type(of))
    if bare not in calls.kinds:
        made: Any = new_class(f"Guarded{bare.__name__}", (around, bare))
        made.guarded_class, made.guarding = bare, calls
        calls.kinds[bare] = made
    return calls.kinds[bare]


def _twin(of: Any, kind: Any) -> Any:
    made = object.__new__(kind)
    for place in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"):
        object.__setattr__(made, place, getattr(of, place))
    return made


def _guarded(tool: BaseTool, calls: Calls) -> BaseTool:
    twin: BaseTool = _twin(tool, kind(Tool, tool, calls))
    type(twin).cache_function = property(lambda self: partial(_kept, self))  # type: ignore[assignment]
    return twin


def _kept(tool: Any, args: Any, result: Any) -> bool:
    """Whether the framework may answer the same call with this result again."""
    keeps = cast("Any", vars(tool)["cache_function"])
    return not isinstance(result, NotCarriedOut) and bool(keeps(args, result))
