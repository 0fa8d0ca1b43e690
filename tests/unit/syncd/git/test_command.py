"""Commands of Git as GitPython starts them: when they are over, and which variables they get."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from syncd.git.repository import Repository

LEAVES = "!sh -c 'echo $$ > pid; exec sleep 60' & until [ -s pid ]; do sleep 0.01; done; echo out"


def test_a_process_that_git_leaves_running_holds_up_nobody(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    repository = Repository(tmp_path)
    assert repository.run("config", "alias.leave", LEAVES).code == 0
    for ask in (repository.run, repository._ask):
        begun = time.monotonic()
        result = ask("leave")
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)  # it runs on, with both outputs open
        (tmp_path / "pid").unlink()
        assert (result.code, result.text) == (0, "out")
        assert time.monotonic() - begun < 20


# The executable is GitPython's own variable: with it a person may have named another Git than the one on the path.
@pytest.mark.parametrize("more", [{}, {"GIT_PYTHON_REFRESH": "raise"}, {"GIT_PYTHON_GIT_EXECUTABLE": "git"}])
def test_no_git_gets_our_variables_not_even_while_gitpython_is_imported(tmp_path, more):
    seen, git = tmp_path / "seen", tmp_path / "git"
    git.write_text(f"#!/bin/sh\necho started >> {seen}\nenv >> {seen}\necho git version 2.40.0\n")
    git.chmod(0o755)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    ask = "import os, sys; from syncd.git.repository import Repository; before = dict(os.environ)"
    ask += "; Repository(sys.argv[1]).query('rev-parse', 'HEAD'); assert dict(os.environ) == before"
    environ = {**os.environ, **more, "KB_API_KEY": "k" * 40, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    result = subprocess.run(
        [sys.executable, "-c", ask, tmp_path], env=environ, capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    lines = seen.read_text().splitlines()
    assert lines.count("started") == 1  # the question alone
    assert [line for line in lines if line.startswith(("KB_", "GIT_PYTHON_"))] == []


def test_a_missing_git_is_no_error_while_gitpython_is_imported(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    ask = "import sys; from syncd.git.repository import Repository; print(Repository(sys.argv[1]).run('gc').code)"
    environ = {**os.environ, "PATH": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, "-c", ask, tmp_path], env=environ, capture_output=True, text=True, check=False
    )
    assert (result.stdout, result.stderr) == ("127\n", "")
