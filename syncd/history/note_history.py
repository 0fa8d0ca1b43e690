"""Merge the audit log and Git's log into the history of one note, under all names that the note has had.

Law, tested: nothing is written here. A change that neither log recorded appears as a manual change between the two
recorded states."""

from __future__ import annotations

import difflib
import json
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice, pairwise
from typing import Any, Final

from index.document_ids import sha256
from index.errors import MemexError, NotFound
from index.model import Record
from index.scope.index import Index
from syncd.git.note_commits import NoteCommit, find_head_blob, list_commits
from syncd.git.repository import Repository
from syncd.git.repository_state import UNREADABLE
from syncd.history.audit_log import AuditLog
from syncd.history.change_journal import ChangeJournal
from syncd.history.change_journal import Entry as Passage
from syncd.history.digest_chain import Entry
from syncd.history.overwritten_bytes import OverwrittenBytes
from syncd.history.write_lineage import (
    WRITES,
    IdHistory,
    find_additions,
    find_manual_moves,
    id_histories,
    is_follow_up,
    is_manual_arrival,
    writes_in_force,
)
from syncd.indexes.note_lookup import LEAST, Candidate, choose, find_candidates, missing_note
from syncd.vault.path_rules import is_note
from syncd.vault.vault import Vault

LINES: Final = 4_000  # above this number of lines, no differences are computed
NAMES: Final = 20  # most names of a note that Git is asked about
TRIED: Final = 200  # most Git blobs checked for one text
PIECE: Final = 10  # of them that are in memory at once
CHANGES: Final = frozenset({"apply", "unapply"})  # of a note, by the approval of a proposed change
ENTRIES: Final = frozenset({*WRITES, "moved"})


@dataclass(frozen=True, slots=True)
class Event:
    """Describes an event in a note's history. `before` and `after` are its content; None = no longer known."""

    at: int  # epoch milliseconds; for "removed", the time of the last event before the removal
    what: str  # create, update, delete, moved; edit, removed: manual; commit; else the kind of a move, such as promote
    path: str
    surface: str = ""  # mcp, rest, cli, daemon, file; "" for a commit
    tool: str = ""
    key: str = ""  # its name
    request: str = ""  # the id of the call, which `memex undo` takes
    entry: int = 0  # its number in the audit log
    undone: bool = False  # it was undone since
    commit: str = ""
    author: str = ""  # of the commit; for a move, who asked for it
    subject: str = ""
    source: str = ""  # old path, if it was moved
    before: str | None = None  # SHA-256, or the name of Git's blob; "" = no file
    after: str | None = None


