"""`python -m tests.bench.enrich COMMAND`: what enrichment makes of real paragraphs, for a blind comparison, and of many notes.

`answers` prints the summary and tags of a part of the sample, by this code or by that of another checkout; `sheet` puts
two files of answers side by side in random order, without naming them; `unblind` joins the verdicts that a person wrote
into the sheet with the hidden order; `score` counts verdicts. `drift` counts the tags of 300 captures, each a note of
its own, once with every note for itself and once with the vocabulary of those before it."""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from index.encoders.embedder import Embedder, EmbedSettings
from index.encoders.word_frequency import word_ranks
from index.model import Document
from index.text.tags import Vectors, are_variants
from index.topics.summary_and_tags import enrich
from tests.bench.enrichment_sample import PARTS, SETS, Paragraph, draw
from tests.bench.measure import ROOT, p50, p95
from tests.support.parsed_notes import parse

DRIFT: Final = (
    ("known_tasks_docs/notes/**/*.md", 100),
    ("jsquad_valid/notes/**/*.md", 100),
    ("vault_oldwinter_md/**/*.md", 130),
)
VOCABULARY: Final = 100
JUDGEMENTS: Final = Path(__file__).parent / "judged/enrichment.tsv"
VERDICTS: Final = {"g": "good", "f": "fair", "b": "bad"}
COLUMNS: Final = ("key", "language", "before_tags", "before_summary", "after_tags", "after_summary")
# Run by the code that answers, which may be another checkout; it reads paragraphs on stdin.
ANSWER: Final = """
import json, sys, time
from index.encoders.word_frequency import word_ranks
try:
    from index.topics.summary_and_tags import enrich
except ImportError:  # an earlier checkout
    from index.text.summary_and_tags import enrich
from syncd.documents.parser import parse
for text in json.load(sys.stdin):
    note = parse(text.encode(), "Captures/default/Untitled.md", mtime_ms=0)
    enrich(note, vocabulary={}, places=word_ranks())  # loads dictionaries
    begun = time.perf_counter()
    answer = enrich(note, vocabulary={}, places=word_ranks())
    ms = (time.perf_counter() - begun) * 1000
    print(json.dumps({"summary": answer.summary, "tags": answer.tags, "ms": ms}))
"""


