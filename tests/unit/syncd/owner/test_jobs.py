"""The owner's jobs, on a real vault: what stands in the list, what a run by hand does."""

from __future__ import annotations

import threading
import time

import pytest

from index.errors import NotFound, Unavailable
from syncd.indexes.shared_index import SharedIndex
from syncd.jobs.timer import COMMON_S
from syncd.jobs.worker import Worker
from syncd.owner.jobs import _wait_for_jobs
from syncd.vault.openat import new_temporary_name
from tests.support.world import World, until

NAMES = {"leftovers", "listing", "maintenance", "root"}


@pytest.fixture
def world(tmp_path):
    one = World(tmp_path)
    yield one
    one.close()


def ask(world, operation, /, **given):
    return world.app.operations[operation](given, lambda _: None)


def test_every_job_is_listed_with_how_it_stands(world):
    idle = {one["name"]: one for one in ask(world, "job.list")}
    assert set(idle) >= NAMES
    assert all(one["next_run_at"] is None for one in idle.values()), "nothing is scheduled without a daemon"
    with world.serving():
        until(lambda: ask(world, "job.run", name="listing", wait=True)["ended"])
        serving = {one["name"]: one for one in ask(world, "job.list")}
        assert set(serving) == set(idle)
        for one in serving.values():
            # A start is rounded to the nearest multiple of COMMON_S.
            assert time.time() * 1000 < one["next_run_at"] <= (time.time() + one["every_s"] + COMMON_S / 2) * 1000
        assert (serving["listing"]["runs"], serving["listing"]["error"]) == (1, "")
        facts = world.app.health.facts()["jobs"]
        assert facts["listing"] | {"name": "listing", "title": "list the vault"} == serving["listing"]
    world.reopen()
    again = {one["name"]: one for one in ask(world, "job.list")}
    assert again["listing"]["started_at"] == serving["listing"]["started_at"], "it outlives the daemon"
    assert len(ask(world, "job.history", name="listing")) == 1


def test_a_listing_by_hand_finds_what_no_event_told_of(world):
    world.write("Note.md", "dunlins on the mudflat\n")
    done = ask(world, "job.run", name="listing")
    assert (done["name"], done["ended"], done["error"]) == ("listing", True, "")
    assert world.found("dunlins", scope="vault") == ["Note.md"]


def test_a_job_that_fails_says_so_where_people_look(world):
    vault = world.vault.rename(world.vault.with_name("away"))
    try:
        world.app.jobs.every("broken", 3600, world.vault.stat)
        assert "No such file" in ask(world, "job.run", name="broken")["error"]
        (told,) = [text for text in world.app.health.degraded() if text.startswith("jobs:")]
        assert str(world.vault) not in told
    finally:
        vault.rename(world.vault)


@pytest.mark.parametrize("name", ["deep check", "deep-check", "deep_check"])
def test_a_name_of_two_words_is_one_for_a_shell(world, name):
    world.app.jobs.every("deep check", 3600, lambda: None)
    assert ask(world, "job.run", name=name)["name"] == "deep check"


def test_a_job_that_does_not_exist_is_not_found(world):
    with pytest.raises(NotFound, match="`memex job list` names them"):
        ask(world, "job.run", name="nonsense")
    with pytest.raises(NotFound, match='Did you mean "list-the-vault"'):
        ask(world, "job.run", name="lists-the-vault")


def test_a_job_is_run_by_its_name_and_by_its_key(world):
    for name in ("list-the-vault", "List the vault", "listing"):
        done = ask(world, "job.run", name=name)
        assert (done["name"], done["title"]) == ("listing", "list the vault")


def test_an_index_that_can_not_be_maintained_keeps_no_other_from_it(world, monkeypatch):
    indexes, maintained = world.app.opened.builds.indexes, []

    def fail():
        raise Unavailable("the disk is full")

    monkeypatch.setattr(indexes["captures"], "maintain", fail)
    monkeypatch.setattr(indexes["vault"], "maintain", lambda: maintained.append("vault"))
    monkeypatch.setattr(SharedIndex, "maintain", lambda _: maintained.append("shared"))
    assert ask(world, "job.run", name="maintenance")["error"] == "the disk is full"
    assert maintained == ["vault", "shared"]


def aged(path, seconds):
    """Wait until `path` has been as it is for so long."""
    until(lambda: time.time() - path.stat().st_ctime > seconds)


def test_leftovers_are_collected_once_they_are_nobody_s_work(world, monkeypatch):
    from syncd.daemon import background_jobs

    world.write("Note.md", "a note\n")
    world.run()
    root = world.state / "index"
    dead = world.vault / "Captures" / new_temporary_name()
    dead.write_text("half")
    old = root / "0123456789ab-1"
    old.mkdir()
    (old / "made.json").write_text("{}")
    (world.state / ".key.0a1b2c3d").write_text("half")
    ask(world, "job.run", name="leftovers")
    assert dead.exists()
    assert old.exists()
    monkeypatch.setattr(background_jobs, "LEFT_S", 0.1)
    monkeypatch.setattr(background_jobs, "DAY_S", 0.1)
    aged(old, 0.2)
    ask(world, "job.run", name="leftovers")
    assert not dead.exists()
    assert not old.exists()
    assert not (world.state / ".key.0a1b2c3d").exists()
    assert world.found("note", scope="vault") == ["Note.md"], "the build in use stays"


def test_an_unfinished_build_that_can_be_taken_up_again_stays(world):
    builds = world.app.opened.builds
    other = builds._create()
    other.close()
    aged(other.folder, 0.2)
    assert builds.drop_unused(older_s=0.1) == []
    (other.folder / "made.json").unlink()
    aged(other.folder, 0.2)
    assert builds.drop_unused(older_s=0.1) == [other.folder.name]


def test_a_wait_for_jobs_lasts_as_long_as_it_says_while_others_end(world):
    queue, ended = world.app.opened.queue, threading.Event()
    job = queue.add_note("k", "default", {"text": "a note"}, title="a note")

    def others():
        while not ended.wait(0.001):
            queue.wake()

    thread = threading.Thread(target=others)
    thread.start()
    begun = time.monotonic()
    try:
        (waiting,) = _wait_for_jobs(queue, Worker(queue), [job.id], lambda _: None, seconds=0.7)
    finally:
        ended.set()
        thread.join()
    assert time.monotonic() - begun >= 0.7
    assert waiting.status == "queued"


def test_a_consolidation_by_hand_is_no_longer_never(world):
    def began():
        return {one["name"]: one["started_at"] for one in ask(world, "job.list")}["consolidation"]

    ask(world, "consolidate", dry_run=True)
    assert began() is None
    ask(world, "consolidate")
    assert began() == pytest.approx(time.time() * 1000, abs=60_000)
    world.reopen()
    assert began() is not None
