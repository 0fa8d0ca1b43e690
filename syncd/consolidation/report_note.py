"""Compose the consolidation report as a note: each proposal with its reason and a box; and a canvas of clusters.

Laws, tested: equal values give equal bytes; text of notes appears as data (`quoted_text`), without secrets, and every
box is made by Memex."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from index.graph.vertex import Edge
from index.names import base_name, pluralize
from syncd.graph.diagrams import Card, Picture, draw_boards, draw_mermaid
from syncd.notes.checkboxes import format_checkbox
from syncd.notes.quoted_text import LONGEST, link_to, quote_block, quote_inline
from syncd.notes.secret_patterns import redact

DRAWN: Final = 40  # proposals in the overview, which keeps it below a hundred notes
LISTED: Final = 20  # listed notes without relations, and listed notes of a cluster
CLUSTERS: Final = 12  # shown per workspace
CARDS: Final = 24  # shown per cluster on the canvas
ADDED: Final = 4_000  # shown characters of the text that a note would get


@dataclass(frozen=True, slots=True)
class ReportEntry:
    """Describes a proposal in the report; `paths` are its notes, `would` more values, by kind."""

    key: str
    kind: str
    workspace: str
    paths: tuple[str, ...]
    would: tuple[str, ...]
    reason: str
    quotes: tuple[tuple[str, str], ...] = ()  # path of a note, and a sentence from it
    adds: str = ""  # the text that the kept note would get


@dataclass(frozen=True, slots=True)
class WorkspaceReport:
    """Holds the report of one workspace."""

    workspace: str
    entries: tuple[ReportEntry, ...]
    clusters: tuple[tuple[str, tuple[str, ...]], ...] = ()  # label, and paths of the notes
    orphans: tuple[str, ...] = ()
    more: Mapping[str, int] | None = None  # by kind: proposals that follow after these are answered
    degraded: tuple[str, ...] = ()


# By kind, in the order of the report: the heading, and what a tick does.
_KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "merge-duplicates": (
        "Duplicates",
        "One note stays, with the tags, properties and paragraphs of both. The other moves to the archive, and links to it keep working.",
    ),
    "tag-merge": (
        "Tags that mean the same",
        "Memex replaces one tag with the other in all captures of the workspace. Your own notes stay as they are.",
    ),
    "relate": (
        "Possible missing relations",
        "Memex writes the relation into the first note. You can rename it there.",
    ),
    "summary": ("Summaries", "Memex writes the summary into the note. You can change it there."),
    "archive": (
        "Old captures without links to them",
        "The capture moves to the archive, and links to it keep working. Memex does not count searches that found it, so look before you tick.",
    ),
}
_ARROWS: Final[Mapping[str, str]] = {
    "merge-duplicates": "says the same as",
    "relate": "may be related to",
}


def compose_report(
    day: str, reports: Sequence[WorkspaceReport], *, canvas: str = "", table: str = "", waiting: int = 0
) -> str:
    """Compose the note.

    `canvas` is the path of the cluster canvas, `table` that of the table of waiting captures; "" = none."""
    entries = [entry for report in reports for entry in report.entries]
    lines = [f"# Consolidation {day}", "", *_head_lines(entries, waiting, table)]
    lines += _warning_lines(reports)
    lines += _overview_lines(entries)
    several = len(reports) > 1
    for kind in [*_KINDS, *sorted({entry.kind for entry in entries} - _KINDS.keys())]:
        lines += _section_lines(kind, [entry for entry in entries if entry.kind == kind], reports, several=several)
    lines += _cluster_lines(reports, canvas, several=several)
    lines += _orphan_lines(reports, several=several)
    return "\n".join(lines) + "\n"


def draw_clusters(reports: Sequence[WorkspaceReport]) -> str | None:
    """Draw the canvas of clusters; None if there are none."""
    clusters = [
        (redact(f"{report.workspace}: {label}" if len(reports) > 1 else label), paths[:CARDS])
        for report in reports
        for label, paths in report.clusters[:CLUSTERS]
    ]
    return draw_boards(clusters) if clusters else None


def _quote(text: str, longest: int = LONGEST) -> str:
    """Quote a text of a note on one line, without secrets."""
    return quote_inline(redact(text), longest)


def _head_lines(entries: Sequence[ReportEntry], waiting: int, table: str) -> Iterator[str]:
    count = len(entries)
    yield f"> [!summary] {pluralize(count, 'proposal')} {'waits' if count == 1 else 'wait'} for your answer"
    yield "> Tick a box, and Memex carries out the proposal. Put a `-` into a box, and Memex does not ask again. Proposals"
    yield "> without an answer change nothing. To undo one that was carried out: `memex consolidate --undo KEY`."
    if waiting:
        where = f": {link_to(table)}" if table else ""
        yield f"> {pluralize(waiting, 'capture')} {'waits' if waiting == 1 else 'wait'} to be promoted or dismissed{where}"
    yield ""


def _warning_lines(reports: Iterable[WorkspaceReport]) -> Iterator[str]:
    warnings = [
        f"{_quote(report.workspace)}: {_quote(reason, 300)}" for report in reports for reason in report.degraded
    ]
    if warnings:
        yield "> [!warning] This report is incomplete"
        yield from (f"> - {warning}" for warning in warnings)
        yield ""


def _overview_lines(entries: Sequence[ReportEntry]) -> list[str]:
    """Draw the proposals about two notes."""
    pairs = [entry for entry in entries if entry.kind in _ARROWS and len(entry.paths) == 2][:DRAWN]
    if not pairs:
        return []
    paths = list(dict.fromkeys(path for entry in pairs for path in entry.paths))
    names = _card_names(paths)
    arrows = []
    for entry in pairs:
        ends = entry.paths if entry.kind != "merge-duplicates" else entry.paths[::-1]
        arrows.append(Edge(names[ends[0]], names[ends[1]], _ARROWS[entry.kind]))
    drawn = draw_mermaid(Picture("Overview", tuple(Card(names[path], "", path) for path in paths), tuple(arrows)))
    return ["## Overview", "", *drawn.splitlines(), ""]


def _card_names(paths: Sequence[str]) -> dict[str, str]:
    """Return the label of each note in the drawing: its name, or its path if two notes have that name."""
    names = {path: base_name(path).removesuffix(".md") for path in paths}
    named = list(names.values())
    return {path: name if named.count(name) == 1 else path for path, name in names.items()}


def _section_lines(
    kind: str, entries: Sequence[ReportEntry], reports: Sequence[WorkspaceReport], *, several: bool
) -> Iterator[str]:
    more = sum((report.more or {}).get(kind, 0) for report in reports)
    if not entries and not more:
        return
    heading, does = _KINDS.get(kind, (_quote(kind.replace("-", " ").capitalize()), ""))
    yield from (f"## {heading}", "")
    if does:
        yield from ("> [!info]- What a tick does", f"> {does}", "")
    for entry in entries:
        where = f"{_quote(entry.workspace)}: " if several else ""
        yield format_checkbox(where + _describe_entry(entry), entry.key)
        yield f"\t- {_quote(entry.reason, 300)}"
        yield from (f"\t- {link_to(path)}: “{_quote(text, 240)}”" for path, text in entry.quotes)
        if entry.adds:
            yield "\t- Text that would be added:"
            adds = redact(entry.adds)
            yield from (f"\t\t{line}".rstrip() for line in quote_block(adds[:ADDED]))
            if len(adds) > ADDED:
                yield f"\t- … and {pluralize(len(adds) - ADDED, 'more character')}"
    if more:
        yield from ("", f"… and {more:,} more after you answer these.")
    yield ""


def _describe_entry(entry: ReportEntry) -> str:
    """Describe in a sentence what a tick would do."""
    links = [link_to(path) for path in entry.paths]
    texts = [_quote(text, 400) for text in entry.would]
    match entry.kind, links, texts:
        case "merge-duplicates", [kept, copy], _:
            says = f"Keep {kept}, add the text that only {copy} has, and archive {copy}"
            says = says if entry.adds else f"Keep {kept}, and archive its duplicate {copy}"
        case "tag-merge", _, [into, tag, *_]:
            says = f"Replace the tag “{tag}” with “{into}”"
        case "relate", [a, b], [type, *_]:
            says = f"Relate {a} to {b} as “{type}”"
        case "summary", [node], [text, *_]:
            says = f"Give {node} this summary: “{text}”"
        case "archive", [capture], _:
            says = f"Archive {capture}"
        case _:
            says = " and ".join([_quote(entry.kind.replace("-", " ").capitalize()), *links])
    return says


def _cluster_lines(reports: Sequence[WorkspaceReport], canvas: str, *, several: bool) -> Iterator[str]:
    clusters = [(report, *cluster) for report in reports for cluster in report.clusters[:CLUSTERS]]
    if not clusters:
        return
    yield from ("## Clusters", "")
    if canvas:
        yield from (f"Drawn on {link_to(canvas)}.", "")
    for report, label, paths in clusters:
        where = f"{_quote(report.workspace)}: " if several else ""
        yield f"> [!example]- {where}{_quote(label)} ({len(paths):,})"
        yield f"> {_link_list(paths)}"
        yield ""


def _orphan_lines(reports: Sequence[WorkspaceReport], *, several: bool) -> Iterator[str]:
    affected = [report for report in reports if report.orphans]
    if not affected:
        return
    yield from ("## Entities without relations", "")
    for report in affected:
        where = f" in {_quote(report.workspace)}" if several else ""
        yield f"> [!note]- {pluralize(len(report.orphans), 'entity')}{where}"
        yield f"> {_link_list(report.orphans)}"
        yield ""


def _link_list(paths: Sequence[str]) -> str:
    left = f" · … and {len(paths) - LISTED:,} more" if len(paths) > LISTED else ""
    return " · ".join(link_to(path) for path in paths[:LISTED]) + left
