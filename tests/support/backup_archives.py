"""The target state folder and the fixed time for tests of backup archives."""

from __future__ import annotations

from syncd.installation.backup import check_ledger, restore_files, unpack

NOW = 1_800_000_000_000


def restored(archive, tmp_path, name="new"):
    folder, state = tmp_path / f"unpacked-{name}", tmp_path / name
    folder.mkdir()
    contents = unpack(archive, folder)
    check_ledger(folder)
    state.mkdir(mode=0o700, exist_ok=True)
    restore_files(folder, state, contents)
    return state
