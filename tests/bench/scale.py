"""Scale: searches of 100,000 and 1,000,000 chunks with made-up vectors, what they find of the exact answer, memory and disk."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from index.encoders.embedder import Embedder, EmbedSettings
from index.model import Filter
from index.search.hybrid_search import POOLS
from index.storage import maintenance_policy
from index.storage.chunk_store import ChunkStore
from syncd.app import App
from syncd.settings.settings import Settings, VaultSettings
from tests.bench import headline, vaults, yardsticks
from tests.bench.measure import daemon, p50
from tests.bench.record import Row, Step
from tests.bench.speed import fresh, made_up
from tests.support.until import until

SECTIONS, SECTION_WORDS = 20, 165  # of a file: each section becomes a chunk
NEAR, ASKED = 10, 100
POOL = POOLS[0]  # of a search


def at_scale(work: Path, chunks: int, most: float) -> Iterator[Step]:
    """Index so many chunks, search them, and compare the nearest with those of an exact scan."""
    name = f"{chunks:,} chunks"
    vault, state = fresh(work, f"scale-{chunks}")
    size = make(vault, chunks // SECTIONS)
    with daemon(vault, state, "--made-up") as one:
        took = one.settled(within=4 * 3600)
        one.ask("run", job="listing")
        one.ask("maintain")
        one.quiet()
        one.tool("semantic_search", query="weather station")  # begins to load the rows into memory
        one.ask("load")
        there = one.status()["captures"]["chunks"]
        yield lambda: [_limited(headline.searches(one, name), most, there)]
        bare, private = yardsticks.imports_memory()
        yield Row(
            f"resident memory after 200 searches, and its private part, {name}",
            "",
            f"{one.rss:.0f} MB; {one.private:.0f} MB",
            None,
            f"indexed in {took:.0f} s",
            {"resident": one.rss / bare, "private": one.private / private},
            "the memory of the imports",
        )
    kept = sum(path.stat().st_size for path in (state / "index").rglob("*") if path.is_file())
    figure = f"{kept / 1e6:.0f} MB, {kept / size:.1f} x the text"
    yield Row(f"disk: the closed index, {name}", "", figure, None, "", {"size": kept / size}, "the bytes of the text")
    yield recall(work, vault, state, name)


def make(vault: Path, files: int) -> int:
    """Captures of 20 sections each; the bytes of their text."""
    rng, size = random.Random(7), 0
    words, weights = vaults.vocabulary()
    for number in range(files):
        folder = vault / f"Captures/default/{number % 97:02d}"
        folder.mkdir(parents=True, exist_ok=True)
        drawn = rng.choices(words, weights, k=SECTIONS * SECTION_WORDS)
        sections = (drawn[at : at + SECTION_WORDS] for at in range(0, len(drawn), SECTION_WORDS))
        text = "".join(f"## {' '.join(part[:3])}\n\n{' '.join(part[3:])}.\n\n" for part in sections)
        head = f"---\nid: scale-{number}\ncreated_at: {vaults.created_at(number)}\n---\n"
        (folder / f"Note {number}.md").write_text(head + text, "utf-8")
        size += len(text.encode())
    return size


def _limited(row: Row, most: float, chunks: int) -> Row:
    """The row of searches with the target of this size."""
    return Row(
        row.name,
        f"p50 <= {most:g} x one query encoding",
        row.figure,
        row.ratios["p50"] <= most,
        f"{row.note}; {chunks:,} chunks in all",
        row.ratios,
        row.yardstick,
        row.jobs,
    )


def recall(work: Path, vault: Path, state: Path, name: str) -> Row:
    """How many of the ten nearest chunks the index finds: for points near stored vectors, as questions about a note are."""
    embedder = Embedder(EmbedSettings(), cache=work / "models", load=made_up)
    embedder.start()
    assert embedder.wait(), embedder.problem
    with App(Settings(vault=VaultSettings(path=vault), state=state), embedder=embedder) as app:
        store = app.opened.builds.scopes["captures"].index._store
        keys, vectors = _stored(store)
        dice = np.random.default_rng(5)
        points = vectors[dice.integers(0, len(keys), ASKED)] + dice.standard_normal((ASKED, vectors.shape[1])) * 0.05
        points = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
        store.search(vector=None, words="weather", filter=Filter(), pool=1)  # begins to load the rows into memory
        until(lambda: store._table.seen.rows is not None or len(keys) > maintenance_policy.HELD)
        right, spent, exact = 0, [], []
        for point in points:
            begun = time.perf_counter()
            wanted = np.argpartition(-(vectors @ point), NEAR)[:NEAR]
            between = time.perf_counter()
            found, _ = store.search(vector=point, words=None, filter=Filter(), pool=POOL)
            spent.append((time.perf_counter() - between) * 1000)
            exact.append((between - begun) * 1000)
            right += len({(match.doc_id, match.ord) for match in found[:NEAR]} & {keys[at] for at in wanted})
    share = right / (NEAR * ASKED)
    return Row(
        f"recall of the ten nearest against an exact scan, {name}",
        ">= 0.95",
        f"{share:.3f}",
        share >= 0.95,
        f"{p50(spent):.1f} ms; the exact scan {p50(exact):.1f} ms",
        {"misses": max(1 - share, 0.01), "time": p50(spent) / p50(exact)},
        "the exact scan",
    )


def _stored(store: ChunkStore) -> tuple[list[tuple[str, int]], np.ndarray]:
    """Document and place of each chunk, and its vector of unit length."""
    rows = store._run_read(store._table.select(("doc_id", "ord", "vector")))
    keys = list(zip(rows["doc_id"].to_pylist(), rows["ord"].to_pylist(), strict=True))
    flat = np.concatenate([chunk.flatten().to_numpy(zero_copy_only=False) for chunk in rows["vector"].chunks])
    vectors = flat.reshape(len(keys), -1).astype(np.float32)
    return keys, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
