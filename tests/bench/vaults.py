"""Generated vaults: notes of a given length whose words and their frequencies are those of the demo vault."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from pathlib import Path

from tests.support.paths import ROOT

DEMO = ROOT / "vault_fixtures/demo"
_WORD = re.compile(r"[a-z]{2,}")


def vocabulary() -> tuple[list[str], list[int]]:
    """The words of the demo vault and how often each stands there."""
    counted = Counter(
        word for path in sorted(DEMO.rglob("*.md")) for word in _WORD.findall(path.read_text("utf-8").lower())
    )
    words = sorted(counted)
    return words, [counted[word] for word in words]


def text(rng: random.Random, words: list[str], weights: list[int], length: int) -> str:
    """`length` words in sentences and paragraphs under a few headings."""
    stream = iter(rng.choices(words, weights, k=length))
    lines = [f"# {' '.join(itertools.islice(stream, 4)).capitalize()}"]
    while paragraph := list(itertools.islice(stream, rng.randint(40, 80))):
        sentences = [paragraph[n : n + 12] for n in range(0, len(paragraph), 12)]
        lines.append(" ".join(" ".join(one).capitalize() + "." for one in sentences))
        if rng.random() < 0.3:
            lines.append(f"## {' '.join(rng.choices(words, weights, k=3)).capitalize()}")
    return "\n\n".join(lines) + "\n"


def make(root: Path, notes: int, *, words: int, seed: int = 7, captures: bool = False, reviewed: bool = False) -> int:
    """Write `notes` notes of about `words` words below `root`; returns the bytes of text written.

    `reviewed`: captures have their box, as after a review without a suggestion, which then has nothing to write."""
    rng = random.Random(seed)
    vocabulary_, weights = vocabulary()
    size = 0
    for number in range(notes):
        folder = root / ("Captures/default" if captures else f"Notes/{number % 97:02d}")
        folder.mkdir(parents=True, exist_ok=True)
        body = text(rng, vocabulary_, weights, max(8, int(rng.gauss(words, words / 6))))
        box = "promote: false\n" if reviewed else ""
        head = f"---\nid: gen-{number}\ncreated_at: {created_at(number)}\n{box}---\n" if captures else ""
        (folder / f"Note {number}.md").write_text(head + body, "utf-8")
        size += len(body.encode())
    return size


def created_at(number: int) -> str:
    """When a generated capture was made: each at its own second, over the first 28 days of a month."""
    second = number // 28
    return f"2026-01-{1 + number % 28:02d}T{10 + second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.000Z"


def questions(count: int, *, seed: int = 11) -> list[str]:
    """Queries of two to six words."""
    rng = random.Random(seed)
    words, _ = vocabulary()
    return [" ".join(rng.sample(words, rng.randint(2, 6))) for _ in range(count)]
