"""Plan the return of a promoted note to the inbox, from the journal and the files on disk now.

Laws, tested: a note that nobody has edited since gets its old bytes back, except for its promotion mark; an edited
note keeps its edits. Nothing is written here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from index.document_ids import sha256
from index.errors import Conflict, NotFound
from index.model import Record
from index.names import note_name
from syncd.history.change_journal import (
    ChangeJournal,
    Entry,
    FileChange,
    MovePlan,
    move_steps,
    note_step,
    require_bytes,
)
from syncd.indexes.note_lookup import choose, find_candidates
from syncd.notes.front_matter import FrontmatterError, decode, encode
from syncd.promotion.link_updates import plan_link_updates
from syncd.promotion.plan import choose_free_name, describe_links, free_id
from syncd.promotion.promoted_note import HINDERING, Problem, restore_capture
from syncd.promotion.vault_snapshot import VaultSnapshot
from syncd.sync.hand_edits import TORN
from syncd.vault.path_rules import join

STANDING: Final = ("promote", "unpromote")  # kinds in the journal; the last such entry says where a note belongs


def plan_return(
    snapshot: VaultSnapshot,
    journal: ChangeJournal,
    reference: str,
    complete_steps: Callable[[Entry, Collection[str] | None], list[FileChange]],
) -> MovePlan:
    """Plan the return of the promoted note with this id or path. Raises NotFound, Problem or Conflict."""
    entry, path = _find_promotion(snapshot, journal, reference)
    raw = _read_promoted(snapshot, entry, path)
    steps = {step.path: step for step in complete_steps(entry, {entry.source, entry.target})}
    # After a drag, the note had the capture's bytes, and the journal knows no digest of the capture.
    kept = next((step.before for step in (steps[entry.source], steps[entry.target]) if step.before is not None), None)
    was, made = require_bytes(kept, entry.source), require_bytes(steps[entry.target].after, entry.target)
    try:
        text = encode(restore_capture(decode(raw), decode(was), decode(made)))
    except FrontmatterError as error:
        raise Problem(f"the properties of {path} can't be changed line by line: {error}") from error
    target = _return_path(snapshot, entry, path)
    exact = raw == made and path == entry.target and target == entry.source
    files = _returnable_files(snapshot, journal, list(steps.values()))
    moves = {path: target} | {step.path: step.twin for step in files}
    updates = plan_link_updates(snapshot.vault, moves, texts={path: text}, inbox=snapshot.inbox)
    if not exact and path in updates.changes:
        text = updates.changes[path][1]
    changed = {other: pair for other, pair in updates.changes.items() if other != path}
    if exact:
        changed |= _restorable_notes(snapshot, complete_steps(entry, None), {entry.source, entry.target})
    changed = free_id(snapshot, text, target, changed)
    order = [note_step(target, None, text)]
    order += [note_step(other, *pair) for other, pair in sorted(changed.items())]
    order.append(note_step(path, raw, None))
    for step in files:
        copied, gone = move_steps(step.path, step.twin, journal.current_digest(step))
        order = [order[0], copied, *order[1:], gone]
    about = {"title": note_name(target), "tool": "unpromote", **describe_links(updates, sorted(changed))}
    return MovePlan("unpromote", entry.document_id, path, target, order, about)


def _find_promotion(snapshot: VaultSnapshot, journal: ChangeJournal, reference: str) -> tuple[Entry, str]:
    """Return the promotion to undo, and the current path of the note."""
    index = snapshot.notes.index
    candidate = choose(reference, find_candidates([index], reference, partial(is_promoted, snapshot, journal)))
    id = index.manifest[candidate.path].id if candidate else reference
    last = _current_promotion(journal, id)
    if last is None:
        raise NotFound(f"{reference[:200]!r} is not a promoted note; `memex log` shows the history of a note")
    paths = [path for path in index.paths_claiming_id(id) if not snapshot.is_archived(path)]
    if len(paths) > 1 and last.target not in paths:
        raise Problem(f"{len(paths)} notes have the `id` {id}: remove it from all but one", paths=paths[:10])
    path = last.target if last.target in paths or not paths else paths[0]
    return last, path


def _read_promoted(snapshot: VaultSnapshot, entry: Entry, path: str) -> bytes:
    """Return the bytes of the promoted note. Raises NotFound if another note is at its path: it must not enter the inbox."""
    lost = NotFound(f"the promoted note is not at {path} any more; put it back, or give it its `id` again")
    if snapshot.vault.stat(path) is None:
        raise lost
    raw, stat = snapshot.vault.read(path)
    document = snapshot.parse(raw, path, stat)
    if torn := next((defect.name for defect in document.defects if defect.name in TORN), None):
        raise Problem(HINDERING[torn])
    if document.claimed_id != entry.document_id:
        raise Problem(HINDERING["bad-frontmatter"]) if not document.writable else lost
    return raw


def is_promoted(snapshot: VaultSnapshot, journal: ChangeJournal, record: Record) -> bool:
    """Return whether a note of the vault is there by a promotion that was not undone."""
    entry = snapshot.notes.index.manifest.get(record.path)
    return bool(entry and not snapshot.is_archived(record.path) and _current_promotion(journal, entry.id))


def _current_promotion(journal: ChangeJournal, id: str) -> Entry | None:
    """Return the promotion of this id that was not undone, if promoting was the last action on it."""
    entries = (
        entry
        for entry in reversed(journal.entries_of(id))
        if entry.state in ("done", "torn") and entry.kind in STANDING
    )
    last = next(entries, None)
    return last if last is not None and last.kind == "promote" else None


def _return_path(snapshot: VaultSnapshot, entry: Entry, path: str) -> str:
    """Return the path to which the note returns: its old path, or a numbered name beside it if that is taken."""
    folder = entry.source.rpartition("/")[0]
    workspace = folder.removeprefix(f"{snapshot.inbox}/").partition("/")[0]
    if workspace not in snapshot.vault.list_folders(snapshot.inbox):
        raise Conflict(f"the workspace {workspace!r} no longer exists; create it: memex workspace create {workspace}")
    return join(folder, f"{choose_free_name(snapshot, entry.source, current=note_name(path))}.md")


def _returnable_files(snapshot: VaultSnapshot, journal: ChangeJournal, steps: Sequence[FileChange]) -> list[FileChange]:
    """Return the stored files that moved with the note and are not back yet. Raises Conflict if another file took an old path.

    The note would return with a link to that file."""
    left = [step for step in steps if step.twin and not step.now]
    if taken := next((step.path for step in left if journal.current_digest(step) not in ("", step.was)), None):
        raise Conflict(f"{taken} is another file now; rename or move it, then try again")
    vault = snapshot.vault
    return [
        step
        for step in steps
        if step.twin and step.now and vault.stat(step.path) is not None and not vault.exists(step.twin)
    ]


def _restorable_notes(
    snapshot: VaultSnapshot, steps: Sequence[FileChange], excluded: set[str]
) -> dict[str, tuple[bytes, bytes]]:
    """Return the notes that the promotion rewrote and nobody has changed since, with their bytes now and before the promotion."""
    changes = {}
    for step in steps:
        if step.twin or step.path in excluded or step.before is None or step.after is None:
            continue
        with suppress(NotFound):
            raw, _ = snapshot.vault.read(step.path)
            if sha256(raw) == step.now:
                changes[step.path] = step.after, step.before
    return changes
