"""syncd/cli/clients/connect.py: a key for each client, its file written and taken back, nothing shown twice."""

from __future__ import annotations

import json
import re
import stat
import sys
from pathlib import Path

import pytest

from index.timings import now_ms
from syncd.cli.main import run_command
from syncd.cli.terminal import result_text
from syncd.clients import client_file
from syncd.clients.client_formats import CLIENTS, key_in_entry
from syncd.clients.entry_editor import read_entry
from syncd.workspaces.api_keys import make_secret
from tests.support.audit_entries import unwritable
from tests.support.known_vault import make_default_vault
from tests.support.world import World, answering

FILES = {
    "codex": ".codex/config.toml",
    "cursor": ".cursor/mcp.json",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.json",
}
SECRET = re.compile(r"mx_[0-9a-f]{12}_[0-9a-f]{64}")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A vault whose owner's door is open; it takes longer to open than all the rest."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "state").mkdir(mode=0o700)
    opened = World(folder)
    with answering(opened):
        yield opened


@pytest.fixture
def world(served, tmp_path, monkeypatch):
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.setattr("socket.gethostname", lambda: "desk.example.org")
    make_default_vault(monkeypatch, tmp_path / "home", served.vault, served.state)
    stored = served.app.opened.keys
    for key in stored.list():
        stored.revoke(key.id, now=now_ms())
    stored.create("owner", workspaces=None, scopes=("read", "write", "admin"), now=now_ms())
    return served


def keys(world):
    return {key.name: key for key in world.app.opened.keys.list() if key.revoked_at is None}


def entry_of(world, client, name="memex"):
    file = CLIENTS[client].file
    text = (Path.home() / FILES[client]).read_text()
    return read_entry(text, file.syntax, (*file.table, name))


def opened_by(world, secret):
    return world.app.opened.keys.authenticate(secret, now=now_ms())


@pytest.mark.parametrize("client", CLIENTS)
def test_lines_hold_a_key_that_reads_and_writes_one_workspace(world, capfd, client):
    assert run_command(["connect", client]) == 0
    out, err = capfd.readouterr()
    (secret,) = set(SECRET.findall(out))
    assert secret not in err
    key = opened_by(world, secret)
    assert (key.name, sorted(key.scopes), key.workspaces) == (
        f"{client}@desk",
        ["read", "write"],
        frozenset({"default"}),
    )
    assert "127.0.0.1:8765/mcp/core" in out or "--toolset" in out
    assert "shows it only now" in err


@pytest.mark.parametrize("client", FILES)
def test_a_file_is_written_once_and_taken_back(world, capfd, client):
    home = Path.home()
    assert run_command(["connect", client, "--write"]) == 0
    out, err = capfd.readouterr()
    assert not SECRET.search(out + err)
    path = home / FILES[client]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    secret = key_in_entry(entry_of(world, client))
    assert opened_by(world, secret).name == f"{client}@desk"
    written, inode = path.read_bytes(), path.stat().st_ino
    assert run_command(["connect", client, "--write"]) == 0
    assert "nothing was changed" in capfd.readouterr().out
    assert (path.read_bytes(), path.stat().st_ino) == (written, inode)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert run_command(["connect", client, "--remove"]) == 0
    assert entry_of(world, client) is None
    assert opened_by(world, secret) is None
    assert list(keys(world)) == ["owner"]
    capfd.readouterr()
    assert run_command(["connect", client, "--remove"]) == 0
    assert "nothing was changed" in capfd.readouterr().out


