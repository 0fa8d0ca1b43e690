"""Large changes at once: the deletion of a hub that 2,000 entities lead to, and 500 promotions into a vault of 3,000 notes."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench import vaults, yardsticks
from tests.bench.measure import daemon, timed
from tests.bench.record import Row, Step
from tests.bench.speed import fresh

SOURCES = 2_000
NOTES, PROMOTED = 3_000, 500
LATEST_S = 10.0  # until a series of promotions is in the index, which is known a moment after the last file has moved


def large_changes(work: Path) -> Iterator[Step]:
    """The rows; each measurement begins with a vault of its own."""
    yield lambda: [hub(work)]
    yield lambda: [promotions(work)]


def hub(work: Path) -> Row:
    """Delete an entity that 2,000 others lead to: the relation goes from each of their files."""
    vault, state = fresh(work, "hub")
    folder = vault / "Captures/default/Entities"
    folder.mkdir(parents=True)
    rng, (words, weights) = random.Random(7), vaults.vocabulary()
    for number in range(SOURCES + 1):
        name, edges = (f"Node {number}", "\n## Relations\n- part_of:: [[Hub]]\n") if number else ("Hub", "")
        fact = " ".join(rng.choices(words, weights, k=14))
        (folder / f"{name}.md").write_text(
            f"---\nid: node-{number}\ntype: entity\nentity_type: idea\ncreated_at: {vaults.created_at(number)}\n"
            f"last_ordinal: 1\n---\n## Observations\n- {fact} ^o1\n{edges}",
            "utf-8",
        )
    with daemon(vault, state, "--made-up") as one:
        one.http.headers["X-Memory-Workspace"] = "default"
        one.settled()
        assert one.tool("get_stats")["relation_count"] == SOURCES
        one.quiet()
        unit = yardsticks.unit(lambda: yardsticks.fsync(state.parent))
        jobs = one.jobs()
        (spent,) = timed([lambda: one.tool("delete_entities", entity_names=["Hub"])])
        left = one.tool("get_stats")["relation_count"]
        meanwhile = one.jobs_since(jobs)
    leading = sum("[[Hub]]" in file.read_text("utf-8") for file in folder.glob("*.md"))
    return Row(
        f"delete a hub of {SOURCES:,} sources",
        "<= 2 s",
        f"{spent / 1000:.2f} s; {left} relations and {leading} links left",
        spent <= 2_000 and not left and not leading,
        f"one fsync {unit:.2f} ms",
        {"wall of one source": spent / SOURCES / unit},
        "one fsync",
        meanwhile,
    )


def promotions(work: Path) -> Row:
    """A person marks 500 captures at once in a vault of 3,000 notes under Git; until all lie where they belong."""
    vault, state = fresh(work, "promotions")
    vaults.make(vault, NOTES, words=120)
    vaults.make(vault, PROMOTED, words=90, captures=True, seed=3)
    git = ["git", "-C", str(vault), "-c", "user.name=B", "-c", "user.email=b@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "as it was"]):
        subprocess.run([*git, *words], check=True)
    captures = sorted((vault / "Captures/default").glob("Note *.md"))
    with daemon(vault, state, "--made-up") as one:
        one.settled()
        one.quiet()
        unit = yardsticks.unit(lambda: yardsticks.fsync(state.parent))
        jobs, begun = one.jobs(), time.perf_counter()
        for file in captures:
            text = file.read_text("utf-8")
            file.write_text(text.replace("---\n", "---\npromote: true\n", 1), "utf-8")
        while (left := sum(file.exists() for file in captures)) and time.perf_counter() - begun < 600:
            time.sleep(0.1)
        spent = time.perf_counter() - begun
        one.settled(within=600)
        meanwhile = one.jobs_since(jobs)
        end = time.perf_counter() + LATEST_S
        while (there := one.status()["vault"]["documents"] - NOTES) < PROMOTED and time.perf_counter() < end:
            time.sleep(0.1)
    return Row(
        f"{PROMOTED} promotions at {NOTES:,} notes",
        "<= 20 s",
        f"{spent:.1f} s; {left} left, {there} new notes in the vault",
        spent <= 20 and not left and there == PROMOTED,
        f"one fsync {unit:.2f} ms",
        {"wall of one": spent * 1000 / PROMOTED / unit},
        "one fsync",
        meanwhile,
    )
