"""Define a vertex, which is a node as the graph holds it, and the forms in which names and links are compared."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from index.document_ids import path_id
from index.model import Document, Statement
from index.names import fold, stem

_NUMBERED = re.compile(r" \d+\Z")
_WORDS = re.compile(r"\w+")
NAMELESS = "Entity"  # file name of a node if no part of its name can be used


@dataclass(frozen=True, slots=True)
class Vertex:
    """Describes a node without the text of its observations."""

    path: str
    id: str
    name: str
    entity_type: str
    summary: str | None
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    created_at: int
    updated_at: int | None
    version: int
    observations: int  # the number of them
    last_ordinal: int
    unsettled: bool
    summary_updated_at: int | None
    observed_at: int | None
    relations: tuple[Statement, ...]  # as stated, whether or not they lead to a node

    @property
    def changed_at(self) -> int:
        """Return the time of its last change or, without one, of its creation."""
        return self.created_at if self.updated_at is None else self.updated_at


class Edge(NamedTuple):  # a graph makes many, and a frozen dataclass takes five times as long to make and to sort
    """Describes a relation between two nodes, by their names; edges are ordered by their ends and type."""

    source: str
    target: str
    type: str


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Holds the nodes within some relations of one, nearest first, and all relations between them."""

    vertices: tuple[Vertex, ...]
    edges: tuple[Edge, ...]
    truncated: bool  # there are more nodes than the limit


def name_key(name: str) -> str:
    """Return the form in which names of nodes are compared: letter case, normal form and runs of blanks don't count."""
    return fold(" ".join(name.split()))


def vertex_of(document: Document) -> Vertex | None:
    """Return the node that `document` is; None for any other note."""
    node = document.node
    if node is None:
        return None
    return Vertex(
        path=document.path,
        id=document.claimed_id or path_id(document.path),
        name=node.name,
        entity_type=node.entity_type,
        summary=document.summary,
        tags=node.tags,
        aliases=document.aliases,
        created_at=document.created_at,
        updated_at=document.updated_at,
        version=document.version,
        observations=len(node.observations),
        last_ordinal=node.last_ordinal,
        unsettled=node.unsettled,
        summary_updated_at=node.summary_updated_at,
        observed_at=node.observed_at,
        relations=node.relations,
    )


def file_key(node: Vertex) -> str:
    """Return the folded file name of a node, without a number that Memex added because another note has the name: the number would reveal that note."""
    called, name = target_key(node.path), name_key(node.name)
    plain = _NUMBERED.sub("", called)
    if called in (plain, name):
        return called
    file_words, words = _WORDS.findall(called), _WORDS.findall(name)
    if file_words[:-1] == words:
        return plain
    # The number of "Issue 42.md" belongs to the name "Issue #42"; without it, "Issue" would mean this node.
    is_of_name = words[-1:] == file_words[-1:]
    # Memex shortens a name, adds a word to it or replaces it; any other name was given later, and the number may be of the first.
    is_of_memex = name.startswith(plain) or plain.startswith(name) or plain == fold(NAMELESS)
    return plain if is_of_memex and not is_of_name else called


def target_key(target: str) -> str:
    """Return the folded file name that a link names."""
    return " ".join(stem(target).split())


def link_keys(node: Vertex) -> set[str]:
    """Return the keys by which a link may lead to the node."""
    return {target_key(node.path), name_key(node.name), *map(name_key, node.aliases)}


def matches_path(path: str, within: str) -> bool:
    """Return whether a link that names folders can mean `path`."""
    if not within:
        return True
    return f"/{fold(path).removesuffix('.md')}".endswith(f"/{fold(within).removesuffix('.md').lstrip('/')}")
