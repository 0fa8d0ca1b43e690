"""syncd/page/views/jobs.py: how jobs are described, and what a message says of files."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from index.errors import InvalidArgument
from syncd.page.views.jobs import (
    cancel_job,
    describe_files,
    describe_queued,
    describe_scheduled,
    format_interval,
    format_schedule,
    retry_job,
)
from syncd.page.web.file_form import SentFile

NOW = 1_000_000


def queued(**more):
    return {
        "id": "a1", "kind": "file", "status": "queued", "stage": "", "progress": 0.0, "workspace": "default", "by": "",
        "title": "tide.csv", "document_id": None, "due_at": NOW, "created_at": 5, "error": None,
    } | more  # fmt: skip


def scheduled(name, **more):
    return {
        "name": name, "title": name, "every_s": 60.0, "cron": "", "running": False, "too_long": False, "started_at": 5,
        "seconds": 0.2, "next_run_at": 9, "error": "",
    } | more  # fmt: skip


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, ("waiting", None, "you", "")),
        ({"status": "running", "stage": "reading", "progress": 0.426, "by": "codex"}, ("reading", 43, "codex", "")),
        ({"status": "done", "document_id": "d1"}, ("done", None, "you", "")),
        ({"status": "failed", "error": {"message": "damaged"}}, ("failed", None, "you", "damaged")),
        ({"due_at": NOW + 1, "error": {"message": "full"}}, ("tries again later", None, "you", "full")),
    ],
)
def test_a_job_of_the_queue_is_described(more, expected):
    job = describe_queued(queued(**more), NOW)
    assert (job["state"], job["percent"], job["by"], job["error"]) == expected


def test_scheduled_jobs_are_sorted_failed_ones_first():
    rows = describe_scheduled(
        [
            scheduled("b", running=True),
            scheduled("a"),
            scheduled("d", error="no disk", cron="0 3 * * *"),
            scheduled("c", started_at=None, seconds=None),
            scheduled("e", running=True, too_long=True),
        ]
    )
    assert [(row["title"], row["state"], row["every"]) for row in rows] == [
        ("d", "failed", "every day at 03:00"),
        ("a", "done", "every minute"),
        ("b", "running", "every minute"),
        ("c", "", "every minute"),
        ("e", "running too long", "every minute"),
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (3.0, "every 3 s"),
        (0.5, "every 0.5 s"),
        (90.0, "every 90 s"),
        (300.0, "every 5 min"),
        (3600.0, "every hour"),
        (86_400.0, "every day"),
        (172_800.0, "every 2 days"),
    ],
)
def test_an_interval_has_its_largest_whole_unit(seconds, text):
    assert format_interval(seconds) == text


@pytest.mark.parametrize(
    ("cron", "text"),
    [
        ("0 3 * * *", "every day at 03:00"),
        ("5 14 * * *", "every day at 14:05"),
        ("*/5 * * * *", "*/5 * * * *"),
        ("0 3 * * 1", "0 3 * * 1"),
    ],
)
def test_a_daily_schedule_is_a_time_of_day(cron, text):
    assert format_schedule(cron) == text


def sent(name, **result):
    return SentFile(name, result)


def refused(name):
    return SentFile(name, error=InvalidArgument("it is empty"))


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ([], "No file was chosen."),
        ([sent("a", status="queued")], "1 file is queued."),
        (
            [
                sent("a", status="queued"),
                sent("b", status="queued"),
                refused("c"),
                sent("d", status="same", path="D.md"),
            ],
            "2 files are queued. `c` was not added: it is empty. `d` is already there as `D.md`.",
        ),
        (
            [refused(str(number)) for number in range(7)],
            ". ".join(f"`{number}` was not added: it is empty" for number in range(5)) + ". And 2 more.",
        ),
    ],
)
def test_what_became_of_files_is_one_message(files, text):
    assert describe_files(files) == text


@pytest.mark.parametrize("decide", [retry_job, cancel_job])
def test_a_decision_leads_back_to_its_part_of_the_queue(decide):
    fields = {"id": "j", "status": "failed", "before": "b1"}
    visit = SimpleNamespace(
        field=fields.get, ask=lambda _, **more: {"title": more["id"]}, redirect=lambda path, _message: path
    )
    assert decide(visit) == "/jobs?status=failed&before=b1#queue"
