"""One guarded run of the agent: python main.py [STORY], a story of stories.json."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

from agent import answer
from model import STORIES, scripted
from shop import Shop

from guardrail import Guard, RunStopped

HERE = Path(__file__).parent


def main(name: str = "wrong-amount") -> None:
    """Let the agent serve a customer, and print what it says and what the guard says."""
    story, shop = STORIES[name], Shop(HERE / "shop.db")
    with Guard.load(HERE / "guardrail.yaml", stores={"shop": shop.path}) as guard:
        run = guard.run("refund_order", inputs=story["inputs"])
        with suppress(RunStopped), run:
            print("agent:", answer(story["request"], scripted(story), shop.tools, run))
    print("guard:", run.verdict)
    for finding in run.verdict.findings if run.verdict else ():
        print("  -", finding)


if __name__ == "__main__":
    main(*sys.argv[1:])
