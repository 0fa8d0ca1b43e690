"""Renames that only change the letter case, on a disk that ignores it: the system finds the file under the old name too."""

from __future__ import annotations

import os

import pytest

from syncd.sync import index_pass
from syncd.vault import openat
from tests.support.case_insensitive_disk import ignore_case
from tests.support.world import World


@pytest.fixture
def world(tmp_path):
    opened = World(tmp_path)
    opened.app.opened.vault._calls = openat.Calls(open=openat.open_stepwise)
    yield opened
    opened.close()


def paths(world):
    return sorted(path for index in world.app.opened.builds.live.indexes.values() for path in index.manifest)


@pytest.mark.parametrize("named", [("Plan.md", "plan.md"), ("Plan.md",), ("plan.md",), ()], ids=str)
def test_a_note_whose_name_changed_its_letter_case_is_indexed_once(world, monkeypatch, named):
    ignore_case(monkeypatch, world.vault)
    file = world.write("Plan.md", "a text of the plan")
    world.run()
    file.rename(world.vault / "plan.md")
    world.run(under=named or None)
    if named == ("plan.md",):
        world.run()  # nothing said that the old name is gone
    assert paths(world) == ["plan.md"]


@pytest.mark.parametrize("named", [("Ideas", "ideas"), ("Ideas/Plan.md",), ()], ids=str)
def test_the_notes_of_a_folder_whose_name_changed_its_letter_case_are_indexed_once(world, monkeypatch, named):
    ignore_case(monkeypatch, world.vault)
    world.write("Ideas/Plan.md", "a text of the plan")
    world.run()
    (world.vault / "Ideas").rename(world.vault / "ideas")
    world.run(under=named or None)
    assert paths(world) == ["ideas/Plan.md"]


@pytest.mark.parametrize("many", [3, 200], ids=["one listing of the vault", "a look at each path"])
def test_a_pass_over_many_changed_notes_reads_their_folder_a_few_times(world, monkeypatch, many):
    monkeypatch.setattr(index_pass, "MANY", many)
    ignore_case(monkeypatch, world.vault)
    for number in range(20):
        world.write(f"Ideas/Plan {number}.md", f"text {number}")
    world.run()
    for number in range(20):
        world.write(f"Ideas/Plan {number}.md", f"another text {number}")
    (world.vault / "Ideas").rename(world.vault / "ideas")
    scan, scans = os.scandir, []
    monkeypatch.setattr(os, "scandir", lambda *about: scans.append(about) or scan(*about))
    world.run(under=[f"Ideas/Plan {number}.md" for number in range(20)])
    assert paths(world) == sorted(f"ideas/Plan {number}.md" for number in range(20))
    assert len(scans) < 20


def test_two_notes_that_differ_in_letter_case_are_two_where_the_disk_knows_both(world):
    world.write("Plan.md", "a text of the plan")
    world.write("plan.md", "another text")
    world.run(under=["Plan.md", "plan.md"])
    assert paths(world) == ["Plan.md", "plan.md"]
