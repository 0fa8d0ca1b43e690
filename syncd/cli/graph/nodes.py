"""Define the commands `node` and `relation`, which show and change nodes and relations of a workspace's graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import click

from index.errors import InvalidArgument, NotFound
from syncd.cli.framework.arguments import YES, confirm, read_stdin, tags_option
from syncd.cli.framework.commands import Group, ask, has_color, print_answer, print_message
from syncd.cli.framework.completion import nodes, workspaces
from syncd.cli.terminal import result_text

WORKSPACE = click.option(
    "--workspace",
    "-w",
    default="default",
    show_default=True,
    shell_complete=workspaces,
    help="The workspace whose graph it is.",
)


@click.group(cls=Group)
def node() -> None:
    """The nodes of the graph: entities, and the facts that are known of them."""


@node.command("add")
@click.argument("name")
@click.option("--type", "-t", "entity_type", required=True, help="What it is: person, project, place …")
@click.option("--observation", "-o", "observations", multiple=True, help="A fact about it; repeat for several.")
@click.option("--summary", "-s", help="What it is, in a sentence.")
@tags_option("A tag; repeat for several.", short=False)
@WORKSPACE
def node_add(workspace: str, observations: tuple[str, ...], tags: tuple[str, ...], **fields: Any) -> None:
    """Make the node NAME: a note in the workspace's folder Entities."""
    entity = {**fields, "observations": list(observations), "tags": list(tags)}
    (made,) = ask("node.create", {"workspace": workspace, "entities": [entity]})
    print_answer(made, lambda: f"added {result_text.line(made['name'])}  {result_text.sanitize(made['path'])}")


@node.command("show")
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=nodes)
@WORKSPACE
def node_show(names: tuple[str, ...], workspace: str) -> None:
    """Show nodes: their observations with their ordinals, and every relation at either end of them.

    With --json: {"entities": [{"name", "entity_type", "summary", "tags", "aliases", "observations": [{"ordinal",
    "content"}], "observation_count", "created_at", "updated_at", "version", "id", "path"}], "relations": [{"from", "to",
    "relation_type"}]}."""
    result = ask("node.open", {"workspace": workspace, "names": list(names)})
    print_answer(result, lambda: format_nodes(result, color=has_color()))


@node.command("list")
@click.option("--type", "-t", "entity_type", help="Only nodes of this type.")
@click.option("--tag", "--tags", "tag", help="Only nodes with this tag, or one below it.")
@click.option("--days", type=click.IntRange(1), help="Only what changed in so many days, the latest first.")
@click.option(
    "--limit", "-n", type=click.IntRange(1, 10_000), default=1000, show_default=True, help="The most to list."
)
@WORKSPACE
def node_list(**filters: Any) -> None:
    """List nodes.

    With --json: a list of what `memex node show` has of each, less its observations; "relations" is their number."""
    limit = filters["limit"]
    nodes = ask("node.list", filters | {"limit": limit + 1})
    if len(nodes) > limit:
        print_message(f"memex: there are more nodes than these {limit:,}; --limit says how many are listed")
    print_answer(nodes[:limit], lambda: table(nodes[:limit], color=has_color()))


@node.command("search")
@click.argument("query", nargs=-1, required=True)
@click.option("--in", "name", metavar="NAME", shell_complete=nodes, help="Only among the observations of this node.")
@click.option(
    "--mode",
    type=click.Choice(["embedding", "text"]),
    default="embedding",
    show_default=True,
    help="By meaning, under every perspective, or by words.",
)
@click.option("--limit", "-n", type=click.IntRange(1, 100), default=10, show_default=True, help="The most to show.")
@WORKSPACE
def node_search(query: tuple[str, ...], **options: Any) -> None:
    """Find nodes by what their observations say, best first.

    With --json: a list of what `memex node list` has of each, less "relations", with "ordinal", "matched_observation",
    "matched_perspective" (null with --mode text) and "score"."""
    result = ask("node.search", {**options, "query": " ".join(query)})
    for sentence in result["degraded"]:
        print_message(f"memex: {result_text.sanitize(sentence)}")
    print_answer(result["hits"], lambda: format_hits(result["hits"], color=has_color()))


@node.command("rename")
@click.argument("name", shell_complete=nodes)
@click.argument("new_name")
@WORKSPACE
def node_rename(name: str, new_name: str, workspace: str) -> None:
    """Give the node NAME another name. Its file and the links to it stay as they are; the old name remains an alias.

    To rename the file as well, rename the note in Obsidian: it changes the links in all your notes."""
    made = ask("node.rename", {"workspace": workspace, "name": name, "new_name": new_name})
    print_answer(made, lambda: f"renamed {result_text.line(name)} to {result_text.line(made['name'])}")


@node.command("remove")
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=nodes)
@YES
@WORKSPACE
def node_remove(names: tuple[str, ...], yes: bool, workspace: str) -> None:
    """Delete nodes: their notes, and the relations to them in other notes. `memex undo` takes that back."""
    confirm(f"Delete {', '.join(result_text.line(name) for name in names)}, and all relations to it?", yes=yes)
    gone = ask("node.delete", {"workspace": workspace, "names": list(names)})
    print_answer(gone, lambda: format_deleted(gone))


