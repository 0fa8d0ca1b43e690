"""Commands of Git as GitPython starts them: when they are over."""

from __future__ import annotations

import os
import signal
import subprocess
import time

from syncd.git.repository import Repository

LEAVES = "!sh -c 'echo $$ > pid; exec sleep 60' & until [ -s pid ]; do sleep 0.01; done; echo out"


def test_a_process_that_git_leaves_running_holds_up_nobody(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    repository = Repository(tmp_path)
    assert repository.run("config", "alias.leave", LEAVES).status == 0
    for ask in (repository.run, repository._ask):
        begun = time.monotonic()
        result = ask("leave")
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)  # it runs on, with both outputs open
        (tmp_path / "pid").unlink()
        assert (result.status, result.text) == (0, "out")
        assert time.monotonic() - begun < 20
