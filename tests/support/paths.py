"""The folders that tests read: the project, the test files, the golden files, the real vaults beside the project."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
TESTS: Final = ROOT / "tests"
FILES: Final = TESTS / "files"
GOLDEN: Final = TESTS / "golden"
CLIENTS: Final = TESTS / "clients"
DAEMON_PYTHON: Final = ROOT / ".venv/bin/python"  # without the tests' tools, as a user has it
DATA: Final = Path(os.environ.get("MEMEX_DATA", ROOT.parent / "shared" / "data"))
