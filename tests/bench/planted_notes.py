"""Generate notes by rule from a seed: copies of notes as agents capture them again, and pairs that look like copies or updates.

The rules know nothing of the analysis: they change whole texts as a second capture would, or fill in forms and sentences twice."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

Note: TypeAlias = tuple[str, str]  # title, text
EACH: Final = 12  # pairs of each rule
LENGTHS: Final = (250, 4_000)  # characters of a note that is copied
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_NUMBER: Final = re.compile(r"(?<![\w.])[1-9]\d{1,3}(?![\w.])")
_HIDDEN: Final = re.compile(r"\S*[:/]/\S+|<[^>\n]+>|!?\[\[[^\]\n]*\]\]|!\[[^\]\n]*\]|\]\([^)\n]*\)|\[file:\S+|%%.*?%%")
_SPELT: Final = re.compile(r"(?<![\w\[(/])[a-z]{5,}(?![\w\])/])")


@dataclass(frozen=True, slots=True)
class PlantedPair:
    """Two notes, the older first, the rule that made them, and whether they are duplicates."""

    rule: str
    copied: bool
    older: Note
    newer: Note


def planted_pairs(notes: Sequence[Note], seed: int) -> Iterator[PlantedPair]:
    """Yield the pairs of every rule; `notes` are those that may be copied."""
    dice = random.Random(seed)
    least, most = LENGTHS
    left = [note for note in notes if least <= len(note[1]) <= most and "```" not in note[1]]
    dice.shuffle(left)
    for rule, copied, fits in RULES:
        chosen = [note for note in left if fits(note[1])][:EACH]
        left = [note for note in left if note not in chosen]
        for title, text in chosen:
            copy = (f"{dice.choice(PREFIXES)} {title}", rule(text, dice))
            yield PlantedPair(rule.__name__.strip("_").replace("_", " "), copied, (title, text), copy)
    for rule_name, make in (("form", _filled_forms), ("day", _days), ("part", _parts)):
        yield from (PlantedPair(rule_name, False, *make(dice)) for _ in range(EACH))
    yield from _statements(dice)


PREFIXES: Final = ("Notes on", "Captured:", "From the chat:", "About", "Saved:")
SYNONYMS: Final = {
    "because": "since", "about": "regarding", "several": "a few", "often": "frequently", "start": "begin", "large": "big",
    "small": "little", "quickly": "fast", "between": "among", "important": "essential", "allows": "lets", "allow": "let",
    "example": "instance", "using": "with", "different": "various", "create": "make", "creates": "makes", "provide": "give",
    "provides": "gives", "information": "details", "really": "truly", "think": "believe", "great": "wonderful",
    "should": "ought to", "change": "alter", "contains": "holds", "default": "standard", "people": "persons",
    "maybe": "perhaps", "always": "every time", "happy": "glad", "excited": "thrilled", "thanks": "thank you",
    "beautiful": "lovely", "things": "matters", "something": "a thing", "before": "ahead of", "whole": "entire",
    "which": "that", "where": "at which", "however": "but", "these": "those", "without": "lacking", "every": "each",
}  # fmt: skip


def _sentences(text: str) -> list[str]:
    return [sentence for sentence in _SENTENCE.split(text) if sentence.strip()]


def _marked_up(text: str, _: random.Random) -> str:
    lines = re.sub(r"[*_=]{2}", "", text).splitlines()
    return "\n".join(re.sub(r"^(\s*)[-+] ", r"\1* ", line).replace("# ", "## ", line.startswith("#")) for line in lines)


def _reordered(text: str, dice: random.Random) -> str:
    parts = [part for part in re.split(r"\n{2,}", text.strip()) if part.strip()]
    parts = parts if len(parts) > 2 else text.strip().splitlines()
    parts = parts if len(parts) > 2 else _sentences(text)
    dice.shuffle(parts)
    return "\n\n".join(parts)


def _shortened(text: str, dice: random.Random) -> str:
    sentences = _sentences(text)
    return "\n".join(sentences[: max(3, int(len(sentences) * dice.uniform(0.6, 0.8)))])


def _framed(text: str, dice: random.Random) -> str:
    before = dice.choice(("The user asked me to remember this.", "I read the page and keep what it says.", "Summary:"))
    after = dice.choice(
        ("Nothing else was discussed.", "Ask again if a detail is missing.", "Source: the conversation.")
    )
    return f"{before}\n\n{text}\n\n{after}"


def _misspelt(text: str, dice: random.Random) -> str:
    def swapped(match: re.Match[str]) -> str:
        word, at = match[0], dice.randrange(1, len(match[0]) - 2)
        return word if dice.random() > 0.06 else word[:at] + word[at + 1] + word[at] + word[at + 2 :]

    return _SPELT.sub(swapped, text)


def _reworded(text: str, dice: random.Random) -> str:
    text = re.sub(r"\b[a-z]+\b", lambda match: SYNONYMS.get(match[0], match[0]), text)
    words = text.split(" ")
    return " ".join(
        word for word in words if word not in ("the", "very", "also", "just", "that") or dice.random() < 0.6
    )


def _denied(text: str, dice: random.Random) -> str:
    """Deny one statement."""
    verbs = list(re.finditer(r"(?<=[a-z] )(?:is|are|was|were|can|will|should|has|does)(?= [a-z])", text))
    if not verbs:
        return text + "\n\nNone of this is true any more."
    verb = dice.choice(verbs)
    return f"{text[: verb.end()]} not{text[verb.end() :]}"


def _another_figure(text: str, dice: random.Random) -> str:
    """Change one figure."""
    figure = dice.choice(_figures(text))
    other = str(int(figure[0]) + dice.choice((-3, -1, 1, 2, 7, 10)) or 5)
    return text[: figure.start()] + other + text[figure.end() :]


def _any(_: str) -> bool:
    return True


def _is_spelt(text: str) -> bool:
    return len(_SPELT.findall(text)) >= 20


def _figures(text: str) -> list[re.Match[str]]:
    """The figures that a reader of the note sees: those of addresses and HTML are left out."""
    hidden = [match.span() for match in _HIDDEN.finditer(text)]
    return [match for match in _NUMBER.finditer(text) if not any(begin <= match.start() < end for begin, end in hidden)]


def _has_number(text: str) -> bool:
    return bool(_figures(text))


# What is done to a note, whether the result is a duplicate, and which notes it can be done to.
RULES: Final[tuple[tuple[Callable[[str, random.Random], str], bool, Callable[[str], bool]], ...]] = (
    (_misspelt, True, _is_spelt),
    (_reworded, True, _is_spelt),
    (_denied, False, _is_spelt),
    (_another_figure, False, _has_number),
    (_marked_up, True, _any),
    (_reordered, True, _any),
    (_shortened, True, _any),
    (_framed, True, _any),
)


PEOPLE: Final = ("Tomoko", "Ruben", "Ifeoma", "Lazlo", "Greta", "Anwar", "Birgit", "Caetano", "Delphine", "Eero")
TOWNS: Final = ("Porto", "Turku", "Graz", "Leuven", "Sapporo", "Malmö", "Bari", "Brno", "Galway", "Zadar")
TOPICS: Final = (
    "the leaking roof", "the spring budget", "a new supplier", "the broken lift", "the reading circle", "the website",
    "the exhibition", "the parking rules", "a second printer", "the apple harvest", "the choir trip", "the fire drill",
)  # fmt: skip
_MEETING: Final = """## Attendees
{a}, {b}
## Agenda
1. Minutes of the last meeting
2. {t}
3. Any other business
## Decisions
- {a} looks into {t} and reports next time.
- The minutes of the last meeting are approved without changes.
## Next steps
- [ ] Send the minutes to everybody
- [ ] Book the room"""
_TRIP: Final = """Status: planned
Town: {w}
With: {a}
## Before
- [ ] Book the train
- [ ] Book the hotel
- [ ] Check the passport
## There
We want to see the old town, the market and a museum of {w}. {a} knows a good place for lunch.
## After
- [ ] File the receipts"""
_BOOK: Final = """Author: {a} {n}
Rating:
Status: to read
## Why this book
{b} recommended it when we talked about {t}.
## Summary
## Quotes
## What I take from it"""


