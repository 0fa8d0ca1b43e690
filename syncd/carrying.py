"""Carry out what was proposed about captures and has been accepted: several files, all of them or none, in one commit.

Laws, tested: what has changed since it was proposed is left alone, and said; a crash at any point is ended by the next call,
and nothing is done twice; links to what moves lead there."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from index.errors import Conflict, MemexError, NotFound, Unavailable
from index.model import Document, Filter, Record
from index.names import fold
from index.vertex import Edge
from syncd.aside import away
from syncd.audit import Audit, Author, authored
from syncd.commits import Commits, Due, Made
from syncd.journal import RECENT_MS, Entry, Journal, Step, Way, sha256, written
from syncd.marks import marks
from syncd.message import message
from syncd.moving import relinking
from syncd.note import FrontmatterError, decode, encode
from syncd.place import REPORTS
from syncd.promote import AGAIN_S, NO_HISTORY, NOTHING
from syncd.proposals import Proposals
from syncd.repo import Repo
from syncd.resolve import Paths
from syncd.retag import retagged
from syncd.uniting import merged, superseded
from syncd.vault_snapshot import Ground

if TYPE_CHECKING:
    from syncd.nodes import Nodes

KINDS: Final = ("supersede", "merge-duplicates", "tag-merge", "relate", "summary", "archive")
SUBJECTS: Final = {"relate": "Relate: {}", "summary": "Write the summary of a node"}  # by the graph itself
MOST: Final = 1_000  # writes of one such change
PAGE: Final = 500  # documents looked up at a time

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to become of each file, what is said of it once it is done, and the subject of its commit."""

    steps: Sequence[Step]
    said: str
    subject: str
    ids: Sequence[str] = ()


