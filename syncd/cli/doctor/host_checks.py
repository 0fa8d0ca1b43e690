"""Check the host for the doctor: the vault, the kernel's limits, Git, the disk, the clock and the port."""

from __future__ import annotations

import os
import re
import socket
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

from index.errors import Conflict, InvalidArgument, MemexError
from index.names import pluralize
from syncd.cli.doctor.doctor import DoctorContext, Finding, Rank, lstat_or_none, quote_path
from syncd.git.hooks import previous_hook_path
from syncd.git.repository_state import UNWELL
from syncd.installation.vault_setup import moved_vault_advice
from syncd.state.damage import READ_ONLY, REMOUNT, is_read_only
from syncd.state.ledger import SQLITE_HERE
from syncd.vault.vault import Vault
from syncd.version import installed
from syncd.watch.network_mounts import remote_kind
from syncd.workspaces.api_keys import read_environment_keys

# ruff: noqa: PLC0415 - importing the Git modules takes longer than running most checks
NEW_INBOX = "memex workspace create default"
SQLITE = (3, 37)  # the first version with STRICT tables
INOTIFY = Path("/proc/sys/fs/inotify")
FULL, TIGHT = 200 << 20, 2 << 30  # free bytes on a disk below which the check fails, or warns
INODES = 1_000  # least free inodes
AHEAD_S = 300.0  # most seconds that a file's time may be in the future
# States of a repository whose advice says why Memex can't commit.
_EXPLAINED = frozenset({*UNWELL, "locked", "mid-operation", "detached"})
BEFORE = 1_735_689_600  # 2025-01-01: an earlier time means that the clock is wrong


def check_vault(context: DoctorContext) -> Iterator[Finding]:
    """Check that the vault can be read and written, and that the kernel reports changes in it."""
    root = context.vault
    try:
        info = root.stat()
    except OSError as error:
        yield Finding(
            "wrong",
            f"{root} can't be opened: {error.strerror}",
            f"ls -ld {quote_path(root)}; is its disk mounted; {moved_vault_advice(context.settings)}",
        )
        return
    if not stat.S_ISDIR(info.st_mode):
        yield Finding("wrong", f"{root} is not a folder", "memex status --vault THE_FOLDER_OF_NOTES")
        return
    if not os.access(root, os.R_OK | os.X_OK):
        yield Finding("wrong", f"Memex has no permission to read {root}", f"chmod u+rx {quote_path(root)}")
        return
    if is_read_only(root):
        yield Finding("wrong", f"{root} {READ_ONLY}, so captures fail", REMOUNT)
    elif not os.access(root, os.W_OK):
        yield Finding(
            "wrong", f"Memex has no permission to write {root}, so captures fail", f"chmod u+w {quote_path(root)}"
        )
    elif kind := remote_kind(str(root)):
        says = f"{root} is on {kind}, which may not report changes from other machines, so Memex lists the vault often"
        yield Finding("advice", says, "no action needed; Memex finds changes from other machines a little later")
    else:
        yield Finding("ok", str(root))


def check_inbox(context: DoctorContext) -> Iterator[Finding]:
    """Check that the inbox exists and can be read and written."""
    if not context.vault.is_dir():
        return
    name = context.settings.vault.inbox
    folder = context.vault / name
    info = lstat_or_none(folder)
    if info is None:
        yield Finding("wrong", f"{name}/ is missing, so captures fail", NEW_INBOX, partial(_make_inbox, context))
    elif not stat.S_ISDIR(info.st_mode):
        what = "a link, which Memex does not follow" if stat.S_ISLNK(info.st_mode) else "not a folder"
        yield Finding("wrong", f"{name} is {what}", f"mv {quote_path(folder)} {quote_path(folder)}.aside; {NEW_INBOX}")
    elif is_read_only(folder):
        yield Finding("wrong", f"{name}/ {READ_ONLY}, so captures fail", REMOUNT)
    elif closed := closed_folders(folder):
        for path in closed:
            shown = path.relative_to(context.vault)
            says, mend = f"Memex has no permission to read and write {shown}/", f"chmod u+rwx {quote_path(path)}"
            yield Finding("wrong", says, mend)
    else:
        yield Finding("ok", f"Memex can read and write {name}/")


def check_folders(context: DoctorContext) -> Iterator[Finding]:
    """Check that all folders of the vault outside the inbox can be read."""
    inbox = context.vault / context.settings.vault.inbox
    for name in context.folders:
        path = context.vault / name
        if not os.access(path, os.R_OK | os.X_OK) and inbox not in (path, *path.parents):
            says = f"Memex has no permission to read {name}/, so searches find its notes as they were before"
            yield Finding("wrong", says, f"chmod u+rx {quote_path(path)}")