def test_a_persons_file_keeps_its_comments_and_has_a_backup(world, capfd):
    path = Path.home() / FILES["cursor"]
    path.parent.mkdir()
    before = '{\n  // my servers\n  "mcpServers": {\n    "docs": {"url": "x"} // fine\n  }\n}\n'
    path.write_text(before)
    path.chmod(0o644)
    assert run_command(["connect", "cursor", "--write", "--json"]) == 0
    answer = json.loads(capfd.readouterr().out)
    assert answer["changed"] is True
    assert answer["name"] == "cursor@desk"
    assert "// my servers" in path.read_text()
    assert "// fine" in path.read_text()
    backup = path.with_name("mcp.json.memex-backup")
    assert answer["backup"] == str(backup)
    assert backup.read_text() == before
    assert {stat.S_IMODE(file.stat().st_mode) for file in (path, backup)} == {0o600}
    for words, revoked in ((["--write", "--renew"], True), (["--remove"], False)):
        capfd.readouterr()
        assert run_command(["connect", "cursor", *words]) == 0
        assert ("memex: revoked the earlier key cursor@desk" in capfd.readouterr().err) == revoked
    assert backup.read_text() == before, "the file as its owner wrote it outlives every later change"


def test_an_entry_follows_a_new_port_and_a_key_that_ended(world, capfd, monkeypatch):
    assert run_command(["connect", "gemini", "--write"]) == 0
    first = entry_of(world, "gemini")
    monkeypatch.setenv("MEMEX_SERVER__PORT", "9100")
    assert run_command(["connect", "gemini", "--write"]) == 0
    moved = entry_of(world, "gemini")
    assert moved["httpUrl"] == "http://127.0.0.1:9100/mcp/core"
    assert key_in_entry(moved) == key_in_entry(first)
    world.app.opened.keys.rotate("gemini@desk", overlap_ms=0, now=now_ms())
    assert run_command(["connect", "gemini", "--write"]) == 0
    assert opened_by(world, key_in_entry(entry_of(world, "gemini"))).name == "gemini@desk"
    assert list(keys(world)) == ["owner", "gemini@desk"]


def test_a_key_that_ends_is_said_to(world, capfd):
    assert run_command(["connect", "gemini", "--write"]) == 0
    secret = key_in_entry(entry_of(world, "gemini"))
    rotated, _ = world.app.opened.keys.rotate("gemini@desk", overlap_ms=3_600_000, now=now_ms())
    assert world.app.operations["key.check"]({"secret": secret}, lambda _: None)["expires_at"] == rotated.old_until
    capfd.readouterr()
    assert run_command(["connect", "gemini", "--write"]) == 0
    ends = f"until {result_text.format_time(rotated.old_until, None)}"
    assert ends in capfd.readouterr().err
    assert run_command(["connect", "--list"]) == 0
    assert f"active, old secret {ends}" in capfd.readouterr().out
    assert run_command(["connect", "gemini", "--write", "--renew"]) == 0
    assert opened_by(world, key_in_entry(entry_of(world, "gemini"))).expires_at is None
    assert opened_by(world, secret) is None


def test_what_a_person_added_to_the_entry_stays(world, capfd, monkeypatch):
    assert run_command(["connect", "gemini", "--write"]) == 0
    path = Path.home() / FILES["gemini"]
    settings = json.loads(path.read_text())
    entry = settings["mcpServers"]["memex"]
    entry["trust"] = True
    entry["headers"]["X-Mine"] = "1"
    path.write_text(json.dumps(settings))
    assert run_command(["connect", "gemini", "--write"]) == 0
    assert json.loads(path.read_text()) == settings
    monkeypatch.setenv("MEMEX_SERVER__PORT", "9100")
    assert run_command(["connect", "gemini", "--write", "--renew"]) == 0
    after = entry_of(world, "gemini")
    assert (after["trust"], after["headers"]["X-Mine"]) == (True, "1")
    assert after["httpUrl"] == "http://127.0.0.1:9100/mcp/core"
    assert opened_by(world, key_in_entry(after))


