"""Compose the consolidation report as a note: each proposal with its reason and a box; and a canvas of clusters.

Laws, tested: equal values give equal bytes; text of notes appears as data (`quoted_text`), and every box is Memex's
own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from index.graph.vertex import Edge
from index.names import pluralize
from syncd.graph.diagrams import Card, NoteGroup, Picture, draw_boards, draw_mermaid
from syncd.notes.checkboxes import format_checkbox
from syncd.notes.quoted_text import link_to, quote_block, quote_inline

DRAWN: Final = 40  # proposals in the overview, so fewer than a hundred notes
LISTED: Final = 20  # notes without relations, and notes of a cluster, that are named
CLUSTERS: Final = 12  # of a workspace
CARDS: Final = 24  # of a cluster, on the canvas


@dataclass(frozen=True, slots=True)
class ReportEntry:
    """A proposal as it is shown; `paths` are the notes it is about, `would` what else it would do, by kind."""

    key: str
    kind: str
    workspace: str
    paths: tuple[str, ...]
    would: tuple[str, ...]
    reason: str
    quotes: tuple[tuple[str, str], ...] = ()  # the path of a note, and a sentence of it
    adds: str = ""  # the text that a note would be given


@dataclass(frozen=True, slots=True)
class WorkspaceReport:
    """What there is to say of one workspace."""

    workspace: str
    entries: tuple[ReportEntry, ...]
    clusters: tuple[tuple[str, tuple[str, ...]], ...] = ()  # a label, and the paths of the notes
    orphans: tuple[str, ...] = ()
    more: Mapping[str, int] | None = None  # by kind: proposals that are shown once these are answered
    degraded: tuple[str, ...] = ()


# Heading, and what a tick does, by kind, in the order in which they are shown.
_KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "supersede": (
        "Newer notes on the same thing",
        "The property `superseded_by` is written into the older note. It stays where it is, and counts half in searches.",
    ),
    "merge-duplicates": (
        "Duplicates",
        "One note stays, with the tags, properties and paragraphs of both. The other goes to the archive, and links to it stay whole.",
    ),
    "tag-merge": (
        "Tags that mean the same",
        "One tag is written in place of the other in all captures of the workspace; your own notes are left alone.",
    ),
    "relate": (
        "Relations that may be missing",
        "The relation is written into the first note; rename it there as you like.",
    ),
    "summary": ("Summaries", "The summary is written into the note; change it there as you like."),
    "archive": (
        "Old captures that nothing links to",
        "The capture goes to the archive, and links to it stay whole. Searches that found it are not counted: look before you tick.",
    ),
}
_ARROWS: Final[Mapping[str, str]] = {
    "supersede": "takes the place of",
    "merge-duplicates": "says the same as",
    "relate": "may be related to",
}


def compose_report(
    day: str, reports: Sequence[WorkspaceReport], *, canvas: str = "", table: str = "", waiting: int = 0
) -> str:
    """Compose the note. `canvas` and `table` are the paths of the canvas of clusters and of the table of waiting captures, if there are."""
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
    """Draw the canvas of clusters; None without a cluster."""
    clusters = [
        NoteGroup(f"{report.workspace}: {label}" if len(reports) > 1 else label, paths[:CARDS])
        for report in reports
        for label, paths in report.clusters[:CLUSTERS]
    ]
    return draw_boards(clusters) if clusters else None


def _head_lines(entries: Sequence[ReportEntry], waiting: int, table: str) -> Iterator[str]:
    count = len(entries)
    yield f"> [!summary] {pluralize(count, 'proposal')} {'waits' if count == 1 else 'wait'} for your answer"
    yield "> Tick a box, and it is done a moment later; put a `-` into it, and you are not asked again. What you leave"
    yield "> alone stays as it is. Everything that is done is a commit, so Git can take it back."
    if waiting:
        where = f": {link_to(table)}" if table else ""
        yield f"> {pluralize(waiting, 'capture')} {'waits' if waiting == 1 else 'wait'} to be promoted or dismissed{where}"
    yield ""


def _warning_lines(reports: Iterable[WorkspaceReport]) -> Iterator[str]:
    warnings = [
        f"{quote_inline(report.workspace)}: {quote_inline(reason, 300)}"
        for report in reports
        for reason in report.degraded
    ]
    if warnings:
        yield "> [!warning] Not all could be looked at"
        yield from (f"> - {warning}" for warning in warnings)
        yield ""


def _overview_lines(entries: Sequence[ReportEntry]) -> list[str]:
    """The proposals about two notes, drawn."""
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
    """What each note is called in the drawing: its name, or its path where two have that name."""
    stems = {path: path.removesuffix(".md").rpartition("/")[2] for path in paths}
    named = list(stems.values())
    return {path: stem if named.count(stem) == 1 else path for path, stem in stems.items()}


def _section_lines(
    kind: str, entries: Sequence[ReportEntry], reports: Sequence[WorkspaceReport], *, several: bool
) -> Iterator[str]:
    more = sum((report.more or {}).get(kind, 0) for report in reports)
    if not entries and not more:
        return
    heading, does = _KINDS.get(kind, (quote_inline(kind.replace("-", " ").capitalize()), ""))
    yield from (f"## {heading}", "")
    if does:
        yield from ("> [!info]- What a tick does", f"> {does}", "")
    for entry in entries:
        where = f"{quote_inline(entry.workspace)}: " if several else ""
        yield format_checkbox(where + _describe_entry(entry), entry.key)
        yield f"\t- {quote_inline(entry.reason, 300)}"
        yield from (f"\t- {link_to(path)}: “{quote_inline(text, 240)}”" for path, text in entry.quotes)
        if entry.adds:
            yield "\t- It would be given:"
            yield from (f"\t\t{line}".rstrip() for line in quote_block(entry.adds))
    if more:
        yield from ("", f"… and {more:,} more, once these are answered.")
    yield ""


def _describe_entry(entry: ReportEntry) -> str:
    """What a tick would do, in a sentence."""
    links = [link_to(path) for path in entry.paths]
    texts = [quote_inline(text, 400) for text in entry.would]
    match entry.kind, links, texts:
        case "supersede", [newer, older], _:
            says = f"Mark {older} as superseded by {newer}"
        case "merge-duplicates", [kept, copy], _:
            says = f"Keep {kept}, give it what only {copy} says, and put that one into the archive"
            says = says if entry.adds else f"Keep {kept}, and put {copy}, which says the same, into the archive"
        case "tag-merge", _, [into, tag, *_]:
            says = f"Write the tag “{into}” in place of “{tag}”"
        case "relate", [a, b], [type, *_]:
            says = f"Relate {a} to {b} as “{type}”"
        case "summary", [node], [text, *_]:
            says = f"Give {node} this summary: “{text}”"
        case "archive", [capture], _:
            says = f"Put {capture} into the archive"
        case _:
            says = " and ".join([quote_inline(entry.kind.replace("-", " ").capitalize()), *links])
    return says


def _cluster_lines(reports: Sequence[WorkspaceReport], canvas: str, *, several: bool) -> Iterator[str]:
    clusters = [(report, *cluster) for report in reports for cluster in report.clusters[:CLUSTERS]]
    if not clusters:
        return
    yield from ("## Clusters", "")
    if canvas:
        yield from (f"Drawn on {link_to(canvas)}.", "")
    for report, label, paths in clusters:
        where = f"{quote_inline(report.workspace)}: " if several else ""
        yield f"> [!example]- {where}{quote_inline(label)} ({len(paths):,})"
        yield f"> {_link_list(paths)}"
        yield ""


def _orphan_lines(reports: Sequence[WorkspaceReport], *, several: bool) -> Iterator[str]:
    affected = [report for report in reports if report.orphans]
    if not affected:
        return
    yield from ("## Nodes without a relation", "")
    for report in affected:
        where = f" in {quote_inline(report.workspace)}" if several else ""
        yield f"> [!note]- {pluralize(len(report.orphans), 'node')}{where}"
        yield f"> {_link_list(report.orphans)}"
        yield ""


def _link_list(paths: Sequence[str]) -> str:
    left = f" · … and {len(paths) - LISTED:,} more" if len(paths) > LISTED else ""
    return " · ".join(link_to(path) for path in paths[:LISTED]) + left
