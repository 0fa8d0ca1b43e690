"""Collect warnings about notes: name twins, equal ids, conflict copies, notes that are not downloaded, relations without a target.

Name twins are paths that differ only in letter case or Unicode form."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from index.graph.graph import Graph
from index.scope.index import Index
from syncd.vault.listing import AWAY
from syncd.vault.path_rules import find_collisions


class SimilarNames:
    """Groups names that differ only in letter case or Unicode form; computed again when the index changes."""

    def __init__(self, paths: Callable[[], Iterable[str]], generation: Callable[[], int]) -> None:
        self._paths, self._generation = paths, generation
        self._found: tuple[int, list[tuple[str, ...]]] = (-1, [])

    def groups(self) -> list[tuple[str, ...]]:
        """Return the groups of notes, and of folders of notes."""
        generation = self._generation()
        if self._found[0] != generation:
            notes = set(self._paths())
            self._found = generation, find_collisions(notes | _parent_folders(notes))
        return self._found[1]

    def defects(self) -> list[tuple[str, str]]:
        """Return each note that has a twin, with a description of the problem."""
        return [
            (
                path,
                f"twin: its name differs from {other} only in letter case or Unicode form; many systems keep only one of them",
            )
            for group in self.groups()
            for path, other in zip(group, (*group[1:], group[0]), strict=True)
            if path[-3:].lower() == ".md"
        ]


def same_id_defects(captures: Index) -> list[tuple[str, str]]:
    """Return each capture with the id of another one of its workspace, with what that means and what to do."""
    return [
        (
            path,
            f"same-id: {owner} has this id too, and is found by it; delete one of the two, or the line `id` in this one, and it gets another id",
        )
        for path, owner in captures.paths_sharing_ids()
    ]


def name_warnings(indexes: Iterable[Index], twins: SimilarNames) -> dict[str, Any]:
    """Return the warnings about names in the whole vault, for its owner."""
    defects = [defect for index in indexes for defect in index.defects()]
    return {
        "twins": [list(group) for group in twins.groups()],
        "conflict_copies": sorted(path for path, defect in defects if defect.startswith("conflict-copy:")),
        "placeholders": sorted(path for path, defect in defects if defect == f"not-indexed: {AWAY}"),
    }


def graph_totals(graphs: Iterable[Graph]) -> dict[str, Any]:
    """Return the totals of all workspaces' graphs, and what in them needs attention."""
    totals: dict[str, Any] = {"nodes": 0, "observations": 0, "relations": 0, "twins": [], "dangling": []}
    for graph in graphs:
        vertices = graph.vertices()
        totals["nodes"] += len(vertices)
        totals["observations"] += sum(vertex.observations for vertex in vertices)
        totals["relations"] += graph.relation_count
        totals["twins"] += graph.notes_sharing_names()
        totals["dangling"] += [
            {"path": path, "relation_type": stated.type, "target": stated.target}
            for path, stated in graph.dangling_statements()
        ]
    return totals


def _parent_folders(paths: Iterable[str]) -> set[str]:
    folders: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return folders
