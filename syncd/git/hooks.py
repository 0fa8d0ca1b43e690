"""Install Git hooks that notify the daemon when HEAD has moved or a push arrived, and uninstall them.

Law, tested: a hook of Memex costs Git two forks and cannot make Git fail; an earlier hook still runs, with its
arguments, input and exit status, and is restored byte for byte. Memex writes only to the hooks folder, and one line
of `info/exclude`, so that `git add` does not fail on a note that is being written."""

from __future__ import annotations

import os
import re
import secrets
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from index.errors import Conflict, PermissionDenied, Unavailable

HOOKS = ("post-commit", "post-merge", "post-checkout", "post-rewrite")
REMOTE_HOOKS = ("post-receive",)
BELLS = "bells"  # the folder in the state folder in which hooks touch a file
MOVED, PUSHED = "moved", "pushed"  # HEAD of the work tree moved; the remote got a push
BEFORE = ".before-memex"  # suffix of the name of an earlier hook
EXCLUDED = ".memex-*.tmp"  # temporary names of notes being written; see `path_rules.temporary_name`
MARK = "# memex hook:"
_HEAD = f"{MARK} notifies the daemon; `memex hook uninstall` restores the earlier hook"
_HEAD_LINE = re.compile(f"^{MARK}.*$", re.MULTILINE)  # versions of Memex differ in its words
_RING = re.compile(r"\( : > (.+) \) >/dev/null 2>&1 </dev/null &")

Found = Literal["installed", "wrapped", "absent", "other", "replaced", "changed"]


@dataclass(frozen=True, slots=True)
class Hook:
    """Describes one hook of a repository.

    wrapped: another program replaced Memex's hook, and runs it under a longer name. replaced: it does not run
    Memex's hook. changed: Memex's hook with changes that Memex did not make. other: a hook that is not of this
    vault."""

    name: str
    state: Found
    before: bool  # whether an earlier hook is kept and still runs


def script(name: str, bells: Sequence[str]) -> str:
    """Return a hook that touches these files and then runs the earlier hook."""
    rings = [f"( : > {shlex.quote(bell)} ) >/dev/null 2>&1 </dev/null &" for bell in bells]
    before = f'"${{0%/*}}/{name}{BEFORE}"'
    return "\n".join(["#!/bin/sh", _HEAD, *rings, f"[ -x {before} ] || exit 0", f'exec {before} "$@"', ""])


def bell_path(state: Path, name: str) -> str:
    """Return the file that the hook with this name touches."""
    return str(state / BELLS / (PUSHED if name in REMOTE_HOOKS else MOVED))


def find(folder: Path, names: Sequence[str], state: Path) -> list[Hook]:
    """Return the state of the hooks with these names."""
    return [
        Hook(
            name,
            _hook_state(folder / name, bell_path(state, name)),
            os.path.lexists(previous_hook_path(folder / name)),
        )
        for name in names
    ]


def facts(folder: Path, state: Path) -> dict[str, Any]:
    """Return the names of the hooks that notify the daemon of this state folder, and the problems of others."""
    hooks = find(folder, HOOKS, state)
    return {
        "hooks": [hook.name for hook in hooks if hook.state in ("installed", "wrapped")],
        "hooks_amiss": {hook.name: hook.state for hook in hooks if hook.state in ("changed", "replaced")},
    }


def install(folder: Path, names: Sequence[str], state: Path) -> list[Hook]:
    """Make sure that these hooks notify the daemon of the state folder; repeating it changes nothing."""
    with _translate_errors(folder):
        (state / BELLS).mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        for hook in find(folder, names, state):
            if hook.state in ("changed", "replaced"):
                raise Conflict(_describe_problem(folder, hook), hook=hook.name)
        for name in names:
            path, bell = folder / name, bell_path(state, name)
            kept = _find_hook_file(path)
            bells = _read_bells(kept, name)
            if bell in bells:
                continue
            if not bells and os.path.lexists(path):
                path.rename(previous_hook_path(path))
            _write_atomically(kept, script(name, [*bells, bell]))
    return find(folder, names, state)


