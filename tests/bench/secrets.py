"""`python -m tests.bench.secrets [--count N] [--data DIR] [--json]`: which secrets the screen finds, and what it flags wrongly."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from syncd.notes.secret_patterns import locate_secrets, mask, redact
from tests.support.generated_secrets import ASSIGNED, CONTEXTS, MAKERS
from tests.support.paths import DATA, ROOT

SEED = 20261123
SUFFIXES = frozenset([".md", ".txt", ".canvas", ".base"])
SHOWN = 60  # characters before a flag


@dataclass(frozen=True, slots=True)
class Recall:
    """How many secrets of a kind were found, in all contexts, and an example of a text with one that was not."""

    kind: str
    made: int
    found: int
    missed: str


@dataclass(frozen=True, slots=True)
class Flag:
    """What is flagged in a note; `text` has the secret masked."""

    path: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class FlagRate:
    """What is flagged in the notes of a folder, and the time that it takes."""

    folder: str
    characters: int
    milliseconds_per_million: float
    flags: tuple[Flag, ...]


def measure_recall(count: int, seed: int = SEED) -> Iterator[Recall]:
    """For each kind, `count` generated secrets, each in a context; one that leaves twelve characters is not found."""
    for kind, make in MAKERS.items():
        rng, contexts = Random(f"{seed} {kind}"), tuple(CONTEXTS.values())
        texts = [(value := make(rng), contexts[n % len(contexts)].format(value)) for n in range(count)]
        yield _recall(kind, texts)
    for name, (make, contexts) in ASSIGNED.items():
        rng = Random(f"{seed} {name}")
        texts = [(value := make(rng), contexts[n % len(contexts)].replace("{}", value)) for n in range(count)]
        yield _recall(
            f"assigned: {name}", [(value, text.replace("{{", "{").replace("}}", "}")) for value, text in texts]
        )


def _recall(kind: str, texts: list[tuple[str, str]]) -> Recall:
    missed = [text for value, text in texts if not is_found(value, text)]
    return Recall(kind, len(texts), len(texts) - len(missed), missed[0] if missed else "")


def is_found(value: str, text: str) -> bool:
    """Whether something in the value is taken out of the text, and nothing secret remains."""
    kept = redact(text)
    return value not in kept and locate_secrets(text) != [] and not locate_secrets(kept)


def measure_flags(folder: Path) -> FlagRate:
    """What is flagged in the notes below a folder."""
    notes = [
        (path, path.read_text("utf-8", "replace")) for path in sorted(folder.rglob("*")) if path.suffix in SUFFIXES
    ]
    begun = time.process_time()
    secrets = [(path, text, secret) for path, text in notes for secret in locate_secrets(text)]
    spent = time.process_time() - begun
    size = sum(len(text) for _, text in notes)
    flags = tuple(
        Flag(
            str(path.relative_to(folder)),
            secret.kind,
            " ".join(mask(text[max(0, secret.start - SHOWN) : secret.end]).split()),
        )
        for path, text, secret in secrets
    )
    return FlagRate(folder.name, size, round(spent * 1e9 / max(size, 1), 1), flags)


def note_folders(data: Path) -> list[Path]:
    """The sample vaults, and the folders of real notes that there are."""
    real = (
        sorted(path for path in data.iterdir() if path.is_dir() and path.name != "__pycache__") if data.is_dir() else []
    )
    return [ROOT / "vault_fixtures", *real]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.secrets", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="secrets of each kind")
    parser.add_argument("--data", type=Path, default=DATA, help="folders of real notes")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    recalls = list(measure_recall(arguments.count))
    rates = [measure_flags(folder) for folder in note_folders(arguments.data)]
    if arguments.json:
        result = {"recall": [asdict(row) for row in recalls], "flags": [asdict(row) for row in rates]}
        sys.stdout.write(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
        return
    lines = ["| kind | found |", "|---|---|"]
    lines += [f"| {row.kind} | {row.found / row.made:.1%} |" for row in recalls]
    lines += ["", "| notes | characters | flags | flags per million | ms per million |", "|---|---|---|---|---|"]
    for rate in rates:
        per_million = len(rate.flags) * 1e6 / max(rate.characters, 1)
        lines.append(
            f"| {rate.folder} | {rate.characters:,} | {len(rate.flags)} | {per_million:.2f} | {rate.milliseconds_per_million} |"
        )
    total, flags = sum(rate.characters for rate in rates), [flag for rate in rates for flag in rate.flags]
    lines += ["", f"{len(flags)} flags in {total:,} characters: {len(flags) * 1e6 / max(total, 1):.2f} per million"]
    lines += [f"- {flag.path}: {flag.kind}: {flag.text}" for flag in flags]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
