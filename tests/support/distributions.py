"""Both distributions, built as `make dist` builds them, from a copy of the sources in another folder."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from distribution.model_weights import MADE, TARGET
from tests.support.paths import DAEMON_PYTHON, ROOT

MODEL: Final = TARGET.relative_to(ROOT).as_posix()
BUILD: Final = "from distribution import build_backend as hooks; hooks.build_sdist('dist'); hooks.build_wheel('dist')"


def tracked() -> set[str]:
    """Return the files that Git knows, or would add."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {name for name in listed.split("\0") if name and (ROOT / name).is_file()}


def build(sources: Path) -> Path:
    """Return the folder of both distributions, built from `sources` with the model of this checkout."""
    for name in MADE:
        shutil.copyfile(TARGET / name, sources / MODEL / name)
    (sources / "dist").mkdir()
    environ = {"PATH": os.environ["PATH"]}
    subprocess.run([DAEMON_PYTHON, "-c", BUILD], cwd=sources, env=environ, capture_output=True, check=True)
    return sources / "dist"
