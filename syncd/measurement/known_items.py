"""Make questions with known answers, the known items, from the names in the notes, and hide these names from the texts that are searched.

A title, a heading, an alias or the text of a link is a question; the note that it names is the answer. A note is found by
its own name without any model, so a question is fair only if no note keeps its names: `hide_names` removes titles,
aliases and headings from all notes alike. A note that links with a question's words is left out of its ranking."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import Final, Literal, TypeAlias, get_args

from index.model import Block, Document
from index.names import fold, stem
from syncd.links.link_resolution import Paths

Kind: TypeAlias = Literal["title", "heading", "link", "alias"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

LEAST_TEXT: Final = 100  # characters that a note must keep without its names, to be an answer
LONGEST: Final = 120  # characters of a question
LETTERS: Final = 0.6  # least share of letters: a date or a number names no topic
UNSPACED: Final = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
WORD: Final = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True, slots=True)
class Question:
    """Holds a query, the path of the note that answers it, and the notes that are left out because they quote it."""

    text: str
    target: str
    kind: Kind
    without: frozenset[str] = frozenset()


def hide_names(document: Document) -> Document:
    """Return the document without title, aliases and headings, as a plain note; all other text stays."""
    texts: list[str] = []
    blocks: list[Block] = []
    at = 0
    for block in document.blocks:
        if block.kind != "heading":
            text = document.text[block.start : block.end]
            texts.append(text)
            blocks.append(Block(block.kind, at, at + len(text), ()))
            at += len(text) + 2
    return replace(
        document,
        type="note",
        node=None,
        title="",
        aliases=(),
        headings=(),
        text="\n\n".join(texts),
        blocks=tuple(blocks),
        memo_relations=(),
        superseded_by=None,
    )


def make_questions(documents: Sequence[Document], most: int) -> list[Question]:
    """Return at most `most` questions about `documents`, in equal parts of each kind as far as possible.

    The choice depends on digests of the texts alone, so it is the same each time. A text that could mean several notes is
    no question."""
    answers = {document.path for document in documents if _can_answer(document)}
    meant: dict[str, set[str]] = defaultdict(set)
    asked: dict[tuple[str, Kind], list[Question]] = defaultdict(list)
    quoting: dict[str, set[str]] = defaultdict(set)
    for question, source in _find_names(documents):
        key = _key(question.text)
        meant[key].add(question.target)
        if source != question.target:
            quoting[key].add(source)
        if question.target in answers and _is_question(question.text):
            asked[question.target, question.kind].append(question)
    kinds: dict[Kind, list[Question]] = {kind: [] for kind in KINDS}
    for (_, kind), questions in sorted(asked.items()):
        clear = [question for question in questions if len(meant[_key(question.text)]) == 1]
        kinds[kind] += sorted(clear, key=_digest)[
            :1
        ]  # one of each kind for a note, so that a long note does not count more
    chosen: dict[str, Question] = {}
    for each in chain.from_iterable(zip_longest(*(sorted(questions, key=_digest) for questions in kinds.values()))):
        if each is not None and len(chosen) < most:
            key = _key(each.text)
            chosen.setdefault(key, replace(each, without=frozenset(quoting[key] - {each.target})))
    return list(chosen.values())


def _find_names(documents: Iterable[Document]) -> Iterator[tuple[Question, str]]:
    """Yield every name with the note that it means, as a question, and the note that contains the name."""
    documents = list(documents)
    paths = Paths(document.path for document in documents)
    for document in documents:
        yield Question(document.title, document.path, "title"), document.path
        for alias in document.aliases:
            yield Question(alias, document.path, "alias"), document.path
        for heading in document.headings:
            yield Question(heading.text, document.path, "heading"), document.path
        for link in document.links:
            if link.kind == "embed" or not link.display or not link.target:
                continue
            target = paths.resolve(link.target, document.path)
            if target and target != document.path and fold(link.display) not in (fold(stem(target)), fold(link.target)):
                yield Question(link.display, target, "link"), document.path


def _can_answer(document: Document) -> bool:
    template = any(defect.name == "template" for defect in document.defects)
    return not template and len(hide_names(document).text) >= LEAST_TEXT


def _is_question(text: str) -> bool:
    """Return whether `text` could be a query about a topic: two words, or four characters of a script without spaces."""
    solid = [character for character in text if not character.isspace()]
    if not solid or len(text) > LONGEST or sum(map(str.isalpha, solid)) < LETTERS * len(solid):
        return False
    return len(UNSPACED.findall(text)) >= 4 or len(WORD.findall(text)) >= 2


def _key(text: str) -> str:
    return " ".join(fold(text).split())


def _digest(question: Question) -> bytes:
    return hashlib.sha256(f"{question.text}\n{question.target}".encode("utf-8", "replace")).digest()
