"""Detect network mounts: file systems that others can change without an event from this kernel."""

from __future__ import annotations

import os
import re
from pathlib import Path

_ESCAPED = re.compile(r"\\([0-7]{3})")  # escaped blanks and backslashes in a mount point
# The beginnings of their kinds. A mount of FUSE has its program after a dot, or nothing; `fuseblk` is a local disk.
_KINDS = (
    "nfs",
    "cifs",
    "smb",
    "9p",
    "virtiofs",
    "vboxsf",
    "vmhgfs",
    "prl_fs",
    "fakeowner",
    "ceph",
    "glusterfs",
    "lustre",
    "afs",
    "fuse.",
)


def remote_kind(folder: str) -> str:
    """Return the kind of file system of `folder`, or a part of it, if it is a network's, a host's or FUSE's; else ""."""
    try:
        device = Path(folder).stat().st_dev
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # the folder is missing, or the system has no such list
        return ""
    kinds = [
        mount_kind(f"{os.major(device)}:{os.minor(device)}", mounts),
        *mount_kinds_below(os.path.realpath(folder), mounts),
    ]
    return next((kind for kind in kinds if is_remote(kind)), "")


def is_remote(kind: str) -> bool:
    """Return whether file systems of this kind may change without an event: those of a network, a host or FUSE."""
    return kind == "fuse" or kind.startswith(_KINDS)


def mount_kind(device: str, mounts: str) -> str:
    """Return the kind of file system of `device` ("major:minor") in the kernel's list of mounts, or ""."""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        if left.split()[2:3] == [device] and right:
            return right.split()[0]
    return ""


def mount_kinds_below(folder: str, mounts: str) -> list[str]:
    """Return the kinds of the file systems that are mounted inside `folder`."""
    return [kind for *_, kind in _list_mounts_below(folder, mounts)]


def read_mounts_below(folder: str) -> list[tuple[str, ...]] | None:
    """Return what is mounted inside `folder` now, to be compared; None if the system has no such list, or it can't be read."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return _list_mounts_below(os.path.realpath(folder), mounts)


def _list_mounts_below(folder: str, mounts: str) -> list[tuple[str, ...]]:
    """Return (id, device, folder on the device, mount point, kind) of each mount inside `folder`, in the kernel's order."""
    below = []
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split()
        if len(fields) > 4 and right and _ESCAPED.sub(_unescape, fields[4]).startswith(f"{folder}/"):
            below.append((fields[0], *fields[2:5], right.split()[0]))
    return below


def _unescape(match: re.Match[str]) -> str:
    return chr(int(match[1], 8))
