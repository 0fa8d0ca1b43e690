"""Hold the graph of a workspace in memory: its entities by name, and its relations in both directions.

The graph stores a relation as its source states it and resolves it when it is read, so adding, removing or renaming a note
changes no other note. Law, tested: answers depend on the notes and not on the order in which they were added."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from index.document_ids import choose_owner
from index.graph.vertex import (
    Edge,
    Neighbourhood,
    Vertex,
    file_key,
    link_keys,
    matches_path,
    name_key,
    target_key,
)
from index.model import Statement

MOST: Final = 1_000  # nodes of one neighborhood
WORDS: Final = 1_000  # types and targets of relations up to which unused ones stay in memory
FEW: Final = 16  # most notes of a name that are kept in a tuple


@dataclass(slots=True)
class _Names:
    """Maps each key to the paths of its notes. Most keys have few, and a set of ten paths takes 600 bytes more than a tuple."""

    paths: dict[str, tuple[str, ...] | set[str]] = field(default_factory=dict)

    def add(self, key: str, path: str) -> None:
        known = self.paths.get(key, ())
        if isinstance(known, set):
            known.add(path)
        elif path not in known:
            self.paths[key] = (*known, path) if len(known) < FEW else {*known, path}

    def remove(self, key: str, path: str) -> None:
        known = self.paths.get(key, ())
        if isinstance(known, set):
            known.discard(path)
        elif path in known:
            self.paths[key] = known = tuple(other for other in known if other != path)
        if not known:
            self.paths.pop(key, None)

    def get(self, key: str) -> Collection[str]:
        return self.paths.get(key, ())


class _TargetPaths(dict[str, str | None]):
    """Maps the target of a link to the path of its node, found when it is first asked for: many nodes state the same targets."""

    def __init__(self, resolve: Callable[[str], str | None]) -> None:
        super().__init__()
        self._resolve = resolve

    def __missing__(self, target: str) -> str | None:
        self[target] = path = self._resolve(target)
        return path


class Graph:
    """Holds the graph of one workspace; safe to use from any thread. A query holds the lock while it computes."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._notes: dict[
            str, Vertex
        ] = {}  # by path; includes all notes with one name, although only one of them is the node
        self._named, self._stems, self._aliases, self._pointing = _Names(), _Names(), _Names(), _Names()
        self._files = _Names()  # file names as agents may know them
        self._words: dict[str, str] = {}  # types and targets of relations, each once
        self._most_words = WORDS
        self._near: dict[
            str, tuple[tuple[str, str, bool], ...]
        ] = {}  # path → (neighbour, type, outward); filled as asked
        self._target_paths = _TargetPaths(self._resolve)  # of the relations that notes state

    # Changing it

    def put(self, node: Vertex) -> None:
        """Add the note of a node, and replace the previous note at its path."""
        with self._lock:
            node = self._share_words(node)
            before = self._notes.get(node.path)
            if before and (before.name, before.aliases) == (node.name, node.aliases):
                self._replace_statements(before, node)
                return
            self._remove(node.path)
            self._forget_neighbours(node)  # for links that led here before, and for those that lead here now
            self._notes[node.path] = node
            self._change_names(node, _Names.add)
            self._forget_neighbours(node)

    def drop(self, path: str) -> None:
        """Remove the note at `path`."""
        with self._lock:
            self._remove(path)

    def _share_words(self, node: Vertex) -> Vertex:
        """Return the node with the graph's own strings as types and targets of its relations, so that equal ones are in memory once.

        `sys.intern` is not used, because early versions of Python 3.12 never free its strings (CPython issue 113993)."""
        if len(self._words) > self._most_words:  # forget the words that no note has any more
            self._words = {word: word for note in self._notes.values() for word in _words_of(note)}
            self._most_words = max(WORDS, 2 * len(self._words))
        share = self._words.setdefault
        if all(share(word, word) is word for word in _words_of(node)):
            return node
        shared = tuple(
            Statement(share(stated.type, stated.type), share(stated.target, stated.target)) for stated in node.relations
        )
        return replace(node, relations=shared)

    def _remove(self, path: str) -> None:
        if before := self._notes.get(path):
            self._forget_neighbours(before)
            self._change_names(before, _Names.remove)
            del self._notes[path]
            self._forget_neighbours(before)

    def _change_names(self, node: Vertex, change: Callable[[_Names, str, str], None]) -> None:
        change(self._named, name_key(node.name), node.path)
        change(self._stems, target_key(node.path), node.path)
        change(self._files, file_key(node), node.path)
        for alias in {name_key(alias) for alias in node.aliases}:
            change(self._aliases, alias, node.path)
        for key in {target_key(stated.target) for stated in node.relations}:
            change(self._pointing, key, node.path)

    def _forget_neighbours(self, node: Vertex) -> None:
        """Drop the cached neighbors of all nodes whose relations may change with this note or a note of the same name."""
        twins = {*self._named.get(name_key(node.name))} - {node.path}
        for note in (node, *(self._notes[path] for path in twins)):
            path, note_keys = note.path, link_keys(note)
            pointing = [
                (source, stated)
                for key in note_keys
                for source in self._pointing.get(key)
                for stated in self._notes[source].relations
                if target_key(stated.target) in note_keys
            ]
            for source, stated in [*((path, stated) for stated in note.relations), *pointing, (path, None)]:
                self._near.pop(source, None)
                if stated:
                    self._forget_target(stated)

    def _forget_target(self, stated: Statement) -> None:
        self._target_paths.pop(stated.target, None)
        self._near.pop(self._resolve(stated.target) or "", None)

    def _replace_statements(self, before: Vertex, node: Vertex) -> None:
        """Replace the statements of a node whose names are unchanged."""
        if before.relations != node.relations:
            for stated in {*before.relations} ^ {*node.relations}:
                self._forget_target(stated)
            for key in {target_key(stated.target) for stated in before.relations}:
                self._pointing.remove(key, node.path)
            for key in {target_key(stated.target) for stated in node.relations}:
                self._pointing.add(key, node.path)
            self._near.pop(node.path, None)
        self._notes[node.path] = node

    # Its nodes

    def get(self, name: str) -> Vertex | None:
        """Return the node with this name, or else with this file name, or else the only one with this alias."""
        key = name_key(name)
        with self._lock:
            if named := self._named.get(key):
                return self._notes[choose_owner(named)]
            if files := [path for path in self._files.get(key) if self._is_node(path)]:
                return self._notes[choose_owner(files)]
            return self._notes.get(self._path_of_alias(key) or "")

    def vertex_at(self, path: str) -> Vertex | None:
        """Return the node whose note is at `path`."""
        with self._lock:
            return self._notes[path] if path in self._notes and self._is_node(path) else None

    def vertices(self) -> list[Vertex]:
        """Return all nodes, by name."""
        with self._lock:
            nodes = [self._notes[choose_owner(paths)] for paths in self._named.paths.values()]
        return sorted(nodes, key=lambda node: name_key(node.name))

    def notes_sharing_names(self) -> list[list[str]]:
        """Return the groups of notes that share a name, with the note that is the node first."""
        with self._lock:
            shared = [
                sorted(paths, key=lambda path: (len(path), path))
                for paths in self._named.paths.values()
                if len(paths) > 1
            ]
        return sorted(shared)

    def __len__(self) -> int:
        return len(self._named.paths)

    # Its relations

    @property
    def relation_count(self) -> int:
        """Return the number of relations between nodes."""
        with self._lock:
            return sum(len(ends) for _, ends in self._list_ends())

    def related_names(self) -> dict[str, set[str]]:
        """Return the names of the nodes to which the relations of each node lead; much faster than all edges in order."""
        with self._lock:
            called = {path: note.name for path, note in self._notes.items()}
            return {called[path]: {called[to] for to, _ in ends} for path, ends in self._list_ends()}

    def edges(self, names: Iterable[str] | None = None) -> list[Edge]:
        """Return the relations that have one of these nodes at either end (None: all), in order of their ends and type."""
        with self._lock:
            if names is None:
                called = {path: note.name for path, note in self._notes.items()}
                edges = {Edge(called[path], called[to], kind) for path, ends in self._list_ends() for to, kind in ends}
            else:
                paths = {node.path for name in names if (node := self.get(name))}
                edges = {edge for path in paths for _, edge in self._edges_by_neighbour(path)}
        return sorted(edges)

    def edges_between(self, a: str, b: str) -> list[Edge]:
        """Return the relations from one of two nodes to the other, in both directions."""
        with self._lock:
            first, second = self.get(a), self.get(b)
            if first is None or second is None:
                return []
            near, far = sorted((first, second), key=lambda node: len(self._neighbours(node.path)))
            edges = {edge for path, edge in self._edges_by_neighbour(near.path) if path == far.path}
        return sorted(edges)

    def degree(self, name: str) -> int:
        """Return how many relations a node has; one to itself counts once."""
        with self._lock:
            node = self.get(name)
            return len({edge for _, edge in self._edges_by_neighbour(node.path)}) if node else 0

    def orphans(self) -> list[Vertex]:
        """Return the nodes without a relation, by name."""
        with self._lock:
            related = set[str]()
            for path, ends in self._list_ends():
                if ends:
                    related.add(path)
                    related.update(to for to, _ in ends)
            return [node for node in self.vertices() if node.path not in related]

    def dangling_statements(self) -> list[tuple[str, Statement]]:
        """Return the statements whose target is no node of this workspace, by path."""
        with self._lock:
            statements = [
                (path, stated)
                for path, node in self._notes.items()
                if self._is_node(path)
                for stated in node.relations
                if self._resolve(stated.target) is None
            ]
        return sorted(statements, key=lambda pair: (pair[0], pair[1].type, pair[1].target))

    def incoming_statements(self, name: str) -> list[tuple[str, Statement]]:
        """Return the statements that point to a node, with the paths of their notes, its own note included."""
        with self._lock:
            node = self.get(name)
            statements = [] if node is None else [(path, stated) for path, stated in self._incoming(node)]
        return sorted(statements, key=lambda pair: (pair[0], pair[1].type, pair[1].target))

    def resolve(self, target: str) -> Vertex | None:
        """Return the node that a link with this path part leads to."""
        with self._lock:
            return self._notes.get(self._resolve(target) or "")

    # Walking it

    def neighbourhood(self, name: str, depth: int, limit: int = MOST) -> Neighbourhood | None:
        """Return the nodes within `depth` relations of one, in either direction; None if the node does not exist."""
        with self._lock:
            start = self.get(name)
            if start is None:
                return None
            hops, frontier, truncated = {start.path: 0}, [start.path], False
            for hop in range(1, depth + 1):
                reached = {near for path in frontier for near, _, _ in self._neighbours(path)} - hops.keys()
                frontier = sorted(reached, key=lambda path: self._notes[path].name)
                truncated = truncated or len(hops) + len(frontier) > limit
                frontier = frontier[: limit - len(hops)]
                hops.update(dict.fromkeys(frontier, hop))
                if not frontier or truncated:
                    break
            path_of, vertices = self._target_paths, tuple(self._notes[path] for path in hops)
            edges = {  # each from its source, so that nobody looks for what points to the nodes at the rim
                Edge(node.name, self._notes[near].name, stated.type)
                for node in vertices
                for stated in node.relations
                if (near := path_of[stated.target]) in hops
            }
        return Neighbourhood(vertices, tuple(sorted(edges)), truncated)

    def shortest_path(self, a: str, b: str) -> list[Edge] | None:
        """Return the relations of a shortest path between two nodes, in either direction; None if there is none.

        The search runs from both ends, so that it does not visit all of a dense graph."""
        with self._lock:
            start, end = self.get(a), self.get(b)
            if start is None or end is None:
                return None
            way = self._search_path(start.path, end.path)
            if way is None:
                return None
            return [min((e for near, e in self._edges_by_neighbour(p) if near == q)) for p, q in pairwise(way)]

    def _search_path(self, start: str, end: str) -> list[str] | None:
        if start == end:
            return [start]
        sides: tuple[dict[str, str], dict[str, str]] = ({start: ""}, {end: ""})
        waves = (deque([start]), deque([end]))
        while waves[0] and waves[1]:
            side = 0 if len(waves[0]) <= len(waves[1]) else 1
            reached, other, wave = sides[side], sides[1 - side], waves[side]
            met = []
            for _ in range(len(wave)):
                path = wave.popleft()
                for near in sorted({near for near, _, _ in self._neighbours(path)}):
                    if near not in reached:
                        reached[near] = path
                        wave.append(near)
                        if near in other:
                            met.append(near)
            if met:
                middle = min(met)
                return [*reversed(list(_trace_back(sides[0], middle))), *list(_trace_back(sides[1], middle))[1:]]
        return None

    # Helpers; the lock is held

    def _is_node(self, path: str) -> bool:
        named = self._named.get(name_key(self._notes[path].name))
        return len(named) == 1 or choose_owner(named) == path

    def _path_of_alias(self, key: str) -> str | None:
        """Return the only node that has the alias `key`."""
        named = [path for path in self._aliases.get(key) if self._is_node(path)]
        return named[0] if len(named) == 1 else None

    def _resolve(self, target: str) -> str | None:
        key, within = target_key(target), target if "/" in target else ""
        stems = self._stems.get(key)
        if len(stems) == 1 and not within:  # the usual case
            (path,) = stems
            if self._is_node(path):
                return path
        paths = [path for path in stems if self._is_node(path) and matches_path(path, within)]
        if paths or within:
            return choose_owner(paths) if paths else None
        named = self._named.get(key)
        return choose_owner(named) if named else self._path_of_alias(key)

    def _list_ends(self) -> Iterator[tuple[str, set[tuple[str, str]]]]:
        """Yield each node's path with (path of the target, type) of its relations; faster than a query for each node."""
        for path in map(choose_owner, self._named.paths.values()):
            yield path, self._outgoing(path)

    def _incoming(self, node: Vertex) -> Iterator[tuple[str, Statement]]:
        for path in {path for key in link_keys(node) for path in self._pointing.get(key)}:
            if self._is_node(path):
                for stated in self._notes[path].relations:
                    if self._target_paths[stated.target] == node.path:
                        yield path, stated

    def _neighbours(self, path: str) -> tuple[tuple[str, str, bool], ...]:
        """Return (path, type, whether the relation points there) of all neighbors of a node."""
        if path not in self._near:
            here = {(source, stated.type, False) for source, stated in self._incoming(self._notes[path])}
            there = {(to, kind, True) for to, kind in self._outgoing(path)}
            self._near[path] = tuple(sorted(here | there))
        return self._near[path]

    def _outgoing(self, path: str) -> set[tuple[str, str]]:
        """Return (path, type) of the nodes to which the relations of a node point."""
        stated = self._notes[path].relations
        return {(to, relation.type) for relation in stated if (to := self._target_paths[relation.target])}

    def _edges_by_neighbour(self, path: str) -> Iterator[tuple[str, Edge]]:
        """Yield the neighbors of a node, each with its relation, in either direction."""
        name = self._notes[path].name
        for near, kind, outward in self._neighbours(path):
            far = self._notes[near].name
            yield near, Edge(name, far, kind) if outward else Edge(far, name, kind)