@node.command("summary")
@click.argument("name", shell_complete=nodes)
@click.argument("text")
@WORKSPACE
def node_summary(name: str, text: str, workspace: str) -> None:
    """Say in TEXT what the node NAME is."""
    made = ask("node.summary", {"workspace": workspace, "name": name, "summary": text})
    print_answer(made, lambda: f"{result_text.line(made['name'])}: {result_text.line(made['summary'] or '', 400)}")


@node.command("tag")
@click.argument("name", shell_complete=nodes)
@click.argument("tags", metavar="[TAG]...", nargs=-1)
@WORKSPACE
def node_tag(name: str, tags: tuple[str, ...], workspace: str) -> None:
    """Set the tags of the node NAME to these; without any it has none."""
    made = ask("node.tags", {"workspace": workspace, "name": name, "tags": list(tags)})
    print_answer(made, lambda: f"{result_text.line(made['name'])}: {_format_tags(made) or 'no tags'}")


@node.command("observe")
@click.argument("name", shell_complete=nodes)
@click.argument("contents", metavar="[TEXT]...", nargs=-1)
@WORKSPACE
def node_observe(name: str, contents: tuple[str, ...], workspace: str) -> None:
    """Add observations to the node NAME, each TEXT one; without any, what stdin gives is one."""
    texts = list(contents) if contents and contents != ("-",) else [read_stdin()]
    made = ask("node.observe", {"workspace": workspace, "name": name, "contents": texts})
    print_answer(made, lambda: "\n".join(format_observations(made["added"])))


@node.command("replace")
@click.argument("name", shell_complete=nodes)
@click.argument("ordinal", type=click.IntRange(1))
@click.argument("content", metavar="[TEXT]", required=False)
@WORKSPACE
def node_replace(name: str, ordinal: int, content: str | None, workspace: str) -> None:
    """Put TEXT, or what stdin gives, in the place of the observation ORDINAL of the node NAME."""
    text = read_stdin() if content in (None, "-") else content
    made = ask("node.replace", {"workspace": workspace, "name": name, "ordinal": ordinal, "content": text})
    print_answer(made, lambda: "\n".join(format_observations([{"ordinal": ordinal, "content": made["new_content"]}])))


@node.command("forget")
@click.argument("name", shell_complete=nodes)
@click.argument("ordinals", metavar="ORDINAL...", nargs=-1, required=True, type=click.IntRange(1))
@WORKSPACE
def node_forget(name: str, ordinals: tuple[int, ...], workspace: str) -> None:
    """Delete observations of the node NAME by their ordinals; the others keep theirs."""
    gone = ask("node.forget", {"workspace": workspace, "name": name, "ordinals": list(ordinals)})
    if not gone["deleted_ordinals"]:
        raise NotFound(
            f"{name} has no observation {_join_numbers(gone['not_found_ordinals'])}; `memex node show` lists them"
        )
    for ordinal in gone["not_found_ordinals"]:
        print_message(f"memex: {result_text.line(name)} has no observation {ordinal}")
    print_answer(gone, lambda: f"forgot {_join_numbers(gone['deleted_ordinals'])}")


@click.group(cls=Group)
def relation() -> None:
    """The relations between nodes, which read as sentences: Ada collaborated_with Charles."""


@relation.command("add")
@click.argument("source", metavar="FROM", shell_complete=nodes)
@click.argument("kind", metavar="TYPE")
@click.argument("target", metavar="TO", shell_complete=nodes)
@WORKSPACE
def relation_add(source: str, kind: str, target: str, workspace: str) -> None:
    """Relate the node FROM to the node TO."""
    made = ask("relation.create", {"workspace": workspace, "relations": [_relation_fields(source, kind, target)]})
    there = made["already_existed"]
    print_answer(
        made, lambda: format_relation((made["created"] or there)[0]) + ("  (was there already)" if there else "")
    )


@relation.command("remove")
@click.argument("source", metavar="FROM", shell_complete=nodes)
@click.argument("kind", metavar="TYPE")
@click.argument("target", metavar="TO", shell_complete=nodes)
@WORKSPACE
def relation_remove(source: str, kind: str, target: str, workspace: str) -> None:
    """Delete a relation."""
    gone = ask("relation.delete", {"workspace": workspace, "relations": [_relation_fields(source, kind, target)]})
    if not gone["deleted"]:
        raise NotFound(f"{source} is not related so: no {kind!r} to {target}; `memex relation list` has what there is")
    print_answer(gone, lambda: f"deleted {format_relation({'from': source, 'relation_type': kind, 'to': target})}")


@relation.command("rename")
@click.argument("source", metavar="FROM", shell_complete=nodes)
@click.argument("kind", metavar="TYPE")
@click.argument("target", metavar="TO", shell_complete=nodes)
@click.argument("new", metavar="NEW_TYPE")
@WORKSPACE
def relation_rename(source: str, kind: str, target: str, new: str, workspace: str) -> None:
    """Give a relation another type."""
    asked = {"from_entity": source, "to_entity": target, "old_type": kind, "new_type": new}
    made = ask("relation.rename", {"workspace": workspace, **asked})
    print_answer(
        made,
        lambda: format_relation(
            {"from": made["from_entity"], "relation_type": made["new_type"], "to": made["to_entity"]}
        ),
    )