def test_an_entry_that_starts_a_command_becomes_one_with_an_address(world, capfd):
    assert run_command(["connect", "other"]) == 0
    secret = SECRET.search(capfd.readouterr().out)[0]
    path = Path.home() / FILES["codex"]
    path.parent.mkdir()
    path.write_text(
        '[mcp_servers.memex]\ncommand = "memex"\nargs = ["mcp"]\nstartup_timeout_sec = 20\n'
        f'env = {{ MEMEX_KEY = "{secret}" }}\n'
    )
    assert run_command(["connect", "codex", "--write"]) == 0
    entry = entry_of(world, "codex")
    assert sorted(entry) == ["http_headers", "startup_timeout_sec", "url"]
    assert opened_by(world, key_in_entry(entry)).name == "codex@desk"


def test_a_key_in_use_is_not_replaced_unless_it_is_wished(world, capfd):
    assert run_command(["connect", "claude-code"]) == 0
    out, err = capfd.readouterr()
    first = SECRET.search(out)[0]
    assert "revoked" not in err
    assert run_command(["connect", "claude-code"]) == 0  # it was never used, so nobody misses it
    out, err = capfd.readouterr()
    second = SECRET.search(out)[0]
    assert "memex: revoked the earlier key claude-code@desk: settings with it no longer work\n" in err
    assert opened_by(world, first) is None
    assert opened_by(world, second)
    assert run_command(["connect", "claude-code"]) == 5
    assert "--renew" in capfd.readouterr().err
    assert opened_by(world, second)
    assert run_command(["connect", "claude-code", "--workspace", "nowhere", "--renew"]) == 4
    assert opened_by(world, second), "a wish that fails ends no key"
    assert run_command(["connect", "claude-code", "--renew"]) == 0
    assert opened_by(world, second) is None
    assert run_command(["connect", "claude-code", "--name", "work"]) == 0
    assert sorted(keys(world)) == ["claude-code@desk", "claude-code@desk work", "owner"]


def test_an_entry_of_another_vault_is_left_alone(world, capfd):
    path = Path.home() / FILES["opencode"]
    path.parent.mkdir(parents=True)
    other = {"mcp": {"memex": {"type": "remote", "url": "x", "headers": {"Authorization": "Bearer other"}}}}
    path.write_text(json.dumps(other))
    assert run_command(["connect", "opencode", "--write"]) == 5
    assert "--name" in capfd.readouterr().err
    assert list(keys(world)) == ["owner"]
    assert run_command(["connect", "opencode", "--remove"]) == 0
    assert "kept the entry" in capfd.readouterr().err
    assert json.loads(path.read_text()) == other
    assert run_command(["connect", "opencode", "--write", "--name", "mine"]) == 0
    assert sorted(json.loads(path.read_text())["mcp"]) == ["memex", "mine"]
    assert run_command(["connect", "opencode", "--write", "--renew"]) == 0
    assert opened_by(world, key_in_entry(entry_of(world, "opencode")))


def test_the_owners_key_in_an_entry_gives_way_to_one_of_the_clients_own(world):
    world.app.opened.keys.reset("owner", secret := make_secret(), instead_of=(), now=now_ms())
    path = Path.home() / FILES["cursor"]
    path.parent.mkdir()
    path.write_text(
        json.dumps({"mcpServers": {"memex": {"url": "x", "headers": {"Authorization": f"Bearer {secret}"}}}})
    )
    assert run_command(["connect", "cursor", "--write"]) == 0
    assert opened_by(world, key_in_entry(entry_of(world, "cursor"))).name == "cursor@desk"
    assert opened_by(world, secret).name == "owner"


