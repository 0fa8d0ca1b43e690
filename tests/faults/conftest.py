"""Faults of a disk are tried on the disk."""

from __future__ import annotations

from tests.support import temporary_folders

tmp_path = temporary_folders.tmp_path_on_disk
