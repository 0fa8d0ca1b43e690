"""Start a command of Git through GitPython, with the variables of our environment that Git needs and no others.

Law, tested: a program that Git starts, a filter for example, can read no key of the daemon. GitPython starts each process
from `os.environ` and can add a variable but not withhold one, so `env -u` removes it in between. The arguments, which any
user of the computer may read, hold the names of variables and never a value."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

import git

from syncd.git.child_process import inherited_environment


class GitCommand(git.Git):
    """GitPython's commands, in a session of their own: like `child_process`, they have no terminal to ask at."""

    GIT_PYTHON_GIT_EXECUTABLE = (
        "git"  # the one that everything else here starts, whatever the variable of this name says
    )

    def execute(
        self, command: Sequence[str], *streams: Any, env: Mapping[str, str] | None = None, **options: Any
    ) -> Any:
        """GitPython's own method, through which it starts every process."""
        if shutil.which(command[0]) is None:  # GitPython would look for `env`, and find it
            raise git.exc.GitCommandNotFound(list(command), FileNotFoundError("it is not in PATH"))
        added = self.environment().keys() | (env or {}).keys()
        withheld = os.environ.keys() - inherited_environment(os.environ).keys() - added
        prefix = ["env", *(word for name in sorted(withheld) for word in ("-u", name))]
        return super().execute([*prefix, *command], *streams, env=env, start_new_session=True, **options)


class GitRepo(git.Repo):
    """A repository whose commands are `GitCommand`s."""

    git: GitCommand
    GitCommandWrapperType = GitCommand
