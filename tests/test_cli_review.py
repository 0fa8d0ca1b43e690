"""The commands for what waits, on a real vault and at a real terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from syncd.cli import code
from tests.world import World, answering, until

ROOT = Path(__file__).parent.parent
SOUP = "Simmer leeks and potatoes in vegetable stock until soft, then blend the soup."


@pytest.fixture
def world(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("MEMEX_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "state").mkdir(mode=0o700)
    world = World(tmp_path)
    for name in ("Leek soup", "Onion soup", "Pea soup"):
        world.write(f"Recipes/{name}.md", f"---\ntags: [recipe]\n---\n{SOUP} {name}.\n")
    for number, name in enumerate(("First", "Second", "Third", "Fourth"), 1):
        front = f"id: {name.lower()}\ncreated_at: 2026-11-0{number}T10:00:00.000Z"
        world.write(f"Captures/default/{name}.md", f"---\n{front}\n---\n{SOUP} {name}.\n")
    world.run()
    world.app.steward.review.run()
    monkeypatch.setenv("MEMEX_VAULT", str(world.vault))
    monkeypatch.setenv("MEMEX_STATE", str(world.state))
    with answering(world):
        yield world


def said(capfd, *words, fails=0):
    capfd.readouterr()
    assert code(list(words)) == fails, capfd.readouterr().err
    return capfd.readouterr().out


def test_where_nobody_sits_at_a_terminal_it_is_a_list(world, capfd):
    text = said(capfd, "review")
    assert [line.split()[0] for line in text.splitlines()[1:]] == ["first", "second", "third", "fourth"]
    assert "Recipes" in text
    told = json.loads(said(capfd, "review", "--json"))
    assert told["total"] == 4
    first = told["waiting"][0]
    assert (first["id"], first["suggested_folder"], first["promote"]) == ("first", "Recipes", False)
    assert first["suggested_similar"]
    assert json.loads(said(capfd, "review", "--json", "--workspace", "other"))["waiting"] == []


def test_scripts_decide_by_ids(world, capfd):
    done = json.loads(said(capfd, "review", "approve", "first", "--json"))
    assert [one["target"] for one in done["promoted"]] == ["Recipes/First.md"]
    done = json.loads(said(capfd, "review", "dismiss", "second", "Captures/default/Third.md", "--json"))
    assert [one["target"] for one in done["archived"]] == [
        f"Captures/Archive/default/{name}.md" for name in ("Second", "Third")
    ]
    assert "Captures/Archive/default/Second.md" in said(capfd, "unarchive")
    said(capfd, "unarchive", "second")
    assert {one["id"] for one in json.loads(said(capfd, "review", "--json"))["waiting"]} == {"second", "fourth"}
    said(capfd, "review", "dismiss", "nobody", fails=4)
    assert "2 captures wait for your decision" in said(capfd, "status")


def test_a_person_goes_through_them_at_a_terminal(world, tmp_path):
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho Edited. >> "$1"\n')
    editor.chmod(0o755)
    environ = os.environ | {"PYTHONPATH": str(ROOT), "EDITOR": str(editor), "TERM": "xterm", "NO_COLOR": "1"}
    leader, follower = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-m", "syncd.cli", "review"], stdin=follower, stdout=follower, stderr=follower, env=environ
    )
    os.close(follower)
    heard = ""

    def prompted(words):
        nonlocal heard
        while not re.search(words, heard):
            heard += os.read(leader, 65_536).decode()
        told, heard = heard, ""
        return told

    def typed(line):
        os.write(leader, f"{line}\n".encode())

    told = prompted("uit: ")
    assert "1 of 4: First" in told
    assert "folder: Recipes" in told
    assert "Leek soup.md" in told
    typed("a")
    assert "→ Recipes/First.md" in (told := prompted("uit: "))
    assert "2 of 4: Second" in told
    typed("e")
    assert "Edited." in prompted("uit: ")
    typed("f")
    prompted(r"number.*: ")
    typed("Kitchen")
    assert "→ Kitchen/Second.md" in prompted("uit: ")
    typed("d")
    assert "→ Captures/Archive/default/Third.md" in prompted("uit: ")
    typed("q")
    with suppress(OSError):  # the terminal has ended
        prompted("nothing")
    os.close(leader)
    assert running.wait(30) == 0
    until(lambda: (world.vault / "Kitchen/Second.md").is_file())
    assert "Edited." in (world.vault / "Kitchen/Second.md").read_text()
    assert (world.vault / "Captures/default/Fourth.md").is_file()
