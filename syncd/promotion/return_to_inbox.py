"""Plan the return of a promoted note to the inbox, from the journal and the files on disk now.

Law, tested: a note that nobody has edited since becomes what it was, byte for byte, except for its promotion mark;
an edited note keeps its edits. Nothing is written here."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from index.errors import Conflict, NotFound
from index.model import Record
from index.names import fold
from syncd.history.change_journal import ChangeJournal, Entry, FileChange, MovePlan, move_steps, note_step, sha256
from syncd.indexes.note_lookup import choose, find_candidates
from syncd.notes.front_matter import FrontmatterError, decode, encode
from syncd.promotion.link_updates import plan_link_updates
from syncd.promotion.plan import describe_links, free_id
from syncd.promotion.promoted_note import Problem, candidate_names, restore_capture
from syncd.promotion.vault_snapshot import VaultSnapshot
from syncd.vault.path_rules import join

STANDING: Final = ("promote", "unpromote")  # kinds in the journal, of which the last one tells where a note belongs


def plan_return(snapshot: VaultSnapshot, journal: ChangeJournal, reference: str) -> MovePlan:
    """The way back of the promoted note of this id, or at this path. Raises NotFound, Problem or Conflict."""
    entry, path = _find_promotion(snapshot, journal, reference)
    raw, _ = snapshot.vault.read(path)
    steps = {step.path: step for step in journal.steps(entry.seq)}
    was, made = steps[entry.source].before, steps[entry.target].after
    assert was is not None, "a promotion ends with the removal of the capture"
    assert made is not None, "and makes the note before"
    try:
        text = encode(restore_capture(decode(raw), decode(was), decode(made)))
    except FrontmatterError as error:
        raise Problem(f"the properties of {path} can't be changed line by line: {error}") from error
    target = _return_path(snapshot, entry, path)
    exact = raw == made and path == entry.target and target == entry.source
    files = _returnable_files(snapshot, list(steps.values()))
    moves = {path: target} | {step.path: step.twin for step in files}
    updates = plan_link_updates(snapshot.vault, moves, texts={path: text}, inbox=snapshot.inbox)
    if not exact and path in updates.changes:
        text = updates.changes[path][1]
    changed = {other: pair for other, pair in updates.changes.items() if other != path}
    if exact:
        changed |= _restorable_notes(snapshot, steps.values(), {entry.source, entry.target})
    changed = free_id(snapshot, text, target, changed)
    order = [note_step(target, None, text)]
    order += [note_step(other, *pair) for other, pair in sorted(changed.items())]
    order.append(note_step(path, raw, None))
    for step in files:
        copied, gone = move_steps(step.path, step.twin, journal.current_digest(step))
        order = [order[0], copied, *order[1:], gone]
    about = {
        "title": target.rpartition("/")[2][:-3],
        "tool": "unpromote",
        **describe_links(updates, sorted(changed)),
    }
    return MovePlan("unpromote", entry.document_id, path, target, order, about)


def _find_promotion(snapshot: VaultSnapshot, journal: ChangeJournal, reference: str) -> tuple[Entry, str]:
    """The promotion that is to be taken back, and where the note is now."""
    index = snapshot.notes.index

    def is_promoted(record: Record) -> bool:
        return (
            not snapshot.is_archived(record.path)
            and _current_promotion(journal, index.manifest[record.path].id) is not None
        )

    candidate = choose(reference, find_candidates([index], reference, is_promoted))
    id = index.manifest[candidate.path].id if candidate else reference
    last = _current_promotion(journal, id)
    if last is None:
        raise NotFound(f"{reference[:200]!r} is no note that was promoted here; memex log tells what became of a note")
    paths = [path for path in index.paths_claiming_id(id) if not snapshot.is_archived(path)]
    if len(paths) > 1 and last.target not in paths:
        raise Problem(f"{len(paths)} notes have the `id` {id}: take it out of all but one", paths=paths[:10])
    path = last.target if last.target in paths or not paths else paths[0]
    if snapshot.vault.stat(path) is None:
        raise NotFound(f"the promoted note is not at {path} any more; put it back, or give it its `id` again")
    return last, path


def _current_promotion(journal: ChangeJournal, id: str) -> Entry | None:
    """The promotion of that id that was not taken back; what another note of that id went through is none."""
    entries = (
        entry
        for entry in reversed(journal.entries_of(id))
        if entry.state in ("done", "torn") and entry.kind in STANDING
    )
    last = next(entries, None)
    return last if last is not None and last.kind == "promote" else None


def _return_path(snapshot: VaultSnapshot, entry: Entry, path: str) -> str:
    """Where the note goes: to where it was, or beside it under another name where that is taken."""
    folder, _, name = entry.source.rpartition("/")
    workspace = folder.removeprefix(f"{snapshot.inbox}/").partition("/")[0]
    if workspace not in snapshot.vault.list_folders(snapshot.inbox):
        raise Conflict(f"the workspace {workspace!r} is no longer there: memex workspace create {workspace}")
    there = {fold(existing) for existing in snapshot.vault.list_names(folder)}
    here = fold(path.rpartition("/")[2])
    for stem in candidate_names(name[:-3], name[:-3]):
        file = fold(f"{stem}.md")
        if file not in there and (file == here or not snapshot.sync.is_name_taken(fold(stem))):
            return join(folder, f"{stem}.md")
    raise AssertionError


def _returnable_files(snapshot: VaultSnapshot, steps: Sequence[FileChange]) -> list[FileChange]:
    """The stored files that went along and can come back: they are there, and their old place is free."""
    return [
        step
        for step in steps
        if step.twin
        and step.now
        and snapshot.vault.stat(step.path) is not None
        and not snapshot.vault.exists(step.twin)
    ]


def _restorable_notes(snapshot: VaultSnapshot, steps: Any, excluded: set[str]) -> dict[str, tuple[bytes, bytes]]:
    """The notes that were rewritten and that nobody has touched since: what they hold, and what they held."""
    changes = {}
    for step in steps:
        if step.twin or step.path in excluded or step.before is None or step.after is None:
            continue
        with suppress(NotFound):
            raw, _ = snapshot.vault.read(step.path)
            if sha256(raw) == step.now:
                changes[step.path] = step.after, step.before
    return changes
