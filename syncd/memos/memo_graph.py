"""Save, list and follow the relations between the memos of a namespace, as a graph.

Each relation is saved in the note of its source memo. Law, tested: saving or deleting a relation changes only the
lines of its own entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from index.document_ids import path_id
from index.errors import InvalidArgument, NotFound
from index.memos.relations import Direction, MemoEnd, MemoRelations, MemoTie, WalkStep, end_of, walk
from index.model import MemoRelation, Record
from index.names import stem
from index.scope.index import Index
from syncd.captures.batch_writer import Change, NoteDrafts, write_batch
from syncd.captures.note_update import property_error
from syncd.captures.writer import lock_workspace
from syncd.documents.memo_relations import REASON, checked_tag, drop_relations, round_weight, save_relation
from syncd.memos.memos import Memos
from syncd.notes.front_matter import FrontmatterError

if TYPE_CHECKING:
    from syncd.captures.inbox import Inbox

Way: TypeAlias = Literal["forward", "backward", "both"]
LISTED: Final = 500  # most relations in one list
WALKED: Final = 1_000  # most relations in one walk
DEEPEST: Final = 10
WAYS: Final[Mapping[Way, tuple[Direction, ...]]] = {
    "forward": ("forward",),
    "backward": ("backward",),
    "both": ("forward", "backward"),
}


@dataclass(frozen=True, slots=True)
class ListedRelations:
    """Holds relations, their memos, and whether there are more."""

    ties: tuple[MemoTie, ...]
    memos: tuple[Record, ...]
    truncated: bool


@dataclass(frozen=True, slots=True)
class WalkedRelations:
    """Holds the relations around a memo, the reached memos, and whether there are more."""

    steps: tuple[WalkStep, ...]
    memos: tuple[Record, ...]
    truncated: bool


@dataclass(frozen=True, slots=True)
class _RelationRequest:
    """Holds a relation to write or remove, as the caller named it; None = not given."""

    source: str
    target: str
    tag: str
    namespace: str
    weight: float | None = None
    reason: str | None = None


class MemoGraph:
    """Manages the relations of one workspace's memos."""

    def __init__(self, memos: Memos, inbox: Inbox) -> None:
        self._memos, self._inbox = memos, inbox

    def save(
        self,
        source: str,
        target: str,
        tag: str,
        *,
        namespace: str = "default",
        weight: float | None = None,
        reason: str | None = None,
    ) -> MemoTie:
        """Relate two memos, or change the weight or reason of a relation; `version` increases only if something changes.

        Values that are not given stay, or are 1.0 and no reason for a new relation; an empty reason removes it."""
        tag = checked_tag(tag)
        if weight is not None and not 0 <= weight <= 1:
            raise InvalidArgument("weight must be from 0.00 to 1.00", field="weight")
        if reason is not None and len(reason) > REASON:
            raise InvalidArgument(f"reason must be at most {REASON:,} characters", field="reason")
        wanted = _RelationRequest(
            source, target, tag, namespace, None if weight is None else round_weight(weight), reason
        )
        with lock_workspace(self._inbox, self._memos.workspace):
            return write_batch(self._inbox, partial(self._plan_save, wanted))

    def delete(self, source: str, target: str, tag: str, *, namespace: str = "default") -> MemoTie:
        """Remove a relation, and return it."""
        wanted = _RelationRequest(source, target, checked_tag(tag), namespace)
        with lock_workspace(self._inbox, self._memos.workspace):
            return write_batch(self._inbox, partial(self._plan_delete, wanted))

    def list(
        self,
        *,
        namespace: str = "default",
        source: str | None = None,
        target: str | None = None,
        tag: str | None = None,
        limit: int = 100,
    ) -> ListedRelations:
        """Return the matching relations of a namespace, last changed first."""
        if not 1 <= limit <= LISTED:
            raise InvalidArgument(f"limit must be from 1 to {LISTED}", field="limit")
        asked = None if tag is None else checked_tag(tag)
        try:
            from_ = None if source is None else self._memos.memo(source, namespace)
            to = None if target is None else self._memos.memo(target, namespace)
        except NotFound:
            return ListedRelations((), (), truncated=False)
        ties = self._memos.index.memos.ties
        if from_ is None and to is None:
            matches = ties.list_relations(self._memos.workspace, namespace, asked, limit + 1)
        else:
            beside = (
                ties.outgoing([end_of(from_)])
                if from_ is not None
                else ties.incoming([end_of(to)])
                if to is not None
                else []
            )
            kept = (tie for tie in beside if to is None or tie.target.path == to.path)
            matches = sorted(
                (tie for tie in kept if asked in (None, tie.relation.tag)), key=lambda tie: (-tie.updated_at, tie.key)
            )
        return ListedRelations(tuple(matches[:limit]), self._joined_memos(matches[:limit]), len(matches) > limit)

    def walk(
        self,
        start: str,
        *,
        namespace: str = "default",
        way: Way = "forward",
        depth: int = 3,
        tag: str | None = None,
        limit: int = 100,
    ) -> WalkedRelations:
        """Return the relations within `depth` of a memo, each with the path to it."""
        if not 1 <= depth <= DEEPEST:
            raise InvalidArgument(f"maxDepth must be from 1 to {DEEPEST}", field="maxDepth")
        if not 1 <= limit <= WALKED:
            raise InvalidArgument(f"limit must be from 1 to {WALKED}", field="limit")
        asked = None if tag is None else checked_tag(tag)
        begin = end_of(self._memos.memo(start, namespace))
        steps, more = walk(self._memos.index.memos.ties, begin, WAYS[way], depth=depth, most=limit, tag=asked)
        return WalkedRelations(tuple(steps), self._joined_memos([step.tie for step in steps], begin), more)

    def _plan_save(self, wanted: _RelationRequest, index: Index) -> tuple[Sequence[Change], MemoTie]:
        """Plan the writes that save the relation."""
        drafts, source, target, text, old = self._find_relation(wanted, index)
        if target.id == path_id(target.path):
            self._memos.read(drafts, target)  # raises if it has no id of its own yet
        now, link = self._inbox.now(), target.path.rpartition("/")[2].removesuffix(".md")
        if old is None:
            weight = 1.0 if wanted.weight is None else wanted.weight
            made = MemoRelation(target.id, link, wanted.tag, weight, wanted.reason or None, 1, now, None)
        else:
            made = replace(
                old,
                weight=old.weight if wanted.weight is None else wanted.weight,
                reason=old.reason if wanted.reason is None else wanted.reason or None,
            )
            if made == old:
                return [], MemoTie(end_of(source), end_of(target), old)
            made = replace(
                made,
                target=target.id,
                link=old.link if stem(old.link) == stem(link) else link,
                version=old.version + 1,
                created_at=source.created_at if old.created_at is None else old.created_at,
                updated_at=now,
            )
        try:
            drafts.set_text(
                source.path, save_relation(text, made, partial(_is_same, index.memos.ties, wanted.tag, target))
            )
        except FrontmatterError as error:
            raise property_error(error) from error
        return drafts.changes(), MemoTie(end_of(source), end_of(target), made)

    def _plan_delete(self, wanted: _RelationRequest, index: Index) -> tuple[Sequence[Change], MemoTie]:
        """Plan the writes that remove the relation."""
        drafts, source, target, text, old = self._find_relation(wanted, index)
        if old is None:
            raise NotFound(
                f"no relation {wanted.tag!r} from {wanted.source!r} to {wanted.target!r}; list the relations of the memo to see which exist"
            )
        try:
            drafts.set_text(source.path, drop_relations(text, partial(_is_same, index.memos.ties, wanted.tag, target)))
        except FrontmatterError as error:
            raise property_error(error) from error
        return drafts.changes(), MemoTie(end_of(source), end_of(target), old)

    def _find_relation(
        self, wanted: _RelationRequest, index: Index
    ) -> tuple[NoteDrafts, Record, Record, str, MemoRelation | None]:
        """Return both memos, the text of the source, and the relation as the source states it now."""
        source, target = (self._memos.memo(id, wanted.namespace) for id in (wanted.source, wanted.target))
        drafts = NoteDrafts(self._inbox)
        text, document = self._memos.read(drafts, source)
        old = next(filter(partial(_is_same, index.memos.ties, wanted.tag, target), document.memo_relations), None)
        return drafts, source, target, text, old

    def _joined_memos(self, ties: Sequence[MemoTie], *more: MemoEnd) -> tuple[Record, ...]:
        """Return the related memos, each once, in the order of the relations."""
        keys = dict.fromkeys(
            path_id(memo_end.path) for memo_end in (*more, *(e for tie in ties for e in (tie.source, tie.target)))
        )
        records = self._memos.index.catalog.records(keys)
        return tuple(records[key] for key in keys if key in records)


def _is_same(ties: MemoRelations, tag: str, target: Record, relation: MemoRelation) -> bool:
    return relation.tag == tag and ties.leads_to(target, relation)
