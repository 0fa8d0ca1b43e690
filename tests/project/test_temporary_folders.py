"""tests/support/temporary_folders.py: a run is in memory only where it has room there and programs may be started."""

from __future__ import annotations

import subprocess

import pytest

from tests.support.temporary_folders import memory_folder, tmp_path_on_disk

__all__ = ["tmp_path_on_disk"]  # a fixture


def test_a_folder_that_is_missing_or_too_small_is_not_taken(tmp_path):
    assert memory_folder(tmp_path, room=1) == tmp_path
    assert memory_folder(tmp_path / "missing", room=1) is None
    assert memory_folder(tmp_path, room=1 << 60) is None


def test_a_folder_in_which_no_program_may_be_started_is_not_taken(tmp_path):
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "noexec", "none", tmp_path], capture_output=True, check=False
    ).returncode:
        pytest.skip("this machine mounts no tmpfs")
    try:
        assert memory_folder(tmp_path, room=1) is None
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_tests_of_the_disk_have_a_folder_beside_the_others(tmp_path, tmp_path_on_disk):
    assert tmp_path_on_disk.is_dir()
    assert tmp_path not in (tmp_path_on_disk, *tmp_path_on_disk.parents)
