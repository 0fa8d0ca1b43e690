"""Resolve destination conflicts: write a note that shows both versions and asks a person to tick what to do.

The conflict is that another note already has the name of a promoted capture. Law, tested: nothing is overwritten,
and nothing is done unless a box is ticked while both notes still say what was shown."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from index.errors import Conflict, MemexError, NotFound
from index.model import Record
from syncd.history.change_journal import sha256
from syncd.notes.checkboxes import format_checkbox
from syncd.notes.front_matter import FrontmatterError, decode, edit, encode, split
from syncd.notes.quoted_text import link_to, quote_block, quote_inline
from syncd.notes.secret_patterns import redact
from syncd.promotion.plan import choose_free_name
from syncd.promotion.promoted_note import remove_mark
from syncd.promotion.promotions import Promotions
from syncd.promotion.proposal_store import Proposal, Proposals
from syncd.promotion.vault_snapshot import VaultSnapshot
from syncd.vault.location import REPORTS
from syncd.vault.path_rules import file_name, join

KIND: Final = "promote-merge"
MOST: Final = 400  # lines of what differs


log = logging.getLogger(__name__)


class DestinationConflicts:
    """The questions about destinations that are taken, and what the answers do."""

    def __init__(self, snapshot: VaultSnapshot, promotions: Promotions, proposals: Proposals) -> None:
        self._snapshot, self._promotions, self._proposals = snapshot, promotions, proposals
        proposals.register(KIND, self._carry_out)

    def ask(self, taken: Sequence[tuple[Record, str]], *, whole: bool = True) -> dict[str, str]:
        """Ask about these captures, each with what is at its destination; the name of the note that asks, by path of capture.

        If these are the `whole`, what is no longer so is not asked any more."""
        asked: dict[str, str] = {}
        kept: list[str] = []
        for record, target in taken:
            try:
                offered = self._offer_choices(record, target)
            except MemexError:  # one of the two is being changed
                whole = False
                continue
            except Exception:  # a mistake of ours in one must not keep the others from being asked about
                log.exception("a capture could not be asked about")
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
        about = {"id": record.id, "content": record.content_hash, "target": target, "digest": there}
        choices = [{"choice": "rename", "name": choose_free_name(self._snapshot, target)}, {"choice": "leave"}]
        if not record.file:
            choices.insert(1, {"choice": "append"})
        return [Proposal(KIND, (record.id, target, choice["choice"]), {**about, **choice}) for choice in choices]

    def _write_question(self, offered: Sequence[Proposal], record: Record, target: str) -> str:
        """The name of the note that asks, which is made unless it is there; "" = none could be."""
        snapshot = self._snapshot
        keys = [proposal.key for proposal in offered]
        if not keys:
            return ""
        here = {self._proposals.report_of(key) for key in keys}
        if len(here) == 1 and (path := here.pop()) and snapshot.vault.stat(path) is not None:
            return path.rpartition("/")[2][:-3]
        folder = f"{snapshot.inbox}/{REPORTS}"
        wanted = file_name(f"Merge {redact(record.title)}") or "Merge"
        path = join(folder, f"{choose_free_name(snapshot, f'{folder}/{wanted}.md')}.md")
        capture, note = snapshot.vault.read(record.path)[0], snapshot.vault.read(target)[0]
        snapshot.vault.create(
            path, encode(format_question(offered, record.path, target, decode(capture), decode(note)))
        )
        self._proposals.mark_placed(keys, path)
        snapshot.sync.hint([path])
        return path.rpartition("/")[2][:-3]

    def _carry_out(self, about: Mapping[str, Any]) -> str:
        """Do what was ticked, after which the other boxes are no question any more."""
        outcome = self._apply_choice(about)
        same = (about["id"], about["target"])
        others = self._proposals.list_open().items()
        self._proposals.mark_superseded(
            key for key, (kind, other) in others if kind == KIND and (other["id"], other["target"]) == same
        )
        return outcome

    def _apply_choice(self, about: Mapping[str, Any]) -> str:
        """Do what was ticked. Raises Conflict or NotFound when one of the two is not what was shown."""
        snapshot, target = self._snapshot, about["target"]
        self._promotions.finish_pending()  # a crash may have left this very one half done
        if outcome := self._done_before_crash(about):
            return outcome
        record = snapshot.find_capture(about["id"])
        if about["choice"] != "leave":
            if record.content_hash != about["content"]:
                raise Conflict("the capture was changed since")
            if sha256(snapshot.vault.read(target)[0]) != about["digest"]:
                raise Conflict(f"{target} was changed since")
        if about["choice"] == "rename":
            plan = self._promotions.make_plan(record, to=target.rpartition("/")[0], called=about["name"])
            (done,) = self._promotions.carry_out([plan])
            if isinstance(done, MemexError):
                raise done
            return f"promoted as {done['target']}"
        if about["choice"] == "append":
            self._promotions.merge(record.id, target)
            return f"appended to {target}"
        self._leave_in_inbox(record)
        return "left in the inbox"

    def _done_before_crash(self, about: Mapping[str, Any]) -> str:
        """What was done of it before a crash, and not told; "" = nothing."""
        kind, source, there = self._promotions.last_action(about["id"])
        if not kind or self._snapshot.vault.stat(source) is not None:
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
            raise NotFound(f"its mark can't be taken out: {error}") from error
        if encode(text) != raw:
            snapshot.vault.replace(record.path, encode(text), digest=sha256(raw))
            snapshot.sync.hint([record.path])


def format_question(offered: Iterable[Proposal], source: str, target: str, capture: str, note: str) -> str:
    """The note that asks."""
    labels = {
        "rename": "Promote the capture as “{name}”",
        "append": "Append the capture's text to the note that is there; links to the capture lead to it then",
        "leave": "Leave the capture in the inbox, and take its mark off",
    }
    boxes = [
        format_checkbox(
            labels[proposal.about["choice"]].format(name=quote_inline(proposal.about.get("name", ""))), proposal.key
        )
        for proposal in offered
    ]
    old, new = (redact(split(text)[1]).splitlines() for text in (note, capture))
    lines = list(difflib.unified_diff(old, new, quote_inline(target), quote_inline(source), lineterm="", n=3))
    more = [f"… and {len(lines) - MOST:,} lines more"] if len(lines) > MOST else []
    return "\n".join(
        [
            f"{link_to(source)} was marked to be promoted, and {link_to(target)} was there already. What is ticked is done:",
            "",
            *boxes,
            "",
            "What differs, from the note that is there to the capture:",
            "",
            *(quote_block("\n".join([*lines[:MOST], *more]), "diff") if lines else ["Their texts are the same."]),
            "",
        ]
    )