def test_the_later_form_of_a_file_is_kept_to(world):
    path = Path.home() / FILES["opencode"]
    path.parent.mkdir(parents=True)
    path.with_suffix(".jsonc").write_text('{"mcp": {"servers": {}} /* mine */}')
    assert run_command(["connect", "opencode", "--write"]) == 0
    text = path.with_suffix(".jsonc").read_text()
    assert list(read_entry(text, "json", ("mcp", "servers"))) == ["memex"]
    assert "/* mine */" in text
    assert not path.exists()


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        pytest.param(["connect"], 2, "which client", id="no client"),
        pytest.param(["connect", "cursr"], 2, "cursor", id="a client that is unknown"),
        pytest.param(["connect", "cursor", "--name", "a b"], 2, "--name", id="a name that no client takes"),
        pytest.param(["connect", "vscode", "--write"], 2, "leave out --write", id="a client that writes itself"),
        pytest.param(["connect", "other", "--file", "x"], 2, "leave out --file", id="a file where there is none"),
        pytest.param(
            ["connect", "codex", "--hooks", "--write"], 2, "--write has no effect with --hooks", id="hooks, write"
        ),
        pytest.param(
            ["connect", "codex", "--hooks", "--renew"], 2, "--renew has no effect with --hooks", id="hooks, renew"
        ),
        pytest.param(["connect", "codex", "--hooks", "--name", "a"], 2, "--name has no effect", id="hooks with a name"),
        pytest.param(["connect", "cursor", "--list"], 2, "leave out CLIENT", id="a list of one client"),
        pytest.param(
            ["connect", "--list", "--remove"], 2, "--remove has no effect with --list", id="a list that removes"
        ),
        pytest.param(
            ["connect", "--list", "--file", "x"], 2, "--file has no effect with --list", id="a list of a file"
        ),
        pytest.param(["connect", "cursor", "--remove", "--renew"], 2, "--renew has no effect", id="an end that renews"),
        pytest.param(["connect", "cursor", "-w", "nowhere"], 4, "workspace create", id="a workspace that is not there"),
    ],
)
def test_a_wish_that_can_not_be_met_makes_no_key(world, capfd, words, code, says):
    assert run_command(words) == code
    assert says in capfd.readouterr().err
    assert list(keys(world)) == ["owner"]


@pytest.mark.parametrize("text", ["{", "[1]", '{"mcpServers": 3}', "\0"])
def test_a_file_that_can_not_be_edited_is_left_and_no_key_is_made(world, capfd, text):
    path = Path.home() / FILES["cursor"]
    path.parent.mkdir()
    path.write_text(text)
    assert run_command(["connect", "cursor", "--write"]) == 2
    assert "was not changed" in capfd.readouterr().err
    assert path.read_text() == text
    assert list(keys(world)) == ["owner"]


def test_a_key_ends_whatever_stands_in_the_file(world, capfd):
    assert run_command(["connect", "cursor", "--write"]) == 0
    path = Path.home() / FILES["cursor"]
    path.write_text("{")
    assert run_command(["connect", "cursor", "--remove"]) == 2
    assert "revoked the key cursor@desk" in capfd.readouterr().err
    assert list(keys(world)) == ["owner"]


def test_a_key_has_ended_and_is_said_so_where_the_file_can_not_be_written(world, capfd, monkeypatch):
    def fail(*_):
        raise OSError(30, "Read-only file system")

    path = Path.home() / FILES["cursor"]
    assert run_command(["connect", "cursor", "--write"]) == 0
    before = path.read_bytes()
    monkeypatch.setattr(client_file, "_CALLS", client_file.Calls(exchange=fail))
    capfd.readouterr()
    assert run_command(["connect", "cursor", "--remove"]) != 0
    said = capfd.readouterr().err
    assert "revoked the key cursor@desk" in said
    assert "can't be read or written" in said
    assert path.read_bytes() == before
    assert list(keys(world)) == ["owner"]


def test_a_file_that_can_not_be_written_keeps_the_key_that_is_in_it(world, capfd, monkeypatch):
    def fail(*_):
        raise OSError(1, "Operation not permitted")  # another user owns the file, or it is immutable

    assert run_command(["connect", "cursor", "--write"]) == 0
    before = (Path.home() / FILES["cursor"]).read_bytes()
    secret = key_in_entry(entry_of(world, "cursor"))
    valid = [key.id for key in keys(world).values()]
    monkeypatch.setattr(client_file, "_CALLS", client_file.Calls(exchange=fail))
    assert run_command(["connect", "cursor", "--write", "--renew"]) != 0
    assert "can't be read or written" in capfd.readouterr().err
    assert (Path.home() / FILES["cursor"]).read_bytes() == before
    assert opened_by(world, secret).name == "cursor@desk"
    assert [key.id for key in keys(world).values()] == valid


