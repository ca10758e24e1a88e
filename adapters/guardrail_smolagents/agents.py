"""smolagents' agents, guarded in their tools and in front of their model."""

from __future__ import annotations

from functools import cache, partial
from threading import Lock
from types import new_class
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from smolagents import CodeAgent, FinalAnswerTool, MultiStepAgent, Tool, ToolCallingAgent
from smolagents.remote_executors import RemotePythonExecutor

from guardrail.calls import ToolCall, Unmade
from guardrail.errors import RunNotOpen
from guardrail.run.adapter import Adapter, Runs
from guardrail.run.standing import Standing

A = TypeVar("A", bound=MultiStepAgent)


def guarded(agent: A, runs: Runs) -> A:
    """Guard the tools of an agent and of those that it manages, and give it back: it is the same object, changed.

    `runs` is a guard, to whose run that is open where the agent runs its calls then belong, or one run. A stop leaves
    the agent as `RunHalted`, also from code that a model wrote, and no model is asked again; `RunStopped` leaves
    `guard.run()`. Raises `TypeError` for an agent whose tools run elsewhere, by an executor that is not local.
    """
    if isinstance(agent, CodeAgent) and isinstance(agent.python_executor, RemotePythonExecutor):
        raise TypeError("the source of this agent's tools runs elsewhere, past any guard: use executor_type='local'")
    place = _Place(runs)
    calls = _Calls(place)
    for name, tool in agent.tools.items():
        if not isinstance(tool, FinalAnswerTool):
            agent.tools[name] = _around(tool, calls)
    agent.model = _Model(agent.model.bare if isinstance(agent.model, _Model) else agent.model, place, calls)
    if isinstance(agent, ToolCallingAgent):
        agent.process_tool_calls = partial(calls.note, type(agent).process_tool_calls.__get__(agent))
    for managed in agent.managed_agents.values():
        guarded(managed, place)
    return agent


class _Place:
    """The run that an agent is part of: it is found where the agent asks its model; tools may be called in other threads."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._found: Standing | None = None

    @property
    def standing(self) -> Standing:
        """Where the run stands. Raises `RunNotOpen`."""
        return self._found or self._runs.standing

    def find(self) -> None:
        """Find the run that is open here; there may be none as yet."""
        try:
            self._found = self._runs.standing
        except RunNotOpen:
            self._found = None


class _Model:
    """A model that is asked only while the run is not over."""

    def __init__(self, bare: Any, place: _Place, calls: _Calls) -> None:
        self.bare, self._place, self._calls = bare, place, calls

    def generate(self, *args: Any, **options: Any) -> Any:
        """Ask the model."""
        return self._ask(self.bare.generate, *args, **options)

    __call__ = generate

    def __getattr__(self, name: str) -> Any:
        """What else the model has; not every one can stream."""
        found = getattr(self.bare, name)
        return partial(self._ask, found) if name == "generate_stream" else found

    def _ask(self, model: Any, *args: Any, **options: Any) -> Any:
        self._place.find()
        self._calls.gate()
        return model(*args, **options)


class _Call:
    """A call of a tool: as the model named it, as the framework makes it, and why it could not be made."""

    __slots__ = ("args", "id", "named", "options", "tool", "unfit")

    def __init__(self, tool: Tool, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        self.tool, self.args, self.options = tool, args, options
        given = {name: value for name, value in options.items() if name != "sanitize_inputs_outputs"}
        if len(args) == 1 and not given and isinstance(args[0], dict) and args[0].keys() <= tool.inputs.keys():
            self.named: dict[str, Any] = args[0]
        else:
            self.named = {**dict(zip(tool.inputs, args, strict=False)), **given}
        self.id: str | None = None
        self.unfit: TypeError | None = None

    @property
    def fits(self) -> bool:
        """Whether the tool has these arguments, and they are all that it needs."""
        needed = {name for name, schema in self.tool.inputs.items() if not schema.get("nullable")}
        return needed <= self.named.keys() <= self.tool.inputs.keys() and len(self.args) <= len(self.tool.inputs)


class _Calls(Adapter[_Call]):
    """The calls of one agent; where its model says them one by one, it gives them ids."""

    def __init__(self, runs: Runs) -> None:
        super().__init__(runs)
        self._asked: list[tuple[str, Any, str]] = []
        self._taking = Lock()

    def describe(self, native: _Call) -> ToolCall:
        return ToolCall(native.tool.name, native.named, native.id)

    def note(self, process: Any, message: Any, *rest: Any) -> Any:
        """Note what the model asked for, before the agent calls it."""
        self._asked = [(call.function.name, call.function.arguments, call.id) for call in message.tool_calls]
        return process(message, *rest)

    def identify(self, call: _Call) -> None:
        """Take the call out of what the model asked for: its id, and its arguments, some of which the agent replaced."""
        with self._taking:
            asked = [one for one in self._asked if one[0] == call.tool.name]
            found = next((one for one in asked if one[1] == call.named), asked[0] if asked else None)
            if found is None:
                return
            self._asked.remove(found)
        call.id = found[2]
        if isinstance(found[1], dict):
            call.named = found[1]


class _Guarded:
    """A tool with the guard around it. It does not hold what is inside: code that a model writes has the tool in its hands."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call the tool, guarded."""
        bare, calls = _INSIDE[self]
        call = _Call(bare, args, options)
        calls.identify(call)
        answer = calls.call(call, partial(_made, call))
        if call.unfit is not None:
            raise call.unfit
        return answer

    def to_dict(self) -> dict[str, Any]:
        """Raise `TypeError`: what is stored would come back without a guard."""
        raise TypeError(
            "a guarded agent cannot be stored: store it as it is without the guard, and guard what is loaded"
        )


def _around(tool: Tool, calls: _Calls) -> Tool:
    """The tool with the guard around it; the framework takes it for one of its kind."""
    bare = _INSIDE[tool][0] if isinstance(tool, _Guarded) else tool
    made = object.__new__(_guarded(cast("Any", type(bare))))
    vars(made).update(vars(bare))
    _INSIDE[made] = bare, calls
    return cast("Tool", made)


_INSIDE: WeakKeyDictionary[Any, tuple[Tool, _Calls]] = WeakKeyDictionary()
"""What guarded tools are around, and by what they are guarded."""


@cache
def _guarded(kind: Any) -> Any:
    return new_class(kind.__name__, (_Guarded, kind))


def _made(call: _Call) -> object:
    try:
        return call.tool(*call.args, **call.options)
    except TypeError as error:
        if call.fits:
            raise
        call.unfit = error
        return Unmade(None)
