"""The converter reads a file as Markdown in a child process with limits on time, memory, files and system calls.

Law, tested: whatever the file does to the child, the converter returns its text or raises the reason, and leaves no
process and no file behind. The child gets a copy of the file without a name; it sees neither the environment nor the open
files of the daemon, and can open none of its folders. Its answer waits on disk until the caller has room for it."""

from __future__ import annotations

import base64
import errno
import functools
import json
import logging
import math
import os
import selectors
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Final

from index.errors import InvalidArgument, MemexError, ResourceExhausted, Unavailable
from syncd.documents.file_types import NAMED
from syncd.files.conversion.readers.reader_result import MarkdownReading
from syncd.files.conversion.sandbox_layers import SandboxLayers, refusal
from syncd.files.conversion.syscall_filter import compile_filter

TICK: Final = 0.05  # seconds between two checks of the child
ROOM: Final = 1 << 30  # bytes of address space for programs and libraries, in addition to the file's
_ANSWER: Final = 1 << 20  # bytes of an answer in addition to its text
_SAID: Final = 65_536  # bytes of the child's error output that are read
_NO_MEMORY: Final = (b"MemoryError", b"memory allocation of", b"Cannot allocate memory", b"bad_alloc")
_CODE: Final = str(Path(__file__).parents[3])
_CHILD: Final = ("-P", "-m", "syncd.files.conversion.converter_child")
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_SPOOLED: Final = 1 << 18  # bytes of a child's output above which it is written to an unlinked temporary file
_BLOCK: Final = 1 << 20

log = logging.getLogger(__name__)


class Unreadable(InvalidArgument):
    """The file can't be read; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Holds the limits for reading one file."""

    seconds: float = 120.0  # of CPU time, and of elapsed time
    memory: int = 1 << 30  # bytes
    pages: int = 2_000  # pages, slides or sheets
    inflated: int = 1 << 30  # bytes that a compressed file may unpack to
    text: int = 4_000_000  # most bytes of text to keep, as UTF-8
    unconfined: bool = False  # read PDF and Office files even if a layer of the sandbox is missing


