"""The threads of the queue: what fails fails alone, what may pass is tried again, and a stop loses nothing."""

from __future__ import annotations

import threading

import pytest

from index.errors import Conflict, InvalidArgument, Unavailable
from syncd.history.audit_log import AUTHOR, Author, acting_as
from syncd.jobs import worker as module
from syncd.jobs.queue import TRIES, Queue
from syncd.jobs.worker import LATE_MS, STREAK, Worker
from syncd.settings.knowledge_base import KbSettings
from syncd.state.ledger import Ledger
from tests.support.world import until


@pytest.fixture
def queue(tmp_path, monkeypatch):
    monkeypatch.setattr("syncd.jobs.queue.BACKOFF_S", (0.01, 0.02))
    monkeypatch.setattr(module, "LOOK_S", 0.02)
    tmp_path.chmod(0o700)
    ledger = Ledger.open(tmp_path / "ledger.db")
    yield Queue(ledger, tmp_path, KbSettings())
    ledger.close()


@pytest.fixture
def working(queue):
    """Starts workers, and stops them in the end."""
    started = []

    def start(handler, *, threads=1, hindered=lambda _: ""):
        worker = Worker(queue, hindered)
        worker.register("note", handler, threads=threads)
        worker.start()
        started.append(worker)
        return worker

    yield start
    for worker in started:
        worker.stop()


def add(queue, text="a note", key="k"):
    return queue.add_note(key, "w", {"text": text}, title=text)


def ended(queue, *jobs):
    """These jobs once they have ended."""
    until(lambda: all(queue.job(job.id).status in ("done", "failed") for job in jobs))
    return [queue.job(job.id) for job in jobs]


def test_what_is_added_is_begun_at_once_and_by_whoever_queued_it(queue, working):
    authors = []
    worker = working(lambda work: authors.append(AUTHOR.get()) or work.job.planned)
    with acting_as(Author("mcp", "kb_addnote", "k", "claude", "r")):
        job = add(queue)
    (done,) = ended(queue, job)
    assert (done.status, done.document_id) == ("done", job.planned)
    assert authors == [Author("mcp", "kb_addnote", "k", "claude", "r")]
    assert worker.tries == {"done": 1, "failed": 0, "put off": 0}


@pytest.mark.parametrize(
    ("error", "code"),
    [(InvalidArgument("unreadable"), "INVALID_ARGUMENT"), (ZeroDivisionError("secret words"), "UNAVAILABLE")],
    ids=["its own fault", "a bug"],
)
def test_a_poisoned_job_fails_alone(queue, working, error, code):
    def handler(work):
        if work.job.given["text"] == "poison":
            raise error
        return work.job.planned

    jobs = [add(queue, "well"), add(queue, "poison"), add(queue, "well")]
    working(handler)
    done = ended(queue, *jobs)
    assert [job.status for job in done] == ["done", "failed", "done"]
    assert (done[1].error["code"], done[1].error["retryable"], done[1].tries) == (code, False, 1)
    assert "secret" not in done[1].error["message"]


def test_a_job_that_hangs_holds_up_only_its_own_thread(queue, working):
    go = threading.Event()

    def handler(work):
        if work.job.given["text"] == "slow":
            assert go.wait(30)
        return work.job.planned

    slow, quick = add(queue, "slow"), add(queue, "quick")
    working(handler, threads=2)
    ended(queue, quick)
    assert queue.job(slow.id).status == "running"
    go.set()
    ended(queue, slow)


@pytest.mark.parametrize(
    "error", [Unavailable("not now"), Conflict("still edited", retryable=True)], ids=lambda e: e.code
)
def test_what_may_pass_is_tried_again_until_it_does(queue, working, error):
    def handler(work):
        if work.job.tries < 4:
            raise error
        return work.job.planned

    job = add(queue)
    worker = working(handler)
    (done,) = ended(queue, job)
    assert (done.status, done.tries, done.error) == ("done", 4, None)
    assert worker.tries["put off"] == 3


def test_what_does_not_pass_is_given_up_in_the_end_and_told(queue, working):
    def handler(work):
        raise Unavailable("the disk is full")

    job = add(queue)
    worker = working(handler)
    (failed,) = ended(queue, job)
    assert (failed.status, failed.tries, failed.error["message"]) == ("failed", TRIES, "the disk is full")
    (told,) = worker.troubles(failed.finished_at)
    assert told == "queue: several jobs in a row have failed; memex job queue shows the reasons"
    assert TRIES >= STREAK


def test_files_that_are_themselves_at_fault_are_no_trouble(queue, working):
    def handler(work):
        raise InvalidArgument("unreadable")

    worker = working(handler)
    jobs = ended(queue, *(add(queue) for _ in range(STREAK + 1)))
    assert worker.troubles(jobs[-1].finished_at) == []


