"""Plan the promotion of a capture from the files on disk now, or give the reason why it cannot be promoted.

Laws, tested: nothing is written here, and a destination is never an existing file."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from index.document_ids import sha256
from index.errors import Conflict, MemexError, NotFound
from index.model import Document, Record, Stat
from index.names import base_name, fold
from syncd.changes.change_approval import APPLY, UNAPPLY
from syncd.commits.commit_message import format_message
from syncd.commits.committer import DueCommit
from syncd.documents.file_names import known_ending, numbered_names, rename_instruction_file
from syncd.documents.owner_marks import read_marks
from syncd.git.repository import Repository
from syncd.history.change_journal import ChangeJournal, Entry, FileChange, MovePlan, move_steps, note_step
from syncd.notes.front_matter import FrontmatterError, decode, edit, encode, split
from syncd.notes.markdown_outline import is_open_ended
from syncd.promotion.link_updates import LinkUpdates, plan_link_updates
from syncd.promotion.promoted_note import (
    Problem,
    candidate_names,
    choose_folder,
    derive_other_id,
    promote_text,
    promoted_name,
    refusal_reason,
    replace_id,
    spell_like_existing,
    take_suggestions,
)
from syncd.promotion.vault_snapshot import VaultSnapshot
from syncd.sync.hand_edits import LOCKED_S
from syncd.vault.path_rules import join, objection, parent_folders

_UNLINKED: Final = re.compile(r'[<>:"|?*#^\[\]]')  # characters that names can't have on Windows, or in links
CHANGES: Final = (APPLY, "merge")  # the moves that change a note of the vault, and take the text from the inbox
# How the subject of a commit begins; for other kinds it begins with the kind.
_SUBJECTS: Final = {APPLY: "Apply a proposed change of", UNAPPLY: "Undo a change of"}


class TakenDestination(Problem):
    """Reports that a file at the destination already has the name."""

    def __init__(self, target: str) -> None:
        super().__init__(f"{target} already exists, and Memex does not overwrite it", target=target)
        self.target = target


@dataclass(frozen=True, slots=True)
class StoredFile:
    """Describes the stored file that moves with the note."""

    old: str
    new: str
    digest: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Describes the promotion of one capture."""

    document: Document
    raw: bytes  # current
    target: str
    text: bytes  # after promotion, before links are updated
    at: int  # epoch ms: when it was marked
    tool: str  # promote, mark
    chosen: str  # what chose the folder: you, rule, suggestion, setting
    id: str  # the note's id in the vault: the capture's own, unless a note there has it
    taken: tuple[str, ...] = ()  # suggested tags and links that the note gets
    stored: StoredFile | None = None

    @property
    def source(self) -> str:
        """Return the path of the capture."""
        return self.document.path

    @property
    def moves(self) -> dict[str, str]:
        """Return the files that move: old path → new path."""
        along = {self.stored.old: self.stored.new} if self.stored else {}
        return {self.source: self.target, **along}

    def steps(self, updates: LinkUpdates) -> list[FileChange]:
        """Return the file changes in order: first the new note, then the notes that link to it, then the removals."""
        text = updates.changes[self.source][1] if self.source in updates.changes else self.text
        steps = [note_step(self.target, None, text)]
        steps += [note_step(path, *raws) for path, raws in sorted(updates.changes.items()) if path != self.source]
        steps.append(note_step(self.source, self.raw, None))
        if self.stored:
            copied, gone = move_steps(self.stored.old, self.stored.new, self.stored.digest)
            steps = [copied, *steps, gone]
        return steps


def is_in_use(snapshot: VaultSnapshot, repo: Repository, path: str) -> bool:
    """Return whether somebody may still be editing a note, or Git works on the files.

    Raises if the note can't be read."""
    raw, stat = snapshot.vault.read(path)
    age, busy = time.time() - stat.mtime_ns / 1e9, repo.busy_reason()
    if 0 <= age < snapshot.settings.sync.adopt_s or (busy and not (busy.endswith(".lock") and age > LOCKED_S)):
        return True
    document = snapshot.parse(raw, path, stat)
    # A note that can't be changed never gets its pending edits.
    return document.writable and snapshot.sync.edits.is_pending(document)


