"""Compile the filter of system calls under which the converter's child reads a file.

The daemon compiles it once, because loading libseccomp takes longer than reading a small file; the child only installs it.
Law, tested: what is not listed is refused with EPERM, whatever the host or the service manager does to namespaces."""

from __future__ import annotations

import errno
import fcntl
import functools
import logging
import os
import sys
import tempfile
import termios
from typing import Final

# Calls that the readers of all types were observed to make, or that their libraries make elsewhere or out of memory.
_CALLS: Final = (
    "read", "readv", "pread64", "write", "writev", "lseek", "_llseek", "close", "dup",
    "fstat", "fstat64", "newfstatat", "fstatat64", "stat", "stat64", "lstat", "lstat64", "statx", "getdents64", "getcwd",
    "mmap", "mmap2", "munmap", "mprotect", "mremap", "madvise", "brk", "membarrier", "rseq",
    "futex", "futex_time64", "set_robust_list", "sched_yield", "sched_getaffinity",
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigreturn", "sigaltstack", "restart_syscall",
    "clock_gettime", "clock_gettime64", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time",
    "getpid", "gettid", "getuid", "geteuid", "getgid", "getegid", "getrandom", "getrusage", "getrlimit", "ugetrlimit",
    "sysinfo", "uname", "exit", "exit_group",
)  # fmt: skip
# Flags to refuse, as only reading existing files is allowed. Landlock decides which files; it does not check O_PATH.
_NOT_OPENED: Final = (
    os.O_ACCMODE | os.O_CREAT | os.O_TRUNC | os.O_APPEND | getattr(os, "O_PATH", 0) | getattr(os, "O_TMPFILE", 0)
) & ~os.O_DIRECTORY
_DESCRIPTORS: Final = (fcntl.F_GETFD, fcntl.F_SETFD, fcntl.F_GETFL, fcntl.F_DUPFD_CLOEXEC)
_LOW: Final = 0xFFFFFFFF  # the kernel uses only the lower half of an `int`

log = logging.getLogger(__name__)


@functools.cache
def compile_filter() -> bytes | None:
    """Compile the filter to BPF for the kernel; None if libseccomp is missing or the system is not Linux."""
    if sys.platform != "linux":
        return None
    try:
        import pyseccomp as seccomp  # noqa: PLC0415 - looks for libseccomp, and fails without it
    except (ImportError, OSError, RuntimeError) as error:
        log.warning("the converter's system calls can't be filtered: %s", error)
        return None
    rules = seccomp.SyscallFilter(seccomp.ERRNO(errno.EPERM))
    for name in _CALLS:
        if seccomp.resolve_syscall(seccomp.Arch.NATIVE, name) != -1:  # -1: the library is older than the call
            rules.add_rule(seccomp.ALLOW, name)

    def only(name: str, argument: int, value: int, mask: int = _LOW) -> None:
        rules.add_rule(seccomp.ALLOW, name, seccomp.Arg(argument, seccomp.MASKED_EQ, mask, value))

    only("open", 1, 0, _NOT_OPENED)
    only("openat", 2, 0, _NOT_OPENED)
    only("ioctl", 1, termios.TCGETS)  # Python checks whether each file is a terminal
    only("prlimit64", 0, 0)  # the child's own limits, which it can't raise
    for command in _DESCRIPTORS:
        only("fcntl", 1, command)
        only("fcntl64", 1, command)
    with tempfile.TemporaryFile() as program:
        rules.export_bpf(program)
        program.seek(0)
        return program.read()
