"""Find the captures of a workspace that need attention: copies, unused captures, and tags to merge.

Notes are compared when they share runs of words or rare words, or are near in meaning: the likeliest pairs first and at
most `LOOKED_AT` pairs, so that the time is bounded, as `HELD` bounds the memory. The result states how many pairs were
left out.

Laws, tested: equal values give equal findings in any order; a note that shares nothing with others changes no
finding about them; a note has at most one role towards another note."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from index.model import DocumentOverview
from index.search import vector_similarity
from index.search.vector_similarity import Neighbours
from index.text import similarity_sketch
from index.text.similarity_sketch import FrequentRuns, Pairs, Sketch
from syncd.consolidation.analysis.duplicates import ComparedNote, Duplicate, find_duplicate
from syncd.consolidation.analysis.findings import Finding, Kind, Quote, key_of
from syncd.consolidation.analysis.tag_synonyms import find_synonyms
from syncd.notes.secret_patterns import redact
from syncd.notes.timestamps import DAY_MS

LIMIT: Final = 50  # of each list
LOOKED_AT: Final = 10_000  # pairs of notes whose sentences are compared
NEAR: Final = 0.6  # lowest cosine at which a note is compared with its nearest notes
RUNS: Final = 0.25  # lowest share of the shorter note's runs of three words
RARE: Final = 1.6  # lowest sum of the rarities of shared rare words
SHARED: Final = 0.3  # lowest share of the shorter note's words; below it a pair is skipped
BATCH: Final = 32  # pairs whose texts are read and compared at a time
HELD: Final = 2_000_000  # characters of notes that stay in memory; their sentences take 30 bytes for each
QUOTED: Final = 240  # characters of a sentence
QUOTES: Final = 4  # sentences that only the copy has
OLD_MS: Final = 180 * DAY_MS  # age from which a capture may be called unused

REASONS: Final[Mapping[str, str]] = {
    "equal": "both have the same words",
    "edited": "they differ only in small edits",
    "part": "the first contains everything in the second, and more",
}
# Texts returns the texts of captures by their numbers, without missing ones. GoOn returns, or raises to stop the scan.
Texts: TypeAlias = Callable[[Sequence[int]], Mapping[int, str]]
GoOn: TypeAlias = Callable[[], None]


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """Holds the findings of a comparison of notes, and how many of the chosen pairs were not compared."""

    duplicates: tuple[Finding, ...]
    near: tuple[Finding, ...]
    left_out: int


def choose_pairs(sketches: Sequence[Sketch], rows: Sequence[int], neighbours: Neighbours, go_on: GoOn) -> Pairs:
    """Choose the pairs of notes that are worth comparing, the likeliest first.

    `rows` maps each row of `neighbours` to the number of its note."""
    runs = similarity_sketch.pairs_sharing_runs(sketches, RUNS)
    go_on()
    words = similarity_sketch.pairs_sharing_words(sketches, RARE)
    go_on()
    pairs = similarity_sketch.merge_pairs((runs, words, vector_similarity.neighbour_pairs(neighbours, rows, NEAR)))
    go_on()
    share = similarity_sketch.word_overlap(sketches, pairs)
    return similarity_sketch.rank_pairs(pairs, share, SHARED)


def compare_pairs(
    workspace: str,
    captures: Sequence[DocumentOverview],
    pairs: Pairs,
    texts: Texts,
    *,
    common: FrequentRuns,
    go_on: GoOn = lambda: None,
    looked_at: int = LOOKED_AT,
) -> ComparisonResult:
    """Compare the sentences of these pairs; `captures` are ordered by id, `common` has the frequent runs."""
    looked = sorted(map(tuple, pairs[:looked_at].tolist()))
    reader = ReadTexts(captures, texts)
    copies: list[tuple[int, int, Duplicate]] = []
    for start in range(0, len(looked), BATCH):
        go_on()
        some = looked[start : start + BATCH]
        reader.read_ahead({n for pair in some for n in pair})
        for a, b in some:
            older, newer = sorted((a, b), key=lambda n: (captures[n].created_at, captures[n].id))
            notes = reader.read.get(older), reader.read.get(newer)
            if notes[0] is None or notes[1] is None:
                continue
            copy = find_duplicate(notes[0], notes[1])
            again = copy is not None and copy.how == "equal" and notes[0].name == notes[1].name
            if copy and (again or not common.is_form(notes[0].text, notes[1].text)):
                copies.append((older, newer, copy))
    duplicates, near = _find_duplicates(workspace, captures, copies)
    return ComparisonResult(duplicates, near, max(0, len(pairs) - looked_at))


@dataclass(slots=True)
class ReadTexts:
    """Caches the notes that are being compared."""

    captures: Sequence[DocumentOverview]
    texts: Texts
    read: dict[int, ComparedNote] = field(default_factory=dict)

    def read_ahead(self, numbers: Collection[int]) -> None:
        """Load the notes with these numbers, and drop others if there are too many."""
        if sum(len(note.text) for note in self.read.values()) > HELD:
            self.read = {n: note for n, note in self.read.items() if n in numbers}
        for n, text in sorted(self.texts(sorted(set(numbers) - self.read.keys())).items()):
            self.read[n] = ComparedNote(self.captures[n].title, text)


def _find_duplicates(
    workspace: str, captures: Sequence[DocumentOverview], copies: Sequence[tuple[int, int, Duplicate]]
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Pair each copy with the best note to merge it into; that note is never a copy itself."""
    kept_of: dict[int, tuple[float, int, Duplicate]] = {}
    for older, newer, duplicate in copies:
        kept, copy = (older, newer) if duplicate.kept == 0 else (newer, older)
        known = kept_of.get(copy)
        if known is None or (-duplicate.score, kept) < (-known[0], known[1]):
            kept_of[copy] = (duplicate.score, kept, duplicate)
    # In a ring of copies, the note with the surest copies is kept.
    chosen: dict[int, tuple[float, int, Duplicate]] = {}
    for copy, (score, kept, duplicate) in sorted(kept_of.items(), key=lambda item: (-item[1][0], item[0])):
        if kept not in chosen and all(copy != other for _, other, _ in chosen.values()):
            chosen[copy] = (score, kept, duplicate)
    whole: list[Finding] = []
    near: list[Finding] = []
    for copy, (score, kept, duplicate) in chosen.items():
        how = REASONS[duplicate.how]
        more = f"; only the second contains “{quote_text(duplicate.lost[0])}”" if duplicate.lost else ""
        quotes = tuple(Quote(captures[copy].id, quote_text(text, QUOTED)) for text in duplicate.lost[:QUOTES])
        finding = _make_finding(
            workspace, "merge-duplicates", [captures[kept], captures[copy]], score, f"{how}{more}", quotes
        )
        (whole if duplicate.how == "equal" else near).append(finding)
    return _best_first(whole), _best_first(near)


