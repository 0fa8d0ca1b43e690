"""Put this process into a sandbox before it reads a file: limit its time, memory, file access and network access.

The process also ends when its parent dies. A restriction that the system lacks is skipped: the POSIX limits apply
everywhere, the others on Linux. Call these functions in a process with one thread."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import struct
import sys
from collections.abc import Iterable
from typing import Any, Final

FILES: Final = 64  # open at once
_NEWUSER, _NEWNET, _NEWIPC = 0x10000000, 0x40000000, 0x08000000  # linux/sched.h
_PDEATHSIG, _NO_NEW_PRIVS = 1, 38  # linux/prctl.h
_CAPABILITIES: Final = 0x20080522  # linux/capability.h, _LINUX_CAPABILITY_VERSION_3
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # landlock; the same numbers on every architecture
_ALL_OF_FILES: Final = (1 << 13) - 1  # linux/landlock.h: every right of the first version
_READ_FILE, _READ_FOLDER = 1 << 2, 1 << 3


def set_limits(*, seconds: int, memory: int) -> None:
    """Limit CPU time, address space and open files; nothing can be written, and no core is left."""
    for what, most in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hardest = resource.getrlimit(what)
        highest = most + (what == resource.RLIMIT_CPU)  # a second in which the process is told
        limits = [value if hardest == resource.RLIM_INFINITY else min(value, hardest) for value in (most, highest)]
        with contextlib.suppress(OSError, ValueError):  # macOS takes no limit of the address space
            resource.setrlimit(what, (limits[0], limits[1]))


def isolate(parent: int) -> None:
    """Leave the network and the host's other processes' messages, give up all privileges, and die with `parent`."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.unshare(_NEWUSER | _NEWNET | _NEWIPC)  # refused where user namespaces are: then the network stays
    header, data = ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITIES, 0)), ctypes.create_string_buffer(24)
    libc.capset(header, data)
    libc.prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # last: a change of credentials forgets it
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def restrict_files(readable: Iterable[str]) -> bool:
    """Open no file any more but to read what lies below `readable`; whether the kernel sees to it (Landlock)."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None)
    rules = ctypes.create_string_buffer(struct.pack("Q", _ALL_OF_FILES), 8)
    held = libc.syscall(ctypes.c_long(_CREATE_RULESET), rules, ctypes.c_size_t(8), ctypes.c_uint(0))
    if held < 0:
        return False
    try:
        for path in readable:
            _allow_reading(libc, held, path)
        return bool(libc.syscall(ctypes.c_long(_RESTRICT_SELF), ctypes.c_int(held), ctypes.c_uint(0)) == 0)
    finally:
        os.close(held)


def _allow_reading(libc: Any, held: int, path: str) -> None:
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # nothing there to be read
    try:
        rights = _READ_FILE | (_READ_FOLDER if os.path.isdir(path) else 0)  # noqa: PTH112 (a path of the interpreter)
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, folder), 12)
        libc.syscall(ctypes.c_long(_ADD_RULE), ctypes.c_int(held), ctypes.c_int(1), rule, ctypes.c_uint(0))
    finally:
        os.close(folder)
