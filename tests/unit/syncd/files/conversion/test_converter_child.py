"""Broken copies of every real file are read or refused with a reason: none hangs, none ends the process without an answer."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.support.paths import ROOT

FILES = [
    "report.docx", "rich.docx", "report-writer.docx", "talk.pptx", "talk-impress.pptx", "rich.pptx", "sheet.xlsx", "gnumeric.xlsx",
    "report.pdf", "bulletin.pdf", "browser.pdf", "talk.pdf", "scan.pdf", "locked.pdf", "locked.docx", "old.doc",
    "report.html", "src/page.html", "src/report.md", "src/tides.json", "semicolons.csv", "latin1.txt", "utf16.txt", "shift-jis.txt",
]  # fmt: skip


def mutants(name: str, count: int, seed: int) -> dict:
    command = [
        sys.executable,
        "-m",
        "tests.support.file_mutants",
        str(ROOT / "tests/files" / name),
        str(count),
        str(seed),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3_000, check=True)
    return json.loads(done.stdout)


def held(found: dict, count: int) -> None:
    ends = found["ends"]
    assert sum(ends.values()) == count
    assert "hang" not in ends
    # A library that gives up ends the child with 1, or crashes it: the daemon says that the file is damaged.
    assert not [end for end in ends if end.startswith("ended") and end not in ("ended 1", "ended -6", "ended -11")]
    assert found["slowest"] < 30


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES[::8])
def test_forty_broken_copies_are_read_or_refused(name):
    held(mutants(name, 40, 1), 40)


@pytest.mark.slow
@pytest.mark.timeout(3_000)
@pytest.mark.parametrize("name", FILES)
def test_two_thousand_broken_copies_are_read_or_refused(name):
    held(mutants(name, 2_000, 2), 2_000)
