"""syncd/commits/object_writer.py, with the real Git."""

from __future__ import annotations

import hashlib
import shutil
from functools import partial

import pytest

from index.errors import Unavailable
from syncd.commits import object_writer
from syncd.commits.commit_builder import CommitBuilder
from syncd.commits.object_writer import ObjectWriter
from tests.support.commit_crash import made

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.usefixtures("home"),
]


def name_of(raw):
    return hashlib.sha1(b"tree %d\0%s" % (len(raw), raw)).hexdigest()


def trees(rig, count):
    """Return so many different trees by name."""
    blob = bytes.fromhex(rig.git("hash-object", "-w", "Note.md").strip())
    return {name_of(raw): raw for raw in (b"100644 N%d.md\0" % number + blob for number in range(count))}


@pytest.mark.parametrize("folder", ["state", 'odd "q" \\n \n $HOME'])
def test_all_objects_are_written_and_few_wait_in_files(tmp_path, monkeypatch, folder):
    monkeypatch.setattr(object_writer, "MOST", 100)
    rig = made(tmp_path)
    kept, waiting = tmp_path / folder, []
    kept.mkdir(exist_ok=True)
    wanted = trees(rig, 9)
    with CommitBuilder(rig.repo, rig.state / "commit", rig.repo.head()) as builder:
        with ObjectWriter(partial(builder._run, env=builder._plain), kept, "tree") as writer:
            for name, raw in wanted.items():
                writer.add(name, raw)
                waiting.append(len(list(kept.glob("trees-*/*"))))
        assert max(waiting) == 3
        assert not list(kept.glob("trees-*"))
    for name in wanted:
        assert rig.git("cat-file", "-t", name) == "tree\n"
    rig.close()


def test_a_failure_leaves_no_file(rig, tmp_path):
    with CommitBuilder(rig.repo, rig.state / "commit", rig.repo.head()) as builder:
        with (
            pytest.raises(Unavailable),
            ObjectWriter(partial(builder._run, env=builder._plain), tmp_path, "tree") as writer,
        ):
            writer.add("0" * 40, b"x")
            next(tmp_path.glob("trees-*/*")).unlink()
        with (
            pytest.raises(ZeroDivisionError),
            ObjectWriter(partial(builder._run, env=builder._plain), tmp_path, "tree") as writer,
        ):
            writer.add("0" * 40, b"x")
            raise ZeroDivisionError
    assert not list(tmp_path.glob("trees-*"))
