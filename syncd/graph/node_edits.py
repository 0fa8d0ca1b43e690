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
from syncd.documents.collection_membership import tag_changes
from syncd.graph.node_request import link_to
from syncd.notes.front_matter import FrontmatterError, PropertyValue, edit, encode, read_properties, split

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
        if vertex := find_node(graph, drafts, name):
            vertices[vertex.path] = vertex
        else:
            missing[name] = None
    _drop(graph, drafts, now, vertices)
    return [vertex.name for vertex in vertices.values()], list(missing)


def delete_note(graph: Graph, drafts: NoteDrafts, now: int, *, path: str) -> None:
    """The same of the note at `path`; of one that shares its name with the node, the note alone."""
    if vertex := graph.vertex_at(path):
        _drop(graph, drafts, now, {path: vertex})
    else:
        drafts.delete(path)


def _drop(graph: Graph, drafts: NoteDrafts, now: int, vertices: Mapping[str, Vertex]) -> None:
    for path in vertices:
        drafts.delete(path)

    def leads_to_dropped(stated: Statement) -> bool:
        to = graph.resolve(stated.target)
        return to is not None and to.path in vertices

    sources = {
        path for vertex in vertices.values() for path, _ in graph.incoming_statements(vertex.name)
    } - vertices.keys()
    for path in sorted(sources):
        if (source := graph.vertex_at(path)) and drafts.exists(path):
            _edit_draft(drafts, source, partial(entity_edits.remove_relations, gone=leads_to_dropped, now=now))


def set_properties(
    graph: Graph,
    drafts: NoteDrafts,
    now: int,
    *,
    name: str,
    version: int | None,
    changes: Callable[[int], Mapping[str, PropertyValue]],
) -> str:
    """Set properties of a node; its path."""
    vertex = require_node(graph, drafts, name, version)
    _rewrite_draft(drafts, vertex, partial(entity_edits.set_properties, changes=changes(now), now=now))
    return vertex.path


def set_tags(graph: Graph, drafts: NoteDrafts, now: int, *, name: str, version: int | None, tags: Sequence[str]) -> str:
    """Put these in place of the tags of a node, and leave alone what names its collection; its path."""
    vertex = require_node(graph, drafts, name, version)
    with _explaining_defects(vertex):
        changes = tag_changes(split(drafts.text(vertex.path))[0], tags, None)
    _rewrite_draft(drafts, vertex, partial(entity_edits.set_properties, changes=changes, now=now))
    return vertex.path


def set_stamps(
    graph: Graph, drafts: NoteDrafts, now: int, *, stamps: Sequence[tuple[str, Mapping[str, PropertyValue]]]
) -> None:
    """Set properties as they are given; neither version nor time of change moves."""
    del now
    for name, changes in stamps:
        vertex = require_node(graph, drafts, name)
        _rewrite_draft(drafts, vertex, partial(edit, changes=changes))


def rename(graph: Graph, drafts: NoteDrafts, now: int, *, name: str, new_name: str) -> str:
    """Give a node another name, and keep the old one as an alias; its path."""
    vertex = require_node(graph, drafts, name, None)
    other = graph.get(new_name)
    if other and other.path != vertex.path and name_key(other.name) == name_key(new_name):
        raise Conflict(f"there is a node {other.name!r}: choose another name", name=other.name)
    stem = vertex.path.rpartition("/")[2].removesuffix(".md")
    known = [alias for alias in vertex.aliases if name_key(alias) not in (name_key(new_name), name_key(vertex.name))]
    aliases = [text for text in dict.fromkeys([new_name, vertex.name]) if name_key(text) != name_key(stem)]
    changes = {"name": None if new_name == stem else new_name, "aliases": [*aliases, *known] or None}
    _rewrite_draft(drafts, vertex, partial(entity_edits.set_properties, changes=changes, now=now))
    return vertex.path


