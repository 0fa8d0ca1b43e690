"""Whether two notes say the same: word for word, with small edits, in another order, in part, or in other words.

Laws, tested: a note is a twin of itself; two notes of which each tells a figure, date or name of a kind that the other
has otherwise are none."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final, Literal

from index.text.text_sketch import RUN, pieces
from syncd.consolidation.analysis.contradictions import Said, titles
from syncd.consolidation.analysis.sentence_claims import WIDE, Claim

LEAST: Final = 2.0  # what the words of a note say together: shorter ones are not compared
RUNS: Final = 0.5  # of the runs of three words of the shorter one, the other has, where it was edited
WORDS: Final = 0.75  # of what its words say the other says, where it is told in other words
BOTH: Final = 0.6  # and of both together
LOST: Final = 0.12  # of what the copy says the kept one may lack
SAME: Final = 0.6  # of the characters of titles without blanks
SLOTTED: Final = 3  # words of titles of which one stands in the place of another
_LINK: Final = re.compile(r"\[\[(?:[^\]|#\n]*/)?([^\]|#\n/]+)")
_BLANKS: Final = re.compile(r"\{\{[^{}\n]+\}\}|<%.+?%>")  # what a template leaves to be filled in
_BLANK: Final = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Twin:
    """How two notes are the same: "equal" in their words, "edited", "part" of the other, or told in other "words"."""

    how: Literal["equal", "edited", "part", "words"]
    kept: int  # 0 or 1: which of the two says all of it
    score: float
    lost: tuple[str, ...]  # sentences that only the other has


def normal(text: str) -> str:
    """A text in its letters and figures alone."""
    return _BLANK.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()


def twin(one: tuple[str, Said], other: tuple[str, Said]) -> Twin | None:
    """Whether two notes, the older first, say the same; each with its text."""
    (text, said), (its_text, its_said) = one, other
    ours, theirs = _words(said), _words(its_said)
    sizes = sum(ours.values()), sum(theirs.values())
    named = titles(said, its_said)
    if named == "apart" or min(sizes) < LEAST * (1.5 if named else 1):
        return None  # too little to tell, the less so under titles that tell two things
    if normal(text) == normal(its_text):
        return Twin("equal", 0, 1.0, ())
    runs, its_runs = _runs(text), _runs(its_text)
    in_runs = len(runs & its_runs) / max(1, min(len(runs), len(its_runs)))
    shared = sum(worth for word, worth in ours.items() if word in theirs)
    in_words = shared / min(sizes)
    both = 2 * shared / sum(sizes)
    if in_words < WORDS or (in_runs < RUNS and both < BOTH) or _parallel(said, its_said, text, its_text):
        return None
    kept = 0 if sizes[0] >= sizes[1] else 1
    copy, whole = (its_said, said) if kept == 0 else (said, its_said)
    if _changes(its_said) and not _changes(said):
        return None  # the newer one tells that something is otherwise now
    if not _holds(whole, copy) or (_parity(said) != _parity(its_said) and min(sizes) < 2 * LEAST):
        return None
    lost = tuple(claim.text for claim in copy.claims if _new(claim, whole))
    how: Literal["edited", "part", "words"] = (
        "words" if in_runs < RUNS else "part" if min(sizes) < 0.75 * max(sizes) else "edited"
    )
    score = round(min(1.0, 0.5 * in_words + 0.3 * both + 0.2 * in_runs), 3)
    return Twin(how, kept, score, lost)


def _parallel(said: Said, its_said: Said, text: str, its_text: str) -> bool:
    """Whether each tells of what its own title names and the other does not, or one is a template, or points to the other."""
    if bool(_BLANKS.search(text)) != bool(_BLANKS.search(its_text)):
        return True
    names = [normal(one.title.text).split() for one in (said, its_said)]
    links = [{tuple(normal(link).split()) for link in _LINK.findall(one)} for one in (text, its_text)]
    if tuple(names[1]) in links[0] - links[1] or tuple(names[0]) in links[1] - links[0]:
        return True
    own = said.title.words.keys() - its_said.words
    its_own = its_said.title.words.keys() - said.words
    if own & _words(said).keys() and its_own & _words(its_said).keys():
        return True
    foreign = [set(names[n]) - set(normal(to).split()) for n, to in ((0, its_text), (1, text))]
    return _slotted(*names) and (all(foreign) or min(map(len, names)) >= SLOTTED)


def _slotted(one: list[str], other: list[str]) -> bool:
    """Whether two titles differ in one word: "Theme A", "Theme B"."""
    if WIDE.search("".join(one + other)):
        one, other = list(" ".join(one)), list(" ".join(other))
        least = min(len(one), len(other))
        begins = next((n for n in range(least) if one[n] != other[n]), least)
        ends = next((n for n in range(least - begins) if one[-1 - n] != other[-1 - n]), least - begins)
        return begins + ends < least and begins + ends >= SAME * max(len(one), len(other))
    return len(one) == len(other) > 1 and sum(a != b for a, b in zip(one, other, strict=True)) == 1


def _changes(said: Said) -> bool:
    return said.title.changed or any(claim.changed for claim in said.claims)


def _words(said: Said) -> dict[str, float]:
    """What the text of a note speaks of; of one without a text, its title."""
    claims = said.claims or (said.title,)
    return {word: worth for claim in claims for word, worth in claim.words.items()}


def _runs(text: str) -> set[tuple[str, ...]]:
    words = pieces(text)
    return {tuple(words[n : n + RUN]) for n in range(max(1, len(words) - RUN + 1))}


def _holds(whole: Said, copy: Said) -> bool:
    """Whether all figures, dates and names of kinds that the copy tells are in the whole."""
    told = {(value.kind, value.value) for claim in (whole.title, *whole.claims) for value in claim.values}
    own = {(value.kind, value.value) for claim in copy.claims for value in claim.values if value.kind != "side"}
    return own <= told


def _parity(said: Said) -> bool:
    return sum(claim.negated for claim in said.claims) % 2 == 1


def _new(claim: Claim, whole: Said) -> bool:
    """Whether a claim says much that the whole does not."""
    lacking = sum(worth for word, worth in claim.words.items() if word not in whole.words)
    return lacking > max(LOST, 0.25 * claim.weight)
