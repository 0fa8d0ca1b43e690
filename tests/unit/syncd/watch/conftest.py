"""What the kernel says of files is tried on the disk."""

from __future__ import annotations

from tests.support import temporary_folders

tmp_path = temporary_folders.tmp_path_on_disk
