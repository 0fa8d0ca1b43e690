"""Write the log as lines: JSON for the systemd journal, plain text for a person, and secrets in neither.

Laws, tested: a record is one line of known fields (for a person, also the indented lines of a traceback), whatever
its text contains; line breaks, escape sequences and keys of Memex never appear. A thread that logs never waits for the
output."""

from __future__ import annotations

import json
import logging
import os
import queue
import re
import select
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final, TextIO

from syncd.notes.secret_patterns import redact
from syncd.settings.logs_and_traces import LogSettings

FIELDS: Final = (
    "request",
    "key",
    "address",
    "method",
    "route",
    "status",
    "tool",
    "code",
    "ms",
)  # all fields, in this order
# Loggers that use the set level; libraries log only warnings and errors.
OURS: Final = ("index", "syncd", "mcp_server", "memex")
PRIORITY: Final = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}
WAITING: Final = 4_000_000  # characters that wait for the output before further lines are dropped
PIECE: Final = 65_536  # most characters of one write
FLUSH_S: Final = 2.0  # how long the end of the process waits for the output
LONGEST: Final = 16_000  # longest text in characters; the journal splits a line at 48 kB
# More than `redact` treats as a secret in a note: in a log, one redacted word too many does no harm.
_SECRET: Final = re.compile(r"(mx_[A-Za-z0-9]+_)[A-Za-z0-9_-]+|(\b[Bb]earer\s+)[^\s\"',;]+|(//[^/\s:@]*:)[^/\s@]+(?=@)")
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


_bound: ContextVar[Mapping[str, Any] | None] = ContextVar("log", default=None)


@contextmanager
def bind_fields(fields: Mapping[str, Any]) -> Iterator[None]:
    """Add fields (names in FIELDS) to each record that is logged inside the block. The mapping may still grow."""
    token = _bound.set(fields)
    try:
        yield
    finally:
        _bound.reset(token)


def install(settings: LogSettings, *, stream: TextIO | None = None, environ: Mapping[str, str] = os.environ) -> None:
    """Install this as the log of everything, including libraries, warnings and failed threads."""
    stream = stream or sys.stderr
    journal = is_journal(stream, environ)
    structured = settings.format == "json" or (settings.format == "auto" and journal)
    handler = LogOutput(stream, LogFormatter(structured=structured, prefixed=journal))
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)  # below that, libraries log the data they receive
    for name in OURS:
        logging.getLogger(name).setLevel(settings.level.upper())
    logging.captureWarnings(True)
    threading.excepthook = _log_thread_death
    sys.unraisablehook = _log_ignored_error


def is_installed() -> bool:
    """Return whether this process has a log; only a daemon has one."""
    return _output() is not None


def queue_line(line: str) -> bool:
    """Write a line to the output of the log, in order with its records; return False if no log is installed."""
    if (output := _output()) is None:
        return False
    output.put(line)
    return True


def flush(limit_s: float = FLUSH_S) -> bool:
    """Wait up to `limit_s` seconds until all lines are written; return whether they are."""
    output = _output()
    return output is None or output.wait_written(limit_s)


def _output() -> LogOutput | None:
    return next((handler for handler in logging.getLogger().handlers if isinstance(handler, LogOutput)), None)


