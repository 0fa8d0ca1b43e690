"""Define the commands `node` and `relation`, which show and change the entities and relations of a workspace's graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import click

from index.errors import InvalidArgument, NotFound
from syncd.cli.framework.arguments import (
    YES,
    confirm,
    cut_rows,
    limit_option,
    read_stdin,
    tags_option,
    workspace_option,
)
from syncd.cli.framework.commands import Group, ask, has_color, load_settings, print_answer, print_message
from syncd.cli.framework.completion import nodes
from syncd.cli.framework.printed_commands import way_back
from syncd.cli.terminal import result_text

GRAPH_WORKSPACE = workspace_option("The workspace of the graph.")


@click.group(cls=Group)
def node() -> None:
    """Manage the entities of the graph, and their facts."""


@node.command("add")
@click.argument("name")
@click.option("--type", "-t", "entity_type", required=True, help="The type: person, project, place …")
@click.option("--observation", "-o", "observations", multiple=True, help="A fact about the entity; repeat for several.")
@click.option("--summary", "-s", help="A summary in one sentence.")
@tags_option("A tag; repeat for several.", short=False)
@GRAPH_WORKSPACE
def node_add(workspace: str, observations: tuple[str, ...], tags: tuple[str, ...], **fields: Any) -> None:
    """Create the entity NAME, a note in the workspace's folder Entities."""
    entity = {**fields, "observations": list(observations), "tags": list(tags)}
    (made,) = ask("node.create", {"workspace": workspace, "entities": [entity]})
    print_answer(made, lambda: f"added {result_text.line(made['name'])}  {result_text.sanitize(made['path'])}")


@node.command("show")
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=nodes)
@GRAPH_WORKSPACE
def node_show(names: tuple[str, ...], workspace: str) -> None:
    """Show entities with their numbered facts and all their relations.

    With --json: {"entities": [{"name", "entity_type", "summary", "tags", "aliases", "observations": [{"ordinal",
    "content"}], "observation_count", "created_at", "updated_at", "version", "id", "path"}], "relations": [{"from", "to",
    "relation_type"}]}."""
    result = ask("node.open", {"workspace": workspace, "names": list(names)})
    print_answer(result, lambda: format_nodes(result, color=has_color()))


@node.command("list")
@click.option("--type", "-t", "entity_type", help="Only entities of this type.")
@click.option("--tag", "--tags", "tag", help="Only entities with this tag or a tag nested under it.")
@click.option("--days", type=click.IntRange(1), help="Only entities that changed in this many days, the latest first.")
@limit_option("The most entities to list.", 1000)
@GRAPH_WORKSPACE
def node_list(**filters: Any) -> None:
    """List entities.

    With --json: a list with the fields of `memex node show` except "observations"; "relations" is a number."""
    limit = filters["limit"]
    nodes = cut_rows(ask("node.list", filters | {"limit": limit + 1}), limit, "entities")
    print_answer(nodes, lambda: table(nodes, color=has_color()))


@node.command("search")
@click.argument("query", nargs=-1, required=True)
@click.option("--in", "name", metavar="NAME", shell_complete=nodes, help="Only the facts of this entity.")
@click.option(
    "--mode",
    type=click.Choice(["embedding", "text"]),
    default="embedding",
    show_default=True,
    help="Search by meaning (embedding), under every perspective, or by words (text).",
)
@limit_option("The most entities to show.", 10, most=100)
@GRAPH_WORKSPACE
def node_search(query: tuple[str, ...], **options: Any) -> None:
    """Find entities by their facts, the best match first.

    With --json: a list with the fields of `memex node list` except "relations", plus "ordinal", "matched_observation",
    "matched_perspective" (null with --mode text) and "score"."""
    result = ask("node.search", {**options, "query": " ".join(query)})
    for sentence in result["degraded"]:
        print_message(f"memex: {result_text.sanitize(sentence)}")
    print_answer(result["hits"], lambda: format_hits(result["hits"], color=has_color()))


@node.command("rename")
@click.argument("name", shell_complete=nodes)
@click.argument("new_name")
@GRAPH_WORKSPACE
def node_rename(name: str, new_name: str, workspace: str) -> None:
    """Rename the entity NAME. Its file and the links to it stay unchanged; the old name remains an alias.

    To rename the file too, rename the note in Obsidian, which updates the links in all your notes."""
    made = ask("node.rename", {"workspace": workspace, "name": name, "new_name": new_name})
    print_answer(made, lambda: f"renamed {result_text.line(name)} to {result_text.line(made['name'])}")