def read_promotable(snapshot: VaultSnapshot, record: Record) -> tuple[Document, bytes]:
    """Read the capture. Raises Problem when it can't be promoted, or Conflict when it has just changed."""
    raw, stat = snapshot.vault.read(record.path)
    if sha256(raw) != record.digest:
        raise Conflict("the capture changed a moment ago; try again in a moment", retryable=True)
    document = snapshot.parse(raw, record.path, stat)
    if why := refusal_reason(document, read_marks(decode(raw))) or _id_problem(snapshot, document, raw):
        raise Problem(why)
    return document, raw


def make_plan(
    snapshot: VaultSnapshot,
    record: Record,
    *,
    tool: str,
    at: int,
    to: str | None = None,
    called: str | None = None,
    reserved: Mapping[str, str] | None = None,
    taken: Sequence[str] = (),
) -> Plan:
    """Plan the promotion of this capture. `to`, `called`: folder and name, if given; `reserved`: see `reserve_paths`.

    `taken`: those of its suggested tags and links that the note gets.

    Raises Problem, TakenDestination, or Conflict when the capture has just changed."""
    document, raw = read_promotable(snapshot, record)
    owner_marks, reserved = read_marks(decode(raw)), reserved or {}
    settings, name = snapshot.settings.promote, rename_instruction_file(base_name(record.path))[:-3]
    chosen, by, template = choose_folder(
        document, owner_marks, settings.rules, folder=settings.folder, inbox=snapshot.inbox, to=to
    )
    stem = promoted_name(document, template or settings.name, old_title=snapshot.keeps_old_title(record))
    folder = resolve_folder(snapshot, chosen, reserved)
    target = join(folder, f"{_choose_name(snapshot, folder, called or stem, name, reserved)}.md")
    stored = find_stored_file(
        snapshot, document, resolve_folder(snapshot, settings.attachments or folder, reserved), reserved
    )
    for path in (target, stored.new if stored else target):
        if wrong := objection(path, new=True):
            raise Problem(f"the path {path!r} {wrong}")
    id = choose_id(snapshot, document, raw)
    text = compose_text(raw, at, id, taken)
    return Plan(document, raw, target, text, at, tool, by, id, tuple(taken), stored)


def compose_text(raw: bytes, at: int, id: str, taken: Sequence[str]) -> bytes:
    """Return the bytes of the promoted note. Raises Problem if that is not possible with these suggestions, or at all."""
    try:
        return encode(promote_text(take_suggestions(decode(raw), taken), at, id=id))
    except FrontmatterError as error:
        raise Problem(f"its properties can't be changed line by line: {error}") from error


def choose_id(snapshot: VaultSnapshot, document: Document, raw: bytes, used: Collection[str] = ()) -> str:
    """Return the id of a capture in the vault: a different one if a note there has its id, or `used` contains it."""
    assert document.claimed_id is not None, "read_promotable refuses one without"
    there = (
        path for path in snapshot.notes.index.paths_claiming_id(document.claimed_id) if not snapshot.is_archived(path)
    )
    taken = document.claimed_id in used or any(there)
    return derive_other_id(document.claimed_id, raw) if taken else document.claimed_id


def free_id(
    snapshot: VaultSnapshot, text: bytes, target: str, changed: Mapping[str, tuple[bytes, bytes]]
) -> dict[str, tuple[bytes, bytes]]:
    """Return the changes so that a note which returns to `target` has its id: a capture that took the id gets another one.

    `changed` holds the changes planned so far. Raises Problem."""
    workspace, freed = snapshot.workspace_of(target), dict(changed)
    id = snapshot.parse(text, target, Stat(0, 0, 0)).claimed_id
    for path in snapshot.captures.index.paths_claiming_id(id) if id else ():
        if snapshot.workspace_of(path) == workspace:
            before, now = freed[path] if path in freed else (snapshot.vault.read(path)[0],) * 2
            try:
                freed[path] = before, encode(replace_id(decode(now), derive_other_id(id or "", before)))
            except FrontmatterError as error:
                raise Problem(
                    f"{path} now has the same `id`, and its properties can't be changed: repair them"
                ) from error
    return freed


