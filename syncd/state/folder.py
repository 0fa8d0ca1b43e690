"""Find, create and claim the state folder of a vault, and remove the files that a crash left in it.

Law, tested: a state folder serves one vault, is open to its owner alone, and never lies in the vault. Law: only
names that Memex itself gives are removed, and only once they are older than any write takes."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from index.errors import Conflict, InvalidArgument, PermissionDenied, Unavailable

KEY_FILE, LEDGER = "key", "ledger.db"  # the owner's key, and what no file of the vault says


def path_digest(vault: Path) -> str:
    """A short name for the path of a vault."""
    return hashlib.sha256(os.fsencode(vault)).hexdigest()[:8]


def state_home(environ: Mapping[str, str]) -> Path:
    """The folder of the state folders, for which none is named."""
    return Path(environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "memex"


def default_state_folder(vault: Path, environ: Mapping[str, str]) -> Path:
    """The state folder of a vault for which none is named."""
    return state_home(environ) / f"{vault.name}-{path_digest(vault)}"


def read_vault_path(state: Path) -> Path | None:
    """The vault that a state folder belongs to, if it has been used and says so in one whole line."""
    try:
        line = read_regular_file(state / "vault")
    except OSError:
        return None
    path = line.removesuffix(b"\n")
    return Path(os.fsdecode(path)) if path != line and path[:1] == b"/" and b"\0" not in path else None


def claim(state: Path, vault: Path) -> None:
    """Make the state folder (mode 0700) and let it remember its vault. Conflict when it belongs to another vault."""
    if state == vault or vault in state.parents:
        raise InvalidArgument(f"the state folder {state} lies in the vault: pass a --state outside {vault}")
    before = read_vault_path(state)
    if before is not None and before != vault and before.is_dir() and not (vault.is_dir() and before.samefile(vault)):
        raise Conflict(f"the state folder {state} belongs to the vault {before}: pass another --state for {vault}")
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        if state.stat().st_uid != os.geteuid():
            raise PermissionDenied(f"the state folder {state} belongs to another user")
        state.chmod(0o700)
        if before != vault:
            write_private(state / "vault", os.fsdecode(vault) + "\n")
    except (FileExistsError, NotADirectoryError):
        raise InvalidArgument(f"the state folder {state} is a file: pass another --state") from None
    except PermissionError:
        raise PermissionDenied(f"the state folder {state} can't be made or written: pass another --state") from None
    except OSError as error:
        raise Unavailable(f"the state folder {state} can't be made: {error.strerror}") from error


def read_regular_file(path: Path) -> bytes:
    """The bytes of a file. OSError when there is none, or something else of which a read might never end."""
    with open(path, "rb", opener=_open_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "no regular file", str(path))
        return file.read()


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, durably, or not at all."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "w", encoding="utf-8", errors="surrogateescape") as stream:  # noqa: PTH123 - the descriptor is what makes it private
            stream.write(text)
            stream.flush()
            os.fsync(fd)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Let the names in a folder be on the disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# Names of unfinished files: of `write_private`, the control socket, index builds, backups and exported encoders.
UNFINISHED = re.compile(r"\.(?:control\.sock\.\d+|[\w.-]+\.[0-9a-f]{8}|[\w.-]+\.tmp|building-\w+|backup-\w+)")
PLACES = ("", "index", "models", "past")


def remove_unfinished(state: Path, *, older_s: float) -> list[str]:
    """Remove them from `state`; their names, from it."""
    gone = []
    for folder in (state / place for place in PLACES):
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            with suppress(OSError):  # somebody else was quicker, or it is not ours to remove
                status = path.lstat()
                if not UNFINISHED.fullmatch(path.name) or time.time() - status.st_ctime <= older_s:
                    continue
                if stat.S_ISDIR(status.st_mode):
                    shutil.rmtree(path)
                else:
                    path.unlink()
                gone.append(path.relative_to(state).as_posix())
    return gone
