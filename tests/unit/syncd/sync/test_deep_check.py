"""The daily check by content: what no event and no stat tells, found on real files and real stores."""

from __future__ import annotations

import json
import mmap
import os
import threading
import time

import pytest

from index.document_ids import path_id
from index.errors import InvalidArgument
from index.storage.chunk_rows import Row
from syncd.indexes.index_builds import IndexBuilds
from syncd.sync import deep_check
from syncd.sync.deep_check import DAY_S, FIRST_S, NIGHT_HOUR, CheckResult, DeepCheck
from tests.support.world import World, until

DAY_MS = int(DAY_S * 1000)
GO = threading.Event()  # nobody says stop


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    for number in range(30):
        world.write(f"n/{number:02}.md", f"a linnet sat on post {number:02}\n")
    world.write("Captures/default/c.md", "---\nid: c\n---\na captured linnet\n")
    world.run()
    yield world
    world.close()


def unseen(file, text):
    """Change a file so that its stat says nothing of it."""
    was = file.stat()
    assert len(text) == was.st_size
    file.write_text(text)
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))


def unheard(file, text):
    """The same through a mapping, of which the system tells nobody."""
    was = file.stat()
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as memory:
        memory[:] = text.encode()
        memory.flush()
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))


def asked(world):
    told = []
    return world.app.operations["check"]({}, told.append), told


def test_an_edit_that_kept_size_and_time_is_found_and_mended(world, tmp_path):
    unseen(world.vault / "n/07.md", "a wryneck at on post 07\n")
    unseen(world.vault / "Captures/default/c.md", "---\nid: c\n---\na captured garden\n")
    assert world.run().changes == 0, "a listing can't tell"
    report, progress = asked(world)
    assert report == {"checked": 31, "mended": 2, "failed": 0}
    assert [progress[-1][key] for key in ("done", "total")] == [2, 2]
    assert {"done": 31, "total": 31, "stage": "checking"} in progress
    assert world.found("wryneck", mode="text") == ["n/07.md"]
    assert world.found("garden", mode="text") == ["Captures/default/c.md"]
    assert world.dump() == world.rebuilt(tmp_path / "other")
    assert asked(world)[0] == {"checked": 31, "mended": 0, "failed": 0}


