"""Write the benchmarks page: the figures that a release has recorded in docs/benchmarks.json, and how to measure others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from tests.documents.markdown_text import cell, code, table
from tests.support.paths import ROOT

HEAD: Final = """# Benchmarks

After this page you can measure the speed of Memex on your machine with one command, and read the recorded figures.

<!-- runs in no test: it takes minutes to hours on a quiet machine -->
```sh
make bench         # everything; takes more than an hour
make bench-quick   # the most important rows, compared with the recorded ratios
```

Each figure is a median. Figures of two machines can't be compared. Ratios can: each row also records how often its
time fits into the time of a yardstick, a small piece of work that the same run measures. This page shows the last record of
each row; `docs/benchmarks.json` has the earlier ones too.

"""
NOTHING: Final = (
    "## Recorded figures\n\nNo release has recorded figures yet. Run `make bench` to see those of your machine.\n"
)


def render_pages() -> dict[str, str]:
    """Return the page."""
    entries = json.loads((ROOT / "docs" / "benchmarks.json").read_text(encoding="utf-8"))
    return {"benchmarks.md": HEAD + (_render_entries(entries) if entries else NOTHING)}


def _render_entries(entries: Sequence[Mapping[str, Any]]) -> str:
    def run(entry: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(str(entry[name]) for name in ("version", "date", "commit", "machine"))

    lines = []
    last = {entry["row"]: entry for entry in entries}
    shown = [entry for entry in entries if entry is last[entry["row"]]]
    for (version, date, commit, machine), group in groupby(shown, key=run):
        rows = [
            (cell(one["row"]), cell(one["figure"]), cell(one["target"]), {True: "yes", False: "no"}.get(one["met"], ""))
            for one in group
        ]
        lines.append(
            f"## Memex {version}, {date}\n\nMeasured with these commands at commit {code(commit[:12])} on {cell(machine)}.\n\n"
        )
        lines.append(table(("row", "figure", "target", "met"), rows))
    return "".join(lines)
