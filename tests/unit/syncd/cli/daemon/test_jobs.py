"""The command `memex job` on a real vault, in this process: through the control socket and without a daemon."""

from __future__ import annotations

import json
from datetime import UTC

import click
import pytest

from index.errors import InvalidArgument
from syncd.cli.daemon.jobs import format_duration, format_job, jobs_table, queue_table, runs_table
from syncd.cli.framework.completion import jobs as names
from syncd.cli.main import run_command
from syncd.daemon import open_parts
from syncd.daemon.control_socket import ControlServer
from syncd.history.audit_log import Author, acting_as
from syncd.telemetry.metric_samples import Sample
from tests.support.fakes import fake_embedder
from tests.support.world import World, answering, until

JOB = {
    "id": "4f0e9d0a11223344556677889900aabb",
    "kind": "file",
    "status": "queued",
    "stage": "",
    "progress": 0.0,
    "workspace": "work",
    "key": "k",
    "by": "claude",
    "title": "report.pdf",
    "document_id": None,
    "error": None,
    "tries": 0,
    "due_at": 1_800_000_000_000,
    "created_at": 1_800_000_000_000,
    "started_at": None,
    "finished_at": None,
}
NOW = 1_800_000_090_000
FAILED = {"status": "failed", "error": {"code": "INVALID_ARGUMENT", "message": "the PDF\x1b[31m is locked"}}


@pytest.fixture
def world(tmp_path):
    with answering(World(tmp_path)) as one:
        yield one


@pytest.fixture
def memex(world, capsys):
    """What a command prints, and its exit code."""

    def run(*words):
        done = run_command([*words, "--vault", str(world.vault), "--state", str(world.state)])
        said = capsys.readouterr()
        return done, said.out, said.err

    return run


def add(world, text="a note of the whimbrel", **more):
    with acting_as(Author("mcp", "kb_addnote", "k1", "claude")):
        return world.app.agent_access.workspace("default").add_note(text, key="k1", **more)


def test_what_was_queued_is_listed_and_shown_by_the_beginning_of_its_id(world, memex):
    job = add(world)
    done, out, _ = memex("job", "queue")
    assert done == 0
    assert job.id[:12] in out
    assert "claude" in out
    assert out.splitlines()[-1] == "1 queued"
    assert job.id in memex("job", "show", job.id[:6])[1]
    told = json.loads(memex("job", "queue", "--json", "--status", "queued")[1])
    assert [one["id"] for one in told["jobs"]] == [job.id]
    assert "text" not in json.dumps(told), "what is to become a note is no part of the list"
    assert memex("job", "queue", "--status", "failed")[1].splitlines() == ["1 queued"]


def test_jobs_are_done_where_they_are_waited_for(world, memex):
    jobs = [add(world, "one"), add(world, "two")]
    done, out, _ = memex("job", "wait", *(job.id for job in jobs))
    assert done == 0
    assert [line.split()[-1] for line in out.splitlines()] == [job.planned for job in jobs]


def test_a_running_daemon_is_waited_for(world, memex):
    with world.serving():
        job = add(world)
        done, out, _ = memex("job", "wait", job.id, "--json")
    assert done == 0
    (ended,) = json.loads(out)["jobs"]
    assert (ended["status"], ended["document_id"]) == ("done", job.planned)


def test_a_job_that_failed_gives_its_exit_code_and_is_tried_again(world, memex):
    broken = [True]
    real = world.app.worker._handlers["note"][0]

    def handler(work):
        if broken[0]:
            raise InvalidArgument("it can't be read")
        return real(work)

    world.app.worker.register("note", handler)
    job = add(world)
    done, _, err = memex("job", "wait", job.id)
    assert (done, "it can't be read" in err) == (2, True)
    other = add(world, "another")
    done, _, err = memex("job", "wait", job.id, other.id)
    assert (done, "2 of 2 jobs failed" in err) == (7, True)
    broken[0] = False
    done, out, _ = memex("job", "retry", job.id)
    assert (done, out.split()[-1]) == (0, job.planned)
    assert memex("job", "retry", job.id)[0] == 5


def test_a_waiting_job_is_cancelled(world, memex):
    job = add(world)
    assert memex("job", "cancel", job.id)[0] == 0
    assert world.app.opened.queue.job(job.id).status == "failed"
    assert memex("job", "cancel", job.id)[0] == 5


