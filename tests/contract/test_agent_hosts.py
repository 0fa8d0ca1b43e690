"""The agents of the command line themselves, as their makers publish them, with the settings that `memex connect` writes.

`make hosts` installs them and runs this file. Only the model is a stand-in, which shows what the agent sends to it."""

from __future__ import annotations

import os
import shlex
import subprocess

import pytest

from mcp_server.tools.families import CORE
from tests.support.daemon_process import ROOT, daemon
from tests.support.model_endpoint import model_endpoint

PROGRAMS = ROOT / "tests/hosts/node_modules/.bin"
FACT = "The harbour service is deployed on Tuesdays, after the tide tables are published."

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PROGRAMS.exists(), reason="the agents are not installed: make hosts (needs npm)"),
]


class Agents:
    """Runs the agents in an empty home, beside a daemon with one fact."""

    def __init__(self, memex, model, folder):
        self.memex, self.model, self.folder = memex, model, folder
        self.environ = memex.environ | {
            "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
            "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_BASE_URL": model.url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "NO_COLOR": "1",
        }

    def run(self, *words):
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def ask(self, *words):
        """Run an agent with a question; return all that it sends to the model."""
        self.model.asked.clear()
        assert "ok" in self.run(*words)
        return "\n".join(self.model.asked)


@pytest.fixture(scope="module")
def agents(tmp_path_factory, bundled, models):
    folder = tmp_path_factory.mktemp("project")
    with model_endpoint() as model, daemon(tmp_path_factory.mktemp("hosts"), models) as memex:
        memex.serve()
        memex.capture(FACT)
        yield Agents(memex, model, folder)


@pytest.fixture(scope="module")
def claude(agents):
    """Claude Code, connected by the line that `memex connect` prints, with its hook."""
    answer = agents.memex.json("connect", "claude-code")
    agents.run(*shlex.split(answer["lines"]))
    agents.memex.run("connect", "claude-code", "--hooks")
    return ("claude", "-p", "What do you know?")


@pytest.fixture(scope="module")
def codex(agents):
    """Codex, connected by its settings file, with its hook, which a person would have to trust first."""
    agents.memex.run("connect", "codex", "--write")
    agents.memex.run("connect", "codex", "--hooks")
    model = f'model_providers.local={{name="local", base_url="{agents.model.url}/v1", wire_api="responses"}}'
    words = ("--skip-git-repo-check", "--dangerously-bypass-hook-trust", "-c", model, "-c", "model_provider=local")
    return ("codex", "exec", *words, "-m", "gpt-5", "What do you know?")


def test_claude_code_connects_and_offers_the_core_tools_to_its_model(agents, claude):
    assert "Connected" in agents.run("claude", "mcp", "list")
    asked = agents.ask(*claude)
    assert [name for name in CORE if f'"mcp__memex__{name}"' not in asked] == []


def test_a_session_of_claude_code_begins_with_the_context(agents, claude):
    assert FACT in agents.ask(*claude)


def test_a_session_of_codex_knows_memex_and_begins_with_the_context(agents, codex):
    asked = agents.ask(*codex)
    assert "mcp__memex" in asked
    assert FACT in asked


@pytest.mark.parametrize("client", ["gemini", "opencode"])
def test_an_agent_connects_by_its_settings_file(agents, client):
    agents.memex.run("connect", client, "--write")
    listed = agents.run(client, "mcp", "list").lower()
    assert f"{agents.memex.url}/mcp/core" in listed
    assert "connected" in listed
    agents.memex.run("connect", client, "--remove")
    assert agents.memex.url not in agents.run(client, "mcp", "list")


def test_a_daemon_that_is_gone_costs_a_session_nothing_and_doctor_tells_of_it(agents, claude, codex):
    agents.memex.stop()
    try:
        assert FACT not in agents.ask(*claude)
        assert FACT not in agents.ask(*codex)
        config = agents.folder / "doctor.toml"
        config.write_text("[server]\nport = 0\n")  # a daemon of this machine may have the default port
        findings = agents.memex.json("doctor", "--config", str(config))["findings"]
        late = [one["says"] for one in findings if one["check"] == "hooks"]
        assert [says.split(":")[0] for says in late] == ["claude-code", "codex"]
        assert all("began without the context, mostly because no daemon ran" in says for says in late)
    finally:
        agents.memex.serve()
