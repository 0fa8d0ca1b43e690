"""The doctor checks everything that Memex depends on, and names each fault with the one command that repairs it.

Law, tested: without `fix` the doctor changes nothing. With `fix` it changes only derived data, a permission of
Memex's own files, or an empty folder that Memex creates. It never touches a note, and asks no questions."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

from index.errors import MemexError, from_os_error
from index.names import pluralize
from syncd.cli.terminal.result_text import BOLD, DIM, GREEN, RED, YELLOW, colorize, line
from syncd.cli.terminal.text_width import hang_indent, pad
from syncd.daemon import control_socket
from syncd.settings.settings import Settings
from syncd.state import process_lock
from syncd.vault.path_rules import join
from syncd.vault.vault import Vault

ASKED_S = 15.0
Rank: TypeAlias = Literal["ok", "advice", "wrong"]
LABEL, INDENT = 11, 13  # cells of the name of a check, and of the mark with the name
MARKS: Mapping[str, tuple[str, str]] = {
    "ok": ("✓", GREEN),
    "advice": ("·", YELLOW),
    "wrong": ("✗", RED),
    "mended": ("+", GREEN),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """Holds one result of a check.

    `mend`: a command or instruction for a person. `fix`: repairs the fault and returns a description of the repair.
    `check`: the name of the check, which `examine` sets if the check does not."""

    is_: Rank
    says: str
    mend: str = ""
    fix: Callable[[], str] | None = field(default=None, compare=False)
    check: str = ""
    mended: str = ""  # the description that `fix` returned

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        shown = {"check": self.check, "is": self.is_, "says": self.says, "mend": self.mend}
        return shown | {"fixable": self.fix is not None, "mended": self.mended}


@dataclass(frozen=True)
class DoctorContext:
    """Holds the input of the checks: the settings in force, and the status of the daemon, if it answers."""

    settings: Settings
    environ: Mapping[str, str]
    pid: int | None  # of the process that holds the state folder
    daemon: Mapping[str, Any] | None  # its status
    silent: str = ""  # why it does not answer

    @property
    def state(self) -> Path:
        """Return the state folder."""
        return self.settings.state

    @property
    def vault(self) -> Path:
        """Return the vault's folder."""
        return self.settings.vault.path

    @cached_property
    def folders(self) -> list[str]:
        """Return the paths of all folders of the vault, except hidden and ignored ones; none if it can't be read.

        Several checks share one walk, which takes seconds in a large vault."""
        folders = [""]
        with (
            contextlib.suppress(MemexError),
            contextlib.closing(Vault(self.vault, ignore=self.settings.vault.ignore)) as opened,
        ):
            for folder in folders:
                with contextlib.suppress(MemexError):  # an unreadable folder can't be watched either
                    folders += [join(folder, name) for name in opened.list_folders(folder)]
        return folders[1:]


Check: TypeAlias = Callable[[DoctorContext], Iterable[Finding]]


def read_context(settings: Settings, environ: Mapping[str, str]) -> DoctorContext:
    """Ask the daemon of these settings for its status, and return the input of the checks."""
    pid = process_lock.holder_pid(settings.state)
    try:
        facts = control_socket.call(settings.state, "status", {}, timeout=ASKED_S)
    except control_socket.NoDaemon:
        return DoctorContext(settings, environ, pid, None)
    except MemexError as error:
        return DoctorContext(settings, environ, pid, None, error.message)
    return DoctorContext(settings, environ, pid, facts)