@pytest.mark.parametrize(
    ("words", "exits"),
    [
        (("show", "0" * 32), 4),
        (("show", "zz"), 4),
        (("show", "0123%"), 4),
        (("wait", "f" * 32), 4),
        (("queue", "--status", "lost"), 2),
    ],
)
def test_what_is_not_there_is_said(memex, words, exits):
    assert memex("job", *words)[0] == exits


def test_an_id_that_two_jobs_begin_with_is_asked_for_in_full(world, memex):
    for number in range(2):
        world.app.opened.queue.add_file("k", "default", {"name": "a"}, None, id=f"abcd{number:028x}")
    done, _, err = memex("job", "show", "abcd")
    assert (done, "several job ids" in err) == (2, True)


def test_without_a_daemon_a_command_does_the_job_in_its_own_process(tmp_path, monkeypatch, capsys):
    world = World(tmp_path)
    job = add(world)
    world.close()
    monkeypatch.setattr(open_parts, "_make_embedder", lambda *_, **__: fake_embedder())
    assert run_command(["job", "wait", job.id, "--vault", str(world.vault), "--state", str(world.state)]) == 0
    assert capsys.readouterr().out.split()[-1] == job.planned
    world.app = world._open()
    try:
        assert world.app.opened.queue.job(job.id).status == "done"
        assert len(world.found("whimbrel")) == 1
    finally:
        world.close()


def _numbers(world):
    samples = (one for one in world.app.agent_access.samples() if isinstance(one, Sample))
    return {(one.name, *one.labels.values()): one.value for one in samples}


def test_the_status_and_the_metrics_tell_of_the_queue(world, memex):
    job = add(world)
    done, out, _ = memex("status", "--json", "--all")
    told = json.loads(out)["queue"]
    assert (done, told["jobs"]["queued"], told["hindrance"]) == (0, 1, "")
    assert "queue      1 queued" in memex("status")[1]
    found = _numbers(world)
    assert found["memex_queue_jobs", "queued"] == 1
    assert 0 <= found[("memex_queue_waiting_seconds",)] < 300
    with world.serving():
        until(lambda: world.app.opened.queue.job(job.id).status == "done")
        found = _numbers(world)
    assert found["memex_queue_jobs", "done"] == found["memex_queue_tries", "done"] == 1
    assert found["memex_queue_tries", "put off"] == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "4f0e9d0a1122  file  queued  work  claude  1.5 min  report.pdf"),
        ({"status": "running", "progress": 0.5, "stage": "reading", "by": ""}, "4f0e9d0a1122  file  50% reading  work  you  1.5 min  report.pdf"),
        ({"due_at": NOW + 4000}, "4f0e9d0a1122  file  again in 4 s  work  claude  1.5 min  report.pdf"),
        ({"status": "running"}, "4f0e9d0a1122  file  running  work  claude  1.5 min  report.pdf"),
    ],
)  # fmt: skip
def test_a_job_is_one_line(change, words):
    found = {"jobs": [JOB | change], "counts": {"queued": 1_200, "failed": 0}}
    lines = queue_table(found, NOW, color=False).splitlines()
    assert lines[1].split() == words.split()
    assert lines[-1] == "1,200 queued"


def test_why_a_job_failed_stands_below_and_steers_no_terminal():
    found = {"jobs": [JOB | FAILED], "counts": {}, "hindrance": "the vault is missing"}
    lines = queue_table(found, NOW, color=False).splitlines()
    assert lines[2:] == [
        "4f0e9d0a1122: the PDF\\u{1b}[31m is locked",
        "the queue is paused: the vault is missing",
        "no jobs are queued",
    ]


def test_a_job_on_a_page():
    shown = format_job(JOB | FAILED | {"tries": 3, "finished_at": NOW}, UTC).splitlines()
    assert shown[0] == f"id        {JOB['id']}"
    assert shown[-2:] == ["tries     3", "error     the PDF\\u{1b}[31m is locked"]
    assert "ended     2027-01-15 08:01" in shown


