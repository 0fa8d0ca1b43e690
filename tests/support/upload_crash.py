"""A process that uploads and crashes at a call that changes the disk; run as `python -m tests.support.upload_crash STATE N`."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from itertools import count
from pathlib import Path

from index.timings import now_ms
from syncd.jobs.queue import Queue
from syncd.settings.knowledge_base import KbSettings
from syncd.state.ledger import Ledger
from syncd.uploads.upload_sessions import Uploads

PARTS = [bytes(random.Random(n).choices(b"abc \n", k=size)) for n, size in enumerate((3_000, 1, 5_000))]
WHOLE = b"".join(PARTS)
# What Python's audit hooks are told before it is done; what is written or synced between two of these changes no name.
CHANGING = frozenset(
    ["open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.utime", "os.scandir", "os.listdir", "shutil.rmtree"]
)


def opened(state: Path) -> tuple[Ledger, Queue, Uploads]:
    """Open the uploads of a state folder."""
    ledger = Ledger.open(state / "ledger.db")
    settings = KbSettings(free=0)
    queue = Queue(ledger, state, settings)
    return ledger, queue, Uploads(state, queue, settings, vault=state, now=now_ms)


def uploading(state: Path, at: int) -> None:
    """Die at the `at`-th call; stdout has one line for each acknowledgment before it."""
    calls = count(1)

    def die(event: str, args: tuple[object, ...]) -> None:
        if event in CHANGING and str(state) in str(args[0] if args else "") and next(calls) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    def told(line: str) -> None:
        os.write(1, line.encode() + b"\n")

    _, _, uploads = opened(state)
    sys.addaudithook(die)
    id = uploads.start("k1", "default", filename="a.md", total_size=len(WHOLE)).upload_id
    told(id)
    for index in (2, 0, 1):
        uploads.put_chunk("k1", "default", id, index, b"?")  # sent again, rightly
        uploads.put_chunk("k1", "default", id, index, PARTS[index])
        told(f"chunk {index}")
    told(uploads.finish("k1", "default", id).id)
    with uploads.receive("k1", "default") as arrival:
        arrival.write(WHOLE)
        told(arrival.queue(filename="b.md").id)
    uploads.remove_stale(2 * int(time.time() * 1000))
    told("end")


if __name__ == "__main__":
    uploading(Path(sys.argv[1]), int(sys.argv[2]))