def _id_problem(snapshot: VaultSnapshot, document: Document, raw: bytes) -> str:
    """Return why the capture's id, or the lack of it, prevents its promotion; "" = it does not."""
    if document.claimed_id is None:
        if not raw.strip():
            return "it is empty: write something into it"
        try:
            edit(decode(raw), {"id": "new"})
        except FrontmatterError as error:
            return f"its properties can't be changed: {error}"
        raise Conflict(
            "the capture has no id yet; it gets one once it is quiet, so try again in a moment", retryable=True
        )
    captures = snapshot.captures.index.paths_claiming_id(document.claimed_id)
    others = [path for path in captures if path != document.path and snapshot.workspace_of(path) == document.workspace]
    return f"{others[0]} has the same `id`: remove it from one of the two" if others else ""


def refuse_unseen_change(journal: ChangeJournal, path: str, raw: bytes, shown: str | None) -> None:
    """Raise Conflict if a capture no longer is the one that its owner saw, except for links that Memex updated since.

    `shown`: the SHA-256 of that capture, None if unknown."""
    digest = sha256(raw)
    if shown not in (None, digest) and not journal.has_relinked(path, shown, digest):
        raise Conflict("the capture changed after it was shown: look at it again, then decide")


def reserve_paths(reserved: dict[str, str], plan: Plan) -> None:
    """Reserve the paths that this plan creates, folders included, for the plans that follow: folded → as spelled."""
    for path in plan.moves.values():
        for made in (*parent_folders(path)[1:], path):
            reserved.setdefault(fold(made), made)


def resolve_folder(snapshot: VaultSnapshot, folder: str, reserved: Mapping[str, str]) -> str:
    """Return the folder as it is spelled on disk, or in a reserved path.

    Raises Problem when no note can be put there."""
    done = ""
    for part in folder.split("/") if folder else ():
        try:
            there = spell_like_existing(part, known := snapshot.vault.list_folders(done))
        except MemexError as error:
            raise Problem(f"the folder {folder!r} can't be used: {error.message}") from error
        if there not in known:
            there = reserved.get(fold(join(done, part)), part).rpartition("/")[2]
        if there not in known and (wrong := _UNLINKED.search(part)):
            raise Problem(
                f"the new folder {part!r} can't have {wrong[0]} in its name: links or other systems would break"
            )
        done = join(done, there)
    if done and snapshot.vault.ignores(done, folder=True):
        raise Problem(
            f"the folder {done!r} is excluded from the index (vault.ignore), so searches would not find the note"
        )
    if done:
        above, _, last = done.rpartition("/")
        if last in snapshot.vault.list_names(above) and last not in snapshot.vault.list_folders(above):
            raise Problem(f"the folder {done!r} can't be used: it is a link or a file")
    return done


def _choose_name(snapshot: VaultSnapshot, folder: str, wanted: str, current: str, reserved: Mapping[str, str]) -> str:
    """Return a base name that no other note of the vault has. Raises TakenDestination when the destination has it."""
    there = {fold(name): name for name in snapshot.vault.list_names(folder)}
    left_out = {fold(name): name for name in snapshot.sync.sparse_files.names_in(folder)}
    for name in candidate_names(wanted, current):
        file = fold(f"{name}.md")
        if file in left_out and file not in there:
            if name == wanted:
                raise Problem(
                    f"{join(folder, left_out[file])} is in Git, and the sparse checkout leaves it out: promote to another folder, or add "
                    "this one with `git sparse-checkout add`"
                )
        elif file in there or fold(join(folder, f"{name}.md")) in reserved:
            if name == wanted:
                raise TakenDestination(join(folder, there.get(file, f"{name}.md")))
        elif fold(name) == fold(current) or not snapshot.sync.is_name_taken(fold(name)):
            return name
    raise AssertionError


def find_stored_file(
    snapshot: VaultSnapshot, document: Document, folder: str, reserved: Mapping[str, str]
) -> StoredFile | None:
    """Return the file that moves with the note of its text, unless another note holds its text too."""
    old, catalog = document.file, snapshot.captures.index.catalog
    if old is None or {record.path for record in catalog.records_of_file(old)} - {document.path}:
        return None
    try:
        digest = snapshot.vault.digest_file(old).digest
    except NotFound:
        return None
    own_name = base_name(old)
    current = rename_instruction_file(own_name)
    there = {fold(name) for name in snapshot.names_in(folder)}
    for name in numbered_names(current, known_ending(current)):
        new = join(folder, name)
        if fold(name) in there or fold(new) in reserved:
            continue
        if name == own_name or not snapshot.sync.is_name_taken(fold(name)):
            return StoredFile(old, new, digest)
    raise AssertionError


