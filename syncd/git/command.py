"""Start a command of Git for GitPython, with the variables of our environment that Git needs and no others.

Laws, tested: a program that Git starts, a filter for example, can read no key of the daemon, and one that it leaves
running holds up nobody. GitPython itself would pass on all variables, and read pipes until the last process that has one
is gone. It must be imported here alone: on import it runs Git itself, with all variables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from syncd.git.child_process import inherited_environment, run

# No program can be there, so that the first look of GitPython for Git starts none, and it may not complain of that.
_NO_FIRST_LOOK: Final = {"GIT_PYTHON_GIT_EXECUTABLE": os.devnull, "GIT_PYTHON_REFRESH": "quiet"}


@contextmanager
def _without_first_look() -> Iterator[None]:
    """The variables that GitPython reads on import, and afterwards as they were."""
    before = {name: os.environ.get(name) for name in _NO_FIRST_LOOK}
    os.environ.update(_NO_FIRST_LOOK)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


with _without_first_look():
    import git


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