def add_observations(
    graph: Graph, drafts: NoteDrafts, now: int, *, additions: Sequence[tuple[str, Sequence[str]]]
) -> list[tuple[str, list[Observation] | None]]:
    """Append observations, in one change of each note; what each addition brought, None for what is no node."""
    entries = [(name, find_node(graph, drafts, name), contents) for name, contents in additions]
    wanted: dict[str, tuple[Vertex, list[str]]] = {}
    for _, vertex, contents in entries:
        if vertex:
            wanted.setdefault(vertex.path, (vertex, []))[1].extend(contents)
    added = {
        path: iter(_edit_draft(drafts, vertex, partial(entity_edits.add_observations, contents=contents, now=now)))
        for path, (vertex, contents) in wanted.items()
    }
    return [
        (vertex.name, list(islice(added[vertex.path], len(contents)))) if vertex else (name, None)
        for name, vertex, contents in entries
    ]


def replace_observation(
    graph: Graph, drafts: NoteDrafts, now: int, *, name: str, ordinal: int, content: str, version: int | None
) -> tuple[str, str, str]:
    """Put another text in place of an observation: the node's name, the old text and the new."""
    vertex = require_node(graph, drafts, name, version)
    old = _edit_draft(
        drafts, vertex, partial(entity_edits.replace_observation, ordinal=ordinal, content=content, now=now)
    )
    return vertex.name, old, content


