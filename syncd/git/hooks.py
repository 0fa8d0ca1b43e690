"""Install Git hooks that notify the daemon when HEAD has moved or a push arrived, and uninstall them.

Law, tested: a hook of Memex costs Git two forks and cannot make Git fail; a hook that was there before still runs,
with its arguments, input and exit status, and comes back byte for byte. Memex writes only to the hooks folder, and
one line of `info/exclude`, so that `git add` does not fail on a note that is being written."""

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
BELLS = "bells"  # the folder of the state folder in which a hook touches a file
MOVED, PUSHED = "moved", "pushed"  # the work tree's Git has moved; its remote was pushed to
BEFORE = ".before-memex"  # what is added to the name of a hook that stood there before
EXCLUDED = ".memex-*.tmp"  # notes on their way to their own names; see `path_rules.temporary_name`
MARK = "# memex hook:"
_HEAD = f"{MARK} rings for the daemon; `memex hook uninstall` puts back what was here"
_RING = re.compile(r"\( : > (.+) \) >/dev/null 2>&1 </dev/null &")

Found = Literal["installed", "wrapped", "absent", "other", "replaced", "changed"]


@dataclass(frozen=True, slots=True)
class Hook:
    """One hook of a repository.

    wrapped: another program has put its own in the place of Memex's and kept that under a longer name, to run it.
    replaced: it has not kept it. changed: Memex's, with changes that it did not make. other: not of this vault."""

    name: str
    state: Found
    before: bool  # whether a hook stood there before that still runs


def script(name: str, bells: Sequence[str]) -> str:
    """A hook that rings these bells and then is the hook that stood there before."""
    rings = [f"( : > {shlex.quote(bell)} ) >/dev/null 2>&1 </dev/null &" for bell in bells]
    before = f'"${{0%/*}}/{name}{BEFORE}"'
    return "\n".join(["#!/bin/sh", _HEAD, *rings, f"[ -x {before} ] || exit 0", f'exec {before} "$@"', ""])


def bell_path(state: Path, name: str) -> str:
    """The file that the hook of that name touches."""
    return str(state / BELLS / (PUSHED if name in REMOTE_HOOKS else MOVED))


def find(folder: Path, names: Sequence[str], state: Path) -> list[Hook]:
    """How the hooks of these names are."""
    return [
        Hook(
            name,
            _hook_state(folder / name, bell_path(state, name)),
            os.path.lexists(_previous_hook_path(folder / name)),
        )
        for name in names
    ]


def facts(folder: Path, state: Path) -> dict[str, Any]:
    """The names of the hooks that ring for the daemon of this state folder, and what is amiss with others."""
    hooks = find(folder, HOOKS, state)
    return {
        "hooks": [hook.name for hook in hooks if hook.state in ("installed", "wrapped")],
        "hooks_amiss": {hook.name: hook.state for hook in hooks if hook.state in ("changed", "replaced")},
    }


def install(folder: Path, names: Sequence[str], state: Path) -> list[Hook]:
    """Make sure that these hooks ring for the daemon of the state folder; a second time changes nothing."""
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
                path.rename(_previous_hook_path(path))
            _write_atomically(kept, script(name, [*bells, bell]))
    return find(folder, names, state)


def uninstall(folder: Path, names: Sequence[str], state: Path) -> list[Hook]:
    """Take the bell of this state folder away, and with the last bell the hook; what stood there before is back."""
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
                    _restore(_previous_hook_path(path), kept)
                case "absent":
                    _restore(_previous_hook_path(path), path)
                case "other" | "replaced":
                    pass  # nothing of ours runs there
    return find(folder, names, state)


def update_exclude_file(info: Path, *, wanted: bool) -> None:
    """Whether Git is to overlook notes that are being written: `git add` fails when one gets its own name meanwhile."""
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
    return "replaced" if os.path.lexists(_previous_hook_path(path)) else "other"


def _find_hook_file(path: Path) -> Path:
    """The file that holds Memex's hook: `path`, or what another program has made of it on taking its place."""
    others = sorted(path.parent.glob(f"{path.name}[.-]*"))
    return next((file for file in (path, *others) if _read_bells(file, path.name)), path)


def _read_bells(file: Path, name: str) -> list[str]:
    """The bells that a hook of Memex rings; none when it is not exactly as Memex writes it."""
    text = _read_text(file) or ""
    bells: list[str] = []
    with suppress(ValueError):  # a quote that does not end
        for quoted in _RING.findall(text):
            bells += shlex.split(quoted)
    return bells if text == script(name, bells) and os.access(file, os.X_OK) else []


def _read_text(path: Path) -> str | None:
    """The hook as text, whatever its bytes; None when there is no regular file to read."""
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape") if path.is_file() else None
    except OSError:
        return None


def _write_atomically(path: Path, text: str | bytes, *, mode: int = 0o755) -> None:
    """All of it or nothing, and never a moment without the file."""
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


def _previous_hook_path(path: Path) -> Path:
    return path.with_name(path.name + BEFORE)


def _describe_problem(folder: Path, hook: Hook) -> str:
    path = folder / hook.name
    if hook.state == "changed":
        return f"{path} is Memex's hook with changes of another: move it away, then run `memex hook install` again"
    return (
        f"{path} was put in the place of Memex's hook, which ran {_previous_hook_path(path).name} too: "
        "move away the one of the two that is no longer wanted, then run `memex hook install` again"
    )


@contextmanager
def _translate_errors(folder: Path) -> Iterator[None]:
    """Errors of the system, with the folder and the way out."""
    try:
        yield
    except PermissionError as error:
        raise PermissionDenied(f"{folder} may not be written: run this as the user whose repository it is") from error
    except OSError as error:
        raise Unavailable(f"{folder} can't be written: {error.strerror}", retryable=False) from error
