"""Three-way merge: join the change that an agent proposed with what the note became meanwhile, as Git merges two branches.

Law, tested: both texts are in the result; where they differ in the same lines it marks both, and the text they began with."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from index.errors import Unavailable
from syncd.git.child_process import inherited_environment, run

NAMES: Final = ("now", "before", "proposed")  # of the three versions, in the marks
LIMIT_S: Final = 30.0
_FAILED: Final = 128  # from this exit status of Git on; below it is the number of places that differ


@dataclass(frozen=True, slots=True)
class Merge:
    """Holds the merged text; if `is_clean` is false, it contains the marks of all three versions."""

    text: bytes
    is_clean: bool


def merge(now: bytes, before: bytes, proposed: bytes) -> Merge:
    """Merge two texts that both came from `before`. Raises Unavailable if Git can't."""
    with tempfile.TemporaryDirectory(prefix="memex-merge-") as folder:
        files = [Path(folder, name) for name in NAMES]
        for file, content in zip(files, (now, before, proposed), strict=True):
            file.write_bytes(content)
        labels = [word for name in NAMES for word in ("-L", name)]
        try:
            ended = run(
                ["git", "merge-file", "-p", "--diff3", *labels, *map(str, files)],
                inherited_environment(os.environ),
                limit_s=LIMIT_S,
            )
        except OSError as error:
            raise Unavailable(
                f"Git could not be started to merge the note: {error.strerror}", retryable=False
            ) from error
    if ended.late or not 0 <= ended.code < _FAILED:
        raise Unavailable("Git could not merge the note; see whether it is text", retryable=False)
    return Merge(ended.out, ended.code == 0)
