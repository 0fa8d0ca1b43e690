"""Commits and log entries of a vault under Git, for tests of histories."""

from __future__ import annotations

import os
import subprocess


def commit(world, message, at):
    world.git("add", "-A")
    subprocess.run(
        [
            "git",
            "-C",
            str(world.vault),
            "-c",
            "user.name=Ann",
            "-c",
            "user.email=a@example.org",
            "commit",
            "-qm",
            message,
        ],
        check=True,
        env=os.environ
        | {"GIT_COMMITTER_DATE": f"@{at // 1000 + 1} +0000", "GIT_AUTHOR_DATE": f"@{at // 1000 + 1} +0000"},
    )


def log(world, name, **given):
    return world.app.operations["log"]({"id": name, **given}, lambda _: None)