def test_a_key_that_could_not_be_made_is_in_no_file(world, capfd):
    path = Path.home() / FILES["cursor"]
    with unwritable(world.app.opened.ledger):
        assert run_command(["connect", "cursor", "--write"]) == 7
    assert not path.exists()
    assert run_command(["connect", "cursor", "--write"]) == 0
    before = path.read_bytes()
    with unwritable(world.app.opened.ledger):
        assert run_command(["connect", "cursor", "--write", "--renew"]) == 7
    assert path.read_bytes() == before
    assert opened_by(world, key_in_entry(entry_of(world, "cursor"))).name == "cursor@desk"


def test_claude_desktop_has_a_place_where_it_says_so_and_else_one_that_is_named(world, capfd, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "linux")
    assert run_command(["connect", "claude-desktop", "--write"]) == 2
    assert "--file" in capfd.readouterr().err
    assert run_command(["connect", "claude-desktop", "--write", "--file", str(tmp_path / "c.json")]) == 0
    entry = json.loads((tmp_path / "c.json").read_text())["mcpServers"]["memex"]
    assert entry["args"][-5:] == ["mcp", "--workspace", "default", "--toolset", "core"]
    assert opened_by(world, entry["env"]["MEMEX_KEY"])
    monkeypatch.setattr(sys, "platform", "darwin")
    assert run_command(["connect", "claude-desktop", "--write", "--renew"]) == 0
    usual = Path.home() / "Library/Application Support/Claude/claude_desktop_config.json"
    assert opened_by(world, json.loads(usual.read_text())["mcpServers"]["memex"]["env"]["MEMEX_KEY"])


def test_codex_home_is_where_codex_looks(world, monkeypatch, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "elsewhere"))
    assert run_command(["connect", "codex", "--write"]) == 0
    assert (tmp_path / "elsewhere/config.toml").exists()
    assert not (Path.home() / ".codex").exists()


def test_the_list_names_who_is_connected_and_how_to_end_it(world, capfd):
    assert run_command(["connect", "--list"]) == 0
    assert "no client is connected" in capfd.readouterr().out
    run_command(["connect", "cursor"])
    opened_by(world, SECRET.search(capfd.readouterr().out)[0])
    run_command(["connect", "gemini", "--name", "work"])
    capfd.readouterr()
    assert run_command(["connect", "--list"]) == 0
    _, cursor, gemini = capfd.readouterr().out.splitlines()
    assert cursor.startswith("cursor@desk")
    assert "never" not in cursor
    assert cursor.endswith("memex key revoke cursor@desk")
    assert gemini.startswith("gemini@desk work")
    assert "never" in gemini
    revoke = gemini.split("memex ")[1].split()
    assert run_command([*revoke, "--yes"]) == 0
    assert list(keys(world)) == ["owner", "cursor@desk"]
    capfd.readouterr()
    assert run_command(["connect", "--list", "--json"]) == 0
    (row,) = json.loads(capfd.readouterr().out)
    assert row["workspaces"] == ["default"]
    assert row["last_used_at"]


def test_a_host_with_any_name_gives_a_key_that_can_be_named(world, monkeypatch):
    for host in ("", "---", "Ünïcode host\n", "x" * 200, "a/b;c"):
        monkeypatch.setattr("socket.gethostname", lambda host=host: host)
        assert run_command(["connect", "cursor", "--name", "n" * 32]) == 0
    assert all(len(name) <= 64 for name in keys(world))


def test_no_link_in_the_home_folder_is_followed(world, capfd, tmp_path):
    (tmp_path / "shared").mkdir()
    (Path.home() / ".cursor").symlink_to(tmp_path / "shared")
    assert run_command(["connect", "cursor", "--write"]) == 2
    assert "link" in capfd.readouterr().err
    assert list((tmp_path / "shared").iterdir()) == []
    assert list(keys(world)) == ["owner"]


