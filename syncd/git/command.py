"""Start a command of Git for GitPython, with the variables of our environment that Git needs and no others.

Laws, tested: a program that Git starts, a filter for example, can read no key of the daemon, and one that it leaves
running holds up nobody. GitPython itself would pass on all variables, and read pipes until the last process that has one
is gone."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import git

from syncd.git.child_process import inherited_environment, run


class GitCommand(git.Git):
    """GitPython's commands, run by `child_process`: in a session of their own, with their output in files."""

    GIT_PYTHON_GIT_EXECUTABLE = (
        "git"  # the one that everything else here starts, whatever the variable of this name says
    )

    def execute(self, command: Sequence[str], *_: Any, env: Mapping[str, str] | None = None, **options: Any) -> Any:
        """GitPython's own method, through which it starts every process; the answer is a `ProcessResult`."""
        environ = inherited_environment(os.environ) | self.environment() | dict(env or {})
        stdin, out, limit_s = (
            options.get("istream", b""),
            options.get("output_stream"),
            options.get("kill_after_timeout"),
        )
        try:
            return run(command, environ, stdin=stdin, limit_s=limit_s, out=out)
        except (FileNotFoundError, PermissionError) as error:
            raise git.exc.GitCommandNotFound(list(command), error) from None


class GitRepo(git.Repo):
    """A repository whose commands are `GitCommand`s."""

    git: GitCommand
    GitCommandWrapperType = GitCommand
