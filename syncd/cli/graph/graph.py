"""Define the command `graph`: show a neighbourhood, a path or a report of the graph, as text or as a diagram."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from index.errors import InvalidArgument
from syncd.cli.framework.arguments import limit_option, print_cut, refuse_idle
from syncd.cli.framework.commands import (
    Command,
    ask,
    has_color,
    print_answer,
    print_data,
    print_text,
    wants_json,
)
from syncd.cli.framework.completion import nodes
from syncd.cli.graph.memory_json import write_file
from syncd.cli.graph.nodes import GRAPH_WORKSPACE, format_relation, format_time, format_type, relations_table, table
from syncd.cli.terminal import result_text

DRAWN = 100  # nodes; a larger drawing is hard to read
DRAWINGS = ("mermaid", "canvas", "graphml")
ENDINGS = {".canvas": "canvas", ".graphml": "graphml", ".md": "mermaid", ".json": "json"}


@click.command(cls=Command)
@click.argument("name", required=False, shell_complete=nodes)
@click.option(
    "--depth", "-d", type=click.IntRange(0, 10), default=1, show_default=True, help="How many hops around NAME to show."
)
@click.option(
    "--path",
    "way",
    nargs=2,
    metavar="FROM TO",
    shell_complete=nodes,
    help="Show the shortest path from one entity to another.",
)
@click.option("--orphans", is_flag=True, help="List entities without a relation.")
@click.option("--gaps", is_flag=True, help="List entities whose facts name another entity without a relation to it.")
@click.option("--similar", is_flag=True, help="List pairs of similar entities that are not related.")
@click.option(
    "--min-score",
    type=click.FloatRange(0, 1),
    default=0.75,
    show_default=True,
    help="The least similarity, with --similar.",
)
@click.option("--pending", is_flag=True, help="List entities whose summary is missing or older than their facts.")
@click.option("--stats", is_flag=True, help="Count entities, facts and relations.")
@click.option("--report", is_flag=True, help="Report everything that needs attention, with drafts of summaries.")
@limit_option("The most entities, gaps or pairs to show.", DRAWN)
@click.option(
    "--format",
    "-f",
    "form",
    type=click.Choice(["table", *DRAWINGS, "json"]),
    help="The format.  [default: table, or the one of FILE's extension]",
)
@click.option("--output", "-o", type=click.Path(dir_okay=False), metavar="FILE", help="Write to FILE.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@GRAPH_WORKSPACE
def graph(name: str | None, depth: int, form: str | None, output: str | None, force: bool, **options: Any) -> None:
    """Show the graph around the entity NAME; without NAME, the entities with the most relations.

    Mermaid output is a code block for a note. A canvas opens in Obsidian from any folder of the vault, and its cards are the
    notes of the entities. GraphML is for programs that lay out large graphs."""
    if wants_json() and not output and form not in (None, "json", "canvas"):
        raise InvalidArgument(f"--format {form} is not JSON: leave out --json, or use --format json")
    _refuse_idle_options(name, options, output)
    drawn = form or ENDINGS.get(Path(output or "").suffix.lower(), "table")
    view = _fetch_view(name, depth, options, colored=has_color() and not output)
    if drawn in DRAWINGS:
        if view.title is None:
            raise InvalidArgument("this result is a list and can't be drawn: use --format table or --format json")
        text = _draw(drawn, view.title, view.result)
    else:
        text = json.dumps(view.result, ensure_ascii=False, indent=2) if drawn == "json" else view.text
    if view.is_cut:
        rows = view.result if isinstance(view.result, list) else view.result["nodes"]
        print_cut(len(rows), view.rows)
    if output:
        file = write_file(Path(output), f"{text.rstrip()}\n", force=force)
        print_answer({"file": str(file)}, lambda: str(file))
    elif wants_json() and form is None:
        print_answer(view.result, str)
    elif drawn == "json":
        print_data(text)
    else:
        print_text(text.rstrip("\n"))


@dataclass(frozen=True, slots=True)
class GraphView:
    """Hold the result for scripts, its text for people, and the title of the drawing (None: a list, which can't be drawn)."""

    result: Any
    text: str
    title: str | None = None
    rows: str = "entities"  # what the limit counts
    is_cut: bool = False


def _refuse_idle_options(name: str | None, options: Mapping[str, Any], output: str | None) -> None:
    """Raise InvalidArgument for an option that this view would ignore."""
    if not name:
        refuse_idle("depth", "needs NAME")
    if not options["similar"]:
        refuse_idle("min_score", "needs --similar")
    if not output:
        refuse_idle("force", "needs --output")
    if options["way"] or options["stats"] or options["report"]:
        refuse_idle("limit", "has no effect with --path, --stats and --report")


def _fetch_view(name: str | None, depth: int, options: Mapping[str, Any], *, colored: bool) -> GraphView:
    """Fetch the requested view. Raises InvalidArgument when more than one is requested."""
    asked = {"workspace": options["workspace"], "limit": options["limit"]}
    chosen = [aspect for aspect in ASPECTS if options[aspect]]
    if len(chosen) + bool(name) + bool(options["way"]) > 1:
        raise InvalidArgument("choose only one of: a NAME, --path, --" + ", --".join(ASPECTS))
    if options["way"]:
        source, target = options["way"]
        result = ask("graph.path", {"workspace": options["workspace"], "from_entity": source, "to_entity": target})
        return GraphView(result, _format_path(result, source, target), f"From {source} to {target}")
    if chosen:
        limit = options["limit"]
        result = ask(f"graph.{chosen[0]}", asked | {"limit": limit + 1, "min_score": options["min_score"]})
        is_cut = isinstance(result, list) and len(result) > limit
        result = result[:limit] if is_cut else result
        title = "Without a relation" if chosen == ["orphans"] else None
        rows = {"gaps": "gaps", "similar": "pairs"}.get(chosen[0], "entities")
        return GraphView(result, ASPECTS[chosen[0]](result, colored), title, rows, is_cut)
    result = ask("graph.around", asked | {"name": name, "depth": depth}) if name else ask("graph.whole", asked)
    text = "\n\n".join([table(result["nodes"], color=colored), relations_table(result["relations"], color=colored)])
    title = f"Around {result['nodes'][0]['name']}" if name else str(options["workspace"])
    return GraphView(result, text, title, is_cut=bool(result.get("truncated")))


def _draw(form: str, title: str, result: Any) -> str:
    from index.graph.vertex import Edge  # noqa: PLC0415 - most commands draw nothing, and should start at once
    from syncd.graph import diagrams  # noqa: PLC0415 - as above

    content = {"nodes": result, "relations": []} if isinstance(result, list) else result
    cards = tuple(
        diagrams.Card(
            row["name"], row["entity_type"], row["path"], row["summary"], tuple(row["tags"]), row["observation_count"]
        )
        for row in content["nodes"]
    )
    edges = tuple(Edge(row["from"], row["to"], row["relation_type"]) for row in content["relations"])
    draw = {"mermaid": diagrams.draw_mermaid, "canvas": diagrams.draw_canvas, "graphml": diagrams.draw_graphml}[form]
    return draw(diagrams.Picture(title, cards, edges))


def _format_path(result: Mapping[str, Any], source: str, target: str) -> str:
    if not result["found"]:
        return f"no path leads from {result_text.line(source)} to {result_text.line(target)}"
    return (
        "\n".join(map(format_relation, result["relations"]))
        or f"{result_text.line(result['path'][0])} is both start and end"
    )


# Formats of the reports


def _format_gaps(gaps: Sequence[Mapping[str, Any]], colored: bool) -> str:
    rows = [(gap["node"], gap["referenced_name"], gap["reference_count"]) for gap in gaps]
    return result_text.table(rows, ("entity", "names", "times"), color=colored) if rows else "no gaps"


def _format_similar(pairs: Sequence[Mapping[str, Any]], colored: bool) -> str:
    rows = [
        (f"{pair['similarity']:.2f}", pair["node_a"], pair["node_a_type"], pair["node_b"], pair["node_b_type"])
        for pair in pairs
    ]
    return (
        result_text.table(rows, ("similarity", "entity", "type", "other", "type"), color=colored)
        if rows
        else "no similar pairs"
    )


def _format_pending(nodes: Sequence[Mapping[str, Any]], colored: bool) -> str:
    rows = [
        (
            node["name"],
            node["entity_type"],
            node["observation_count"],
            format_time(node["last_observation_at"]),
            format_time(node["summary_updated_at"]),
        )
        for node in nodes
    ]
    head = ("name", "type", "facts", "last fact", "summary of")
    return result_text.table(rows, head, color=colored) if rows else "every summary is up to date"


def _format_stats(stats: Mapping[str, Any], colored: bool) -> str:
    share = stats["embedding_coverage"]
    rows = [
        ("entities", stats["node_count"]),
        ("facts", stats["observation_count"]),
        ("relations", stats["relation_count"]),
        ("embedded", f"{share if share == 1 else min(share, 0.99):.0%}"),
    ]
    width = max(len(label) for label, _ in rows)
    return "\n".join(
        f"{result_text.colorize(label.ljust(width), result_text.DIM, colored)}  {value}" for label, value in rows
    )


def _format_report(report: Mapping[str, Any], colored: bool) -> str:
    """Format each part that is not empty under its heading, with the number of omitted rows."""
    events, of = report["event_summary"], report["of"]
    parts = {
        ("Summaries to write", "stale_summaries"): [
            f"{result_text.line(row['name'])}: {result_text.line(row['draft_summary'] or 'no facts for a draft', 300)}"
            for row in report["stale_summaries"]
        ],
        ("Relations to consider", "relation_candidates"): [
            f"{result_text.line(row['node_a'])}, {result_text.line(row['node_b'])}: {result_text.line(row['rationale'], 300)}"
            for row in report["relation_candidates"]
        ],
        ("Without a relation", "orphaned_nodes"): [
            "  ".join(filter(None, (result_text.line(row["name"]), format_type(row))))
            for row in report["orphaned_nodes"]
        ],
        ("Connected entities", "clusters"): [
            f"{result_text.line(row['centroid_label'] or 'unnamed')}: {', '.join(map(result_text.line, row['node_names']))}"
            for row in report["cluster_summary"]
        ],
    }
    shown = []
    for (title, key), lines in parts.items():
        more = [f"… and {of[key] - len(lines):,} more"] if of[key] > len(lines) else []
        if lines:
            head = result_text.colorize(title, result_text.BOLD, colored)
            shown.append("\n".join([head, *(f"  {text}" for text in [*lines, *more])]))
    counts = f"{events['creates']:,} created, {events['updates']:,} changed, {events['deletes']:,} deleted"
    return "\n\n".join([*shown, f"Since {format_time(events['since'])}: {counts}"])


ASPECTS: Mapping[str, Callable[[Any, bool], str]] = {
    "orphans": lambda rows, colored: table(rows, color=colored) if rows else "no orphans",
    "gaps": _format_gaps,
    "similar": _format_similar,
    "pending": _format_pending,
    "stats": _format_stats,
    "report": _format_report,
}
