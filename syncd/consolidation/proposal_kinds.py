"""Plan the proposals that change captures, from the files as they are now, and carry out those that change entities.

Law, tested: every link to a capture that moves is updated to its new path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from index.errors import Conflict, NotFound
from index.graph.vertex import Edge
from index.model import Filter, Record
from index.names import fold, note_name, pluralize
from syncd.consolidation.note_merge import mark_superseded, merge_text
from syncd.consolidation.proposal_plans import (
    FileKind,
    GraphKind,
    Plan,
    Proposed,
    ReadCapture,
    edit_capture,
    read_capture,
    read_proposed,
)
from syncd.consolidation.tag_rename import rename_tag
from syncd.documents.owner_marks import read_marks
from syncd.history.change_journal import FileChange, note_step
from syncd.links.link_resolution import Paths
from syncd.notes.front_matter import FrontmatterError, decode, encode
from syncd.promotion.link_updates import plan_link_updates
from syncd.promotion.vault_snapshot import VaultSnapshot
from syncd.review.archive_rules import archive_path

if TYPE_CHECKING:
    from syncd.graph.nodes import Nodes

PAGE: Final = 500  # notes read from the index at a time


def proposal_kinds(snapshot: VaultSnapshot, nodes: Callable[[str], Nodes]) -> tuple[FileKind | GraphKind, ...]:
    """Return the kinds of proposals. `nodes` returns the entities of a workspace."""
    plans = {"merge-duplicates": merge, "tag-merge": replace_tag, "archive": archive}
    return (
        *(FileKind(name, partial(plan, snapshot)) for name, plan in plans.items()),
        GraphKind("relate", partial(relate, snapshot, nodes), "Relate: {}"),
        GraphKind("summary", partial(summarize, snapshot, nodes), "Write the summary of an entity"),
    )


def merge(snapshot: VaultSnapshot, proposed: Proposed) -> Plan:
    """Plan to add the missing text of the second capture to the first, and to archive the second."""
    kept, copy = read_proposed(snapshot, proposed)
    text = edit_capture(kept, merge_text, decode(kept.raw), decode(copy.raw), (kept.document, copy.document))
    aside = edit_capture(copy, mark_superseded, decode(copy.raw), _shortest_link(snapshot, kept.path, copy.path))
    steps, place = _plan_archiving(snapshot, copy, {kept.path: text, copy.path: aside}, {kept.path: kept.raw})
    message = f"{kept.name} stays; the other is now at {place}"
    return Plan(steps, message, f"Merge {copy.name} into {kept.name}", proposed["ids"])


def archive(snapshot: VaultSnapshot, proposed: Proposed) -> Plan:
    """Plan to archive a capture."""
    (capture,) = read_proposed(snapshot, proposed)
    steps, place = _plan_archiving(snapshot, capture, {}, {})
    return Plan(steps, f"it is now at {place}", f"Archive {capture.name}", proposed["ids"])


def replace_tag(snapshot: VaultSnapshot, proposed: Proposed) -> Plan:
    """Plan to replace a tag by another in all captures of a workspace."""
    into, tag = proposed["would"][:2]
    steps, left = [], 0
    for record in _list_tagged(snapshot, proposed["workspace"], tag):
        capture = read_capture(snapshot, record)
        try:
            after = encode(rename_tag(decode(capture.raw), capture.document, tag, into))
        except FrontmatterError:
            left += 1
            continue
        if after != capture.raw:
            steps.append(note_step(record.path, capture.raw, after))
    if not steps:
        raise Conflict(
            "no capture has the tag outside of headings any more" if not left else "Memex could not change any capture"
        )
    rest = (
        f"; {pluralize(left, 'capture')} not changed, because their properties can't be changed line by line"
        if left
        else ""
    )
    return Plan(steps, f"{pluralize(len(steps), 'capture')} changed{rest}", f"Replace the tag {tag} with {into}")


def relate(snapshot: VaultSnapshot, nodes: Callable[[str], Nodes], proposed: Proposed) -> str:
    """Relate two entities."""
    graph = nodes(proposed["workspace"])
    source, target = (_node_name(snapshot, graph, proposed["workspace"], id) for id in proposed["ids"])
    graph.add_relations([Edge(source, target, proposed["would"][0])])
    return f"{source} {proposed['would'][0]} {target}"


def summarize(snapshot: VaultSnapshot, nodes: Callable[[str], Nodes], proposed: Proposed) -> str:
    """Write the summary of an entity, unless the entity has changed since the draft."""
    graph = nodes(proposed["workspace"])
    (id,), (text,) = proposed["ids"], proposed["would"]
    vertex = graph.get(_node_name(snapshot, graph, proposed["workspace"], id))
    if vertex.summary != text:
        if vertex.changed_at != proposed["changed_at"]:
            raise Conflict("the entity has changed since the proposal")
        graph.set_summary(vertex.name, text)
    return "the summary is written"


def _plan_archiving(
    snapshot: VaultSnapshot, capture: ReadCapture, texts: Mapping[str, bytes], before: Mapping[str, bytes]
) -> tuple[list[FileChange], str]:
    """Return the steps that move a capture into the archive and update links to it, and its new path.

    `texts` are the new bytes of notes that change anyway."""
    if capture.record.type != "note":
        raise Conflict(f"{capture.name} is no longer a plain note")
    if read_marks(decode(capture.raw)).promote:
        raise Conflict(f"{capture.name} is marked for promotion")
    stem = archive_path(capture.path, snapshot.inbox)[: -len(".md")]
    target, number = f"{stem}.md", 1
    while snapshot.vault.exists(target):
        number += 1
        target = f"{stem} {number}.md"
    relinked = plan_link_updates(snapshot.vault, {capture.path: target}, texts=texts, inbox=snapshot.inbox)
    after = dict(texts) | {path: new for path, (_, new) in relinked.changes.items()}
    was = {path: old for path, (old, _) in relinked.changes.items()} | dict(before)
    steps = [note_step(target, None, after.pop(capture.path, capture.raw))]
    steps += [note_step(path, was[path], new) for path, new in sorted(after.items()) if was[path] != new]
    return [*steps, note_step(capture.path, capture.raw, None)], target


def _list_tagged(snapshot: VaultSnapshot, workspace: str, tag: str) -> list[Record]:
    index, records, cursor = snapshot.captures.index, list[Record](), None
    while True:
        page, cursor = index.list_recent(Filter(workspace=workspace, tags=(tag,)), PAGE, cursor)
        records += page
        if cursor is None:
            return sorted(records, key=lambda record: record.path)


def _shortest_link(snapshot: VaultSnapshot, path: str, source: str) -> str:
    """Return the shortest link that leads from one note to another."""
    name = note_name(path)
    paths = [other for scope_index in (snapshot.captures, snapshot.notes) for other in list(scope_index.index.manifest)]
    near = Paths(other for other in paths if fold(other).endswith(f"/{fold(name)}.md"))
    return name if near.resolve(name, source) == path else path.removesuffix(".md")


def _node_name(snapshot: VaultSnapshot, nodes: Nodes, workspace: str, id: str) -> str:
    record = snapshot.captures.index.record(id, workspace)
    vertex = nodes.graph.vertex_at(record.path) if record else None
    if vertex is None:
        raise NotFound("an entity of this proposal no longer exists")
    return vertex.name
