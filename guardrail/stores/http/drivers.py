"""The two drivers of a look at an HTTP API: one waits by blocking, the other by awaiting. Nothing is decided here."""

from __future__ import annotations

import asyncio
import time
from typing import TypeVar, cast

from guardrail.errors import StoreError
from guardrail.stores.http.connections import AsyncConnections, Connections, Route, Send, prepare
from guardrail.stores.http.network import Deadline
from guardrail.stores.http.visits import Compute, Flow, Rest, Step
from guardrail.threads import computed

T = TypeVar("T")


def drive(flow: Flow[T], route: Route, deadline: Deadline) -> T:
    """Drive a flow by blocking."""
    with Connections(route, deadline) as connections:
        try:
            step = next(flow)
            while True:
                try:
                    done = _done(step, connections)
                except StoreError as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(done)
        except StopIteration as end:
            return cast("T", end.value)


async def adrive(flow: Flow[T], route: Route, deadline: Deadline) -> T:
    """Drive a flow by awaiting; what takes the processor's time is done off the loop."""
    await prepare()
    async with AsyncConnections(route, deadline) as connections:
        try:
            step = next(flow)
            while True:
                try:
                    done = await _adone(step, connections)
                except StoreError as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(done)
        except StopIteration as end:
            return cast("T", end.value)


def _done(step: Step, connections: Connections) -> object:
    match step:
        case Send():
            return connections.send(step)
        case Rest(seconds):
            time.sleep(seconds)
            return None
        case Compute(do):
            return do()


async def _adone(step: Step, connections: AsyncConnections) -> object:
    match step:
        case Send():
            return await connections.send(step)
        case Rest(seconds):
            await asyncio.sleep(seconds)
            return None
        case Compute(do):
            return await computed(do)
