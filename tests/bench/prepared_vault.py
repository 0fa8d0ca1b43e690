"""A prepared vault: 10,000 indexed captures, kept from run to run, so that a short run need not index them.

Law: what was prepared is used only by the program and the data that it was prepared by."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import time
from pathlib import Path

from tests.bench import vaults
from tests.bench.measure import daemon
from tests.support.paths import ROOT

NOTES, WORDS = 10_000, 90
SOURCES = ("index", "syncd", "mcp_server", "vault_fixtures/demo")
SETTLE = (
    "listing",
    "maintenance",
    "deep check",
    "maintenance",
)  # jobs that would otherwise run some time after a start


def key() -> str:
    """A digest of all that decides what a prepared vault and its index look like."""
    digest = hashlib.sha256(f"{NOTES} {WORDS}".encode())
    files = [file for folder in SOURCES for file in (ROOT / folder).rglob("*") if file.suffix in (".py", ".md")]
    for file in sorted([*files, Path(vaults.__file__), Path(__file__).with_name("daemon.py")]):
        digest.update(str(file.relative_to(ROOT)).encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


def prepared(work: Path) -> tuple[Path, Path]:
    """The vault, as it was prepared, and a fresh copy of the state; both stay where they are from run to run."""
    home = work / "prepared"
    vault, state, kept = home / "vault", home / "state", home / "kept"
    mark, listing = home / "key", home / "listing.json"
    if not (mark.is_file() and mark.read_text() == key()):
        _prepare(home)
        shutil.copytree(state, kept)
        listing.write_text(json.dumps(_files(vault)))
        mark.write_text(key())
    known = json.loads(listing.read_text())
    for path, stamp in _files(vault).items():
        if path not in known:
            (vault / path).unlink()  # of an earlier run
        elif known[path] != stamp:
            mark.unlink()  # somebody changed what was prepared
            return prepared(work)
    shutil.rmtree(state)
    shutil.copytree(kept, state)
    return vault, state


def _prepare(home: Path) -> None:
    begun = time.monotonic()
    shutil.rmtree(home, ignore_errors=True)
    vault, state = home / "vault", home / "state"
    vaults.make(vault, NOTES, words=WORDS, captures=True)
    with daemon(vault, state, "--made-up") as one:
        one.settled()
        for job in SETTLE:
            one.ask("run", job=job)
        assert one.status()["captures"]["documents"] == NOTES, one.status()
    sys.stderr.write(f"(prepared {NOTES:,} captures: {time.monotonic() - begun:.0f} s)\n")


def _files(vault: Path) -> dict[str, list[int]]:
    """Size and time of each file, by its path."""
    found = {}
    for file in vault.rglob("*"):
        if file.is_file():
            stat = file.stat()
            found[file.relative_to(vault).as_posix()] = [stat.st_size, stat.st_mtime_ns]
    return found
