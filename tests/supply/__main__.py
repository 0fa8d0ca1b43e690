"""Tell a set-up what to install, write the lock files, or audit the libraries: models, others, lock, audit, graphs."""

from __future__ import annotations

import sys
from importlib.metadata import distributions
from pathlib import Path

from tests.supply import lock_files


def main(command: str, *arguments: str) -> int:
    match command:
        case "models":
            sys.stdout.write("\n".join(lock_files.extra(lock_files.read_project(), "models")) + "\n")
        case "others":  # what is installed here, and is neither locked nor Memex itself
            locked = lock_files.pins(lock_files.read_locked())
            installed = {lock_files.canonical(distribution.name) for distribution in distributions()}
            sys.stdout.write(" ".join(sorted(installed - locked.keys() - {"memex-vault"})))
        case "lock":
            lock_files.write()
        case "graphs":  # after a change of tests/supply/bundled_graph.py
            from tests.supply import bundled_graph  # needs onnx

            bundled_graph.write(lock_files.ROOT / "index/encoders/minilm")
        case "audit":
            from tests.supply.audit import audit  # needs libraries, and a set-up has none yet

            return audit(Path(arguments[0]) if arguments else None)
        case _:
            raise SystemExit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