def _filled_forms(dice: random.Random) -> tuple[Note, Note]:
    """Fill in one form for two things."""
    form = dice.choice((_MEETING, _TRIP, _BOOK))
    (a, b, c, d), (t, u), (w, x) = dice.sample(PEOPLE, 4), dice.sample(TOPICS, 2), dice.sample(TOWNS, 2)
    kind = {_MEETING: "Meeting with", _TRIP: "Trip with", _BOOK: "Book by"}[form]
    n, m = dice.sample(range(2, 99), 2)
    return (f"{kind} {a}", form.format(a=a, b=b, t=t, w=w, n=n)), (f"{kind} {c}", form.format(a=c, b=d, t=u, w=x, n=m))


def _days(dice: random.Random) -> tuple[Note, Note]:
    """Fill in the same daily note for two days."""
    month, (day, other) = dice.randint(1, 12), dice.sample(range(1, 28), 2)
    habits = ("Stretch", "Read twenty pages", "Walk", "Write to a friend", "No screen after ten", "Water the plants")

    def text() -> str:
        ticks = "\n".join(f"- [{dice.choice(' x')}] {habit}" for habit in habits)
        return f"## Habits\n{ticks}\n## Log\nThought about {dice.choice(TOPICS)}.\n## Tomorrow\nCall {dice.choice(PEOPLE)}."

    return (f"2025-{month:02}-{day:02}", text()), (f"2025-{month:02}-{other:02}", text())