@relation.command("list")
@click.argument("names", metavar="[NAME [OTHER]]", nargs=-1, shell_complete=nodes)
@click.option("--type", "-t", "kind", help="Only relations of this type.")
@WORKSPACE
def relation_list(names: tuple[str, ...], kind: str | None, workspace: str) -> None:
    """List relations: all, those of the node NAME, or those between NAME and OTHER, either way.

    With --json: [{"from", "to", "relation_type"}]."""
    if len(names) > 2:
        raise InvalidArgument("relations are listed of one node, or between two; put a name with blanks in quotes")
    edges = ask("relation.list", {"workspace": workspace, "names": list(names), "relation_type": kind})
    print_answer(edges, lambda: relations_table(edges, color=has_color()))


# What people read


def table(nodes: Sequence[Mapping[str, Any]], *, color: bool = False) -> str:
    """Nodes, a line each."""
    rows = [(node["name"], node["entity_type"], node["observation_count"], node["summary"] or "") for node in nodes]
    return result_text.table(rows, ("name", "type", "facts", "summary"), color=color) if rows else "no nodes"


def relations_table(edges: Sequence[Mapping[str, Any]], *, color: bool = False) -> str:
    """Relations, a line each."""
    rows = [(edge["from"], edge["relation_type"], edge["to"]) for edge in edges]
    return result_text.table(rows, ("from", "type", "to"), color=color) if rows else "no relations"


def format_relation(edge: Mapping[str, Any]) -> str:
    """A relation as a sentence."""
    return (
        f"{result_text.line(edge['from'])} —{result_text.line(edge['relation_type'])}→ {result_text.line(edge['to'])}"
    )


def format_deleted(gone: Mapping[str, Any]) -> str:
    """The notes that were deleted, and how they come back."""
    lines = [
        f"deleted {result_text.line(note['name'])}  {result_text.line(note['path'], 300)}  {note['id']}"
        for note in gone["notes"]
    ]
    return "\n".join([*lines, result_text.way_back(gone["undo"])])


def format_nodes(result: Mapping[str, Any], *, color: bool = False) -> str:
    """Nodes whole, one after the other, then the relations at their ends."""
    blocks = []
    for entry in result["entities"]:
        head = result_text.colorize(result_text.line(entry["name"]), result_text.BOLD, color)
        lines = ["  ".join(filter(None, (head, format_type(entry), _format_tags(entry))))]
        lines += [result_text.line(entry["summary"], 1000)] if entry["summary"] else []
        lines += format_observations(entry["observations"])
        lines.append(
            result_text.colorize(
                f"{result_text.sanitize(entry['path'])}, changed {format_time(entry['updated_at'])}",
                result_text.DIM,
                color,
            )
        )
        blocks.append("\n".join(lines))
    if result["relations"]:
        blocks.append("\n".join(format_relation(entry) for entry in result["relations"]))
    return "\n\n".join(blocks)


def format_observations(observations: Sequence[Mapping[str, Any]]) -> list[str]:
    """Observations with their ordinals; further lines stand below the first."""
    lines = []
    for observation in observations:
        first, *more = result_text.sanitize(observation["content"]).split("\n")
        lines += [f"{observation['ordinal']:>4}  {first}", *(f"      {line}" for line in more)]
    return lines


def format_hits(results: Sequence[Mapping[str, Any]], *, color: bool = False) -> str:
    """Nodes that a search found, each with the observation that answers best."""
    blocks = []
    for hit in results:
        score = result_text.colorize(f"{hit['score']:.2f}", result_text.DIM, color)
        name = result_text.colorize(result_text.line(hit["name"]), result_text.BOLD, color)
        seen = f"  [{hit['matched_perspective']}]" if hit["matched_perspective"] else ""
        blocks.append(
            "  ".join(filter(None, (score, name, format_type(hit))))
            + f"{seen}\n{hit['ordinal']:>4}  {result_text.line(hit['matched_observation'])}"
        )
    return "\n".join(blocks) if blocks else "nothing found"


def format_type(node: Mapping[str, Any]) -> str:
    """A node's type in brackets; "" if its note names none."""
    return f"({result_text.line(node['entity_type'])})" if node["entity_type"] else ""


def format_time(text: str | None) -> str:
    """A time as people here write it."""
    return f"{datetime.fromisoformat(text).astimezone():%Y-%m-%d %H:%M}" if text else "never"


def _format_tags(node: Mapping[str, Any]) -> str:
    return " ".join(f"#{result_text.line(tag)}" for tag in node["tags"])


def _join_numbers(ordinals: Sequence[int]) -> str:
    return ", ".join(map(str, ordinals))


def _relation_fields(source: str, kind: str, target: str) -> dict[str, str]:
    return {"from_entity": source, "to_entity": target, "relation_type": kind}
