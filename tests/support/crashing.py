"""An agent whose process ends in the middle of a run: started by tests as a process of its own.

It is given the folder of a `support.project`, the run's id, and how it goes wrong: `killed` while the refund runs, or
`waiting` for a line on standard input with the run open. The run's inputs are order 17 and 19.90.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from guardrail import Guard
from support.shop import Shop


def main(folder: str, run_id: str, how: str) -> None:
    """Open the run and look at the order; then go wrong."""
    os.chdir(folder)
    shop = Shop(Path("shop.db"))

    def refund_order(order_id: int, amount: str) -> None:
        shop.refund_order(order_id, amount)
        os.kill(os.getpid(), signal.SIGKILL)

    guard = Guard.load("guardrail.yaml")
    with guard.run("refund_order", inputs={"order_id": 17, "amount": "19.90"}, id=run_id) as run:
        run.wrap(shop.lookup_order)(order_id=17)
        guard.ledger.flush()
        sys.stdout.write("open\n")
        sys.stdout.flush()
        if how == "waiting":
            sys.stdin.readline()
        else:
            run.wrap(refund_order)(order_id=17, amount=how.partition(":")[2] or "19.90")


if __name__ == "__main__":
    main(*sys.argv[1:])
