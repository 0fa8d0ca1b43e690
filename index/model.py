"""Define the data model: the types of parsed notes, search queries and search results.

Times of notes are epoch milliseconds (UTC) everywhere; they become ISO text only in a note's properties."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Self, TypeAlias

Scope: TypeAlias = Literal["captures", "vault"]
IndexName: TypeAlias = Literal[
    "captures", "vault", "shared"
]  # of an index: of a scope, or of the notes that agents may read
Mode: TypeAlias = Literal["hybrid", "vector", "text"]
ObservationMode: TypeAlias = Literal["embedding", "text"]
BlockKind: TypeAlias = Literal[
    "heading", "paragraph", "list", "code", "table", "quote", "callout", "html", "math", "rule"
]

FILE_NAME = "file_name"  # of the metadata of a stored file's document: the name that it was given with
COLLECTIONS = ("documents", "memory", "workspace")
COLLECTION_TAG = "collection:"  # how a tag that names a collection begins
# Defects of a note whose collection may change with the settings or with an edit of the owner.
SEVERAL_COLLECTIONS, UNKNOWN_COLLECTION = "two-collections", "unknown-collection"
_STAT = struct.Struct("=qqQ")


@dataclass(frozen=True, slots=True)
class Heading:
    """Describes a heading; `line` is 0-based in the note's body."""

    level: int
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Link:
    """Describes a link as written; Memex resolves its target at each read and never stores it."""

    kind: Literal["wikilink", "embed", "markdown"]
    target: str  # the path part; empty = this note
    subpath: str  # "#Heading", "#^block" or ""
    display: str | None
    line: int  # 0-based in the body; -1 = in a property


@dataclass(frozen=True, slots=True)
class Block:
    """Describes a top-level piece of `Document.text`: `text[start:end]`, with the headings above it, outermost first.

    Blocks are in order and don't overlap; what lies between two of them is white space."""

    kind: BlockKind
    start: int
    end: int
    trail: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Defect:
    """Describes a problem of a note that its owner may want to fix; Memex never drops a note because of it."""

    name: str  # a stable kebab-case word, e.g. "bad-frontmatter"
    detail: str  # a human sentence

    def __str__(self) -> str:
        return f"{self.name}: {self.detail}" if self.detail else self.name


@dataclass(frozen=True, slots=True)
class Observation:
    """Holds a fact of a node with its permanent ordinal."""

    ordinal: int  # from 1
    content: str  # lines end in "\n"; no white space around it


@dataclass(frozen=True, slots=True)
class Statement:
    """Describes a relation as its source states it; Memex resolves its target at each read."""

    type: str
    target: str  # the path part of the link, as written


@dataclass(frozen=True, slots=True)
class Node:
    """Holds the content of a note of type `entity` as a node of the graph."""

    name: str
    entity_type: str
    observations: tuple[Observation, ...]  # in order of their ordinals
    relations: tuple[Statement, ...]  # in the order of their lines, without repeats
    last_ordinal: int  # the highest ordinal ever used, 0 = none
    unsettled: bool  # the file does not state them all yet: some follow from the order of lines, or go beyond its `last_ordinal`
    summary_updated_at: int | None
    observed_at: int | None  # when an observation was last added or replaced
    tags: tuple[str, ...] = ()  # of the property alone: a "#word" in a fact is a tag of the note, not of the node


@dataclass(frozen=True, slots=True)
class MemoRelation:
    """Describes a relation of a memo as its note states it. It leads to the memo with this id or, without an id, to the link's target."""

    target: str | None
    link: str  # the path part of the wikilink, as written; "" = there is none
    tag: str
    weight: float  # 0..1, two decimals
    reason: str | None
    version: int
    created_at: int | None  # None: its note does not say
    updated_at: int | None


