"""What the pipeline states of itself."""

from __future__ import annotations

import errno
import os
import threading
import time
from pathlib import Path

import pytest

from syncd.sync import pipeline
from tests.support.until import until


def test_it_states_what_it_works_on_until_all_is_read(world):
    sync = world.app.opened.sync
    assert sync.activity == "reading the vault for the first time"
    for number in range(3):
        world.write(f"{number}.md", "words")
    stated = []
    world.run(progress=lambda *_: stated.append(sync.activity))
    assert "indexing 3/3" in stated
    assert sync.activity == ""


def test_the_first_pass_waits_until_the_daemon_answers(world, monkeypatch):
    world.write("1.md", "words")
    sync, answering = world.app.opened.sync, threading.Event()
    sync.start(after=answering)
    try:
        assert not sync.ready.wait(0.3)
        answering.set()
        assert sync.ready.wait(60)
        assert sync.builds.documents == 1
    finally:
        answering.set()
        sync.stop()
    monkeypatch.setattr(pipeline, "FIRST_S", 0.0)
    sync.start(after=threading.Event())
    until(lambda: not sync.pending_paths and sync.activity == "")
    sync.stop()


def test_a_rebuild_that_can_not_begin_is_not_reported_as_under_way(world):
    world.write("1.md", "words")
    world.run()
    sync, folder = world.app.opened.sync, world.state / "index"
    aside = folder.rename(world.state / "aside")
    folder.write_text("a file where the folder of the index was")
    with pytest.raises(FileExistsError):
        sync.rebuild(fresh=True)
    folder.unlink()
    aside.rename(folder)
    assert sync.problems == []
    sync.rebuild(fresh=True)
    assert sync.problems == []
    assert sync.builds.documents == 1


def test_a_vault_whose_disk_can_not_be_read_counts_as_missing_until_it_can(world, monkeypatch):
    world.write("1.md", "words")
    world.run()
    world.vault.rename(world.vault.with_name("old"))
    world.vault.mkdir()
    listdir, isdir, reading = os.listdir, Path.is_dir, [False]

    def list_names(folder="."):
        if isinstance(folder, int) and not reading[0]:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return listdir(folder)

    def is_dir(path):
        if path == world.vault:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return isdir(path)

    monkeypatch.setattr(os, "listdir", list_names)
    monkeypatch.setattr(Path, "is_dir", is_dir)
    monkeypatch.setitem(pipeline.AGAIN, "root", 0.0)
    sync = world.app.opened.sync
    open_before = len(listdir("/dev/fd"))
    for _ in range(3):
        world.run()
    assert len(listdir("/dev/fd")) == open_before
    assert any("vault missing" in problem for problem in sync.problems)
    assert sync._reason_for_pass() == "root"
    (world.vault / "2.md").write_text("other words")
    reading[0] = True
    world.run()
    assert sync.problems == []


def test_while_captures_wait_for_the_last_pass_of_a_rebuild_it_takes_in_no_saves(world, monkeypatch):
    world.write("1.md", "words")
    world.run()
    sync = world.app.opened.sync
    run, captures, held = sync._index_pass.run, sync.builds.scopes["captures"].index, []

    def run_and_save(request, progress=None):
        if captures.lock._is_owned():
            held.append(request.live)
            world.write("Late.md", "saved at the last moment")
            sync._pending_paths.recheck("Saved.md", 0)
            time.sleep(0.1)  # until it is due
        return run(request, progress)

    monkeypatch.setattr(sync._index_pass, "run", run_and_save)
    sync.rebuild(fresh=True)
    assert held == [False]
    assert "Saved.md" in sync.pending_paths
    assert sync.builds.documents == 2
