"""Find unlinked names: entities that the facts of other entities name, without a relation between the two.

A name is matched word by word: letter case, normal form and the kind of space do not count, a hyphen or an
underscore between two letters counts as a space, and other signs must stand as in the name. In a script that
separates words a name never matches a piece of one (an ending of Korean grammar may follow); in one that does not
(Han, kana, Thai, Lao, Khmer ...) a name may stand anywhere. Of the names that begin at one place the longest wins,
and the text that it covers names nothing else.

Names that are everyday words would match everywhere, so the more common the word, the more the place must show: for
`Rust` or `Apple` the capitals; for `Go` or `May` also a place within a sentence, not at its beginning or in a
compound; a single character, a number or a function word without a capital counts only as the target of a wikilink.

Laws, tested: the time is linear in the text and the names; a node does not name itself; the order of nodes does not
matter."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from index.names import fold
from index.text import stopwords

# Scripts that write no blanks between words: kana, Han, Bopomofo, Thai, Lao, Tibetan, Burmese, Khmer, Tai.
UNSPACED: Final = (
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3041-\u309f\u30a1-\u30fa\u30fc-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U0001b000-\U0001b16f\U00020000-\U0003ffff\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff"
    "\u1950-\u19df\u1a20-\u1aaf\ua9e0-\ua9ff\uaa60-\uaadf"
)
_KATAKANA = re.compile(r"[\u30a1-\u30fa\u30fc\uff66-\uff9f]+")
_PIPED = re.compile(r"\[\[([^\[\]|\n]*)\|[^\[\]\n]*\]\]")  # a link is named by its target, not twice
_GLUE = re.compile(r"(?<=\w)[-_\u2010\u2011](?=\w)")
_HYPHENS = frozenset("-_\u2010\u2011")
# Node.js, C++, C#, .NET; what begins with a letter comes first, because most words do.
_WORD: Final = r"{0}(?:\.{0})*(?:\+\+|#(?![\w^]))?|(?<![\w.])\.{0}(?:\.{0})*(?:\+\+|#(?![\w^]))?"
_OTHER: Final = r"\n[^\S\n]*\n\s*|[^\s\w]|_"
_PLAIN = re.compile(f"{_WORD.format('[a-zA-Z0-9]+')}|{_OTHER}")  # in ASCII without an address
_ENDED = re.compile(r"(?:\A|[.!?…:;\n•\"“„«(\[>*#-])\s*\Z")  # what stands before the first word of a sentence

TRIED: Final = 8  # most names compared with one place: a hundred that begin alike, in two spellings each, took minutes

_Need: TypeAlias = Literal["words", "spelling", "sentence", "link", "run"]


@dataclass(frozen=True, slots=True)
class UnlinkedName:
    """Reports that `node` names `referenced` `count` times without a relation to it."""

    node: str
    referenced: str
    count: int


@dataclass(frozen=True, slots=True)
class _Owner:
    """Describes a node that a pattern may name, and the requirements of the place where the name occurs."""

    node: int
    spelling: str
    need: _Need
    alias: bool


@dataclass(frozen=True, slots=True)
class _Owners:
    """Holds the nodes that a pattern may name: one, or several by their folded spellings."""

    sole: _Owner | None
    by_spelling: dict[str, tuple[_Owner, ...]]


@dataclass(slots=True)
class _Machine:
    """All names, read backwards, as one automaton over words (Aho, Corasick 1975).

    Read backwards over a text, the state at a place knows the longest name that begins there."""

    steps: list[dict[int, int]] = field(default_factory=lambda: [{}])
    back: list[int] = field(default_factory=lambda: [0])
    found: list[int] = field(default_factory=lambda: [-1])  # by state: the longest name that it holds
    shorter: list[int] = field(default_factory=list)  # by name: the next longest one that begins where it does
    lengths: list[int] = field(default_factory=list)

    def add(self, words: Sequence[int]) -> None:
        """Add a name, given as numbers of words."""
        state = 0
        for word in reversed(words):
            following = self.steps[state].get(word)
            if following is None:
                following = self.steps[state][word] = len(self.steps)
                self.steps.append({})
                self.back.append(0)
                self.found.append(-1)
            state = following
        self.found[state] = len(self.lengths)
        self.lengths.append(len(words))
        self.shorter.append(-1)

    def link_states(self) -> None:
        """Set the failure link of every state: the state to continue from when the next word does not match."""
        waiting = list(self.steps[0].values())
        for state in waiting:  # grows: by breadth
            for word, following in self.steps[state].items():
                at = self.back[state]
                while at and word not in self.steps[at]:
                    at = self.back[at]
                self.back[following] = self.steps[at].get(word, 0)
                waiting.append(following)
            inherited = self.found[self.back[state]]
            if self.found[state] < 0:
                self.found[state] = inherited
            else:
                self.shorter[self.found[state]] = inherited

    def longest_names(self, words: Sequence[int]) -> list[int]:
        """Return the longest name that begins at each position, or -1."""
        steps, back, longest = self.steps, self.back, self.found
        state, names = 0, [-1] * len(words)
        for at in range(len(words) - 1, -1, -1):
            word = words[at]
            if word < 0:
                state = 0
                continue
            while state and word not in steps[state]:
                state = back[state]
            state = steps[state].get(word, 0)
            names[at] = longest[state]
        return names


class _Words(dict[str, int]):
    """Maps words to numbers; -1 = a word that is in no name."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[str, int] = {}

    def number_of(self, word: str) -> int:
        return self.known.setdefault(fold(word), len(self.known))

    def __missing__(self, word: str) -> int:
        folded = fold(word)
        number = self.known.get(folded, -1)
        if number < 0 and "\uac00" <= folded[0] <= "\ud7a3":
            stems = (folded.removesuffix(end) for end in stopwords.KOREAN_ENDINGS if folded.endswith(end))
            number = next((self.known[stem] for stem in stems if stem in self.known), -1)
        self[word] = number
        return number