class NoteHistory:
    """Finds the history of a vault's notes. `indexes` returns the current indexes."""

    def __init__(
        self,
        audit: AuditLog,
        vault: Vault,
        overwritten: OverwrittenBytes,
        repo: Repository,
        indexes: Callable[[], Sequence[Index]],
        *,
        journal: ChangeJournal,
    ) -> None:
        self.overwritten = overwritten
        self._audit, self._vault, self._repo, self._indexes, self._journal = audit, vault, repo, indexes, journal

    def entries(self, name: str) -> tuple[list[Entry], str]:
        """Return the log entries of the note that `name` means, in order, and its current or last path; "" if unknown."""
        there = find_candidates(self._indexes(), name)
        ids = {name, *(candidate.id for candidate in there)}
        ids |= set(self._audit.ids_beginning(name) if len(name) >= LEAST else ())
        known: dict[str, list[Entry]] = {}  # by the current or last path of the note
        gone: list[Candidate] = []
        for id in ids:
            claims = [candidate for candidate in find_candidates(self._indexes(), id) if candidate.id == id]
            records = [candidate.record for candidate in claims if candidate.record]
            for history, record in self._pair_histories(id, records):
                if record is not None:
                    known[record.path] = history.entries
                elif history.home not in known:
                    known[history.home] = history.entries
                    gone.append(Candidate(id, history.home, history.entries[0].at, history.entries[-1].workspace))
        if (candidate := choose(name, [*there, *gone])) is not None:
            return known.get(candidate.path, []), candidate.path
        ids = {entry.id for entry in self._audit.entries_about(path=name)}
        histories = [history for id in ids for history, _ in self._pair_histories(id, ()) if name in history.paths]
        last = max(histories, key=lambda history: history.entries[-1].seq, default=None)
        return (last.entries, last.home) if last else ([], "")

    def current_path(self, entry: Entry) -> str:
        """Return the current path of an entry's file, if somebody moved it; else its path in the entry."""
        there = [
            candidate.record
            for candidate in find_candidates(self._indexes(), entry.id)
            if candidate.id == entry.id and candidate.record
        ]
        for history, record in self._pair_histories(entry.id, there):
            if any(known.seq == entry.seq for known in history.entries):
                return record.path if record else entry.path
        return entry.path

    def _pair_histories(self, id: str, there: Collection[Record]) -> list[tuple[IdHistory, Record | None]]:
        """Return the histories of an id in the log, each with its current note from `there`, if any."""
        moves = {
            (passage.source, passage.target) for passage in self._journal.entries_of(id) if passage.state == "done"
        }
        histories = id_histories(self._audit.entries_about(id=id), moves)
        left = {record.path: record for record in there}
        paired = {number: left.pop(history.home) for number, history in enumerate(histories) if history.home in left}
        for number, history in enumerate(histories):  # notes that were moved manually
            if number not in paired and history.live and self.read_current(history.home) is None:
                same = [record for record in left.values() if record.workspace == history.entries[-1].workspace]
                if moved := same or list(left.values()):
                    paired[number] = left.pop(moved[0].path)
        return [(history, paired.get(number)) for number, history in enumerate(histories)]

    def missing(self, name: str) -> NotFound:
        """Return the error for a name without any history."""
        return missing_note(
            self._indexes(),
            name,
            "to find notes: memex search WORDS; name a deleted note by its path or id",
            kind="note",
        )

    def log(self, name: str, limit: int, *, patch: bool = False) -> dict[str, Any]:
        """Return the newest `limit` events of a note, newest last; with `patch`, with differences.

        An event with a difference is `restorable` if its text is kept and not the present one, and has `additions`, as
        in `explain_entry`; `exists`: whether the file exists. Raises NotFound for no event."""
        entries, path = self.entries(name)
        commits = self._find_commits(dict.fromkeys([path or name, *(entry.path for entry in reversed(entries))]))
        if not entries and not commits:
            raise self._unrecorded(path) if path else self.missing(name)
        moves = self._find_manual_moves(entries) | self._find_moves(entries)
        logged = list(_log_events(entries, self._current_state(path), moves))
        within = {event.commit for event in logged}
        others = [_commit_event(commit) for commit in reversed(commits) if commit.commit not in within]
        events = merge_events(logged, others, self._blob_digest)
        more = max(0, len(events) - limit)
        shown = [asdict(event) for event in events[more:]]
        if patch:
            texts = _Texts(self, path, commits)
            texts.read_blobs(row for row in shown if row["what"] == "commit")
            writes = {entry.seq: entry for entry in entries}
            for row in shown:
                before, after = (texts.text(row[side]) for side in ("before", "after"))
                row["restorable"] = bool(row["after"]) and after is not None and after != texts.present
                row["additions"], row["never_kept"] = [], False
                if after is None and row["entry"]:
                    after, row["additions"] = texts.extended(writes[row["entry"]], entries)
                if before is None and row["entry"]:
                    row["never_kept"] = is_follow_up(writes[row["entry"]])
                row["diff"] = diff_texts(before, after, row["source"] or row["path"], row["path"])
        path = path or commits[0].path
        state = self._current_state(path)
        return {"path": path, "exists": state is None or state[0] != "", "events": shown, "more": more}

    def explain_entry(self, entry: Entry) -> dict[str, Any]:
        """Return what an entry changed: `diff`, and `now`, the current path of its note; None where it is unknown or gone.

        Versions that Memex overwrote by its own additions are not kept. If the result of a write is one of them, the
        diff contains the additions too, and `additions` names their tools. `never_kept`: the text before this addition is one."""
        if entry.kind not in ENTRIES or not is_note(entry.path):
            return {"diff": None, "now": None, "additions": [], "never_kept": False}
        path = self.current_path(entry)
        texts = _Texts(self, path, self._find_commits(dict.fromkeys([path, entry.path])))
        after, additions = texts.extended(entry, self._audit.entries_about(path=entry.path))
        before = texts.text(entry.before)
        return {
            "diff": diff_texts(before, after, entry.path, entry.path),
            "now": path if self.read_current(path) is not None else None,
            "additions": additions,
            "never_kept": before is None and is_follow_up(entry),
        }

    def read_version(self, digest: str, path: str, commits: Sequence[NoteCommit] | None = None) -> bytes | None:
        """Return the version with this SHA-256 of the note at `path`, now or last; None when nobody has it any more."""
        if (raw := self.overwritten.read(digest)) is not None:
            return raw
        note_commits = self._find_commits([path]) if commits is None else commits
        names = dict.fromkeys(name for commit in note_commits for name in (commit.after, commit.before) if name)
        for start in range(0, min(len(names), TRIED), PIECE):
            for raw in self._repo.read_blobs(list(names)[start : min(start + PIECE, TRIED)]).values():
                if sha256(raw) == digest:
                    return raw
        return None

    def read_head(self, path: str) -> bytes | None:
        """Return the content of the note in HEAD, which may be a merge; None if HEAD does not have it."""
        name = find_head_blob(self._repo, path)
        return self._repo.read_blob(name) if name else None

    def text_before(self, name: str, entry: int) -> tuple[str, bytes]:
        """Return the path and the content that a note had before an entry of the log.

        Raises NotFound if the entry is not about this note, or the content is no longer kept."""
        entries, path = self.entries(name)
        match = next((known for known in entries if known.seq == entry), None)
        if match is None:
            raise NotFound(f"the log has no entry {entry} about {name[:200]!r}: memex log --json lists the entries")
        raw = self.read_version(match.before, path) if match.before else None
        if raw is None:
            reason = "is no longer kept" if match.before else "did not exist: the note was created then"
            raise NotFound(f"the text of {match.path} before entry {entry} {reason}")
        return match.path, raw

    def _unrecorded(self, path: str) -> NotFound:
        """Return the error for a note without any history; no search for similar names, which takes long among many notes."""
        state, git = self._repo.read_state(), "Git has no commit of it"
        if state.top:
            show = f"git -C {shlex.quote(self._repo.vault)} log --follow -- {shlex.quote(path)}"
            git = f"Memex does not read the history of {state.top}, because the vault is a subfolder of it; Git shows it: {show}"
        elif state.state in UNREADABLE:
            git = f"Memex can't read the history: {self._repo.advice(state)}"
        return NotFound(f"no change of {path} is recorded: Memex has not written this note, and {git}")

    def _find_commits(self, paths: Iterable[str]) -> list[NoteCommit]:
        """Return the commits that touched a note with these paths, newest first."""
        note_commits: dict[tuple[str, str], NoteCommit] = {}
        known: set[str] = set()
        for path in islice(paths, NAMES):
            if path not in known:
                fresh = list_commits(self._repo, path)
                known |= {name for commit in fresh for name in (commit.path, commit.source)}
                note_commits |= {(commit.commit, commit.path): commit for commit in fresh}
        return list(note_commits.values())

    def _find_moves(self, entries: Sequence[Entry]) -> dict[int, Event]:
        """Return the moves of the note, one event each, by the number of every log entry that belongs to one."""
        moves: dict[int, Event] = {}
        for passage in self._journal.entries_of(entries[-1].id) if entries else ():
            if passage.state != "done":
                continue
            steps = {step.path: (step.was, step.now) for step in self._journal.steps(passage.seq)}
            event = _move_event(passage, steps)
            for entry in entries:
                held = entry.before, entry.after
                if entry.at >= passage.at and entry.seq not in moves and steps.get(entry.path) == held:
                    moves[entry.seq] = event
                    del steps[entry.path]
        return moves

    def _find_manual_moves(self, entries: Sequence[Entry]) -> dict[int, Event]:
        """Return the manual moves of the note like `_find_moves`. The removal from the old path may not be logged yet."""
        moves: dict[int, Event] = {}
        origins = find_manual_moves(entries)
        for last, entry in pairwise(entries):
            if origin := origins.get(entry.seq):
                moves[origin.seq] = moves[entry.seq] = _manual_move_event(entry, origin.path, origin.before)
            elif (
                is_manual_arrival(entry)
                and last.after
                and last.path != entry.path
                and self.read_current(last.path) is None
            ):
                moves[entry.seq] = _manual_move_event(entry, last.path, last.after)
        return moves

    def read_blobs(self, names: Collection[str]) -> dict[str, bytes]:
        """Return the contents of Git blobs by name; those that are missing are left out."""
        return self._repo.read_blobs(names)

    def _blob_digest(self, name: str | None) -> str | None:
        """Return the SHA-256 of a Git blob; "" = no file, None = unknown."""
        if name == "":
            return ""
        raw = None if name is None else self._repo.read_blob(name)
        return None if raw is None else sha256(raw)

    def read_current(self, path: str) -> bytes | None:
        """Return the current content of the note."""
        with suppress(MemexError):
            return self._vault.read(path)[0]
        return None

    def _current_state(self, path: str) -> tuple[str, int] | None:
        """Return the digest and time of the file at `path`; None when that is unknown."""
        try:
            raw, stat = self._vault.read(path)
        except NotFound:
            return "", 0
        except MemexError:
            return None
        return sha256(raw), stat.mtime_ms


