"""What is said at a start: how to connect, and no key of the owner's; a demo shows its own key once."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from index.timings import now_ms
from syncd.cli.daemon import demo
from syncd.cli.daemon.ready_message import print_address_json, print_connect_help, print_summary
from syncd.cli.main import run_command
from syncd.installation.vault_setup import ensure_owner_key
from tests.support.world import World, answering

SECRET = re.compile(r"mx_[0-9a-f]{12}_[0-9a-f]{64}")
DEMO_KEY = f"mx_{'a' * 12}_{'b' * 64}"


@pytest.fixture
def world(tmp_path, monkeypatch):
    (tmp_path / "state").mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with answering(World(tmp_path)) as opened:
        opened.write("Own.md", "# Own\n")
        opened.run()
        yield opened


@pytest.fixture
def ready(world):
    key_file = ensure_owner_key(world.state, world.app.opened.keys, now=now_ms())
    return SimpleNamespace(
        url="http://127.0.0.1:1", state=world.state, key_file=key_file, first_listing=lambda *_: True
    )  # nothing listens there, so the search that is shown is refused


def test_a_daemon_says_how_to_connect_and_no_key(world, ready, capfd):
    for say in (print_summary, print_connect_help):
        say(world.app.settings, ready)
        out, err = capfd.readouterr()
        assert "connect claude-code" in out + err
        assert not SECRET.search(out + err)


def test_a_demo_shows_its_own_key_the_first_time_alone(world, ready, capfd, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    file = demo.state_home(os.environ) / demo.ADDRESS
    settings = replace(world.app.settings, server=replace(world.app.settings.server, port=2))  # and it got port 1
    demo._announce(settings, ready, None, DEMO_KEY)
    out = capfd.readouterr().out
    assert set(SECRET.findall(out)) == {DEMO_KEY}
    assert "/mcp/core" in out
    address = demo.DemoAddress(1, DEMO_KEY)
    assert demo.read_address(file) == address
    for earlier, says in ((address, "keep working"), (replace(address, port=2), "once they name port 1")):
        demo._announce(settings, ready, earlier, DEMO_KEY)
        out = capfd.readouterr().out
        assert says in out
        assert not SECRET.search(out)
        assert demo.read_address(file) == address, "the port in the lines that were pasted"
    named = SimpleNamespace(**vars(ready) | {"url": "http://127.0.0.1:3"})
    demo._announce(settings, named, address, DEMO_KEY, is_named=True)
    assert demo.read_address(file) == replace(address, port=3), "the port that was named"


def test_an_address_that_is_shown_is_kept_before_the_notes_are_indexed(world, ready, capfd, tmp_path, monkeypatch):
    """That takes a while, and a demo that ends meanwhile has shown lines to paste."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    file = demo.state_home(os.environ) / demo.ADDRESS
    kept = []
    indexing = SimpleNamespace(**vars(ready) | {"first_listing": lambda *_: kept.append(demo.read_address(file))})
    settings = replace(world.app.settings, server=replace(world.app.settings.server, port=1))
    demo._announce(settings, indexing, None, DEMO_KEY)
    assert DEMO_KEY in capfd.readouterr().out
    assert kept == [demo.DemoAddress(1, DEMO_KEY)]


@pytest.mark.parametrize("stdout", ["closed", "a pipe without a reader"])
@pytest.mark.parametrize("as_json", [True, False])
def test_a_key_that_nobody_could_see_is_shown_by_the_next_demo(world, ready, tmp_path, monkeypatch, stdout, as_json):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    file = demo.state_home(os.environ) / demo.ADDRESS
    settings = replace(world.app.settings, server=replace(world.app.settings.server, port=1))
    reader, writer = os.pipe()
    os.close(reader)
    number = os.open(os.devnull, os.O_WRONLY) if stdout == "closed" else writer
    with os.fdopen(number, "w") as stream, monkeypatch.context() as patch:
        patch.setattr("sys.stdout", stream)
        demo._announce(settings, ready, None, DEMO_KEY, as_json=as_json)
    assert demo.read_address(file) is None
    with (tmp_path / "out").open("w") as stream, monkeypatch.context() as patch:
        patch.setattr("sys.stdout", stream)
        demo._announce(settings, ready, None, DEMO_KEY, as_json=as_json)
    assert DEMO_KEY in (tmp_path / "out").read_text()
    assert demo.read_address(file) == demo.DemoAddress(1, DEMO_KEY)


def test_with_json_stdout_has_one_line_with_the_address(world, ready, capfd, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    place = {"vault": str(world.vault), "state": str(world.state), "url": ready.url, "workspace": "default"}
    print_address_json(world.app.settings, ready)
    assert json.loads(capfd.readouterr().out) == place | {"key": None}
    for address, key in ((None, DEMO_KEY), (demo.DemoAddress(2, DEMO_KEY), None)):
        demo._announce(world.app.settings, ready, address, DEMO_KEY, as_json=True)
        assert json.loads(capfd.readouterr().out) == place | {"key": key}


def test_a_demo_shows_how_to_connect_although_its_address_cannot_be_kept(world, ready, capfd, tmp_path, monkeypatch):
    (tmp_path / "home").write_text("a file in place of the folder")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    settings = replace(world.app.settings, server=replace(world.app.settings.server, port=2))
    demo._announce(settings, ready, None, DEMO_KEY)
    out, err = capfd.readouterr()
    assert DEMO_KEY in out
    assert "can't be written" in err


def test_a_vault_that_is_set_up_names_the_command_and_no_key(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault/Own.md").write_text("# Own\n")
    assert run_command(["init", str(tmp_path / "vault"), "--state", str(tmp_path / "state")]) == 0
    out, err = capfd.readouterr()
    assert "connect claude-code" in out
    assert not SECRET.search(out + err)
    assert SECRET.search((tmp_path / "state/key").read_text())
