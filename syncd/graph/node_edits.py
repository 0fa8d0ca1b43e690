"""Apply operations on nodes to drafts of their notes, decided from the notes as they are now; nothing is written here.

Law, tested: the graph only names the notes to look at. Whether a relation exists, which ordinal is next and which
version a node has is read from its note, so an edit that the index has not seen yet counts too."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeVar

from index.errors import Conflict, NotFound, ResourceExhausted
from index.graph.graph import Graph
from index.graph.vertex import Edge, Vertex, name_key
from index.model import Observation, Statement
from syncd.captures.batch_writer import NoteDrafts
from syncd.documents import entity_edits
from syncd.documents.capture_note import MAX_CONTENT
from syncd.documents.collection_membership import retagged
from syncd.graph.node_request import link_to
from syncd.notes.front_matter import FrontmatterError, PropertyValue, edit, encode, properties, split

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RelationsOutcome:
    """What became of relations that were to be made."""

    created: list[Edge]
    existed: list[Edge]
    not_found: list[str]  # nodes that do not exist


def delete(graph: Graph, drafts: NoteDrafts, now: int, *, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Drop nodes, and take the lines that lead to them out of the notes that stay. Who went, and who is no node."""
    vertices: dict[str, Vertex] = {}
    missing: dict[str, None] = {}
    for name in names:
        if vertex := held(graph, drafts, name):
            vertices[vertex.path] = vertex
        else:
            missing[name] = None
    _drop(graph, drafts, now, vertices)
    return [vertex.name for vertex in vertices.values()], list(missing)


def discard(graph: Graph, drafts: NoteDrafts, now: int, *, path: str) -> None:
    """The same of the note at `path`; of one that shares its name with the node, the note alone."""
    if vertex := graph.at(path):
        _drop(graph, drafts, now, {path: vertex})
    else:
        drafts.delete(path)


def _drop(graph: Graph, drafts: NoteDrafts, now: int, vertices: Mapping[str, Vertex]) -> None:
    for path in vertices:
        drafts.delete(path)

    def leads(stated: Statement) -> bool:
        to = graph.resolved(stated.target)
        return to is not None and to.path in vertices

    sources = {path for vertex in vertices.values() for path, _ in graph.sources(vertex.name)} - vertices.keys()
    for path in sorted(sources):
        if (source := graph.at(path)) and drafts.exists(path):
            _edited(drafts, source, partial(entity_edits.unrelate, gone=leads, now=now))


def describe(
    graph: Graph,
    drafts: NoteDrafts,
    now: int,
    *,
    name: str,
    version: int | None,
    changes: Callable[[int], Mapping[str, PropertyValue]],
) -> str:
    """Set properties of a node; its path."""
    vertex = agreed(graph, drafts, name, version)
    _rewritten(drafts, vertex, partial(entity_edits.describe, changes=changes(now), now=now))
    return vertex.path


def retag(graph: Graph, drafts: NoteDrafts, now: int, *, name: str, version: int | None, tags: Sequence[str]) -> str:
    """Put these in place of the tags of a node, and leave alone what names its collection; its path."""
    vertex = agreed(graph, drafts, name, version)
    with _mendable(vertex):
        changes = retagged(split(drafts.text(vertex.path))[0], tags, None)
    _rewritten(drafts, vertex, partial(entity_edits.describe, changes=changes, now=now))
    return vertex.path


def stamp(
    graph: Graph, drafts: NoteDrafts, now: int, *, stamps: Sequence[tuple[str, Mapping[str, PropertyValue]]]
) -> None:
    """Set properties as they are given; neither version nor time of change moves."""
    del now
    for name, changes in stamps:
        vertex = agreed(graph, drafts, name)
        _rewritten(drafts, vertex, partial(edit, changes=changes))


def rename(graph: Graph, drafts: NoteDrafts, now: int, *, name: str, new_name: str) -> str:
    """Give a node another name, and keep the old one as an alias; its path."""
    vertex = agreed(graph, drafts, name, None)
    other = graph.get(new_name)
    if other and other.path != vertex.path and name_key(other.name) == name_key(new_name):
        raise Conflict(f"there is a node {other.name!r}: choose another name", name=other.name)
    stem = vertex.path.rpartition("/")[2].removesuffix(".md")
    known = [alias for alias in vertex.aliases if name_key(alias) not in (name_key(new_name), name_key(vertex.name))]
    aliases = [text for text in dict.fromkeys([new_name, vertex.name]) if name_key(text) != name_key(stem)]
    changes = {"name": None if new_name == stem else new_name, "aliases": [*aliases, *known] or None}
    _rewritten(drafts, vertex, partial(entity_edits.describe, changes=changes, now=now))
    return vertex.path


