"""Check the host for the doctor: the vault, the kernel's limits, Git, the disk, the clock and the port."""

from __future__ import annotations

import os
import re
import socket
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from index.errors import MemexError
from syncd.cli.doctor.doctor import DoctorContext, Finding, Rank, mine, word
from syncd.git.repository_state import UNWELL
from syncd.state.ledger import SQLITE_HERE
from syncd.vault.vault import Vault
from syncd.version import installed
from syncd.watch.network_mounts import remote

# ruff: noqa: PLC0415 - Git takes longer to import than most checks to run
SQLITE = (3, 37)  # STRICT tables
INOTIFY = Path("/proc/sys/fs/inotify")
FULL, TIGHT = 200 << 20, 2 << 30  # bytes left on a disk: too few to work, few
INODES = 1_000
AHEAD_S = 300.0  # a file's time may be ahead of ours by as much
BEFORE = 1_735_689_600  # 2025: no clock that is right is behind it


def vault(patient: DoctorContext) -> Iterator[Finding]:
    """The folder of notes, and whether the kernel tells what changes in it."""
    root = patient.vault
    try:
        found = root.stat()
    except OSError as error:
        yield Finding(
            "vault", "wrong", f"{root} can't be opened: {error.strerror}", f"ls -ld {word(root)}; is its disk mounted?"
        )
        return
    if not stat.S_ISDIR(found.st_mode):
        yield Finding("vault", "wrong", f"{root} is no folder", "memex status --vault THE_FOLDER_OF_NOTES")
        return
    if not os.access(root, os.R_OK | os.X_OK):
        yield Finding("vault", "wrong", f"{root} may not be read", f"chmod u+rx {word(root)}")
        return
    if not os.access(root, os.W_OK):
        yield Finding(
            "vault", "wrong", f"{root} may not be written, so nothing can be captured", f"chmod u+w {word(root)}"
        )
    elif kind := remote(str(root)):
        says = f"{root} lies on {kind}, which may not tell of changes made elsewhere; it is listed often instead"
        yield Finding("vault", "advice", says, "nothing need be done; changes made elsewhere are found a little later")
    else:
        yield Finding("vault", "ok", str(root))


def inbox(patient: DoctorContext) -> Iterator[Finding]:
    """The folder that agents write to."""
    if not patient.vault.is_dir():
        return
    name = patient.settings.vault.inbox
    folder = patient.vault / name
    found = mine(folder)
    if found is None:
        yield Finding(
            "inbox",
            "wrong",
            f"{name}/ is missing, so nothing can be captured",
            f"memex init {word(patient.vault)}",
            partial(_adopted, patient),
        )
    elif not stat.S_ISDIR(found.st_mode):
        what = "a link, which is not followed" if stat.S_ISLNK(found.st_mode) else "no folder"
        yield Finding(
            "inbox",
            "wrong",
            f"{name} is {what}",
            f"mv {word(folder)} {word(folder)}.aside; memex init {word(patient.vault)}",
        )
    elif not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield Finding("inbox", "wrong", f"{name}/ may not be read and written", f"chmod u+rwx {word(folder)}")
    else:
        yield Finding("inbox", "ok", f"{name}/ can be read and written")


def _adopted(patient: DoctorContext) -> str:
    opened = Vault(patient.vault)
    try:
        opened.make_folder(f"{patient.settings.vault.inbox}/default")
    finally:
        opened.close()
    return f"made {patient.settings.vault.inbox}/default"


def watches(patient: DoctorContext) -> Iterator[Finding]:
    """Whether the kernel lets every folder of the vault be watched."""
    limit = _number(INOTIFY / "max_user_watches")
    if limit is None or not patient.vault.is_dir():
        return
    try:
        opened = Vault(patient.vault, ignore=patient.settings.vault.ignore)
    except MemexError:
        return  # told by the check of the vault
    try:
        needed = 1 + _folders(opened)
    finally:
        opened.close()
    raise_it = "echo fs.inotify.max_user_watches={} | sudo tee /etc/sysctl.d/60-memex.conf; sudo sysctl --system"
    if needed > limit:
        says = (
            f"{needed:,} folders need a watch each, and {limit:,} are allowed: changes are found by listing, so later"
        )
        yield Finding("watch", "wrong", says, raise_it.format(max(524_288, needed * 4)))
    elif needed * 2 > limit:
        says = f"{needed:,} folders need a watch each, of {limit:,} that all your programs share"
        yield Finding("watch", "advice", says, raise_it.format(max(524_288, needed * 4)))
    else:
        yield Finding("watch", "ok", f"{needed:,} folders, and {limit:,} watches are allowed")


