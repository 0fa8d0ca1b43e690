"""Compute suggestions for a waiting capture from the habits of the vault: folder, tags, links and similar notes.

Only the owner sees them. Folder: the folder of the notes that are nearest to the capture, share its tags, or have its
title's words in their titles. Tags: tags of the nearest notes, and tags of the vault that the capture's title or tags
contain as words. Links: notes that the capture names without linking to them. Similar notes: notes that the capture
duplicates, supersedes, extends or resembles.

Laws, tested: equal captures and habits give equal suggestions, whatever the order of the notes; notes of the inbox,
and folders for daily notes, templates and archived notes, are never suggested; an earlier suggestion stays until it is
clearly worse than another, so that small changes of the vault change no note."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from index.deferred_patterns import compile_later
from index.graph.unlinked_names import Names
from index.model import SimilarDocument
from index.names import base_name, fold, note_name
from index.text import stopwords
from index.text.tags import key_of, words_of

Resemblance: TypeAlias = Literal["duplicate", "supersedes", "extends", "similar"]
NamedNote: TypeAlias = tuple[str, str, Sequence[str], Sequence[str], bool]  # path, title, tags, aliases, is a template

NEAREST: Final = 12  # nearest notes that count for their folders and tags
NEAR, WORDED, TAGGED, TITLED, NAMED = 1.0, 0.3, 0.7, 0.5, 0.2  # weights; halving or doubling one changes little
STEEP: Final = 2  # exponent of a similarity, so that a few near notes outweigh many distant ones
SURE: Final = 0.9  # least score to suggest a folder (right for 95 % of 229 hidden notes)
STAYS: Final = 0.8  # an earlier suggested folder stays if it has this share of the best folder's score
TAG, KEPT_TAG = 0.7, 0.5  # least share of the nearest notes' weight to suggest a tag (right for 92 %), and to keep it
CLOSE: Final = 0.5  # least similarity of a note to suggest tags; below it the nearest notes only share common tags
MOST_TAGS, MOST_LINKS, MOST_SIMILAR = 5, 8, 5
ALIKE, KEPT_ALIKE = 0.65, 0.6  # least similarity to call a note similar, and to keep calling it so
SAME, PART, SOME = 0.8, 0.6, 0.3  # shares of one text that another contains: almost all, most, a good part
DAILY: Final = 0.6  # least share of notes named after a day for a folder of daily notes

# Usual names of folders that people keep apart from their notes.
_ASIDE: Final = compile_later(
    r"(?<![^\W_])(?:templates?|archived?|archives|attachments?|assets|trash|daily(?:[ _-]?notes?|(?=/|\Z))|inbox)(?![^\W_])"
    r"|归档|歸檔|存档|模板|附件|日记|日記|テンプレート|アーカイブ|添付",
    re.IGNORECASE,
)
_DAY: Final = compile_later(r"\d{4}[-_. ]?\d\d[-_. ]?\d\d(?:\D.{0,12})?")
_RUN: Final = compile_later(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_UNIT: Final = compile_later(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
)


@dataclass(frozen=True, slots=True)
class VaultHabits:
    """Holds the habits of the vault, learned once for each state of it."""

    folders: Mapping[str, int]  # folders that may be suggested → number of notes in each
    tags: Mapping[str, Mapping[str, int]]  # key of a tag → folder → number of its notes with that tag
    titled: Mapping[str, Mapping[str, int]]  # word of a title → folder → number of its notes with that word
    spelt: Mapping[str, str]  # key of a tag → its most frequent spelling
    linkable: Sequence[str]  # paths of the notes to which links may be suggested
    names: Names  # titles and aliases of `linkable`, by position


@dataclass(frozen=True, slots=True)
class SuggestionSubject:
    """Holds the parts of a capture on which suggestions depend."""

    title: str
    tags: Sequence[str]
    text: str  # without code
    linked: Collection[str]  # paths of notes to which the capture links


@dataclass(frozen=True, slots=True)
class ScoredSuggestion:
    """Describes one possible suggestion, with its score and its reason."""

    what: str  # a folder, a tag, or the path of a note
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class SimilarNote:
    """Describes a note that a capture resembles."""

    path: str
    kind: Resemblance
    score: float


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Holds all candidates, the best first; `suggestion_properties` chooses among them, preferring earlier suggestions."""

    folders: tuple[ScoredSuggestion, ...] = ()
    tags: tuple[ScoredSuggestion, ...] = ()
    links: tuple[ScoredSuggestion, ...] = ()
    similar: tuple[SimilarNote, ...] = ()


