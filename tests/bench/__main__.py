"""`python -m tests.bench [--only NAME ...] [--data DIR] [--out DIR]`: measure, print a table, write JSON."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from tests.bench import (
    alone,
    audit,
    consolidate,
    convert,
    git,
    graph,
    kb,
    move,
    replay,
    retrieval,
    speed,
    suggest,
    week,
)
from tests.bench.measure import ROOT, Row

DATA = Path(os.environ.get("MEMEX_DATA", ROOT.parent / "shared/data"))


def groups(work: Path, data: Path) -> dict[str, Callable[[], Iterator[Row]]]:
    """Every group of rows by its name, the quick ones first."""
    return {
        "tokens": lambda: speed.tokens(work),
        "alone": lambda: alone.alone(work),
        "audit": lambda: audit.audit(work),
        "git": lambda: git.git(work),
        "convert": lambda: convert.convert(work),
        "move": lambda: move.move(work),
        "first": lambda: speed.first_index(work),
        "10k": lambda: speed.at_10k(work),
        "list": lambda: speed.reconcile_10k(work),
        "bulk": lambda: speed.under_bulk(work),
        "kb": lambda: kb.kb(work),
        "files": lambda: kb.files(work),
        "dense": lambda: kb.dense(work),
        "replay": lambda: replay.replay(work),
        "large": lambda: kb.large(work),
        "graph": lambda: graph.graph(work),
        "consolidate": lambda: consolidate.consolidate(work),
        "suggest": lambda: suggest.suggest(work, data),
        "real": lambda: speed.real_vault(work, data),
        "100k": lambda: speed.at_100k(work),
        "week": lambda: week.week(work),
        "retrieval": lambda: retrieval.rows(data, work),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", nargs="*", help="groups to measure (default: all)")
    parser.add_argument("--data", type=Path, default=DATA, help="real vaults and labelled sets")
    parser.add_argument("--out", type=Path, default=ROOT / "bench", help="where the results and the scratch files go")
    given = parser.parse_args()
    work = given.out / "work"
    work.mkdir(parents=True, exist_ok=True)
    known = groups(work, given.data)
    rows: list[Row] = []
    for name in given.only or known:
        begun = time.monotonic()
        for row in known[name]():
            rows.append(row)
            sys.stderr.write(f"{line(row)}\n")
        sys.stderr.write(f"({name}: {time.monotonic() - begun:.0f} s)\n")
    (given.out / "results.json").write_text(
        json.dumps([asdict(row) for row in rows], indent=1, ensure_ascii=False) + "\n", "utf-8"
    )
    sys.stdout.write(
        "| what | target | measured | met | note |\n|---|---|---|---|---|\n" + "".join(line(row) + "\n" for row in rows)
    )


def line(row: Row) -> str:
    """A row of the table."""
    met = {True: "yes", False: "**no**", None: ""}[row.met]
    return f"| {row.name} | {row.target} | {row.figure} | {met} | {row.note} |"


if __name__ == "__main__":
    main()