def add(
    graph: Graph, drafts: NoteDrafts, now: int, *, additions: Sequence[tuple[str, Sequence[str]]]
) -> list[tuple[str, list[Observation] | None]]:
    """Append observations, in one change of each note; what each addition brought, None for what is no node."""
    entries = [(name, held(graph, drafts, name), contents) for name, contents in additions]
    wanted: dict[str, tuple[Vertex, list[str]]] = {}
    for _, vertex, contents in entries:
        if vertex:
            wanted.setdefault(vertex.path, (vertex, []))[1].extend(contents)
    added = {
        path: iter(_edited(drafts, vertex, partial(entity_edits.add, contents=contents, now=now)))
        for path, (vertex, contents) in wanted.items()
    }
    return [
        (vertex.name, list(islice(added[vertex.path], len(contents)))) if vertex else (name, None)
        for name, vertex, contents in entries
    ]


def replace(
    graph: Graph, drafts: NoteDrafts, now: int, *, name: str, ordinal: int, content: str, version: int | None
) -> tuple[str, str, str]:
    """Put another text in place of an observation: the node's name, the old text and the new."""
    vertex = agreed(graph, drafts, name, version)
    old = _edited(drafts, vertex, partial(entity_edits.replace, ordinal=ordinal, content=content, now=now))
    return vertex.name, old, content


def remove(
    graph: Graph, drafts: NoteDrafts, now: int, *, deletions: Sequence[tuple[str, Collection[int]]]
) -> list[tuple[str, list[int], list[int]]]:
    """Take observations away, in one change of each note; the name, the ordinals that went and those that were not there."""
    entries = [(name, held(graph, drafts, name), list(dict.fromkeys(ordinals))) for name, ordinals in deletions]
    wanted: dict[str, tuple[Vertex, list[int]]] = {}
    for _, vertex, ordinals in entries:
        if vertex:
            wanted.setdefault(vertex.path, (vertex, []))[1].extend(ordinals)
    gone = {
        path: set(_edited(drafts, vertex, partial(entity_edits.remove, ordinals=ordinals, now=now)))
        for path, (vertex, ordinals) in wanted.items()
    }
    results = []
    for name, vertex, ordinals in entries:
        there = gone[vertex.path] if vertex else set[int]()
        removed = [ordinal for ordinal in ordinals if ordinal in there]
        there.difference_update(removed)  # asked for again, it is not there any more
        results.append(
            (vertex.name if vertex else name, removed, [ordinal for ordinal in ordinals if ordinal not in removed])
        )
    return results


def relate(graph: Graph, drafts: NoteDrafts, now: int, *, edges: Sequence[Edge]) -> RelationsOutcome:
    """State relations that are not stated yet, where both ends exist, in one change of each note."""
    outcome = RelationsOutcome([], [], [])
    missing: dict[str, None] = {}
    stated = _Stated(graph, drafts)
    new: dict[str, tuple[Vertex, list[tuple[str, str]]]] = {}
    for edge in edges:
        source, target = held(graph, drafts, edge.source), held(graph, drafts, edge.target)
        missing |= {name: None for name, end in ((edge.source, source), (edge.target, target)) if end is None}
        if source is None or target is None:
            continue
        pairs, relation = stated.of(source), Edge(source.name, target.name, edge.type)
        if (edge.type, target.path) in pairs:
            outcome.existed.append(relation)
        else:
            pairs.add((edge.type, target.path))
            new.setdefault(source.path, (source, []))[1].append((edge.type, link_to(target)))
            outcome.created.append(relation)
    for source, relations in new.values():
        _rewritten(drafts, source, partial(entity_edits.relate_all, relations=relations, now=now))
    outcome.not_found.extend(missing)
    return outcome


def unrelate(graph: Graph, drafts: NoteDrafts, now: int, *, edges: Sequence[Edge]) -> tuple[int, int]:
    """Take relations away; how many went, and how many were not there."""
    stated = _Stated(graph, drafts)
    gone: dict[str, tuple[Vertex, set[tuple[str, str]]]] = {}
    for edge in edges:
        source, target = held(graph, drafts, edge.source), held(graph, drafts, edge.target)
        if source and target and (key := (typed(edge.type), target.path)) in stated.of(source):
            stated.of(source).remove(key)
            gone.setdefault(source.path, (source, set()))[1].add(key)
    for source, keys in gone.values():
        _edited(drafts, source, partial(entity_edits.unrelate, gone=_among(graph, keys), now=now))
    deleted = sum(len(keys) for _, keys in gone.values())
    return deleted, len(edges) - deleted


