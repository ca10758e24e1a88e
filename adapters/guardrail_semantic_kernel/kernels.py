"""Semantic Kernel's kernels and agents, guarded in the functions that a model calls and in front of their chat services."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from types import new_class
from typing import Any, ClassVar, TypeVar, cast
from weakref import WeakSet

from semantic_kernel import Kernel
from semantic_kernel.agents import Agent
from semantic_kernel.connectors.ai.chat_completion_client_base import ChatCompletionClientBase
from semantic_kernel.filters import FilterTypes

from guardrail.run.adapter import Runs
from guardrail_semantic_kernel.filters import Calls, of_function, of_model

K = TypeVar("K", bound=Kernel | Agent)


def guarded(kernel: K, runs: Runs) -> K:
    """Guard the functions that a model calls by a kernel, or by that of an agent, and give it back: it is the same object.

    `runs` is a guard, whose open run each call then belongs to, or one run. Do it last, when the kernel has its other
    filters and its services. A stop leaves the kernel or agent as `RunHalted`, and no chat service that the kernel has
    is asked again; `RunStopped` leaves `guard.run()`. Raises `TypeError` for what is neither.
    """
    calls = Calls(runs)
    found = cast("object", kernel.kernel if isinstance(kernel, Agent) else kernel)
    if not isinstance(found, Kernel):
        raise TypeError(f"what is guarded is a Kernel, or an Agent that has one, and not {type(found).__name__}")
    its = cast("Any", found)
    for filters in (its.auto_function_invocation_filters, its.function_invocation_filters):
        filters[:] = [one for one in filters if getattr(one[1], "__module__", None) != of_model.__module__]
    its.add_filter(FilterTypes.AUTO_FUNCTION_INVOCATION, of_model(calls))
    its.add_filter(FilterTypes.FUNCTION_INVOCATION, of_function(calls))
    for service in its.services.values():
        if isinstance(service, ChatCompletionClientBase):
            _gate(service, calls)
    return kernel


class _Service:
    """A chat service that is asked only while no run is over; the names are such as no field of its has."""

    guarded_class: ClassVar[Any]
    guarding: ClassVar[WeakSet[Calls]]
    """Those of all kernels that have the service, as long as they are there."""

    async def get_chat_message_contents(self, *args: Any, **options: Any) -> Any:
        self.ask_guards()
        return await self.guarded_class.get_chat_message_contents(self, *args, **options)

    async def get_streaming_chat_message_contents(self, *args: Any, **options: Any) -> AsyncGenerator[Any]:
        self.ask_guards()
        async with aclosing(self.guarded_class.get_streaming_chat_message_contents(self, *args, **options)) as stream:
            async for messages in stream:
                yield messages

    def ask_guards(self) -> None:
        for calls in [*self.guarding]:
            calls.gate()


def _gate(service: Any, calls: Calls) -> None:
    """Give the service a class of its own, below the one that it has: for the framework it stays of its kind."""
    if not isinstance(service, _Service):
        bare = cast("Any", type(service))
        kind: Any = new_class(bare.__name__, (_Service, bare))
        kind.guarded_class, kind.guarding = bare, WeakSet[Calls]()
        object.__setattr__(service, "__class__", kind)
    cast("Any", service).guarding.add(calls)