def choose_free_name(snapshot: VaultSnapshot, target: str, *, current: str = "") -> str:
    """Return a base name for a note at `target` that no other note of the vault has; `current`: its base name elsewhere."""
    folder, _, name = target.rpartition("/")
    there = {fold(existing) for existing in snapshot.names_in(folder)}
    return next(
        stem
        for stem in numbered_names(name[:-3], "")
        if fold(f"{stem}.md") not in there
        and (fold(stem) == fold(current) or not snapshot.sync.is_name_taken(fold(stem)))
    )


def plan_merge(snapshot: VaultSnapshot, record: Record, target: str) -> MovePlan:
    """Plan to append the text of a capture to the note at `target`.

    Raises Problem, or Conflict when it has just changed."""
    document, raw = read_promotable(snapshot, record)
    assert document.claimed_id is not None, "read_promotable refuses one without"
    if document.file:
        raise Problem(
            "it holds the text of a stored file, and Memex can't append that text: promote it under another name"
        )
    there, _ = snapshot.vault.read(target)
    body = split(decode(raw))[1]
    updates = plan_link_updates(
        snapshot.vault, {record.path: target}, texts={record.path: encode(body)}, inbox=snapshot.inbox
    )
    if record.path in updates.changes:
        body = decode(updates.changes[record.path][1])
    changed = {path: pair for path, pair in updates.changes.items() if path not in (record.path, target)}
    text = decode(updates.changes[target][1] if target in updates.changes else there)
    end = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text or text.endswith(end * 2) else end if text.endswith(end) else end * 2
    if body and is_open_ended(split(text)[1]):
        raise Problem(
            f"{target} ends in an unclosed comment or block of code, HTML or math: close it, and tick the box again"
        )
    steps = [note_step(target, there, encode(f"{text}{gap}{body}"))]
    steps += [note_step(path, *pair) for path, pair in sorted(changed.items())]
    steps.append(note_step(record.path, raw, None))
    about = {
        "title": document.title,
        "origin": document.source or "",
        "tool": "merge",
        **describe_links(updates, sorted(changed)),
    }
    return MovePlan("merge", document.claimed_id, record.path, target, steps, about)


def describe_links(updates: LinkUpdates, changed: Sequence[str]) -> dict[str, Any]:
    """Return the link changes to report, as JSON values; `changed` are the notes whose links were updated."""
    pairs = {"lost": updates.lost, "mentions": updates.mentions}
    lists = {name: [list(pair) for pair in values] for name, values in pairs.items()}
    return {"relinked": list(changed), **lists, "unread": list(updates.unread)}


def format_commit_message(entry: Entry) -> str:
    """Format the message for the commit of a move."""
    about = json.loads(entry.about)
    lines = [f"{entry.source} → {entry.target}"]
    if relinked := about.get("relinked"):
        lines.append(f"links in {len(relinked)} other file{'s' if len(relinked) > 1 else ''}")
    trailers = (
        ("Capture-Id", entry.document_id),
        ("Source", about.get("origin", "")),
        ("Approved-By", entry.by),
        ("Memex-Tool", about.get("tool", entry.kind)),
    )
    subject = _SUBJECTS.get(entry.kind, entry.kind.capitalize())
    return format_message(f"{subject} {about.get('title', '')}", lines, trailers)


def make_due_commit(journal: ChangeJournal, entry: Entry, steps: Sequence[FileChange]) -> DueCommit | None:
    """Return the commit of a move; None when the capture exists again.

    Raises Unavailable when the files can't be read."""
    digests: dict[str, str] = {}
    for step in steps:
        try:
            if journal.current_digest(step) == step.now:
                digests[step.path] = step.now
        except MemexError:
            if step.path == entry.source:
                raise
    if entry.source not in digests:
        return None
    # Moved, new and removed files are committed whole; elsewhere a person's edits stay out.
    approved = {step.path for step in steps if step.twin or not step.was or not step.now}
    if entry.kind not in (*CHANGES, UNAPPLY):
        approved |= {entry.source, entry.target}
    return DueCommit(digests, format_commit_message(entry), approved)