def closed_folders(inbox: Path) -> list[Path]:
    """Return the inbox, or the folders in it, that this user can't read and write; links are not followed."""
    may = os.R_OK | os.W_OK | os.X_OK
    if not os.access(inbox, may):
        return [inbox]
    below = (Path(parent) / name for parent, names, _ in os.walk(inbox) for name in names)
    return sorted(path for path in below if not path.is_symlink() and not os.access(path, may))


def _make_inbox(context: DoctorContext) -> str:
    with closing(Vault(context.vault)) as opened:
        opened.make_folder(f"{context.settings.vault.inbox}/default")
    return f"created {context.settings.vault.inbox}/default"


def check_watch(context: DoctorContext) -> Iterator[Finding]:
    """Check that the kernel's limit allows a watch for every folder of the vault."""
    limit = _read_number(INOTIFY / "max_user_watches")
    if limit is None or not context.vault.is_dir():
        return
    needed = 1 + len(context.folders)
    raise_it = "echo fs.inotify.max_user_watches={} | sudo tee /etc/sysctl.d/60-memex.conf; sudo sysctl --system"
    if needed > limit:
        says = f"{needed:,} folders need one watch each, but only {limit:,} are allowed, so Memex finds changes later, by listing"
        yield Finding("wrong", says, raise_it.format(max(524_288, needed * 4)))
    elif needed * 2 > limit:
        says = f"{needed:,} folders need one watch each, and all your programs share {limit:,} watches"
        yield Finding("advice", says, raise_it.format(max(524_288, needed * 4)))
    else:
        yield Finding("ok", f"{pluralize(needed, 'folder')}, and {limit:,} watches are allowed")


def _read_number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def check_git(context: DoctorContext) -> Iterator[Finding]:
    """Check the state of the Git repository, and name the command that repairs it."""
    if not context.vault.is_dir():
        return
    from syncd.git.repository import Repository

    facts = (context.daemon or {}).get("git")
    amiss = facts.get("hooks_amiss") if isinstance(facts, dict) else None
    repo = Repository(context.vault)
    standing = repo.read_state()
    advice = repo.advice(standing)
    hooks = list[Finding]()
    with suppress(Conflict):  # the state says why there is no folder of hooks
        hooks += [_describe_hooks(repo.hooks_folder(), amiss)] if amiss else []
    yield from hooks
    failures = [] if standing.state in _EXPLAINED else list(_git_failures(context))
    yield from failures
    if not advice and not failures:
        yield Finding("ok", f"the vault has a history{f', on {standing.branch}' if standing.branch else ''}")
    elif advice:
        rank: Rank = "wrong" if standing.state in UNWELL else "advice"
        says, _, mend = advice.partition(": ")
        alone = re.fullmatch("run `([^`]+)`", mend)
        yield Finding(rank, f"{standing.state}: {says}", alone[1] if alone else mend or says)


def _describe_hooks(folder: Path, amiss: Mapping[str, str]) -> Finding:
    """Describe the hooks that are not as Memex wrote them. `memex hook install` overwrites no hook of a person."""
    steps = []
    for name, state in sorted(amiss.items()):
        path = quote_path(folder / name)
        if state == "changed":
            steps.append(f"mv -i {path} {path}.changed")
        else:  # "replaced"
            steps.append(f"move away {path} or {quote_path(previous_hook_path(folder / name))}, as you need only one")
    says = f"hooks of Memex were changed or replaced: {', '.join(sorted(amiss))}; Memex follows Git without them"
    return Finding("advice", says, "; ".join([*steps, "memex hook install"]))


def _git_failures(context: DoctorContext) -> Iterator[Finding]:
    """Yield why the daemon can't commit or sync now, which the state of the repository does not show."""
    for sentence in context.daemon["degraded"] if context.daemon else ():
        part, _, says = str(sentence).partition(": ")
        if part == "git":
            yield Finding("wrong", says, "memex sync" if "memex sync" in says else "memex service logs")


def check_disk(context: DoctorContext) -> Iterator[Finding]:
    """Check the free disk space for the notes and for the index."""
    seen = set()
    for name, folder in (("vault", context.vault), ("state", context.state)):
        try:
            device, room = folder.stat().st_dev, os.statvfs(folder)
        except OSError:
            continue
        if device in seen:
            continue
        seen.add(device)
        left = room.f_bavail * room.f_frsize
        few = room.f_files > 0 and room.f_favail < INODES
        says = f"{left / (1 << 30):,.1f} GB left on the disk of the {name}" + (
            ", with room for almost no more files" if few else ""
        )
        if left < FULL or few:
            yield Finding("wrong", says, f"free some space: du -xh -d 2 {quote_path(folder)}")
        elif left < TIGHT:
            yield Finding("advice", says, f"free some space: du -xh -d 2 {quote_path(folder)}")
        else:
            yield Finding("ok", says)


