"""What commits cost: a flush of ten captures into a vault of 10,000 notes, and what it does to the notes' owner."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from syncd.commits.committer import Committer
from syncd.git.repository import Repository
from syncd.history.audit_log import AuditLog, Author, acting_as
from syncd.history.audited_vault import AuditedVault
from syncd.settings.automation import GitSettings
from syncd.state.ledger import Ledger
from tests.bench.record import Row

NOTES, CAPTURES, ROUNDS = 10_000, 10, 15
NOTE = "---\nid: note-{n}\ncreated_at: 2026-11-20T14:32:05.120Z\nsource: bench\n---\n" + "words of the note " * 120


def git(work: Path) -> Iterator[Row]:
    """The rows; a person's own `git add` and `git commit` of as much, beside it."""
    folder = work / "git"
    shutil.rmtree(folder, ignore_errors=True)
    vault, state = folder / "vault", folder / "state"
    (vault / "Captures/default").mkdir(parents=True)
    state.mkdir(mode=0o700)
    for n in range(NOTES):
        (vault / f"Notes/{n // 200}").mkdir(parents=True, exist_ok=True)
        (vault / f"Notes/{n // 200}/{n}.md").write_text(NOTE.format(n=n))
    asked("init", "-q", "-b", "main", at=vault)
    asked("add", "-A", at=vault)
    asked("commit", "-qm", "begin", at=vault)
    ledger = Ledger.open(state / "ledger.db")
    audit, repo = AuditLog(ledger, state), Repository(vault)
    files = AuditedVault(vault, audit, inbox="Captures")
    commits = Committer(repo, files, audit, ledger, GitSettings(quiet_s=0, every_s=0), state=state, inbox="Captures")
    ours, theirs, idle = [], [], []
    for turn in range(ROUNDS):
        with acting_as(Author("mcp", "capture_thought", "k1", "bench")):
            for n in range(CAPTURES):
                files.create(f"Captures/default/{turn} {n}.md", NOTE.format(n=f"{turn}-{n}").encode())
        ours.append(timed(commits.flush))
        idle.append(timed(commits.tick))
        for n in range(CAPTURES):
            (vault / f"Notes/{turn} {n}.md").write_text(NOTE.format(n=f"p{turn}-{n}"))
        theirs.append(timed(lambda: (asked("add", "-A", at=vault), asked("commit", "-qm", "mine", at=vault))))
    assert commits.made == ROUNDS
    for closing in (files, audit, ledger):
        closing.close()
    flush, own = median(ours) * 1000, median(theirs) * 1000
    yield Row(
        f"flush of {CAPTURES} captures at {NOTES:,} notes, p50",
        "≤ 1,000 ms",
        f"{flush:.0f} ms",
        flush <= 1000,
        f"git add -A and git commit: {own:.0f} ms; a look with nothing to do: {median(idle) * 1e6:.0f} µs",
        {"p50": flush / own},
        "git add and git commit of as much",
    )


def asked(*words: str, at: Path) -> None:
    """Run Git as the notes' owner."""
    who = ("-c", "user.name=Bench", "-c", "user.email=b@example.org")
    subprocess.run(["git", "-C", str(at), *who, *words], check=True, capture_output=True)


def timed(work: Callable[[], object]) -> float:
    """How long it takes, in seconds."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