SCHEDULED = {
    "name": "listing",
    "every_s": 600.0,
    "running": False,
    "started_at": 1_800_000_000_000,
    "seconds": 1.25,
    "error": "",
    "runs": 3,
    "failures": 0,
    "cpu_s": 0.5,
    "next_run_at": 1_800_000_090_000,
    "too_long": False,
}
STARTED = 1_800_000_000_000


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.42, "0.4 s"),
        (12.3, "12 s"),
        (60, "1 min"),
        (90, "1.5 min"),
        (600, "10 min"),
        (86_400, "1 d"),
        (5400, "1.5 h"),
    ],
)
def test_a_length_of_time_is_short_to_read(seconds, text):
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "list-the-vault  10 min  ok  2027-01-15 08:00  1.2 s  in 1.5 min"),
        (
            {"started_at": None, "seconds": None, "next_run_at": None},
            "list-the-vault  10 min         never               when the daemon runs",
        ),
        ({"cron": "0 3 * * *"}, "list-the-vault  0 3 * * *  ok  2027-01-15 08:00  1.2 s  in 1.5 min"),
        ({"running": True}, "list-the-vault  10 min  running  2027-01-15 08:00  1.2 s  in 1.5 min"),
        (
            {"running": True, "too_long": True},
            "list-the-vault  10 min  running too long  2027-01-15 08:00  1.2 s  in 1.5 min",
        ),
    ],
)
def test_a_scheduled_job_is_one_line(change, words):
    _, row = jobs_table([SCHEDULED | change], STARTED, UTC, color=False).splitlines()
    assert row.split() == words.split()


def test_why_a_scheduled_job_failed_stands_below_and_steers_no_terminal():
    lines = jobs_table([SCHEDULED | {"error": "the disk\x1b[31m is full"}], STARTED, UTC, color=False).splitlines()
    assert "failed" in lines[1]
    assert lines[2] == "list-the-vault: the disk\\u{1b}[31m is full"


def test_the_last_runs_of_a_job():
    past = [
        {"started_at": STARTED, "seconds": 2.0, "error": ""},
        {"started_at": STARTED - 600_000, "seconds": 0.5, "error": "no disk"},
    ]
    assert [line.split()[-1] for line in runs_table(past, UTC, color=False).splitlines()] == ["result", "ok", "disk"]
    assert runs_table([], UTC, color=False) == "the job has not run yet"


@pytest.fixture
def door(tmp_path, monkeypatch):
    """A daemon's door with answers written by hand."""
    asked = []

    def run(given, _):
        asked.append(given)
        if given["name"] == "shaky":
            return {"name": "shaky", "ended": True, "started_at": STARTED, "seconds": 1.0, "error": "the disk is full"}
        return {
            "name": given["name"],
            "ended": bool(given["wait"]),
            **({"started_at": STARTED, "seconds": 1.0, "error": ""} if given["wait"] else {}),
        }

    operations = {
        "job.list": lambda *_: [SCHEDULED, SCHEDULED | {"name": "deep check"}],
        "job.history": lambda *_: [{"started_at": STARTED, "seconds": 1.0, "error": ""}],
        "job.run": run,
    }
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    server = ControlServer(state, operations)
    server.start()
    monkeypatch.setenv("MEMEX_STATE", str(state))
    monkeypatch.setenv("MEMEX_VAULT", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    yield asked
    server.stop()


def test_the_commands_and_their_exit_codes(door, capfd):
    assert run_command(["job", "list", "--json"]) == 0
    assert [one["name"] for one in json.loads(capfd.readouterr().out)] == ["listing", "deep check"]
    assert run_command(["job", "list", "listing"]) == 0
    assert "  ok" in capfd.readouterr().out
    assert run_command(["job", "run", "listing"]) == 0
    assert capfd.readouterr().out == "list-the-vault was started\n"
    assert run_command(["job", "run", "listing", "--wait"]) == 0
    assert capfd.readouterr().out == "list-the-vault took 1 s\n"
    assert run_command(["job", "run", "shaky", "--wait"]) == 7
    assert "the disk is full" in capfd.readouterr().err
    assert [given["wait"] for given in door] == [False, True, True]


def test_names_are_completed_as_one_word_while_a_daemon_runs(door):
    context = click.Context(click.Command("run"))
    assert [item.value for item in names(context, context.command, "c")] == ["compare-notes-with-the-index"]
    assert len(names(context, context.command, "")) == 2


def test_nothing_is_completed_without_a_daemon(tmp_path, monkeypatch):
    monkeypatch.setenv("MEMEX_VAULT", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    context = click.Context(click.Command("run"))
    assert names(context, context.command, "") == []
