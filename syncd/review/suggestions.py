"""Compute suggestions for a waiting capture from the habits of the vault: folder, tags, links and similar notes.

Only the owner sees them. The folder: where the notes lie that are nearest to the capture, that have its tags, and
whose titles hold its words. Tags: those of the nearest notes, and those of the vault that the capture mentions.
Links: notes that it names without a link. Similar notes: those that already say what it says, of which it is a newer
text, or to which it adds something.

Laws, tested: equal captures and habits give equal suggestions, in whatever order the notes come; what stands in the
inbox, and folders for daily notes, templates and archived notes, are never proposed; a suggestion that was given
stays until it is plainly worse than another, so that small changes of the vault change no note."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from index.graph.unlinked_names import Names
from index.model import SimilarDocument
from index.names import fold
from index.text import stopwords
from index.text.tags import key_of, words_of

Resemblance: TypeAlias = Literal["duplicate", "supersedes", "extends", "similar"]
Told: TypeAlias = tuple[str, str, Sequence[str], Sequence[str], bool]  # path, title, tags, aliases, is a template

NEAREST: Final = 12  # notes that speak for their folders and tags
NEAR, WORDED, TAGGED, TITLED, NAMED = 1.0, 0.3, 0.7, 0.5, 0.2  # weights; half or twice of any changes little
STEEP: Final = 2  # the power of a similarity: what is near counts for more than what is many
SURE: Final = 0.9  # the score from which a folder is proposed (right for 95 % of 229 hidden notes)
STAYS: Final = 0.8  # a folder that was proposed stays with this part of the best one's score
TAG, KEPT_TAG = 0.7, 0.5  # share of the nearest notes' weight from which a tag is proposed (right for 92 %), and stays
CLOSE: Final = 0.5  # similarity of the nearest note without which tags are no more than those that all notes have
MOST_TAGS, MOST_LINKS, MOST_SIMILAR = 5, 8, 5
ALIKE, KEPT_ALIKE = 0.65, 0.6  # similarity from which a note is called similar, and stays so
SAME, PART, SOME = 0.8, 0.6, 0.3  # shares of one text that stand in another: all but all, most, a good part
DAILY: Final = 0.6  # share of notes named for a day from which a folder is one of daily notes

# Folders that a person keeps apart from their notes, as they are mostly called.
_ASIDE: Final = re.compile(
    r"(?<![^\W_])(?:templates?|archived?|archives|attachments?|assets|trash|daily(?:[ _-]?notes?|(?=/|\Z))|inbox)(?![^\W_])"
    r"|归档|歸檔|存档|模板|附件|日记|日記|テンプレート|アーカイブ|添付",
    re.IGNORECASE,
)
_DAY: Final = re.compile(r"\d{4}[-_. ]?\d\d[-_. ]?\d\d(?:\D.{0,12})?")
_RUN: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_UNIT: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")


@dataclass(frozen=True, slots=True)
class VaultHabits:
    """The habits of the vault, learned once for each state of it."""

    folders: Mapping[str, int]  # those that may be proposed, with how many notes lie in each
    tags: Mapping[str, Mapping[str, int]]  # by key of a tag: how many notes of which folder have it
    titled: Mapping[str, Mapping[str, int]]  # the same by words of titles
    spelt: Mapping[str, str]  # by key of a tag: as it is mostly written
    linkable: Sequence[str]  # the paths of notes that a capture may name
    names: Names  # theirs, by number

    @property
    def tag_counts(self) -> dict[str, int]:
        """How many notes have each tag, by key."""
        return {key: sum(folders.values()) for key, folders in self.tags.items()}


@dataclass(frozen=True, slots=True)
class SuggestionSubject:
    """A capture, as far as suggestions depend on it."""

    title: str
    tags: Sequence[str]
    text: str  # without code
    linked: Collection[str]  # paths of notes that it links to


@dataclass(frozen=True, slots=True)
class ScoredSuggestion:
    """Something that may be suggested, and what speaks for it."""

    what: str  # a folder, a tag, the path of a note
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class SimilarNote:
    """A note that a capture resembles."""

    path: str
    kind: Resemblance
    score: float


@dataclass(frozen=True, slots=True)
class Suggestions:
    """All candidates, the best first; what is given of them depends on what was given before."""

    folders: tuple[ScoredSuggestion, ...] = ()
    tags: tuple[ScoredSuggestion, ...] = ()
    links: tuple[ScoredSuggestion, ...] = ()
    similar: tuple[SimilarNote, ...] = ()


def folder_of(path: str) -> str:
    """The folder that a note lies in; "" = the vault's root."""
    return path.rpartition("/")[0]


def learn_habits(
    notes: Iterable[Told], *, inbox: str, aside: Collection[str] = (), ordinary: Container[str] = frozenset()
) -> VaultHabits:
    """Learn the habits of the vault. `aside`: folders that its settings name for daily notes or templates.

    `ordinary`: words, in lower case, that are not names in themselves."""
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


