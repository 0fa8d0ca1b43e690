"""Run a program as a child process in its own session, with or without a time limit.

Laws, tested: the child has no terminal to ask at. `inherited_environment` passes on only the variables that it
names. At the time limit the child and every process it started are ended. Without a limit nothing ends the child,
not even the death of this process. A process that the child leaves running cannot block the caller."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Final

GRACE_S: Final = 2.0  # between SIGTERM and SIGKILL: time to remove locks
LONGEST_S: Final = 6 * 3600.0  # of a process that keeps writing
_LOOK_S: Final = 0.1

# What Git, ssh and credential helpers need to find their files, agents and proxies. None of these holds a secret of the
# daemon; an unknown variable may hold one.
_INHERITED: Final = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "EMAIL", "SHELL", "TMPDIR", "LANG", "TZ"}
    | {"SSH_AUTH_SOCK", "SSH_AGENT_PID", "GNUPGHOME", "GPG_TTY", "KRB5CCNAME", "DBUS_SESSION_BUS_ADDRESS"}
    | {"SSL_CERT_FILE", "SSL_CERT_DIR", "NIX_SSL_CERT_FILE"}
    | {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"}
)
_FAMILIES: Final = ("LC_", "XDG_")


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """Describes how a program ended."""

    code: int
    out: bytes
    said: str  # output on stderr
    late: bool = False  # it was ended at its time limit, or because the caller stopped

    @property
    def text(self) -> str:
        """Return the output as one line of text."""
        return self.out.decode("utf-8", "surrogateescape").strip()

    @property
    def fields(self) -> list[str]:
        """Return the fields of the output of a Git command with `-z`; the last one is empty."""
        return self.out.decode("utf-8", "surrogateescape").split("\0")


def inherited_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the part of this process's environment that other programs get."""
    return {name: environ[name] for name in environ if name in _INHERITED or name.startswith(_FAMILIES)}


def run(
    command: Sequence[str],
    environ: Mapping[str, str],
    *,
    stdin: bytes = b"",
    limit_s: float | None = None,
    until_silent: bool = False,
    stop: threading.Event | None = None,
    keep: Collection[int] = (),
    out: IO[bytes] | None = None,
) -> ProcessResult:
    """Run `command` with `stdin` as its input; `keep` are open files that it inherits, `out` is a file it writes to.

    With `limit_s`, it and all its child processes are ended after this many seconds, or once `stop` is set. With
    `until_silent`, these seconds begin again with each output on stderr, for at most `LONGEST_S`."""
    # Files, not pipes: a pipe stays open until the last process that inherited it ends, such as a kept connection.
    with tempfile.TemporaryFile() as stdin_file, tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as err:
        stdin_file.write(stdin)
        stdin_file.seek(0)
        process = subprocess.Popen(
            command,
            stdin=stdin_file,
            stdout=out or stdout,
            stderr=err,
            env=environ,
            start_new_session=True,
            pass_fds=tuple(keep),
        )
        late = limit_s is not None and not _ends_in_time(process, limit_s, err if until_silent else None, stop)
        if late:
            _terminate(process)
        code = process.wait()
        stdout.seek(0)
        err.seek(0)
        return ProcessResult(code, stdout.read(), err.read().decode("utf-8", "replace"), late)


def _ends_in_time(
    process: subprocess.Popen[bytes], limit_s: float, growing: IO[bytes] | None, stop: threading.Event | None
) -> bool:
    """Return whether the process ends by itself in time, which begins again whenever the file `growing` has grown."""
    now, size = time.monotonic(), 0
    end, last = now + limit_s, now + LONGEST_S
    with _open_pidfd(process.pid) as pidfd:
        while (now := time.monotonic()) < end and not (stop is not None and stop.is_set()):
            if _has_ended(process, pidfd, min(_LOOK_S, end - now)):
                return True
            if growing is not None and (grown := os.fstat(growing.fileno()).st_size) != size:
                size, end = grown, min(time.monotonic() + limit_s, last)
    return False


@contextmanager
def _open_pidfd(pid: int) -> Iterator[select.poll | None]:
    """Yield what reports the end of a process at once; None where the system has no pidfds."""
    pidfd = None
    if hasattr(os, "pidfd_open"):
        with suppress(OSError):  # an old kernel, or a sandbox that forbids it
            pidfd = os.pidfd_open(pid)
    if pidfd is None:
        yield None
        return
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        yield poll
    finally:
        os.close(pidfd)


def _has_ended(process: subprocess.Popen[bytes], pidfd: select.poll | None, seconds: float) -> bool:
    """Wait this long for the end of a process. Without a pidfd, it is noticed up to 50 ms late."""
    if pidfd is not None:
        return bool(pidfd.poll(seconds * 1000))
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
        return True
    return False


def _terminate(process: subprocess.Popen[bytes]) -> None:
    """End the process with its whole session: SIGTERM first, then SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
