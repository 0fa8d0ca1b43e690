"""A week beside a vault: thousands of edits and hundreds of commits, restarts and changes of the clock.

What must not grow is watched from outside: memory, handles, threads. In the end the index equals one made anew.
Clock changes need a C compiler; without one they are left out, and the row says so."""

from __future__ import annotations

import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from index.encoders.embedder import Embedder, EmbedSettings
from syncd.app import App
from syncd.settings.settings import Settings, VaultSettings
from tests.bench import vaults
from tests.bench.measure import Daemon, daemon
from tests.bench.record import Row
from tests.bench.speed import fresh, made_up
from tests.support.index_dump import dump_index
from tests.support.shifted_clock import Clock

NOTES, COMMITS, EDITS, RESTARTS = 1_000, 500, 20, 50  # 20 edits before each commit
LONG = 300  # commits in the life of one process; the restarts are spread over the others
DAY = 86_400
SHIFTS = (DAY, -DAY, 7 * DAY, -3600, 0)  # seconds that the wall clock is made to be ahead of the true time


@dataclass(slots=True)
class Person:
    """Somebody who edits a vault, in all the ways that editors save, and commits it."""

    vault: Path
    rng: random.Random
    made: int = NOTES
    kinds: dict[str, int] = field(default_factory=dict)

    def edits(self, step: int) -> None:
        """Twenty changes; the last one can be told by the word `mark<step>`."""
        notes = sorted(self.vault.glob("Notes/**/*.md"))
        for number in range(EDITS - 1):
            note = self.rng.choice(notes)
            kind = self.rng.choices(["write", "swap", "new", "delete", "rename", "folder"], [60, 15, 9, 7, 7, 2])[0]
            if not note.exists():
                kind = "new"
            self.kinds[kind] = self.kinds.get(kind, 0) + 1
            self._edit(kind, note, f"# Note of step {step}\n\nedit {number} of step{step} {self._words()}\n")
        mark = self.vault / "Captures/default/Mark.md"
        mark.write_text(f"---\nid: mark\ncreated_at: 2026-01-01T00:00:00.000Z\n---\nmark{step}\n", "utf-8")

    def _edit(self, kind: str, note: Path, text: str) -> None:
        if kind == "write":
            note.write_text(text, "utf-8")
        elif kind == "swap":
            (beside := note.with_name(f".{note.name}.tmp")).write_text(text, "utf-8")
            beside.replace(note)
        elif kind == "new":
            self.made += 1
            fresh_note = self.vault / f"Notes/{self.made % 97:02d}/More/Note {self.made}.md"
            fresh_note.parent.mkdir(parents=True, exist_ok=True)
            fresh_note.write_text(text, "utf-8")
        elif kind == "delete":
            note.unlink()
        elif kind == "rename":
            note.rename(note.with_name(f"{note.stem} again.md"[-80:]))
        else:
            note.parent.rename(note.parent.with_name(f"{note.parent.name}-{self.made}"))
            self.made += 1

    def _words(self) -> str:
        words, weights = vaults.vocabulary()
        return " ".join(self.rng.choices(words, weights, k=30))

    def git(self, *words: str) -> None:
        """`git WORDS` in the vault; a capture's file that is gone again makes `add` fail, and is tried anew."""
        command = ["git", "-C", str(self.vault), "-c", "user.name=P", "-c", "user.email=p@example.org", *words]
        for patience in (0.2, 1.0, None):
            done = subprocess.run(command, capture_output=True, check=False)
            if done.returncode == 0:
                return
            if patience is None:
                sys.stderr.write(done.stderr.decode())
                done.check_returncode()
            else:
                time.sleep(patience)


@dataclass(frozen=True, slots=True)
class Sample:
    """What one process used after a commit."""

    rss: float
    handles: int
    threads: int