def find(
    nodes: Sequence[tuple[str, Sequence[str], Sequence[str]]],
    related: Callable[[str, str], bool],
    *,
    ordinary: Container[str] = frozenset(),
) -> list[UnlinkedName]:
    """Find names of nodes in the observations of other nodes, the most frequently named first.

    `nodes`: name, aliases and observations of each; `related`: whether a relation leads from one to the other or back;
    `ordinary`: words, in lower case, that are not names in themselves."""
    nodes = sorted(nodes, key=lambda node: (fold(node[0]), node[0]))
    names = Names([(name, aliases) for name, aliases, _ in nodes], ordinary=ordinary)
    gaps = []
    for number, (name, _, contents) in enumerate(nodes):
        named = Counter(other for content in contents for other in names.find_mentions(content, number))
        gaps += [
            UnlinkedName(name, nodes[other][0], count)
            for other, count in named.items()
            if other != number and not related(name, nodes[other][0])
        ]
    return sorted(gaps, key=lambda gap: (-gap.count, fold(gap.node), gap.node, fold(gap.referenced), gap.referenced))


class Names:
    """Holds names with their aliases, prepared once for searches in many texts."""

    def __init__(self, names: Sequence[tuple[str, Sequence[str]]], *, ordinary: Container[str] = frozenset()) -> None:
        self._words, self._machine = _Words(), _Machine()
        self._owners = _collect_patterns(names, self._words, self._machine, ordinary)
        self._machine.link_states()

    def find_mentions(self, content: str, node: int = -1) -> Iterator[int]:
        """Yield the number of each name in `content` except `node`, one for each time."""
        text = unicodedata.normalize("NFC", content)
        if "[[" in text:
            text = _PIPED.sub(r"[[\1]]", text)
        parted = _part_joined_words(text)
        numbers = list(map(self._words.__getitem__, _token_pattern(parted).findall(parted)))
        if max(numbers, default=-1) < 0:
            return
        spans: list[tuple[int, int]] = []
        free = 0  # the first position after the latest mention
        for at, longest in enumerate(self._machine.longest_names(numbers)):
            if longest < 0 or at < free:
                continue
            name, tries = longest, 0
            while name >= 0 and tries < TRIED:
                owner, behind = self._owners[name].sole, at + self._machine.lengths[name]
                if owner is None or owner.need != "words":
                    spans = spans or [match.span() for match in _token_pattern(parted).finditer(parted)]
                    owner = _find_owner(text, spans[at][0], spans[behind - 1][1], self._owners[name])
                if owner is None:
                    name, tries = self._machine.shorter[name], tries + 1
                    continue
                if owner.node != node:
                    yield owner.node
                free = behind
                break


def _collect_patterns(
    nodes: Sequence[tuple[str, Sequence[str]]], words: _Words, machine: _Machine, ordinary: Container[str]
) -> list[_Owners]:
    """Return the nodes that each pattern may name; names come before aliases."""
    patterns: dict[tuple[int, ...], dict[int, _Owner]] = {}
    for alias in (False, True):
        for number, (name, aliases) in enumerate(nodes):
            for spelling in aliases if alias else (name,):
                if alias and name.isascii() and spelling == name.lower():
                    continue  # the usual file name: its pattern is that of the name
                text = unicodedata.normalize("NFC", spelling).strip()
                parted = _part_joined_words(text)
                tokens = _trim_signs(_token_pattern(parted).findall(parted))
                if not tokens:
                    continue
                spelt = text if len(tokens) > 1 else tokens[0]
                owner = _Owner(number, spelt, _choose_need(tokens, ordinary), alias)
                patterns.setdefault(tuple(words.number_of(token) for token in tokens), {}).setdefault(number, owner)
    for pattern in patterns:
        machine.add(pattern)
    return [_choose_owners(tuple(owners.values())) for owners in patterns.values()]