def retype(graph: Graph, drafts: NoteDrafts, now: int, *, source: str, target: str, old: str, new: str) -> Edge:
    """Give a relation another type; the relation as it is then."""
    vertex, other, was = agreed(graph, drafts, source), agreed(graph, drafts, target), typed(old)
    pairs = _Stated(graph, drafts).of(vertex)
    if (was, other.path) not in pairs:
        raise NotFound(f"no relation {was[:100]!r} from {vertex.name!r} to {other.name!r}")
    if new != was:
        if (new, other.path) in pairs:
            raise Conflict(f"there is a relation {new!r} from {vertex.name!r} to {other.name!r} already")
        which = _among(graph, {(was, other.path)})
        _rewritten(drafts, vertex, partial(entity_edits.retype, which=which, new=new, now=now))
    return Edge(vertex.name, other.name, new)


# Which node, and may it be changed


def held(graph: Graph, drafts: NoteDrafts, name: str) -> Vertex | None:
    """The node of that name, if its note is still there."""
    vertex = graph.get(name)
    return vertex if vertex and drafts.exists(vertex.path) else None


def agreed(graph: Graph, drafts: NoteDrafts, name: str, version: int | None = None) -> Vertex:
    """The node of that name. Raises NotFound, and Conflict when a `version` is named that it no longer has."""
    vertex = held(graph, drafts, name)
    if vertex is None:
        raise unknown(name)
    if version is not None:
        now = drafts.version(vertex.path)
        if now != version:
            raise Conflict(f"{vertex.name!r} has version {now} by now, not {version}; open it again", version=now)
    return vertex


def unknown(name: str) -> NotFound:
    """There is no such node."""
    return NotFound(f"no node {name[:256]!r}; search_nodes finds one, create_entities makes it")


def typed(text: str) -> str:
    """A type as types are compared."""
    return unicodedata.normalize("NFC", text).strip()


def sized(name: str, text: str) -> str:
    """The note of a node, if it may be so large. Raises ResourceExhausted."""
    if (size := len(encode(text))) > MAX_CONTENT:
        raise ResourceExhausted(
            f"the note of {name!r} would have {size:,} bytes; a node's may have {MAX_CONTENT:,}: split the node",
            limit=MAX_CONTENT,
        )
    return text


class _Stated:
    """The relations of notes as their drafts state them: (type, path of the node that it leads to)."""

    def __init__(self, graph: Graph, drafts: NoteDrafts) -> None:
        self._graph, self._drafts = graph, drafts
        self._known: dict[str, set[tuple[str, str]]] = {}

    def of(self, vertex: Vertex) -> set[tuple[str, str]]:
        """Those of one node."""
        if vertex.path not in self._known:
            front, body = split(self._drafts.text(vertex.path))
            with _mendable(vertex):
                node, _ = entity_edits.node(properties(front), body, vertex.path)
            leads = ((stated.type, self._graph.resolved(stated.target)) for stated in node.relations)
            self._known[vertex.path] = {(kind, to.path) for kind, to in leads if to}
        return self._known[vertex.path]


def _among(graph: Graph, asked: Collection[tuple[str, str]]) -> Callable[[Statement], bool]:
    """Whether a statement is one of these: (type, path of the node that it leads to)."""

    def among(stated: Statement) -> bool:
        to = graph.resolved(stated.target)
        return to is not None and (stated.type, to.path) in asked

    return among


def _edited(drafts: NoteDrafts, vertex: Vertex, edit: Callable[[str], tuple[str, T]]) -> T:
    """Change the draft of a node; what `edit` answers beside the text."""
    with _mendable(vertex):
        text, answer = edit(drafts.text(vertex.path))
    _put(drafts, vertex, text)
    return answer


def _rewritten(drafts: NoteDrafts, vertex: Vertex, edit: Callable[[str], str]) -> None:
    with _mendable(vertex):
        text = edit(drafts.text(vertex.path))
    _put(drafts, vertex, text)


def _put(drafts: NoteDrafts, vertex: Vertex, text: str) -> None:
    grown = len(text) > len(drafts.text(vertex.path))
    drafts.set_text(vertex.path, sized(vertex.name, text) if grown else text)


@contextmanager
def _mendable(vertex: Vertex) -> Iterator[None]:
    """Properties that can't be changed by line are somebody's to mend."""
    try:
        yield
    except FrontmatterError as error:
        raise Conflict(
            f"the properties of {vertex.name!r} can't be changed: {error}; its owner must mend them"
        ) from error
