"""A process that carries out ticked proposals and crashes at one of its writes; run as `python -m tests.support.proposal_crash FOLDER N`."""

from __future__ import annotations

import os
import signal
import sys
from itertools import count
from pathlib import Path
from typing import Any

from tests.support.world import World


def deadly(owner: Any, name: str, calls: Any, at: int) -> None:
    """Let the process die before or after the `at`-th of these calls."""
    work = getattr(owner, name)

    def called(*given: Any, **named: Any) -> Any:
        if next(calls) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        done = work(*given, **named)
        if next(calls) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    setattr(owner, name, called)


def main(folder: Path, at: int) -> None:
    """Read the checkboxes once; a process that survives prints the number of calls."""
    app, calls = World(folder).app, count(1)
    for owner, names in (
        (app.opened.vault, ("create", "replace", "remove")),
        (app.opened.ledger, ("execute",)),
        (app.services.commits, ("commit",)),
    ):
        for name in names:
            deadly(owner, name, calls, at)
    app.services.consolidation.carry_out_ticked()
    os.write(1, str(next(calls)).encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
