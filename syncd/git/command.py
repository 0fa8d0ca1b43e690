"""Start a command of Git for GitPython, with the variables of our environment that Git needs and no others.

Laws, tested: a program that Git starts, such as a filter, can read no key of the daemon; a program that it leaves
running blocks nobody. GitPython itself would pass on all variables, and read pipes until the last process with one
is gone. Only this module may import GitPython: on import it runs Git itself, with all variables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from syncd.git.child_process import inherited_environment, run

# No program exists at this path, so GitPython's check on import starts none; QUIET suppresses its complaint.
_NO_FIRST_LOOK: Final = {"GIT_PYTHON_GIT_EXECUTABLE": os.devnull, "GIT_PYTHON_REFRESH": "quiet"}


@contextmanager
def _without_first_look() -> Iterator[None]:
    """Set the variables that GitPython reads on import, and restore them afterwards."""
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
    """Runs GitPython's commands by `child_process`: in their own session, with their output in files."""

    GIT_PYTHON_GIT_EXECUTABLE = "git"  # the Git that all other code here starts, whatever the environment variable says

    def execute(self, command: Sequence[str], *_: Any, env: Mapping[str, str] | None = None, **options: Any) -> Any:
        """Run a process in place of GitPython's own method; the result is a `ProcessResult`."""
        environ = inherited_environment(os.environ) | self.environment() | dict(env or {})
        stdin, limit_s = options.get("istream", b""), options.get("kill_after_timeout")
        try:
            return run(command, environ, stdin=stdin, limit_s=limit_s, out=options.get("output_stream"))
        except (FileNotFoundError, PermissionError) as error:
            raise git.exc.GitCommandNotFound(list(command), error) from None
