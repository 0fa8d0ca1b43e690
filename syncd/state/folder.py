"""Find, create and claim the state folder of a vault, and remove the files that a crash left in it.

Laws, tested: a state folder serves one vault, is accessible only to its owner, and is never in the vault; only names
that Memex gives are removed, and only once they are older than any write takes."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from index.document_ids import sha256
from index.errors import Conflict, InvalidArgument, PermissionDenied, Unavailable

KEY_FILE, LEDGER = "key", "ledger.db"  # the owner's key, and the state that is not in the vault's files


def expand_home(path: str | Path) -> Path:
    """Return `path` with a leading `~` or `~name` replaced by that user's home folder; an unknown user's name stays."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - Path.expanduser() raises RuntimeError for an unknown user


def path_digest(vault: Path) -> str:
    """Return a short name for the path of a vault."""
    return sha256(os.fsencode(vault))[:8]


def state_home(environ: Mapping[str, str]) -> Path:
    """Return the folder of the state folders whose path is not set."""
    return expand_home(environ.get("XDG_STATE_HOME") or "~/.local/state") / "memex"


def default_state_folder(vault: Path, environ: Mapping[str, str]) -> Path:
    """Return the state folder of a vault for which none is set."""
    return state_home(environ) / f"{vault.name}-{path_digest(vault)}"


def read_vault_path(state: Path) -> Path | None:
    """Return the vault of a state folder, if it was used and its record is complete."""
    try:
        line = read_regular_file(state / "vault")
    except OSError:
        return None
    path = line.removesuffix(b"\n")
    return Path(os.fsdecode(path)) if path != line and path[:1] == b"/" and b"\0" not in path else None


def holds_key(state: Path, id: str) -> bool:
    """Return whether the file with the owner's key holds the key with this id."""
    file = state / KEY_FILE
    with suppress(OSError, UnicodeDecodeError):
        return file.is_file() and file.read_text().startswith(f"mx_{id}_")
    return False


def claim(state: Path, vault: Path) -> None:
    """Create the state folder (mode 0700) and record its vault. Raises Conflict when it belongs to another vault."""
    if Path(os.path.realpath(state)).is_relative_to(os.path.realpath(vault)):
        raise InvalidArgument(f"the state folder {state} is in the vault: pass a --state outside {vault}")
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
        raise PermissionDenied(f"the state folder {state} can't be created or written: pass another --state") from None
    except OSError as error:
        raise Unavailable(f"the state folder {state} can't be created: {error.strerror}") from error


def read_regular_file(path: Path) -> bytes:
    """Return the bytes of a file.

    Raises OSError if it is missing, or not a regular file, whose read might never end."""
    with open(path, "rb", opener=_open_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return file.read()


def read_named_file(path: Path) -> bytes:
    """Return the bytes of a file that a person names: a regular file, or a device or descriptor, such as `/dev/stdin`.

    Raises OSError as `read_regular_file` does."""
    return path.read_bytes() if str(path.parent) in ("/dev", "/dev/fd") else read_regular_file(path)


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, durably, or not at all."""
    fresh = _write_beside(path, text)
    try:
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    sync_folder(path.parent)


@contextmanager
def writing_private(path: Path, text: str) -> Iterator[None]:
    """Write a file as `write_private` does. Before the block its text is on disk, after the block it is in place.

    If the text can't be written, the block does not run; if the block fails, the file stays as it was. If the file can't
    be replaced after the block, raises Unavailable, which names the file with the text: there may be no other copy."""
    fresh = _write_beside(path, text)
    try:
        yield
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    try:
        fresh.replace(path)
    except OSError as error:
        with suppress(OSError):  # the cleanup of unfinished files would remove the present name
            fresh = fresh.rename(path.with_name(f"{path.name}.new"))
        raise Unavailable(
            f"{path} can't be replaced ({error.strerror}); its new content is in {fresh}: rename that file",
            retryable=False,
        ) from error
    sync_folder(path.parent)


def _write_beside(path: Path, text: str) -> Path:
    """Write a private file in the folder of `path`, durably, and return its path."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "w", encoding="utf-8", errors="surrogateescape") as stream:  # noqa: PTH123 - the descriptor makes it private
            stream.write(text)
            stream.flush()
            os.fsync(fd)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    return fresh


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to the disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# Names of unfinished files: of `write_private`, the control socket, index builds, backups and exported encoders.
UNFINISHED = re.compile(r"\.(?:control\.sock\.\d+|[\w.-]+\.[0-9a-f]{8}|[\w.-]+\.tmp|building-\w+|backup-\w+)")
PLACES = ("", "index", "models", "page", "past")


def remove_unfinished(state: Path, *, older_s: float) -> list[str]:
    """Remove unfinished files from `state`; return their paths relative to it."""
    gone = []
    for folder in (state / place for place in PLACES):
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            with suppress(OSError):  # already removed, or not removable by this user
                status = path.lstat()
                if not UNFINISHED.fullmatch(path.name) or time.time() - status.st_ctime <= older_s:
                    continue
                if stat.S_ISDIR(status.st_mode):
                    shutil.rmtree(path)
                else:
                    path.unlink()
                gone.append(path.relative_to(state).as_posix())
    return gone
