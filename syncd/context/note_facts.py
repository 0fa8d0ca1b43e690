"""Make the facts of a note for a context: each is one line of text, with the note, its date and its author.

Laws, tested: a fact's text is one line without hidden characters, so it can't end a line or a fence; equal captures
give equal facts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from index.document_ids import sha256
from index.model import Observation, Record
from index.names import replace_surrogates, spaced_words
from index.text.hidden_characters import escape_hidden
from index.text.sentences import cut_cleaned, plain_text, shorten, split_markdown
from index.text.tags import to_tag
from syncd.notes.secret_patterns import redact
from syncd.notes.timestamps import iso

LONGEST: Final = 240  # characters of a fact
NEWEST: Final = 50  # facts of an entity
LONGEST_NAME: Final = 60  # characters of an author or a title in a line
READ: Final = 8 * LONGEST  # first characters of a note that a fact is made from
_LINE_ENDS: Final = re.compile("[\u2028\u2029]")
_HEADING: Final = re.compile(r"^#{1,6}[ \t]+(.*?)[ \t#:]*$", re.MULTILINE)
_PROJECT: Final = ("project", "projects")  # properties that name the project of a note


@dataclass(frozen=True, slots=True)
class ContextFact:
    """Holds one fact; `key` is the id of its note, followed by `#^o3` for the third fact of an entity."""

    key: str
    path: str
    title: str
    namespace: str
    type: str
    text: str
    at: int  # epoch milliseconds of the note's last change
    author: str  # "" = unknown
    stale: bool  # a newer note replaces it
    projects: frozenset[str] = frozenset()  # keys of its namespace, of its property `project` and of its tags
    filed: bool = False  # its namespace or its property `project` says to which project it belongs
    promoted: bool = False  # its note has left the inbox; the text is the capture's

    @property
    def id(self) -> str:
        """Return the id of the note."""
        return self.key.partition("#")[0]

    @property
    def mark(self) -> str:
        """Return the id that the fact's line has in the context note."""
        return f"c{sha256(self.key.encode())[:10]}"

    @property
    def day(self) -> str:
        """Return the date of the fact in UTC."""
        return iso(self.at)[:10]

    @property
    def line(self) -> str:
        """Return the line that agents get. It names the note unless the text already contains its title."""
        note = "" if spaced_words(self.title) in spaced_words(self.text) else flatten(self.title, LONGEST_NAME)
        origin = [self.day, self.author, "out of date" if self.stale else "", f"note: {note}" if note else ""]
        return f"- {self.text} ({', '.join(filter(None, origin))})"


@dataclass(frozen=True, slots=True)
class LineWords:
    """Holds the words of a line."""

    worth: Mapping[str, float]  # of the words that say something about a topic, as `tokenize` rates them
    stems: tuple[str, ...]  # of all words, as `word_stems` returns them, without repeats


@dataclass(frozen=True, slots=True)
class WeighedFact:
    """Holds a fact with its words and its size, from which the choice is made."""

    fact: ContextFact
    tokens: int  # of its line
    words: LineWords


def flatten(text: str, most: int) -> str:
    """Return `text` on one line of at most `most` characters, without secrets, and with hidden characters escaped."""
    flat = shorten(" ".join(cut_cleaned(text, READ, redact).split()), most)
    return replace_surrogates(_LINE_ENDS.sub(" ", escape_hidden(flat)))


def facts_of_note(record: Record, text: str) -> list[ContextFact]:
    """Return the fact of a note: its whole text if that is short, otherwise its title and its summary."""
    text = _HEADING.sub(r"\1:", cut_cleaned(text, READ, redact))
    whole = flatten(" ".join(split_markdown(text)), READ)
    line = whole if len(whole) <= LONGEST else flatten(_name_and_summary(record, text), LONGEST)
    return [_make_fact(record, record.id, line)] if any(letter.isalnum() for letter in line) else []


def facts_of_entity(record: Record, observations: Iterable[Observation]) -> list[ContextFact]:
    """Return the newest facts of an entity, at most `NEWEST`, each with the entity's name in front."""
    newest = sorted(observations, key=lambda observation: observation.ordinal)[-NEWEST:]
    return [
        _make_fact(
            record,
            f"{record.id}#^o{observation.ordinal}",
            flatten(f"{record.title}: {plain_text(observation.content)}", LONGEST),
        )
        for observation in newest
    ]


def project_key(name: str) -> str:
    """Return the form in which names of projects are compared; "" when the name has no letter or digit."""
    return to_tag(name)


def _name_and_summary(record: Record, text: str) -> str:
    title = spaced_words(record.title)
    sentences = (sentence for sentence in split_markdown(text) if spaced_words(sentence) != title)
    summary = record.summary or " ".join(sentences)
    return summary if spaced_words(summary).startswith(title) else f"{record.title}: {summary}"


def _make_fact(record: Record, key: str, text: str) -> ContextFact:
    filed = frozenset(map(project_key, _project_names(record))) - {""}
    tags = frozenset(project_key(tag.rpartition("/")[2]) for tag in record.tags) - {""}
    return ContextFact(
        key=key,
        path=record.path,
        title=record.title,
        namespace=record.namespace,
        type=record.type,
        text=text,
        at=record.created_at if record.updated_at is None else record.updated_at,
        author=flatten(record.source or "", LONGEST_NAME),
        stale=record.superseded_by is not None,
        projects=filed | tags,
        filed=bool(filed),
    )


def _project_names(record: Record) -> list[str]:
    named: list[Any] = []
    for key in _PROJECT:
        value = record.metadata.get(key)
        named += value if isinstance(value, list) else [value]
    folders = [] if record.namespace == "default" else record.namespace.split("/")
    return [name for name in (*named, *folders) if isinstance(name, str)]