@node.command("remove")
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=nodes)
@YES
@GRAPH_WORKSPACE
def node_remove(names: tuple[str, ...], yes: bool, workspace: str) -> None:
    """Delete entities: their notes, and the relations to them in other notes. `memex undo` restores them."""
    wanted = {"workspace": workspace, "names": list(names)}
    if not yes:
        entities = ask("node.open", wanted)["entities"]  # first, so that nobody confirms a name that is unknown
        shown = ", ".join(f"{result_text.line(it['name'])} ({result_text.line(it['path'], 200)})" for it in entities)
        confirm(f"Delete {shown}, and all relations to {'it' if len(entities) == 1 else 'them'}?", yes=yes)
    gone = ask("node.delete", wanted)
    kept = load_settings().git.past_days > 0
    print_answer(gone, lambda: format_deleted(gone, kept=kept))


@node.command("summary")
@click.argument("name", shell_complete=nodes)
@click.argument("text")
@GRAPH_WORKSPACE
def node_summary(name: str, text: str, workspace: str) -> None:
    """Set the summary of the entity NAME to TEXT."""
    made = ask("node.summary", {"workspace": workspace, "name": name, "summary": text})
    print_answer(made, lambda: f"{result_text.line(made['name'])}: {result_text.line(made['summary'] or '', 400)}")


@node.command("tag")
@click.argument("name", shell_complete=nodes)
@click.argument("tags", metavar="[TAG]...", nargs=-1)
@GRAPH_WORKSPACE
def node_tag(name: str, tags: tuple[str, ...], workspace: str) -> None:
    """Replace the tags of the entity NAME; without TAG, remove all its tags."""
    made = ask("node.tags", {"workspace": workspace, "name": name, "tags": list(tags)})
    print_answer(made, lambda: f"{result_text.line(made['name'])}: {_format_tags(made) or 'no tags'}")


@node.command("observe")
@click.argument("name", shell_complete=nodes)
@click.argument("contents", metavar="[TEXT]...", nargs=-1)
@GRAPH_WORKSPACE
def node_observe(name: str, contents: tuple[str, ...], workspace: str) -> None:
    """Add facts to the entity NAME, one for each TEXT; without TEXT, add one fact from stdin."""
    texts = list(contents) if contents and contents != ("-",) else [read_stdin()]
    made = ask("node.observe", {"workspace": workspace, "name": name, "contents": texts})
    print_answer(made, lambda: "\n".join(format_observations(made["added"])))


@node.command("replace")
@click.argument("name", shell_complete=nodes)
@click.argument("ordinal", type=click.IntRange(1))
@click.argument("content", metavar="[TEXT]", required=False)
@GRAPH_WORKSPACE
def node_replace(name: str, ordinal: int, content: str | None, workspace: str) -> None:
    """Replace the fact ORDINAL of the entity NAME with TEXT; without TEXT, with the text from stdin."""
    text = read_stdin() if content in (None, "-") else content
    made = ask("node.replace", {"workspace": workspace, "name": name, "ordinal": ordinal, "content": text})
    print_answer(made, lambda: "\n".join(format_observations([{"ordinal": ordinal, "content": made["new_content"]}])))


@node.command("forget")
@click.argument("name", shell_complete=nodes)
@click.argument("ordinals", metavar="ORDINAL...", nargs=-1, required=True, type=click.IntRange(1))
@GRAPH_WORKSPACE
def node_forget(name: str, ordinals: tuple[int, ...], workspace: str) -> None:
    """Delete facts of the entity NAME by their numbers; the other facts keep their numbers."""
    gone = ask("node.forget", {"workspace": workspace, "name": name, "ordinals": list(ordinals)})
    if not gone["deleted_ordinals"]:
        raise NotFound(
            f"{name} has no fact {_join_numbers(gone['not_found_ordinals'])}; to list its facts: memex node show"
        )
    for ordinal in gone["not_found_ordinals"]:
        print_message(f"memex: {result_text.line(name)} has no fact {ordinal}")
    print_answer(gone, lambda: f"deleted {_join_numbers(gone['deleted_ordinals'])}")


@click.group(cls=Group)
def relation() -> None:
    """Manage the relations between entities, which read as sentences: Ada collaborated_with Charles."""


@relation.command("add")
@click.argument("source", metavar="FROM", shell_complete=nodes)
@click.argument("kind", metavar="TYPE")
@click.argument("target", metavar="TO", shell_complete=nodes)
@GRAPH_WORKSPACE
def relation_add(source: str, kind: str, target: str, workspace: str) -> None:
    """Relate the entity FROM to the entity TO."""
    made = ask("relation.create", {"workspace": workspace, "relations": [_relation_fields(source, kind, target)]})
    there = made["already_existed"]
    print_answer(
        made, lambda: format_relation((made["created"] or there)[0]) + ("  (existed already)" if there else "")
    )