def merge_events(
    events: Sequence[Event], commits: Sequence[Event], held: Callable[[str | None], str | None]
) -> list[Event]:
    """Merge log events and commits into one timeline, each in its given order.

    Git times have a resolution of one second. Within that second a commit follows the event whose result it
    contains, or precedes the event that changed it; `held` returns the digest of a blob."""
    lines: list[tuple[tuple[int, int, int], Event]] = []
    at = 0
    for number, event in enumerate(events):
        at = max(at, event.at)  # even if the clock was set back
        lines.append(((at, 0, number), event))
    logged, last = tuple(lines), (0, 0, 0)
    for number, commit in enumerate(commits):
        within = [(key[0], event) for key, event in logged if commit.at <= key[0] < commit.at + 1000]
        digest = held(commit.after) if within else None
        key = (commit.at + 999, 1, number)
        if behind := [at for at, event in within if digest is not None and event.after == digest]:
            key = (behind[-1], 1, number)
        elif before := [at for at, event in within if digest is not None and event.before == digest]:
            key = (before[0], -1, number)
        last = max(key, last)
        lines.append((last, commit))
    return [event for _, event in sorted(lines, key=lambda line: line[0])]


class _Texts:
    """Finds the texts of one note, each once."""

    def __init__(self, history: NoteHistory, path: str, commits: Sequence[NoteCommit]) -> None:
        self._history, self._path, self._commits = history, path, commits
        self._known: dict[str, str | None] = {"": ""}
        self.present: str | None = None  # None = no file, or it can't be read
        if (raw := history.read_current(path)) is not None:
            self.present = self._known[sha256(raw)] = _decode(raw)

    def read_blobs(self, commits: Iterable[Mapping[str, Any]]) -> None:
        """Read the texts before and after these commits at once."""
        names = {event[side] for event in commits for side in ("before", "after")} - {None, ""}
        blobs = self._history.read_blobs(names)
        self._known |= {name: _decode(blobs[name]) if name in blobs else None for name in names}

    def extended(self, write: Entry, entries: Iterable[Entry]) -> tuple[str | None, list[str]]:
        """Return the text after a write, and the tools whose additions it contains.

        If Memex does not keep that text, return the first kept text after later additions by the daemon."""
        text, additions = self.text(write.after), list[str]()
        for addition in find_additions(entries, write) if text is None else ():
            text = self.text(addition.after)
            additions.append(addition.tool)
            if text is not None:
                break
        return text, list(dict.fromkeys(additions))

    def text(self, name: str | None) -> str | None:
        """Return the text with this digest, or of the blob with this name, if it was read; None when it is not kept."""
        if name is None:
            return None
        if name not in self._known:
            raw = self._history.read_version(name, self._path, self._commits)
            self._known[name] = None if raw is None else _decode(raw)
        return self._known[name]


