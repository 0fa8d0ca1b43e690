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
from syncd.notes.checkboxes import item
from syncd.notes.front_matter import FrontmatterError, decode, edit, encode, split
from syncd.notes.quoted_text import fenced, link, shown
from syncd.notes.secret_patterns import redacted
from syncd.promotion.plan import other_name
from syncd.promotion.promoted_note import unmarked
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
        proposals.on(KIND, self._carried)

    def ask(self, taken: Sequence[tuple[Record, str]], *, whole: bool = True) -> dict[str, str]:
        """Ask about these captures, each with what is at its destination; the name of the note that asks, by path of capture.

        If these are the `whole`, what is no longer so is not asked any more."""
        asked: dict[str, str] = {}
        kept: list[str] = []
        for record, target in taken:
            try:
                offered = self._offered(record, target)
            except MemexError:  # one of the two is being changed
                whole = False
                continue
            except Exception:  # a mistake of ours in one must not keep the others from being asked about
                log.exception("a capture could not be asked about")
                whole = False
                continue
            keys = self._proposals.offer(offered)
            kept += keys
            if note := self._placed([proposal for proposal in offered if proposal.key in keys], record, target):
                asked[record.path] = note
        if whole:
            self._proposals.withdraw([KIND], kept)
        return asked

    def _offered(self, record: Record, target: str) -> list[Proposal]:
        there = sha256(self._snapshot.vault.read(target)[0])
        about = {"id": record.id, "content": record.content_hash, "target": target, "digest": there}
        choices = [{"choice": "rename", "name": other_name(self._snapshot, target)}, {"choice": "leave"}]
        if not record.file:
            choices.insert(1, {"choice": "append"})
        return [Proposal(KIND, (record.id, target, choice["choice"]), {**about, **choice}) for choice in choices]

    def _placed(self, offered: Sequence[Proposal], record: Record, target: str) -> str:
        """The name of the note that asks, which is made unless it is there; "" = none could be."""
        snapshot = self._snapshot
        keys = [proposal.key for proposal in offered]
        if not keys:
            return ""
        here = {self._proposals.where(key) for key in keys}
        if len(here) == 1 and (path := here.pop()) and snapshot.vault.stat(path) is not None:
            return path.rpartition("/")[2][:-3]
        folder = f"{snapshot.inbox}/{REPORTS}"
        wanted = file_name(f"Merge {redacted(record.title)}") or "Merge"
        path = join(folder, f"{other_name(snapshot, f'{folder}/{wanted}.md')}.md")
        capture, note = snapshot.vault.read(record.path)[0], snapshot.vault.read(target)[0]
        snapshot.vault.create(path, encode(question(offered, record.path, target, decode(capture), decode(note))))
        self._proposals.placed(keys, path)
        snapshot.sync.hint([path])
        return path.rpartition("/")[2][:-3]

    def _carried(self, about: Mapping[str, Any]) -> str:
        """Do what was ticked, after which the other boxes are no question any more."""
        outcome = self._answered(about)
        same = (about["id"], about["target"])
        others = self._proposals.open().items()
        self._proposals.decided(
            key for key, (kind, other) in others if kind == KIND and (other["id"], other["target"]) == same
        )
        return outcome

    def _answered(self, about: Mapping[str, Any]) -> str:
        """Do what was ticked. Raises Conflict or NotFound when one of the two is not what was shown."""
        snapshot, target = self._snapshot, about["target"]
        self._promotions.tend()  # a crash may have left this very one half done
        if outcome := self._done(about):
            return outcome
        record = snapshot.capture(about["id"])
        if about["choice"] != "leave":
            if record.content_hash != about["content"]:
                raise Conflict("the capture was changed since")
            if sha256(snapshot.vault.read(target)[0]) != about["digest"]:
                raise Conflict(f"{target} was changed since")
        if about["choice"] == "rename":
            plan = self._promotions.planned(record, to=target.rpartition("/")[0], called=about["name"])
            (done,) = self._promotions.carry([plan])
            if isinstance(done, MemexError):
                raise done
            return f"promoted as {done['target']}"
        if about["choice"] == "append":
            self._promotions.merge(record.id, target)
            return f"appended to {target}"
        self._left(record)
        return "left in the inbox"

    def _done(self, about: Mapping[str, Any]) -> str:
        """What was done of it before a crash, and not told; "" = nothing."""
        kind, source, there = self._promotions.became(about["id"])
        if not kind or self._snapshot.vault.stat(source) is not None:
            return ""
        renamed = join(about["target"].rpartition("/")[0], f"{about.get('name', '')}.md")
        if (about["choice"], kind, there) == ("append", "merge", about["target"]):
            return f"appended to {there}"
        return f"promoted as {there}" if (about["choice"], kind, there) == ("rename", "promote", renamed) else ""

    def _left(self, record: Record) -> None:
        snapshot = self._snapshot
        raw, _ = snapshot.vault.read(record.path)
        try:
            text = edit(unmarked(decode(raw)), {"promote_problem": None})
        except FrontmatterError as error:
            raise NotFound(f"its mark can't be taken out: {error}") from error
        if encode(text) != raw:
            snapshot.vault.replace(record.path, encode(text), digest=sha256(raw))
            snapshot.sync.hint([record.path])


def question(offered: Iterable[Proposal], source: str, target: str, capture: str, note: str) -> str:
    """The note that asks."""
    labels = {
        "rename": "Promote the capture as “{name}”",
        "append": "Append the capture's text to the note that is there; links to the capture lead to it then",
        "leave": "Leave the capture in the inbox, and take its mark off",
    }
    boxes = [
        item(labels[proposal.about["choice"]].format(name=shown(proposal.about.get("name", ""))), proposal.key)
        for proposal in offered
    ]
    old, new = (redacted(split(text)[1]).splitlines() for text in (note, capture))
    lines = list(difflib.unified_diff(old, new, shown(target), shown(source), lineterm="", n=3))
    more = [f"… and {len(lines) - MOST:,} lines more"] if len(lines) > MOST else []
    return "\n".join(
        [
            f"{link(source)} was marked to be promoted, and {link(target)} was there already. What is ticked is done:",
            "",
            *boxes,
            "",
            "What differs, from the note that is there to the capture:",
            "",
            *(fenced("\n".join([*lines[:MOST], *more]), "diff") if lines else ["Their texts are the same."]),
            "",
        ]
    )
