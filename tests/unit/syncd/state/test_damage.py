"""What is no file or folder of Memex's making is found, and set aside without a loss."""

from __future__ import annotations

import os
import shutil

import pytest

from index.errors import Unavailable
from syncd.state import damage
from syncd.state.damage import check_shapes, find_misfits, set_aside
from tests.support.fast_daemon import somebody_else

LOCKED = """
import sys
from pathlib import Path
from syncd.state.damage import find_misfits
for misfit in find_misfits(Path(sys.argv[1])):
    print(misfit.says.removeprefix("you have no read and write access to ").rpartition("/")[2], misfit.mend())
"""


def test_a_state_folder_as_memex_makes_it_is_well(tmp_path):
    for name in ("index", "staged", "bells"):
        (tmp_path / name).mkdir()
    for name in ("lock", "vault", "ledger.db", "key"):
        (tmp_path / name).write_text("x")
    (tmp_path / "models").symlink_to(tmp_path / "index")  # a folder elsewhere is a person's choice
    check_shapes(tmp_path)
    check_shapes(tmp_path / "none")


@pytest.mark.parametrize(
    ("name", "made", "says"),
    [
        ("staged", lambda path: path.write_text("x"), "not a folder"),
        ("lock", lambda path: path.mkdir(), "not a regular file"),
        ("lock", lambda path: path.symlink_to("."), "a link"),
        ("index", lambda path: path.symlink_to("nowhere"), "a broken link"),
        ("vault", os.mkfifo, "not a regular file"),
        ("control.sock", lambda path: path.mkdir(), "a folder instead of a socket"),
    ],
)
def test_a_misfit_is_named_with_the_command_and_set_aside(tmp_path, name, made, says):
    made(tmp_path / name)
    with pytest.raises(Unavailable, match="memex doctor --fix") as told:
        check_shapes(tmp_path)
    assert says in told.value.message
    assert not told.value.retryable
    [misfit] = find_misfits(tmp_path)
    assert f"renamed the damaged {name} to {name}.damaged-" in misfit.mend()
    assert len([*tmp_path.iterdir()]) == 1
    check_shapes(tmp_path)


def test_what_is_set_aside_never_takes_the_place_of_another(tmp_path):
    for text in ("one", "two", "three"):
        (tmp_path / "a").write_text(text)
        set_aside(tmp_path / "a")
    assert sorted(path.read_text() for path in tmp_path.iterdir()) == ["one", "three", "two"]


def test_what_its_owner_may_not_read_is_given_back(tmp_path):
    run, root = somebody_else(tmp_path)
    for name, mode in (("ledger.db", 0o000), ("key", 0o200), ("index", 0o500), ("lock", 0o600)):
        path = root / name
        path.mkdir() if name == "index" else path.write_text("x")
        path.chmod(mode)
        shutil.chown(path, 65534, 65534)
    told = run(LOCKED, str(root)).stdout.splitlines()
    names = ("index", "ledger.db", "key")
    assert told == [f"{name} you can read and write {name} again" for name in names]
    assert run(LOCKED, str(root)).stdout == ""


def test_a_file_of_another_user_is_named_with_the_command_that_helps(tmp_path):
    if os.geteuid():
        pytest.skip("needs root to give a file away")
    (tmp_path / "ledger.db").write_text("x")
    shutil.chown(tmp_path / "ledger.db", 65534)
    [misfit] = find_misfits(tmp_path)
    assert (misfit.says, misfit.way) == (
        f"{tmp_path}/ledger.db belongs to another user",
        f"sudo chown -R $(id -u) {tmp_path}",
    )
    with pytest.raises(Unavailable, match="belongs to another user: sudo chown"):
        check_shapes(tmp_path)


def test_on_a_disk_that_is_mounted_read_only_nothing_else_is_called_damaged(tmp_path, monkeypatch):
    (tmp_path / "lock").mkdir()
    monkeypatch.setattr(damage, "is_read_only", lambda folder: folder == tmp_path)
    [misfit] = find_misfits(tmp_path)
    assert misfit.says == f"{tmp_path} is on a disk that is mounted read-only"
    with pytest.raises(Unavailable, match="mount the disk so that you can write to it"):
        check_shapes(tmp_path)
    assert [*tmp_path.iterdir()] == [tmp_path / "lock"]
