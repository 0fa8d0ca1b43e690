"""Unit tests of `session_hooks`: one command is added and taken away, and everything else in the file stays."""

from __future__ import annotations

import json

import pytest

from index.errors import InvalidArgument
from syncd.clients.session_hooks import HOOK_FILES, hook_command, put_hook, remove_hook
from syncd.state.folder import default_state_folder

WORDS = ["/opt/my memex/bin/memex", "--config", "/home/ada/.config/memex/config.toml"]
COMMAND = hook_command(WORDS, "claude-code", "default")
OURS = {
    "matcher": "startup|clear|compact",
    "hooks": [{"type": "command", "command": COMMAND, "timeout": 5}],
}
THEIRS = {"matcher": "startup", "hooks": [{"type": "command", "command": "echo hello"}]}
# As the documentation of Claude Code shows a settings file with hooks.
DOCUMENTED = {
    "permissions": {"allow": ["Bash(npm run lint)"]},
    "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "check.sh"}]}]},
}


def test_the_command_is_one_line_for_a_shell():
    assert COMMAND == (
        "'/opt/my memex/bin/memex' --config /home/ada/.config/memex/config.toml context --workspace default --hook claude-code"
    )
    assert set(HOOK_FILES) == {"claude-code", "codex"}


@pytest.mark.parametrize(
    "before",
    [
        {},
        DOCUMENTED,
        {"hooks": {}},
        {"hooks": {"SessionStart": []}},
        {"hooks": {"SessionStart": [THEIRS]}},
        {"hooks": {"SessionStart": [THEIRS, {"hooks": "odd"}, 3]}},
    ],
)
def test_a_hook_is_added_once_and_taken_away(before):
    text = json.dumps(before, indent=2) if before else ""
    installed = put_hook(text, COMMAND, "claude-code")
    groups = json.loads(installed)["hooks"]["SessionStart"]
    assert groups == [*before.get("hooks", {}).get("SessionStart", []), OURS]
    assert put_hook(installed, COMMAND, "claude-code") == installed
    removed = json.loads(remove_hook(installed, COMMAND, "claude-code"))
    empty = {key: value for key, value in before.items() if key != "hooks"}
    others = {event: groups for event, groups in before.get("hooks", {}).items() if groups}
    assert removed == (empty | {"hooks": others} if others else empty)
    assert remove_hook(json.dumps(removed), COMMAND, "claude-code") == json.dumps(removed)


@pytest.mark.parametrize("option", ["--config", "--vault", "--state"])
@pytest.mark.parametrize("path", ["/notes/\ud83d", "/notes/\0", "/" + "long" * 2_000])
def test_a_hook_whose_path_no_file_can_have_is_one_of_another_vault(tmp_path, monkeypatch, option, path):
    monkeypatch.setenv("HOME", str(tmp_path))
    command = hook_command(["memex", "--vault", str(tmp_path)], "claude-code", "default")
    before = put_hook("", hook_command(["memex", option, path], "claude-code", "default"), "claude-code")
    text = put_hook(before, command, "claude-code")
    text.encode()
    groups = json.loads(text)["hooks"]["SessionStart"]
    assert [group["hooks"][0]["command"] for group in groups][1:] == [command]
    assert json.loads(remove_hook(text, command, "claude-code")) == json.loads(before)


def test_a_hook_of_another_path_or_workspace_is_replaced():
    moved = hook_command(["/usr/bin/memex", *WORDS[1:]], "claude-code", "work")
    text = put_hook(put_hook("", COMMAND, "claude-code"), moved, "claude-code")
    (group,) = json.loads(text)["hooks"]["SessionStart"]
    assert group["hooks"][0]["command"] == moved


@pytest.fixture
def forms(tmp_path, monkeypatch):
    """The three ways to name one vault: its settings file, its folder and its state folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("MEMEX_STATE", str(tmp_path / "elsewhere"))  # a variable of this shell means nothing to a host
    (vault := tmp_path / "notes").mkdir()
    (file := tmp_path / "memex.toml").write_text(f'[vault]\npath = "{vault}"\n')
    state = default_state_folder(vault, {"HOME": str(tmp_path)})
    state.mkdir(parents=True)
    (state / "vault").write_text(f"{vault}\n")
    return [["--config", str(file)], ["--vault", str(vault)], ["--state", str(state)]]


def test_a_vault_has_one_hook_however_it_is_named(forms):
    commands = [hook_command(["memex", *words], "claude-code", "default") for words in forms]
    for before in commands:
        for now in commands:
            text = put_hook(put_hook("", before, "claude-code"), now, "claude-code")
            (group,) = json.loads(text)["hooks"]["SessionStart"]
            assert group["hooks"][0]["command"] == now
            assert json.loads(remove_hook(text, before, "claude-code")) == {}


def test_hooks_of_another_vault_or_client_stay():
    other = hook_command(["memex", "--vault", "/other"], "claude-code", "default")
    codex = hook_command(WORDS, "codex", "default")
    text = put_hook(put_hook(put_hook("", other, "claude-code"), codex, "codex"), COMMAND, "claude-code")
    assert len(json.loads(text)["hooks"]["SessionStart"]) == 3
    rest = json.loads(remove_hook(text, COMMAND, "claude-code"))["hooks"]["SessionStart"]
    assert [group["hooks"][0]["command"] for group in rest] == [other, codex]


def test_a_hook_beside_others_in_a_group_is_taken_out_of_it():
    text = json.dumps({"hooks": {"SessionStart": [{"hooks": [*THEIRS["hooks"], *OURS["hooks"]]}]}})
    assert json.loads(remove_hook(text, COMMAND, "claude-code")) == {
        "hooks": {"SessionStart": [{"hooks": THEIRS["hooks"]}]}
    }


def test_comments_elsewhere_stay():
    text = '{\n  // mine\n  "model": "x", /* here */\n  "hooks": {\n    "Stop": [] // there\n  }\n}\n'
    installed = put_hook(text, COMMAND, "claude-code")
    assert all(comment in installed for comment in ("// mine", "/* here */", "// there"))
    assert remove_hook(installed, COMMAND, "claude-code").count("//") == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"hooks": {"SessionStart": [ // mine\n]}}', "has comments, which Memex can't keep"),
        ('{"hooks": {"SessionStart": {}}}', "is not a list of hooks"),
        ('{"hooks": []}', "is not a list of hooks"),
        ("{", "is not JSON"),
        ("[]", "does not contain an object"),
    ],
)
def test_a_file_that_can_not_be_edited_is_refused(text, says):
    with pytest.raises(InvalidArgument, match=says):
        put_hook(text, COMMAND, "claude-code")
