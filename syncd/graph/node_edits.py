"""Apply operations on nodes to drafts of their notes, decided from the notes as they are now; nothing is written here.

Law, tested: the graph only says which notes to read. Existing relations, the next ordinal and the version of a node
are read from its note, so an edit that is not indexed yet counts too."""

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
from index.names import base_name, note_name
from syncd.captures.batch_writer import NoteDrafts
from syncd.documents import entity_edits
from syncd.documents.capture_note import MAX_CONTENT
from syncd.documents.collection_membership import plain_tags, tag_changes
from syncd.documents.entity_node import format_link, read_node
from syncd.notes.front_matter import FrontmatterError, PropertyValue, encode, read_properties, spelling_of, split

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RelationsOutcome:
    """Holds the outcome of adding relations."""

    created: list[Edge]
    existed: list[Edge]
    not_found: list[str]  # nodes that do not exist


class NodeEdits:
    """Applies operations to the drafts of one batch, which is written at the time `now` (epoch milliseconds)."""

    def __init__(self, graph: Graph, drafts: NoteDrafts, now: int) -> None:
        self._graph, self._drafts, self._now = graph, drafts, now
        self._known: dict[str, set[tuple[str, str]]] = {}  # path of a node → its relations: type, path of the target

    def delete(self, names: Sequence[str]) -> tuple[list[str], list[str]]:
        """Delete nodes, and remove the lines that lead to them from other notes.

        Returns the deleted and the unknown names."""
        vertices: dict[str, Vertex] = {}
        missing: dict[str, None] = {}
        for name in names:
            if vertex := self._find_node(name):
                vertices[vertex.path] = vertex
            else:
                missing[name] = None
        self._drop(vertices)
        return [vertex.name for vertex in vertices.values()], list(missing)

    def delete_note(self, path: str) -> None:
        """Delete the node whose note is at `path`; if another note shares its name, delete only this note."""
        if vertex := self._graph.vertex_at(path):
            self._drop({path: vertex})
        else:
            self._drafts.delete(path)

    def _drop(self, vertices: Mapping[str, Vertex]) -> None:
        for path in vertices:
            self._drafts.delete(path)

        def leads_to_dropped(stated: Statement) -> bool:
            to = self._graph.resolve(stated.target)
            return to is not None and to.path in vertices

        sources = {
            path for vertex in vertices.values() for path, _ in self._graph.incoming_statements(vertex.name)
        } - vertices.keys()
        for path in sorted(sources):
            if (source := self._graph.vertex_at(path)) and self._drafts.exists(path):
                self._edit(source, partial(entity_edits.remove_relations, gone=leads_to_dropped, now=self._now))

    def set_properties(self, name: str, version: int | None, changes: Mapping[str, PropertyValue]) -> str:
        """Set properties of a node; return its path."""
        vertex = self._require_read(name, version)
        self._set(vertex, changes)
        return vertex.path

    def set_tags(self, name: str, version: int | None, tags: Sequence[str]) -> str:
        """Replace the tags of a node, except those that name its collection; return its path."""
        vertex = self._require_read(name, version)
        with _explaining_defects(vertex):
            changes = tag_changes(split(self._drafts.text(vertex.path))[0], tags, None)
        self._set(vertex, changes)
        return vertex.path

    def add_missing(
        self, name: str, contents: Sequence[str], tags: Sequence[str], summary: str, *, dry_run: bool
    ) -> int | None:
        """Add what the note of a node lacks, and replace nothing; return the number of new observations, None if it lacked nothing."""
        vertex = self._require_node(name)
        front, body = split(self._drafts.text(vertex.path))
        with _explaining_defects(vertex):
            values, stated_tags = read_properties(front), plain_tags(front)
            node, _ = read_node(values, body, vertex.path)
        new = [text for text in dict.fromkeys(contents) if text not in {known.content for known in node.observations}]
        known_tags = {name_key(tag) for tag in (*stated_tags, *vertex.tags)}
        new_tags = [tag for tag in dict.fromkeys(tags) if name_key(tag) not in known_tags]
        changes = tag_changes(front, [*stated_tags, *new_tags], None) if new_tags else {}
        if summary and not values.get(spelling_of("summary", values)):
            changes["summary"] = summary
        if new and not dry_run:
            self._edit(vertex, partial(entity_edits.add_observations, contents=new, now=self._now))
        if changes and not dry_run:
            self._set(vertex, changes)
        return len(new) if new or changes else None

    def rename(self, name: str, new_name: str) -> str:
        """Give a node another name, and keep the old one as an alias; return its path."""
        vertex = self._require_read(name, None)
        if vertex.name == new_name:
            return vertex.path
        other = self._graph.get(new_name)
        if other and other.path != vertex.path and name_key(other.name) == name_key(new_name):
            raise Conflict(f"an entity {other.name!r} already exists; choose another name", name=other.name)
        stem, changed = note_name(vertex.path), (name_key(new_name), name_key(vertex.name))
        known = [alias for alias in vertex.aliases if name_key(alias) not in changed]
        aliases = [text for text in dict.fromkeys([new_name, vertex.name]) if name_key(text) != name_key(stem)]
        self._set(vertex, {"name": None if new_name == stem else new_name, "aliases": [*aliases, *known] or None})
        return vertex.path

    def add_observations(
        self, additions: Sequence[tuple[str, Sequence[str]]]
    ) -> list[tuple[str, list[Observation] | None]]:
        """Add observations, in one change per note; return what each addition made, None for an unknown node."""
        entries = [(name, self._find_node(name), contents) for name, contents in additions]
        wanted: dict[str, tuple[Vertex, list[str]]] = {}
        for _, vertex, contents in entries:
            if vertex:
                wanted.setdefault(vertex.path, (vertex, []))[1].extend(contents)
        added = {
            path: iter(self._edit(vertex, partial(entity_edits.add_observations, contents=contents, now=self._now)))
            for path, (vertex, contents) in wanted.items()
        }
        return [
            (vertex.name, list(islice(added[vertex.path], len(contents)))) if vertex else (name, None)
            for name, vertex, contents in entries
        ]

    def replace_observation(self, name: str, ordinal: int, content: str, version: int | None) -> tuple[str, str, str]:
        """Replace an observation; return the node's name, the old text and the new text."""
        vertex = self._require_read(name, version)
        change = partial(entity_edits.replace_observation, ordinal=ordinal, content=content, now=self._now)
        return vertex.name, self._edit(vertex, change), content

    def remove_observations(
        self, deletions: Sequence[tuple[str, Collection[int]]]
    ) -> list[tuple[str, list[int], list[int]]]:
        """Remove observations, in one change per note; return for each: name, removed ordinals, unknown ordinals."""
        entries = [(name, self._find_node(name), list(dict.fromkeys(ordinals))) for name, ordinals in deletions]
        wanted: dict[str, tuple[Vertex, list[int]]] = {}
        for _, vertex, ordinals in entries:
            if vertex:
                self._drafts.compare_before(vertex.path)
                wanted.setdefault(vertex.path, (vertex, []))[1].extend(ordinals)
        gone = {
            path: set(self._edit(vertex, partial(entity_edits.remove_observations, ordinals=ordinals, now=self._now)))
            for path, (vertex, ordinals) in wanted.items()
        }
        results = []
        for name, vertex, ordinals in entries:
            there = gone[vertex.path] if vertex else set[int]()
            removed = [ordinal for ordinal in ordinals if ordinal in there]
            there.difference_update(removed)  # a second request for it finds nothing
            results.append(
                (vertex.name if vertex else name, removed, [ordinal for ordinal in ordinals if ordinal not in removed])
            )
        return results

    def add_relations(self, edges: Sequence[Edge], *, counted: bool) -> RelationsOutcome:
        """Add new relations between existing nodes, in one change per note; `counted` as in `entity_edits`."""
        outcome = RelationsOutcome([], [], [])
        missing: dict[str, None] = {}
        new: dict[str, tuple[Vertex, list[tuple[str, str]]]] = {}
        for edge in edges:
            source, target = self._find_node(edge.source), self._find_node(edge.target)
            missing |= {name: None for name, end in ((edge.source, source), (edge.target, target)) if end is None}
            if source is None or target is None:
                continue
            pairs, relation = self._relations_of(source), Edge(source.name, target.name, edge.type)
            if (edge.type, target.path) in pairs:
                outcome.existed.append(relation)
            else:
                pairs.add((edge.type, target.path))
                new.setdefault(source.path, (source, []))[1].append((edge.type, self._link_to(target)))
                outcome.created.append(relation)
        for source, relations in new.values():
            change = partial(entity_edits.add_relations, relations=relations, now=self._now, counted=counted)
            self._rewrite(source, change)
        outcome.not_found.extend(missing)
        return outcome

    def remove_relations(self, edges: Sequence[Edge]) -> tuple[int, int]:
        """Remove relations; return how many were removed, and how many did not exist."""
        gone: dict[str, tuple[Vertex, set[tuple[str, str]]]] = {}
        for edge in edges:
            source, target = self._find_node(edge.source), self._find_node(edge.target)
            if source and target and (key := (normalize_type(edge.type), target.path)) in self._relations_of(source):
                self._relations_of(source).remove(key)
                gone.setdefault(source.path, (source, set()))[1].add(key)
        for source, keys in gone.values():
            self._edit(source, partial(entity_edits.remove_relations, gone=self._match_any_of(keys), now=self._now))
        deleted = sum(len(keys) for _, keys in gone.values())
        return deleted, len(edges) - deleted

    def retype_relation(self, source: str, target: str, old: str, new: str) -> Edge:
        """Change the type of a relation; return the new relation."""
        vertex, other, was = self._require_node(source), self._require_node(target), normalize_type(old)
        pairs = self._relations_of(vertex)
        if (was, other.path) not in pairs:
            known = ", ".join(sorted(type for type, path in pairs if path == other.path))
            raise NotFound(
                f"no relation {was[:100]!r} from {vertex.name!r} to {other.name!r}; there are: {known or 'none'}"
            )
        if new != was:
            if (new, other.path) in pairs:
                raise Conflict(f"a relation {new!r} from {vertex.name!r} to {other.name!r} already exists")
            which = self._match_any_of({(was, other.path)})
            self._rewrite(vertex, partial(entity_edits.retype_relations, which=which, new=new, now=self._now))
        return Edge(vertex.name, other.name, new)

    # Finding nodes and relations

    def _find_node(self, name: str) -> Vertex | None:
        """Return the node with this name, if its note still exists."""
        vertex = self._graph.get(name)
        return vertex if vertex and self._drafts.exists(vertex.path) else None

    def _require_node(self, name: str) -> Vertex:
        vertex = self._find_node(name)
        if vertex is None:
            raise unknown_node(name)
        return vertex

    def _require_read(self, name: str, version: int | None) -> Vertex:
        """Return the node with this name, of which a part is replaced.

        Raises NotFound, and Conflict when it no longer has the named `version` or a person has just edited it."""
        vertex = self._require_node(name)
        if version is not None and (now := self._drafts.version(vertex.path)) != version:
            raise Conflict(
                f"{vertex.name!r} has version {now}, not {version}; open it again, then repeat your change", version=now
            )
        self._drafts.compare_before(vertex.path)
        return vertex

    def _relations_of(self, vertex: Vertex) -> set[tuple[str, str]]:
        """Return the relations in the draft of a node: (type, path of the target node)."""
        if vertex.path not in self._known:
            front, body = split(self._drafts.text(vertex.path))
            with _explaining_defects(vertex):
                node, _ = read_node(read_properties(front), body, vertex.path)
            leads = ((stated.type, self._graph.resolve(stated.target)) for stated in node.relations)
            self._known[vertex.path] = {(kind, to.path) for kind, to in leads if to}
        return self._known[vertex.path]

    def _match_any_of(self, asked: Collection[tuple[str, str]]) -> Callable[[Statement], bool]:
        """Return a test whether a statement is one of these: (type, path of the target node)."""

        def is_among(stated: Statement) -> bool:
            to = self._graph.resolve(stated.target)
            return to is not None and (stated.type, to.path) in asked

        return is_among

    def _link_to(self, target: Vertex) -> str:
        """Return the text between the brackets of a link to a node: its file name or, if that means another note, its path.

        Raises Conflict if neither leads to the node."""
        path = target.path.removesuffix(".md")
        for link in (base_name(path), path):
            if (to := self._graph.resolve(link)) and to.path == target.path:
                return format_link(link, target.name)
        raise Conflict(f"no link can lead to {target.name!r}, because another note has its path in another letter case")

    # Changing drafts

    def _set(self, vertex: Vertex, changes: Mapping[str, PropertyValue]) -> None:
        self._rewrite(vertex, partial(entity_edits.set_properties, changes=changes, now=self._now))

    def _rewrite(self, vertex: Vertex, edit: Callable[[str], str]) -> None:
        self._edit(vertex, lambda text: (edit(text), None))

    def _edit(self, vertex: Vertex, edit: Callable[[str], tuple[str, T]]) -> T:
        """Change the draft of a node; return the second result of `edit`."""
        before = self._drafts.text(vertex.path)
        with _explaining_defects(vertex):
            text, answer = edit(before)
        self._drafts.set_text(vertex.path, check_size(vertex.name, text) if len(text) > len(before) else text)
        return answer


def unknown_node(name: str) -> NotFound:
    """Return the error for an unknown node."""
    return NotFound(f"no node {name[:256]!r}; find it with search_nodes, or create it with create_entities")


def normalize_type(text: str) -> str:
    """Normalize a type for comparison."""
    return unicodedata.normalize("NFC", text).strip()


def check_size(name: str, text: str) -> str:
    """Return the text of a node's note. Raises ResourceExhausted if it is too large."""
    if (size := len(encode(text))) > MAX_CONTENT:
        raise ResourceExhausted(
            f"the note of {name!r} would have {size:,} bytes, more than the limit of {MAX_CONTENT:,}: split the node",
            limit=MAX_CONTENT,
        )
    return text


@contextmanager
def _explaining_defects(vertex: Vertex) -> Iterator[None]:
    """Let a Conflict name the note, which may be another than the caller's; errors about properties become one."""
    try:
        yield
    except Conflict as error:
        raise Conflict(f"{vertex.name!r}: {error.message}", **error.details) from error
    except FrontmatterError as error:
        raise Conflict(
            f"the properties of {vertex.name!r} can't be changed: {error}; its owner must repair them"
        ) from error