@pytest.mark.parametrize(("client", "path"), [("claude-code", ".claude/settings.json"), ("codex", ".codex/hooks.json")])
def test_hooks_are_written_and_taken_away(world, capfd, client, path, monkeypatch):
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    file = Path.home() / path
    assert run_command(["connect", client, "--hooks"]) == 0
    out = capfd.readouterr().out
    assert out.startswith(f"wrote {file}\n")
    (group,) = json.loads(file.read_text())["hooks"]["SessionStart"]
    command = group["hooks"][0]["command"]
    assert command.endswith(f" context --workspace default --hook {client}")
    assert str(world.state) in command
    assert keys(world).keys() == {"owner"}
    assert run_command(["connect", client, "--hooks", "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert (told["changed"], told["command"]) == (False, command)
    assert run_command(["connect", client, "--hooks", "--remove"]) == 0
    assert "removed the hook" in capfd.readouterr().out
    assert json.loads(file.read_text()) == {}
    assert run_command(["connect", client, "--hooks"]) == 0
    assert run_command(["connect", client, "--remove"]) == 0
    backup = f"{file}.memex-backup-last"
    assert f"removed the hook from {file}; the old file is {backup}" in capfd.readouterr().out
    assert json.loads(file.read_text()) == {}
    for is_changed in (True, False):
        if is_changed:
            assert run_command(["connect", client, "--hooks", "--json"]) == 0
        capfd.readouterr()
        assert run_command(["connect", client, "--remove", "--json"]) == 0
        answer = json.loads(capfd.readouterr().out)
        assert (answer["changed"], answer["backup"]) == (is_changed, backup if is_changed else None)


def test_hooks_are_for_the_clients_that_document_them(world, capfd, tmp_path, monkeypatch):
    assert run_command(["connect", "cursor", "--hooks"]) == 2
    assert "choose claude-code or codex" in capfd.readouterr().err
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    assert run_command(["connect", "claude-code", "--hooks"]) == 0
    assert (tmp_path / "settings.json").is_file()
    named = tmp_path / "other.json"
    named.write_text('{"hooks": 3}')
    assert run_command(["connect", "claude-code", "--hooks", "--file", str(named)]) == 2
    assert f"{named} was not changed" in capfd.readouterr().err
    assert named.read_text() == '{"hooks": 3}'


def test_half_a_surrogate_pair_in_a_file_stays(world, monkeypatch):
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    hooks = Path.home() / ".claude/settings.json"
    hooks.parent.mkdir()
    hooks.write_text('{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "echo \\ud83d"}]}]}}')
    assert run_command(["connect", "claude-code", "--hooks"]) == 0
    assert [len(group["hooks"]) for group in json.loads(hooks.read_text())["hooks"]["SessionStart"]] == [1, 1]
    assert run_command(["connect", "cursor", "--write"]) == 0
    path = Path.home() / FILES["cursor"]
    settings = json.loads(path.read_text())
    settings["mcpServers"]["memex"]["note"] = "\ud83d"
    path.write_text(json.dumps(settings))
    assert run_command(["connect", "cursor", "--write", "--renew"]) == 0
    assert entry_of(world, "cursor")["note"] == "\ud83d"
    assert opened_by(world, key_in_entry(entry_of(world, "cursor")))


def test_a_hooks_file_that_can_not_be_edited_does_not_keep_the_key(world, capfd, monkeypatch):
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    assert run_command(["connect", "claude-code"]) == 0
    file = Path.home() / ".claude/settings.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text("{")
    assert run_command(["connect", "claude-code", "--remove"]) == 0
    out, err = capfd.readouterr()
    assert "revoked the key claude-code@desk" in out
    assert f"{file} was not changed: " in err
    assert "It may still contain the hook" in err
    assert keys(world).keys() == {"owner"}