def _choose_owners(owners: tuple[_Owner, ...]) -> _Owners:
    """Choose the nodes that a shared pattern means: names win over aliases, and an alias of two nodes means none."""
    names = tuple(owner for owner in owners if not owner.alias)
    chosen = names or (owners if len(owners) == 1 else ())
    if len(chosen) == 1:
        return _Owners(chosen[0], {})
    by_spelling: dict[str, tuple[_Owner, ...]] = {}
    for owner in chosen:
        spelling = fold(owner.spelling)
        by_spelling[spelling] = (*by_spelling.get(spelling, ()), owner)
    return _Owners(None, by_spelling)


def _find_owner(text: str, start: int, end: int, owners: _Owners) -> _Owner | None:
    """Return the node that `text[start:end]`, which has the words of a name, names; None if it names no node.

    `rain-gauge` and `rain gauge` are two nodes, and each spelling names its own."""
    spelt = (owners.sole,) if owners.sole else owners.by_spelling.get(fold(text[start:end]), ())
    return next((owner for owner in spelt if _is_mention(text, start, end, owner)), None)


def _is_mention(text: str, start: int, end: int, owner: _Owner) -> bool:
    """Return whether `text[start:end]`, which has the words of a name, counts as a mention of it."""
    spelt = text[start:end]
    if text.endswith("[[", 0, start) and text[end : end + 1] in ("]", "#", "|"):
        return True
    before, after = text[start - 1 : start], text[end : end + 1]
    if owner.need == "run":
        return not _KATAKANA.match(before) and not _KATAKANA.match(after)
    if owner.need == "sentence":
        first = spelt[1:].islower() and _ENDED.search(text[max(0, start - 8) : start]) is not None
        return spelt == owner.spelling and not first and before not in _HYPHENS and after not in _HYPHENS
    return owner.need == "words" or (owner.need == "spelling" and spelt == owner.spelling)


def _choose_need(tokens: Sequence[str], ordinary: Container[str]) -> _Need:
    """Return the requirements of a place where a name occurs; common words have stricter ones."""
    if len(tokens) > 1:
        whole = "".join(tokens)
        if whole in stopwords.JAPANESE or whole in stopwords.CHINESE:
            return "link"
        return "run" if len(whole) <= 3 and _KATAKANA.fullmatch(whole) else "words"
    word = tokens[0]
    folded = fold(word)
    if len(word) < 2 or not any(c.isalpha() for c in word) or word in stopwords.KOREAN:
        return "link"
    cased = word.lower() != word.upper()
    if not cased or not word.isalpha():
        return "words"
    if len(folded) < 3 or folded in stopwords.ENGLISH or any(folded in known for known in stopwords.LANGUAGES.values()):
        return "sentence" if word != word.lower() else "link"
    return "spelling" if word != word.lower() and folded in ordinary else "words"


def _trim_signs(tokens: list[str]) -> list[str]:
    """Remove signs at both ends of a name, unless it has nothing else."""
    places = [n for n, token in enumerate(tokens) if any(map(str.isalnum, token))]
    return tokens[places[0] : places[-1] + 1] if places else tokens


def _part_joined_words(text: str) -> str:
    """Return a text with a space in place of each hyphen or underscore between two letters."""
    if text.isascii() and "-" not in text and "_" not in text:
        return text  # most texts, without a search
    return _GLUE.sub(" ", text)


def _token_pattern(text: str) -> re.Pattern[str]:
    """Return the pattern of the tokens in `text`; most texts need only the simple one, which is faster."""
    return _PLAIN if text.isascii() and "://" not in text else _any_token()


@functools.cache
def _any_token() -> re.Pattern[str]:
    """Return the pattern of tokens: addresses, words, characters of a script without blanks, ends of paragraphs, signs."""
    marks = _character_ranges(code for code in range(0x300, 0x1E950) if unicodedata.category(chr(code))[0] == "M")
    letter = rf"[^\W_{UNSPACED}]"
    word = _WORD.format(rf"{letter}+(?:[{marks}]+{letter}*)*")
    return re.compile(rf"[a-zA-Z][a-zA-Z0-9+]{{1,20}}://\S+|{word}|[{UNSPACED}][{marks}]*|{_OTHER}")


def _character_ranges(codes: Iterable[int]) -> str:
    """Format characters for a character class of a pattern."""
    runs: list[list[int]] = []
    for code in codes:
        if runs and code == runs[-1][1] + 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in runs)
