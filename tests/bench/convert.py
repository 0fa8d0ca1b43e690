"""Reading files: seconds and memory for each type, small files and large ones."""

from __future__ import annotations

import csv
import io
import json
import resource
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from syncd.documents.file_types import HEAD, media_type_of
from syncd.files.conversion import converter
from syncd.files.conversion.converter import Limits
from tests.bench import yardsticks
from tests.bench.measure import ROOT, p50
from tests.bench.record import Row
from tests.support.sample_files import docx, paragraph, pdf, xlsx

FILES = ROOT / "tests" / "files"
SENTENCE = "The harbour master writes each reading into a ledger which is kept in the tower and nobody may leave before it is done."


def convert(work: Path) -> Iterator[Row]:
    """The median of five small files of each type, and one large file of each; seconds of CPU, the child's start included."""
    bare = p50([yardsticks.interpreter().cpu for _ in range(5)])
    for name in (
        "src/report.md",
        "report.html",
        "semicolons.csv",
        "report.pdf",
        "report.docx",
        "talk.pptx",
        "sheet.xlsx",
    ):
        took = sorted(_read(FILES / name)[0] for _ in range(5))[2]
        size = _size(FILES / name)
        yield Row(
            f"read {Path(name).name}",
            "",
            f"{took * 1000:.0f} ms of CPU",
            None,
            size,
            {"CPU": took / bare},
            "a bare Python",
        )
    for name, made in _large().items():
        file = work / name
        file.write_bytes(made())
        took, text = _read(file)
        note = f"{_size(file)}, {text >> 10:,} KiB of text, {_peak(file)} MB"
        yield Row(f"read {name}", "", f"{took:.1f} s of CPU", None, note, {"CPU": took / bare}, "a bare Python")
        file.unlink()


def _size(path: Path) -> str:
    return f"{path.stat().st_size / 1024:,.1f} KiB"


def _read(path: Path) -> tuple[float, int]:
    """Seconds of the child's CPU, and bytes of text."""
    begun = _used()
    with path.open("rb") as file:
        kind = media_type_of(path.name, file.read(HEAD))
    found = converter.convert(Limits(), path, kind, threading.Event())
    return _used() - begun, len(found.text.encode())


def _used() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def _peak(path: Path) -> int:
    """The most memory that the child which reads `path` held, in MB."""
    code = (
        "import sys, threading; from pathlib import Path; from tests.bench import convert; convert._read(Path(sys.argv[1])); "
        "import resource; print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], cwd=ROOT, check=True, capture_output=True, text=True)
    return int(done.stdout)


def _large() -> dict[str, Callable[[], bytes]]:
    """A large file of each type, by how it is made."""
    page = zlib.compress(
        "".join(f"BT /F1 9 Tf 40 {800 - 12 * i} Td ({SENTENCE[:90]}) Tj ET\n" for i in range(40)).encode()
    )
    rows = [
        ["Name", "City", "Amount", "Note"],
        *([f"Name {i}", "Köln", str(i * 1.5), SENTENCE[:60]] for i in range(40_000)),
    ]
    return {
        "2,000 pages.pdf": lambda: pdf([page] * 2_000),
        "20,000 paragraphs.docx": lambda: docx("".join(paragraph(SENTENCE) for _ in range(20_000))),
        "40,000 rows.csv": lambda: _csv(rows),
        "40,000 rows.xlsx": lambda: xlsx(rows),
        "4 MB.html": lambda: ("<html><body>" + f"<h2>Head</h2><p>{SENTENCE} <b>bold</b></p>\n" * 26_000).encode(),
        "4 MB.json": lambda: json.dumps([{"name": row[0], "note": row[3]} for row in rows]).encode(),
        "4 MB.md": lambda: f"## Head\n\n{SENTENCE}\n\n".encode() * 30_000,
    }


def _csv(rows: list[list[str]]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue().encode()
