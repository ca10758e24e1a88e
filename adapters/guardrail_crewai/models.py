"""CrewAI's models, which are asked only while no run is over.

A model is given a class of its own, below the one that it has: for the framework it stays of its kind. So whatever else
has the model (a guardrail of a task, what makes a form of an answer) asks it only then, too.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from types import new_class
from typing import Any, ClassVar, cast
from weakref import WeakSet

from crewai.hooks import HookAborted
from crewai.llms.base_llm import BaseLLM

from guardrail.errors import FINAL, RunHalted
from guardrail_crewai.calls import Calls
from guardrail_crewai.twins import AT_WORK, Outside, Twin


def gate(model: object, calls: Calls) -> None:
    """Let a model be asked only while the run of these calls is not over; what is no model stays as it is."""
    if not isinstance(model, BaseLLM):
        return
    if not isinstance(model, _Model):
        bare = cast("Any", type(model))
        kind: Any = new_class(bare.__name__, (_Model, bare))
        kind.guarded_class, kind.guarding = bare, WeakSet[Calls]()
        object.__setattr__(model, "__class__", kind)
    cast("Any", model).guarding.add(calls)


@contextmanager
def leaving() -> Generator[None]:
    """What leaves a model or an agent is the framework's own signal: it waits for ever for a thread that another leaves."""
    token = AT_WORK.set(True)
    try:
        yield
    except RunHalted as halted:
        raise HookAborted(FINAL, source="guardrail") from halted
    except Outside as outside:
        raise outside.error from None
    finally:
        AT_WORK.reset(token)


class _Model:
    """A model; the names are such as no field of its has."""

    guarded_class: ClassVar[Any]
    guarding: ClassVar[WeakSet[Calls]]
    """Those of all agents that have the model, as long as they are there."""

    def call(self, *args: Any, **options: Any) -> Any:
        self.ask_guards()
        return _noted(self.guarded_class.call(self, *args, **options), options.get("from_agent"))

    async def acall(self, *args: Any, **options: Any) -> Any:
        self.ask_guards()
        return _noted(await self.guarded_class.acall(self, *args, **options), options.get("from_agent"))

    def ask_guards(self) -> None:
        with leaving():
            for calls in [*self.guarding]:
                calls.gate()


def _noted(answer: Any, agent: object) -> Any:
    """The answer of the model to an agent, which is told what calls it asks for."""
    if isinstance(answer, list) and isinstance(agent, Twin):
        agent.guarding.note(cast("list[object]", answer))
    return cast("Any", answer)