@relation.command("remove")
@click.argument("source", metavar="FROM", shell_complete=nodes)
@click.argument("kind", metavar="TYPE")
@click.argument("target", metavar="TO", shell_complete=nodes)
@GRAPH_WORKSPACE
def relation_remove(source: str, kind: str, target: str, workspace: str) -> None:
    """Delete a relation."""
    gone = ask("relation.delete", {"workspace": workspace, "relations": [_relation_fields(source, kind, target)]})
    if not gone["deleted"]:
        raise NotFound(f"{source} has no relation {kind!r} to {target}; to list its relations: memex relation list")
    print_answer(gone, lambda: f"deleted {format_relation({'from': source, 'relation_type': kind, 'to': target})}")


@relation.command("rename")
@click.argument("source", metavar="FROM", shell_complete=nodes)
@click.argument("kind", metavar="TYPE")
@click.argument("target", metavar="TO", shell_complete=nodes)
@click.argument("new", metavar="NEW_TYPE")
@GRAPH_WORKSPACE
def relation_rename(source: str, kind: str, target: str, new: str, workspace: str) -> None:
    """Change the type of a relation."""
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
@GRAPH_WORKSPACE
def relation_list(names: tuple[str, ...], kind: str | None, workspace: str) -> None:
    """List all relations, those of the entity NAME, or those between NAME and OTHER in both directions.

    With --json: [{"from", "to", "relation_type"}]."""
    if len(names) > 2:
        raise InvalidArgument("name at most two entities; put a name with spaces in quotes")
    edges = ask("relation.list", {"workspace": workspace, "names": list(names), "relation_type": kind})
    print_answer(edges, lambda: relations_table(edges, color=has_color()))


# Formats for people


def table(nodes: Sequence[Mapping[str, Any]], *, color: bool = False) -> str:
    """Format entities as a table."""
    rows = [(node["name"], node["entity_type"], node["observation_count"], node["summary"] or "") for node in nodes]
    return result_text.table(rows, ("name", "type", "facts", "summary"), color=color) if rows else "no entities"


def relations_table(edges: Sequence[Mapping[str, Any]], *, color: bool = False) -> str:
    """Format relations as a table."""
    rows = [(edge["from"], edge["relation_type"], edge["to"]) for edge in edges]
    return result_text.table(rows, ("from", "type", "to"), color=color) if rows else "no relations"


def format_relation(edge: Mapping[str, Any]) -> str:
    """Format a relation as a sentence."""
    return (
        f"{result_text.line(edge['from'])} —{result_text.line(edge['relation_type'])}→ {result_text.line(edge['to'])}"
    )


def format_deleted(gone: Mapping[str, Any], *, kept: bool) -> str:
    """Format the deleted notes, and the command that restores them. `kept`: whether Memex keeps deleted versions."""
    lines = [
        f"deleted {result_text.line(note['name'])}  {result_text.line(note['path'], 300)}  {note['id']}"
        for note in gone["notes"]
    ]
    return "\n".join([*lines, way_back(gone["undo"], kept=kept)])


def format_nodes(result: Mapping[str, Any], *, color: bool = False) -> str:
    """Format entities in full, then their relations."""
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
    """Format facts with their numbers; further lines of a fact are indented below its first."""
    lines = []
    for observation in observations:
        first, *more = result_text.sanitize(observation["content"]).split("\n")
        lines += [f"{observation['ordinal']:>4}  {first}", *(f"      {line}" for line in more)]
    return lines


def format_hits(results: Sequence[Mapping[str, Any]], *, color: bool = False) -> str:
    """Format search hits: each entity with its best matching fact."""
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
    """Format an entity's type in brackets; "" if its note names none."""
    return f"({result_text.line(node['entity_type'])})" if node["entity_type"] else ""


def format_time(text: str | None) -> str:
    """Format a time in the local zone; "never" for none."""
    return result_text.format_time(round(datetime.fromisoformat(text).timestamp() * 1000), None) if text else "never"


def _format_tags(node: Mapping[str, Any]) -> str:
    return " ".join(f"#{result_text.line(tag)}" for tag in node["tags"])


def _join_numbers(ordinals: Sequence[int]) -> str:
    return ", ".join(map(str, ordinals))


def _relation_fields(source: str, kind: str, target: str) -> dict[str, str]:
    return {"from_entity": source, "to_entity": target, "relation_type": kind}
