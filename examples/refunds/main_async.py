"""The same run for an asynchronous agent: python main_async.py [STORY]."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

from agent import aanswer
from model import STORIES, scripted
from shop import Shop

from guardrail import Guard, RunStopped

HERE = Path(__file__).parent


async def main(name: str = "wrong-amount") -> None:
    """Let the agent serve a customer, and print what it says and what the guard says."""
    story, shop = STORIES[name], Shop(HERE / "shop.db")
    with Guard.load(HERE / "guardrail.yaml", stores={"shop": shop.path}) as guard:
        run = guard.run("refund_order", inputs=story["inputs"])
        with suppress(RunStopped):
            async with run:
                print("agent:", await aanswer(story["request"], scripted(story), shop.tools, run))
    print("guard:", run.verdict)
    for finding in run.verdict.findings if run.verdict else ():
        print("  -", finding)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
