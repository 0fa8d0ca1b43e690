"""What the audit log costs: a write through it against the same write without, and a look through all of it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from syncd.history.audit_log import AuditLog
from syncd.history.audited_vault import AuditedVault
from syncd.history.digest_chain import Head, check
from syncd.state.ledger import Ledger
from syncd.vault.vault import Vault
from tests.bench import yardsticks
from tests.bench.record import Row

WRITES = 500
NOTE = (
    "---\nid: note-{n}\ncreated_at: 2026-11-20T14:32:05.120Z\nsource: bench\ncollection: documents\ntags:\n  - one\n"
    "summary: A note of an ordinary length.\n---\n" + "words of the note " * 120
)


def audit(work: Path) -> Iterator[Row]:
    """The rows. Both ways take turns, so that they meet the same disk."""
    folder = work / "audit"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "state").mkdir(parents=True, mode=0o700)
    (folder / "vault/Captures/default").mkdir(parents=True)
    ledger = Ledger.open(folder / "state/ledger.db")
    log = AuditLog(ledger, folder / "state")
    vaults = {"plain": Vault(folder / "vault"), "logged": AuditedVault(folder / "vault", log, inbox="Captures")}
    took: dict[str, list[float]] = {name: [] for name in vaults}
    for n in range(WRITES):
        for name, vault in vaults.items():
            path, raw = f"Captures/default/{name} {n}.md", NOTE.format(n=n).encode()
            took[name].append(_timed(lambda vault=vault, path=path, raw=raw: vault.create(path, raw)))
    plain, logged = (median(took[name]) * 1000 for name in ("plain", "logged"))
    added = logged - plain
    yield Row(
        "audit entry, added to the write of a note, p50",
        "≤ 2 ms",
        f"{added:.2f} ms",
        added <= 2,
        f"{plain:.2f} ms without",
        {"p50": max(added, 0.01) / yardsticks.unit(lambda: yardsticks.fsync(folder))},
        "one fsync",
    )
    begun = time.perf_counter()
    found = check(log.entries(), Head())
    each = (time.perf_counter() - begun) / found.entries
    yield Row(
        "memex audit verify, seals of 100,000 entries", "", f"{each * 100_000:.1f} s", None, f"from {found.entries}"
    )
    ledger.query("PRAGMA wal_checkpoint(TRUNCATE)")
    size = ledger.path.stat().st_size / found.entries
    yield Row("an entry in the ledger", "", f"{size:.0f} bytes", None, "indexes included")
    for vault in vaults.values():
        vault.close()
    log.close()
    ledger.close()


def _timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
