"""Compute the daemon's metrics from its opened parts: numbers, never text of a note.

Law: counts of notes outside the inbox are for the owner only; the caller must be allowed to see them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from index import timings
from index.encoders.embedder import Embedder
from index.timings import Stopwatch, now_ms
from syncd.commits.committer import Committer
from syncd.daemon.health import Health
from syncd.sync.pipeline import Sync
from syncd.telemetry.metric_samples import HistogramSample, Sample

ENCODER: Final = ("loading", "ready", "broken")
WATCH: Final = ("ok", "degraded", "poll", "off")


def collect_samples(
    health: Health, sync: Sync, embedder: Embedder, commits: Committer
) -> list[Sample | HistogramSample]:
    """Return all samples."""
    state = health.status(None)
    numbers = [
        Sample("memex_ready", "Whether the vault has been indexed once.", float(state["ready"])),
        Sample("memex_pending_paths", "Changed notes that are not indexed yet.", state["pending"]),
        Sample("memex_index_generation", "Grows with each indexed change.", state["generation"]),
        Sample("memex_defects", "Notes that need attention.", len({defect["path"] for defect in state["defects"]})),
        Sample("memex_degraded_parts", "Degraded parts.", len(state["degraded"])),
        Sample("memex_removals_held", "Notes of a mass removal that stay in the index for now.", len(sync.held_paths)),
    ]
    numbers += [
        Sample(f"memex_{what}", f"Indexed {what}.", state[scope][what], labels={"scope": scope})
        for what in ("documents", "chunks")
        for scope in ("captures", "vault")
    ]
    numbers += _commit_samples(commits)
    numbers += _encoder_samples(embedder)
    numbers += _sync_samples(sync)
    background, now = health.background(), now_ms()
    return [
        *numbers,
        *_timing_samples(),
        *_job_samples(background["jobs"]),
        *_queue_samples(background["queue"], now),
        *_watch_samples(background["watch"]),
    ]


def _commit_samples(commits: Committer) -> Iterator[Sample]:
    facts = commits.facts()
    yield Sample("memex_commits", "Commits made by Memex.", commits.made, "counter")
    yield Sample("memex_commit_waiting_files", "Files that wait to be committed.", facts["waiting"])
    yield Sample("memex_commit_kept_files", "Files written by Memex that are kept out of Git.", len(facts["kept"]))


def _encoder_samples(embedder: Embedder) -> Iterator[Sample]:
    for state in ENCODER:
        yield Sample("memex_encoder", "State of the encoder.", embedder.state == state, labels={"state": state})
    yield Sample("memex_encoder_queue_texts", "Texts waiting for the encoder.", embedder.queued)


def _timing_samples() -> Iterator[Sample | HistogramSample]:
    timed: list[tuple[str, str, Mapping[str, str], Stopwatch]] = [
        ("enrichment", "Finding a summary and tags", {}, timings.ENRICHMENT),
        *(("embedding", "Encoding texts", {"kind": kind}, timing) for kind, timing in timings.EMBEDDING.items()),
        *(
            ("store", "Searches and writes of the store", {"operation": operation}, timing)
            for operation, timing in timings.STORE.items()
        ),
    ]
    for what, means, labels, timing in timed:
        counts = timing.counts()
        buckets = dict(zip((*timings.BOUNDS, math.inf), counts.at_most, strict=True))
        yield HistogramSample(f"memex_{what}_seconds", f"{means}: duration.", buckets, counts.seconds, labels)
        for cause, count in counts.failures.items():
            failed = f"{means}: failures by cause."
            yield Sample(f"memex_{what}_failures", failed, count, "counter", {**labels, "cause": cause})


def _sync_samples(sync: Sync) -> Iterator[Sample]:
    means = "Index passes over changed notes, by outcome."
    for outcome, count in sync.passes.items():
        yield Sample("memex_sync_passes", means, count, "counter", {"outcome": outcome})


def _job_samples(jobs: Mapping[str, Mapping[str, Any]]) -> Iterator[Sample]:
    for name, job in jobs.items():
        labels = {"job": name}
        yield Sample("memex_job_runs", "Runs of a job.", job["runs"], "counter", labels)
        yield Sample("memex_job_failures", "Runs of a job that failed.", job["failures"], "counter", labels)
        yield Sample("memex_job_running", "Whether the job is running.", job["running"], labels=labels)
        yield Sample("memex_job_ok", "Whether the last run of the job succeeded.", not job["error"], labels=labels)
        if job["seconds"] is not None:
            means = "Duration of the current or last run."
            yield Sample("memex_job_duration_seconds", means, job["seconds"], labels=labels)
            if not job["running"] and not job["error"]:
                ended = job["started_at"] / 1000 + job["seconds"]
                yield Sample(
                    "memex_job_last_success_timestamp_seconds", "Time of the last success.", ended, labels=labels
                )
        if job["next_run_at"] is not None:
            due = job["next_run_at"] / 1000
            yield Sample("memex_job_next_run_timestamp_seconds", "Time of the next run.", due, labels=labels)


def _queue_samples(queue: Mapping[str, Any], now: int) -> Iterator[Sample]:
    for status, count in queue["jobs"].items():
        yield Sample("memex_queue_jobs", "Jobs of the queue.", count, labels={"status": status})
    since = queue["due_since"]
    late = 0.0 if since is None else max(0.0, (now - since) / 1000)
    yield Sample("memex_queue_waiting_seconds", "Time for which the longest waiting job has been due.", late)
    for outcome, count in queue["tries"].items():
        means = "Tries of queue jobs, by outcome."
        yield Sample("memex_queue_tries", means, count, "counter", {"outcome": outcome})


def _watch_samples(watch: Mapping[str, Any]) -> Iterator[Sample]:
    state = watch["state"] if watch["state"] in WATCH else "degraded"
    for name in WATCH:
        yield Sample("memex_watch", "State of the watcher.", state == name, labels={"state": name})
    yield Sample("memex_watch_folders", "Watched folders.", watch["folders"])
    for what, means in (
        ("overflows", "Number of times that events were lost."),
        ("restarts", "Number of restarts of the watcher."),
    ):
        yield Sample(f"memex_watch_{what}", means, watch[what], "counter")