@dataclass(frozen=True, slots=True)
class Document:
    """Holds one parsed Markdown file, a pure function of its path, its bytes and its modification time."""

    path: str  # from the vault's root, "/" between parts, exactly as listed
    scope: Scope
    workspace: str  # "" in the vault outside the inbox
    namespace: str  # "default" = the top level of the workspace
    claimed_id: str | None  # the `id` property as written, when it is a valid id
    type: str  # "note", "file" or "entity"
    title: str
    content: str  # the body, byte for byte
    text: str  # the body that is searched: comments left out
    digest: str  # sha256 of the file's bytes, hex
    content_hash: str  # sha256 of `content` in UTF-8, hex
    collection: str
    tags: tuple[str, ...]  # property and inline, without "#", in order, without repeats; no collection tags
    aliases: tuple[str, ...]
    summary: str | None
    source: str | None
    metadata: Mapping[str, Any]  # JSON-safe; the properties that Memex does not own
    created_at: int
    updated_at: int | None
    version: int
    headings: tuple[Heading, ...] = ()
    links: tuple[Link, ...] = ()
    blocks: tuple[Block, ...] = ()
    defects: tuple[Defect, ...] = ()
    writable: bool = True  # False: its properties could not be read, so Memex never writes to it
    node: Node | None = None  # of a capture of type `entity`
    memo_relations: tuple[MemoRelation, ...] = ()  # of a capture of any other type, in their order, without repeats
    file: str | None = None  # of a capture of type `file`: the path of the stored file whose text it holds
    superseded_by: str | None = (
        None  # of a capture that a newer one replaces: the path part of the link to it, as written
    )
    owner_marks: str = ""  # of a capture: what its owner has marked on it, as the parser encodes it; kept, and not read
    summary_derived: bool = False  # `summary` is the first sentence of the text: no property states one

    def has_file_time(self, stat: Stat) -> bool:
        """Return whether the creation time is the file's, because no property states it; then it changes with the file."""
        return self.created_at == stat.mtime_ms


@dataclass(frozen=True, slots=True)
class Chunk:
    """Describes a passage of one document, exactly `Document.text[start:end]`, with its context for embedding."""

    ord: int
    text: str
    trail: tuple[str, ...]
    context: str  # title and heading trail, as put in front of the text when it is embedded; may be ""

    @property
    def embedded(self) -> str:
        """Return the text that is embedded."""
        return f"{self.context}\n{self.text}" if self.context else self.text

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the embedded text; equal digests have equal vectors."""
        return hashlib.sha256(self.embedded.encode()).hexdigest()


class Stat(bytes):
    """Holds the file attributes that show a change cheaply.

    They are packed into one object, because one is in memory for each file: numbers of their own would take twice as much."""

    __slots__ = ()

    def __new__(cls, size: int, mtime_ns: int, ino: int) -> Self:
        """Pack the attributes."""
        return super().__new__(cls, _STAT.pack(size, mtime_ns, ino))

    def __repr__(self) -> str:
        return f"Stat(size={self.size}, mtime_ns={self.mtime_ns}, ino={self.ino})"

    __str__ = __repr__

    def __getnewargs__(self) -> tuple[int, int, int]:  # type: ignore[override]
        """Return what a copy is made of."""
        return self.size, self.mtime_ns, self.ino

    @property
    def size(self) -> int:
        """Return the size in bytes."""
        return int(_STAT.unpack(self)[0])

    @property
    def mtime_ns(self) -> int:
        """Return the time of the last change, in nanoseconds since 1970."""
        return int(_STAT.unpack(self)[1])

    @property
    def mtime_ms(self) -> int:
        """Return the time of the last change, in epoch milliseconds."""
        return self.mtime_ns // 1_000_000

    @property
    def ino(self) -> int:
        """Return the number of the inode."""
        return int(_STAT.unpack(self)[2])


@dataclass(frozen=True, slots=True)
class Entry:
    """Holds what a pass needs from the catalog about one indexed file."""

    path: str
    id: str
    digest: str
    stat: Stat
    embedded: bool  # False: searchable by words only, because no encoder was ready


@dataclass(frozen=True, slots=True)
class Record:
    """Holds a document's row in the catalog: everything except its text, which is in the file."""

    id: str
    path: str
    scope: Scope
    workspace: str
    namespace: str
    type: str
    title: str
    digest: str
    content_hash: str
    collection: str
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    summary: str | None
    source: str | None
    metadata: Mapping[str, Any]
    created_at: int
    updated_at: int | None
    version: int
    chunks: int
    defects: tuple[Defect, ...]
    writable: bool
    file: str | None  # of a document of type `file`: the path of the stored file whose text it holds
    superseded_by: str | None  # of a capture that is stale: what the link to the newer one says
    summary_derived: bool