def _excluded_folders(notes: Sequence[Told], aside: Collection[str]) -> set[str]:
    """The folders from which nothing is proposed: by their names, by what the settings say, by what lies in them."""
    inside: dict[str, list[Told]] = defaultdict(list)
    for note in notes:
        inside[folder_of(note[0])].append(note)
    named = tuple(f"{fold(name.strip('/'))}/" for name in aside if name.strip("/"))
    apart = set()
    for folder, members in inside.items():
        days = sum(_DAY.fullmatch(note[0].rpartition("/")[2][:-3]) is not None for note in members)
        daily = len(members) > 1 and days >= DAILY * len(members)
        templates = 2 * sum(note[4] for note in members) >= len(members)
        if folder and (_ASIDE.search(folder) or daily or templates or f"{fold(folder)}/".startswith(named)):
            apart.add(folder)
    return apart


def name_words(text: str) -> set[str]:
    """The words of a name that say something: in one form, pairs of characters where a script parts no words."""
    words = {word for word in words_of(_RUN.sub(" ", text)) if len(word) > 2 and word not in stopwords.ENGLISH}
    pairs = {run[n : n + 2] for run in _RUN.findall(text) for n in range(max(1, len(run) - 1))}
    return words | pairs


def suggest(
    subject: SuggestionSubject,
    similar: Sequence[SimilarDocument],
    known: VaultHabits,
    shares: Mapping[str, tuple[float, float]],
) -> Suggestions:
    """What may be suggested for a capture.

    `similar`: notes of the vault proper, the nearest first; `shares`: of some of them, how much of the capture's text stands
    in the note, and how much of the note's in the capture."""
    linkable = set(known.linkable)
    weights = {note.record.path: _weight(note) for note in similar if note.record.path in linkable}
    near = sorted(weights, key=lambda path: (-weights[path], path))[:NEAREST]
    whole = sum(weights[path] for path in near)
    named = [(known.linkable[n], count) for n, count in known.names.count_mentions(subject.text).items()]
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
    """Folders by what speaks for them. `near`: the nearest notes, with the share of each in their weight."""
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
        if words & name_words(folder.rpartition("/")[2]):
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
    """0..1 by folder: the part of the notes with each of these tags or words that lies there, on the average."""
    affinities: dict[str, float] = defaultdict(float)
    known = [table[term] for term in sorted(terms) if term in table]
    for folders in known:
        whole = sum(folders.values()) + 1  # one note alone says little
        for folder, count in folders.items():
            affinities[folder] += count / whole / len(known)
    return affinities


def _folder_reason(beside: int, near: int, tagged: float, titled: float) -> str:
    reasons = [f"{beside} of its {near} nearest notes lie there"] if beside else []
    reasons += ["notes with its tags do"] if tagged >= 0.2 else []
    reasons += ["notes with such titles do"] if titled >= 0.2 else []
    return ", ".join(reasons) or "its name fits"


def _suggest_tags(
    subject: SuggestionSubject, known: VaultHabits, near: Sequence[tuple[SimilarDocument, float]]
) -> tuple[ScoredSuggestion, ...]:
    """Tags of the nearest notes, and those of the vault whose own words the capture's title holds."""
    has = {key_of(tag) for tag in subject.tags}
    used, whole = known.tag_counts, sum(weight for _, weight in near)
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
        if key in known.spelt and key not in has and used[key] > 1 and value >= KEPT_TAG
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
    """What a capture is to a note in which the part `here` of its text stands, and which stands in it by the part `there`."""
    titled = fold(subject.title) in {fold(name) for name in (note.record.title, *note.record.aliases)}
    if here >= SAME:
        return "duplicate"
    if there >= PART:
        return "supersedes"
    if here >= SOME or there >= SOME or (titled and (note.near >= SOME or note.words)):
        return "extends"
    return "similar" if note.near >= KEPT_ALIKE else None


def shingles(text: str) -> frozenset[str]:
    """What a text is compared by: each three words, or characters of scripts without blanks, that follow one another."""
    words = [unit.casefold() for unit in _UNIT.findall(text)]
    if len(words) < 3:
        return frozenset([" ".join(words)] if words else ())
    return frozenset(" ".join(words[n : n + 3]) for n in range(len(words) - 2))


def shared_parts(capture: Collection[str], note: Collection[str]) -> tuple[float, float]:
    """How much of the one stands in the other, either way round."""
    both = len(frozenset(capture) & frozenset(note))
    return both / len(capture) if capture else 0.0, both / len(note) if note else 0.0


# What is written


def suggestion_properties(
    suggestions: Suggestions, before: Mapping[str, Any], link: Mapping[str, str]
) -> dict[str, Any]:
    """The person's properties for these `suggestions`, where the note says `before`; a key that is None leaves.

    `link`: by path, how a note's path is written in a link of a property; one that is not there can't be linked."""
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
    """What was given and still may be, in its order, then what is new and good enough."""
    previous = [text for text in before if isinstance(text, str)] if isinstance(before, list) else []
    may = {text for _, text in scored}
    stays = [text for text in dict.fromkeys(previous) if text in may]
    new = [text for score, text in scored if score >= enough and text not in stays]
    return (stays + new)[:most] or None


def _format_link(target: str, kind: str) -> str:
    """A link to a note, shown with what the capture is to it."""
    return f"[[{target}|{kind}: {target.rpartition('/')[2]}]]" if kind else f"[[{target}]]"
