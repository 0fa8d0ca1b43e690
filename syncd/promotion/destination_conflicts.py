"""Resolve destination conflicts: write a note that shows both versions and asks a person to tick what to do.

A destination conflict means that another note already has the name of a promoted capture. Laws, tested: nothing is
overwritten; Memex acts only on a ticked box, and only while both notes are unchanged since the question was written;
a conflict has one question note, whose text Memex replaces when one of the notes changes, unless a person edited it."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

from index.document_ids import sha256
from index.errors import Conflict, MemexError, NotFound
from index.model import Record
from index.names import note_name
from syncd.history.audit_log import AuditLog
from syncd.notes.checkboxes import format_checkbox
from syncd.notes.front_matter import FrontmatterError, decode, edit, encode, split
from syncd.notes.quoted_text import link_to, quote_block, quote_inline
from syncd.notes.secret_patterns import redact
from syncd.promotion.plan import choose_free_name
from syncd.promotion.promoted_note import remove_mark
from syncd.promotion.promotions import AUTHOR, Promotions
from syncd.promotion.proposal_store import Proposal, Proposals
from syncd.promotion.vault_snapshot import VaultSnapshot
from syncd.vault.location import REPORTS
from syncd.vault.path_rules import file_name, join

KIND: Final = "promote-merge"
MOST: Final = 400  # lines of the diff
Question: TypeAlias = tuple[str | None, str, str]  # workspace and id of the capture, and path of the destination


log = logging.getLogger(__name__)


class DestinationConflicts:
    """Asks the owner about destinations that are taken, and carries out the answers."""

    def __init__(self, snapshot: VaultSnapshot, promotions: Promotions, proposals: Proposals, audit: AuditLog) -> None:
        self._snapshot, self._promotions, self._proposals, self._audit = snapshot, promotions, proposals, audit
        proposals.register(KIND, self._carry_out)

    def ask(self, taken: Sequence[tuple[Record, str]], *, whole: bool = True) -> dict[str, str]:
        """Ask about captures whose destination is taken, and return the name of each question note by path of the capture.

        `taken` pairs each capture with the path of the note at its destination. With `whole`, `taken` lists every
        conflict, so questions about other captures are withdrawn."""
        asked: dict[str, str] = {}
        kept: list[str] = []
        for record, target in taken:
            try:
                offered = self._offer_choices(record, target)
            except MemexError:  # the capture or the note is being changed
                whole = False
                continue
            except Exception:  # a bug that one capture triggers must not block the questions about the others
                log.exception("could not write the question about a capture")
                whole = False
                continue
            keys = self._proposals.offer(offered)
            kept += keys
            if note := self._write_question([proposal for proposal in offered if proposal.key in keys], record, target):
                asked[record.path] = note
        if whole:
            self._proposals.withdraw([KIND], kept)
        return asked

    def _offer_choices(self, record: Record, target: str) -> list[Proposal]:
        there = sha256(self._snapshot.vault.read(target)[0])
        about = {"id": record.id, "workspace": record.workspace, "content": record.content_hash}
        about |= {"target": target, "digest": there}
        choices = [{"choice": "rename", "name": choose_free_name(self._snapshot, target)}, {"choice": "leave"}]
        if not record.file:
            choices.insert(1, {"choice": "append"})
        subject = (record.workspace, record.id, target)
        return [Proposal(KIND, (*subject, choice["choice"]), {**about, **choice}) for choice in choices]

    def _write_question(self, offered: Sequence[Proposal], record: Record, target: str) -> str:
        """Return the name of the note that asks, and write the note if it does not exist; "" = there is nothing to ask."""
        snapshot = self._snapshot
        keys = [proposal.key for proposal in offered]
        if not keys:
            return ""
        here = {self._proposals.report_of(key) for key in keys}
        if len(here) == 1 and (path := here.pop()) and snapshot.vault.stat(path) is not None:
            return note_name(path)
        capture, note = snapshot.vault.read(record.path)[0], snapshot.vault.read(target)[0]
        text = encode(format_question(offered, record.path, target, decode(capture), decode(note)))
        path = self._replace_question((record.workspace, record.id, target), text)
        if not path:
            folder = f"{snapshot.inbox}/{REPORTS}"
            wanted = file_name(f"Merge {redact(record.title)}") or "Merge"
            path = join(folder, f"{choose_free_name(snapshot, f'{folder}/{wanted}.md')}.md")
            snapshot.vault.create(path, text)
        self._proposals.mark_placed(keys, path)
        snapshot.sync.hint([path])
        return note_name(path)

    def _replace_question(self, question: Question, text: bytes) -> str:
        """Replace the text of an earlier question about this conflict, and return its path.

        "" = there is none, or a person edited it, or an answer was written into it."""
        vault = self._snapshot.vault
        for path in {self._proposals.report_of(key) for key in self._list_open(question)} - {""}:
            last = self._audit.last_entry(path)
            with suppress(Conflict, NotFound):
                digest = sha256(vault.read(path)[0])
                if last and (last.surface, last.tool, last.after) == (AUTHOR.surface, AUTHOR.tool, digest):
                    vault.replace(path, text, digest=digest)
                    return path
        return ""

    def _list_open(self, question: Question) -> list[str]:
        """Return the keys of the open proposals about this conflict."""
        waiting = self._proposals.list_in(["open"]).items()
        same = (question, (None, *question[1:]))
        return [key for key, (kind, about) in waiting if kind == KIND and _question_of(about) in same]

    def _carry_out(self, about: Mapping[str, Any]) -> str:
        """Carry out the ticked choice, and mark the other choices of the question as superseded."""
        outcome = self._apply_choice(about)
        self._proposals.mark_superseded(self._list_open(_question_of(about)))
        return outcome

    def _apply_choice(self, about: Mapping[str, Any]) -> str:
        """Apply the ticked choice.

        Raises Conflict or NotFound when the capture or the note changed since the question."""
        snapshot, target = self._snapshot, about["target"]
        self._promotions.finish_pending()  # a crash may have interrupted this promotion
        if outcome := self._done_before_crash(about):
            return outcome
        record = snapshot.captures.index.record(about["id"], about.get("workspace"))
        if record is None:
            raise NotFound("the capture no longer exists")
        if about["choice"] != "leave":
            if record.content_hash != about["content"]:
                raise Conflict("the capture has changed since then")
            if sha256(snapshot.vault.read(target)[0]) != about["digest"]:
                raise Conflict(f"{target} has changed since then")
        if about["choice"] == "rename":
            plan = self._promotions.make_plan(record, to=target.rpartition("/")[0], called=about["name"])
            (done,) = self._promotions.carry_out([plan])
            if isinstance(done, MemexError):
                raise done
            return f"promoted as {done['target']}"
        if about["choice"] == "append":
            self._promotions.merge(record.path, target)
            return f"appended to {target}"
        self._leave_in_inbox(record)
        return "left in the inbox"

    def _done_before_crash(self, about: Mapping[str, Any]) -> str:
        """Return what was done for this choice before a crash prevented the report; "" = nothing."""
        kind, source, there = self._promotions.last_action(about["id"])
        workspace = self._snapshot.workspace_of(source)
        if not kind or about.get("workspace", workspace) != workspace or self._snapshot.vault.stat(source) is not None:
            return ""
        renamed = join(about["target"].rpartition("/")[0], f"{about.get('name', '')}.md")
        if (about["choice"], kind, there) == ("append", "merge", about["target"]):
            return f"appended to {there}"
        return f"promoted as {there}" if (about["choice"], kind, there) == ("rename", "promote", renamed) else ""

    def _leave_in_inbox(self, record: Record) -> None:
        snapshot = self._snapshot
        raw, _ = snapshot.vault.read(record.path)
        try:
            text = edit(remove_mark(decode(raw)), {"promote_problem": None})
        except FrontmatterError as error:
            raise NotFound(f"its promotion mark can't be removed: {error}") from error
        if encode(text) != raw:
            snapshot.vault.replace(record.path, encode(text), digest=sha256(raw))
            snapshot.sync.hint([record.path])


def _question_of(about: Mapping[str, Any]) -> Question:
    """Return what the question of a proposal is about; the oldest ones do not state the workspace."""
    return about.get("workspace"), about["id"], about["target"]


def format_question(offered: Iterable[Proposal], source: str, target: str, capture: str, note: str) -> str:
    """Format the note that asks what to do with a capture whose destination is taken."""
    labels = {
        "rename": "Promote the capture as “{name}”",
        "append": "Append the capture's text to the existing note, and point the capture's links to that note",
        "leave": "Leave the capture in the inbox, and remove its mark",
    }
    boxes = [
        format_checkbox(
            labels[proposal.about["choice"]].format(name=quote_inline(proposal.about.get("name", ""))), proposal.key
        )
        for proposal in offered
    ]
    old, new = (redact(split(text)[1]).splitlines() for text in (note, capture))
    lines = list(difflib.unified_diff(old, new, quote_inline(target), quote_inline(source), lineterm="", n=3))
    more = [f"… and {len(lines) - MOST:,} more lines"] if len(lines) > MOST else []
    return "\n".join(
        [
            f"{link_to(source)} was marked for promotion, but {link_to(target)} already existed. Tick a box, and Memex carries it out:",
            "",
            *boxes,
            "",
            "Differences, from the existing note to the capture:",
            "",
            *(quote_block("\n".join([*lines[:MOST], *more]), "diff") if lines else ["Both texts are equal."]),
            "",
        ]
    )
