"""Resolve the relations between memos to the memos at both ends, and follow them from a memo level by level.

Law: a relation counts only while both memos exist in one namespace. A relation that is stated twice, once by id and once by
link, is one relation.

Law, tested: a walk reports each relation once, at the smallest depth at which it occurs, and visits no memo twice, so it
ends in spite of loops."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from index.document_ids import choose_owner, path_id
from index.model import MemoRelation, Record
from index.names import stem

if TYPE_CHECKING:
    from index.catalog.catalog import Catalog

NO_MEMOS: Final = ("entity", "change")  # types of notes that are no memos, in any tool of the family
BATCH: Final = 500  # relations that are resolved at a time if the first ones are not enough
ENDS: Final = "select id, path, workspace, namespace, type, created_at from records"
STATED: Final = (
    "select r.path, r.ord, r.stem, r.target, r.link, r.tag, r.weight, r.reason, r.version, r.created_at, r.updated_at "
    "from memo_relations as r"
)


@dataclass(frozen=True, slots=True)
class MemoEnd:
    """Holds the fields of a memo that its relations need."""

    id: str
    path: str
    workspace: str
    namespace: str
    type: str
    created_at: int


@dataclass(frozen=True, slots=True)
class MemoTie:
    """Holds a relation and the memos at its two ends."""

    source: MemoEnd
    target: MemoEnd
    relation: MemoRelation

    @property
    def key(self) -> tuple[str, str, str]:
        """Return the identity of the relation: both ends and the tag."""
        return self.source.path, self.target.path, self.relation.tag

    @property
    def created_at(self) -> int:
        """Return the creation time of the relation or, if its note does not state it, of its memo."""
        return self.source.created_at if self.relation.created_at is None else self.relation.created_at

    @property
    def updated_at(self) -> int:
        """Return the time of the last change or, without one, of the creation."""
        return self.created_at if self.relation.updated_at is None else self.relation.updated_at


def end_of(memo: Record) -> MemoEnd:
    """Convert a memo to an end of a relation."""
    return MemoEnd(memo.id, memo.path, memo.workspace, memo.namespace, memo.type, memo.created_at)


class MemoRelations:
    """Reads the relations of all memos of an index; `paths` returns the paths of its notes."""

    def __init__(self, catalog: Catalog, paths: Callable[[], Collection[str]]) -> None:
        self._catalog, self._paths = catalog, paths

    def list_relations(self, workspace: str, namespace: str, tag: str | None, most: int) -> list[MemoTie]:
        """Return at most `most` relations of a namespace, the last changed first."""
        rows = self._catalog.rows(
            f"""{STATED} join documents as d using (path) where d.workspace = ? and d.namespace = ? and (? is null or r.tag = ?)
            order by coalesce(r.updated_at, r.created_at, d.created_at) desc, r.path, r.ord""",
            *(workspace, namespace, tag, tag),
        )
        ties: dict[tuple[str, str, str], MemoTie] = {}
        start, size = 0, most
        while len(ties) < most and start < len(rows):
            ties |= {tie.key: tie for tie in self._resolve_ends(rows[start : start + size]) if tie.key not in ties}
            start, size = start + size, max(most, BATCH)  # many relations may lack a memo
        kept = dict(islice(ties.items(), most))
        counting = {tie.key: tie for tie in self.outgoing({tie.source for tie in kept.values()})}
        return [counting.get(key, tie) for key, tie in kept.items()]

    def outgoing(self, memos: Iterable[MemoEnd]) -> list[MemoTie]:
        """Return the relations that begin at these memos."""
        return self._resolve_ends(
            _in_note_order(self._catalog.rows_in(f"{STATED} where r.path in", {memo.path for memo in memos}))
        )

    def incoming(self, memos: Collection[MemoEnd]) -> list[MemoTie]:
        """Return the relations that lead to these memos."""
        stated = [
            *self._catalog.rows_in(f"{STATED} where r.target in", {memo.id for memo in memos}),
            *self._catalog.rows_in(
                f"{STATED} where r.target is null and r.stem in", {stem(memo.path) for memo in memos}
            ),
        ]
        asked = {memo.path for memo in memos}
        return [tie for tie in self._resolve_ends(_in_note_order(stated)) if tie.target.path in asked]

    def leads_to(self, memo: Record, relation: MemoRelation) -> bool:
        """Return whether a relation of a note in the same workspace leads to this memo, as `incoming` resolves it."""
        if relation.target is not None:
            return relation.target == memo.id
        name = stem(memo.path)
        if stem(relation.link) != name:
            return False
        meant = self._ends_by_name({name}).get((memo.workspace, name))  # it may be a note with a better claim
        return meant is not None and meant.path == memo.path

    def _resolve_ends(self, rows: Sequence[Sequence[Any]]) -> list[MemoTie]:
        """Return the stated relations whose two ends exist, in the given order, and only the first statement of each relation."""
        sources = {memo.path: memo for memo in self._read_ends("path", {row[0] for row in rows})}
        targets = self._ends_by_id({row[3] for row in rows if row[3] is not None})
        named = self._ends_by_name({row[2] for row in rows if row[3] is None})
        ties: dict[tuple[str, str, str], MemoTie] = {}
        for path, _, name, id, *rest in rows:
            source = sources.get(path)
            if source is None:
                continue
            target = (named if id is None else targets).get((source.workspace, name if id is None else id))
            if target and _may_be_related(source, target):
                tie = MemoTie(source, target, MemoRelation(id, *rest))
                ties.setdefault(tie.key, tie)
        return list(ties.values())

    def _read_ends(self, column: str, values: Collection[str]) -> list[MemoEnd]:
        return [MemoEnd(*row) for row in self._catalog.rows_in(f"{ENDS} where {column} in", values)]

    def _ends_by_id(self, ids: Collection[str]) -> dict[tuple[str, str], MemoEnd]:
        """Return the memos that have these ids, by workspace and id."""
        memos = [*self._read_ends("claimed", ids), *self._read_ends("key", ids)]
        return {(memo.workspace, memo.id): memo for memo in memos if memo.id in ids}

    def _ends_by_name(self, names: Collection[str]) -> dict[tuple[str, str], MemoEnd]:
        """Return the memos that links mean, by workspace and name; of several memos, the one with the best claim to the name."""
        if not names:
            return {}
        paths = [path for path in list(self._paths()) if stem(path) in names]
        alike: dict[tuple[str, str], list[MemoEnd]] = {}
        for memo in self._read_ends("key", [path_id(path) for path in paths]):
            alike.setdefault((memo.workspace, stem(memo.path)), []).append(memo)
        return {
            key: next(memo for memo in memos if memo.path == choose_owner(candidate.path for candidate in memos))
            for key, memos in alike.items()
        }


def _in_note_order(stated: Iterable[Sequence[Any]]) -> list[Sequence[Any]]:
    """Sort statements by note and entry; the first of two statements of one relation counts."""
    return sorted(stated, key=lambda row: (row[0], row[1]))


def _may_be_related(source: MemoEnd, target: MemoEnd) -> bool:
    same = (source.workspace, source.namespace) == (target.workspace, target.namespace)
    return same and source.type not in NO_MEMOS and target.type not in NO_MEMOS


Direction: TypeAlias = Literal["forward", "backward"]


@dataclass(frozen=True, slots=True)
class WalkStep:
    """Describes a relation that a walk found."""

    tie: MemoTie
    depth: int  # from 1
    direction: Direction  # in which the walk followed it
    path: tuple[str, ...]  # the ids of the memos from the start to its far end, both included
    loop: bool  # its far end is already on the path


def walk(
    relations: MemoRelations,
    start: MemoEnd,
    directions: Collection[Direction],
    *,
    depth: int,
    most: int,
    tag: str | None = None,
) -> tuple[list[WalkStep], bool]:
    """Return the relations within `depth` of `start`, nearest first and heavier before lighter, and whether more exist."""
    steps: list[WalkStep] = []
    met: set[tuple[str, str, str]] = set()
    reached = {start.path}
    edge: dict[str, tuple[MemoEnd, tuple[str, ...]]] = {start.path: (start, (start.id,))}
    for level in range(1, depth + 1):
        further: dict[str, tuple[MemoEnd, tuple[str, ...]]] = {}
        for tie, direction in _adjacent_relations(relations, [memo for memo, _ in edge.values()], directions):
            if tie.key in met or tag not in (None, tie.relation.tag):
                continue
            if len(steps) == most:
                return steps, True
            near, far = (tie.source, tie.target) if direction == "forward" else (tie.target, tie.source)
            way = edge[near.path][1]
            met.add(tie.key)
            steps.append(WalkStep(tie, level, direction, (*way, far.id), far.id in way))
            if far.path not in reached:
                reached.add(far.path)
                further[far.path] = (far, (*way, far.id))
        edge = further
        if not edge:
            break
    return steps, False


def _adjacent_relations(
    relations: MemoRelations, memos: Collection[MemoEnd], directions: Collection[Direction]
) -> Iterable[tuple[MemoTie, Direction]]:
    """Yield the relations of these memos, in the order in which they are reported."""

    def list_adjacent() -> Iterator[tuple[MemoTie, Direction]]:
        if "forward" in directions:
            yield from ((tie, "forward") for tie in relations.outgoing(memos))
        if "backward" in directions:
            yield from ((tie, "backward") for tie in relations.incoming(memos))

    return sorted(
        list_adjacent(),
        key=lambda pair: (-pair[0].relation.weight, pair[0].created_at, pair[0].key, pair[1] == "backward"),
    )
