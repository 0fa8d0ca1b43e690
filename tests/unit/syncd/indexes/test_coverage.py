"""What the index covers, counted against the disk itself."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace

import pytest

from index.model import Stat
from syncd.app import App
from syncd.indexes.coverage import compute_coverage
from syncd.settings.settings import VaultSettings
from syncd.vault.listing import Listing
from syncd.vault.path_rules import to_printable
from tests.support.fakes import fake_embedder
from tests.support.world import World, settings_of
from vault_fixtures import gnarly

STAT = Stat(1, 1, 1)


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    yield made
    made.close()


def told(world, scope="vault"):
    return world.app.operations["status"]({"coverage": True}, lambda _: None)["coverage"][scope]


def test_every_shape_of_file_is_indexed_or_skipped_for_its_reason(world):
    gnarly.build(world.vault)
    world.run()
    shapes = gnarly.existing_shapes(world.vault)
    both = [told(world, scope) for scope in ("captures", "vault")]
    indexed = [
        shape for shape in shapes if shape.outcome == "indexed" or (shape.outcome == "unreadable" and os.geteuid() == 0)
    ]
    assert sum(found["indexed"] for found in both) == len(indexed)
    reasons = {one["path"]: one["reason"] for found in both for one in found["skipped"]}
    for shape in shapes:
        if shape.outcome == "skipped" or (shape.outcome == "unreadable" and os.geteuid() != 0):
            assert shape.reason in reasons[to_printable(shape.path)], shape
    folder = {r"Names/\xff\xfe"}  # whose name is no text, so nobody looks into it
    assert reasons.keys() - folder == {
        to_printable(shape.path) for shape in shapes if shape not in indexed and shape.outcome != "ignored"
    }
    assert sum(found["of"] for found in both) == len(indexed) + len(reasons)
    assert [found["waiting"] for found in both] == [0, 0]


def test_the_count_is_that_of_the_disk_at_each_step(world):
    for number in range(5):
        world.write(f"N{number}.md", f"words {number}")
    assert told(world) == {"indexed": 0, "of": 5, "waiting": 5, "words_only": 0, "skipped": []}
    world.run()
    assert told(world) == {"indexed": 5, "of": 5, "waiting": 0, "words_only": 0, "skipped": []}
    (world.vault / "N0.md").unlink()
    world.write("N9.md", "more")
    assert (told(world)["indexed"], told(world)["of"], told(world)["waiting"]) == (4, 5, 1)
    world.run()
    assert (told(world)["indexed"], told(world)["of"]) == (5, 5)
    world.write("Captures/default/C.md", "a capture")
    world.run()
    assert (told(world, "captures")["indexed"], told(world, "captures")["of"]) == (1, 1)


def test_what_is_ignored_is_not_counted(tmp_path):
    for path in ("A.md", "Archive/B.md", ".obsidian/C.md", "picture.png"):
        (tmp_path / "vault" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "vault" / path).write_text("x")
    (tmp_path / "vault/Big.md").write_text("x" * 2_000)
    vault = VaultSettings(path=tmp_path / "vault", ignore=("Archive/**",), max_bytes=1_000)
    settings = replace(settings_of(tmp_path / "vault", tmp_path / "state"), vault=vault)
    with App(settings, embedder=fake_embedder()) as app:
        app.opened.sync.run(accept=True)
        found = app.health.coverage()["vault"]
    assert (found["indexed"], found["of"]) == (1, 2)
    assert found["skipped"][0]["path"] == "Big.md"
    assert "too large" in found["skipped"][0]["reason"]


def test_a_vault_that_is_gone_is_not_counted_and_nothing_is_forgotten(world):
    world.write("A.md", "x")
    world.run()
    shutil.move(world.vault, world.vault.with_name("away"))
    assert told(world) == {"indexed": 1, "of": None, "waiting": 0, "words_only": 0, "skipped": []}
    shutil.move(world.vault.with_name("away"), world.vault)


def test_what_cant_be_seen_now_is_kept_and_counted_as_found():
    listing = Listing({"A.md": STAT}, {"Locked": "can't be read"}, complete=False, unread=frozenset({"Locked"}))
    known = {"vault": {"A.md", "Locked/B.md", "Locked/C/D.md"}, "captures": set()}
    assert compute_coverage(listing, known, {}, inbox="Captures")["vault"] == {
        "indexed": 3,
        "of": 4,
        "waiting": 0,
        "skipped": [{"path": "Locked", "reason": "can't be read; this hides 2 indexed notes from Memex"}],
    }


def test_many_files_that_are_not_downloaded_are_counted_at_once():
    away = frozenset(f"Notes/N{number}.md" for number in range(3_000))
    listing = Listing({}, dict.fromkeys(away, "is not downloaded"), complete=True, unread=away)
    known = {"vault": {f"Notes/N{number}.md" for number in range(30_000)}}
    begun = time.process_time()
    assert compute_coverage(listing, known, {}, inbox="Captures")["vault"]["indexed"] == 3_000
    assert time.process_time() - begun < 3


def test_a_note_that_could_not_be_read_is_skipped_for_that_reason():
    listing = Listing({"A.md": STAT, "B.md": STAT}, {}, complete=True)
    found = compute_coverage(listing, {"vault": set()}, {"A.md": "permission denied"}, inbox="Captures")["vault"]
    assert found == {"indexed": 0, "of": 2, "waiting": 1, "skipped": [{"path": "A.md", "reason": "permission denied"}]}
