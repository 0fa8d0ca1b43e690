"""Attempts of a compromised parser to leave the converter's sandbox, each with a name: `python -m` this module runs them all.

`run FOLDER CALLS` converts a file whose reader makes the attempts, in a process from which the system refuses CALLS as an
older or stricter host does; `free FOLDER` makes them without a sandbox. Both print the outcome of each attempt and of its targets."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pyseccomp as seccomp

from syncd.daemon.control_socket import NAME, TOKEN, ControlServer
from syncd.documents.file_types import MARKDOWN
from syncd.files.conversion import converter, converter_child
from syncd.files.conversion.converter import Limits, convert
from syncd.files.conversion.readers.reader_result import MarkdownReading, ReaderLimits

LIBC = ctypes.CDLL(None, use_errno=True)
TEXT = "a note of the user"
NO_SECCOMP = "prctl=22"  # PR_SET_SECCOMP


def _call(name: str, *words: Any) -> int:
    """Return a system call by its name; raises OSError as Python's own functions do."""
    number = seccomp.resolve_syscall(seccomp.Arch.NATIVE, name)
    result = int(LIBC.syscall(ctypes.c_long(number), *(ctypes.c_long(w) if isinstance(w, int) else w for w in words)))
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result


def _connect(family: int, address: Any) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(5)
        client.connect(address)


def _command(state: str) -> str:
    """Send the owner's command for a key over the control socket, and return the daemon's answer."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        client.connect(f"{state}/{NAME}")
        client.sendall(b'{"op": "key.create", "args": {}}\n')
        return client.recv(10_000).decode()


def attempts(to: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """Return the attempts by name; `to` names the targets."""
    note, state, pid = to["note"], to["state"], to["pid"]
    raw = os.fsencode(note)
    return {
        "open a file of the user": lambda: os.open(note, os.O_RDONLY),
        "open a file for writing": lambda: os.open(note, os.O_WRONLY),
        "empty a file while opening it": lambda: os.open(note, os.O_RDONLY | os.O_TRUNC),
        "open a path alone": lambda: os.open(note, os.O_PATH),
        "open the token of the daemon": lambda: os.open(f"{state}/{TOKEN}", os.O_RDONLY),
        "list the state folder": lambda: os.listdir(state),  # noqa: PTH208
        "open /etc/passwd": lambda: os.open("/etc/passwd", os.O_RDONLY),
        "open the daemon's environment": lambda: os.open(f"/proc/{pid}/environ", os.O_RDONLY),
        "make a file": lambda: os.open(f"{note}.new", os.O_CREAT | os.O_WRONLY),
        "make a file without a name": lambda: os.open(os.path.dirname(note), os.O_TMPFILE | os.O_RDWR),  # noqa: PTH120
        "mkdir": lambda: os.mkdir(f"{note}.folder"),  # noqa: PTH102
        "symlink": lambda: os.symlink(note, f"{note}.link"),  # noqa: PTH211
        "link": lambda: os.link(note, f"{note}.hard"),
        "rename": lambda: os.rename(f"{note}.moved", f"{note}.away"),  # noqa: PTH104
        "unlink": lambda: os.unlink(f"{note}.doomed"),  # noqa: PTH108
        "truncate": lambda: os.truncate(note, 0),
        "ftruncate": lambda: os.ftruncate(0, 0),
        "chmod": lambda: os.chmod(note, 0o666),  # noqa: PTH101
        "fchmodat2": lambda: _call("fchmodat2", -100, raw, 0o666, 0),
        "chown": lambda: os.chown(note, os.getuid(), os.getgid()),
        "setxattr": lambda: os.setxattr(note, "user.memex", b"x"),
        "utime": lambda: os.utime(note, (0, 0)),
        "where the file lies": lambda: os.readlink("/proc/self/fd/0"),  # noqa: PTH115
        "exec": lambda: os.execv("/bin/true", ["true"]),
        "fork": lambda: os.fork() or os._exit(0),
        "vfork": lambda: _call("vfork"),
        "clone3": lambda: _call("clone3", 0, 0),
        "start a thread": lambda: threading.Thread(target=int).start(),
        "unshare": lambda: _call("unshare", 0x10000000),
        "setns": lambda: _call("setns", 0, 0),
        "give the owner's command over the control socket": lambda: _command(state),
        "connect to the control socket": lambda: _connect(socket.AF_UNIX, f"{state}/{NAME}"),
        "connect to an abstract socket": lambda: _connect(socket.AF_UNIX, to["abstract"]),
        "connect to TCP on 127.0.0.1": lambda: _connect(socket.AF_INET, ("127.0.0.1", to["port"])),
        "listen on TCP": lambda: socket.create_server(("127.0.0.1", 0)),
        "send UDP": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9)),
        "socketpair": lambda: socket.socketpair(),
        "signal the daemon": lambda: os.kill(pid, 0),
        "kill the daemon": lambda: os.kill(pid, signal.SIGCONT),
        "tgkill": lambda: _call("tgkill", pid, pid, 0),
        "rt_sigqueueinfo": lambda: _call("rt_sigqueueinfo", pid, signal.SIGCONT, 0),
        "pidfd_open": lambda: _call("pidfd_open", pid, 0),
        "ptrace the daemon": lambda: _call("ptrace", 0x4206, pid, 0, 0),
        "read the daemon's memory": lambda: _call("process_vm_readv", pid, 0, 0, 0, 0, 0),
        "limit the daemon": lambda: _call("prlimit64", pid, 7, 0, 0),
        "take the daemon's time": lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
        "prctl": lambda: _call("prctl", 15, b"x", 0, 0, 0),
        "be told of a file by signals": lambda: _call("fcntl", 0, 8, pid),
        "memfd_create": lambda: os.memfd_create("x"),
        "io_uring_setup": lambda: _call("io_uring_setup", 1, ctypes.create_string_buffer(120)),
        "bpf": lambda: _call("bpf", 0, 0, 0),
        "userfaultfd": lambda: _call("userfaultfd", 0),
        "perf_event_open": lambda: _call("perf_event_open", 0, 0, -1, -1, 0),
        "add_key": lambda: _call("add_key", b"user", b"x", b"x", 1, -2),
        "shared memory": lambda: _call("shmget", 0, 4096, 0o1600),
        "message queue": lambda: _call("msgget", 0, 0o1600),
        "mount": lambda: _call("mount", 0, b"/tmp", b"tmpfs", 0, 0),
        "open_by_handle_at": lambda: _call("open_by_handle_at", -100, ctypes.create_string_buffer(64), 0),
        "openat2": lambda: _call("openat2", -100, raw, ctypes.create_string_buffer(24), 24),
        "inotify": lambda: _call("inotify_init1", 0),
    }


ENDING = frozenset({"exec", "fork", "vfork"})  # a process that no filter refuses it makes no further attempt


def outcomes(to: dict[str, Any]) -> dict[str, str]:
    """Return the outcome of each attempt: `done`, the answer of a daemon, or the name of the error."""
    came = {}
    for name, attempt in attempts(to).items():
        if name in ENDING and not to["filter"]:
            continue
        try:
            result = attempt()
            came[name] = result if isinstance(result, str) else "done"
        except OSError as error:
            came[name] = errno.errorcode.get(error.errno or 0, str(error))
        except RuntimeError:  # Python's word for a thread that the system refused
            came[name] = "EPERM"
    return came


def read_attempts(file: BinaryIO, _: ReaderLimits) -> MarkdownReading:
    """Return a reader that makes the attempts in the file's JSON."""
    return MarkdownReading(json.dumps(outcomes(json.loads(file.read()))))


