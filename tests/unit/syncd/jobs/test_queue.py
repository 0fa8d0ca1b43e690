"""The queue on a real ledger: what is accepted, whose it is, whose turn it is, and what a crash leaves."""

from __future__ import annotations

import errno
import json
import threading

import pytest

from index.errors import Conflict, InvalidArgument, NotFound, ResourceExhausted, Unavailable
from syncd.history.audit_log import Author, acting_as
from syncd.jobs.queue import BACKOFF_S, NOTES, TRIES, Queue, backoff
from syncd.jobs.queued_job import unfinished_of_rows
from syncd.settings.knowledge_base import KbSettings
from syncd.state.ledger import Ledger

NOTE = {"text": "a note"}
DIGEST = "d" * 64


class Clock:
    def __init__(self):
        self.ms = 1_800_000_000_000

    def __call__(self):
        return self.ms

    def pass_s(self, seconds):
        self.ms += int(seconds * 1000)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def opened(tmp_path, clock):
    """Opens the queue, as often as a daemon is started."""
    tmp_path.chmod(0o700)
    ledgers = []

    def open_queue(**settings):
        ledgers.append(Ledger.open(tmp_path / "ledger.db"))
        return Queue(ledgers[-1], tmp_path, KbSettings(**settings), clock)

    yield open_queue
    for ledger in ledgers:
        ledger.close()


@pytest.fixture
def queue(opened):
    return opened()


def test_the_owners_job_of_a_file_is_found_by_its_bytes(queue, tmp_path):
    def added(workspace, digest, *, key=""):
        upload = {"name": "a.pdf", "sha256": digest, "size": 4}
        return queue.add_file(key, workspace, upload, dropped(tmp_path / "in" / f"{workspace}{key}{digest[0]}"))

    wanted = added("w", DIGEST)
    for other in (added("v", DIGEST), added("w", "e" * 64), added("w", DIGEST, key="k")):
        assert queue.begin(other.id)
        queue.finish(other.id, f"made of {other.id}")
    assert queue.job_for_file("w", DIGEST, 4) == wanted
    assert queue.job_for_file("w", DIGEST, 5) is None
    assert queue.documents_of_file("w", DIGEST) == []
    assert queue.begin(wanted.id)
    queue.finish(wanted.id, "a document")
    assert queue.job_for_file("w", DIGEST, 4) is None
    assert queue.documents_of_file("w", DIGEST) == ["a document"]


@pytest.mark.parametrize(
    ("kind", "status", "about", "shed", "failed", "needs_file"),
    [
        pytest.param("file", "queued", {}, 0, False, True, id="an upload that waits"),
        pytest.param("file", "failed", {}, 0, True, True, id="one that failed"),
        pytest.param("file", "failed", {}, 1, True, False, id="one whose file was removed for room"),
        pytest.param("file", "queued", {"path": "a.pdf"}, 0, False, False, id="a file of the vault"),
        pytest.param("note", "running", {}, 0, False, False, id="a note"),
    ],
)
def test_an_unfinished_job_says_whether_it_needs_its_file(kind, status, about, shed, failed, needs_file):
    (job,) = unfinished_of_rows([("id", kind, status, json.dumps({"given": about}), shed)])
    assert (job.failed, job.needs_file) == (failed, needs_file)


def add(queue, key="k", workspace="w", text="a note"):
    return queue.add_note(key, workspace, {"text": text}, title=text)


def dropped(path, data=b"data"):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path


def test_what_was_queued_is_there_after_a_restart(opened):
    with acting_as(Author("rest", "kb_addnote", "k", "claude", "r")):
        job = add(opened())
    again = opened().job(job.id)
    assert again == job
    assert (again.status, again.given["text"], again.author.name) == ("queued", "a note", "claude")


def test_jobs_go_round_by_key_so_none_waits_for_all_of_another_s(queue):
    for _ in range(50):
        add(queue, "busy")
    late = [add(queue, key) for key in ("a", "z", "")]
    first = [queue.take("note") for _ in range(8)]
    assert {job.id for job in late} <= {job.id for job in first}
    assert [job.key for job in first if job.key == "busy"] == ["busy"] * 5
    ours = [job.seq for job in first if job.key == "busy"]
    assert ours == sorted(ours), "the oldest of a key first"


