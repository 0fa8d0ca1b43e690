"""A prepared vault: 10,000 indexed captures, kept from run to run, so that a short run need not index them.

Law: what was prepared is used only by the program and the data that it was prepared by."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import time
from pathlib import Path

from tests.bench import vaults
from tests.bench.measure import daemon
from tests.support.paths import ROOT

NOTES, WORDS = 10_000, 90
SOURCES = ("index", "syncd", "mcp_server", "vault_fixtures/demo")
SETTLE = ("review", "listing", "deep check")  # jobs that would otherwise run some time after a start


def key() -> str:
    """A digest of all that decides what a prepared vault and its index look like."""
    digest = hashlib.sha256(f"{NOTES} {WORDS}".encode())
    files = [file for folder in SOURCES for file in (ROOT / folder).rglob("*") if file.suffix in (".py", ".md")]
    for file in sorted([*files, *map(Path(__file__).with_name, ("vaults.py", "daemon.py", "prepared_vault.py"))]):
        digest.update(str(file.relative_to(ROOT)).encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


def prepared(work: Path) -> tuple[Path, Path]:
    """A vault and its state as they were prepared, at paths that stay from run to run.

    The notes are hard links to those that are kept, so that a file is as the index knows it, by its inode too. Whoever
    changes one writes another file in its place, as Memex does."""
    home = work / "prepared"
    vault, state, kept = home / "vault", home / "state", home / "kept"
    mark = home / "key"
    if not (mark.is_file() and mark.read_text() == key()):
        _prepare(home)
        vault.rename(kept / "vault")
        state.rename(kept / "state")
        mark.write_text(key())
    shutil.rmtree(vault, ignore_errors=True)
    shutil.rmtree(state, ignore_errors=True)
    shutil.copytree(kept / "vault", vault, copy_function=os.link)
    shutil.copytree(kept / "state", state)
    return vault, state


def _prepare(home: Path) -> None:
    begun = time.monotonic()
    shutil.rmtree(home, ignore_errors=True)
    (home / "kept").mkdir(parents=True)
    vault, state = home / "vault", home / "state"
    vaults.make(vault, NOTES, words=WORDS, captures=True, reviewed=True)
    with daemon(vault, state, "--made-up") as one:
        one.settled()
        for job in SETTLE:
            one.ask("run", job=job)
        one.ask("maintain")
        assert one.status()["captures"]["documents"] == NOTES, one.status()
    sys.stderr.write(f"(prepared {NOTES:,} captures: {time.monotonic() - begun:.0f} s)\n")