def folder_of(path: str) -> str:
    """Return the folder of a note; "" = the vault's root."""
    return path.rpartition("/")[0]


def learn_habits(
    notes: Iterable[NamedNote], *, inbox: str, aside: Collection[str] = (), ordinary: Container[str] = frozenset()
) -> VaultHabits:
    """Learn the habits of the vault.

    `aside`: the folders for daily notes and templates in its settings. `ordinary`: ordinary words in lower case, which
    alone do not count as a name."""
    proper = [note for note in notes if not note[0].startswith(f"{inbox}/")]
    out = _excluded_folders(proper, aside)
    kept = sorted((note for note in proper if folder_of(note[0]) not in out), key=lambda note: note[0])
    folders: Counter[str] = Counter()
    tags: dict[str, Counter[str]] = defaultdict(Counter)
    titled: dict[str, Counter[str]] = defaultdict(Counter)
    spelt: dict[str, Counter[str]] = defaultdict(Counter)
    for path, title, tagged, _, _ in kept:
        folder = folder_of(path)
        folders[folder] += 1
        for tag in tagged:
            spelt[key_of(tag)][tag] += 1
        for key in {key_of(tag) for tag in tagged}:
            tags[key][folder] += 1
        for word in name_words(title):
            titled[word][folder] += 1
    return VaultHabits(
        folders={folder: count for folder, count in folders.items() if folder},
        tags=tags,
        titled=titled,
        spelt={key: min(forms, key=lambda tag: (-forms[tag], tag)) for key, forms in spelt.items()},
        linkable=[note[0] for note in kept],
        names=Names([(title, aliases) for _, title, _, aliases, _ in kept], ordinary=ordinary),
    )


def _excluded_folders(notes: Sequence[NamedNote], aside: Collection[str]) -> set[str]:
    """Return the folders from which nothing is suggested, because of their names, the vault's settings or their notes."""
    inside: dict[str, list[NamedNote]] = defaultdict(list)
    for note in notes:
        inside[folder_of(note[0])].append(note)
    named = tuple(f"{fold(name.strip('/'))}/" for name in aside if name.strip("/"))
    apart = set()
    for folder, members in inside.items():
        days = sum(_DAY.fullmatch(note_name(note[0])) is not None for note in members)
        daily = len(members) > 1 and days >= DAILY * len(members)
        templates = 2 * sum(note[4] for note in members) >= len(members)
        if folder and (_ASIDE.search(folder) or daily or templates or f"{fold(folder)}/".startswith(named)):
            apart.add(folder)
    return apart


def name_words(text: str) -> set[str]:
    """Return the significant words of a name, normalized; for scripts without spaces between words, pairs of characters."""
    words = {word for word in words_of(_RUN.sub(" ", text)) if len(word) > 2 and word not in stopwords.ENGLISH}
    pairs = {run[n : n + 2] for run in _RUN.findall(text) for n in range(max(1, len(run) - 1))}
    return words | pairs


def suggest(
    subject: SuggestionSubject,
    similar: Sequence[SimilarDocument],
    known: VaultHabits,
    shares: Mapping[str, tuple[float, float]],
) -> Suggestions:
    """Compute all candidates for a capture.

    `similar`: notes of the vault outside the inbox, the nearest first. `shares`: for some of their paths, the share of
    the capture's text that the note contains, and the share of the note's text that the capture contains (0..1)."""
    linkable = set(known.linkable)
    weights = {note.record.path: _weight(note) for note in similar if note.record.path in linkable}
    near = sorted(weights, key=lambda path: (-weights[path], path))[:NEAREST]
    whole = sum(weights[path] for path in near)
    named = [(known.linkable[n], count) for n, count in Counter(known.names.find_mentions(subject.text)).items()]
    return Suggestions(
        folders=_suggest_folders(subject, known, {path: weights[path] / whole for path in near} if whole else {}),
        tags=_suggest_tags(
            subject, known, [(note, weights[note.record.path]) for note in similar if note.record.path in near]
        )
        if any(note.near >= CLOSE for note in similar)
        else (),
        links=tuple(
            ScoredSuggestion(path, float(count), "it names the note")
            for path, count in sorted(named, key=lambda pair: (-pair[1], pair[0]))
            if path not in subject.linked
        )[:MOST_LINKS],
        similar=_similar_notes(subject, similar, linkable, shares),
    )