def test_a_job_is_begun_once_however_many_reach_for_it(queue):
    for _ in range(20):
        add(queue)
    begun = []

    def reach():
        while job := queue.take("note"):
            begun.append(job.id)

    threads = [threading.Thread(target=reach) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(begun) == len(set(begun)) == 20


def test_a_file_is_not_taken_for_a_note(queue, tmp_path):
    queue.add_file("k", "w", {"name": "a.pdf", "size": 4}, dropped(tmp_path / "in" / "a"))
    assert queue.take("note") is None
    assert queue.take("file").title == "a.pdf"


def test_too_many_waiting_jobs_of_a_key_are_refused_and_of_others_taken(opened, tmp_path):
    queue = opened(queued=2)
    add(queue)
    add(queue)
    with pytest.raises(ResourceExhausted, match="2 jobs are already waiting") as refused:
        add(queue)
    assert refused.value.retryable
    file = dropped(tmp_path / "in" / "a")
    with pytest.raises(ResourceExhausted):
        queue.add_file("k", "w", {"name": "a"}, file)
    assert file.exists(), "what was not taken stays where it was"
    add(queue, "other")
    for _ in range(4):
        add(queue, "")  # the owner's own
    queue.take("note")
    with pytest.raises(ResourceExhausted):
        add(queue)
    while job := queue.take("note"):
        queue.finish(job.id, job.planned)
    add(queue)


def test_the_texts_that_wait_are_bounded(queue, monkeypatch):
    monkeypatch.setattr("syncd.jobs.queue.NOTES", 10)
    add(queue, text="12345678")
    with pytest.raises(ResourceExhausted, match="8 bytes of notes are already"):
        add(queue, text="123")
    add(queue, text="12")
    assert queue.pending_size("k") == (2, 10)
    assert NOTES > 1_000_000


def test_a_done_job_keeps_no_text_and_no_file(queue, tmp_path):
    note = add(queue)
    file = queue.add_file("k", "w", {"name": "a", "size": 4}, dropped(tmp_path / "in" / "a"))
    assert queue.staged.find(file.id).read_bytes() == b"data"
    assert queue.pending_size("k", "file") == (1, 4)
    for kind in ("note", "file"):
        job = queue.take(kind)
        queue.finish(job.id, "d1")
        assert (queue.job(job.id).status, queue.job(job.id).document_id) == ("done", "d1")
    assert queue.job(note.id).given == {}
    assert queue.staged.find(file.id) is None
    assert queue.pending_size("k") == (0, 0)


def test_a_file_that_is_queued_twice_under_one_id_is_one_job(queue, tmp_path):
    given = {"name": "a", "size": 4}
    first = queue.add_file("k", "w", given, dropped(tmp_path / "in" / "a"), id="f" * 32)
    again = queue.add_file("k", "w", given, tmp_path / "in" / "a", id="f" * 32)
    assert again == first
    with pytest.raises(Conflict):
        queue.add_file("other", "w", given, None, id="f" * 32)
    assert len(queue.jobs()) == 1


def test_a_file_that_lies_staged_already_is_taken_where_it_lies(queue):
    path = dropped(queue.staged.folder / ("e" * 32))
    job = queue.add_file("k", "w", {"name": "a", "size": 4}, path, id="e" * 32)
    assert queue.staged.find(job.id) == path


def test_a_file_that_can_t_be_queued_or_put_back_is_refused_with_the_reason(queue, tmp_path, monkeypatch):
    path = dropped(tmp_path / "in" / "a")

    def fail(*_):
        raise Unavailable("the ledger could not be written")

    def gone(*_):
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(queue, "_add", fail)
    with monkeypatch.context() as patch, pytest.raises(Unavailable, match="ledger could not be written"):
        patch.setattr(queue.staged, "take", lambda *_: patch.setattr(type(path), "replace", gone))
        queue.add_file("k", "w", {"name": "a", "size": 4}, path)
    with pytest.raises(Unavailable, match="ledger could not be written"):
        queue.add_file("k", "w", {"name": "a", "size": 4}, path)
    assert path.read_bytes() == b"data"


def test_a_job_that_is_put_off_waits_longer_each_time_and_tells_why(queue, clock):
    job = add(queue)
    error = Unavailable("the disk is full")
    for tries in range(1, 4):
        assert queue.take("note").tries == tries
        queue.postpone(job.id, error, tries)
        assert queue.take("note") is None
        assert queue.due_in("note") == backoff(tries)
        assert queue.job(job.id).error["message"] == "the disk is full"
        clock.pass_s(backoff(tries))
    assert queue.due_in("note") == 0.0
    assert [backoff(tries) for tries in (1, 2, 3, 9, 100)] == [2.0, 4.0, 8.0, BACKOFF_S[1], BACKOFF_S[1]]


def test_a_clock_that_is_set_back_does_not_keep_a_job_waiting(queue, clock):
    job = add(queue)
    queue.take("note")
    queue.postpone(job.id, Unavailable("not now"), 1)
    clock.pass_s(-86_400)
    assert queue.due_in("note") == 0.0
    assert queue.take("note").id == job.id


def test_progress_is_told_while_a_job_runs(queue):
    job = add(queue)
    queue.take("note")
    queue.report(job.id, 3, 4, "embedding")
    assert (queue.job(job.id).progress, queue.job(job.id).stage) == (0.75, "embedding")
    queue.report(job.id, 7, 0, "reading")
    assert (queue.job(job.id).progress, queue.job(job.id).stage) == (0.0, "reading")
    queue.finish(job.id, "d")
    assert (queue.job(job.id).progress, queue.job(job.id).stage) == (1.0, "")


def test_a_failed_job_is_tried_again_by_hand_and_a_waiting_one_cancelled(queue):
    job = add(queue)
    with pytest.raises(Conflict, match="queued"):
        queue.retry(job.id)
    assert queue.cancel(job.id).status == "failed"
    assert "cancelled" in queue.job(job.id).error["message"]
    assert queue.take("note") is None
    again = queue.retry(job.id)
    assert (again.status, again.error, again.tries, again.finished_at) == ("queued", None, 0, None)
    queue.take("note")
    with pytest.raises(Conflict, match="running"):
        queue.cancel(job.id)
    queue.fail(job.id, InvalidArgument("no text"))
    assert (queue.job(job.id).status, queue.job(job.id).error["code"]) == ("failed", "INVALID_ARGUMENT")
    with pytest.raises(NotFound):
        queue.retry("0" * 32)


def test_what_a_handler_remembers_is_known_at_the_next_try(opened):
    queue = opened()
    add(queue)
    job = queue.take("note")
    queue.remember(job, path="Captures/w/Files/a.pdf")
    again = opened().job(job.id)
    assert again.given == {"text": "a note", "path": "Captures/w/Files/a.pdf"}


def test_after_a_crash_what_was_made_is_done_and_the_rest_is_tried_again(opened, clock):
    queue = opened()
    made, lost = add(queue), add(queue)
    assert {queue.take("note").id, queue.take("note").id} == {made.id, lost.id}
    again = opened()
    again.recover(lambda planned: planned == made.planned)
    assert (again.job(made.id).status, again.job(made.id).document_id) == ("done", made.planned)
    assert again.job(lost.id).status == "queued"
    assert again.due_in("note") == backoff(1), "it may be what ended the daemon: others come first"


def test_a_job_at_which_the_daemon_ends_again_and_again_is_given_up(opened, clock):
    job = add(opened())
    for _ in range(TRIES):
        clock.pass_s(BACKOFF_S[1])
        queue = opened()
        assert queue.take("note").id == job.id
        opened().recover(lambda _: False)
    ended = opened().job(job.id)
    assert (ended.status, ended.error["code"], ended.error["retryable"]) == ("failed", "UNAVAILABLE", False)
    assert "10 times" in ended.error["message"]


def test_a_job_that_was_broken_off_was_not_tried(queue):
    job = add(queue)
    queue.take("note")
    queue.requeue(job.id)
    assert (queue.job(job.id).status, queue.job(job.id).tries) == ("queued", 0)


def test_the_newest_jobs_come_first_page_by_page(queue):
    jobs = [add(queue, text=f"note {number}") for number in range(5)]
    add(queue, "other")
    page = queue.jobs(key="k", workspace="w", limit=2)
    rest = queue.jobs(key="k", workspace="w", limit=9, before=page[-1].id)
    assert [job.id for job in (*page, *rest)] == [job.id for job in reversed(jobs)]
    queue.take("note")
    assert [job.status for job in queue.jobs(status="running")] == ["running"]
    assert queue.counts() == {"queued": 5, "running": 1, "done": 0, "failed": 0}
    assert queue.counts("elsewhere")["queued"] == 0


def test_jobs_are_forgotten_some_time_after_they_have_ended(queue, clock, tmp_path):
    old, waiting = queue.add_file("k", "w", {"name": "a"}, dropped(tmp_path / "in" / "a")), add(queue)
    queue.take("file")
    queue.fail(old.id, InvalidArgument("unreadable"))
    assert queue.staged.find(old.id), "for whoever tries again"
    clock.pass_s(100)
    young = add(queue, "young")
    while job := queue.take("note"):
        if job.id == young.id:
            queue.finish(job.id, "d")
    assert queue.prune(clock() - 50_000) == 1
    assert {job.id for job in queue.jobs()} == {waiting.id, young.id}
    assert queue.staged.find(old.id) is None


def test_a_job_that_is_retried_while_old_ones_are_removed_keeps_its_file(queue, clock, tmp_path, monkeypatch):
    job = queue.add_file("k", "w", {"name": "a"}, dropped(tmp_path / "in" / "a"))
    queue.take("file")
    queue.fail(job.id, InvalidArgument("unreadable"))
    clock.pass_s(100)
    transaction = queue._ledger.transaction

    def retry_first():
        monkeypatch.undo()
        queue.retry(job.id)
        return transaction()

    monkeypatch.setattr(queue._ledger, "transaction", retry_first)
    assert queue.prune(clock() - 50_000) == 0
    assert queue.job(job.id).status == "queued"
    assert queue.staged.find(job.id)


def test_failed_files_of_a_key_take_no_more_than_its_share(opened, tmp_path):
    queue = opened(staged=10)

    def failed(name, key="k"):
        job = queue.add_file(key, "w", {"name": name, "size": 4}, dropped(tmp_path / "in" / name))
        queue.begin(job.id)
        queue.fail(job.id, InvalidArgument("unreadable"))
        return job.id

    owners, others = [failed(f"{n}.own", "") for n in range(4)], failed("x", "other")
    ids = [failed(f"{n}.pdf") for n in range(5)]
    kept = [bool(queue.staged.find(id)) for id in ids]
    assert kept == [False, False, False, True, True]
    assert all(map(queue.staged.find, [*owners, others]))
    again = queue.add_file("k", "w", {"name": "new", "size": 4}, dropped(tmp_path / "in" / "new"))
    queue.cancel(again.id)
    assert [bool(queue.staged.find(id)) for id in (*ids[3:], again.id)] == [False, True, True]
    queue.retry(ids[0])
    assert queue.pending_size("k", "file") == (1, 0)


def test_staged_files_that_no_job_needs_are_swept_once_they_are_old(queue, tmp_path):
    needed = queue.add_file("k", "w", {"name": "a"}, dropped(tmp_path / "in" / "a"))
    stray = dropped(queue.staged.folder / ("0" * 32))
    assert queue.sweep(older_s=3600) == []
    assert queue.sweep(older_s=-1) == [stray.name]
    assert queue.staged.find(needed.id)
    assert not stray.exists()


def test_who_waits_hears_of_each_change(queue):
    stamp = queue.stamp
    woken = threading.Event()
    thread = threading.Thread(target=lambda: (queue.wait(stamp, 30), woken.set()))
    thread.start()
    add(queue)
    assert woken.wait(60)
    thread.join()


def test_of_the_jobs_that_ended_the_old_ones_and_all_but_the_latest_of_a_key_are_forgotten(queue, clock, tmp_path):
    def ended(key, name):
        job = queue.add_file(key, "w", {"name": name, "size": 4}, dropped(tmp_path / "in" / name))
        queue.begin(job.id)
        queue.fail(job.id, InvalidArgument("it can't be read"))
        return job.id

    first = ended("k", "first")
    clock.pass_s(100)
    mine, theirs = [ended("k", f"{n}") for n in range(4)], ended("l", "theirs")
    waits = add(queue).id
    assert queue.prune(clock.ms - 50_000) == 1
    assert [job.id for job in queue.jobs()] == [waits, theirs, *reversed(mine)]
    assert queue.staged.find(first) is None
    assert queue.prune(0, most=2) == 2
    assert [job.id for job in queue.jobs()] == [waits, theirs, *reversed(mine[2:])]
    assert [queue.staged.find(id) is None for id in (*mine, theirs)] == [True, True, False, False, False]