class Carrying:
    """Carries out the proposals of consolidation. Safe from any thread: one at a time."""

    def __init__(
        self,
        ground: Ground,
        journal: Journal,
        repo: Repo,
        commits: Commits,
        *,
        nodes: Callable[[str], Nodes],
        indexed: Callable[[Collection[str]], object],
        owner: Callable[[], str],
        lock: threading.RLock,
        audit: Audit,
    ) -> None:
        """`lock`: whoever else moves captures holds it meanwhile."""
        self._ground, self._journal, self._repo, self._commits = ground, journal, repo, commits
        self._nodes, self._indexed, self._owner = nodes, indexed, owner
        self._lock, self._audit = lock, audit
        self._owed = True  # something may be half done, or in no commit yet
        self._not_before = float("-inf")  # when that is looked at again

    def register(self, proposals: Proposals) -> None:
        """Have proposals of these kinds carried out here."""
        for kind, planned in {
            "supersede": self._supersede,
            "merge-duplicates": self._merge,
            "tag-merge": self._tags,
            "archive": self._archive,
        }.items():
            proposals.on(kind, lambda given, kind=kind, planned=planned: self._carried(kind, given, planned))  # type: ignore[misc]  # mypy knows no defaults of lambdas
        proposals.on("relate", lambda given: self._graph("relate", given, self._relate))
        proposals.on("summary", lambda given: self._graph("summary", given, self._summary))

    def tend(self, *, at_once: bool = False) -> list[Made]:
        """Finish what was begun, and commit what could not be committed yet, or has to wait a little; the commits."""
        made: list[Made] = []
        if not self._owed or (time.monotonic() < self._not_before and not at_once):
            return made
        with self._lock:
            self._owed, self._not_before = False, float("-inf")
            for entry in self._journal.begun():
                with authored(Author("daemon", "consolidation", request=entry.document_id)):
                    self._tended(entry)
            for entry in self._journal.uncommitted(_now() - RECENT_MS):
                if self._not_before > time.monotonic():  # Git does not allow it
                    break
                made += self._commit(entry, self._journal.steps(entry.seq))
        return made

    def due(self) -> Iterator[Due]:
        """The commits that Git did not allow yet."""
        for entry in self._journal.uncommitted(_now() - RECENT_MS):
            with suppress(MemexError):  # nobody can tell
                yield self._due(entry, self._journal.steps(entry.seq))

    def _tended(self, entry: Entry) -> None:
        try:
            if busy := self._repo.busy():
                raise Unavailable(f"Git is at work on the files ({busy})")
            self._resumed(entry)
        except (Conflict, NotFound) as error:
            log.warning("a proposal that was broken off is not carried out: %s", error.message)
        except MemexError as error:
            log.warning("a proposal that was broken off can't be ended yet: %s", error.message)
            self._later()

    def _later(self) -> None:
        self._owed, self._not_before = True, time.monotonic() + AGAIN_S

    def facts(self) -> dict[str, Any]:
        """What is left of proposals that somebody came in between."""
        recent = self._journal.latest(200)
        told = [json.loads(one.about) for one in recent if one.state == "torn"]
        return {
            "torn": [{"path": "", "what": about["subject"], "left": about.get("left", [])} for about in told],
            "begun": sum(one.state == "begun" for one in recent),
            "uncommitted": sum(one.state == "done" and not one.commit_id for one in recent),
        }

    # The kinds, each planned from what the files say now

    def _supersede(self, given: Mapping[str, Any]) -> Plan:
        (newer, *_), (older, raw, _) = self._both(given)
        link = self._link(newer.path, older.path)
        if marks(decode(raw)).superseded_by not in (None, f"[[{link}]]"):
            raise Conflict(f"{_name(older)} says already what takes its place")
        after = self._edited(older, superseded, decode(raw), link)
        steps = [written(older.path, raw, after)] if after != raw else []
        return Plan(
            steps,
            f"{_name(older)} says that {_name(newer)} takes its place",
            f"Mark {_name(older)} as superseded",
            given["ids"],
        )

    def _merge(self, given: Mapping[str, Any]) -> Plan:
        (kept, kept_raw, kept_note), (copy, copy_raw, copy_note) = self._both(given)
        text = self._edited(kept, merged, decode(kept_raw), decode(copy_raw), (kept_note, copy_note))
        aside = self._edited(copy, superseded, decode(copy_raw), self._link(kept.path, copy.path))
        texts = {kept.path: text, copy.path: aside}
        steps, place = self._archived(copy, copy_raw, texts, {kept.path: kept_raw})
        said = f"{_name(kept)} stays, the other is at {place}"
        return Plan(steps, said, f"Merge {_name(copy)} into {_name(kept)}", given["ids"])

    def _archive(self, given: Mapping[str, Any]) -> Plan:
        (one,) = self._known(given)
        record, raw, _ = one
        steps, place = self._archived(record, raw, {}, {})
        return Plan(steps, f"it is at {place}", f"Archive {_name(record)}", given["ids"])

    def _tags(self, given: Mapping[str, Any]) -> Plan:
        into, tag = given["would"][:2]
        steps, left = [], 0
        for record in self._tagged(given["workspace"], tag):
            _, raw, document = self._read(record)
            try:
                after = encode(retagged(decode(raw), document, tag, into))
            except FrontmatterError:
                left += 1
                continue
            if after != raw:
                steps.append(written(record.path, raw, after))
        if not steps:
            raise Conflict(
                "no capture has the tag any more, outside of headings" if not left else "no capture could be changed"
            )
        said = f"{_many(len(steps))} changed" + (
            f"; {_many(left)} left, whose properties can't be changed by line" if left else ""
        )
        return Plan(steps, said, f"Write the tag {into} in place of {tag}")

    def _relate(self, given: Mapping[str, Any]) -> str:
        nodes = self._nodes(given["workspace"])
        a, b = (self._node(nodes, given["workspace"], id) for id in given["ids"])
        nodes.relate([Edge(a, b, given["would"][0])])
        return f"{a} {given['would'][0]} {b}"

    def _summary(self, given: Mapping[str, Any]) -> str:
        nodes = self._nodes(given["workspace"])
        (id,), (text,) = given["ids"], given["would"]
        vertex = nodes.get(self._node(nodes, given["workspace"], id))
        if vertex.summary != text:
            if vertex.changed_at != given["changed_at"]:
                raise Conflict("the node has changed since")
            nodes.set_summary(vertex.name, text)
        return "the summary is there"

    # What they have in common

    def _graph(self, kind: str, given: Mapping[str, Any], work: Callable[[Mapping[str, Any]], str]) -> str:
        """Have the graph do it, which changes its notes by itself; what it wrote is one commit."""
        key = given["key"]
        with self._lock, authored(Author("daemon", "consolidation", request=key)):
            for entry in self._journal.of(key):
                if entry.state == "done":
                    return str(json.loads(entry.about)["said"])
            before = self._audit.head.seq
            said = work(given)
            if steps := self._written(key, before):
                about = {"said": said, "subject": SUBJECTS[kind].format(said), "ids": list(given["ids"])}
                self._owed = True  # until it is in a commit
                entry = self._journal.begin(Way(kind, key, "", "", steps, about), by=self._owner(), at=_now())
                self._ended(entry, steps)
            return said

    def _written(self, key: str, after: int) -> list[Step]:
        """The steps that were taken for a proposal since then, as the audit log has them."""
        was: dict[str, str] = {}
        for entry in self._audit.found(MOST, after=after):
            if entry.request == key and entry.path:
                was.setdefault(entry.path, entry.before)
        steps = []
        for path, before in sorted(was.items()):
            with suppress(MemexError):  # somebody has it in hand
                raw, _ = self._ground.vault.read(path)
                if sha256(raw) != before:
                    steps.append(Step(path, before, sha256(raw), None, raw))
        return steps

    def _carried(self, kind: str, given: Mapping[str, Any], planned: Callable[[Mapping[str, Any]], Plan]) -> str:
        """Go the way that `planned` says, or the rest of it."""
        key = given["key"]
        with self._lock, authored(Author("daemon", "consolidation", request=key)):
            if busy := self._repo.busy():
                raise Unavailable(f"Git is at work on the files ({busy}); it is done once that has ended")
            for entry in self._journal.of(key):
                if entry.state == "begun":
                    self._resumed(entry)
                if entry.state in ("begun", "done"):
                    return str(json.loads(entry.about)["said"])
            plan = planned(given)
            about = {"said": plan.said, "subject": plan.subject, "ids": list(plan.ids)}
            way = Way(kind, key, "", "", plan.steps, about)
            self._owed = True  # until it has ended well
            entry = self._journal.begin(way, by=self._owner(), at=_now())
            try:
                self._journal.forward(plan.steps)
            except BaseException:
                self._taken_back(entry, plan.steps)
                raise
            self._ended(entry, plan.steps)
            return plan.said

    def _resumed(self, entry: Entry) -> None:
        """End what a crash broke off: forward, unless somebody has changed one of the files."""
        steps = self._journal.steps(entry.seq)
        if entry.kind not in SUBJECTS and self._journal.strange(steps):
            left = self._taken_back(entry, steps)
            but = f", but for what somebody else has written into {', '.join(left)}" if left else ""
            raise Conflict(f"the notes were changed while it was being done, so it was taken back{but}")
        if entry.kind not in SUBJECTS:  # which was done before it was noted
            self._journal.forward(steps)
        self._ended(entry, steps)

    def _taken_back(self, entry: Entry, steps: Sequence[Step]) -> list[str]:
        left = self._journal.back(steps)
        about = json.dumps(json.loads(entry.about) | {"left": left})
        self._journal.note(entry.seq, "torn" if left else "undone", about=about)
        self._indexed([step.path for step in steps])
        return left

    def _ended(self, entry: Entry, steps: Sequence[Step]) -> None:
        self._journal.note(entry.seq, "done")
        self._indexed([step.path for step in steps])
        self._commit(entry, steps)

    def _commit(self, entry: Entry, steps: Sequence[Step]) -> list[Made]:
        """Commit it as far as it is still so; the commit."""
        try:
            due = self._due(entry, steps)
        except MemexError:  # nobody can tell
            self._later()
            return []
        made = None
        with suppress(MemexError):
            made = self._commits.commit(due.changes, due.message, approved=due.approved)
        if made is None and self._commits.on and self._repo.state() not in NO_HISTORY:
            self._later()
            return []
        self._journal.note(entry.seq, "done", commit_id=made or NOTHING)
        return [Made(made, due.message.partition("\n")[0], tuple(due.changes))] if made else []

    def _due(self, entry: Entry, steps: Sequence[Step]) -> Due:
        """The commit of what still is as it was done. Raises Unavailable when nobody can tell."""
        about = json.loads(entry.about)
        trailers = [
            *(("Capture-Id", id) for id in about["ids"]),
            ("Approved-By", entry.by),
            ("Memex-Tool", "consolidation"),
        ]
        reports = f"{self._ground.inbox}/{REPORTS}/"  # a person's, who is about to tick more: no commit of one stands in their way
        own = [step for step in steps if not step.path.startswith(reports) and self._journal.found(step) == step.now]
        text = message(about["subject"], [step.path for step in own if step.now], trailers)
        moved = [step.path for step in own if not step.was or not step.now]  # as they are; else edits stay out
        return Due({step.path: step.after for step in own}, text, moved)

    def _both(self, given: Mapping[str, Any]) -> tuple[tuple[Record, bytes, Document], tuple[Record, bytes, Document]]:
        first, second = self._known(given)
        return first, second

    def _known(self, given: Mapping[str, Any]) -> list[tuple[Record, bytes, Document]]:
        """The captures that a proposal is about, as they were when it was made. Raises Conflict and NotFound."""
        found = []
        for id, content in zip(given["ids"], given["hashes"], strict=True):
            record = self._ground.captures.index.record(id, given["workspace"])
            if record is None:
                raise NotFound("a note that it is about is gone")
            one = self._read(record)
            if one[2].content_hash != content:
                raise Conflict(f"{_name(record)} has changed since")
            found.append(one)
        return found

    def _read(self, record: Record) -> tuple[Record, bytes, Document]:
        raw, stat = self._ground.vault.read(record.path)
        return record, raw, self._ground.parsed(raw, record.path, stat)

    def _edited(self, record: Record, edit: Callable[..., str], *given: Any) -> bytes:
        try:
            return encode(edit(*given))
        except FrontmatterError as error:
            raise Conflict(f"the properties of {_name(record)} can't be changed by line: {error}") from error

    def _archived(
        self, record: Record, raw: bytes, texts: Mapping[str, bytes], before: Mapping[str, bytes]
    ) -> tuple[list[Step], str]:
        """The steps that put a capture into the archive, with links to it, and where that is. `texts`: what notes are to say."""
        if record.type != "note":
            raise Conflict(f"{_name(record)} is no note by now")
        if marks(decode(raw)).promote:
            raise Conflict(f"{_name(record)} is to be promoted")
        ground = self._ground
        stem = away(record.path, ground.inbox)[: -len(".md")]
        target, number = f"{stem}.md", 1
        while ground.vault.holds(target):
            number += 1
            target = f"{stem} {number}.md"
        found = relinking(ground.vault, {record.path: target}, texts=texts, inbox=ground.inbox)
        after = dict(texts) | {path: new for path, (_, new) in found.changes.items()}
        was = {path: old for path, (old, _) in found.changes.items()} | dict(before)
        steps = [written(target, None, after.pop(record.path, raw))]
        steps += [written(path, was[path], new) for path, new in sorted(after.items()) if was[path] != new]
        return [*steps, written(record.path, raw, None)], target

    def _tagged(self, workspace: str, tag: str) -> list[Record]:
        index, found, cursor = self._ground.captures.index, list[Record](), None
        while True:
            page, cursor = index.latest(Filter(workspace=workspace, tags=(tag,)), PAGE, cursor)
            found += page
            if cursor is None:
                return sorted(found, key=lambda one: one.path)

    def _node(self, nodes: Nodes, workspace: str, id: str) -> str:
        record = self._ground.captures.index.record(id, workspace)
        vertex = nodes.graph.at(record.path) if record else None
        if vertex is None:
            raise NotFound("a node that it is about is gone")
        return vertex.name

    def _link(self, path: str, source: str) -> str:
        """The shortest link that leads from one note to another."""
        stem = path.rpartition("/")[2].removesuffix(".md")
        named = [other for slot in (self._ground.captures, self._ground.notes) for other in slot.index.manifest]
        near = Paths(other for other in named if fold(other).endswith(f"/{fold(stem)}.md"))
        return stem if near.resolve(stem, source) == path else path.removesuffix(".md")


def _now() -> int:
    return time.time_ns() // 1_000_000


def _name(record: Record) -> str:
    return record.path.rpartition("/")[2].removesuffix(".md")


def _many(count: int) -> str:
    return f"{count:,} capture{'' if count == 1 else 's'}"
