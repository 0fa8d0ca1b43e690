"""Public MCP clients of both protocol eras on a running daemon; `make clients` installs them and runs this file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_server.tools.families import FAMILIES
from tests.support.daemon_process import ROOT, daemon

CLIENTS = ROOT / "tests/clients"
NODE = CLIENTS / "node_modules/.bin/node"
TOOLS = [operation.safe_name for family in FAMILIES.values() for operation in family]
PROMPTS = ["recall", "capture-session", "consolidate"]
LEGACY, MODERN = "2025-11-25", "2026-07-28"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not NODE.exists(), reason="the clients are not installed: make clients (needs npm)"),
]


@pytest.fixture(scope="module")
def memex(tmp_path_factory, bundled, models):
    with daemon(tmp_path_factory.mktemp("clients"), models) as one:
        one.write("Own.md", "a note of my own that no agent may see\n")
        one.serve()
        yield one


@pytest.fixture
def environ(memex):
    bridge = [sys.executable, "-m", "syncd.cli", "mcp", "--vault", str(memex.vault), "--state", str(memex.state)]
    path = f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"
    told = {"MEMEX_URL": memex.url, "MEMEX_KEY": memex.key, "MEMEX_BRIDGE": json.dumps(bridge)}
    return memex.environ | told | {"PATH": path, "MCP_AUTO_OPEN_ENABLED": "false"}


@pytest.mark.parametrize(
    ("era", "way", "protocol"),
    [
        ("legacy", "http", LEGACY),
        ("legacy", "sse", ""),
        ("legacy", "stdio", ""),
        ("modern", "http", MODERN),
        ("modern", "stdio", MODERN),
    ],
)
def test_the_typescript_sdk_calls_every_tool(environ, era, way, protocol):
    done = subprocess.run(
        [NODE, "walk.mjs", era, way], cwd=CLIENTS, env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    told = json.loads(done.stdout)
    id = told["captured"]["id"]
    assert told["tools"] == TOOLS
    assert told["server"] == "memex"
    assert told["protocol"] == protocol or not protocol
    assert told["found"][0] == id == told["recent"][0]
    assert told["same"] is True
    assert told["template"] == "note://{workspace}/{+path}"
    assert told["read"] == {"same": True, "kind": "text/markdown", "id": id}
    assert told["prompts"] == PROMPTS
    assert told["recalled"] is True
    assert told["spaces"] == ["default"]
    assert [path.split()[0] for path in told["paths"]] == ["Walked"]
    assert told["tags"] == []
    assert told["missing"] == -32602
    assert told["updated"] is True
    assert told["deleted"] | {"title": ""} == {"id": id, "deleted": True, "title": "", "suspicious": []}
    assert told["error"] == {"isError": True, "code": "NOT_FOUND", "text": "NOT_FOUND"}
    assert told["invalid"] == {"isError": True, "code": "INVALID_ARGUMENT"}


class Inspector:
    """The inspector's command line on one way in."""

    def __init__(self, memex, environ, way):
        self.environ = environ
        transport, _, era = way.partition(" ")
        headers = ["--header", f"Authorization: Bearer {memex.key}", "X-Memory-Workspace: default"]
        ways = {
            "http": ["--transport", "http", "--server-url", f"{memex.url}/mcp", *headers],
            "sse": ["--transport", "sse", "--server-url", f"{memex.url}/sse", *headers],
            "stdio": json.loads(environ["MEMEX_BRIDGE"]),
        }
        self.words = ways[transport]
        self.era = ["--protocol-era", era] if era else []

    def run(self, *words):
        """The exit code, and what it printed."""
        # Flags of ours may follow a command line of the bridge's only after its own end.
        command = [NODE, NODE.with_name("mcp-inspector"), "--cli", *self.era, *words, *self._target()]
        done = subprocess.run(command, env=self.environ, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr

    def _target(self):
        return self.words if self.words[0].startswith("--") else ["--", *self.words]

    def json(self, method, *words):
        code, out, err = self.run("--method", method, *words)
        assert code == 0, err
        return json.loads(out)

    def call(self, tool, **arguments):
        pairs = [f"{name}={value}" for name, value in arguments.items()]
        words = ["--method", "tools/call", "--tool-name", tool, *(["--tool-arg", *pairs] if pairs else [])]
        code, out, err = self.run(*words)
        return code, (json.loads(out) if out.strip().startswith("{") else {}), err


@pytest.mark.parametrize("way", ["http legacy", "http modern", "sse", "stdio legacy", "stdio modern"])
def test_the_inspector_calls_every_tool(memex, environ, way):
    inspector = Inspector(memex, environ, way)
    code, out, err = inspector.run("--method", "tools/list", "--strict")
    assert code == 0, err
    assert [tool["name"] for tool in json.loads(out)["tools"]] == TOOLS
    code, made, err = inspector.call("capture_thought", content=f"inspected over {way}", source="inspector")
    assert code == 0, err
    id = made["structuredContent"]["id"]
    _, found, _ = inspector.call("semantic_search", query=f"inspected over {way}")
    assert found["structuredContent"]["results"][0]["document_id"] == id
    code, kept, err = inspector.call("get_thought", id=id)
    assert code == 0, (kept, err)
    assert kept["structuredContent"]["content"] == f"inspected over {way}"
    _, recent, _ = inspector.call("list_recent", limit=3)
    assert recent["structuredContent"]["results"][0]["id"] == id
    (resource,) = (one for one in inspector.json("resources/list")["resources"] if way in one["title"])
    (read,) = inspector.json("resources/read", "--uri", resource["uri"])["contents"]
    assert (read["text"], read["mimeType"]) == (f"inspected over {way}", "text/markdown")
    (template,) = inspector.json("resources/templates/list")["resourceTemplates"]
    assert template["uriTemplate"] == "note://{workspace}/{+path}"
    assert [prompt["name"] for prompt in inspector.json("prompts/list")["prompts"]] == PROMPTS
    asked = ["--prompt-name", "recall", "--prompt-args", f"question=inspected over {way}"]
    assert id in inspector.json("prompts/get", *asked)["messages"][0]["content"]["text"]
    code, gone, _ = inspector.call("delete_thought", id=id)
    assert (code, gone["structuredContent"]["deleted"]) == (0, True)
    code, again, _ = inspector.call("get_thought", id=id)
    assert code == 5  # the inspector's code for a tool's own error
    assert again["isError"] is True


def test_the_inspector_is_told_that_a_key_is_missing(memex, environ):
    inspector = Inspector(memex, environ, "http modern")
    inspector.words = ["--transport", "http", "--server-url", f"{memex.url}/mcp"]
    assert inspector.run("--method", "tools/list")[0] == 3


def test_a_key_of_another_workspace_works_over_stdio(memex, environ):
    """The bridge names no workspace of its own accord, so that of the key is taken."""
    memex.json("workspace", "create", "work")
    secret = memex.json("key", "create", "--name", "worker", "--workspace", "work")["key"]
    done = subprocess.run(
        [NODE, "walk.mjs", "modern", "stdio"],
        cwd=CLIENTS,
        env=environ | {"MEMEX_KEY": secret},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not list(Path(memex.vault, "Captures/default").glob("Walked*"))
