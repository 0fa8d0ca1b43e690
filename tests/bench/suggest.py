"""Suggestions judged on real vaults: notes are hidden, a tenth at a time, and asked for as if they were captures.

The folder that is suggested should be the one that the note lay in; the tags those that it had. Notes of the other vaults
are asked for too, as captures about something else: of them nothing should be suggested. Folders with fewer than
three notes, and those that are never proposed, are left out. A hidden note's own links and its text as a link's target
are not used; its tags are in one row and not in the other, as captures have tags of their agents and not of the vault."""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from index.encoders.word_frequency import word_ranks
from index.model import Record, Stat
from index.scope.index import Index
from index.text.tags import key_of
from index.topics.summary_and_tags import enrich
from syncd.app import App
from syncd.review.suggestions import SURE, TAG, SuggestionSubject, VaultHabits, folder_of, learn_habits
from syncd.review.suggestions import suggest as suggest_for
from syncd.settings.settings import load
from tests.bench import yardsticks
from tests.bench.measure import p50, p95
from tests.bench.record import Row
from tests.bench.vaults import DEMO
from tests.support.parsed_notes import parse

VAULTS = ("vault_kepano", "vault_tasks_demo", "vault_oldwinter_md")
PARTS = 10
ASKED = 400  # notes of a vault at most
FOREIGN, LEAST, LARGEST = 60, 150, 5_000  # notes of each other vault, and their bytes


@dataclass
class Tally:
    """What came of the questions about one vault."""

    asked: int = 0
    first: int = 0
    third: int = 0
    given: int = 0
    right: int = 0
    tagged: Counter[str] = field(default_factory=Counter)
    ms: list[float] = field(default_factory=list)


def suggest(work: Path, data: Path) -> Iterator[Row]:
    """A row for each vault, without and with the notes' own tags."""
    vaults = [("demo", DEMO), *((name, data / name) for name in VAULTS if (data / name).is_dir())]
    for name, vault in vaults:
        folder = work / f"suggest-{name}"
        if not (folder / "vault").is_dir():
            shutil.copytree(vault, folder / "vault")
        flags = {"vault.path": str(folder / "vault"), "state": str(folder / "state")}
        with App(load(flags, {"HOME": str(work)})) as app:
            app.opened.embedder.wait()
            app.operations["index"]({}, lambda _: None)
            index = app.opened.builds.scopes["vault"].index
            index.maintain(force=True)  # as a daemon does soon: full text without its index is looked through
            for own_tags in (False, True):
                yield _row(name, judged(index, folder / "vault", own_tags=own_tags), own_tags=own_tags)
            yield _foreign_row(name, app, [path for other, path in vaults if other != name])


def _foreign_row(name: str, app: App, others: Sequence[Path]) -> Row:
    """For how many notes of other vaults a folder, or a tag, is suggested."""
    index, captures = app.opened.builds.scopes["vault"].index, app.opened.builds.scopes["captures"].index
    known = learn_habits(index.note_names(), inbox="Captures", ordinary=word_ranks())
    asked = foldered = tagged = 0
    for vault in others:
        files = [file for file in sorted(vault.rglob("*.md")) if LEAST <= file.stat().st_size <= LARGEST]
        random.Random(1).shuffle(files)
        for file in files[:FOREIGN]:
            document = parse(file.read_bytes(), f"Captures/default/{file.name}", mtime_ms=0)
            (ready,) = captures.prepare([(document, Stat(0, 0, 0))])
            assert ready.vectors is not None, "the encoder was waited for"
            tags = enrich(document, vocabulary={}, places=word_ranks()).tags
            kin = index.find_similar(ready.vectors.astype("float32"), " ".join([document.title, *tags[:4]]))
            given = suggest_for(SuggestionSubject(document.title, tags, document.text, ()), kin, known, {})
            asked += 1
            foldered += bool(given.folders and given.folders[0].score >= SURE)
            tagged += any(tag.score >= TAG for tag in given.tags)
    share = f"{foldered / max(1, asked):.3f}/{tagged / max(1, asked):.3f}"
    return Row(f"suggest: {name}, notes of other vaults", "folder/tag given", share, None, f"{asked} notes")


def judged(index: Index, vault: Path, *, own_tags: bool, seed: int = 7) -> Tally:
    """Hide notes, ask for them, compare."""
    told = index.note_names()
    whole = learn_habits(told, inbox="Captures", ordinary=word_ranks())
    eligible = [path for path in whole.linkable if whole.folders.get(folder_of(path), 0) >= 3]
    random.Random(seed).shuffle(eligible)
    eligible = eligible[:ASKED]
    tally = Tally()
    for part in range(PARTS):
        hidden = set(eligible[part::PARTS])
        known = learn_habits([one for one in told if one[0] not in hidden], inbox="Captures", ordinary=word_ranks())
        for path in sorted(hidden):
            record = index.record_at(path)
            assert record is not None
            ask(tally, index, known, record, (vault / path).read_bytes(), hidden, own_tags=own_tags)
    return tally


def ask(
    tally: Tally, index: Index, known: VaultHabits, record: Record, raw: bytes, hidden: set[str], *, own_tags: bool
) -> None:
    """One note as a capture."""
    document = parse(raw, record.path, mtime_ms=0)
    tags: Sequence[str] = record.tags if own_tags else ()
    begun = time.perf_counter()
    found = enrich(document, vocabulary={}, places=word_ranks())
    words = " ".join([record.title, *(tags or found.tags[:4])])
    kin = [one for one in index.find_similar(index.sample_vectors(record), words) if one.record.path not in hidden]
    given = suggest_for(SuggestionSubject(record.title, tags, document.text, ()), kin, known, {})
    tally.ms.append((time.perf_counter() - begun) * 1000)
    names = [one.what for one in given.folders]
    own = folder_of(record.path)
    tally.asked += 1
    tally.first += names[:1] == [own]
    tally.third += own in names[:3]
    if given.folders and given.folders[0].score >= SURE:
        tally.given += 1
        tally.right += names[0] == own
    used = {key: sum(folders.values()) for key, folders in known.tags.items()}
    real = {key_of(tag) for tag in record.tags if used.get(key_of(tag), 0) > 1}
    if real and not own_tags:
        said = {key_of(one.what) for one in given.tags if one.score >= TAG}
        tally.tagged.update(real=len(real), said=len(said), right=len(real & said))


def _row(name: str, tally: Tally, *, own_tags: bool) -> Row:
    asked = max(1, tally.asked)
    tags = tally.tagged
    note = f"{tally.asked} notes; proposed for {tally.given}, right {tally.right / max(1, tally.given):.2f}; {p50(tally.ms):.0f}/{p95(tally.ms):.0f} ms"
    if tags["said"]:
        note += f"; tags P {tags['right'] / tags['said']:.2f} R {tags['right'] / tags['real']:.2f}"
    kind = "with its tags" if own_tags else "no tags"
    figure = f"{tally.first / asked:.2f}/{tally.third / asked:.2f}"
    ratios = {"p50": p50(tally.ms) / yardsticks.unit()} if tally.ms else {}
    return Row(f"suggest: {name}, {kind}", "hit@1/hit@3", figure, None, note, ratios, "one query encoding")