def test_a_write_through_a_mapping_and_one_by_another_name_of_the_file_are_found(world, tmp_path):
    mapped, linked = world.vault / "n/01.md", world.vault / "n/02.md"
    os.link(linked, tmp_path / "outside.md")
    world.run()
    stat = mapped.stat()
    with mapped.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[2:8] = b"plover"
        memory.flush()
    os.utime(mapped, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    unseen(tmp_path / "outside.md", "a pipits sat on post 02\n")
    assert asked(world)[0]["mended"] == 2
    assert world.found("plover", mode="text") == ["n/01.md"]
    assert world.found("pipits", mode="text") == ["n/02.md"]


def test_rows_that_got_lost_and_rows_of_no_note_are_mended(world, tmp_path):
    index = world.app.opened.builds.scopes["vault"].index
    stray = path_id("gone.md")
    before = world.dump()
    index._store.replace(
        {
            path_id("n/03.md"): (),
            stray: (Row("s", stray, 0, "", "", "documents", "note", None, (), 1, "d", "", 0, "stray", None),),
        }
    )
    assert world.found("post 03", mode="text")[:1] != ["n/03.md"]
    assert world.run().changes == 0, "stats can't tell"
    assert asked(world)[0]["mended"] == 2
    assert world.found("post 03", mode="text")[0] == "n/03.md"
    assert world.dump() == before == world.rebuilt(tmp_path / "other")


def test_an_event_is_reason_enough_to_compare_the_bytes_of_a_note(world, tmp_path):
    unseen(world.vault / "n/07.md", "a wryneck at on post 07\n")
    assert world.run(under=["n/08.md", "n"]).changes == 0, "no event names the note itself"
    outcome = world.run(under=["n/07.md", "n/09.md"])
    assert (outcome.modified, outcome.unchanged) == (1, 1)
    assert world.found("wryneck", mode="text") == ["n/07.md"]
    assert world.dump() == world.rebuilt(tmp_path / "other")


def test_in_the_daemon_it_sends_what_differs_down_the_pipe(world):
    with world.serving():
        world.settled()
        world.app.watch.stop()
        unheard(world.vault / "n/07.md", "a wryneck at on post 07\n")
        world.app.opened.check.run(GO)
        assert world.app.health.facts()["deep_check"]["mended"] == 1
        until(lambda: world.found("wryneck", mode="text") == ["n/07.md"])


def test_an_edit_that_can_be_seen_is_the_pipe_s_business(world):
    world.write("n/05.md", "seen at once, a redstart\n")
    (world.vault / "n/06.md").unlink()
    hinted = []
    world.app.opened.check._hint = hinted.extend
    assert world.app.opened.check.run(GO) == world.app.opened.check.last
    assert (world.app.opened.check.last.checked, world.app.opened.check.last.mended) == (31, 0)
    assert sorted(hinted) == ["n/05.md", "n/06.md"]


def test_a_note_that_is_not_here_or_can_not_be_read_is_passed_over(world):
    (world.vault / "n/01.md").rename(world.vault / "n/.01.md.icloud")
    (world.vault / "n/02.md").unlink()
    (world.vault / "n/02.md").mkdir()
    assert world.app.opened.check.run(GO).mended == 0
    assert world.found("post 01", mode="text")[0] == "n/01.md"


def test_a_check_that_is_stopped_or_loses_the_vault_is_not_remembered(world, monkeypatch):
    monkeypatch.setattr(deep_check, "SLICE_S", 0.0)
    deep = world.app.opened.check

    def lose(done, total, stage):
        if done == 5:
            world.vault.rename(world.vault.with_name("aside"))

    assert deep.run(GO, lose).checked == 5
    assert deep.last == CheckResult()
    world.vault.with_name("aside").rename(world.vault)
    monkeypatch.setattr(deep_check, "REST", 1e6)
    done, stopping = [], threading.Event()
    running = threading.Thread(target=lambda: done.append(deep.run(stopping)))
    running.start()
    time.sleep(0.1)
    stopping.set()
    running.join(60)
    assert done
    assert done[0].checked < 31
    assert deep.last == CheckResult()


def test_the_daemon_stops_while_one_is_under_way(world, monkeypatch):
    monkeypatch.setattr(deep_check, "SLICE_S", 0.0)
    monkeypatch.setattr(deep_check, "REST", 1e6)
    begun = threading.Event()
    differs = DeepCheck._differs

    def slow(self, index, entry):
        begun.set()
        return differs(self, index, entry)

    monkeypatch.setattr(DeepCheck, "_differs", slow)
    with world.serving():
        world.app.jobs.run("deep check", wait=False)
        assert begun.wait(60)
        since = time.monotonic()
    assert time.monotonic() - since < 10


def test_the_last_one_is_remembered_over_restarts_so_a_daemon_restarted_daily_gets_its_own(world):
    now = time.time_ns() // 1_000_000
    assert world.app.opened.check.due_in(now) == FIRST_S, "also one that was never made, however short each life is"
    world.app.opened.check.run(GO)
    last = world.app.opened.check.last
    assert abs(last.at - now) < 60_000
    assert world.app.opened.check.due_in(last.at + DAY_MS) == FIRST_S
    for moment in (*range(last.at, last.at + DAY_MS * 9 // 10, 1_234_567), last.at - 10 * DAY_MS):
        wait = world.app.opened.check.due_in(moment)
        due = time.localtime(moment // 1000 + wait)
        assert 0 < wait <= DAY_S, "the last is a clock that went back"
        assert (due.tm_hour, due.tm_min, due.tm_sec) == (NIGHT_HOUR, 0, 0)
    world.reopen()
    assert world.app.opened.check.last == last
    assert world.app.health.facts()["deep_check"] == {"at": last.at, "checked": 31, "mended": 0}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"at": null}', "\udcff"])
def test_a_torn_memory_of_the_last_one_is_none(world, text):
    file = world.state / "deep_check.json"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    world.reopen()
    assert world.app.opened.check.last == CheckResult()
    world.app.opened.check.run(GO)
    assert json.loads(file.read_text())["checked"] == 31


def test_once_it_was_made_by_day_it_is_made_at_night(world):
    world.run()
    with world.serving():
        jobs = world.app.jobs
        jobs.run("deep check")
        due = jobs.states()["deep check"].next_run_at / 1000
        assert 0 < due - time.time() <= 86_400
        assert (time.localtime(due).tm_hour, time.localtime(due).tm_min) == (NIGHT_HOUR, 0)


def test_it_is_a_daily_job(world):
    with world.serving():
        first = world.app.health.facts()["jobs"]["deep check"]["next_run_at"] / 1000 - time.time()
        assert 0 < first <= FIRST_S
        assert world.app.health.facts()["jobs"]["deep check"]["every_s"] == 86_400
        world.app.jobs.run("deep check", wait=False)
        until(lambda: world.app.opened.check.last.at is not None)
        until(lambda: "deep check" in world.app.health.facts()["jobs"])
        assert world.app.health.facts()["jobs"]["deep check"]["error"] == ""


def test_while_the_vault_is_missing_it_is_refused_by_hand(world):
    world.vault.rename(world.vault.with_name("aside"))
    with pytest.raises(Exception, match="is missing"):
        asked(world)


def test_it_rests_four_times_as_long_as_it_works_so_that_searches_do_not_notice(world, monkeypatch):
    monkeypatch.setattr(deep_check, "SLICE_S", 0.002)

    class Rests(threading.Event):
        """Passes the time without passing it."""

        asked: list[float] = []  # noqa: RUF012 - one test's

        def wait(self, timeout=None):
            self.asked.append(timeout)
            return False

    since, rests = time.monotonic(), Rests()
    assert world.app.opened.check.run(rests).checked == 31
    worked = time.monotonic() - since
    assert rests.asked
    assert all(rest >= 4 * 0.002 for rest in rests.asked[:-1])
    assert sum(rests.asked) <= 4 * worked


def test_the_command_takes_it_alone():
    from click.testing import CliRunner

    from syncd.cli.main import memex

    told = CliRunner().invoke(memex, ["index", "--check", "--full"], standalone_mode=False)
    assert isinstance(told.exception, InvalidArgument)
    assert IndexBuilds  # the stores are not opened for that
