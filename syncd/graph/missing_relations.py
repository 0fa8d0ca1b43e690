"""Find pairs of nodes whose relation may be missing, and state the evidence for each pair in one sentence.

Four kinds of evidence count: the observations of one node name the other; both use terms or tags that few others use;
both are related to a third node; their observations are similar. Each kind has a probability; the score of a pair is
one minus the probability that all kinds are wrong.

Law, tested: text of notes appears in a sentence only as a term, or as a quote on one line, without secrets and cut to a
maximal length."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

from index.text.hidden_characters import escape_hidden
from index.text.sentences import shorten
from syncd.notes.secret_patterns import redact

RARE: Final = 6  # a term or tag of at most this many nodes makes candidates; others only support them
NEIGHBOURS: Final = 12  # a node with at most this many relations makes candidates of its neighbours
TELLING: Final = 0.1  # a term of a larger share of all nodes says nothing
MENTION, AGAIN, MENTIONED = 0.6, 0.08, 0.85  # probability for one mention, for each further one, and at most
TERM, TERMS = 0.2, 0.6
TAG, TAGS = 0.12, 0.3
NEIGHBOUR, NEAR = 0.3, 0.5
ALIKE: Final = 0.7  # for nodes with equal content
NAMED: Final = 60  # characters of a name in a sentence
PERSPECTIVES: Final = 3  # most perspectives whose cosine is in a sentence, highest first
SHOWN: Final = 4  # most terms, tags or names in a sentence
LEAST: Final = 0.4  # lowest score of a candidate


@dataclass(frozen=True, slots=True)
class Candidate:
    """Describes two nodes without a relation that may need one."""

    node_a: str
    node_b: str
    similarity: float  # cosine over all perspectives, 0 without vectors
    score: float  # 0..1: strength of the evidence
    rationale: str


@dataclass(frozen=True, slots=True)
class MeaningSimilarity:
    """Holds how near two nodes are in meaning."""

    pooled: float  # cosine over all perspectives
    typical: float  # average cosine of two such nodes
    each: Mapping[str, float]  # by perspective


@dataclass(slots=True)
class Evidence:
    """Holds the evidence about all nodes; nodes are numbers here, in the order of their names."""

    names: Sequence[str]
    terms: Sequence[Collection[str]]
    called: Sequence[frozenset[str]]  # the terms of each node's name
    tags: Sequence[frozenset[str]]
    near: Sequence[AbstractSet[int]]  # the related nodes of each node, in both directions
    mentions: Mapping[tuple[int, int], int]  # how often the first node names the second
    written: Callable[[str], str]  # returns the form of a term to show
    term_holders: dict[str, list[int]] = field(default_factory=dict)  # the nodes that use each term
    tag_holders: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.term_holders, self.tag_holders = _index_holders(self.terms), _index_holders(self.tags)


def select_pairs(evidence: Evidence, alike: Iterable[tuple[int, int]], most: int) -> list[tuple[int, int]]:
    """Return the pairs worth rating, about `most` for each kind of evidence: (lower number, higher number)."""
    selected = {(min(a, b), max(a, b)) for a, b in alike}
    named = sorted(evidence.mentions, key=lambda pair: (-evidence.mentions[pair], pair))[:most]
    selected |= {(min(a, b), max(a, b)) for a, b in named}
    shared: dict[tuple[int, int], float] = defaultdict(float)
    for holders in (*evidence.term_holders.values(), *evidence.tag_holders.values()):
        if 2 <= len(holders) <= RARE:
            for pair in combinations(holders, 2):
                shared[pair] += 1 / len(holders)
    for near in evidence.near:
        if 2 <= len(near) <= NEIGHBOURS:
            for pair in combinations(sorted(near), 2):
                shared[pair] += 1 / len(near)
    selected |= set(sorted(shared, key=lambda pair: (-shared[pair], pair))[:most])
    return sorted(pair for pair in selected if pair[1] not in evidence.near[pair[0]] and pair[0] != pair[1])


def rate_pair(a: int, b: int, evidence: Evidence, similarity: MeaningSimilarity) -> Candidate | None:
    """Rate the evidence for a relation of two nodes; None when it is too weak."""
    there, back = evidence.mentions.get((a, b), 0), evidence.mentions.get((b, a), 0)
    named = [_describe_mention(evidence.names, *mention) for mention in ((a, b, there), (b, a, back)) if mention[2]]
    shared = [*_describe_shared(a, b, evidence, named=bool(named)), *_describe_similarity(similarity)]
    score = _combine_chances(chance for chance, _ in (*named, *shared))
    if score < LEAST:
        return None
    who = "they" if named else f"{quote(evidence.names[a])} and {quote(evidence.names[b])}"
    clauses = [clause for _, clause in named] + [
        f"{'they' if n else who} {clause}" for n, (_, clause) in enumerate(shared)
    ]
    first, second = (b, a) if back > there else (a, b)
    return Candidate(
        evidence.names[first],
        evidence.names[second],
        round(max(0.0, similarity.pooled), 4),
        round(score, 4),
        f"{'; '.join(clauses)}.",
    )


def _describe_mention(names: Sequence[str], node: int, other: int, count: int) -> tuple[float, str]:
    often = "once" if count == 1 else f"{count} times"
    chance = min(MENTIONED, MENTION + AGAIN * (count - 1))
    return chance, f"{quote(names[node])} names {quote(names[other])} {often}"


def _describe_shared(a: int, b: int, evidence: Evidence, *, named: bool) -> Iterator[tuple[float, str]]:
    """Describe the terms, tags and neighbours that two nodes have in common."""
    # A mentioned name has been counted already: its words are not counted again.
    counted = evidence.called[a] | evidence.called[b] if named else frozenset[str]()
    both = {*evidence.terms[a]}.intersection(evidence.terms[b])
    terms = _rarity_weights(both - counted, evidence.term_holders, len(evidence.names))
    if terms:
        chance = min(TERMS, _combine_chances(TERM * weight for weight in terms.values()))
        yield chance, f"both mention {_join_words([evidence.written(key) for key in terms])}"
    tags = _rarity_weights(evidence.tags[a] & evidence.tags[b], evidence.tag_holders, len(evidence.names))
    if tags:
        chance = min(TAGS, _combine_chances(TAG * weight for weight in tags.values()))
        yield (
            chance,
            f"both have the {'tags' if len(tags) > 1 else 'tag'} {_join_words([f'#{_flatten(tag)}' for tag in tags])}",
        )
    near = sorted(evidence.near[a] & evidence.near[b], key=lambda n: (len(evidence.near[n]), n))
    if near:
        chance = min(NEAR, _combine_chances(NEIGHBOUR / math.log2(1 + len(evidence.near[n])) for n in near))
        yield chance, f"are both related to {_join_words([quote(evidence.names[n]) for n in near])}"


def _describe_similarity(similarity: MeaningSimilarity) -> Iterator[tuple[float, str]]:
    if similarity.pooled > similarity.typical:
        chance = ALIKE * (similarity.pooled - similarity.typical) / max(1e-6, 1 - similarity.typical)
        best = sorted(similarity.each.items(), key=lambda item: (-item[1], item[0]))[:PERSPECTIVES]
        each = ", ".join(f"{_flatten(name)} {value:.2f}" for name, value in best)
        yield chance, f"are alike by {similarity.pooled:.2f}" + (f" ({each})" if each else "")


def quote(name: str) -> str:
    """Quote a name for a sentence: on one line, without quotation marks inside, cut."""
    return f"“{_flatten(name.replace('“', '').replace('”', ''))}”"


def _flatten(name: str) -> str:
    """Return a name on one line, cut, without secrets, and with hidden characters escaped: it is data, not Markdown."""
    flat = escape_hidden(" ".join(redact(name).split()))
    return flat if len(flat) <= NAMED else shorten(flat, NAMED)


def _join_words(items: Sequence[str]) -> str:
    shown, more = items[:SHOWN], len(items) - SHOWN
    if more > 0:
        return f"{', '.join(shown)} and {more} more"
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else shown[0]


def _rarity_weights(keys: Iterable[str], holders: Mapping[str, Sequence[int]], nodes: int) -> dict[str, float]:
    """Return the weight of each shared key, rarest first: 1 if only these two nodes have it."""
    counts = {key: len(holders[key]) for key in keys if len(holders[key]) <= max(3, nodes * TELLING)}
    whole = math.log(max(3, nodes) / 2)
    return {key: math.log(max(3, nodes) / counts[key]) / whole for key in sorted(counts, key=lambda k: (counts[k], k))}


def _combine_chances(chances: Iterable[float]) -> float:
    return 1 - math.prod(1 - min(1.0, max(0.0, chance)) for chance in chances)


def _index_holders(held: Sequence[Collection[str]]) -> dict[str, list[int]]:
    holders: dict[str, list[int]] = defaultdict(list)
    for number, keys in enumerate(held):
        for key in keys:
            holders[key].append(number)
    return dict(sorted(holders.items()))