def uninstall(folder: Path, names: Sequence[str], state: Path) -> list[Hook]:
    """Remove this state folder from the hooks, and a hook that notifies nobody else; earlier hooks are restored."""
    with _translate_errors(folder):
        for hook in find(folder, names, state):
            path, bell = folder / hook.name, bell_path(state, hook.name)
            kept = _find_hook_file(path)
            left = [other for other in _read_bells(kept, hook.name) if other != bell]
            match hook.state:
                case "changed":
                    raise Conflict(_describe_problem(folder, hook), hook=hook.name)
                case "installed" | "wrapped" if left:
                    _write_atomically(kept, script(hook.name, left))
                case "installed" | "wrapped":
                    _restore(previous_hook_path(path), kept)
                case "absent":
                    _restore(previous_hook_path(path), path)
                case "other" | "replaced":
                    pass  # no hook of Memex runs there
    return find(folder, names, state)


def update_exclude_file(info: Path, *, wanted: bool) -> None:
    """Set whether Git ignores notes that are being written: `git add` fails when one is renamed meanwhile."""
    file = (info / "exclude").resolve()
    with _translate_errors(info):
        try:
            text, mode = file.read_bytes(), file.stat().st_mode & 0o777
        except FileNotFoundError:
            text, mode = b"", 0o644
        line = EXCLUDED.encode() + b"\n"
        lines = text.splitlines(keepends=True)
        if (line in lines) == wanted:
            return
        if wanted:
            info.mkdir(exist_ok=True)
            text += (b"\n" if text and not text.endswith(b"\n") else b"") + line
        else:
            text = b"".join(other for other in lines if other != line)
        _write_atomically(file, text, mode=mode)


def _hook_state(path: Path, bell: str) -> Found:
    text, kept = _read_text(path), _find_hook_file(path)
    bells = _read_bells(kept, path.name)
    if bell in bells:
        return "installed" if kept == path else "wrapped"
    if not os.path.lexists(path):
        return "absent"
    if bells:
        return "other"
    if text is not None and MARK in text:
        return "changed"
    return "replaced" if os.path.lexists(previous_hook_path(path)) else "other"


def _find_hook_file(path: Path) -> Path:
    """Return the file with Memex's hook: `path`, or the name another program gave it."""
    others = sorted(path.parent.glob(f"{path.name}[.-]*"))
    return next((file for file in (path, *others) if _read_bells(file, path.name)), path)


def _read_bells(file: Path, name: str) -> list[str]:
    """Return the files that a hook of Memex touches; none when it is not exactly as Memex writes it."""
    text = _read_text(file) or ""
    bells: list[str] = []
    with suppress(ValueError):  # an unclosed quote
        for quoted in _RING.findall(text):
            bells += shlex.split(quoted)
    ours = _HEAD_LINE.sub(_HEAD, text, count=1) == script(name, bells)
    return bells if ours and os.access(file, os.X_OK) else []


def _read_text(path: Path) -> str | None:
    """Return the hook as text, whatever its bytes; None when there is no regular file to read."""
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape") if path.is_file() else None
    except OSError:
        return None


def _write_atomically(path: Path, text: str | bytes, *, mode: int = 0o755) -> None:
    """Write all or nothing; the file always exists meanwhile."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        fresh.write_bytes(text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text)
        fresh.chmod(mode)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def _restore(before: Path, path: Path) -> None:
    if os.path.lexists(before):
        before.replace(path)
    else:
        path.unlink(missing_ok=True)


def previous_hook_path(path: Path) -> Path:
    """Return where a hook of the person is kept that Memex's hook at `path` runs too."""
    return path.with_name(path.name + BEFORE)


def _describe_problem(folder: Path, hook: Hook) -> str:
    path = folder / hook.name
    if hook.state == "changed":
        return f"{path} is Memex's hook, but somebody has changed it: move it away, then run `memex hook install` again"
    return (
        f"{path} replaced Memex's hook, which also ran {previous_hook_path(path).name}: "
        "move away the hook that you no longer need, then run `memex hook install` again"
    )


@contextmanager
def _translate_errors(folder: Path) -> Iterator[None]:
    """Translate system errors into errors that name the folder and the solution."""
    try:
        yield
    except PermissionError as error:
        raise PermissionDenied(
            f"{folder} is not writable for this user: run the command as the owner of the repository"
        ) from error
    except OSError as error:
        raise Unavailable(f"{folder} can't be written: {error.strerror}", retryable=False) from error
