"""Promotion and its way back, on real files, real Git and a real index."""

from __future__ import annotations

import subprocess

import pytest

from index.errors import Conflict, NotFound
from syncd.duties import GitSettings, PromoteSettings
from syncd.note import properties, split
from syncd.promotable import Taken
from syncd.promotion import Problem, Rule
from tests.world import World, until

CAPTURE = (
    "---\nid: c1\ncreated_at: 2026-11-20T14:32:05.120Z\nsource: claude-code\ncollection: documents\ntags: [herons]\n"
    "{marks}---\nThe heron stands in the reeds, see [[Pond]] and ![[Pond#Depth|deep]].\n"
)


def capture(marks=""):
    return CAPTURE.format(marks=marks)


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.git("init", "-q")
    world.git("config", "user.name", "Ann")
    world.git("config", "user.email", "ann@example.org")
    world.write("Areas/Pond.md", "---\nid: pond\n---\n# Depth\n\nshallow, [heron](../Captures/default/Heron.md#x)\n")
    world.write("Daily/Today.md", "Saw [[Captures/default/Heron|one]] and [[Heron]].\n")
    world.write("Captures/default/Heron.md", capture())
    world.git("add", "-A")
    world.git("commit", "-qm", "before")
    world.run()
    world.app.sync.ready.set()
    yield world
    world.close()


def promotions(world):
    return world.app.steward.promotions


def files(world):
    found = (file for file in world.vault.rglob("*") if file.is_file() and ".git" not in file.parts)
    return {str(file.relative_to(world.vault)): file.read_bytes() for file in found}


def consistent(world, tmp_path):
    assert world.app.sync.run(accept=True).changes == 0, "nothing was left to index"
    assert world.dump() == world.rebuilt(tmp_path / "other")


def test_a_capture_becomes_a_note_with_all_its_links(world, tmp_path):
    before = files(world)
    done = promotions(world).promote("c1", to="Birds")
    assert done["target"] == "Birds/Heron.md"
    now = files(world)
    assert now.keys() == before.keys() - {"Captures/default/Heron.md"} | {"Birds/Heron.md"}
    text = now["Birds/Heron.md"].decode()
    assert split(text)[1] == split(capture())[1]
    said = properties(split(text)[0])
    assert list(said) == ["id", "created_at", "source", "tags", "promoted_at"]
    assert now["Areas/Pond.md"].decode().endswith("[heron](../Birds/Heron.md#x)\n")
    assert now["Daily/Today.md"] == b"Saw [[Birds/Heron|one]] and [[Heron]].\n"
    assert sorted(done["relinked"]) == ["Areas/Pond.md", "Daily/Today.md"]
    assert world.found("heron reeds")[0] == "Birds/Heron.md"
    with pytest.raises(NotFound):
        world.app.desk.workspace("default").get("c1")
    consistent(world, tmp_path)


def test_it_is_one_commit_that_says_who_and_what(world):
    done = promotions(world).promote("c1", to="Birds")
    head = world.git("log", "-1", "--format=%H%n%an%n%B").split("\n", 2)
    assert head[0] == done["commit"]
    assert "Promote Heron" in head[2]
    trailers = subprocess.run(
        ["git", "interpret-trailers", "--parse"], input=head[2], capture_output=True, text=True, check=True
    )
    assert trailers.stdout.splitlines() == [
        "Capture-Id: c1",
        "Source: claude-code",
        "Approved-By: Ann <ann@example.org>",
        "Memex-Tool: promote",
    ]
    assert sorted(world.git("show", "--name-status", "--no-renames", "--format=", "HEAD").split()) == sorted(
        ["A", "Birds/Heron.md", "D", "Captures/default/Heron.md", "M", "Areas/Pond.md", "M", "Daily/Today.md"]
    )
    assert world.git("status", "--porcelain") == ""


def test_unpromote_gives_every_byte_back(world, tmp_path):
    before = files(world)
    promotions(world).promote("c1", to="Birds")
    done = promotions(world).unpromote("c1")
    assert done["target"] == "Captures/default/Heron.md"
    assert files(world) == before
    assert world.app.desk.workspace("default").get("c1").record.path == "Captures/default/Heron.md"
    assert world.git("status", "--porcelain") == ""
    assert world.git("diff", "HEAD~2", "HEAD", "--stat") == ""
    assert "Memex-Tool: unpromote" in world.git("log", "-1", "--format=%B")
    consistent(world, tmp_path)
    with pytest.raises(NotFound):
        promotions(world).unpromote("c1")
    assert promotions(world).promote("c1")["target"] == "Notes/Heron.md"