def convert(
    limits: Limits,
    path: Path,
    media_type: str,
    stopping: threading.Event,
    wait_for_room: Callable[[int], object] = lambda _: None,
) -> MarkdownReading:
    """Convert the file at `path` to text; `media_type` is the result of `media_type_of`.

    The text is "" if the file contains none; then the warnings say why.

    `wait_for_room` is called with the size of the answer in bytes, while the answer lies on disk, before it is read into memory.

    Raises Unreadable with the reason; ResourceExhausted if a limit was exceeded, which its details name; Unavailable
    if the child could not be started, a sandbox layer is missing or `stopping` was set."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError as error:
        raise Unavailable(f"the file can't be opened: {os.strerror(error.errno or 0)}") from None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise Unreadable("this is not a file")
        answer = _run_child(file, media_type, limits, stopping, wait_for_room)
    finally:
        os.close(file)
    match answer:
        case {"error": "unconfined", "layers": layers}:
            raise Unavailable(refusal(SandboxLayers(**layers), sys.platform), retryable=False)
        case {"error": "unreadable", "message": str(reason)}:
            raise Unreadable(reason)
        case {"error": "exhausted", "message": str(reason)}:
            raise ResourceExhausted(reason, limit="size")
        case {"error": "memory"}:
            raise _memory_exceeded(limits)
        case {"text": str(text), "pages": pages, "cut": cut, "warnings": warnings}:
            return MarkdownReading(text, pages, bool(cut), tuple(warnings))
    raise AssertionError


@functools.cache
def probe_layers() -> SandboxLayers:
    """Start a child that reads no file, and return which layers of the sandbox are in force.

    Raises MemexError if the child does not start."""
    empty = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        answer = _run_child(empty, "", Limits(seconds=20), threading.Event())
    finally:
        os.close(empty)
    return SandboxLayers(**answer["layers"])


def _run_child(
    file: int,
    media_type: str,
    limits: Limits,
    stopping: threading.Event,
    wait_for_room: Callable[[int], object] = lambda _: None,
) -> Any:
    """Run a child on the open file and return its answer; without a media type, the answer describes its sandbox."""
    asked = asdict(limits) | {
        "media_type": media_type,
        "parent": os.getpid(),
        "seconds": math.ceil(limits.seconds),
        "address": limits.memory + ROOM,
        "calls": base64.b64encode(compile_filter() or b"").decode(),
    }
    try:
        with tempfile.SpooledTemporaryFile(_SPOOLED) as output:
            code, errors = _write_output(output, file, asked, limits, stopping)
            if code == 0:
                wait_for_room(output.tell())
                output.seek(0)
                if (answer := _parse_answer(output)) is not None:
                    return answer
    except OSError as error:
        if error.errno in _FULL:  # a copy of the file, or of its text, is written there
            raise Unavailable("the disk for temporary files is full; make room, then try again") from error
        raise Unavailable("the file converter could not be started") from error
    raise _explain_failure(code, errors, NAMED.get(media_type, ""), limits)


def _write_output(
    output: IO[bytes], file: int, asked: Mapping[str, Any], limits: Limits, stopping: threading.Event
) -> tuple[int, bytes]:
    """Run a child on the open file and write its output to `output`; return its exit code and its error output."""
    with tempfile.TemporaryDirectory(prefix="memex-", ignore_cleanup_errors=True) as folder:
        copy = _copy_nameless(file, folder, stopping)
        try:
            child = subprocess.Popen(
                [sys.executable, *_CHILD, json.dumps(asked)],
                stdin=copy,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env=_child_environment(),
                start_new_session=True,
            )
        finally:
            os.close(copy)
        try:
            errors = _read_output(child, output, limits, stopping)
        finally:
            _end_child(child)
    return child.returncode, errors


def _copy_nameless(file: int, folder: str, stopping: threading.Event) -> int:
    """Copy the file, and return a read-only descriptor of the copy, whose name is removed. Raises Unavailable if `stopping` is set."""
    place, size, done = Path(folder, "copy"), os.fstat(file).st_size, 0
    try:
        with place.open("xb") as copy:
            while done < size and (block := os.pread(file, min(_BLOCK, size - done), done)):
                if stopping.is_set():
                    raise _stopping()
                done += copy.write(block)
        return os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    finally:
        place.unlink(missing_ok=True)


def _stopping() -> Unavailable:
    return Unavailable("the daemon is stopping; Memex reads the file again after the next start")


def _child_environment() -> dict[str, str]:
    """Return the child's environment variables: from the daemon's environment, only where Python finds the code."""
    return {
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(dict.fromkeys([_CODE, *filter(None, sys.path)])),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONUTF8": "1",
        "MALLOC_ARENA_MAX": "1",
    }


def _read_output(child: subprocess.Popen[bytes], output: IO[bytes], limits: Limits, stopping: threading.Event) -> bytes:
    """Write the child's output to `output` until the child ends; return its error output.

    Raises ResourceExhausted if it exceeds a limit, Unavailable if `stopping` is set."""
    assert child.stdout is not None
    assert child.stderr is not None
    end = time.monotonic() + limits.seconds
    size, errors = 0, bytearray()
    most = limits.text * 6 + _ANSWER  # JSON escapes a control character in six bytes
    with selectors.DefaultSelector() as selector:
        for pipe in (child.stdout, child.stderr):
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select(TICK):
                if not (block := os.read(key.fd, 1 << 16)):
                    selector.unregister(key.fileobj)
                elif key.fileobj is child.stdout:
                    size += output.write(block)
                else:
                    errors += block[: _SAID - len(errors)]
            if stopping.is_set():
                raise _stopping()
            if size > most:
                raise ResourceExhausted("the file contains more text than Memex accepts", limit="text")
            if time.monotonic() > end:
                raise _time_exceeded(limits)
            if _memory_used(child.pid) > limits.memory:
                raise _memory_exceeded(limits)
    with suppress(subprocess.TimeoutExpired):
        child.wait(max(0.0, end - time.monotonic()))
    return bytes(errors)


def _memory_used(pid: int) -> int:
    """Return the memory that the process uses, in bytes, without mapped files; 0 if the system does not report it."""
    try:
        with open(f"/proc/{pid}/status", "rb") as status:  # noqa: PTH123 (read many times a second)
            sizes = [line.split()[1] for line in status if line.startswith((b"RssAnon:", b"RssShmem:"))]
    except (OSError, IndexError):
        return 0
    return sum(map(int, sizes)) << 10


def _end_child(child: subprocess.Popen[bytes]) -> None:
    """Kill the child and all processes that it started; it has its own session, so no other process is affected."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    for pipe in (child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()


def _parse_answer(output: IO[bytes]) -> Any:
    try:
        return json.loads(output.read().decode())  # decoded here: `json.loads` would keep the bytes while it parses
    except ValueError:
        return None


def _explain_failure(code: int, errors: bytes, kind: str, limits: Limits) -> MemexError:
    """Return the error for a child without an answer, derived from its exit code and error output."""
    if code == -signal.SIGXCPU:
        return _time_exceeded(limits)
    if any(word in errors for word in _NO_MEMORY):
        return _memory_exceeded(limits)
    if b"ModuleNotFoundError" in errors:
        return Unavailable("the converter for this type of file is not installed correctly", retryable=False)
    log.info("a file converter failed", extra={"code": code, "cause": _exception_name(errors)})
    return Unreadable(f"the file is damaged: it is not a readable {kind} file")


def _exception_name(errors: bytes) -> str:
    """Return the name of the exception that ended the child; its message may contain text of the file."""
    last = errors.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return name if (name := last.partition(":")[0]).replace(".", "").replace("_", "").isalnum() else ""


def _time_exceeded(limits: Limits) -> ResourceExhausted:
    return ResourceExhausted(f"reading the file takes longer than {limits.seconds:g} s", limit="seconds")


def _memory_exceeded(limits: Limits) -> ResourceExhausted:
    return ResourceExhausted(f"reading the file takes more memory than {limits.memory >> 20:,} MiB", limit="memory")
