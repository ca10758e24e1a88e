"""An MCP server of the tests' own, over its standard input and output: a small shop, and tools that misbehave.

Run as a script: `python mcp_shop_server.py shop.db`. It knows nothing but the standard library, so it starts at once, and
each call runs in a thread of its own, as calls do in other servers. What it gets, byte by byte, it appends to `heard`
beside the shop.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SHOP = Path(sys.argv[1])
LOCK = threading.Lock()
ASKED: dict[object, threading.Event] = {}
TOLD: dict[object, dict[str, Any]] = {}
READ = {"readOnlyHint": True}


def write(raw: bytes) -> None:
    with LOCK:
        sys.stdout.buffer.write(raw + b"\n")
        sys.stdout.buffer.flush()


def send(message: dict[str, Any]) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}).encode())


def sql(text: str, *values: object) -> list[tuple[Any, ...]]:
    with sqlite3.connect(SHOP, timeout=10) as connection:
        return connection.execute(text, values).fetchall()


def said(value: object, *, failed: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": json.dumps(value)}], "isError": failed}


def lookup_order(order_id: int, **_: object) -> dict[str, Any]:
    rows = sql("select id, status from orders where id = ?", order_id)
    if not rows:
        return {"content": [{"type": "text", "text": f"order {order_id} not found"}], "isError": True}
    return {**said(None), "structuredContent": {"id": rows[0][0], "status": rows[0][1]}}


def refund_order(order_id: int, amount: str, **_: object) -> dict[str, Any]:
    sql("update orders set status = 'refunded' where id = ?", order_id)
    sql("insert into refunds (order_id, amount) values (?, ?)", order_id, amount)
    return said({"refunded": order_id})


def note_order(order_id: int, note: str, pause: float = 0.0, **_: object) -> dict[str, Any]:
    SHOP.with_name("begun").touch()
    time.sleep(pause)
    sql("update orders set note = ? where id = ?", note, order_id)
    return said({"noted": order_id})


def cancel_order(**_: object) -> dict[str, Any]:
    return said({"error": "only an open order can be cancelled"}, failed=True)


def fail(code: int, text: str = "as asked for", **_: object) -> dict[str, Any]:
    raise RuntimeError(code, text)


def misfit(name: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": f"Unknown tool: {name}"}], "isError": True}


def die(**_: object) -> dict[str, Any]:
    os._exit(7)


def show_env(**_: object) -> dict[str, Any]:
    return said(dict(os.environ))


def long_answer(size: int, **_: object) -> dict[str, Any]:
    return said("x" * size)


def mutter(**_: object) -> dict[str, Any]:
    write(b"this line is no message")
    write(b'{"half": ')
    return said("muttered")


def ask_client(id: object, method: str = "sampling/createMessage", **_: object) -> dict[str, Any]:
    ASKED[f"ask {id}"] = threading.Event()
    send({"id": f"ask {id}", "method": method, "params": {"messages": [], "maxTokens": 5}})
    ASKED[f"ask {id}"].wait(20)
    return said(TOLD.get(f"ask {id}"))


def report(id: object, token: object, **_: object) -> dict[str, Any]:
    for done in (1, 2):
        send({"method": "notifications/progress", "params": {"progressToken": token, "progress": done, "total": 2}})
    send({"method": "notifications/tools/list_changed"})
    return said("reported")


def answer_twice(id: object, **_: object) -> dict[str, Any]:
    send({"id": id, "result": said({"error": "the first answer"}, failed=True)})
    return said("the second answer")


def need_input(state: object, **_: object) -> dict[str, Any]:
    if state is None:
        asked = {"confirm": {"method": "elicitation/create", "params": {"message": "sure?"}}}
        return {"resultType": "input_required", "inputRequests": asked, "requestState": "s1"}
    return refund_order(17, "19.90")


def begin_task(**_: object) -> dict[str, Any]:
    return {"task": {"taskId": "t1", "status": "working"}}


TOOLS: dict[str, tuple[Callable[..., dict[str, Any]], dict[str, bool] | None]] = {
    "lookup_order": (lookup_order, READ),
    "refund_order": (refund_order, None),
    "note_order": (note_order, None),
    "cancel_order": (cancel_order, None),
    "fail": (fail, None),
    "die": (die, None),
    "show_env": (show_env, READ),
    "long_answer": (long_answer, READ),
    "mutter": (mutter, READ),
    "ask_client": (ask_client, READ),
    "report": (report, READ),
    "answer_twice": (answer_twice, READ),
    "need_input": (need_input, None),
    "begin_task": (begin_task, None),
    "undeclared": (lookup_order, READ),
}


def call(request: dict[str, Any]) -> None:
    params, id = request["params"], request["id"]
    if params["name"] not in TOOLS:
        send({"id": id, "result": misfit(params["name"])})
        return
    tool, _ = TOOLS[params["name"]]
    token = params.get("_meta", {}).get("progressToken")
    args = {"id": id, "token": token, "state": params.get("requestState"), **params.get("arguments", {})}
    try:
        result = tool(**args)
    except RuntimeError as error:
        code, text = error.args
        send({"id": id, "error": {"code": code, "message": text}})
    else:
        send({"id": id, "result": result})


def answered(request: dict[str, Any]) -> dict[str, Any]:
    match request["method"]:
        case "initialize":
            version = request["params"]["protocolVersion"]
            server = {"name": "shop", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
        case "tools/list":
            described = [
                {"name": name, "inputSchema": {"type": "object"}, **({"annotations": hints} if hints else {})}
                for name, (_, hints) in TOOLS.items()
            ]
            return {"tools": described}
        case "tasks/result":
            return refund_order(17, "19.90")
        case _:
            return {}


def main() -> None:
    heard = SHOP.with_name("heard").open("ab", buffering=0)
    for line in sys.stdin.buffer:
        heard.write(line)
        message = json.loads(line)
        if "method" not in message:
            TOLD[message["id"]] = message.get("result", message.get("error"))
            ASKED[message["id"]].set()
        elif message["method"] == "tools/call":
            threading.Thread(target=call, args=(message,), daemon=True).start()
        elif "id" in message:
            send({"id": message["id"], "result": answered(message)})


if __name__ == "__main__":
    main()
