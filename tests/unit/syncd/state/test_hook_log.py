"""Unit tests of `hook_log`: runs are kept in order, the file stays small and private, and a failure costs nothing."""

from __future__ import annotations

import os
import resource
import stat

from syncd.state.hook_log import LARGEST, NAME, HookRun, append_run, read_runs


def run(number, **more):
    return HookRun(number, "claude-code", "served", 12, **more)


def test_runs_are_read_as_they_were_appended(tmp_path):
    runs = [run(1, tokens=900), run(2, problem="NOT_FOUND")]
    for one in runs:
        append_run(tmp_path, one)
    assert read_runs(tmp_path) == runs
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600


def test_the_file_stays_small_and_keeps_the_latest(tmp_path):
    for number in range(1_000):
        append_run(tmp_path, run(number))
    assert (tmp_path / NAME).stat().st_size <= LARGEST + 200
    numbers = [one.at for one in read_runs(tmp_path)]
    assert numbers == list(range(numbers[0], 1_000))
    assert [file.name for file in tmp_path.iterdir()] == [NAME]


def test_a_full_disk_leaves_no_half_written_file(tmp_path):
    for number in range(1_000):
        append_run(tmp_path, run(number))
    (tmp_path / NAME).write_bytes((tmp_path / NAME).read_bytes() * 2)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        append_run(tmp_path, run(1_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [file.name for file in tmp_path.iterdir()] == [NAME]
    append_run(tmp_path, run(1_001))
    assert read_runs(tmp_path)[-1] == run(1_001)


def test_what_can_not_be_read_or_written_is_left_out(tmp_path):
    assert read_runs(tmp_path) == []
    append_run(tmp_path / "missing", run(1))
    (tmp_path / NAME).write_text('not json\n{"at": 1}\n[1]\n')
    append_run(tmp_path, run(2))
    assert read_runs(tmp_path) == [run(2)]


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "target").write_text("")
    (tmp_path / NAME).symlink_to(tmp_path / "target")
    append_run(tmp_path, run(1))
    assert (tmp_path / "target").read_text() == ""


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / NAME)
    append_run(tmp_path, run(1))
    assert read_runs(tmp_path) == []