def week(work: Path) -> Iterator[Row]:
    """Live through it, and say what grew."""
    vault, state = fresh(work, "week")
    vaults.make(vault, NOTES, words=40)
    person = Person(vault, random.Random(7))
    person.git("init", "-q")
    person.git("add", "-A")
    person.git("commit", "-qm", "all")
    clock, shifts = Clock(state.parent) if Clock.possible else None, 0
    begun = time.perf_counter()
    lives: list[list[Sample]] = []
    starts: list[float] = []
    waits: list[float] = []
    plan = [LONG] + [(COMMITS - LONG) // RESTARTS] * RESTARTS
    step = 0
    for life, commits in enumerate(plan):
        with ExitStack() as stack:
            started = time.perf_counter()
            one = stack.enter_context(daemon(vault, state, "--made-up", environ=clock.environ if clock else None))
            one.settled()
            starts.append(time.perf_counter() - started)
            lives.append([])
            if life == 0:
                calm = [calmed(one)]
            for _ in range(commits):
                step += 1
                if clock and step % 40 == 0:
                    shifts += 1
                    clock.set(SHIFTS[shifts % len(SHIFTS)])
                waits.append(lived(one, person, step))
                lives[-1].append(Sample(one.rss, one.process.num_fds(), one.process.num_threads()))
            one.settled(within=120)
            if life == 0:
                calm.append(calmed(one))
            if life % 2:
                one.process.kill()  # every second life ends without a word
        sys.stderr.write(f"  {step} commits, {time.perf_counter() - begun:.0f} s, {lives[-1][-1]}\n")
    assert not compared(vault, state, work), "the index differs from a rebuilt index"
    yield from rows(lives, starts, waits, calm, person, shifts, time.perf_counter() - begun)


def lived(one: Daemon, person: Person, step: int) -> float:
    """One commit's worth of work by the person and an agent; the seconds until all of it could be found."""
    person.edits(step)
    made = one.rest("POST", "/capture", json={"content": f"capture of step {step}: {person._words()}"})
    one.tool("semantic_search", query=f"what was said at step {step}")
    if step % 3 == 0:
        one.rest("DELETE", f"/thought/{made['id']}")
    person.git("add", "-A")
    person.git("commit", "-qm", f"step {step}")
    if step % 25 == 0:
        person.git("checkout", "-q", "HEAD~2")
        person.git("checkout", "-q", "-")
    began = time.perf_counter()
    while not found(one, f"mark{step}"):
        assert time.perf_counter() - began < 120, one.status()
        time.sleep(0.2)
    took = time.perf_counter() - began
    if step % 10 == 0:  # also what was deleted: an absence is believed after two seconds
        one.settled(within=120)
    return took


def calmed(one: Daemon) -> int:
    """How many threads there are once nothing has been asked for a while."""
    one.rest("POST", "/search", json={"query": "a first search"})
    time.sleep(15)
    return one.process.num_threads()


def found(one: Daemon, word: str) -> bool:
    """Whether the note that says `word` is found by it."""
    hits = one.rest("POST", "/search", json={"query": word, "mode": "text", "top_k": 1})["results"]
    return bool(hits) and word in hits[0]["document_content"]


def compared(vault: Path, state: Path, work: Path) -> bool:
    """Whether the index of `state` differs from one made anew of the same files."""

    def dump(folder: Path, *, full: bool) -> dict[str, Any]:
        embedder = Embedder(EmbedSettings(), cache=state / "models", load=made_up)
        embedder.start()
        assert embedder.wait(), embedder.problem
        with App(Settings(vault=VaultSettings(path=vault), state=folder), embedder=embedder) as app:
            if full:
                app.opened.sync.run(accept=True)
            return {scope: dump_index(scope_index.index) for scope, scope_index in app.opened.builds.scopes.items()}

    other = work / "week" / "other"
    shutil.rmtree(other, ignore_errors=True)
    return dump(state, full=False) != dump(other, full=True)


def rows(
    lives: list[list[Sample]],
    starts: list[float],
    waits: list[float],
    calm: list[int],
    person: Person,
    shifts: int,
    seconds: float,
) -> Iterator[Row]:
    """The rows of the table."""
    long = lives[0]
    quarter = len(long) // 4
    early, late = long[quarter : 2 * quarter], long[-quarter:]
    said = ", ".join(f"{count} {kind}" for kind, count in sorted(person.kinds.items(), key=lambda one: -one[1]))
    note = f"{said}; {shifts} changes of the clock; {seconds:.0f} s in all; the index equals a rebuilt index"
    yield Row(
        f"a week: {COMMITS * EDITS:,} edits, {COMMITS} commits, {len(lives)} starts",
        "all found",
        f"after a commit p50 {statistics.median(waits):.1f}, at most {max(waits):.1f} s",
        True,
        note,
    )
    for what, unit in (("rss", "MB"), ("handles", "")):
        before = statistics.median(getattr(sample, what) for sample in early)
        after = statistics.median(getattr(sample, what) for sample in late)
        most = max(getattr(sample, what) for life in lives for sample in life)
        yield Row(
            f"{what} of one process, second quarter → last quarter of {LONG} commits",
            "flat (≤ 1.05 ×)",
            f"{before:.0f} → {after:.0f} {unit}".strip(),
            after <= before * 1.05,
            f"at most {most:.0f} over all lives",
        )
    # LanceDB keeps threads for the disk as long as they are busy, and lets them go after ten seconds: counted in a lull.
    yield Row(
        f"threads in a lull, before and after the first {LONG} commits",
        "flat (≤ 2 more)",
        f"{calm[0]} → {calm[1]}",
        calm[1] <= calm[0] + 2,
        f"at most {max(sample.threads for life in lives for sample in life)} at work over all lives",
    )
    yield Row("start until settled, over those lives", "", f"p50 {statistics.median(starts[1:]):.1f} s", None)
