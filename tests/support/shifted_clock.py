"""Shift the wall clock of other processes, as a person or a time server does; their monotonic clock is unchanged.

A small preloaded library adds the seconds in a file to the system's time; it needs a C compiler."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(id, now);
    long set = 0;
    FILE *file = id == CLOCK_REALTIME ? fopen(getenv("CLOCK_SET"), "r") : NULL;
    if (file) {
        if (fscanf(file, "%ld", &set) == 1) now->tv_sec += set;
        fclose(file);
    }
    return code;
}
"""


class Clock:
    """A wall clock that tests can set while processes run; `possible` states whether this machine supports it."""

    possible = sys.platform == "linux" and shutil.which("cc") is not None

    def __init__(self, folder: Path) -> None:
        self._file, self._library = folder / "clock", folder / "clock.so"
        source = folder / "clock.c"
        source.write_text(SOURCE)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(self._library), str(source), "-ldl"], check=True)
        self.set(0)

    def set(self, seconds: int) -> None:
        """Set the clock to this number of seconds ahead of the true time, or behind it."""
        beside = self._file.with_suffix(".new")
        beside.write_text(str(seconds))
        beside.replace(self._file)

    @property
    def environ(self) -> dict[str, str]:
        """Return the environment variables for a process with this clock."""
        return {"LD_PRELOAD": str(self._library), "CLOCK_SET": str(self._file)}
