"""`python -m tests.bench [--only NAME ...] [--record] [--data DIR] [--out DIR]`: measure, print a table, write JSON.

Every ratio is compared with the last one of its row in docs/benchmarks.json. A row that looks worse is measured again, up to
three times; if it was worse each time, the run fails with exit code 1. With `--record` the rows are added to the file."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TypeAlias

from tests.bench import (
    alone,
    audit,
    background,
    consolidation,
    convert,
    git,
    graph,
    kb,
    large_changes,
    move,
    quick,
    record,
    replay,
    retrieval,
    scale,
    soak,
    speed,
    suggest,
    week,
)
from tests.bench.measure import ROOT
from tests.bench.record import Entry, Row, Step, measure

DATA = Path(os.environ.get("MEMEX_DATA", ROOT.parent / "shared/data"))
RECORD = ROOT / "docs/benchmarks.json"
TYPICAL = 3  # measurements for a record, of which the median counts
APART = ("quick", "soak")  # only when they are named: the rows of others, an hour of load


def groups(work: Path, data: Path) -> dict[str, Callable[[], Iterable[Step]]]:
    """Every group of rows by its name, the quick ones first."""
    return {
        "quick": lambda: quick.quick(work),
        "tokens": lambda: speed.tokens(work),
        "alone": lambda: alone.alone(work),
        "audit": lambda: audit.audit(work),
        "git": lambda: git.git(work),
        "convert": lambda: convert.convert(work),
        "move": lambda: move.move(work),
        "first": lambda: speed.first_index(work),
        "10k": lambda: speed.at_10k(work),
        "list": lambda: speed.reconcile_10k(work),
        "background": lambda: background.background(work),
        "kb": lambda: kb.kb(work),
        "files": lambda: kb.files(work),
        "dense": lambda: kb.dense(work),
        "nested": lambda: kb.nested(work),
        "replay": lambda: replay.replay(work),
        "large": lambda: kb.large(work),
        "graph": lambda: graph.graph(work),
        "consolidate": lambda: consolidation.consolidation(work),
        "suggest": lambda: suggest.suggest(work, data),
        "real": lambda: speed.real_vault(work, data),
        "changes": lambda: large_changes.large_changes(work),
        "100k": lambda: scale.at_scale(work, 100_000, 4),
        "1m": lambda: scale.at_scale(work, 1_000_000, 8),
        "week": lambda: week.week(work),
        "retrieval": lambda: retrieval.rows(data, work),
        "soak": lambda: soak.soak(work),
    }


Groups: TypeAlias = Callable[[Path, Path], dict[str, Callable[[], Iterable[Step]]]]


def main(given_words: Sequence[str] | None = None, *, known_groups: Groups = groups, kept: Path = RECORD) -> None:
    """Measure what the words ask for, compare it with the record in `kept`, and exit."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", nargs="*", help="groups to measure (default: all but quick and soak)")
    parser.add_argument("--record", action="store_true", help=f"add the rows to {RECORD.relative_to(ROOT)}")
    parser.add_argument("--data", type=Path, default=DATA, help="real vaults and labelled sets")
    parser.add_argument("--out", type=Path, default=ROOT / "bench", help="where the results and the scratch files go")
    given = parser.parse_args(given_words)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a start would compile all modules again, which no user's does
    work = given.out / "work"
    work.mkdir(parents=True, exist_ok=True)
    known = known_groups(work, given.data)
    if unknown := sorted({*(given.only or ())} - known.keys()):
        parser.error(f"no group called {', '.join(unknown)}; the groups are {', '.join(known)}")
    recorded = read_record(kept)
    commit = describe_commit()  # the record itself makes files differ
    rows: list[Row] = []
    for name in given.only or [name for name in known if name not in APART]:
        begun = time.monotonic()
        rows += measure(known[name], recorded, progress, times=TYPICAL if given.record else 1)
        progress(f"({name}: {time.monotonic() - begun:.0f} s, load {os.getloadavg()[0]:.1f})")
        told = json.dumps([asdict(row) for row in rows], indent=1, ensure_ascii=False)
        (given.out / "results.json").write_text(told + "\n", "utf-8")  # now, as a later group may fail after an hour
        if given.record:
            _write(kept, record.format_entries([*recorded, *entries(rows, commit)]))
    sys.stdout.write(record.table(rows))
    lines, held = record.verdict(rows, recorded, where=kept.name)
    sys.stdout.write("".join(f"\n{line}\n" for line in lines))
    if given.record:
        sys.stdout.write(f"\n{len(rows)} rows were added to {kept}.\n")
    sys.exit(0 if held else 1)


def _write(kept: Path, text: str) -> None:
    """Write the record as a whole, or not at all."""
    new = kept.with_suffix(".new")
    new.write_text(text, "utf-8")
    new.replace(kept)


def read_record(kept: Path) -> list[Entry]:
    """The entries of the record; none where it is missing."""
    try:
        return record.parse(kept.read_text("utf-8")) if kept.is_file() else []
    except (ValueError, TypeError) as error:
        sys.exit(f"{kept} is not a benchmark record: {error}. Restore the file from Git, or repair it manually.")


def progress(line: str) -> None:
    """Tell it at once, apart from the table."""
    sys.stderr.write(f"{line}\n")


def describe_commit() -> str:
    """The commit that is measured; "-dirty" if files differ from it."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout.strip()


def entries(rows: Iterable[Row], commit: str) -> list[Entry]:
    """The rows as entries of the record, of this machine."""
    return record.entries(
        rows,
        version=metadata.version("memex-vault"),
        commit=commit,
        date=datetime.now(UTC).date().isoformat(),
        machine=f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
    )


if __name__ == "__main__":
    main()
