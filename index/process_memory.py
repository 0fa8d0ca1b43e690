"""Keep the memory of this process small: limit the heap arenas of the C library, and return freed memory to the system.

glibc keeps freed memory in up to eight arenas a core, and once a large block was freed it no longer maps large ones
on their own: after a bulk run half of the heap can be free and still held. Source:
https://man7.org/linux/man-pages/man3/mallopt.3.html"""

from __future__ import annotations

import ctypes
import sys
import threading
from typing import Any, Final

M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8
ARENAS: Final = 2
LARGE_TEXT: Final = 500_000  # characters from which a text is taken in by nobody who does not hold `one_large_text`
LARGE: Final = 128 << 10  # bytes from which a block is mapped on its own; stating glibc's default keeps it from growing

one_large_text = threading.Lock()  # what is made of a text, until it is stored, may need some ten times its size


def limit_arenas() -> None:
    """Allow few arenas, and map what is large on its own. To be called before threads are started; has no effect where the C library is another."""
    if setting := _libc_function("mallopt"):
        setting(M_ARENA_MAX, ARENAS)
        setting(M_MMAP_THRESHOLD, LARGE)


def release_unused() -> None:
    """Return what is held and not used to the system; takes some milliseconds."""
    if trim := _libc_function("malloc_trim"):
        trim(0)


def _libc_function(name: str) -> Any:
    """A function of the C library that this process runs on, or None."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
