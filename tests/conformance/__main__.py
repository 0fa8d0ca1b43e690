"""Run all of it and print a table; the exit code says whether every scored scenario passed."""

from __future__ import annotations

import logging
import sys
import tempfile
from pathlib import Path

from tests.conformance import suite


def main() -> int:
    """Both revisions with fixtures, then the daemon as it is."""
    logging.basicConfig(level=logging.ERROR)
    whole = True
    for fixtures in (True, False):
        with tempfile.TemporaryDirectory() as folder, suite.daemon(Path(folder) / "vault", fixtures=fixtures) as rim:
            for revision in suite.REVISIONS:
                out = Path(folder) / revision
                told = (
                    suite.everything(rim, revision, out)
                    if fixtures
                    else suite.alone(rim, revision, out, suite.PLAIN[revision])
                )
                how = "with the suite's fixtures" if fixtures else "the daemon as it is"
                sys.stdout.write(f"{revision}, {how}\n{suite.table(told)}\n\n")
                sys.stdout.flush()
                whole = whole and all(one.passed for one in told if one.scored or one.name == suite.VERDICT)
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
