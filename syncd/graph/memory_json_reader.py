"""Read a `memory.json` file part by part: first to validate it, then to import its graph into a workspace.

Law, tested: at most one part of the file is in memory, besides a digest of each name."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import IO, Any, Final, TypeAlias

from index.errors import InvalidArgument
from index.graph.vertex import Edge, name_key
from syncd.graph.memory_json import MAX_LINE, Entity, Mistake, Record, is_single_object, parse_lines, parse_object

PART: Final = 4 * 1024 * 1024  # most bytes sent in one request
MANY: Final = 100  # most records sent in one request, and between two progress reports
MOST_LISTED: Final = 1000  # most mistakes, and skipped relations, that are listed
Ask: TypeAlias = Callable[[str, Mapping[str, Any]], Any]
Show: TypeAlias = Callable[[Mapping[str, Any]], None]


@dataclass(slots=True)
class FileSummary:
    """Summarizes a file: enough to decide whether it can be imported, without its text."""

    size: int
    names: set[bytes] = field(default_factory=set)
    mistakes: list[Mistake] = field(default_factory=list)
    wrong: int = 0


def summarize_file(source: IO[bytes]) -> FileSummary:
    """Summarize the file, and collect every mistake in it."""
    summary = FileSummary(source.seek(0, os.SEEK_END))
    for _, item, mistakes in _read_records(source):
        summary.wrong += len(mistakes)
        summary.mistakes += mistakes[: MOST_LISTED - len(summary.mistakes)]
        if isinstance(item, Entity):
            summary.names.add(_digest(name_key(item.name)))
    return summary


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=12).digest()


def _read_records(source: IO[bytes]) -> Iterator[Record]:
    source.seek(0)
    first = next((line for _, line in _read_lines(source) if line is None or line.strip()), b"")
    source.seek(0)
    if not is_single_object(first or b""):
        yield from parse_lines(_read_lines(source))
        return
    raw = source.read(MAX_LINE + 1)
    if len(raw) > MAX_LINE:
        raise InvalidArgument(
            f"the file is one object of more than {MAX_LINE:,} bytes; write one entity or relation per line"
        )
    yield from parse_object(raw)


def _read_lines(source: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """Yield the lines with their numbers; None replaces a line that is too long."""
    number = 0
    while line := source.readline(MAX_LINE + 1):
        number += 1
        if len(line) <= MAX_LINE:
            yield number, line
            continue
        while line and not line.endswith(b"\n"):
            line = source.readline(MAX_LINE)
        yield number, None


def import_graph(
    source: IO[bytes], summary: FileSummary, ask: Ask, show: Show, asked: Mapping[str, Any]
) -> dict[str, Any]:
    """Import all entities, then all relations, in parts; return the counts."""
    counts = dict.fromkeys(("created", "changed", "unchanged", "observations", "related", "existed"), 0)
    made: set[bytes] = set()
    dangling = _DanglingRelations(set(_find_missing_ends(source, summary, ask, str(asked["workspace"]))))
    entities = (asdict(entity) for _, entity, _ in _read_records(source) if isinstance(entity, Entity))
    for kind, items in (
        ("entities", entities),
        ("relations", dangling.filter_relations(_read_records(source), made)),
    ):
        for part in _split_into_parts(items):
            answer = ask("graph.import", {**asked, kind: part})
            made |= {_digest(name_key(name)) for name in answer["made"]}
            for key in counts:
                counts[key] += answer[key]
            show({"done": source.tell(), "total": summary.size, "stage": kind})
    return {**counts, "left_out": dangling.count, "dangling": dangling.described, "dry_run": asked["dry_run"]}


def _find_missing_ends(source: IO[bytes], summary: FileSummary, ask: Ask, workspace: str) -> Iterator[str]:
    """Yield the ends of relations that are neither an entity of the file nor an existing node."""
    edges = (edge for _, edge, _ in _read_records(source) if isinstance(edge, Edge))
    strange = dict.fromkeys(
        name for edge in edges for name in (edge.source, edge.target) if _digest(name_key(name)) not in summary.names
    )
    names = list(strange)
    for first in range(0, len(names), MANY):
        yield from ask("graph.unknown", {"workspace": workspace, "names": names[first : first + MANY]})


@dataclass(slots=True)
class _DanglingRelations:
    """Filters out the relations with an end that does not exist."""

    missing: set[str]
    count: int = 0
    described: list[str] = field(default_factory=list)  # the first skipped ones, as text

    def filter_relations(self, all_records: Iterator[Record], made: set[bytes]) -> Iterator[dict[str, Any]]:
        """Yield the relations whose ends exist, and for each whether this import has created its source (`made`): such a relation does not change the version and the times that the file gives."""
        for where, edge, _ in all_records:
            if not isinstance(edge, Edge):
                continue
            lost = [name for name in dict.fromkeys((edge.source, edge.target)) if name in self.missing]
            if not lost:
                ends = {"from_entity": edge.source, "to_entity": edge.target}
                yield {**ends, "relation_type": edge.type, "source_made": _digest(name_key(edge.source)) in made}
                continue
            self.count += 1
            if self.count <= MOST_LISTED:
                named = " and ".join(map(repr, lost))
                self.described.append(f"{where}: {edge.type} is skipped, because there is no entity {named}")


def _split_into_parts(items: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    part: list[dict[str, Any]] = []
    size = 0
    for item in items:
        part.append(item)
        size += len(json.dumps(item))
        if size >= PART or len(part) >= MANY:
            yield part
            part, size = [], 0
    if part:
        yield part