def _folders(opened: Vault) -> int:
    count, waiting = 0, [""]
    while waiting:
        folder = waiting.pop()
        with suppress(MemexError):  # one that can't be read can't be watched either
            names = opened.folders(folder)
            count += len(names)
            waiting += [f"{folder}/{name}" if folder else name for name in names]
    return count


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def git(patient: DoctorContext) -> Iterator[Finding]:
    """The state of the repository, with the command that mends it."""
    if not patient.vault.is_dir():
        return
    from syncd.git.repository import Repository

    repo = Repository(patient.vault)
    try:
        found = repo.standing()
        advice = repo.advice(found)
    finally:
        repo.close()
    told = (patient.daemon or {}).get("git")
    if amiss := told.get("hooks_amiss") if isinstance(told, dict) else None:
        says = f"hooks of Memex were changed or replaced: {', '.join(sorted(amiss))}; Git is followed all the same"
        yield Finding("git", "advice", says, "memex hook install")
    if not advice:
        yield Finding("git", "ok", f"the vault has a history{f', on {found.branch}' if found.branch else ''}")
    else:
        rank: Rank = "wrong" if found.state in UNWELL else "advice"
        says, _, mend = advice.partition(": ")
        alone = re.fullmatch("run `([^`]+)`", mend)
        yield Finding("git", rank, f"{found.state}: {says}", alone[1] if alone else mend or says)


def disk(patient: DoctorContext) -> Iterator[Finding]:
    """Room for the notes and for the index."""
    seen = set()
    for name, folder in (("vault", patient.vault), ("state", patient.state)):
        try:
            device, room = folder.stat().st_dev, os.statvfs(folder)
        except OSError:
            continue
        if device in seen:
            continue
        seen.add(device)
        left = room.f_bavail * room.f_frsize
        few = room.f_files > 0 and room.f_favail < INODES
        told = f"{left / (1 << 30):,.1f} GB left on the disk of the {name}" + (
            ", and hardly a file more fits" if few else ""
        )
        if left < FULL or few:
            yield Finding("disk", "wrong", told, f"free some space: du -xh -d 2 {word(folder)}")
        elif left < TIGHT:
            yield Finding("disk", "advice", told, f"free some space: du -xh -d 2 {word(folder)}")
        else:
            yield Finding("disk", "ok", told)


def clock(patient: DoctorContext) -> Iterator[Finding]:
    """The clock, and files that say they come from the future."""
    present = time.time()
    if present < BEFORE:
        yield Finding(
            "clock",
            "wrong",
            f"it shows {time.strftime('%Y-%m-%d', time.gmtime(present))}",
            "sudo timedatectl set-ntp true",
        )
        return
    try:
        opened = Vault(patient.vault, ignore=patient.settings.vault.ignore)
    except MemexError:
        return  # told by the check of the vault
    try:
        files = opened.listing().files
    finally:
        opened.close()
    ahead = sorted(path for path, one in files.items() if one.mtime_ns / 1e9 > present + AHEAD_S)
    if ahead:
        says = f"{len(ahead):,} notes have a time in the future, such as {ahead[0]}: they are sorted as the newest"
        yield Finding("clock", "advice", says, "if the clock is right, save those notes again")
    else:
        yield Finding(
            "clock",
            "ok",
            f"it shows {time.strftime('%Y-%m-%d %H:%M', time.localtime(present))}, and no note is ahead of it",
        )


def versions(_: DoctorContext) -> Iterator[Finding]:
    """Python and SQLite."""
    python = ".".join(map(str, sys.version_info[:3]))
    sqlite = ".".join(map(str, SQLITE_HERE))
    if SQLITE_HERE < SQLITE:
        yield Finding("versions", "wrong", f"SQLite {sqlite} is too old", "install a Python with SQLite 3.37 or newer")
    else:
        yield Finding("versions", "ok", f"Memex {installed()}, Python {python}, SQLite {sqlite}")


def port(patient: DoctorContext) -> Iterator[Finding]:
    """Whether the daemon has its port, or could have it."""
    if patient.pid is not None:
        return  # told by the check of the daemon
    own = patient.settings.server
    family = socket.AF_INET6 if ":" in own.host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((own.host, own.port))
        except OSError as error:
            says = f"{own.host}:{own.port} can't be listened on: {error.strerror}"
            yield Finding("port", "wrong", says, f"memex serve --port 0, or: ss -ltnp 'sport = :{own.port}'")
        else:
            yield Finding("port", "ok", f"{own.host}:{own.port} is free" if own.port else "a free one is picked")


def files(patient: DoctorContext) -> Iterator[Finding]:
    """The files that documents hold the text of, as the daemon knows them."""
    told = patient.daemon.get("files") if patient.daemon else None
    if not told:
        return
    for path in told["missing"]:
        yield Finding("files", "advice", f"{path} is gone; its note is left", "put it back, or delete the note")
    for one in told["unread"]:
        yield Finding("files", "advice", f"{one['path']} is not read: {one['reason']}", "it is tried again by itself")
    if not told["missing"] and not told["unread"]:
        yield Finding("files", "ok", f"{told['known']:,} have a note, {told['waiting']:,} wait to be read")


HOST_CHECKS = (versions, vault, inbox, files, port, watches, git, disk, clock)
