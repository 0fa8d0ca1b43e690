"""Tell whether a folder lies on a file system that others may change without this kernel hearing of it."""

from __future__ import annotations

import os
from pathlib import Path

_KINDS = ("nfs", "cifs", "smb", "9p", "virtiofs", "vboxsf", "ceph", "glusterfs", "afs", "fuse.")


def remote(folder: str) -> str:
    """The kind of file system that `folder` lies on if it is a network's, a host's or FUSE's, or ""."""
    try:
        device = Path(folder).stat().st_dev
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # no such folder, or a system without such a list
        return ""
    kind = mounted(f"{os.major(device)}:{os.minor(device)}", mounts)
    return kind if kind.startswith(_KINDS) else ""


def mounted(device: str, mounts: str) -> str:
    """The kind of file system of `device` ("major:minor") in the kernel's list of mounts, or ""."""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        if left.split()[2:3] == [device] and right:
            return right.split()[0]
    return ""
