"""One process holds a state folder."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from index.errors import Conflict, Unavailable
from syncd.state import process_lock
from syncd.state.process_lock import ProcessLock
from tests.support.paths import ROOT

HOLDER = """
import sys, time
from pathlib import Path
from syncd.state.process_lock import ProcessLock
lock = ProcessLock.acquire(Path(sys.argv[1]))
print(lock.epoch, flush=True)
time.sleep(60)
"""


def hold(state):
    root = ROOT
    command = [sys.executable, "-c", HOLDER, str(state)]
    process = subprocess.Popen(
        command, cwd=root, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": "."}
    )
    return process, int(process.stdout.readline())


def test_a_held_lock_refuses_another_process_by_its_pid_and_outlives_no_kill(tmp_path):
    process, epoch = hold(tmp_path)
    try:
        with pytest.raises(Conflict, match=f"the process {process.pid} uses") as caught:
            ProcessLock.acquire(tmp_path)
        assert caught.value.details == {"pid": process.pid}
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    with ProcessLock.acquire(tmp_path) as lock:
        assert lock.epoch == epoch + 1


def test_a_process_that_only_asks_for_the_holder_is_in_nobody_s_way(tmp_path):
    ProcessLock.acquire(tmp_path).release()
    stop = threading.Event()

    def ask():
        while not stop.is_set():
            process_lock.holder_pid(tmp_path)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(200):
            ProcessLock.acquire(tmp_path).release()
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("pid", [0, 4_194_304])  # nobody, and a process that has ended
def test_a_lock_without_a_live_holder_is_waited_for_only_a_moment(tmp_path, monkeypatch, pid):
    (tmp_path / "lock").write_text(f"{1:<20} {pid:<10}\n")
    with (tmp_path / "lock").open() as asking:
        fcntl.flock(asking, fcntl.LOCK_SH)
        threading.Timer(0.1, lambda: fcntl.flock(asking, fcntl.LOCK_UN)).start()
        with ProcessLock.acquire(tmp_path) as lock:
            assert lock.epoch == 2
        monkeypatch.setattr(process_lock, "ASKED_S", 0.1)
        fcntl.flock(asking, fcntl.LOCK_SH)
        with pytest.raises(Conflict):
            ProcessLock.acquire(tmp_path)


def test_the_same_process_cannot_hold_it_twice(tmp_path):
    with ProcessLock.acquire(tmp_path), pytest.raises(Conflict, match=str(os.getpid())):
        ProcessLock.acquire(tmp_path)


def test_the_epoch_grows_with_each_holder_and_the_file_stays(tmp_path):
    state = tmp_path / "new" / "state"
    for expected in (1, 2, 3):
        lock = ProcessLock.acquire(state)
        assert lock.epoch == expected
        lock.release()
        lock.release()
    assert (state / "lock").stat().st_mode & 0o777 == 0o600


def test_a_damaged_file_is_no_obstacle(tmp_path):
    (tmp_path / "lock").write_bytes(b"\xff rubbish \x00 much longer than a record of pid and epoch is")
    with ProcessLock.acquire(tmp_path) as lock:
        assert lock.epoch == 1
        assert lock.is_current()


def test_a_holder_whose_file_was_deleted_or_taken_over_is_not_current_and_harms_nobody(tmp_path):
    first = ProcessLock.acquire(tmp_path)
    (tmp_path / "lock").unlink()
    assert not first.is_current()
    assert first.successor() is None
    second = ProcessLock.acquire(tmp_path)
    assert first.successor() == os.getpid()
    assert second.successor() is None
    first.release()
    assert not first.is_current()
    assert second.is_current()
    with pytest.raises(Conflict):
        ProcessLock.acquire(tmp_path)
    second.release()


@pytest.mark.parametrize("call", ["pread", "lstat"])
def test_a_disk_that_fails_for_a_moment_ends_no_watch_and_is_logged_once(tmp_path, monkeypatch, caplog, call):
    def fail(*_):
        raise OSError(errno.EIO, "input/output error")

    first = ProcessLock.acquire(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(*((os, "pread", fail) if call == "pread" else (Path, "lstat", fail)))
        assert [first.successor() for _ in range(3)] == [None] * 3
    assert [record.getMessage() for record in caplog.records] == [
        "could not check the lock of the state folder: input/output error"
    ]
    (tmp_path / "lock").unlink()
    with ProcessLock.acquire(tmp_path):
        assert first.successor() == os.getpid()
    first.release()


def test_a_lock_whose_file_can_t_be_read_is_released(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.EIO, "input/output error")

    first = ProcessLock.acquire(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", fail)
        with pytest.raises(Conflict, match="another process"):
            ProcessLock.acquire(tmp_path)
        assert process_lock.holder_pid(tmp_path) == 0
        with pytest.raises(OSError, match="input/output"):
            first.release()
    ProcessLock.acquire(tmp_path).release()


def test_a_state_folder_that_cannot_be_made_is_unavailable(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="cannot open"):
        ProcessLock.acquire(tmp_path / "file")


def test_the_process_that_holds_the_lock_is_known_by_its_open_files(tmp_path):
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with ProcessLock.acquire(tmp_path):
        assert process_lock.holds_lock(os.getpid(), tmp_path)
        assert not process_lock.holds_lock(other.pid, tmp_path)
    other.communicate(b"\n")
    assert not process_lock.holds_lock(other.pid, tmp_path)
    assert not process_lock.holds_lock(os.getpid(), tmp_path / "none")


def test_where_open_files_can_t_be_seen_a_process_that_has_ended_holds_no_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(process_lock.sys, "platform", "darwin")
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert process_lock.holds_lock(other.pid, tmp_path)
    other.communicate(b"\n")
    assert not process_lock.holds_lock(other.pid, tmp_path)
