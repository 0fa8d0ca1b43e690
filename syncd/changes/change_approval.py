"""Plan what the approval of a proposed change does to its note, and how that is undone, from the files on disk now.

Laws, tested: neither the text of now nor the proposed one is lost: what does not fit together is a Conflict, with both in its
view. Nothing is written here, and no plan changes a property that the owner decides about."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from index.document_ids import sha256
from index.errors import Conflict, InvalidArgument, MemexError, NotFound, Unavailable
from index.names import base_name, fold
from syncd.changes.change_note import ProposedChange, read_change
from syncd.changes.proposed_text import decided_properties
from syncd.changes.three_way_merge import Merge, merge
from syncd.changes.unified_diff import DiffError, apply_hunks, compose_diff
from syncd.documents.file_names import numbered_names
from syncd.history.change_journal import Entry, FileChange, MovePlan, ReadVersion, note_step, require_bytes
from syncd.notes.front_matter import FrontmatterError, PropertyValue, decode, edit, encode, read_properties, split
from syncd.vault.location import locate
from syncd.vault.path_rules import is_below, is_note
from syncd.vault.vault import Vault

APPLY, UNAPPLY = "apply", "unapply"  # kinds in the journal
Fit: TypeAlias = Literal["fits", "merges", "conflict"]
NO_LINKS: Final[dict[str, list[Any]]] = {"relinked": [], "lost": [], "mentions": [], "unread": []}
VIEW: Final = 20_000  # characters of a three-way view
_MARKED: Final = re.compile(r"^<{7} now$.*?^>{7} proposed$", re.MULTILINE | re.DOTALL)
_LINE_END: Final = re.compile(rb"\r?\n")


@dataclass(frozen=True, slots=True)
class WeighedChange:
    """Holds how a proposed change fits its note: the note of now, the note after it, and the view of a conflict."""

    change: ProposedChange
    fit: Fit
    now: bytes
    after: bytes  # as `now` in a conflict
    view: str = ""  # the places that conflict, each as now, before and proposed

    @property
    def diff(self) -> str:
        """Return the diff that approving the change makes now."""
        return compose_diff(decode(self.now), decode(self.after), self.change.target)


@dataclass(frozen=True, slots=True)
class ChangePlans:
    """Plans changes of the notes of one vault. `read_version` returns the bytes of a note by their SHA-256, if they are kept."""

    vault: Vault
    inbox: str
    read_version: ReadVersion

    def weigh(self, raw: bytes) -> WeighedChange:
        """Return how the change in a capture with these bytes fits its note. Raises InvalidArgument or NotFound."""
        change = read_change(decode(raw))
        where = locate(change.target, self.inbox)
        if where.scope != "vault" or is_below(fold(change.target), {fold(self.inbox)}) or not is_note(change.target):
            raise InvalidArgument(f"{change.target[:200]!r} is not a note of the vault outside the inbox")
        try:
            now, _ = self.vault.read(change.target)
        except NotFound:
            raise NotFound(
                f"the note {change.target!r} does not exist any more: correct `target` in the proposal, or dismiss it"
            ) from None
        weighed = self._weigh(change, now)
        _check_decided(weighed)
        return weighed

    def plan(self, path: str, *, shown: str | None = None, tool: str = "promote") -> MovePlan:
        """Plan to apply the change in the capture at `path`, which is removed.

        `shown`: the SHA-256 of the capture that the owner saw. Raises Conflict if it is another one now, or if the note
        changed in the same lines."""
        raw, _ = self.vault.read(path)
        if shown is not None and sha256(raw) != shown:
            raise Conflict("the proposed change is not the one that was shown: look at it again, then decide")
        weighed = self.weigh(raw)
        target = weighed.change.target
        if weighed.fit == "conflict":
            raise Conflict(
                f"{target} has changed in the same lines since this was proposed: `memex review` shows all three versions; "
                "edit one of them, or dismiss the proposal",
                note=target,
                view=weighed.view,
            )
        properties = {key.casefold(): value for key, value in read_properties(split(decode(raw))[0]).items()}
        steps = [note_step(target, weighed.now, weighed.after), note_step(path, raw, None)]
        about = {
            "title": base_name(target).removesuffix(".md"),
            "origin": str(properties.get("source") or ""),
            "tool": tool,
        }
        return MovePlan(APPLY, str(properties.get("id") or ""), path, target, steps, about | NO_LINKS)

    def plan_return(self, entry: Entry, steps: list[FileChange]) -> MovePlan:
        """Plan to undo an applied change or an appended capture. Raises Conflict, or NotFound if a text is no longer kept.

        The note gets its lines back, and the proposal or capture returns to the inbox, where it waits for a decision."""
        by_path = {step.path: step for step in steps}
        before = require_bytes(by_path[entry.target].before, entry.target)
        after = require_bytes(by_path[entry.target].after, entry.target)
        proposal = require_bytes(by_path[entry.source].before, entry.source)
        try:
            now, _ = self.vault.read(entry.target)
        except NotFound:
            raise NotFound(
                f"the note {entry.target!r} does not exist any more, so its change can't be undone"
            ) from None
        undone = _without_change(now, before, after)
        if not undone.is_clean:
            raise Conflict(
                f"{entry.target} has changed in the same lines since the change was applied: edit it yourself",
                view=_conflict_view(undone.text),
            )
        path = self._free_path(entry.source)
        order = [note_step(path, None, _unmarked(proposal)), note_step(entry.target, now, undone.text)]
        linking = [step for step in steps if step.path not in (entry.source, entry.target) and self._is_as_left(step)]
        order += [note_step(step.path, step.after, step.before) for step in linking]
        about = {"title": base_name(entry.target).removesuffix(".md"), "tool": "undo"}
        links = NO_LINKS | {"relinked": [step.path for step in linking]}
        return MovePlan(UNAPPLY, entry.document_id, entry.target, path, order, about | links)

    def _is_as_left(self, step: FileChange) -> bool:
        """Return whether a note whose links were rewritten has not changed since."""
        with suppress(MemexError):  # then it stays as it is
            return step.before is not None and self.vault.read(step.path)[0] == step.after
        return False

    def _weigh(self, change: ProposedChange, now: bytes) -> WeighedChange:
        if sha256(now) == change.base:
            return WeighedChange(change, "fits", now, _applied(change, now))
        before = self.read_version(change.base, change.target) if change.base else None
        if before is None:  # it is no longer kept: the change still fits where its lines are
            return WeighedChange(change, "merges", now, _applied_by_lines(change, now))
        proposed = _applied(change, before)
        if now == proposed:
            return WeighedChange(change, "fits", now, now)
        try:
            merged = merge(now, before, proposed)
        except Unavailable:  # without Git, the change still fits where its lines are
            return WeighedChange(change, "merges", now, _applied_by_lines(change, now))
        if merged.is_clean:
            return WeighedChange(change, "merges", now, merged.text)
        return WeighedChange(change, "conflict", now, now, _conflict_view(merged.text))

    def _free_path(self, path: str) -> str:
        """Return a path for a proposal that returns: its own, or a numbered one if that is taken. Raises Conflict."""
        folder, _, name = path.rpartition("/")
        workspace = locate(path, self.inbox).workspace
        if workspace not in self.vault.list_folders(self.inbox):
            raise Conflict(
                f"the workspace {workspace!r} no longer exists; create it: memex workspace create {workspace}"
            )
        taken = {fold(existing) for existing in self.vault.list_names(folder)}
        return next(f"{folder}/{free}" for free in numbered_names(name, ".md") if fold(free) not in taken)


def _applied(change: ProposedChange, text: bytes) -> bytes:
    """Return the note with the change. Raises Conflict if the change does not fit it."""
    try:
        return encode(apply_hunks(change.hunks, decode(text)))
    except DiffError as error:
        raise _misfit(change, str(error)) from error


def _applied_by_lines(change: ProposedChange, now: bytes) -> bytes:
    """Return a note that has changed with the change, where the lines of the change are. Raises Conflict."""
    if not all(hunk.before for hunk in change.hunks):  # its line number means nothing in this text
        raise _misfit(change, "a part of it names no line of the note")
    return _applied(change, now)


def _misfit(change: ProposedChange, why: str) -> Conflict:
    return Conflict(
        f"the proposed change does not fit {change.target} as it is now: {why}; edit one of them, or dismiss the proposal",
        note=change.target,
    )


def _check_decided(weighed: WeighedChange) -> None:
    """Raise InvalidArgument if the change sets or removes a property that no agent may propose."""
    try:
        now, after = (decided_properties(decode(raw)) for raw in (weighed.now, weighed.after))
    except FrontmatterError as error:
        raise InvalidArgument(
            f"the properties of {weighed.change.target} can't be read, or couldn't be after it: {error}"
        ) from error
    if changed := sorted(key for key in {*now, *after} if now.get(key) != after.get(key)):
        raise InvalidArgument(
            f"the proposed change sets the property {changed[0]!r}: edit the note yourself if you want that"
        )


def _conflict_view(merged: bytes) -> str:
    """Return the conflicting places of a merged text, each with the three versions."""
    text = merged.decode("utf-8", "replace").replace("\r\n", "\n")
    return "\n\n".join(match[0] for match in _MARKED.finditer(text))[:VIEW]


def _without_change(now: bytes, before: bytes, after: bytes) -> Merge:
    """Return the text `now` without the change from `before` to `after`."""
    if now == after:
        return Merge(before, is_clean=True)
    added = after[len(before) :] if after.startswith(before) else b""
    if added.strip() and now.count(added) == after.count(added) == 1:
        left = _without_lines(*now.partition(added))
        if left is not None:  # a merge would refuse it if a line was written right below
            return Merge(left, is_clean=True)
    return merge(now, after, before)


def _without_lines(above: bytes, lines: bytes, below: bytes) -> bytes | None:
    """Return the text without `lines`; None if a line of the rest begins or ends within them."""
    line_end = _LINE_END.match(lines)
    is_open = bool(above) and not above.endswith(b"\n")  # the last line above has its end in `lines`
    continues = bool(below) and not _LINE_END.match(below)  # a line begins right below
    if (is_open and not line_end) or (continues and not lines.endswith(b"\n")):
        return None
    return above + (line_end[0] if line_end and is_open and continues else b"") + below


def _unmarked(proposal: bytes) -> bytes:
    """Return a proposal without the owner's tick, which would apply it again."""
    text = decode(proposal)
    try:
        names = {key.casefold(): key for key in read_properties(split(text)[0])}
        changes: dict[str, PropertyValue] = {names[name]: value for name, value in _RETURN.items() if name in names}
        return encode(edit(text, changes))
    except FrontmatterError:
        return proposal


_RETURN: Final[dict[str, PropertyValue]] = {"promote": False, "promote_problem": None}