def _log_events(entries: Sequence[Entry], now: tuple[str, int] | None, moves: Mapping[int, Event]) -> Iterator[Event]:
    """Yield the events of the log, joining the entries of a move, and the manual changes between them."""
    stands = {entry.seq for entry in writes_in_force(entries)}
    void = {entry.undoes for entry in entries if entry.kind == "undone"}
    last: Entry | Event | None = None
    yielded: set[Event] = set()
    for entry in entries:
        if entry.kind not in ENTRIES or entry.seq in void:
            continue
        event = moves.get(entry.seq)
        if event in yielded:
            continue
        at, before = (entry.at, entry.before) if event is None else (event.at, event.before or "")
        if last is not None and last.after != before:
            yield _hand_edit_event(at, last, before, last.path if event else entry.path)
        yield event or Event(
            at=entry.at,
            what=entry.kind,
            path=entry.path,
            surface=entry.surface,
            tool=entry.tool,
            key=entry.name or entry.key,
            request=entry.request,
            entry=entry.seq,
            undone=entry.seq not in stands and not entry.undoes,
            source="" if last is None or last.path == entry.path else last.path,
            before=entry.before,
            after=entry.after,
        )
        last = event or entry
        yielded |= {event} if event else set()
    if last is not None and now is not None and now[0] != last.after:
        yield _hand_edit_event(now[1], last, now[0], last.path)


