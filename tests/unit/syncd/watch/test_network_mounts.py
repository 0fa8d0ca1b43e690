"""Which file systems change behind the kernel's back."""

from __future__ import annotations

import pytest

from syncd.watch.network_mounts import is_remote, mount_kind, mount_kinds_below, remote_kind

MOUNTS = """\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
40 22 0:52 / /mnt/nas rw,relatime shared:2 master:1 - nfs4 nas:/notes rw,vers=4.2
41 22 0:53 / /mnt/a\\040b rw - fuse.sshfs me@host: rw
42 22 0:54 / /broken
"""


@pytest.mark.parametrize(
    ("device", "kind"),
    [("254:1", "ext4"), ("0:52", "nfs4"), ("0:53", "fuse.sshfs"), ("0:54", ""), ("9:9", "")],
)
def test_a_device_has_the_kind_of_its_mount(device, kind):
    assert mount_kind(device, MOUNTS) == kind


def test_a_folder_that_is_not_there_lies_nowhere(tmp_path):
    assert remote_kind(str(tmp_path / "gone")) == ""


def test_what_is_mounted_inside_a_folder_counts_too():
    mounts = (
        "22 1 8:1 / / rw - ext4 /dev/sda rw\n"
        "30 22 0:50 / /home/ada/My\\040Vault/Shared rw shared:1 - fuse.sshfs host:/x rw\n"
        "31 22 0:51 / /home/ada/My\\040Vaults rw - nfs4 host:/y rw\n"
        "nonsense\n"
    )
    assert mount_kinds_below("/home/ada/My Vault", mounts) == ["fuse.sshfs"]
    assert mount_kinds_below("/home/ada", mounts) == ["fuse.sshfs", "nfs4"]
    assert mount_kinds_below("/srv", mounts) == []


@pytest.mark.parametrize(
    ("kind", "remote"),
    [
        *((kind, True) for kind in ("fuse", "fuse.sshfs", "fakeowner", "lustre", "vmhgfs", "prl_fs", "nfs4", "smb3")),
        *((kind, False) for kind in ("fuseblk", "fusectl", "ext4", "btrfs", "overlay", "exfat", "ntfs3", "")),
    ],
)
def test_what_others_may_change_without_an_event(kind, remote):
    assert is_remote(kind) == remote
