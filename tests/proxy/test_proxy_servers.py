"""Real servers, of npm and of Python, behind the proxy, with the official clients of both generations before it.

What a server answers must reach the client as without the proxy.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult

from guardrail.errors import FINAL
from support.command_line import ENVIRON
from support.installed import npm_servers, old_sdk
from support.mcp_peers import SHOP_SERVER

SCOPE = "@modelcontextprotocol"
OLD_CLIENT = SHOP_SERVER.with_name("mcp_old_client.py")
GUARD = [sys.executable, "-m", "guardrail", "mcp", "--"]
Call = tuple[str, dict[str, object]]

pytestmark = pytest.mark.timeout(600)  # what is not there yet is installed first

EVERYTHING: list[Call] = [
    ("echo", {"message": "hello"}),
    ("get-sum", {"a": 1, "b": 2}),
    ("get-sum", {"a": "no number"}),
    ("get-tiny-image", {}),
    ("get-structured-content", {"location": "New York"}),
    ("get-annotated-message", {"messageType": "error", "includeImage": True}),
    ("get-resource-links", {"count": 2}),
    ("trigger-long-running-operation", {"duration": 1, "steps": 3}),
    ("no-such-tool", {}),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "guardrail.yaml").write_text(
        "version: 1\nmode: observe\ntools:\n  read_text_file: {effect: read}\n  mysql_query: {sql: sql, dialect: mysql}\n"
    )
    return tmp_path


def node(package: str, *args: object) -> list[str]:
    return ["node", str(npm_servers() / package / "dist" / "index.js"), *map(str, args)]


def enforcing(folder: Path) -> None:
    path = folder / "guardrail.yaml"
    path.write_text(path.read_text().replace("mode: observe\n", ""))


def client(command: Sequence[str], folder: Path, mode: str = "auto", **env: str) -> Client:
    parameters = StdioServerParameters(command=command[0], args=list(command[1:]), cwd=folder, env={**ENVIRON, **env})
    return Client(stdio_client(parameters), mode=mode)


async def results(command: Sequence[str], folder: Path, calls: Sequence[Call], mode: str = "auto") -> list[object]:
    found: list[object] = []
    async with client(command, folder, mode) as session:
        found.append([tool.model_dump(mode="json") for tool in (await session.list_tools()).tools])
        for name, args in calls:
            try:
                found.append((await session.call_tool(name, args)).model_dump(mode="json"))
            except MCPError as error:
                found.append(str(error))
    return found


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_everything_server_answers_as_without_the_proxy(folder: Path, mode: str) -> None:
    command = node(f"{SCOPE}/server-everything")
    assert await results([*GUARD, *command], folder, EVERYTHING, mode) == await results(
        command, folder, EVERYTHING, mode
    )


async def test_progress_arrives_and_resources_and_prompts_go_by(folder: Path) -> None:
    done: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        done.append(progress)

    async with client([*GUARD, *node(f"{SCOPE}/server-everything")], folder, "legacy") as session:
        args = {"duration": 1, "steps": 3}
        await session.call_tool("trigger-long-running-operation", args, progress_callback=on_progress)
        assert (await session.list_prompts()).prompts
        resource = (await session.list_resources()).resources[0]
        assert (await session.read_resource(resource.uri)).contents
    assert done == [1, 2, 3]


async def test_files_through_the_proxy(folder: Path) -> None:
    enforcing(folder)
    files = folder / "files"
    files.mkdir()
    (files / "a.txt").write_text("from the file")
    async with client([*GUARD, *node(f"{SCOPE}/server-filesystem", files)], folder) as session:
        await session.list_tools()
        read = await session.call_tool("read_text_file", {"path": str(files / "a.txt")})
        assert said(read) == "from the file"
        missing = await session.call_tool("read_text_file", {"path": str(files / "b.txt")})
        assert missing.is_error
        write = await session.call_tool("write_file", {"path": str(files / "c.txt"), "content": "x"})
        assert (write.is_error, said(write)) == (True, FINAL)
    assert not (files / "c.txt").exists()


async def test_a_memory_through_the_proxy(folder: Path) -> None:
    entity = {"name": "Ada", "entityType": "person", "observations": ["counts"]}
    calls: list[Call] = [
        ("create_entities", {"entities": [entity]}),
        ("read_graph", {}),
        ("open_nodes", {"names": ["Ada"]}),
    ]
    (folder / "guardrail.yaml").write_text(
        f"version: 1\nservers: {{memory: {{env: {{MEMORY_FILE_PATH: '{folder / 'memory.json'}'}}}}}}\n"
    )
    found = await results([*GUARD, *node(f"{SCOPE}/server-memory")], folder, calls)
    assert "counts" in json.dumps(found[2:])
    assert (folder / "memory.json").exists()


async def test_sql_through_the_proxy_is_classified_statement_by_statement(folder: Path, mariadb_url: str) -> None:
    from urllib.parse import urlsplit

    place = urlsplit(mariadb_url)
    env = {
        "MYSQL_HOST": place.hostname or "",
        "MYSQL_PORT": str(place.port or 3306),
        "MYSQL_USER": place.username or "root",
        "MYSQL_PASS": place.password or "",
        "MYSQL_DB": place.path.strip("/"),
        "ALLOW_INSERT_OPERATION": "true",
    }
    (folder / "guardrail.yaml").write_text(
        "version: 1\ntools:\n  mysql_query: {sql: sql, dialect: mysql}\nservers:\n  db:\n    env: "
        + json.dumps(env)
        + "\n"
    )
    async with client([*GUARD, *node("@benborla29/mcp-server-mysql")], folder, "legacy") as session:
        assert "1" in said(await session.call_tool("mysql_query", {"sql": "select 1 as one"}))
        failed = await session.call_tool("mysql_query", {"sql": "insert into nothing values (1)"})
        assert failed.is_error
        other = await session.call_tool("mysql_query", {"sql": "insert into something values (2, 3)"})
        read = await session.call_tool("mysql_query", {"sql": "select 2 as two"})
        assert (other.is_error, said(other), said(read)) == (True, FINAL, FINAL)


@pytest.mark.parametrize("server", ["node", "shop"])
def test_the_client_of_the_generation_before_gets_what_it_gets_without_the_proxy(folder: Path, server: str) -> None:
    command = node(f"{SCOPE}/server-everything") if server == "node" else python_server(folder)
    numbers: list[Call] = [("add", {"a": 1, "b": 2}), ("broken", {})]
    calls = EVERYTHING if server == "node" else numbers
    bare, through = (old_client(folder, calls, [*before, *command]) for before in ([], GUARD))
    assert through == bare
    assert len(through["results"]) == len(calls)


async def test_a_server_of_the_generation_before_behind_the_proxy(folder: Path) -> None:
    command = [str(old_sdk()), *python_server(folder)[1:]]
    calls: list[Call] = [("add", {"a": 1, "b": 2}), ("broken", {}), ("none_such", {})]
    assert await results([*GUARD, *command], folder, calls) == await results(command, folder, calls)


def python_server(folder: Path) -> list[str]:
    """A server that the SDK of either generation can run, in the environment of the older one."""
    script = folder / "server.py"
    script.write_text(
        "from mcp.server.fastmcp import FastMCP\n"
        "server = FastMCP('numbers')\n"
        "@server.tool()\n"
        "def add(a: int, b: int) -> int:\n    return a + b\n"
        "@server.tool()\n"
        "def broken() -> str:\n    raise ValueError('broken')\n"
        "server.run()\n"
    )
    return [str(old_sdk()), str(script)]


def old_client(folder: Path, calls: Sequence[Call], command: Sequence[str]) -> dict[str, Any]:
    asked = json.dumps([[name, args] for name, args in calls])
    ended = subprocess.run(
        [str(old_sdk()), str(OLD_CLIENT), asked, *command],
        cwd=folder,
        env=ENVIRON,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def said(result: CallToolResult) -> str:
    return str(getattr(result.content[0], "text", ""))
