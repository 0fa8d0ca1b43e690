"""Keep the memory of this process small: limit the heap arenas of the C library, return freed memory, and find garbage early.

glibc keeps freed memory in up to eight arenas per core. After a large block was freed, it no longer maps large blocks
separately, so after a bulk run half of the heap can be free and still held. Source:
https://man7.org/linux/man-pages/man3/mallopt.3.html"""

from __future__ import annotations

import functools
import gc
import resource
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8
ARENAS: Final = 2
USUAL: Final = gc.get_threshold()  # the interpreter's own, for each of its three generations
STARTING: Final = 20_000  # new objects, less those that are gone, that cause a collection while a program starts
LARGE_TEXT: Final = 500_000  # characters from which indexing a text requires the lock `one_large_text`
GROWN: Final = 4 << 20  # bytes of growth after which free memory is returned
AGAIN, AGAIN_S = 4, 5.0  # how often that is repeated if it returned too little, and the seconds in between
LARGE: Final = 128 << 10  # bytes from which a block is mapped separately: glibc's default, set so that it does not grow

one_large_text = threading.Lock()  # indexing a text may need about ten times its size in memory until it is stored


def limit_arenas() -> None:
    """Allow few arenas, and map large blocks separately. Call it before threads start; it does nothing with another C library than glibc."""
    if setting := _libc_function("mallopt"):
        setting(M_ARENA_MAX, ARENAS)
        setting(M_MMAP_THRESHOLD, LARGE)


def release_unused() -> None:
    """Return free memory to the system; takes a few milliseconds."""
    if trim := _libc_function("malloc_trim"):
        trim(0)


class GrowthWatch:
    """Returns free memory to the system when the process has grown.

    What another thread still uses can't be returned, and most of it is free a moment later. So if the growth has not been given back,
    free memory is returned AGAIN times more, at intervals of AGAIN_S seconds or more."""

    def __init__(self) -> None:
        self._level = 0  # the bytes in memory when free memory was last returned, or the fewest since then
        self._aim = 0  # the bytes below which the last growth counts as given back
        self._left, self._next = 0, 0.0  # how often free memory is still returned, and the earliest time

    def release_after_growth(self) -> None:
        """Return free memory to the system if the process has grown by GROWN or more since it was last returned, or if that is to be repeated."""
        resident, now = _resident_bytes(), time.monotonic()
        if resident >= self._level + GROWN:
            self._aim, self._left = self._level + GROWN, AGAIN
        elif self._left and now >= self._next:
            self._left -= 1
        else:
            self._level = min(self._level, resident)
            return
        release_unused()
        self._level, self._next = _resident_bytes(), now + AGAIN_S
        if self._level < self._aim:
            self._left = 0


def collect_rarely() -> None:
    """Collect garbage rarely until `collect_as_usual` is called. Call it when a program starts.

    Nearly all objects of a start stay. The imports of the daemon caused 380 collections, which took an eighth of their time."""
    gc.set_threshold(STARTING)


def collect_as_usual() -> None:
    """Collect garbage as often as Python does, and leave all present objects out of it; takes no time."""
    gc.freeze()
    gc.set_threshold(*USUAL)


def freeze_objects() -> None:
    """Collect all garbage, and leave all present objects out of later collections; takes about as long as one full collection.

    Python collects everything only once the young objects are a quarter of all. The 170,000 objects that a started daemon has with
    300 notes thus keep garbage in memory for minutes, and each such collection stops all threads for 55 to 67 ms. Source:
    https://docs.python.org/3.11/library/gc.html#gc.freeze."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    gc.collect()  # counts what is left, which is nothing, as the base of that quarter


def _resident_bytes() -> int:
    """Return the bytes of this process that are in memory; 0 if they are unknown. Source: https://man7.org/linux/man-pages/man5/proc.5.html."""
    if sys.platform != "linux":
        return 0
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * resource.getpagesize()
    except OSError:  # no file can be opened now, or there is no /proc; a job must not fail because of that
        return 0


@functools.cache
def _libc_function(name: str) -> Any:
    """Return a function of the C library that this process runs on, or None."""
    import ctypes  # noqa: PLC0415 - a short command needs none of this

    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
