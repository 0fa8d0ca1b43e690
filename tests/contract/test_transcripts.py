"""What a person reads: the main commands and their usual mistakes, word for word, so that each change of a word is reviewed.

`make golden` writes the transcripts anew; ids, times and folders are masked."""

from __future__ import annotations

import io
import logging
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path

import click
import pytest

from syncd.cli.main import memex, run_command
from tests.support.known_vault import make_default_vault
from tests.support.paths import GOLDEN
from tests.support.world import World, answering

ROOF = "The roof terrace door sticks when it rains; plane the lower edge in spring."
TRANSCRIPTS = GOLDEN / "transcripts"
MASKS = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<id>"),
    (r"mx_[A-Za-z0-9_-]{20,}", "<secret>"),
    (r"\b[0-9a-f]{12,64}\b", "<digest>"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?Z?", "<time>"),
    (r"\b\d+(?:\.\d+)? (?:s|ms|min|h|d)\b", "<span>"),
    (r"\b0\.\d{2,}\b", "<score>"),
    (r"/[^\s:;,`']*/(?=vault\b|state\b|home\b|other\b)", "/"),
    (r"(?<=port )\d+", "<port>"),
)
NOTES = (  # a conversation with a daemon at hand: the words of each command line
    ["capture", ROOF, "--tag", "house"],
    ["capture", ROOF],
    ["capture", "The heat pump filter is due in May.", "--title", "Heat pump", "--workspace", "work"],
    ["recent"],
    ["get", "Heat pump"],
    ["get", "Heat pmup"],
    ["search", "roof door", "--mode", "text"],
    ["search", "nothing of the kind", "--mode", "text"],
    ["updatenote", "Heat pump", "The heat pump filter is due in June."],
    ["updatenote", "Heat pump", "x", "--version", "1"],
    ["log", "Heat pump"],
    ["undo", "Heat pump", "--dry-run"],
    ["undo", "Heat pump"],
    ["undo", "Heat pump", "--yes"],
    ["delete", "Heat pump"],
    ["delete", "Heat pump", "--yes"],
)
REVIEW = (
    ["review"],
    ["review", "--editor"],
    ["promote", "The roof terrace door sticks when it rains; plane the lower edge in spring", "--to", "House"],
    ["promote", "The roof terrace dor sticks when it rains"],
    ["unpromote", "The roof terrace door sticks when it rains; plane the lower edge in spring"],
    ["review", "dismiss", "The roof terrace door sticks when it rains; plane the lower edge in spring"],
    ["unarchive"],
    ["unarchive", "The roof terrace door sticks when it rains; plane the lower edge in spring"],
    ["review", "approve", "nobody"],
)
CARE = (
    ["workspace", "list"],
    ["workspace", "create", "garden"],
    ["capture", "x", "--workspace", "gardne"],
    ["workspace", "delete", "garden"],
    ["workspace", "delete", "garden", "--yes"],
    ["key", "create", "--name", "claude", "--workspace", "work"],
    ["key", "create", "--name", "claude"],
    ["key", "list"],
    ["key", "revoke", "claud", "--yes"],
    ["key", "revoke", "claude", "--yes"],
    ["job", "run", "list-the-vault", "--wait"],
    ["job", "run", "listing", "--wait"],
    ["job", "run", "list-teh-vault"],
    ["job", "queue"],
    ["commit"],
    ["sync"],
    ["enrich", "--backfill"],
)
MAIN = ("init", "search", "capture", "review", "promote", "status")
MISTAKES = (
    ["serach", "x"],
    ["job", "lits"],
    ["capture", "--tittle", "x", "y"],
    ["search"],
    ["recent", "--limit", "many"],
    ["help", "exit-code"],
    ["audit", "--since", "yesterday"],
    ["use", "nowhere"],
)


@pytest.fixture
def world(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("MEMEX_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)  # threads of earlier tests may still log
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "home").mkdir()
    world = World(tmp_path)
    (world.vault / "Captures/work").mkdir()
    world.write("House/Door.md", "---\ntags: [house]\n---\nThe front door.\n")
    world.run()
    make_default_vault(monkeypatch, tmp_path / "home", world.vault, world.state)
    monkeypatch.chdir(tmp_path)
    with answering(world):
        yield world


def masked(text, folder):
    text = text.replace(str(folder), "")
    for pattern, mask in MASKS:
        text = re.sub(pattern, mask, text)
    return re.sub(r"(?<=\S) {2,}", "  ", re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE))


def transcript(lines, capfd, folder):
    """What each line shows, on stdout and stderr, and its exit code where it is not 0."""
    parts = []
    capfd.readouterr()
    for words in lines:
        code = run_command(words)
        told = capfd.readouterr()
        shown = " ".join(f"'{word}'" if " " in word else word for word in words)
        parts.append(f"$ memex {shown}\n{told.err}{told.out}" + (f"[exit code {code}]\n" if code else ""))
    return masked("\n".join(parts), folder)


def compare(name, text):
    expected = TRANSCRIPTS / f"{name}.txt"
    if os.environ.get("GOLDEN") == "write":
        expected.write_text(text, encoding="utf-8")
    assert text == expected.read_text(encoding="utf-8"), f"`make golden` rewrites {expected.name}; review the change"


@pytest.mark.parametrize(
    ("name", "lines"), [("notes", NOTES), ("review", (NOTES[0], *REVIEW)), ("care", CARE), ("mistakes", MISTAKES)]
)
def test_a_golden_transcript_is_as_before(world, capfd, name, lines, tmp_path):
    compare(name, transcript(lines, capfd, tmp_path))


@pytest.fixture
def short_folder():
    """A folder whose path is short wherever temporary folders are: a table cuts what is too long for it."""
    with tempfile.TemporaryDirectory(prefix="memex-") as name:
        yield Path(name)


def test_a_golden_transcript_of_setting_a_vault_up_is_as_before(short_folder, monkeypatch, capfd):
    for name in [name for name in os.environ if name.startswith("MEMEX_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(short_folder / "home"))
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.chdir(short_folder)
    (short_folder / "home").mkdir()
    (short_folder / "vault").mkdir()
    (short_folder / "vault/Note.md").write_text("mine")
    lines = (["init", "vault"], ["vaults"], ["init", "vault", "--git", "off"], ["init", "missing"], ["init", "home"])
    text = transcript(lines, capfd, short_folder)
    text = text.replace(shlex.quote(str(Path(sys.executable).with_name("memex"))), "memex")
    compare("setup", re.sub(r"(?<=vault-)[0-9a-f]{8}", "<digest>", text))


def test_a_golden_page_of_help_is_as_before():
    ctx = click.Context(memex, info_name="memex", terminal_width=100)
    commands = [click.Context(memex.commands[name], info_name=name, parent=ctx) for name in MAIN]
    text = "\n\n\n".join(page.get_help() for page in (ctx, *commands))
    text = re.sub(
        r"(?m)^  (?:-h, )?--help +", "  -h, --help  ", text
    )  # click keeps the option as it was first asked for
    compare("help", re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE) + "\n")