def _weight(note: SimilarDocument) -> float:
    return NEAR * max(0.0, note.near) ** STEEP + WORDED * note.words**2


def _suggest_folders(
    subject: SuggestionSubject, known: VaultHabits, near: Mapping[str, float]
) -> tuple[ScoredSuggestion, ...]:
    """Score the folders, the best first. `near`: the nearest notes, each with its share of their total weight."""
    score: dict[str, float] = defaultdict(float)
    beside: Counter[str] = Counter()
    for path, share in near.items():
        score[folder_of(path)] += share
        beside[folder_of(path)] += 1
    tagged = _affinity({key_of(tag) for tag in subject.tags}, known.tags)
    titled = _affinity(name_words(subject.title), known.titled)
    for folder, value in tagged.items():
        score[folder] += TAGGED * value
    for folder, value in titled.items():
        score[folder] += TITLED * value
    words = name_words(subject.title) | {word for tag in subject.tags for word in name_words(tag)}
    for folder in known.folders:
        if words & name_words(base_name(folder)):
            score[folder] += NAMED
    scored = [
        ScoredSuggestion(
            folder,
            round(value, 4),
            _folder_reason(beside[folder], len(near), tagged.get(folder, 0), titled.get(folder, 0)),
        )
        for folder, value in score.items()
        if folder in known.folders and value > 0
    ]
    return tuple(sorted(scored, key=lambda suggestion: (-suggestion.score, suggestion.what)))


def _affinity(terms: Collection[str], table: Mapping[str, Mapping[str, int]]) -> dict[str, float]:
    """Return by folder, as 0..1, the average share of the notes with each of these tags or words that the folder has."""
    affinities: dict[str, float] = defaultdict(float)
    known = [table[term] for term in sorted(terms) if term in table]
    for folders in known:
        whole = sum(folders.values()) + 1  # + 1, because a single note says little
        for folder, count in folders.items():
            affinities[folder] += count / whole / len(known)
    return affinities


def _folder_reason(beside: int, near: int, tagged: float, titled: float) -> str:
    reasons = [f"{beside} of its {near} nearest notes {'is' if beside == 1 else 'are'} there"] if beside else []
    reasons += ["notes with its tags are there"] if tagged >= 0.2 else []
    reasons += ["notes with similar titles are there"] if titled >= 0.2 else []
    return ", ".join(reasons) or "its name fits"


def _suggest_tags(
    subject: SuggestionSubject, known: VaultHabits, near: Sequence[tuple[SimilarDocument, float]]
) -> tuple[ScoredSuggestion, ...]:
    """Score the tags of the nearest notes, and the vault's tags whose words all occur in the capture's title or tags."""
    has = {key_of(tag) for tag in subject.tags}
    whole = sum(weight for _, weight in near)
    share: dict[str, float] = defaultdict(float)
    for note, weight in near:
        for key in {key_of(tag) for tag in note.record.tags}:
            share[key] += weight / whole if whole else 0
    words = name_words(subject.title) | {word for tag in subject.tags for word in name_words(tag)}
    for key, tag in known.spelt.items():
        tag_words = name_words(tag.rpartition("/")[2])
        if tag_words and tag_words <= words:
            share[key] += TAG
    scored = [
        ScoredSuggestion(known.spelt[key], round(value, 4), "the nearest notes have it")
        for key, value in share.items()
        if key in known.spelt and key not in has and sum(known.tags[key].values()) > 1 and value >= KEPT_TAG
    ]
    return tuple(sorted(scored, key=lambda suggestion: (-suggestion.score, suggestion.what)))