def _refuse_calls(names: list[str]) -> None:
    """Let the system refuse these calls from now on; it refuses `CALL=NUMBER` only if NUMBER is the first argument."""
    rules = seccomp.SyscallFilter(seccomp.ALLOW)
    for name in names:
        call, _, first = name.partition("=")
        rules.add_rule(seccomp.ERRNO(errno.EPERM), call, *([seccomp.Arg(0, seccomp.EQ, int(first))] if first else []))
    rules.load()


def main() -> None:
    """Run as the child, or as the daemon that starts the child."""
    if sys.argv[1] not in ("run", "free"):
        converter_child._load_reader = lambda _: read_attempts  # what a parser would do
        converter_child.main()
        os._exit(0)
    assert os.getuid(), "what root attempts here succeeds, such as a mount over /tmp"
    mode, folder = sys.argv[1], Path(sys.argv[2])
    note, state = folder / "note.md", folder / "state"
    state.mkdir(mode=0o700)
    for path in (note, Path(f"{note}.moved"), Path(f"{note}.doomed")):
        path.write_text(TEXT)
        path.chmod(0o600)
    server = ControlServer(state, {"key.create": lambda _, __: "a working key"})
    server.start()
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind(f"\0memex-{os.getpid()}")
    abstract.listen()
    tcp = socket.create_server(("127.0.0.1", 0))
    calls = [name for name in sys.argv[3].split(",") if name]
    to = {
        "filter": mode == "run" and NO_SECCOMP not in calls,
        "note": str(note),
        "state": str(state),
        "pid": os.getpid(),
        "abstract": f"\0memex-{os.getpid()}",
        "port": tcp.getsockname()[1],
    }
    if calls:
        _refuse_calls(calls)
    if mode == "free":
        came: dict[str, Any] = outcomes(to)
    else:
        (state / "asked.json").write_text(json.dumps(to))
        converter._CHILD = ("-P", "-m", "tests.support.sandbox_attempts")
        came = json.loads(convert(Limits(), state / "asked.json", MARKDOWN, threading.Event()).text)
    after = {
        "text": note.read_text(),
        "mode": note.stat().st_mode & 0o777,
        "files": sorted(p.name for p in folder.iterdir()),
    }
    server.stop()
    print(json.dumps({"uid": os.getuid(), "came": came, "after": after}))  # noqa: T201 - its answer
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