def _move_event(passage: Passage, steps: Mapping[str, tuple[str, str]]) -> Event:
    """Return the event of a move; the text before it was at the source, or at the target after a manual move."""
    nothing = ("", "")
    before, after = steps.get(passage.source, nothing)[0], steps.get(passage.target, nothing)[1]
    if passage.kind in CHANGES:  # the other path is that of the changed note, which has its own history
        proposal = passage.source if passage.kind == "apply" else passage.target
        before, after = steps.get(proposal, nothing)
    elif passage.kind == "merge":
        after = ""
    return Event(
        at=passage.at,
        what=passage.kind,
        path=passage.target,
        tool=json.loads(passage.about).get("tool", passage.kind),
        author=passage.by.partition(" <")[0],
        source=passage.source,
        commit=passage.commit_id if len(passage.commit_id) > 1 else "",
        before=before or ("" if passage.kind in CHANGES else steps.get(passage.target, nothing)[0]),
        after=after,
    )


def _manual_move_event(entry: Entry, source: str, before: str) -> Event:
    """Return the event of a manual move; `entry` is about the new path."""
    return Event(
        entry.at, "moved", entry.path, surface="file", entry=entry.seq, source=source, before=before, after=entry.after
    )


def _hand_edit_event(at: int, last: Entry | Event, after: str, path: str) -> Event:
    if not after and path == last.path:  # nothing says when
        return Event(last.at, "removed", path, surface="file", before=last.after, after="")
    return Event(max(at, last.at), "edit", path, surface="file", before=last.after, after=after)


def _commit_event(commit: NoteCommit) -> Event:
    return Event(
        at=commit.at,
        what="commit",
        path=commit.path,
        commit=commit.commit,
        author=commit.author,
        subject=commit.subject,
        source="" if commit.source == commit.path else commit.source,
        before=commit.before,
        after=commit.after,
    )


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


def diff_texts(before: str | None, after: str | None, source: str, path: str) -> list[str] | None:
    """Return the differing lines as a patch; None when a text is not kept or too long to compare."""
    if before is None or after is None:
        return None
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > LINES and before and after:
        return None
    return list(difflib.unified_diff(old, new, source, path, lineterm=""))
