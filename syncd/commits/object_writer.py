"""Write objects of Git whose bytes and names are known, many with one process."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self

from syncd.git.repository import quote_path

MOST: Final = 16 << 20  # bytes that wait in files before they are written


class ObjectWriter:
    """Writes objects of one kind, at the latest when the block ends without an error. `run` runs a command of Git."""

    def __init__(self, run: Callable[..., Any], folder: Path, kind: str) -> None:
        self._run, self._kind = run, kind
        self._folder = Path(tempfile.mkdtemp(prefix=f"{kind}s-", dir=folder))
        self._waiting: list[Path] = []
        self._size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._write_waiting()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def add(self, name: str, raw: bytes) -> None:
        """Add an object with this name in hex."""
        file = self._folder / name
        file.write_bytes(raw)
        self._waiting.append(file)
        self._size += len(raw)
        if self._size >= MOST:
            self._write_waiting()

    def _write_waiting(self) -> None:
        if not self._waiting:
            return
        # Literally: newer versions of Git check a new tree more strictly than one that `write-tree` makes.
        options = ("-t", self._kind, "-w", "--literally", "--no-filters", "--stdin-paths")
        self._run("hash-object", *options, stdin=b"".join(map(quote_path, map(str, self._waiting))))
        for file in self._waiting:
            file.unlink()
        self._waiting, self._size = [], 0
