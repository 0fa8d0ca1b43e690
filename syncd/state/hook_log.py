"""Log how the hooks of agent hosts fared: one short line for each start of a session, in a file of the state folder.

Law: the log names no note and no folder. It never grows beyond `LARGEST` bytes, and a failure to write it fails nothing else."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

from syncd.state.folder import read_regular_file, write_private

NAME: Final = "hooks.jsonl"
LARGEST: Final = 32_768  # bytes, about 300 starts; then the older half is dropped

Outcome = Literal["served", "empty", "no-daemon", "slow", "failed"]


@dataclass(frozen=True, slots=True)
class HookRun:
    """Describes one run of a hook."""

    at: int  # epoch milliseconds
    client: str
    outcome: Outcome
    milliseconds: int
    tokens: int = 0
    problem: str = ""


def append_run(state: Path, run: HookRun) -> None:
    """Append a run to the log of a state folder that exists."""
    line = json.dumps(asdict(run)).encode() + b"\n"
    file = state / NAME
    with contextlib.suppress(OSError):
        _drop_older_half(file)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        opened = os.open(file, flags, 0o600)  # O_NONBLOCK, because a pipe without a reader would never open
        try:
            os.write(opened, line)
        finally:
            os.close(opened)


def read_runs(state: Path) -> list[HookRun]:
    """Return the logged runs, the oldest first; lines that can't be read are left out."""
    try:
        lines = read_regular_file(state / NAME)[-LARGEST * 2 :].splitlines()
    except OSError:
        return []
    runs = []
    for line in lines:
        with contextlib.suppress(ValueError, TypeError):
            runs.append(HookRun(**json.loads(line)))
    return runs


def _drop_older_half(file: Path) -> None:
    try:
        if file.stat().st_size < LARGEST:
            return
    except FileNotFoundError:
        return
    lines = read_regular_file(file).splitlines(keepends=True)
    write_private(file, b"".join(lines[len(lines) // 2 :]).decode("utf-8", "surrogateescape"))
