"""Disks that fail at a chosen call, or are full, for tests of writing."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from syncd.vault.openat import Calls


class Fault:
    """System calls, of which the `nth` call of `field` fails."""

    def __init__(self, field, nth, act, **calls):
        self.field, self.nth, self.act, self.seen = field, nth, act, 0
        self.real = dataclasses.replace(Calls(), **calls)
        self.calls = dataclasses.replace(self.real, **{field: self})

    @property
    def hit(self):
        return self.seen >= self.nth

    def __call__(self, *arguments, **named):
        self.seen += 1
        real = getattr(self.real, self.field)
        return self.act(real, *arguments, **named) if self.seen == self.nth else real(*arguments, **named)


def failing(code):
    def act(_real, *_arguments, **_named):
        raise OSError(code, os.strerror(code))

    return act


def half(real, file, data):
    """A disk that writes half of the given bytes, and is then full."""
    real(file, data[: len(data) // 2])
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def small_disk(folder: Path, size: str):
    folder.mkdir(parents=True, exist_ok=True)
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "none", folder], check=False)
    if made.returncode:
        pytest.skip("needs root, to mount a small disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@contextmanager
def filled(folder: Path):
    """Fill the disk of `folder` to the last byte."""
    filler = folder / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while file.write(b"\0" * size):
                    pass
    try:
        yield
    finally:
        filler.unlink()