def test_nothing_is_tried_while_nothing_could_succeed(queue, working):
    why = ["the vault is missing"]
    tried = []
    worker = working(lambda work: tried.append(work) or work.job.planned, hindered=lambda _: why[0])
    job = add(queue)
    until(lambda: worker.hindrance)
    assert (tried, queue.job(job.id).tries) == ([], 0)
    why[0] = ""
    (done,) = ended(queue, job)
    assert done.tries == 1
    assert worker.hindrance == ""


def test_a_stop_waits_for_the_job_under_way(queue, working):
    begun, go = threading.Event(), threading.Event()

    def handler(work):
        begun.set()
        assert go.wait(30)
        return work.job.planned

    worker = working(handler)
    first, second = add(queue), add(queue)
    assert begun.wait(30)
    stopping = threading.Thread(target=worker.stop)
    stopping.start()
    until(worker.stopping.is_set)
    go.set()
    stopping.join()
    assert [queue.job(job.id).status for job in (first, second)] == ["done", "queued"]


def test_a_job_that_a_stop_breaks_off_is_queued_again_and_was_no_try(queue, working):
    def handler(work):
        assert work.stopping.wait(30)
        raise Unavailable("the daemon is stopping")

    worker = working(handler)
    job = add(queue)
    until(lambda: queue.job(job.id).status == "running")
    assert worker.stop() == 0
    assert (queue.job(job.id).status, queue.job(job.id).tries) == ("queued", 0)


def test_a_job_that_does_not_heed_a_stop_is_queued_again_and_told(queue, working):
    go = threading.Event()

    def handler(work):
        assert go.wait(30)
        return work.job.planned

    worker = working(handler)
    job = add(queue)
    until(lambda: queue.job(job.id).status == "running")
    assert worker.stop(grace_s=0.05) == 1
    assert queue.job(job.id).status == "queued"
    go.set()


def test_jobs_are_done_where_they_are_waited_for_when_no_daemon_runs(queue):
    worker = Worker(queue)
    seen = []

    def handler(work):
        work.progress(1, 2, "embedding")
        return work.job.planned

    worker.register("note", handler)
    jobs = [add(queue), add(queue)]
    other = add(queue)
    worker.drain([job.id for job in jobs], seen.append)
    assert [queue.job(job.id).status for job in (*jobs, other)] == ["done", "done", "queued"]
    assert {"done": 1, "total": 2, "stage": "embedding"} in seen
    assert seen[-1]["done"] == 2


def test_jobs_stay_queued_when_they_can_t_be_done_where_they_are_waited_for(queue):
    worker = Worker(queue, lambda _: "the encoder is broken")
    worker.register("note", lambda work: work.job.planned)
    job = add(queue)
    with pytest.raises(Unavailable, match="the encoder is broken; the jobs stay queued"):
        worker.drain([job.id], lambda _: None)
    assert queue.job(job.id).status == "queued"


def test_a_clock_that_was_set_back_delays_no_job_that_is_waited_for(queue):
    worker = Worker(queue)
    worker.register("note", lambda work: work.job.planned)
    job = add(queue)
    year_ms = 365 * 24 * 3600 * 1000
    assert queue._update(job.id, "queued", due_at=job.due_at + year_ms)
    ending = threading.Timer(20, worker.stopping.set)
    ending.start()
    worker.drain([job.id], lambda _: None)
    ending.cancel()
    assert not worker.stopping.is_set()
    assert queue.job(job.id).status == "done"


def test_a_job_that_its_owner_breaks_off_is_queued_again(queue):
    def handler(work):
        raise KeyboardInterrupt

    worker = Worker(queue)
    worker.register("note", handler)
    job = add(queue)
    with pytest.raises(KeyboardInterrupt):
        worker.drain([job.id], lambda _: None)
    assert (queue.job(job.id).status, queue.job(job.id).tries) == ("queued", 0)


def test_jobs_that_wait_or_run_for_long_are_told_of(queue, working):
    go = threading.Event()
    worker = working(lambda work: go.wait(30) and work.job.planned)
    jobs = [add(queue), add(queue)]
    until(lambda: queue.job(jobs[0].id).status == "running")
    until(lambda: not worker.troubles(jobs[1].created_at))
    until(lambda: len(worker.troubles(jobs[1].created_at + 2 * LATE_MS)) > 1)
    told = worker.troubles(jobs[1].created_at + 2 * LATE_MS)
    go.set()
    assert [text.partition(" for ")[0] for text in told] == [
        "queue: a job has been waiting",
        "queue: a job has been running",
    ]


def test_how_a_job_went_is_written_down_once_the_ledger_can_be_written(queue, working, monkeypatch):
    failing = [3]
    real = queue.finish

    def done(*given):
        if failing[0]:
            failing[0] -= 1
            raise Unavailable("the ledger could not be written")
        real(*given)

    monkeypatch.setattr(queue, "finish", done)
    made = []
    working(lambda work: made.append(work.job.id) or work.job.planned)
    (job,) = ended(queue, add(queue))
    assert (job.status, failing[0], len(made)) == ("done", 0, 1)
