"""Define the command `graph`: show a neighbourhood, a path or a report of the graph, as text or as a diagram."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from index.errors import InvalidArgument
from syncd.cli.framework.commands import Command, answer, as_json, ask, color, out, talk
from syncd.cli.framework.completion import nodes
from syncd.cli.graph.memory_json import kept
from syncd.cli.graph.nodes import WORKSPACE, arrow, kind, moment, relations, table
from syncd.cli.terminal import result_text

DRAWN = 100  # nodes, above which a drawing is no picture any more
DRAWINGS = ("mermaid", "canvas", "graphml")
ENDINGS = {".canvas": "canvas", ".graphml": "graphml", ".md": "mermaid", ".json": "json"}


@click.command(cls=Command)
@click.argument("name", required=False, shell_complete=nodes)
@click.option(
    "--depth", "-d", type=click.IntRange(0, 10), default=1, show_default=True, help="How many hops around NAME."
)
@click.option(
    "--path", "way", nargs=2, metavar="FROM TO", shell_complete=nodes, help="The shortest way from one node to another."
)
@click.option("--orphans", is_flag=True, help="The nodes without a relation.")
@click.option("--gaps", is_flag=True, help="The nodes whose observations name another without a relation to it.")
@click.option("--similar", is_flag=True, help="The pairs of nodes that are alike and not related.")
@click.option(
    "--min-score", type=click.FloatRange(0, 1), default=0.75, show_default=True, help="How much alike, with --similar."
)
@click.option("--pending", is_flag=True, help="The nodes without a summary, or with one that facts have outrun.")
@click.option("--stats", is_flag=True, help="How many nodes, observations and relations there are.")
@click.option("--report", is_flag=True, help="All that wants attention, with drafts of summaries.")
@click.option(
    "--limit", "-n", type=click.IntRange(1, 1000), default=DRAWN, show_default=True, help="The most nodes to show."
)
@click.option(
    "--format",
    "-f",
    "form",
    type=click.Choice(["table", *DRAWINGS, "json"]),
    help="As what.  [default: table, or what FILE's ending says]",
)
@click.option("--output", "-o", type=click.Path(dir_okay=False), metavar="FILE", help="Write it into FILE.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@WORKSPACE
def graph(name: str | None, depth: int, form: str | None, output: str | None, force: bool, **given: Any) -> None:
    """Show what lies around the node NAME; without it, the nodes with the most relations.

    A Mermaid drawing is a block for a note. A canvas lies anywhere in the vault and opens in Obsidian as it is, its cards being
    the nodes' own notes. GraphML is read by programs that lay out large graphs."""
    drawn = form or ENDINGS.get(Path(output or "").suffix.lower(), "table")
    view = _view(name, depth, given, colored=color() and not output)
    if drawn in DRAWINGS:
        if view.title is None:
            raise InvalidArgument("that is a list and no picture: take --format table or json")
        text = _drawn(drawn, view.title, view.found)
    else:
        text = json.dumps(view.found, ensure_ascii=False, indent=2) if drawn == "json" else view.text
    if isinstance(view.found, dict) and view.found.get("truncated"):
        talk(f"memex: there are more nodes than these {len(view.found['nodes'])}; --limit says how many are shown")
    if output:
        file = kept(Path(output), f"{text.rstrip()}\n", force=force)
        answer({"file": str(file)}, lambda: str(file))
    elif as_json() and form is None:
        answer(view.found, str)
    else:
        out(text.rstrip("\n"))


@dataclass(frozen=True, slots=True)
class GraphView:
    """What is shown: for a script, for a person, and under which title it is drawn (None: it is a list)."""

    found: Any
    text: str
    title: str | None = None


def _view(name: str | None, depth: int, given: Mapping[str, Any], *, colored: bool) -> GraphView:
    """What was asked for, and only one thing may be."""
    asked = {"workspace": given["workspace"], "limit": given["limit"]}
    chosen = [aspect for aspect in ASPECTS if given[aspect]]
    if len(chosen) + bool(name) + bool(given["way"]) > 1:
        raise InvalidArgument("ask for one thing: a NAME, --path, --" + ", --".join(ASPECTS))
    if given["way"]:
        source, target = given["way"]
        found = ask("graph.path", {"workspace": given["workspace"], "from_entity": source, "to_entity": target})
        return GraphView(found, _way(found, source, target), f"From {source} to {target}")
    if chosen:
        found = ask(f"graph.{chosen[0]}", asked | {"min_score": given["min_score"]})
        return GraphView(
            found, ASPECTS[chosen[0]](found, colored), "Without a relation" if chosen == ["orphans"] else None
        )
    found = ask("graph.around", asked | {"name": name, "depth": depth}) if name else ask("graph.whole", asked)
    text = "\n\n".join([table(found["nodes"], color=colored), relations(found["relations"], color=colored)])
    return GraphView(found, text, f"Around {found['nodes'][0]['name']}" if name else str(given["workspace"]))


