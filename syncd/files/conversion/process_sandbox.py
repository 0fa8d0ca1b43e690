"""Put this process into a sandbox before it reads a file: limit its time, memory, file access and system calls.

The process also ends when its parent dies. The POSIX limits apply everywhere, the others on Linux; each function returns
whether the system enforces its restriction. Call these functions in a process with one thread, in the order of this
file."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import struct
import sys
from collections.abc import Iterable
from typing import Any, ClassVar, Final

FILES: Final = 64  # most open files
_NEWUSER, _NEWNET, _NEWIPC = 0x10000000, 0x40000000, 0x08000000  # linux/sched.h
_PDEATHSIG, _SECCOMP, _NO_NEW_PRIVS = 1, 22, 38  # linux/prctl.h
_MODE_FILTER: Final = 2  # linux/seccomp.h
_INSTRUCTION: Final = 8  # bytes; linux/filter.h, struct sock_filter
_CAPABILITIES: Final = 0x20080522  # linux/capability.h, _LINUX_CAPABILITY_VERSION_3
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # landlock; the same numbers on every architecture
_VERSION: Final = 1  # the flag that asks for the version of Landlock's interface
_READ_FILE, _READ_FOLDER = 1 << 2, 1 << 3
# linux/landlock.h: the version that introduced some rights, and their bits. The kernel refuses rights unknown to it.
_OF_FILES: Final = (
    (1, (1 << 13) - 1),
    (2, 1 << 13),
    (3, 1 << 14),
    (5, 1 << 15),
)  # the first 13; REFER, TRUNCATE, IOCTL_DEV
_OF_NETWORK: Final = ((4, 0b11),)  # TCP: bind and connect
_SCOPES: Final = ((6, 0b11),)  # abstract sockets of others, and signals to them


def set_limits(*, seconds: int, memory: int) -> None:
    """Limit CPU time, address space and open files; forbid writing to files and core dumps."""
    for what, most in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hardest = resource.getrlimit(what)
        highest = most + (what == resource.RLIMIT_CPU)  # one more second, in which the process receives a signal
        limits = [value if hardest == resource.RLIM_INFINITY else min(value, hardest) for value in (most, highest)]
        with contextlib.suppress(OSError, ValueError):  # macOS accepts no limit of the address space
            resource.setrlimit(what, (limits[0], limits[1]))


def isolate(parent: int) -> bool:
    """Give up all privileges, and end when `parent` ends.

    Return whether the process has also left the network and the communication between processes."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None)
    libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
    alone: bool = libc.unshare(_NEWUSER | _NEWNET | _NEWIPC) == 0  # fails where user namespaces are forbidden
    header, data = ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITIES, 0)), ctypes.create_string_buffer(24)
    libc.capset(header, data)
    libc.prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # last, because a change of credentials resets it
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    return alone


def restrict_files(readable: Iterable[str]) -> int:
    """Forbid opening files, except to read files below `readable`; return the Landlock version that enforces it, or 0.

    From version 3 on, files outside can't be truncated either; from version 4 on, TCP connections are forbidden; from
    version 6 on, signals to processes outside are forbidden."""
    if sys.platform != "linux":
        return 0
    libc = ctypes.CDLL(None)
    create = ctypes.c_long(_CREATE_RULESET)
    version = int(libc.syscall(create, None, ctypes.c_size_t(0), ctypes.c_uint(_VERSION)))
    if version < 1:
        return 0
    rights = [sum(bits for since, bits in kind if since <= version) for kind in (_OF_FILES, _OF_NETWORK, _SCOPES)]
    rights = rights[: 1 + (version >= 4) + (version >= 6)]  # the structure grew with the versions
    rules, size = ctypes.create_string_buffer(struct.pack(f"{len(rights)}Q", *rights)), 8 * len(rights)
    held = libc.syscall(create, rules, ctypes.c_size_t(size), ctypes.c_uint(0))
    if held < 0:
        return 0
    try:
        for path in readable:
            _allow_reading(libc, held, path)
        enforced = libc.syscall(ctypes.c_long(_RESTRICT_SELF), ctypes.c_int(held), ctypes.c_uint(0)) == 0
        return version if enforced else 0
    finally:
        os.close(held)


def _allow_reading(libc: Any, held: int, path: str) -> None:
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # the path does not exist or can't be opened
    try:
        rights = _READ_FILE | (_READ_FOLDER if os.path.isdir(path) else 0)  # noqa: PTH112 (a path of the interpreter)
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, folder), 12)
        libc.syscall(ctypes.c_long(_ADD_RULE), ctypes.c_int(held), ctypes.c_int(1), rule, ctypes.c_uint(0))
    finally:
        os.close(folder)


class _Program(ctypes.Structure):
    """Mirrors linux/filter.h, struct sock_fprog."""

    _fields_: ClassVar = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def restrict_calls(program: bytes | None) -> bool:
    """Forbid all system calls except those that `program` allows (see `syscall_filter`).

    Return whether the kernel enforces it."""
    if sys.platform != "linux" or program is None:
        return False
    filter_ = _Program(len(program) // _INSTRUCTION, program)
    return bool(ctypes.CDLL(None).prctl(_SECCOMP, ctypes.c_ulong(_MODE_FILTER), ctypes.byref(filter_), 0, 0) == 0)
