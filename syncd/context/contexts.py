"""Keep the context of each workspace: choose its facts, serve them to sessions, and write them as a note for the owner.

Laws, tested: a run without changes writes nothing; a line that the owner keeps or leaves out stays so; what the owner
struck a moment ago is not served; nothing of the vault outside the inbox is read. Of a promoted note, a context keeps
the line that the capture had."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from typing import Any, Final

from index.document_ids import sha256
from index.errors import Conflict, NotFound, Unavailable
from index.foreground import foreground
from index.model import Stat
from syncd.context.fact_choice import ChosenFact, choose_facts
from syncd.context.fact_reader import ENTITY, FactReader, words_of
from syncd.context.generated_note import (
    Decisions,
    NoteLine,
    compose_note,
    has_callout,
    line_of,
    read_decisions,
)
from syncd.context.note_facts import ContextFact, WeighedFact, flatten, project_key
from syncd.context.session_context import Count, SessionContext, SessionLine, frame_tokens
from syncd.context.stray_notes import find_stray_notes
from syncd.context.use_counts import UseCounts
from syncd.indexes.index_builds import ScopeIndex
from syncd.notes.front_matter import decode, encode, has_merge_conflict
from syncd.state import named_values
from syncd.state.ledger import Ledger
from syncd.vault.location import CONTEXT
from syncd.vault.vault import Vault

QUIET_S: Final = 5.0  # seconds without a change of the captures after which a context is chosen again
PATIENCE_S: Final = 60.0  # most seconds that changes without a pause delay it
ABSENT_S: Final = 60.0  # seconds for which a note must be gone before its owner is taken to have deleted it
SERVED: Final = 32  # cached contexts: of workspaces, projects and namespaces
NAME: Final = "context/"  # named value of each workspace: what Memex wrote last
KEPT_LINE: Final = 600  # characters of a line that the owner wrote

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WrittenContext:
    """Holds what Memex wrote into a note last: its versions, as `read_decisions` takes them, and the facts that outlive their captures."""

    versions: tuple[Mapping[str, str], ...] = ()
    facts: tuple[ContextFact, ...] = ()  # of the last version, and of promoted notes
    decisions: Decisions = field(default_factory=Decisions)  # they hold while the note is absent for a moment


@dataclass(frozen=True, slots=True)
class _Plan:
    """Holds the lines of a context: those that the owner keeps and that fit, those that Memex chose, and all facts."""

    kept: tuple[SessionLine, ...]
    chosen: tuple[ChosenFact, ...]
    facts: Sequence[WeighedFact]
    left_out: int


@dataclass(frozen=True, slots=True)
class _NoteState:
    """Holds the note of a workspace as it is now; `raw` None = there is none."""

    raw: bytes | None
    stat: Stat | None
    decisions: Decisions
    is_conflicted: bool = False
    is_foreign: bool = False  # Memex did not write it


class Contexts:
    """Serves and writes contexts; safe from any thread, one run at a time."""

    def __init__(
        self,
        vault: Vault,
        captures: ScopeIndex,
        ledger: Ledger,
        uses: UseCounts,
        *,
        inbox: str,
        tokens: int,
        count: Count,
    ) -> None:
        self._vault, self._captures, self._ledger, self.uses = vault, captures, ledger, uses
        self._inbox, self._tokens, self._count = inbox, tokens, count
        self._reader = FactReader(captures, count)
        # Called with the path of a workspace's folder when its owner has decided something in the note.
        self.listeners: list[Callable[[Collection[str]], object]] = []
        self._vault_version: object = None
        self._running, self._lock = threading.Lock(), threading.Lock()
        self._written: dict[str, WrittenContext] = {}
        self._decided: dict[str, Decisions] = {}  # by workspace: as read last
        self._absent: dict[str, float] = {}  # by workspace: since when its note is gone
        self._served: dict[tuple[str, str, str | None], tuple[object, SessionContext]] = {}
        self._done: dict[str, object] = {}  # by workspace: the state for which nothing was left to write
        self._waiting: dict[
            str, tuple[object, float, float]
        ] = {}  # the state, since when it is so, and since when it waits

    @property
    def is_on(self) -> bool:
        """Return whether the settings allow contexts."""
        return self._tokens > 0

    def path_of(self, workspace: str) -> str:
        """Return the path of the note of a workspace."""
        return f"{self._inbox}/{CONTEXT}/{workspace}.md"

    def find_strays(self) -> list[str]:
        """Return what lies in the folder of contexts and was not written by Memex, sorted."""
        return find_stray_notes(self._vault, self._inbox, lambda workspace: bool(self._written_in(workspace).versions))

    # Serving

    def read(self, workspace: str, *, project: str = "", namespace: str | None = None) -> SessionContext:
        """Return what a session in `workspace` gets.

        `project`: a name; its facts come first. `namespace`: only facts of notes there."""
        key = project_key(project)
        note = self._read_note(workspace)
        state = (self._captures.index.generation, note.stat, self.uses.version, self._written_in(workspace))
        with self._lock:
            known = self._served.get((workspace, key, namespace))
        if known is not None and known[0] == state:
            return known[1]
        context = self._choose_session(workspace, key, namespace, note.decisions)
        with self._lock:
            while len(self._served) >= SERVED:
                self._served.pop(next(iter(self._served)))
            self._served[workspace, key, namespace] = state, context
        return context

    def _choose_session(
        self, workspace: str, project: str, namespace: str | None, decisions: Decisions
    ) -> SessionContext:
        if not self.is_on:
            return SessionContext(workspace, project, (), 0, 0)
        plan = self._plan(workspace, project, namespace, decisions)
        lines = (*plan.kept, *(_fact_line(choice.fact, choice.reasons) for choice in plan.chosen))
        context = SessionContext(workspace, project, lines, 0, self._tokens, plan.left_out)
        return replace(context, tokens=sum(self._count(context.text.split("\n"))) if lines else 0)

    def _plan(self, workspace: str, project: str, namespace: str | None, decisions: Decisions) -> _Plan:
        uses = self.uses.read(workspace)
        facts = self._read_facts(workspace, project, namespace, uses)
        by_mark = {weighed.fact.mark: weighed.fact for weighed in facts}
        kept = [
            _kept_line(line, by_mark.get(line.mark))
            for line in decisions.kept
            if line.struck is None and (namespace is None or line.mark in by_mark)
        ]
        left, fitting = self._tokens - frame_tokens(workspace, self._count), []
        for line, tokens in zip(kept, self._count([line.line for line in kept]), strict=True):
            if tokens <= left:
                fitting.append(line)
                left -= tokens
        chosen = choose_facts(
            [weighed for weighed in facts if weighed.fact.mark not in decisions.decided],
            left,
            uses=uses,
            project=project,
            kept=[words_of(line.line) for line in fitting],
            left_out=[words_of(line.text) for line in decisions.left_out.values()],
        )
        return _Plan(tuple(fitting), tuple(chosen), facts, len(kept) - len(fitting))

    def _read_facts(
        self, workspace: str, project: str, namespace: str | None, uses: Mapping[str, float]
    ) -> list[WeighedFact]:
        """Return the facts of the captures, and those that promoted notes had as captures."""
        promoted = [fact for fact in self._written_in(workspace).facts if fact.promoted]
        ids = {fact.id for fact in promoted}  # an agent can give them to other captures
        facts = [weighed for weighed in self._reader.read(workspace, uses, project) if weighed.fact.id not in ids]
        facts += self._reader.weigh(promoted)
        if namespace is None:
            return facts
        return [weighed for weighed in facts if weighed.fact.namespace == namespace and weighed.fact.type != ENTITY]

    # The note

    def run(
        self,
        workspaces: Iterable[str],
        *,
        is_promoted: Callable[[ContextFact], bool],
        quiet_s: float,
        may_write: Callable[[], bool] = lambda: True,
        vault_version: object = None,
    ) -> int:
        """Write the notes of workspaces whose captures or decisions have changed; return the number of written notes.

        `is_promoted`: whether the capture of a fact is now a note outside the inbox, and agents may know its line;
        `vault_version` differs whenever the answer may. `quiet_s`: seconds for which the owner's edit of a note
        must be over."""
        if not self.is_on:
            return 0
        with self._running:
            self.uses.flush()
            if not may_write():
                self._absent.clear()  # a checkout may have taken the notes away
                return 0
            if not self._captures.index.is_complete:
                return 0
            self._vault_version = vault_version
            return sum(self._refresh(workspace, is_promoted, quiet_s) for workspace in workspaces)

    def _refresh(self, workspace: str, is_promoted: Callable[[ContextFact], bool], quiet_s: float) -> int:
        """Write the note of a workspace, if it is due; return 1 if it was written, otherwise 0."""
        try:
            stat = self._vault.stat(self.path_of(workspace))
            if self._is_away(workspace, stat):
                return 0
            # Not the uses: a search would change the note. They count at the next change of the captures.
            state = self._state(workspace, stat)
            if self._done.get(workspace) == state or not self._is_settled(workspace, state):
                return 0
            if stat is not None and 0 <= time.time() - stat.mtime_ns / 1e9 < quiet_s:
                return 0  # the owner is editing
            foreground.give_way()
            self._keep_promoted(workspace, is_promoted)  # before it is read, so that their deleted lines are known
            note = self._read_note(workspace)
            if note.is_foreign:
                log.warning(
                    "%s was not written by Memex, so it stays as it is, and no context of the workspace is written: "
                    "rename it to get one",
                    self.path_of(workspace),
                )
            may_write = not note.is_conflicted and not note.is_foreign
            known = self._written_in(workspace).decisions
            if may_write and (known.kept, known.left_out) != (note.decisions.kept, note.decisions.left_out):
                # Before they are recorded: if the note then can't be written, they are not new at the next try.
                for callback in tuple(self.listeners):
                    callback([f"{self._inbox}/{workspace}/"])
            # Not the stat that the file has by now: the owner may have edited it meanwhile.
            stat = self._write_note(workspace, note) if may_write else note.stat
            self._done[workspace] = (*state[:2], stat)
        except (Conflict, NotFound, Unavailable) as error:  # the note has just changed, or the disk fails: try again
            log.info("the context of a workspace is written later: %s", error.message)
            return 0
        return int(stat != note.stat)

    def _state(self, workspace: str, stat: Stat | None) -> tuple[object, object, Stat | None]:
        """Return what decides the note: the captures, the vault if facts of promoted notes are kept, and the note's own file."""
        is_promoted = any(fact.promoted for fact in self._written_in(workspace).facts)
        return self._captures.index.generation, self._vault_version if is_promoted else None, stat

    def _is_away(self, workspace: str, stat: Stat | None) -> bool:
        """Return whether the note is gone only for the moment; when it is gone for long, forget what was decided in it."""
        written = self._written_in(workspace)
        if stat is not None or not written.versions:
            self._absent.pop(workspace, None)
            return False
        if not self._vault.is_present():
            self._absent.clear()
            return True
        since = self._absent.setdefault(workspace, time.monotonic())
        if time.monotonic() - since < ABSENT_S:
            return True
        self._record(workspace, WrittenContext((), written.facts))
        self._decided.pop(workspace, None)
        return False

    def _is_settled(self, workspace: str, state: object) -> bool:
        """Return whether the state has not changed for a while, or has been changing for long."""
        now = time.monotonic()
        before = self._waiting.get(workspace)
        begun = before[2] if before else now
        since = before[1] if before and before[0] == state else now
        self._waiting[workspace] = state, since, begun
        if workspace in self._done and now - since < QUIET_S and now - begun < PATIENCE_S:
            return False
        del self._waiting[workspace]
        return True

    def _write_note(self, workspace: str, note: _NoteState) -> Stat | None:
        """Choose the facts again, and write the note if its text changes; return the stat of what was read or written."""
        plan = self._plan(workspace, "", None, note.decisions)
        chosen = [choice.fact for choice in plan.chosen]
        if note.raw is None and not chosen:
            return None
        others = [weighed.fact for weighed in plan.facts if weighed.fact.promoted and weighed.fact not in chosen]
        raw = encode(compose_note(workspace, self._tokens, chosen, note.decisions))
        lines = {line.mark: line.body for line in (*map(line_of, chosen), *note.decisions.kept) if line.mark}
        facts = (*chosen, *others)
        stat = note.stat
        if note.raw != raw:
            # Recorded before it is written, so that no line of it ever counts as the owner's.
            versions = self._written_in(workspace).versions if note.raw is not None else ()
            versions = (*versions[:1], *versions[1:][-1:])  # those that the file may have, after writes that failed
            self._record(workspace, WrittenContext((*versions, lines), facts, note.decisions))
            if note.raw is None:
                stat = self._create(workspace, raw)
            else:
                stat = self._vault.replace(self.path_of(workspace), raw, digest=sha256(note.raw))
        self._record(workspace, WrittenContext((lines,), facts, note.decisions))
        return stat

    def _create(self, workspace: str, raw: bytes) -> Stat:
        """Create the note. Raises Conflict when somebody else just did; then no version of it is recorded."""
        try:
            return self._vault.create(self.path_of(workspace), raw)
        except Conflict:
            self._record(workspace, replace(self._written_in(workspace), versions=()))
            raise

    def _keep_promoted(self, workspace: str, is_promoted: Callable[[ContextFact], bool]) -> None:
        """Mark the facts whose notes have left the inbox by promotion, and drop those of notes that no longer exist."""
        written, index = self._written_in(workspace), self._captures.index
        facts = []
        for fact in written.facts:
            # Of a capture that is still at its path, only a line that is promoted already needs a look into the journal.
            promoted = (fact.promoted or index.record_at(fact.path) is None) and is_promoted(fact)
            if promoted or index.record(fact.id, workspace) is not None:
                facts.append(replace(fact, promoted=promoted))
        self._record(workspace, replace(written, facts=tuple(facts)))

    def _read_note(self, workspace: str) -> _NoteState:
        path, written = self.path_of(workspace), self._written_in(workspace)
        try:
            raw, stat = self._vault.read(path)
        except NotFound:
            return _NoteState(None, None, self._decided.get(workspace, written.decisions))
        text = decode(raw)
        if not written.versions and not has_callout(text):
            return _NoteState(raw, stat, Decisions(), is_foreign=True)
        current = cache(partial(self._current_lines, workspace))
        decisions = self._decided[workspace] = read_decisions(text, written.versions, current, written.decisions)
        return _NoteState(raw, stat, decisions, has_merge_conflict(text))

    def _current_lines(self, workspace: str) -> dict[str, str]:
        lines = [line_of(weighed.fact) for weighed in self._read_facts(workspace, "", None, self.uses.read(workspace))]
        return {line.mark: line.body for line in lines}

    # What Memex wrote last

    def forget(self, workspace: str) -> None:
        """Remove the note of a workspace that is being deleted, unless Memex did not write it, and what is known of it."""
        with self._running:
            note = self._read_note(workspace)
            if note.raw is not None and not note.is_conflicted and not note.is_foreign:
                self._vault.remove(self.path_of(workspace), digest=sha256(note.raw))
            named_values.delete(self._ledger, [NAME + workspace])
            known: tuple[dict[str, Any], ...] = (self._written, self._decided, self._absent, self._done, self._waiting)
            for by_workspace in known:
                by_workspace.pop(workspace, None)

    def _written_in(self, workspace: str) -> WrittenContext:
        if workspace not in self._written:
            known: dict[str, Any] = json.loads(named_values.read(self._ledger, NAME + workspace) or "{}")
            facts = tuple(
                ContextFact(**fact | {"projects": frozenset(fact["projects"])}) for fact in known.get("facts", ())
            )
            decisions = _load_decisions(known.get("decisions", {}))
            self._written[workspace] = WrittenContext(tuple(known.get("versions", ())), facts, decisions)
        return self._written[workspace]

    def _record(self, workspace: str, written: WrittenContext) -> None:
        if written == self._written_in(workspace):
            return
        facts = [asdict(fact) | {"projects": sorted(fact.projects)} for fact in written.facts]
        decisions = asdict(written.decisions)
        value = json.dumps({"versions": list(map(dict, written.versions)), "facts": facts, "decisions": decisions})
        named_values.write(self._ledger, {NAME + workspace: value})
        self._written[workspace] = written


def _load_decisions(known: Mapping[str, Any]) -> Decisions:
    """Return decisions as `asdict` gave them."""
    return Decisions(
        known.get("front", ""),
        tuple(NoteLine(**line) for line in known.get("kept", ())),
        {mark: NoteLine(**line) for mark, line in known.get("left_out", {}).items()},
    )


def _kept_line(line: NoteLine, fact: ContextFact | None) -> SessionLine:
    """Return a line that the owner keeps. Its words are the owner's; date and author are those in the note."""
    body = flatten(line.text, KEPT_LINE)
    reasons = ("you keep it in the note",)
    if fact is None:
        return SessionLine(f"- {body}", reasons, kept=True)
    shown = replace(fact, text=body)
    return replace(_fact_line(shown, reasons), kept=True)


def _fact_line(fact: ContextFact, reasons: tuple[str, ...]) -> SessionLine:
    return SessionLine(
        line=fact.line,
        reasons=reasons,
        id=fact.id,
        path="" if fact.promoted else fact.path,
        title=fact.title,
        at=fact.at,
        author=fact.author,
        stale=fact.stale,
        promoted=fact.promoted,
    )