def is_journal(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Return whether `stream` is connected to the journal, as systemd says in JOURNAL_STREAM."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):  # a stream in memory has no file number
        return False
    return environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


def is_structured() -> bool:
    """Return whether messages for a person are logged instead, because there is no terminal."""
    return any(
        isinstance(handler.formatter, LogFormatter) and handler.formatter.structured
        for handler in logging.getLogger().handlers
    )


class LogOutput(logging.Handler):
    """Writes lines to `stream` on a thread of its own: a terminal or a pipe that nobody reads delays nothing else.

    Lines that are too many to wait are dropped and counted, and the count is logged once the output is read again."""

    def __init__(self, stream: TextIO, formatter: LogFormatter, *, waiting: int = WAITING) -> None:
        super().__init__()
        self.setFormatter(formatter)
        self._stream, self._waiting, self._dropped = stream, waiting, 0
        self._queued = self._written = 0  # characters; equal when no line waits
        # The one queue of the standard library to which a garbage collection in the middle of a put may put too.
        self._lines: queue.SimpleQueue[str | threading.Event] = queue.SimpleQueue()
        threading.Thread(target=self._write_lines, name="log-output", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Format the record on the thread that logs it, whose fields are bound, and queue its line."""
        self.put(self.format(record))

    def put(self, line: str) -> None:
        """Queue a line, or drop it while too many wait."""
        if self._queued - self._written < self._waiting:
            self._queued += len(line)
            self._lines.put(line)
        else:
            self._dropped += 1

    def flush(self) -> None:
        """Wait a moment for the output; the interpreter calls this at its end."""
        self.wait_written(FLUSH_S)

    def wait_written(self, limit_s: float) -> bool:
        """Wait up to `limit_s` seconds until the lines that wait are written; return whether they are."""
        written = threading.Event()
        self._lines.put(written)
        return written.wait(limit_s)

    def _write_lines(self) -> None:
        while True:
            batch = list(self._take_piece())
            lines = [line for line in batch if isinstance(line, str)]
            if self._dropped and self._lines.empty():
                lines.append(self._describe_dropped())
            with suppress(OSError, ValueError):  # the stream is closed
                self._write("".join(f"{line}\n" for line in lines))
            self._written += sum(map(len, lines))
            if (
                self._lines.empty()
            ):  # what two threads have added at once, or the line on dropped ones, may have been miscounted
                self._written = self._queued
            for written in batch:
                if isinstance(written, threading.Event):
                    written.set()

    def _take_piece(self) -> Iterator[str | threading.Event]:
        """Wait for a line, and yield what waits: several lines at once, or a thread that logs without a pause would be faster."""
        taken, line = 0, self._lines.get()
        while True:
            yield line
            taken += len(line) if isinstance(line, str) else 0
            if taken >= PIECE:
                return
            try:
                line = self._lines.get_nowait()
            except queue.Empty:
                return

    def _write(self, text: str) -> None:
        """Write the text; an output that another program has made non-blocking is waited for as well."""
        try:
            file = self._stream.fileno()
        except (OSError, AttributeError):  # not a file
            self._stream.write(text)
            self._stream.flush()
            return
        self._stream.flush()  # what others wrote to it
        rest = memoryview(text.encode(self._stream.encoding or "utf-8", "backslashreplace"))
        while rest:
            try:
                rest = rest[os.write(file, rest) :]
            except BlockingIOError:
                select.select([], [file], [])

    def _describe_dropped(self) -> str:
        dropped, self._dropped = self._dropped, 0
        text = "%s lines of the log were dropped, because the output was not read"
        return self.format(logging.LogRecord("memex", logging.WARNING, __file__, 0, text, (dropped,), None))


class LogFormatter(logging.Formatter):
    """Formats each record as one line."""

    def __init__(self, *, structured: bool, prefixed: bool) -> None:
        super().__init__()
        self.structured = structured
        self._prefixed = prefixed

    def format(self, record: logging.LogRecord) -> str:
        """Format the record as one line; a record that can't be formatted says only that."""
        try:
            message = record.getMessage()
        except (TypeError, ValueError, LookupError, AttributeError, RuntimeError) as error:  # it must not be lost
            message = f"a record of {record.filename}:{record.lineno} can't be formatted ({type(error).__name__})"
        fields = {**(_bound.get() or {}), **getattr(record, "fields", {})}
        context = {name: fields[name] for name in FIELDS if fields.get(name) is not None}
        # Redacted as a whole first, because a single line of a secret of several lines is not recognized.
        trace = [clean(line) for line in _redact_secrets(_format_trace(record)).splitlines()]
        if self.structured:
            line = self._format_json(record, message, context, "\n".join(trace)[-LONGEST:])
        else:
            line = _format_text(record, message, context, trace, apart=" | " if self._prefixed else "\n  ")
        return f"<{PRIORITY.get(record.levelno, 5)}>{line}" if self._prefixed else line

    def _format_json(self, record: logging.LogRecord, message: str, context: dict[str, Any], error: str) -> str:
        shown = {
            "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": clean(message),
            **{name: clean(value) if isinstance(value, str) else value for name, value in context.items()},
        }
        return json.dumps(shown | ({"error": error} if error else {}), ensure_ascii=True, default=str)


def clean(text: str) -> str:
    """Return `text` without secrets, as one line of printable characters, cut to a maximal length."""
    text = _redact_secrets(text)  # before cutting, because half a secret is not recognized
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"
    return _CONTROL.sub(lambda match: ascii(match.group())[1:-1], text)


def _redact_secrets(text: str) -> str:
    return redact(_SECRET.sub(lambda match: f"{next(filter(None, match.groups()))}[redacted]", text))


def _format_text(
    record: logging.LogRecord, message: str, context: Mapping[str, Any], trace: list[str], *, apart: str
) -> str:
    # Each value separately: after the word "key", the public id of a key looks like a secret.
    about = " ".join(f"{name}={clean(str(value))}" for name, value in context.items())
    when = time.strftime("%H:%M:%S", time.localtime(record.created))
    line = clean(f"{when} {record.levelname.lower():7} {message}")
    return apart.join([f"{line} ({about})" if about else line, *trace])


def _format_trace(record: logging.LogRecord) -> str:
    if not record.exc_info or record.exc_info[0] is None:
        return ""
    return logging.Formatter().formatException(record.exc_info)


def _log_thread_death(args: threading.ExceptHookArgs) -> None:
    """Log the error that ended a thread."""
    if args.exc_type is SystemExit or args.exc_value is None:
        return
    name = args.thread.name if args.thread else "unknown"
    info = (args.exc_type, args.exc_value, args.exc_traceback)
    logging.getLogger("memex").error("the thread %s died", name, exc_info=info)


def _log_ignored_error(ignored: sys.UnraisableHookArgs) -> None:
    """Log an error that Python ignores, such as one in a finalizer, instead of writing it to stderr."""
    if ignored.exc_value is not None:
        info = (ignored.exc_type, ignored.exc_value, ignored.exc_traceback)
        logging.getLogger("memex").error("an error was ignored in %r", ignored.object, exc_info=info)