def examine(
    settings: Settings,
    environ: Mapping[str, str],
    checks: Sequence[Check],
    *,
    fix: bool,
    progress: Callable[[Mapping[str, Any]], None] = lambda _: None,
) -> Iterator[Finding]:
    """Run the checks, and yield each finding. With `fix`, repair what is fixable, and run the check again."""
    progress({"stage": "asking the daemon", "done": 0, "total": len(checks)})
    context = read_context(settings, environ)
    for number, check in enumerate(checks):
        progress({"stage": f"checking {_name(check)}", "done": number, "total": len(checks)})
        findings = list(_run_check(check, context))
        mended = [done for finding in findings if fix and finding.fix and (done := _apply_fix(finding)).mended]
        if mended:
            context = read_context(settings, environ)
            yield from mended
            yield from (finding for finding in _run_check(check, context) if finding.is_ != "ok")
        else:
            yield from findings


def _run_check(check: Check, context: DoctorContext) -> Iterator[Finding]:
    """Yield the findings of a check; a check that fails is a finding too, so that the other checks run."""
    name = _name(check)
    try:
        yield from (replace(finding, check=finding.check or name) for finding in check(context))
    except (MemexError, OSError) as error:
        reason = (error if isinstance(error, MemexError) else from_os_error(error)).message
        yield Finding("wrong", f"the check could not finish: {reason}", "memex status", check=name)


def _name(check: Check) -> str:
    return check.__name__.removeprefix("check_").strip("_").replace("_", " ")


def _apply_fix(finding: Finding) -> Finding:
    assert finding.fix is not None
    try:
        return replace(finding, mended=finding.fix(), is_="ok")
    except (MemexError, OSError):  # the finding stays as it is
        return finding


def is_healthy(findings: Iterable[Finding]) -> bool:
    """Check that nothing is wrong; advice does not count."""
    return all(finding.is_ != "wrong" for finding in findings)


def format_finding(finding: Finding, *, width: int = 80, color: bool = False) -> str:
    """Format one finding for people."""
    mark, style = MARKS["mended" if finding.mended else finding.is_]
    head = f"{mark} {pad(finding.check, LABEL - 1)} "
    says = f"repaired: {finding.mended}" if finding.mended else finding.says
    first, *others = (line(part, 1_000) for part in says.splitlines() or [""])
    lines = hang_indent(head, first, width, INDENT)
    lines += [text for part in others for text in hang_indent(" " * INDENT, part, width)]
    lines[0] = colorize(mark, style, color) + lines[0][1:]
    if finding.mend and not finding.mended and finding.is_ != "ok":
        mend, arrow = line(finding.mend, 600), " " * INDENT + "→ "
        way = (
            hang_indent(arrow, mend, width, INDENT) if "`" in mend else [arrow + mend]
        )  # a command stays on one line, so that it can be pasted
        lines += [colorize(text, BOLD, color) for text in way]
    return "\n".join(lines)


def format_summary(findings: Sequence[Finding], *, color: bool = False) -> str:
    """Format the last line: the number of problems, and of those that `--fix` repairs."""
    wrong = [finding for finding in findings if finding.is_ == "wrong"]
    advice = sum(finding.is_ == "advice" for finding in findings)
    hint = f"; advice: {advice}" if advice else ""
    if not wrong:
        return colorize("no problems found", GREEN, color) + hint
    fixable = sum(finding.fix is not None for finding in wrong)
    more = f"; `memex doctor --fix` repairs {'it' if len(wrong) == 1 else fixable}" if fixable else ""
    return colorize(f"{pluralize(len(wrong), 'problem')} found", RED, color) + hint + colorize(more, DIM, color)


def quote_path(path: Path) -> str:
    """Quote `path` as one word for a shell."""
    return shlex.quote(str(path))


def restrict_mode(path: Path, mode: int) -> str:
    """Set the mode of `path`, which removes the access of other users, and return a description of the repair."""
    path.chmod(mode)
    return f"other users can no longer access {path}"


def remove_files(*paths: Path) -> str:
    """Remove files that a process left behind, and return a description of the repair."""
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
    return f"removed {', '.join(path.name for path in paths)}"


def lstat_or_none(path: Path) -> os.stat_result | None:
    """Return the stat of `path` without following links; None when it does not exist."""
    try:
        return path.lstat()
    except FileNotFoundError:
        return None