@dataclass(frozen=True, slots=True)
class DocumentOverview:
    """Holds the fields of a document for comparisons of all documents of a workspace."""

    id: str
    key: str  # `path_id` of its path, as its passages have it
    path: str
    title: str
    type: str
    tags: tuple[str, ...]
    created_at: int
    updated_at: int | None
    content_hash: str


@dataclass(frozen=True, slots=True)
class Filter:
    """Restricts a search. A `None` or empty field restricts nothing; a document must match all other fields."""

    workspace: str | None = None
    namespace: str | None = None
    collection: str | None = None
    tags: tuple[str, ...] = ()  # every one; "a" also matches "a/b"; letter case does not count
    type: str | None = None
    source: str | None = None
    since: int | None = None  # created at or after
    until: int | None = None  # created before
    any_tags: tuple[str, ...] = ()  # at least one of them, compared as `tags` are
    documents: frozenset[str] | None = (
        None  # only these, by `path_id` of their paths; searches of a chunk store alone know it
    )
    reads_all: bool = False  # restricts nothing: the caller may read all rows, so scores may depend on all of them


@dataclass(frozen=True, slots=True)
class Query:
    """Describes a search. `limit` counts documents; the index fills in `embedding`."""

    text: str
    limit: int = 10
    mode: Mode = "hybrid"
    filter: Filter = field(default_factory=Filter)
    asked_at: datetime | None = None  # what "last week" counts from; None = now, in the machine's time zone


@dataclass(frozen=True, slots=True)
class Hit:
    """Describes a matching document with its best passage. `score` is in 0..1 and comparable within one mode."""

    record: Record
    ord: int
    heading: str  # the trail, " > " between headings
    chunk: str
    score: float
    weak: bool = False  # whether notes that have nothing to do with a query reach such a score too
    newer: tuple[Record, ...] = ()  # of its index, the notes that replace it one after the other, the nearest first


@dataclass(frozen=True, slots=True)
class Answer:
    """Holds the results of a search, best first, and the reasons why it is incomplete."""

    hits: tuple[Hit, ...]
    mode: Mode  # the mode that was used
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SimilarDocument:
    """Describes a document that is similar to another one."""

    record: Record
    near: float  # the cosine similarity of their nearest passages; 0 where words alone found it
    words: float  # 0..1: the share of the searched words that it contains


@dataclass(frozen=True, slots=True)
class ObservationHit:
    """Describes a matching observation; `score` is its similarity, at most 1, or the weight of its words (BM25, from 0)."""

    path: str  # of its node
    ordinal: int
    content: str
    perspective: str | None  # the perspective with the best match; None: found by its words
    score: float


@dataclass(frozen=True, slots=True)
class ObservationAnswer:
    """Holds the observations that a search found, best first, and the reasons why it is incomplete."""

    hits: tuple[ObservationHit, ...]
    mode: ObservationMode  # the mode that was used
    degraded: tuple[str, ...] = ()


def given_name(title: str, metadata: Mapping[str, Any]) -> str:
    """Return the original name of a document's stored file: `file_name` in the metadata, or else its title."""
    name = metadata.get(FILE_NAME)
    return name if isinstance(name, str) else title
