"""Make the selection for a commit: Memex's own writes go in; a person's edits and ignored files stay out.

Law, tested: a file is committed only if the audit log leads from its bytes in HEAD to its current bytes, if nobody
has staged other content for it, and if it looks neither like a secret nor like an unfinished merge."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from index.errors import MemexError
from index.timings import now_ms
from syncd.commits.commit_builder import CommitBuilder, Content, FilesRefused
from syncd.commits.own_changes import trace_steps
from syncd.git.repository import GitFailed
from syncd.history.audit_log import AuditLog
from syncd.history.digest_chain import Entry
from syncd.notes import secret_patterns
from syncd.notes.front_matter import FrontmatterError, decode, has_merge_conflict, read_properties, split
from syncd.vault.path_rules import is_note, objection, parent_folders

FRESH_MS: Final = 60_000  # an entry this young may not be carried out yet
# Why a path stays uncommitted, in words that follow "kept local:".
SECRET, MARKERS, IGNORED, STAGED, NESTED, UNREADABLE, ODD, REFUSED, LINE_END = (
    "it seems to hold a secret",
    "it contains the markers of an unfinished merge",
    "a .gitignore excludes it",
    "you have staged other content for it",
    "it belongs to a nested repository",
    "it can't be read now",
    "Git has something other than a file at its path, or something other than a folder above its path",
    "Git can't add it, perhaps because a filter's program is not on the daemon's PATH; `git add` of the file shows why",
    "its name contains a line end",
)


@dataclass(slots=True)
class CommitSelection:
    """Holds which paths Memex may commit, and the outcome for the others."""

    ours: dict[str, list[Entry]] = field(default_factory=dict)  # the log entries that led to its bytes, newest first
    contents: dict[str, Content] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)  # why each path stays local
    edited: list[str] = field(default_factory=list)  # edited by a person
    unsettled: set[str] = field(default_factory=set)  # check again soon


def select_changes(
    builder: CommitBuilder,
    audit: AuditLog,
    now: Mapping[str, str | None],
    content: Callable[[str, str], Content],
    *,
    vault: Path,
    inbox: str,
    approved: Collection[str] = (),
) -> CommitSelection:
    """Sort these paths by their content `now`: a digest, "" = no file, None = unknown. `content` reads a file.

    A person has `approved` these paths to be committed whole, their own edits included."""
    selection = CommitSelection()
    fit = {
        path: digest for path, digest in now.items() if digest is not None and not objection(path) and "\n" not in path
    }
    selection.kept = {path: LINE_END if "\n" in path else UNREADABLE for path in now if path not in fit}
    blobs = builder.read_blobs(fit)
    selection.kept |= {path: ODD for path, blob in blobs.items() if blob.kind != "blob"}
    blobs = {path: blob for path, blob in blobs.items() if blob.kind == "blob"}
    heads = {path: {""} for path in fit} | {path: set(blob.digests) for path, blob in blobs.items()}
    _separate_edited(selection, audit, fit, heads, approved)
    for path in [path for path in selection.edited if path in blobs]:
        try:  # the file may differ from the blob and still be what Git checked out
            heads[path].add(builder.checkout_digest(path, blobs[path]))
        except FilesRefused:
            selection.kept[path] = REFUSED
    _separate_edited(selection, audit, {path: fit[path] for path in selection.edited}, heads)
    if selection.ours:
        _exclude_protected(selection, builder, fit, vault)
        _read_contents(selection, fit, content, {path for path in blobs if not path.startswith(f"{inbox}/")})
        _exclude_stored_files(selection, fit, vault, inbox)
    return selection


def _separate_edited(
    selection: CommitSelection,
    audit: AuditLog,
    now: Mapping[str, str],
    heads: Mapping[str, set[str]],
    approved: Collection[str] = (),
) -> None:
    """Separate the paths that the log leads to from HEAD from those that somebody has edited."""
    selection.edited = []
    present = now_ms()
    for path, digest in now.items():
        if path in selection.kept:
            continue
        last = audit.last_entry(path)
        if last is not None and 0 <= present - last.at < FRESH_MS and last.after != digest:
            selection.unsettled.add(path)  # its write is perhaps under way
        if digest in heads[path]:
            continue
        steps = trace_steps(audit.entries_backwards(path), digest, heads[path])
        if steps or path in approved:
            selection.ours[path] = steps or []
            continue
        selection.edited.append(path)


def _exclude_protected(selection: CommitSelection, builder: CommitBuilder, now: Mapping[str, str], vault: Path) -> None:
    """Exclude paths that Git ignores, that belong to a nested repository, or that a person has staged differently."""
    modules = builder.list_submodules() if os.path.lexists(vault / ".gitmodules") else set()
    nested = {
        path
        for path in selection.ours
        if any(folder in modules or os.path.lexists(vault / folder / ".git") for folder in parent_folders(path)[1:])
    }
    ignored, odd = _find_ignored(builder, sorted(selection.ours.keys() - nested))
    staged = {path: oid for path, oid in builder.read_staged().items() if path in selection.ours}
    holds = {path: frozenset([""] if not oid.strip("0") else []) for path, oid in staged.items()}
    blobs = builder.read_objects({path: oid for path, oid in staged.items() if oid.strip("0")})
    holds |= {path: blob.digests for path, blob in blobs.items()}
    otherwise = {path for path in staged if now[path] not in holds[path]}
    for why, paths in ((STAGED, otherwise), (IGNORED, ignored), (NESTED, nested), (ODD, odd)):
        for path in paths:
            selection.kept[path] = why
            selection.ours.pop(path, None)


def _find_ignored(builder: CommitBuilder, paths: list[str]) -> tuple[set[str], set[str]]:
    """Return the paths that a `.gitignore` excludes, and those for which Git fails: they are below a submodule or a link."""
    try:
        return builder.find_ignored(paths), set()
    except GitFailed:
        if len(paths) < 2:
            return set(), set(paths)
    ignored, odd = set[str](), set[str]()
    for half in (paths[: len(paths) // 2], paths[len(paths) // 2 :]):
        more = _find_ignored(builder, half)
        ignored, odd = ignored | more[0], odd | more[1]
    return ignored, odd


def _read_contents(
    selection: CommitSelection, now: Mapping[str, str], content: Callable[[str, str], Content], public: set[str]
) -> None:
    """Read the contents, and exclude what must not enter the history, unless a person has committed it before: `public`."""
    withheld = set()
    for path in list(selection.ours):
        try:
            raw = content(path, now[path])
        except (MemexError, OSError):  # it is changing
            selection.unsettled.add(path)
            del selection.ours[path]
            continue
        shown = _examined_bytes(path, raw)
        if why := _reason_to_withhold(path, shown, public=path in public):
            selection.kept[path] = why
            withheld.add(_stored_file_digest(shown))
            del selection.ours[path]
        else:
            selection.contents[path] = raw
    for path in [path for path in selection.ours if now[path] and now[path] in withheld]:
        selection.kept[path] = SECRET
        del selection.ours[path], selection.contents[path]


def _exclude_stored_files(selection: CommitSelection, now: Mapping[str, str], vault: Path, inbox: str) -> None:
    """Exclude each stored file beside which there is a note that must not be committed; the note may be in another round."""
    for path in [path for path in selection.ours if now[path] and path.startswith(f"{inbox}/") and not is_note(path)]:
        note = f"{path}.md"
        with suppress(OSError):
            raw = Path(vault, note).read_bytes()
            if _stored_file_digest(raw) == now[path] and _reason_to_withhold(note, raw, public=False):
                selection.kept[path] = SECRET
                del selection.ours[path], selection.contents[path]


def _examined_bytes(path: str, content: Content) -> bytes | None:
    """Return the bytes in which secrets are looked for; None = the file is removed. A very large file counts as empty, but not a note."""
    if isinstance(content, Path):
        return content.read_bytes() if secret_patterns.is_searched(path, content.stat().st_size) else b""
    return content


def _reason_to_withhold(path: str, raw: bytes | None, *, public: bool) -> str:
    """Return why these bytes must not be committed under this name; "" = they may."""
    if raw is None:
        return ""
    text = secret_patterns.readable_text(path, raw)
    if not public and (rules := secret_patterns.find_secrets(text)):
        return f"{SECRET} ({rules[0]})"
    if not public and (rules := secret_patterns.find_secrets(path)):
        return f"{SECRET} ({rules[0]}, in its name)"
    return MARKERS if has_merge_conflict(text) else ""


def _stored_file_digest(raw: bytes | None) -> str:
    """Return the digest of the stored file whose text a note contains; "" = none."""
    if raw is not None:
        with suppress(FrontmatterError):
            digest = read_properties(split(decode(raw))[0]).get("file_sha256")
            return digest if isinstance(digest, str) else ""
    return ""
