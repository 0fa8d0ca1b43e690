"""Whether a newer note says something else of the same thing: which sentence of it stands against which of the older one.

There is no model that understands them. Two claims are about one thing when they share most of their words; they are
contrary when, beside these, a figure, date, state or name differs that only one of them can have right. Claims about two
things of a kind share words as well, so whatever names which one is meant, in the claim or in the title, must be equal.

Laws, tested: a note is never contrary to itself; what is found of two notes depends on nothing but them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from syncd.consolidation.analysis.change_words import FROM, MOMENT
from syncd.consolidation.analysis.sentence_claims import WIDE, Claim, Value

ALIKE: Final = 0.6  # of the words of the claim with fewer the other has, by what they say
SUPPORT: Final = 1.3  # what the words say at least that both have
LOOSELY: Final = 1.2  # of that where the titles may be about two things, and the newer note tells of a change
SURE: Final = 0.75  # of that where the newer note tells of a change, and one claim holds all of the other
WHOLE: Final = 0.95
FEW: Final = 0.6  # of what a word tells that few notes have: a claim in words that all have is a form's
PARALLEL: Final = 0.2  # of what both say, each may say else
CHANGED: Final = 0.85  # the same where the newer one tells that something changed
NAMED: Final = 0.65  # of the older claim's words the newer one has, where another name has taken the place of one
MANY: Final = 150  # pairs of claims of two notes from which on chance brings some together
LOOSE: Final = 0.5  # what each title says that the other note does not, from which on they may be about two things
MUTUAL: Final = 0.6  # of what two claims say together both say, unless the newer one tells that something changed
TOLD: Final = 0.4  # of what the newer claim says the older note says, where a name is another
CODE: Final = 0.7  # what a name made of letters and figures says
ANCHOR: Final = 1.0  # what an equal sentence in both says of their being about one thing
SHOWN: Final = 3  # pairs of sentences
# In what two claims differ, where it is no word of theirs.
IS: Final = ("not so", "so")
IS_NOT: Final = ("so", "not so")
OVER: Final = ("so", "over")
INSTEAD: Final = ("so", "something else")

Differing: TypeAlias = tuple[list[Value], list[Value]]  # values of a kind, of each of two claims
Telling: TypeAlias = Callable[[str], float]  # 1 for a word that few notes have, less for one that many have


@dataclass(frozen=True, slots=True)
class Said:
    """What a note claims. What a word says is less, the more of the claims have it: it tells none of them from the rest."""

    title: Claim
    claims: tuple[Claim, ...]
    words: frozenset[str]  # of all of it
    named: bool  # its title is more than the beginning of its text
    rare: frozenset[str] = frozenset()  # those of its words that few notes have

    @classmethod
    def of(cls, title: Claim, claims: tuple[Claim, ...], telling: Telling = lambda _: 1.0) -> Said:
        """A note with this title and these claims. `telling`: how much a word, as it is written, tells in this workspace."""
        counts = Counter(word for claim in claims for word in claim.words)
        told = {word: telling(shown) for claim in (title, *claims) for word, shown in claim.shown.items()}
        said = tuple(
            replace(
                claim,
                words={word: worth * min(1.0, 2 / counts[word]) * told[word] for word, worth in claim.words.items()},
            )
            for claim in claims
        )
        title = replace(title, words={word: worth * told[word] for word, worth in title.words.items()})
        first = claims[0].text if claims else ""
        words = frozenset(title.words) | counts.keys()
        rare = frozenset(word for word, tells in told.items() if tells >= FEW)
        return cls(title, said, words, not _plain(first).startswith(_plain(title.text)), rare)


@dataclass(frozen=True, slots=True)
class Against:
    """A claim of the older note, the one of the newer note that stands against it, and in what they differ."""

    older: str
    newer: str
    difference: tuple[str, str]  # what each says in the other's place
    score: float
    changed: bool  # the newer one tells that something changed


def contrary(older: Said, newer: Said) -> tuple[Against, ...]:
    """The claims of two notes that stand against each other, the surest first."""
    named = titles(older, newer)
    if named == "apart":
        return ()
    same = {claim.text for claim in older.claims} & {claim.text for claim in newer.claims}
    anchored = any(len(claim.words) >= 2 for claim in older.claims if claim.text in same)
    title = {
        word: worth for word, worth in older.title.words.items() if word in newer.title.words or word in newer.words
    }
    title |= {word: worth for word, worth in newer.title.words.items() if word in older.words}
    found: dict[str, Against] = {}
    for one, other in _facing(older, newer, same):
        if not other.over and (_rivalled(one, other, newer.claims) or _rivalled(other, one, older.claims)):
            continue
        against = _against(one, other, older, newer, title, anchored=anchored, loose=named == "loose")
        if against and (against.older not in found or found[against.older].score < against.score):
            found[against.older] = against
    often = Counter(one.newer for one in found.values())
    told = [
        one for one in found.values() if often[one.newer] == 1
    ]  # one sentence against several is a list's, or chance
    return tuple(sorted(told, key=lambda one: (-one.score, one.older, one.newer))[:SHOWN])


def _facing(older: Said, newer: Said, same: set[str]) -> Iterator[tuple[Claim, Claim]]:
    """The claims of both that share words."""
    holders: dict[str, list[int]] = defaultdict(list)
    for n, claim in enumerate(newer.claims):
        if claim.text not in same:
            for word in claim.words:
                holders[word].append(n)
    for claim in older.claims:
        if claim.text in same:
            continue
        shared: dict[int, float] = defaultdict(float)
        for word, worth in claim.words.items():
            for n in holders.get(word, ()):
                shared[n] += worth
        for n in sorted(shared):
            if shared[n] >= 0.4 * min(claim.weight, newer.claims[n].weight):
                yield claim, newer.claims[n]


def _rivalled(one: Claim, other: Claim, claims: Sequence[Claim]) -> bool:
    """Whether another of these `claims` has as much in common with `one` as `other`: which is meant is then not told."""
    both = one.words.keys() & other.words.keys()
    return any(claim is not other and both <= claim.words.keys() for claim in claims) if len(claims) > 1 else False


def titles(older: Said, newer: Said) -> Literal["apart", "loose", ""]:
    """Whether the titles tell two things "apart", are "loose" about it, or agree: ""."""
    one, other = older.title, newer.title
    named = older.named and newer.named
    brief = all(said.claims and 2 * len(said.title.text) <= len(said.claims[0].text) for said in (older, newer))
    if not named and not brief:
        return ""
    for value in one.values:
        for its in other.values:
            if (
                (named or value.names)
                and (value.kind, value.sign) == (its.kind, its.sign)
                and value.value != its.value
                and value not in other.values
            ):
                return "apart"
    if not named:
        return ""
    moments = [
        {found[0].lower() for found in MOMENT.finditer(FROM.sub("", title.text)) if found[0] not in ("may", "march")}
        for title in (one, other)
    ]
    if moments[0] != moments[1] and (all(moments) or not other.changed):
        return "apart"
    own = sum(worth for word, worth in one.words.items() if word not in newer.words)
    its_own = sum(worth for word, worth in other.words.items() if word not in older.words)
    return "loose" if min(own, its_own) >= LOOSE else ""


def _against(
    one: Claim,
    other: Claim,
    older: Said,
    newer: Said,
    title: Mapping[str, float],
    *,
    anchored: bool,
    loose: bool,
) -> Against | None:
    shared = {word: worth for word, worth in one.words.items() if word in other.words}
    codes = set(_codes(one)) & set(_codes(other))
    both = sum(shared.values()) + CODE * len(codes)
    few = len(shared) + len(codes) < 2
    named = {
        word: w for word, w in title.items() if not few or (word in older.title.words and word in newer.title.words)
    }
    told = both + sum(worth for word, worth in named.items() if word not in shared)
    support = told + ANCHOR * anchored
    changed = other.changed or newer.title.changed or (newer.title.new and not older.title.new)
    alike = both / max(both, min(one.weight, other.weight))
    agreed = anchored or _agreed(one, other, older, newer)
    least = SUPPORT * (SURE if changed and agreed and alike >= WHOLE else 1.0)
    if support < least or not shared or (one.once and other.once and not other.changed):
        return None
    if loose and not (anchored or (changed and both >= LOOSELY * SUPPORT)):
        return None
    own = _own(one, other, newer.words)
    its_own = _own(other, one, older.words)
    special = (own.keys() & older.title.words.keys()) | (its_own.keys() & newer.title.words.keys())
    parallel = min(sum(own.values()), sum(its_own.values())) / both
    many = len(older.claims) * len(newer.claims) > MANY
    bearing = parallel <= (CHANGED if changed and not many else PARALLEL)
    differing = _differing(one, other)
    difference = _conflict(one, other, differing, shared, changed=changed)
    if differing and not difference:
        return None  # two of a kind, or two moments
    if alike < ALIKE or (many and not agreed):
        difference = None
    whole = 2 * both >= MUTUAL * (one.weight + other.weight)
    if not (difference and bearing and (changed or (whole and not special and shared.keys() & older.rare))):
        if many or not agreed:
            return None
        difference = _turned(one, other, both, alike, bearing=bearing and whole, differing=bool(differing)) or (
            _renamed((one, other), shared, own, its_own, both)
            if changed and not differing and told >= max(SUPPORT, TOLD * other.weight)
            else None
        )
    if difference is None:
        return None
    score = 0.45 + 0.2 * min(1.0, alike) + 0.15 * changed + 0.1 * min(1.0, support / 4) + 0.1 * (1 - min(1.0, parallel))
    return Against(one.text, other.text, difference, round(min(1.0, score), 3), changed)


def _agreed(one: Claim, other: Claim, older: Said, newer: Said) -> bool:
    """Whether the titles speak of one thing, or one of them of what the claims do."""
    titles = older.title.words.keys(), newer.title.words.keys()
    codes = [{value.value for value in title.values} for title in (older.title, newer.title)]
    return bool(
        titles[0] & titles[1] or titles[0] & other.words.keys() or titles[1] & one.words.keys() or codes[0] & codes[1]
    )


def _own(one: Claim, other: Claim, known: frozenset[str]) -> dict[str, float]:
    """What a claim speaks of and the other note does not; names made of letters and figures too, unless alike in form."""
    forms = {value.sign for value in other.values if value.kind == "code"}
    return {word: worth for word, worth in one.words.items() if word not in known} | {
        value.value: CODE for value in one.values if value.kind == "code" and value.sign not in forms
    }


def _differing(one: Claim, other: Claim) -> list[Differing]:
    """The values of both that can be compared and are not the same."""
    found = []
    kinds = dict.fromkeys((value.kind, value.sign) for value in one.values)
    for kind, sign in kinds:
        ours = [value for value in one.values if (value.kind, value.sign) == (kind, sign)]
        theirs = [value for value in other.values if (value.kind, value.sign) == (kind, sign)]
        left = [value for value in ours if not any(_equal(value, its) for its in theirs)]
        right = [its for its in theirs if not any(_equal(value, its) for value in ours)]
        if left and right:
            found.append((left, right))
    return found


def _equal(one: Value, other: Value) -> bool:
    if one.kind == "date":  # a year or a day that one of them leaves out
        (a, _, year), (b, _, its_year) = one.value.partition(" "), other.value.partition(" ")
        (month, _, day), (its_month, _, its_day) = a.partition("-"), b.partition("-")
        same = (month == its_month or "0" in (month, its_month)) and (day == its_day or "0" in (day, its_day))
        return same and (year == its_year or not year or not its_year)
    return one.value == other.value


def _conflict(
    one: Claim, other: Claim, differing: list[Differing], shared: Mapping[str, float], *, changed: bool
) -> tuple[str, str] | None:
    """What differs, if it is all about one thing."""
    if not differing:
        return None
    first = [(ours[0], theirs[0]) for ours, theirs in differing]
    names = [pair for pair in first if pair[0].names]
    kinds = {value.kind for value, _ in first}
    another = "date" in kinds and (one.entry or other.entry)  # something else happened on another day
    if (
        another
        or kinds & {"side", "part"}
        or (not changed and any(len(ours) != len(theirs) for ours, theirs in differing))
    ):
        return None
    if names and (len(differing) > 1 or not (names[0][0].before and names[0][1].before)):
        return None
    if names and names[0][0].before <= 1 and len(shared) < 2:
        return None
    if kinds & {"date", "day"} and kinds - {"date", "day", "time"} and not changed:
        return None  # two moments, each with its figures
    before, after = first[0]
    return _written(before), _written(after)


def _turned(
    one: Claim, other: Claim, both: float, alike: float, *, bearing: bool, differing: bool
) -> tuple[str, str] | None:
    """One says what the other denies, or that it is over."""
    if differing or both < 0.6 * SUPPORT:
        return None
    denies, denied = (one, other) if one.negated else (other, one)
    sure = not WIDE.search(one.text + other.text) or other.changed  # there a syllable is not always a "not"
    if (
        one.negated != other.negated
        and not (one.instead or other.instead)
        and alike >= 0.75
        and sure
        and bearing
        and denies.denied & denied.words.keys()
    ):
        return IS if one.negated else IS_NOT
    if other.over and not one.over and both >= ALIKE * other.weight:
        return OVER
    if other.instead and not one.instead and not one.negated and both >= max(SUPPORT, 0.8 * one.weight):
        return INSTEAD
    return None


def _renamed(
    claims: tuple[Claim, Claim],
    shared: Mapping[str, float],
    own: Mapping[str, float],
    its_own: Mapping[str, float],
    both: float,
) -> tuple[str, str] | None:
    """Another name stands in the place of one, where the newer note tells that something changed."""
    one, other = claims
    if not own or not its_own or next(iter(one.words)) not in shared:
        return None
    ends = (list(one.words)[-1] in own or not own.keys() <= one.words.keys()) and both >= 0.45 * one.weight
    if not ends and both < NAMED * one.weight:
        return None
    return " ".join(one.shown.get(word, word) for word in own), " ".join(
        other.shown.get(word, word) for word in its_own
    )


def _codes(claim: Claim) -> Iterator[str]:
    return (value.value for value in claim.values if value.kind == "code")


def _written(value: Value) -> str:
    """A value as a person reads it."""
    return value.shown or value.value


def _plain(text: str) -> str:
    return re.sub(r"\W+", " ", text).casefold().strip()
