"""Define the data model: the types of parsed notes, search queries and search results.

Times are epoch milliseconds (UTC) everywhere; they become ISO text only in a note's properties."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Scope: TypeAlias = Literal["captures", "vault"]
Mode: TypeAlias = Literal["hybrid", "vector", "text"]
ObservationMode: TypeAlias = Literal["embedding", "text"]
BlockKind: TypeAlias = Literal[
    "heading", "paragraph", "list", "code", "table", "quote", "callout", "html", "math", "rule"
]

FILE_NAME = "file_name"  # of the metadata of a stored file's document: the name that it was given with
COLLECTIONS = ("documents", "memory", "workspace")
COLLECTION_TAG = "collection:"  # how a tag that names a collection begins
# The defects of a note whose collection another setting, or its owner's next look, may change.
SEVERAL_COLLECTIONS, UNKNOWN_COLLECTION = "two-collections", "unknown-collection"


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; `line` is 0-based in the note's body."""

    level: int
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Link:
    """A link as it is written; where it leads is decided when it is read, never stored."""

    kind: Literal["wikilink", "embed", "markdown"]
    target: str  # the path part; empty = this note
    subpath: str  # "#Heading", "#^block" or ""
    display: str | None
    line: int  # 0-based in the body; -1 = in a property


@dataclass(frozen=True, slots=True)
class Task:
    """A list item with a box; `status` is the character in the box."""

    status: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Callout:
    """The first line of a callout: `> [!type]± title`."""

    type: str
    title: str
    fold: str  # "", "+" or "-"
    line: int


@dataclass(frozen=True, slots=True)
class Block:
    """A top-level piece of `Document.text`: `text[start:end]`, with the headings it stands under, outermost first.

    Blocks are in order and don't overlap; what lies between two of them is white space."""

    kind: BlockKind
    start: int
    end: int
    trail: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Defect:
    """Something about a note that its owner may want to mend; never a reason to lose it."""

    name: str  # a stable kebab-case word, e.g. "bad-frontmatter"
    detail: str  # a human sentence

    def __str__(self) -> str:
        return f"{self.name}: {self.detail}" if self.detail else self.name


@dataclass(frozen=True, slots=True)
class Observation:
    """A fact of a node, with the ordinal that is its own for good."""

    ordinal: int  # from 1
    content: str  # lines end in "\n"; no white space around it


@dataclass(frozen=True, slots=True)
class Statement:
    """A relation as its source states it; where it leads is decided when it is read."""

    type: str
    target: str  # the path part of the link, as written


@dataclass(frozen=True, slots=True)
class Node:
    """What a note of type `entity` says as a node of the graph."""

    name: str
    entity_type: str
    observations: tuple[Observation, ...]  # in order of their ordinals
    relations: tuple[Statement, ...]  # in the order of their lines, without repeats
    last_ordinal: int  # the highest ever given, 0 = none
    unsettled: bool  # the file does not state them all yet: some follow from the order of lines, or go beyond its `last_ordinal`
    summary_updated_at: int | None
    observed_at: int | None  # when an observation was last added or replaced
    tags: tuple[str, ...] = ()  # of the property alone: a "#word" in a fact is a tag of the note, not of the node


@dataclass(frozen=True, slots=True)
class MemoRelation:
    """A relation of a memo as its note states it. It leads to the memo of that id, or where the link leads if it has none."""

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
    """One Markdown file, parsed. A pure function of its path, its bytes and its modification time."""

    path: str  # from the vault's root, "/" between parts, exactly as listed
    scope: Scope
    workspace: str  # "" in the vault proper
    namespace: str  # "default" = the workspace's own top level
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
    callouts: tuple[Callout, ...] = ()
    tasks: tuple[Task, ...] = ()
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


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of one document: exactly `Document.text[start:end]`, and what is embedded with it."""

    ord: int
    text: str
    trail: tuple[str, ...]
    context: str  # title and heading trail, as put in front of the text when it is embedded; may be ""

    @property
    def embedded(self) -> str:
        """What the encoder is given."""
        return f"{self.context}\n{self.text}" if self.context else self.text

    @property
    def digest(self) -> str:
        """sha256 of what is embedded: equal digests have equal vectors."""
        return hashlib.sha256(self.embedded.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Stat:
    """What tells cheaply that a file has changed."""

    size: int
    mtime_ns: int
    ino: int


@dataclass(frozen=True, slots=True)
class Entry:
    """What the catalog knows of one indexed file: enough to plan, nothing more."""

    path: str
    id: str
    digest: str
    stat: Stat
    embedded: bool  # False: findable by its words only, because no encoder was ready


@dataclass(frozen=True, slots=True)
class Record:
    """A document's row in the catalog: everything but its text, which is in the file."""

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


@dataclass(frozen=True, slots=True)
class DocumentOverview:
    """A document as all of a workspace are looked at together."""

    id: str
    key: str  # `path_id` of its path, as its passages have it
    path: str
    title: str
    type: str
    tags: tuple[str, ...]
    source: str | None
    created_at: int
    updated_at: int | None
    content_hash: str


@dataclass(frozen=True, slots=True)
class Filter:
    """What a search is restricted to. A `None` or empty field restricts nothing; all that are set must hold."""

    workspace: str | None = None
    namespace: str | None = None
    collection: str | None = None
    tags: tuple[str, ...] = ()  # every one; "a" also matches "a/b"; letter case does not count
    type: str | None = None
    source: str | None = None
    since: int | None = None  # created at or after
    until: int | None = None  # created before
    any_tags: tuple[str, ...] = ()  # at least one of them, compared as `tags` are


@dataclass(frozen=True, slots=True)
class Query:
    """A search. `limit` counts documents; `embedding` is filled in by the index."""

    text: str
    limit: int = 10
    mode: Mode = "hybrid"
    filter: Filter = field(default_factory=Filter)


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that answers, by its best passage. `score` is in 0..1 and comparable within one mode."""

    record: Record
    ord: int
    heading: str  # the trail, " > " between headings
    chunk: str
    score: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What a search found, best first, and what kept it from being complete ("" = nothing did)."""

    hits: tuple[Hit, ...]
    mode: Mode  # the mode that was used
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SimilarDocument:
    """A document that resembles another."""

    record: Record
    near: float  # the cosine similarity of their nearest passages; 0 where words alone found it
    words: float  # 0..1: how much of the words that were looked for it holds


@dataclass(frozen=True, slots=True)
class ObservationHit:
    """An observation that answers; `score` is its similarity, at most 1, or the weight of its words (BM25, from 0)."""

    path: str  # of its node
    ordinal: int
    content: str
    perspective: str | None  # under which it is the nearest; None: found by its words
    score: float


@dataclass(frozen=True, slots=True)
class ObservationAnswer:
    """The observations that a search found, best first, and what kept it from being complete ("" = nothing did)."""

    hits: tuple[ObservationHit, ...]
    mode: ObservationMode  # the mode that was used
    degraded: tuple[str, ...] = ()


def given_name(title: str, metadata: Mapping[str, Any]) -> str:
    """The name that the stored file of a document was given with: its title, unless that says something else."""
    name = metadata.get(FILE_NAME)
    return name if isinstance(name, str) else title