def find_unused(
    workspace: str,
    captures: Sequence[DocumentOverview],
    *,
    linked: Collection[str],
    now: int,
) -> tuple[Finding, ...]:
    """Find captures that are older than `OLD_MS`, were never changed, and have no link to them.

    `linked` holds the ids of the notes that have a link to them."""
    findings = []
    for capture in captures:
        age = now - capture.created_at
        if age < OLD_MS or capture.updated_at is not None or capture.id in linked or capture.type != "note":
            continue
        days = age // DAY_MS
        score = min(1.0, age / (4 * OLD_MS))
        reason = f"captured {days:,} days ago; no changes and no links to it since then"
        findings.append(_make_finding(workspace, "archive", [capture], round(score, 3), reason))
    return _best_first(findings)


def find_tag_synonyms(
    workspace: str, captures: Sequence[DocumentOverview], places: Mapping[str, int]
) -> tuple[Finding, ...]:
    """Find the tags that mean the same."""
    uses: dict[str, list[int]] = defaultdict(list)
    for n, capture in enumerate(captures):
        for tag in capture.tags:
            uses[tag].append(n)
    return tuple(
        Finding(
            kind="tag-merge",
            key=key_of(workspace, "tag-merge", (), (synonym.kept, synonym.merged)),
            workspace=workspace,
            ids=(),
            would=(synonym.kept, synonym.merged),
            hashes=(),
            score=synonym.score,
            reason=synonym.reason,
        )
        for synonym in find_synonyms(uses, places)
    )


def quote_text(text: str, most: int = 120) -> str:
    """Make a note's text fit for a quote in a sentence: one line, without secrets, cut."""
    text = " ".join(redact(text).split())
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _make_finding(  # noqa: PLR0917 - a value is filled in
    workspace: str,
    kind: Kind,
    captures: Sequence[DocumentOverview],
    score: float,
    reason: str,
    quotes: tuple[Quote, ...] = (),
) -> Finding:
    """Make a finding about `captures`, which are in the order of its kind."""
    ids = tuple(capture.id for capture in captures)
    hashes = tuple(capture.content_hash for capture in captures)
    return Finding(kind, key_of(workspace, kind, ids, ()), workspace, ids, (), hashes, score, reason, quotes)


def _best_first(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: (-finding.score, finding.key)))
