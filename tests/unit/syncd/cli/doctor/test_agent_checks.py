"""The doctor on what agents get: contexts and shares, hooks, and whether a memory of a host competes."""

from __future__ import annotations

import contextlib
import json

import pytest

from syncd.cli.doctor.agent_checks import check_contexts, check_hooks, check_memory, check_shares
from syncd.cli.doctor.doctor import DoctorContext
from syncd.state.folder import LEDGER
from syncd.state.hook_log import HookRun, append_run
from syncd.state.ledger import Ledger
from syncd.workspaces.api_keys import ApiKeys
from tests.support.world import World, settings_of


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
    findings = told(check_memory(context))
    assert bool(findings) is is_told
    if is_told:
        ((rank, says, mend),) = findings
        assert (rank, "auto memory" in says) == ("advice", True)
        assert mend == f'set "autoMemoryEnabled": false in {tmp_path}/.claude/settings.json'


def test_the_memory_of_codex_is_told_when_it_is_on(context, tmp_path):
    settings(tmp_path, {"autoMemoryEnabled": False})
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/config.toml").write_text("[features]\nmemories = true\n")
    assert told(check_memory(context)) == [
        (
            "advice",
            "Codex has memories on, so it may save facts in its own files instead of Memex",
            f"set memories = false under [features] in {tmp_path}/.codex/config.toml",
        )
    ]
    for text in ("[features]\nmemories = false\n", f"features = {'[' * 3000}{']' * 3000}"):
        (tmp_path / ".codex/config.toml").write_text(text)
        assert told(check_memory(context)) == []


def test_hosts_that_are_not_connected_are_not_looked_at(tmp_path):
    context = DoctorContext(settings_of(tmp_path, tmp_path / "none"), {"HOME": str(tmp_path)}, None, None)
    assert told(check_memory(context)) == []


@pytest.fixture
def shared(tmp_path):
    """A vault with a note in the folder of contexts and a share that leads nowhere, and its settings; no daemon runs."""
    world = World(tmp_path)
    world.write("Refs/a.md", "x\n")
    world.write("Captures/Context/alpha/Mine.md", "mine\n")
    for path in ("Refs", "Gone"):
        (world.vault / path).mkdir(exist_ok=True)
        world.app.operations["share.add"]({"paths": [path]}, lambda _: None)
    (world.vault / "Gone").rmdir()
    facts = world.app.operations["status"]({}, lambda _: None)
    world.close()
    return DoctorContext(settings_of(world.vault, world.state), {}, None, facts)


def without_daemon(context):
    return DoctorContext(context.settings, {}, None, None)


@pytest.mark.parametrize("running", [True, False])
def test_strays_and_broken_shares_are_advice_with_the_command_that_helps(shared, running):
    context = shared if running else without_daemon(shared)
    (stray,) = check_contexts(context)
    assert stray.is_ == "advice"
    assert stray.says.startswith("Captures/Context/alpha/: ")
    assert stray.mend == f"mv {context.vault}/Captures/Context/alpha {context.vault}/Captures/default/"
    (broken,) = check_shares(context)
    assert broken.is_ == "advice"
    assert broken.says == "Gone/** is shared with the workspace default, but the folder does not exist"
    assert broken.mend == "memex share remove 'Gone/**' --workspace default"


def test_what_is_well_needs_no_words_or_few(shared):
    (shared.vault / "Captures/Context/alpha/Mine.md").unlink()
    (shared.vault / "Captures/Context/alpha").rmdir()
    (shared.vault / "Gone").mkdir()
    context = without_daemon(shared)
    assert list(check_contexts(context)) == []
    (well,) = check_shares(context)
    assert (well.is_, well.says) == ("ok", "2 shares; memex share preview lists what agents read")


def test_without_a_vault_or_a_ledger_nothing_is_said(tmp_path):
    for vault in (tmp_path / "none", tmp_path):
        context = DoctorContext(settings_of(vault, tmp_path / "state"), {}, None, None)
        assert list(check_contexts(context)) == []
        assert list(check_shares(context)) == []