def check_clock(context: DoctorContext) -> Iterator[Finding]:
    """Check the clock, and look for notes with a time in the future."""
    present = time.time()
    if present < BEFORE:
        yield Finding(
            "wrong",
            f"the clock shows {time.strftime('%Y-%m-%d', time.gmtime(present))}",
            "sudo timedatectl set-ntp true",
        )
        return
    try:
        opened = Vault(context.vault, ignore=context.settings.vault.ignore)
    except MemexError:
        return  # `check_vault` reports it
    with closing(opened):
        files = opened.list_notes().files
    ahead = sorted(path for path, entry in files.items() if entry.mtime_ns / 1e9 > present + AHEAD_S)
    if ahead:
        count = "one note has" if len(ahead) == 1 else f"{len(ahead):,} notes have"
        says = f"{count} a time in the future, such as {ahead[0]}: such notes are sorted as the newest"
        yield Finding("advice", says, "if the clock is right, save such notes again")
    else:
        yield Finding(
            "ok",
            f"the clock shows {time.strftime('%Y-%m-%d %H:%M', time.localtime(present))}; no note has a later time",
        )


def check_versions(_: DoctorContext) -> Iterator[Finding]:
    """Check the version of SQLite, and report the versions of Memex and Python."""
    python = ".".join(map(str, sys.version_info[:3]))
    sqlite = ".".join(map(str, SQLITE_HERE))
    if SQLITE_HERE < SQLITE:
        yield Finding("wrong", f"SQLite {sqlite} is too old", "install a Python with SQLite 3.37 or newer")
    else:
        yield Finding("ok", f"Memex {installed()}, Python {python}, SQLite {sqlite}")


def check_port(context: DoctorContext) -> Iterator[Finding]:
    """Check that the daemon's port is free if no daemon runs."""
    if context.pid is not None:
        return  # `check_daemon` reports it
    server = context.settings.server
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((server.host, server.port))
        except OSError as error:
            says = f"the daemon can't listen on {server.host}:{server.port}: {error.strerror}"
            yield Finding(
                "wrong",
                says,
                f"memex serve --any-port, or set server.port; to find the process: ss -ltnp 'sport = :{server.port}'",
            )
        else:
            yield Finding(
                "ok", f"{server.host}:{server.port} is free" if server.port else "the daemon picks a free port"
            )


def check_files(context: DoctorContext) -> Iterator[Finding]:
    """Report stored files that are missing or could not be read, as the daemon knows them."""
    facts = context.daemon.get("files") if context.daemon else None
    if not facts:
        return
    for path in facts["missing"]:
        yield Finding("advice", f"{path} is missing; its note remains", "put the file back, or delete the note")
    for file in facts["unread"]:
        yield Finding(
            "advice", f"{file['path']} could not be read: {file['reason']}", "Memex tries again automatically"
        )
    if not facts["missing"] and not facts["unread"]:
        known = pluralize(facts["known"], "file")
        yield Finding("ok", f"{known} with a note, {facts['waiting']:,} waiting to be read")


def check_environment(context: DoctorContext) -> Iterator[Finding]:
    """Check the keys in the environment: the daemon does not start with an invalid one, such as a short key."""
    try:
        read_environment_keys(context.environ)
    except InvalidArgument as error:
        says, _, mend = error.message.partition(": ")
        yield Finding("wrong", says, mend)


def check_sandbox(context: DoctorContext) -> Iterator[Finding]:
    """Check the sandbox of the file converters: in the daemon if it runs, otherwise in this process.

    A systemd unit restricts the daemon further, so the two can differ."""
    facts = (context.daemon or {}).get("sandbox")
    if facts is None:
        from syncd.files.conversion.sandbox_report import SandboxReport

        facts = SandboxReport(required=context.settings.kb.confined == "required").facts()
    if facts["problem"]:
        yield Finding("wrong", facts["problem"], "memex config, section kb; on Linux libseccomp.so.2 is needed")
    elif facts["missing"]:
        says = f"kb.confined is preferred, so Memex reads PDF and Office files without {' and '.join(facts['missing'])}"
        yield Finding("advice", says, "no action needed if you trust the sources of all files")
    else:
        network = ", in a separate network namespace" if facts["network_namespace"] else ""
        yield Finding("ok", f"Memex reads files under Landlock {facts['landlock']} and seccomp{network}")


HOST_CHECKS = (
    check_environment,
    check_versions,
    check_vault,
    check_inbox,
    check_folders,
    check_files,
    check_sandbox,
    check_port,
    check_watch,
    check_git,
    check_disk,
    check_clock,
)
