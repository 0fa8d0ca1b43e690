"""The doctor's checks of agent hosts: how their hooks fared, and whether a memory of their own competes."""

from __future__ import annotations

import contextlib
import json

import pytest

from syncd.cli.doctor.agent_checks import check_hooks, check_host_memory
from syncd.cli.doctor.doctor import DoctorContext
from syncd.state.folder import LEDGER
from syncd.state.hook_log import HookRun, append_run
from syncd.state.ledger import Ledger
from syncd.workspaces.api_keys import ApiKeys
from tests.support.world import settings_of


@pytest.fixture
def context(tmp_path):
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    with contextlib.closing(Ledger.open(state / LEDGER)) as ledger:
        keys = ApiKeys(ledger)
        for name in ("claude-code@desk", "codex@desk", "cursor"):
            keys.create(name, workspaces=("default",), scopes=("read",), now=1)
    return DoctorContext(settings_of(tmp_path / "vault", state), {"HOME": str(tmp_path)}, None, None)


def logged(context, *outcomes, client="claude-code", problem=""):
    for number, outcome in enumerate(outcomes):
        append_run(context.state, HookRun(number, client, outcome, 40 + number, 900, problem))


def told(findings):
    return [(finding.is_, finding.says, finding.mend) for finding in findings]


def test_without_hooks_there_is_nothing_to_say(context):
    assert told(check_hooks(context)) == []


def test_hooks_that_fare_well_are_told_with_their_time(context):
    logged(context, *["no-daemon"] * 3, *["served", "empty"] * 5)
    assert told(check_hooks(context)) == [
        ("ok", "claude-code: 10 recent sessions began with the context, in 48 ms", "")
    ]


@pytest.mark.parametrize(
    ("outcome", "says", "mend"),
    [
        ("no-daemon", "no daemon ran", "memex service install"),
        ("slow", "the daemon took too long", "memex status"),
        ("failed", "the command failed (NOT_FOUND)", "memex context --explain"),
    ],
)
def test_hooks_that_fare_badly_are_told_with_the_way_out(context, outcome, says, mend):
    logged(context, "served", outcome, outcome, problem="NOT_FOUND" if outcome == "failed" else "")
    logged(context, "served", client="codex")
    assert told(check_hooks(context)) == [
        ("advice", f"claude-code: 2 of 3 recent sessions began without the context, mostly because {says}", mend),
        ("ok", "codex: 1 recent session began with the context, in 40 ms", ""),
    ]


def settings(tmp_path, values):
    (tmp_path / ".claude").mkdir(exist_ok=True)
    (tmp_path / ".claude/settings.json").write_text(values if isinstance(values, str) else json.dumps(values))


@pytest.mark.parametrize(
    ("values", "is_told"),
    [
        ({}, True),
        ({"autoMemoryEnabled": True}, True),
        ({"autoMemoryEnabled": False}, False),
        ({"env": {"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1"}}, False),
        ({"env": {"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "0"}}, True),
        ({"env": 3}, True),
        ("not json", True),
    ],
)
def test_the_memory_of_claude_code_is_told_with_its_setting(context, tmp_path, values, is_told):
    settings(tmp_path, values)
    findings = told(check_host_memory(context))
    assert bool(findings) is is_told
    if is_told:
        ((rank, says, mend),) = findings
        assert (rank, "auto memory" in says) == ("advice", True)
        assert mend == f'set "autoMemoryEnabled": false in {tmp_path}/.claude/settings.json'


def test_the_memory_of_codex_is_told_when_it_is_on(context, tmp_path):
    settings(tmp_path, {"autoMemoryEnabled": False})
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/config.toml").write_text("[features]\nmemories = true\n")
    assert told(check_host_memory(context)) == [
        (
            "advice",
            "Codex has memories on, so it may save facts in its own files instead of Memex",
            f"set memories = false under [features] in {tmp_path}/.codex/config.toml",
        )
    ]
    for text in ("[features]\nmemories = false\n", f"features = {'[' * 3000}{']' * 3000}"):
        (tmp_path / ".codex/config.toml").write_text(text)
        assert told(check_host_memory(context)) == []


def test_hosts_that_are_not_connected_are_not_looked_at(tmp_path):
    context = DoctorContext(settings_of(tmp_path, tmp_path / "none"), {"HOME": str(tmp_path)}, None, None)
    assert told(check_host_memory(context)) == []
