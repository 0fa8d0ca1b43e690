"""A transcript of a terminal: commands at a pseudo-terminal, and every line that they print with the second it appeared at.

Law, tested: what was started is gone at the end of the block, with all its children."""

from __future__ import annotations

import codecs
import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.until import until

SIZE: Final = (50, 160)  # rows and columns
CONTROL: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[=>()78][AB0]?|\x07")
KEY: Final = re.compile(r"\bmx_[0-9a-f]{12}_[0-9a-f]{64}\b")
STOP_S: Final = 45.0
PATIENCE: Final = 900.0  # seconds, for a download over a slow line
Answers = Iterable[tuple[str, str]]  # what a program asks, and what is typed then


class Failed(Exception):
    """A program ended with another exit code than 0, or before it printed what it should."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line, without colours. `mark` is "$" for a command, " " for its output, "|" for that of a program in the background."""

    second: float
    mark: str
    text: str

    def __str__(self) -> str:
        return f"{self.second:7.1f}  {self.mark} {KEY.sub('mx_…', self.text)}"


class Transcript:
    """The lines of one terminal in the order in which they appeared; with `echo` each goes to the standard error output, too."""

    def __init__(self, folder: Path, environ: Mapping[str, str], *, echo: bool = False) -> None:
        self.folder, self.environ = folder, dict(environ)
        self.lines: list[Line] = []
        self.programs: list[Program] = []
        self._echo, self._begun, self._lock = echo, time.monotonic(), threading.Lock()

    def add(self, mark: str, text: str) -> Line:
        """Take a line that appears now."""
        with self._lock:
            line = Line(self.second, mark, text)
            self.lines.append(line)
            if self._echo:
                sys.stderr.write(f"{line}\n")
        return line

    @property
    def second(self) -> float:
        """Return the seconds since the beginning."""
        return time.monotonic() - self._begun

    def enter(self, folder: str) -> None:
        """Change the folder in which commands run."""
        self.add("$", f"cd {folder}")
        self.folder /= folder

    def start(self, command: str, answers: Answers = (), *, mark: str = "|") -> Program:
        """Begin a command of the shell."""
        begun = self.add("$", command)
        self.programs.append(Program(self, command, begun, deque(answers), mark))
        return self.programs[-1]

    def run(self, command: str, answers: Answers = ()) -> Program:
        """Run a command to its end. Raises Failed."""
        program = self.start(command, answers, mark=" ")
        program.wait()
        return program

    @property
    def silence(self) -> tuple[float, str]:
        """Return the longest time without a new line, and the line before it."""
        gaps = [
            (later.second - line.second, line.text) for line, later in zip(self.lines, self.lines[1:], strict=False)
        ]
        return max(gaps, default=(0.0, ""))


class Program:
    """A command at a pseudo-terminal of its own, the leader of a session."""

    def __init__(
        self, transcript: Transcript, command: str, begun: Line, answers: deque[tuple[str, str]], mark: str
    ) -> None:
        self.command, self.begun, self.seconds, self.lines = command, begun, 0.0, list[Line]()
        self._transcript, self._answers, self._mark = transcript, answers, mark
        self._terminal, other_end = pty.openpty()
        termios.tcsetwinsize(other_end, SIZE)
        try:
            self._process = subprocess.Popen(
                ["bash", "-c", command],
                stdin=other_end,
                stdout=other_end,
                stderr=other_end,
                env=transcript.environ,
                cwd=transcript.folder,
                start_new_session=True,
            )
        finally:
            os.close(other_end)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        decode, rest = codecs.getincrementaldecoder("utf-8")("replace").decode, ""
        while chunk := self._chunk():
            *whole, rest = (rest + decode(chunk)).split("\n")
            for line in whole:
                self._add(line)
            if self._answers and self._answers[0][0] in rest:
                os.write(self._terminal, self._answers.popleft()[1].encode())
        if rest:
            self._add(rest)

    def _chunk(self) -> bytes:
        try:
            return os.read(self._terminal, 65_536)
        except OSError:  # every process has closed the other end
            return b""

    def _add(self, printed: str) -> None:
        shown = (
            CONTROL.sub("", printed).rstrip("\r").rpartition("\r")[2].rstrip()
        )  # what overwrote the rest of its line
        self.lines.append(self._transcript.add(self._mark, shown))

    def first(self, pattern: str, *, after: Line | None = None, within: float = PATIENCE) -> Line:
        """Wait for a line in which `pattern` is found. Raises Failed."""

        def found() -> Line | None:
            over, lines = not self._reader.is_alive(), list(self.lines)
            later = lines[lines.index(after) + 1 :] if after else lines
            line = next((line for line in later if re.search(pattern, line.text)), None)
            if over and not line:
                raise Failed(f"{self.command} ended before it printed {pattern!r}")
            return line

        line = until(found, within)
        assert line
        return line

    def wait(self, within: float = PATIENCE) -> None:
        """Wait for the end. Raises Failed."""
        self._reader.join(within)
        if self._reader.is_alive():
            raise Failed(f"{self.command} did not end within {within:g} s")
        code = self._process.wait(within)
        if code:
            self._transcript.add(self._mark, f"(exit code {code})")
            raise Failed(f"{self.command} ended with exit code {code}")
        self.seconds = self._transcript.second - self.begun.second

    def stop(self) -> None:
        """End it and its children: by SIGTERM, and by SIGKILL if that takes too long."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._reader.is_alive() or self._process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, number)
                self._reader.join(STOP_S)
        self._process.wait(STOP_S)
        os.close(self._terminal)


@contextmanager
def recorded(folder: Path, environ: Mapping[str, str], *, echo: bool = False) -> Iterator[Transcript]:
    """A terminal in `folder` for the time of a block."""
    transcript = Transcript(folder, environ, echo=echo)
    try:
        yield transcript
    finally:
        interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C would leave programs behind
        for program in reversed(transcript.programs):
            program.stop()
        signal.signal(signal.SIGINT, interrupt)