def _similar_notes(
    subject: SuggestionSubject,
    similar: Sequence[SimilarDocument],
    linkable: Collection[str],
    shares: Mapping[str, tuple[float, float]],
) -> tuple[SimilarNote, ...]:
    matches = []
    for note in similar:
        path = note.record.path
        if path in linkable and (kind := resemblance(subject, note, *shares.get(path, (0.0, 0.0)))):
            matches.append(SimilarNote(path, kind, round(max(note.near, *shares.get(path, (0.0, 0.0))), 4)))
    order: tuple[Resemblance, ...] = ("duplicate", "supersedes", "extends", "similar")
    return tuple(sorted(matches, key=lambda match: (order.index(match.kind), -match.score, match.path)))


def resemblance(subject: SuggestionSubject, note: SimilarDocument, here: float, there: float) -> Resemblance | None:
    """Return how a capture resembles a note; None if it does not.

    `here`: the share of the capture's text that the note contains; `there`: the share of the note's text that the
    capture contains (0..1)."""
    titled = fold(subject.title) in {fold(name) for name in (note.record.title, *note.record.aliases)}
    if here >= SAME:
        return "duplicate"
    if there >= PART:
        return "supersedes"
    if here >= SOME or there >= SOME or (titled and (note.near >= SOME or note.words)):
        return "extends"
    return "similar" if note.near >= KEPT_ALIKE else None


def shingles(text: str) -> frozenset[str]:
    """Return all sequences of three words of a text; in scripts without spaces, each character counts as a word."""
    words = [unit.casefold() for unit in _UNIT.findall(text)]
    if len(words) < 3:
        return frozenset([" ".join(words)] if words else ())
    return frozenset(" ".join(words[n : n + 3]) for n in range(len(words) - 2))


def shared_parts(capture: Collection[str], note: Collection[str]) -> tuple[float, float]:
    """Return the share of the capture's shingles that the note has, and the share of the note's that the capture has."""
    both = len(frozenset(capture) & frozenset(note))
    return both / len(capture) if capture else 0.0, both / len(note) if note else 0.0


# Properties


def suggestion_properties(
    suggestions: Suggestions, before: Mapping[str, Any], link: Mapping[str, str]
) -> dict[str, Any]:
    """Return the properties with these suggestions for the owner; None = the property is removed.

    `before`: the note's current properties. `link`: by path, the target of a link to that note; notes without one are
    left out."""
    links = [(scored.score, _format_link(link[scored.what], "")) for scored in suggestions.links if scored.what in link]
    similar = [
        (note.score if note.kind == "similar" else 1.0, _format_link(link[note.path], note.kind))
        for note in suggestions.similar
        if note.path in link
    ]
    tags = [(tag.score, tag.what) for tag in suggestions.tags]
    return {
        "suggested_folder": _choose_folder(suggestions.folders, before.get("suggested_folder")),
        "suggested_tags": _update_list(tags, before.get("suggested_tags"), TAG, MOST_TAGS),
        "suggested_links": _update_list(links, before.get("suggested_links"), 0.0, MOST_LINKS),
        "suggested_similar": _update_list(similar, before.get("suggested_similar"), ALIKE, MOST_SIMILAR),
    }


def _choose_folder(folders: Sequence[ScoredSuggestion], before: Any) -> str | None:
    best = folders[0] if folders and folders[0].score >= SURE else None
    stood = next((folder for folder in folders if folder.what == before), None)
    if best is None:
        return stood.what if stood and stood.score >= STAYS * SURE else None
    return stood.what if stood and stood.score >= STAYS * best.score else best.what


def _update_list(scored: Sequence[tuple[float, str]], before: Any, enough: float, most: int) -> list[str] | None:
    """Return the earlier suggestions that are still candidates, in their order, then new ones with enough score."""
    previous = [text for text in before if isinstance(text, str)] if isinstance(before, list) else []
    may = {text for _, text in scored}
    stays = [text for text in dict.fromkeys(previous) if text in may]
    new = [text for score, text in scored if score >= enough and text not in stays]
    return (stays + new)[:most] or None


def _format_link(target: str, kind: str) -> str:
    """Format a link to a note; with `kind`, the link's text starts with it."""
    return f"[[{target}|{kind}: {target.rpartition('/')[2]}]]" if kind else f"[[{target}]]"
