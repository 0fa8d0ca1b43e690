"""kill -9 at every step of storing a file: the next run of the job makes the one document, of the one file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from index.model import Query
from syncd.files.file_note_writer import FileOrder
from tests.support.disk_faults import Fault
from tests.support.file_world import Filing
from tests.support.paths import ROOT

JOB, PLANNED = "ab" * 16, "11111111-2222-4333-8444-555555555555"
DATA = b"%PDF-The walrus sleeps. " + b"x" * 3_000_000
# Where the process ends, and at which call of it: each is the last thing that was done, or the next that would have been.
STEPS = [("write", n) for n in range(1, 5)] + [("fsync", n) for n in range(1, 6)] + [("rename", n) for n in (1, 2)]
STEPS += [("mkdir", 1), ("fchmod", 1), ("fchmod", 2), ("reading", 1), ("handled", 1), ("handled", 2), ("commit", 1)]


def order(filing: Filing, name: str, path: str | None) -> FileOrder:
    staged = filing.staged / JOB
    given: dict[str, Any] = {"name": name, **({"path": path} if path else {})}
    return FileOrder(JOB, "default", PLANNED, given, None if path else staged, lambda *_: None, threading.Event())


def child(folder: str, step: str, nth: str, moment: str, name: str, path: str) -> None:
    """Runs the job, and ends there; what is run again is what a restart would find."""
    filing = Filing(Path(folder))

    def die(real: Any, *arguments: Any, **named: Any) -> Any:
        if moment == "after":
            real(*arguments, **named)
        os.kill(os.getpid(), signal.SIGKILL)

    if step == "reading":
        filing.files._convert = filing.inplace._convert = Once(filing.reader, 1, die)
    elif step == "handled":
        filing.handled.put = Once(filing.handled.put, int(nth), die)  # type: ignore[method-assign]
    elif step == "commit":
        index = filing.world.app.opened.builds.scopes["captures"].index
        index.commit = Once(index.commit, int(nth), die)  # type: ignore[method-assign]
    else:
        filing.world.app.opened.vault._calls = Fault(step, int(nth), die).calls
    wish = order(filing, name, path or None)
    made = filing.inplace.import_file(wish) if path else filing.files.import_file(wish)
    os._exit(0 if made == PLANNED else 1)


class Once:
    """A function whose `nth` call goes another way."""

    def __init__(self, real: Any, nth: int, act: Any) -> None:
        self.real, self.nth, self.act, self.seen = real, nth, act, 0

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        self.seen += 1
        return self.act(self.real, *arguments, **named) if self.seen == self.nth else self.real(*arguments, **named)


def kill(folder: Path, step: str, nth: int, moment: str, name: str, path: str = "") -> None:
    """Let a process run the job until it comes to that step."""
    words = [str(folder), step, str(nth), moment, name, path]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, __file__, *words], env=environ, check=False, capture_output=True, timeout=280
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


def checked(filing: Filing, made: str, *, stored: list[str], notes: list[str]) -> None:
    assert made == PLANNED
    assert list(filing.stored()) == stored
    assert all(data == DATA for data in filing.stored().values())
    assert filing.notes() == notes
    assert [hit.record.id for hit in filing.workspace.search(Query("walrus")).hits] == [PLANNED]
    left = [path.name for path in filing.world.vault.rglob(".memex-*")]
    assert left == []
    assert filing.noticed() == []


def upload_killed(folder: Path, step: str, nth: int, moment: str) -> None:
    (folder / "state/staged").mkdir(parents=True)
    (folder / "state").chmod(0o700)
    (folder / "state/staged" / JOB).write_bytes(DATA)
    kill(folder, step, nth, moment, "a.pdf")
    filing = Filing(folder)
    try:
        filing.world.run()
        made = filing.files.import_file(order(filing, "a.pdf", None))
        checked(filing, made, stored=["Captures/default/Files/a.pdf"], notes=["Captures/default/Files/a.pdf.md"])
    finally:
        filing.close()


@pytest.mark.slow
def test_an_upload_that_is_killed_before_its_note_is_indexed_is_gone_on_with(tmp_path):
    upload_killed(tmp_path, "commit", 1, "before")


@pytest.mark.faults
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"{step[0]} {step[1]}")
def test_an_upload_that_is_killed_at_any_step_is_gone_on_with(tmp_path, step, moment):
    upload_killed(tmp_path, *step, moment)


@pytest.mark.faults
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("step", [("write", 1), ("rename", 1), ("reading", 1), ("handled", 1), ("commit", 1)], ids=str)
def test_a_dropped_file_that_is_being_read_is_gone_on_with(tmp_path, step, moment):
    path = "Captures/default/a.pdf"
    (tmp_path / "vault/Captures/default").mkdir(parents=True)
    (tmp_path / "vault" / path).write_bytes(DATA)
    kill(tmp_path, *step, moment, "a.pdf", path)
    filing = Filing(tmp_path)
    try:
        filing.world.run()
        made = filing.inplace.import_file(order(filing, "a.pdf", path))
        checked(filing, made, stored=[path], notes=["Captures/default/Files/a.pdf.md"])
    finally:
        filing.close()


if __name__ == "__main__":
    child(*sys.argv[1:])