def answers(paragraphs: Sequence[Paragraph], code: Path) -> list[dict[str, Any]]:
    """Return the summary, the tags and the milliseconds of each paragraph, by the code in the folder `code`."""
    texts = json.dumps([paragraph.text for paragraph in paragraphs])
    done = subprocess.run([sys.executable, "-c", ANSWER], cwd=code, input=texts, text=True, stdout=-1, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def sheet(paragraphs: Sequence[Paragraph], before: list[Any], after: list[Any], dice: random.Random) -> tuple[str, str]:
    """Return a sheet that shows two answers to each paragraph in random order, and the key that tells the order."""
    lines, key = [], []
    order = list(zip(paragraphs, before, after, strict=True))
    dice.shuffle(order)
    for paragraph, old, new in order:
        swapped = dice.random() < 0.5
        lines.append(f"{paragraph.key}\n   {' '.join(paragraph.text.split())}")
        for name, answer in zip("XY", (new, old) if swapped else (old, new), strict=True):
            lines.append(f"   {name} = {answer['summary']}\n   {name} # {'  '.join(answer['tags'])}")
        key.append(f"{paragraph.key}\t{'YX' if swapped else 'XY'}")
    return "\n".join(lines) + "\n", "\n".join(key) + "\n"


def unblind(verdicts: str, key: str) -> str:
    """Join verdicts with the key. A line of verdicts: the key of a paragraph, then for X and for Y two letters of
    g, f and b: the tags' and the summary's."""
    order = dict(line.split("\t") for line in key.splitlines())
    rows = ["\t".join(COLUMNS)]
    for line in verdicts.splitlines():
        name, x, y = line.split()
        old, new = (x, y) if order.pop(name) == "XY" else (y, x)
        rows.append("\t".join((name, name.partition("-")[0], *(VERDICTS[letter] for letter in old + new))))
    if order:
        raise SystemExit(f"{len(order)} paragraphs have no verdict: {' '.join(order)}")
    return "\n".join([rows[0], *sorted(rows[1:])]) + "\n"


def score(judgements: str) -> Iterator[str]:
    """Yield a line for each language, and for all: how many paragraphs are good, fair and bad, before and after.

    A paragraph is as good as the worse of its tags and its summary."""
    rows = [dict(zip(COLUMNS, line.split("\t"), strict=True)) for line in judgements.splitlines()[1:]]
    for language in (*dict.fromkeys(row["language"] for row in rows), "all"):
        chosen = [row for row in rows if language in (row["language"], "all")]
        parts = []
        for version in ("before", "after"):
            tags, summary = ([row[f"{version}_{what}"] for row in chosen] for what in ("tags", "summary"))
            both = [max(pair, key=list(VERDICTS.values()).index) for pair in zip(tags, summary, strict=True)]
            figures = (
                f"{name} {'/'.join(str(verdicts.count(verdict)) for verdict in VERDICTS.values())}"
                for name, verdicts in (("tags", tags), ("summary", summary), ("both", both))
            )
            parts.append(f"{version}: {', '.join(figures)}")
        yield f"{language:>3} {len(chosen):>3}  {'   '.join(parts)}"


def document(text: str) -> Document:
    """Return a capture with this text, as the daemon would name it."""
    return parse(text.encode(), "Captures/default/Untitled.md", mtime_ms=0)


def drift(data: Path, vectors: Vectors, *, prefer: bool, seed: int) -> dict[str, Any]:
    """Count the tags of 300 captures: the distinct ones, those used once, and the pairs of variants."""
    dice = random.Random(seed)
    notes: list[Document] = []
    for pattern, count in DRIFT:
        files = sorted(data.glob(pattern))
        dice.shuffle(files)
        texts = [text for file in files if 200 <= len(text := file.read_text("utf-8", "ignore")) <= 6_000]
        notes += [document(text) for text in texts[:count]]
    dice.shuffle(notes)
    used: Counter[str] = Counter()
    for note in notes:
        known: Mapping[str, int] = dict(used.most_common(VOCABULARY)) if prefer else {}
        bare = replace(note, tags=(), summary=None)
        used.update(enrich(bare, vocabulary=known, places=word_ranks(), vectors=vectors).tags)
    twins = sum(are_variants(one, other) for one, other in combinations(sorted(used), 2))
    once = sum(count == 1 for count in used.values())
    return {
        "captures": len(notes),
        "tags": used.total(),
        "distinct": len(used),
        "used once": once,
        "share used once": round(once / max(1, len(used)), 3),
        "pairs of variants": twins,
        "reused": round(1 - len(used) / max(1, used.total()), 3),
    }


def both_drifts(data: Path, seed: int) -> Iterator[str]:
    """Yield the figures of drift, without and with the vocabulary of the captures before."""
    embedder = Embedder(EmbedSettings(), cache=ROOT / "bench/models")
    embedder.start()
    embedder.wait()
    try:
        vectors: Vectors = lambda texts: embedder.embed_documents(texts, urgent=True).tolist()  # noqa: E731 - one use, with its type
        for name, prefer in (("alone", False), ("vocabulary", True)):
            figures = drift(data, vectors, prefer=prefer, seed=seed)
            yield f"{name:>10}: " + ", ".join(f"{what} {figure}" for what, figure in figures.items())
    finally:
        embedder.close()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("answers", "sheet", "unblind", "score", "drift"))
    parser.add_argument("files", nargs="*", type=Path, help="sheet: answers before and after; unblind: verdicts, key")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MEMEX_DATA", ROOT.parent / "shared/data")))
    parser.add_argument("--manuals", type=Path, help="folder with the unpacked Debian packages")
    parser.add_argument("--part", choices=PARTS, default=PARTS[0])
    parser.add_argument("--set", choices=SETS, default="manuals", help="the files that paragraphs are drawn from")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--code", type=Path, default=ROOT, help="the checkout whose code answers")
    parser.add_argument("--skip", type=Path, help="a file of judgements whose paragraphs are not drawn again")
    return parser.parse_intermixed_args()


def main() -> None:
    """Run one command."""
    given = _arguments()
    if not given.data.is_dir():
        sys.exit(f"no data at {given.data}: name it by --data")
    skipped = {line.split("\t")[0] for line in given.skip.read_text("utf-8").splitlines()} if given.skip else set()
    folders = (given.data, *([given.manuals] if given.manuals else []))
    match given.command:
        case "answers":
            paragraphs = list(draw(folders, given.part, given.seed, skipped, given.set))
            rows = answers(paragraphs, given.code)
            sys.stdout.write(json.dumps(rows, ensure_ascii=False))
            for language in SETS[given.set]:
                times = [row["ms"] for p, row in zip(paragraphs, rows, strict=True) if p.language == language]
                if times:
                    sys.stderr.write(f"{language} {len(times)}: {p50(times):.2f} ms p50, {p95(times):.2f} ms p95\n")
        case "sheet":
            paragraphs = list(draw(folders, given.part, given.seed, skipped, given.set))
            before, after = (json.loads(file.read_text("utf-8")) for file in given.files)
            text, key = sheet(paragraphs, before, after, random.Random(given.seed))
            given.files[0].with_name("sheet.txt").write_text(text, "utf-8")
            given.files[0].with_name("key.tsv").write_text(key, "utf-8")
        case "unblind":
            verdicts, key = (file.read_text("utf-8") for file in given.files)
            JUDGEMENTS.write_text(unblind(verdicts, key), "utf-8")
        case "score":
            sys.stdout.writelines(f"{line}\n" for line in score(JUDGEMENTS.read_text("utf-8")))
        case _:
            sys.stdout.writelines(f"{line}\n" for line in both_drifts(given.data, given.seed))


if __name__ == "__main__":
    main()