def remove_observations(
    graph: Graph, drafts: NoteDrafts, now: int, *, deletions: Sequence[tuple[str, Collection[int]]]
) -> list[tuple[str, list[int], list[int]]]:
    """Take observations away, in one change of each note; the name, the ordinals that went and those that were not there."""
    entries = [(name, find_node(graph, drafts, name), list(dict.fromkeys(ordinals))) for name, ordinals in deletions]
    wanted: dict[str, tuple[Vertex, list[int]]] = {}
    for _, vertex, ordinals in entries:
        if vertex:
            wanted.setdefault(vertex.path, (vertex, []))[1].extend(ordinals)
    gone = {
        path: set(_edit_draft(drafts, vertex, partial(entity_edits.remove_observations, ordinals=ordinals, now=now)))
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


def add_relations(graph: Graph, drafts: NoteDrafts, now: int, *, edges: Sequence[Edge]) -> RelationsOutcome:
    """State relations that are not stated yet, where both ends exist, in one change of each note."""
    outcome = RelationsOutcome([], [], [])
    missing: dict[str, None] = {}
    stated = _DraftRelations(graph, drafts)
    new: dict[str, tuple[Vertex, list[tuple[str, str]]]] = {}
    for edge in edges:
        source, target = find_node(graph, drafts, edge.source), find_node(graph, drafts, edge.target)
        missing |= {name: None for name, end in ((edge.source, source), (edge.target, target)) if end is None}
        if source is None or target is None:
            continue
        pairs, relation = stated.relations_of(source), Edge(source.name, target.name, edge.type)
        if (edge.type, target.path) in pairs:
            outcome.existed.append(relation)
        else:
            pairs.add((edge.type, target.path))
            new.setdefault(source.path, (source, []))[1].append((edge.type, link_to(target)))
            outcome.created.append(relation)
    for source, relations in new.values():
        _rewrite_draft(drafts, source, partial(entity_edits.add_relations, relations=relations, now=now))
    outcome.not_found.extend(missing)
    return outcome


def remove_relations(graph: Graph, drafts: NoteDrafts, now: int, *, edges: Sequence[Edge]) -> tuple[int, int]:
    """Take relations away; how many went, and how many were not there."""
    stated = _DraftRelations(graph, drafts)
    gone: dict[str, tuple[Vertex, set[tuple[str, str]]]] = {}
    for edge in edges:
        source, target = find_node(graph, drafts, edge.source), find_node(graph, drafts, edge.target)
        if source and target and (key := (normalize_type(edge.type), target.path)) in stated.relations_of(source):
            stated.relations_of(source).remove(key)
            gone.setdefault(source.path, (source, set()))[1].add(key)
    for source, keys in gone.values():
        _edit_draft(drafts, source, partial(entity_edits.remove_relations, gone=_match_any_of(graph, keys), now=now))
    deleted = sum(len(keys) for _, keys in gone.values())
    return deleted, len(edges) - deleted


def retype_relation(
    graph: Graph, drafts: NoteDrafts, now: int, *, source: str, target: str, old: str, new: str
) -> Edge:
    """Give a relation another type; the relation as it is then."""
    vertex, other, was = require_node(graph, drafts, source), require_node(graph, drafts, target), normalize_type(old)
    pairs = _DraftRelations(graph, drafts).relations_of(vertex)
    if (was, other.path) not in pairs:
        raise NotFound(f"no relation {was[:100]!r} from {vertex.name!r} to {other.name!r}")
    if new != was:
        if (new, other.path) in pairs:
            raise Conflict(f"there is a relation {new!r} from {vertex.name!r} to {other.name!r} already")
        which = _match_any_of(graph, {(was, other.path)})
        _rewrite_draft(drafts, vertex, partial(entity_edits.retype_relations, which=which, new=new, now=now))
    return Edge(vertex.name, other.name, new)


# Which node, and may it be changed


def find_node(graph: Graph, drafts: NoteDrafts, name: str) -> Vertex | None:
    """The node of that name, if its note is still there."""
    vertex = graph.get(name)
    return vertex if vertex and drafts.exists(vertex.path) else None


def require_node(graph: Graph, drafts: NoteDrafts, name: str, version: int | None = None) -> Vertex:
    """The node of that name. Raises NotFound, and Conflict when a `version` is named that it no longer has."""
    vertex = find_node(graph, drafts, name)
    if vertex is None:
        raise unknown_node(name)
    if version is not None:
        now = drafts.version(vertex.path)
        if now != version:
            raise Conflict(f"{vertex.name!r} has version {now} by now, not {version}; open it again", version=now)
    return vertex


def unknown_node(name: str) -> NotFound:
    """Say that there is no such node."""
    return NotFound(f"no node {name[:256]!r}; search_nodes finds one, create_entities makes it")


def normalize_type(text: str) -> str:
    """A type as types are compared."""
    return unicodedata.normalize("NFC", text).strip()


def check_size(name: str, text: str) -> str:
    """The note of a node, if it may be so large. Raises ResourceExhausted."""
    if (size := len(encode(text))) > MAX_CONTENT:
        raise ResourceExhausted(
            f"the note of {name!r} would have {size:,} bytes; a node's may have {MAX_CONTENT:,}: split the node",
            limit=MAX_CONTENT,
        )
    return text


class _DraftRelations:
    """The relations of notes as their drafts state them: (type, path of the node that it leads to)."""

    def __init__(self, graph: Graph, drafts: NoteDrafts) -> None:
        self._graph, self._drafts = graph, drafts
        self._known: dict[str, set[tuple[str, str]]] = {}

    def relations_of(self, vertex: Vertex) -> set[tuple[str, str]]:
        """Those of one node."""
        if vertex.path not in self._known:
            front, body = split(self._drafts.text(vertex.path))
            with _explaining_defects(vertex):
                node, _ = entity_edits.read_node(read_properties(front), body, vertex.path)
            leads = ((stated.type, self._graph.resolve(stated.target)) for stated in node.relations)
            self._known[vertex.path] = {(kind, to.path) for kind, to in leads if to}
        return self._known[vertex.path]


def _match_any_of(graph: Graph, asked: Collection[tuple[str, str]]) -> Callable[[Statement], bool]:
    """Whether a statement is one of these: (type, path of the node that it leads to)."""

    def is_among(stated: Statement) -> bool:
        to = graph.resolve(stated.target)
        return to is not None and (stated.type, to.path) in asked

    return is_among


def _edit_draft(drafts: NoteDrafts, vertex: Vertex, edit: Callable[[str], tuple[str, T]]) -> T:
    """Change the draft of a node; what `edit` answers beside the text."""
    with _explaining_defects(vertex):
        text, answer = edit(drafts.text(vertex.path))
    _put_draft(drafts, vertex, text)
    return answer


def _rewrite_draft(drafts: NoteDrafts, vertex: Vertex, edit: Callable[[str], str]) -> None:
    with _explaining_defects(vertex):
        text = edit(drafts.text(vertex.path))
    _put_draft(drafts, vertex, text)


def _put_draft(drafts: NoteDrafts, vertex: Vertex, text: str) -> None:
    grown = len(text) > len(drafts.text(vertex.path))
    drafts.set_text(vertex.path, check_size(vertex.name, text) if grown else text)


@contextmanager
def _explaining_defects(vertex: Vertex) -> Iterator[None]:
    """Properties that can't be changed by line are somebody's to mend."""
    try:
        yield
    except FrontmatterError as error:
        raise Conflict(
            f"the properties of {vertex.name!r} can't be changed: {error}; its owner must mend them"
        ) from error