class Graphs:
    """Holds the graphs of all workspaces."""

    def __init__(self) -> None:
        self._graphs: dict[str, Graph] = {}
        self._where: dict[str, str] = {}  # path → workspace
        self.unsettled: set[str] = set()  # paths of nodes whose notes do not state all of their ordinals

    def of(self, workspace: str) -> Graph:
        """Return the graph of a workspace, empty if it has no node."""
        return self._graphs.setdefault(workspace, Graph())

    def put(self, workspace: str, node: Vertex | None, path: str) -> None:
        """Store what the note at `path` is now: a node, or None."""
        if node is None:
            self.drop(path)
            return
        if self._where.get(path, workspace) != workspace:
            self.drop(path)
        self._where[path] = workspace
        (self.unsettled.add if node.unsettled else self.unsettled.discard)(path)
        self.of(workspace).put(node)

    def drop(self, path: str) -> None:
        """Remove the note at `path`."""
        self.unsettled.discard(path)
        if (workspace := self._where.pop(path, None)) is not None:
            self._graphs[workspace].drop(path)


def _words_of(node: Vertex) -> Iterator[str]:
    return (word for stated in node.relations for word in (stated.type, stated.target))


def _trace_back(back: dict[str, str], path: str) -> Iterator[str]:
    while path:
        yield path
        path = back[path]
