"""Choose the facts of a context: the most valuable lines that fit into a number of tokens, no two of which say the same.

The value of a fact is what its words say, times how recent it is, how often answers used it, whether the owner promoted
its note, and whether it belongs to the project of the session. Words that chosen lines contain already count half, so
that the lines cover many topics. Lines are chosen one by one, each time the one with the most value for its tokens.

Laws, tested: the lines fit; equal facts give equal choices in any order; no chosen fact repeats another."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from index.names import pluralize
from syncd.context.note_facts import ContextFact, LineWords, WeighedFact
from syncd.notes.timestamps import DAY_MS

# Chosen with `python -m tests.bench.context --tune` on two conversations.
HALF_LIFE_DAYS: Final = 30.0  # a fact so much older than the newest one counts half
OLDEST: Final = 0.15  # least factor of an old fact
USED: Final = 0.25  # added for each doubling of the uses; small, because in these conversations nobody asks twice
QUESTION: Final = 0.5  # factor of a text that ends with a question mark: it states nothing
REPEATED: Final = 0.5  # factor of a word for each chosen line that contains it
SAME: Final = 0.8  # share of the words of two lines that both contain, from which they say the same
# Set by judgement: the conversations have no project, no promotion and no stale notes.
PROMOTED: Final = 2.0
PROJECT: Final = 4.0  # factor of a fact that belongs to the project of the session
OTHER_PROJECT: Final = 0.25  # factor of a fact that is filed under other projects only
STALE: Final = 0.2
_RECENT: Final = 0.5  # factor of age from which a fact is called recent
_NAMED: Final = 3  # words that a reason names


@dataclass(frozen=True, slots=True)
class ChosenFact:
    """Holds a chosen fact, and the reasons for the choice as parts of a sentence."""

    fact: ContextFact
    reasons: tuple[str, ...]


def choose_facts(
    facts: Iterable[WeighedFact],
    tokens: int,
    *,
    uses: Mapping[str, float],
    project: str = "",
    kept: Sequence[LineWords] = (),
    left_out: Sequence[LineWords] = (),
) -> list[ChosenFact]:
    """Choose facts whose lines have at most `tokens` tokens together, the most valuable first.

    `uses`: how many answers used a note, by its id; `project`: as `project_key` returns it; `kept`: the words of the
    lines that are there already; `left_out`: those of lines that no fact may repeat."""
    ordered = sorted(facts, key=lambda weighed: weighed.fact.key)
    choice = _Choice(ordered, uses, project)
    for words in kept:
        choice.cover(words)
    for words in left_out:
        choice.bar(words)
    chosen: list[ChosenFact] = []
    heap = [(-choice.gain(n), n) for n in range(len(ordered))]
    heapq.heapify(heap)
    while heap:
        _, n = heapq.heappop(heap)
        weighed = ordered[n]
        gain = choice.gain(n)  # it can only have fallen since it was pushed
        if gain <= 0 or weighed.tokens > tokens or choice.is_repeated(weighed.words):
            continue
        if heap and -gain > heap[0][0]:
            heapq.heappush(heap, (-gain, n))
            continue
        chosen.append(ChosenFact(weighed.fact, tuple(choice.reasons(n))))
        choice.cover(weighed.words)
        tokens -= weighed.tokens
    return chosen


class _Choice:
    """Holds the facts of one choice, and which words the chosen lines contain."""

    def __init__(self, facts: Sequence[WeighedFact], uses: Mapping[str, float], project: str) -> None:
        self._facts, self._uses, self._project = facts, uses, project
        self._newest = max((weighed.fact.at for weighed in facts), default=0)
        counts = Counter(word for weighed in facts for word in weighed.words.worth)
        self._rarity = {word: math.log(1 + len(facts) / count) for word, count in counts.items()}
        self._covered: Counter[str] = Counter()
        self._lines: list[tuple[str, ...]] = []  # the stems of each
        self._lines_with: dict[str, list[int]] = {}

    def gain(self, n: int) -> float:
        """Return the value of the fact for each of its tokens, beside the lines that are chosen already."""
        weighed = self._facts[n]
        worth = sum(self._worth(word, worth) for word, worth in weighed.words.worth.items())
        return self._priority(weighed.fact) * worth / max(1, weighed.tokens)

    def cover(self, words: LineWords) -> None:
        """Record the words of a chosen line."""
        self._covered.update(words.worth.keys())
        self.bar(words)

    def bar(self, words: LineWords) -> None:
        """Let no further line say the same as a line with these words."""
        for stem in words.stems:
            self._lines_with.setdefault(stem, []).append(len(self._lines))
        self._lines.append(words.stems)

    def is_repeated(self, words: LineWords) -> bool:
        """Return whether a chosen or barred line and a line with these words say the same."""
        shared = Counter(line for stem in words.stems for line in self._lines_with.get(stem, ()))
        most = {line: max(len(words.stems), len(self._lines[line])) for line in shared}
        return any(count >= SAME * most[line] for line, count in shared.items())

    def reasons(self, n: int) -> Iterable[str]:
        """Yield the reasons for this fact, beside the lines that are chosen already."""
        weighed = self._facts[n]
        fact = weighed.fact
        if self._project in fact.projects:
            yield f"it belongs to the project {self._project}"
        if fact.promoted:
            yield "you promoted its note"
        if (uses := self._uses.get(fact.id, 0.0)) >= 1:
            yield f"{uses:,.0f} answers used its note" if uses >= 1.5 else "an answer used its note"
        if self._recency(fact) >= _RECENT:
            days = (self._newest - fact.at) // DAY_MS
            yield "it is among the newest" if not days else f"it is {pluralize(days, 'day')} older than the newest"
        new = [word for word in weighed.words.worth if not self._covered[word]]
        new.sort(key=lambda word: (-self._worth(word, weighed.words.worth[word]), word))
        if new:
            yield f"no line above speaks of {', '.join(new[:_NAMED])}"

    def _worth(self, word: str, worth: float) -> float:
        return worth * self._rarity.get(word, 1.0) * math.pow(REPEATED, min(self._covered[word], 9))

    def _recency(self, fact: ContextFact) -> float:
        age_days = (self._newest - fact.at) / DAY_MS
        return OLDEST + (1 - OLDEST) * math.pow(0.5, age_days / HALF_LIFE_DAYS)

    def _priority(self, fact: ContextFact) -> float:
        priority = self._recency(fact) * (1 + USED * math.log2(1 + self._uses.get(fact.id, 0.0)))
        priority *= PROMOTED if fact.promoted else 1.0
        priority *= STALE if fact.stale else 1.0
        priority *= QUESTION if fact.text.endswith(("?", "？")) else 1.0
        if self._project in fact.projects:
            return priority * PROJECT
        return priority * OTHER_PROJECT if self._project and fact.filed else priority