def _parts(dice: random.Random) -> tuple[Note, Note]:
    """Write two parts of a series under one introduction."""
    subject, (first, second) = dice.choice(TOPICS), dice.sample(range(1, 9), 2)
    begin = f"This series collects what we know about {subject}. Each part stands alone, and all of them have the same order."

    def text() -> str:
        (a, b), (w, x) = dice.sample(PEOPLE, 2), dice.sample(TOWNS, 2)
        return (
            f"{begin}\n\n{a} saw it in {w} and told {b} about it. In {x} it took {dice.randint(3, 90)} days to settle."
        )

    name = subject.removeprefix("the ").removeprefix("a ").capitalize()
    return (f"{name}, part {first}", text()), (f"{name}, part {second}", text())


THINGS: Final = (
    "invoice importer",
    "badge reader",
    "tile server",
    "backup robot",
    "print queue",
    "ticket shop",
    "wiki",
    "mail relay",
    "job board",
)
Sentences: TypeAlias = tuple[str, str, Callable[[random.Random], list[str]]]
# What an older and a newer note say about `s`, with the values `v` and `w`.
CORRECTIONS: Final[tuple[Sentences, ...]] = (
    ("The {s} answers on port {v}.", "Since the reinstall the {s} is reached on port {w}.", lambda dice: _numbers(dice, 1024, 9999)),
    ("{p} works from the office in {v}.", "{p} has left for the office in {w}.", lambda dice: dice.sample(TOWNS, 2)),
    ("A seat in the {s} costs {v} euros a month.", "They raised the {s}: {w} euros for a seat and month now.", lambda dice: _numbers(dice, 5, 60)),
    ("{p} looks after the {s}.", "The {s} is {w}'s job from now on, not {p}'s.", lambda dice: dice.sample(PEOPLE, 2)),
    ("The {s} meeting is every {v}.", "From May on, the {s} people meet on {w}s.", lambda dice: dice.sample(("Monday", "Tuesday", "Thursday", "Friday"), 2)),
    ("The {s} is switched off for guests.", "Guests can use the {s} now.", lambda _: ["", ""]),
    ("We keep the logs of the {s} for {v} days.", "Logs of the {s}: kept {w} days after the review.", lambda dice: _numbers(dice, 7, 365)),
    ("{p} wants the {s} in {v}.", "{p} changed her mind, the {s} shall be in {w}.", lambda dice: dice.sample(("green", "blue", "grey", "red"), 2)),
)  # fmt: skip
# Two statements that are both true.
BOTH_TRUE: Final[tuple[Sentences, ...]] = (
    ("On {v} the {s} was down for an hour.", "The {s} was down on {w} too, for ten minutes.", lambda dice: dice.sample(("4 March", "9 April", "1 June"), 2)),
    ("{p} met the people of the {s} in {v}.", "In {w}, {p} met the people of the {s} once more.", lambda dice: dice.sample(TOWNS, 2)),
    ("The {s} answers on port {v}.", "The test copy of the {s} answers on port {w}.", lambda dice: _numbers(dice, 1024, 9999)),
    ("The {s} had {v} visitors in its first week.", "In its second week the {s} had {w} visitors.", lambda dice: _numbers(dice, 20, 900)),
    ("{p} looks after the {s}.", "{w} looks after the garden behind the {s}.", lambda dice: dice.sample(PEOPLE, 2)),
    ("A seat in the {s} costs {v} euros a month.", "The setup of the {s} cost {w} euros once.", lambda dice: _numbers(dice, 5, 60)),
)  # fmt: skip
FILLERS: Final = (
    "{a} asked about it in {t}.", "The manual is in the drawer of {a}.", "It came up when we spoke about {t}.",
    "{a} will check this again before {t} is discussed.", "There is a photo in the folder of {a}.",
)  # fmt: skip


def _numbers(dice: random.Random, least: int, most: int) -> list[str]:
    return [str(number) for number in dice.sample(range(least, most), 2)]


def _statements(dice: random.Random) -> Iterator[PlantedPair]:
    """Write pairs in which the newer note corrects the older, and pairs in which both are right."""
    things = [f"{thing} of {town}" for thing in THINGS for town in TOWNS]
    dice.shuffle(things)  # each is written about in one pair
    for rule, table in (("corrected", CORRECTIONS), ("both true", BOTH_TRUE)):
        for number in range(3 * EACH):
            older, newer, values = table[number % len(table)]
            thing = things.pop()
            v, w = values(dice)
            person = v if v in PEOPLE else dice.choice(PEOPLE)
            filled = [text.format(s=thing, p=person, v=v, w=w) for text in (older, newer)]
            texts = [f"{said} {_filler(dice)} {_filler(dice)}" for said in filled]
            yield PlantedPair(rule, False, (f"{thing.capitalize()}", texts[0]), (f"{thing.capitalize()} {dice.choice(('news', 'update', 'note'))}", texts[1]))  # fmt: skip


def _filler(dice: random.Random) -> str:
    return dice.choice(FILLERS).format(a=dice.choice(PEOPLE), t=dice.choice(TOPICS))