def _drawn(form: str, title: str, found: Any) -> str:
    from index.graph.vertex import Edge  # noqa: PLC0415 - most commands draw nothing, and should start at once
    from syncd.graph import diagrams  # noqa: PLC0415 - as above

    told = {"nodes": found, "relations": []} if isinstance(found, list) else found
    cards = tuple(
        diagrams.Card(
            one["name"], one["entity_type"], one["path"], one["summary"], tuple(one["tags"]), one["observation_count"]
        )
        for one in told["nodes"]
    )
    edges = tuple(Edge(one["from"], one["to"], one["relation_type"]) for one in told["relations"])
    draw = {"mermaid": diagrams.mermaid, "canvas": diagrams.canvas, "graphml": diagrams.graphml}[form]
    return draw(diagrams.Picture(title, cards, edges))


def _way(found: Mapping[str, Any], source: str, target: str) -> str:
    if not found["found"]:
        return f"no way leads from {result_text.line(source)} to {result_text.line(target)}"
    return "\n".join(map(arrow, found["relations"])) or f"{result_text.line(found['path'][0])} is where it starts"


# What wants attention, for people


def _gaps(found: Sequence[Mapping[str, Any]], colored: bool) -> str:
    rows = [(one["node"], one["referenced_name"], one["reference_count"]) for one in found]
    return result_text.table(rows, ("node", "speaks of", "times"), color=colored) if rows else "no gaps"


def _similar(found: Sequence[Mapping[str, Any]], colored: bool) -> str:
    rows = [
        (f"{one['similarity']:.2f}", one["node_a"], one["node_a_type"], one["node_b"], one["node_b_type"])
        for one in found
    ]
    return (
        result_text.table(rows, ("alike", "node", "type", "and", "type"), color=colored) if rows else "no similar pairs"
    )


def _pending(found: Sequence[Mapping[str, Any]], colored: bool) -> str:
    rows = [
        (
            one["name"],
            one["entity_type"],
            one["observation_count"],
            moment(one["last_observation_at"]),
            moment(one["summary_updated_at"]),
        )
        for one in found
    ]
    head = ("name", "type", "facts", "last fact", "summary of")
    return result_text.table(rows, head, color=colored) if rows else "every summary is up to date"


def _stats(found: Mapping[str, Any], colored: bool) -> str:
    rows = [
        ("nodes", found["node_count"]),
        ("observations", found["observation_count"]),
        ("relations", found["relation_count"]),
        ("embedded", f"{found['embedding_coverage']:.0%}"),
    ]
    width = max(len(label) for label, _ in rows)
    return "\n".join(
        f"{result_text.painted(label.ljust(width), result_text.DIM, colored)}  {value}" for label, value in rows
    )


def _report(found: Mapping[str, Any], colored: bool) -> str:
    """Each part that has something to say, under its heading, with what was left out of it."""
    events, of = found["event_summary"], found["of"]
    parts = {
        ("Summaries to write", "stale_summaries"): [
            f"{result_text.line(one['name'])}: {result_text.line(one['draft_summary'] or 'nothing to draft it from', 300)}"
            for one in found["stale_summaries"]
        ],
        ("Relations to consider", "relation_candidates"): [
            f"{result_text.line(one['node_a'])}, {result_text.line(one['node_b'])}: {result_text.line(one['rationale'], 300)}"
            for one in found["relation_candidates"]
        ],
        ("Without a relation", "orphaned_nodes"): [
            "  ".join(filter(None, (result_text.line(one["name"]), kind(one)))) for one in found["orphaned_nodes"]
        ],
        ("What hangs together", "clusters"): [
            f"{result_text.line(one['centroid_label'] or 'unnamed')}: {', '.join(map(result_text.line, one['node_names']))}"
            for one in found["cluster_summary"]
        ],
    }
    shown = []
    for (title, key), lines in parts.items():
        more = [f"… and {of[key] - len(lines):,} more"] if of[key] > len(lines) else []
        if lines:
            head = result_text.painted(title, result_text.BOLD, colored)
            shown.append("\n".join([head, *(f"  {text}" for text in [*lines, *more])]))
    counts = f"{events['creates']:,} created, {events['updates']:,} changed, {events['deletes']:,} deleted"
    return "\n\n".join([*shown, f"Since {moment(events['since'])}: {counts}"])


ASPECTS: Mapping[str, Callable[[Any, bool], str]] = {
    "orphans": lambda found, colored: table(found, color=colored) if found else "no orphans",
    "gaps": _gaps,
    "similar": _similar,
    "pending": _pending,
    "stats": _stats,
    "report": _report,
}
