"""The relations between memos, each end found as it is now.

Law: a relation counts only while both memos are there, in one namespace. What is stated twice, once by id and once by link,
is one relation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from index.identity import owner, path_id, stem
from index.model import MemoRelation, Record
from index.schema import RECORD, record

if TYPE_CHECKING:
    from index.catalog import Catalog

RECORDS: Final = f"select {', '.join(RECORD)} from records"  # noqa: S608 - column names of our own
STATED: Final = (
    "select r.path, r.ord, r.stem, r.target, r.link, r.tag, r.weight, r.reason, r.version, r.created_at, r.updated_at "
    "from memo_relations as r"
)


@dataclass(frozen=True, slots=True)
class Tie:
    """A relation, and the memos at its two ends."""

    source: Record
    target: Record
    relation: MemoRelation

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells one relation from another."""
        return self.source.path, self.target.path, self.relation.tag

    @property
    def created_at(self) -> int:
        """When it was made; without a time of its own, when its memo was."""
        return self.source.created_at if self.relation.created_at is None else self.relation.created_at

    @property
    def updated_at(self) -> int:
        """When it last changed, or was made."""
        return self.created_at if self.relation.updated_at is None else self.relation.updated_at


class Ties:
    """The relations of all memos of an index; `paths` gives those of all its notes."""

    def __init__(self, catalog: Catalog, paths: Callable[[], Collection[str]]) -> None:
        self._catalog, self._paths = catalog, paths

    def within(self, workspace: str, namespace: str) -> list[Tie]:
        """All relations of a namespace."""
        return self._found(
            self._catalog.rows(
                f"{STATED} join documents as d using (path) where d.workspace = ? and d.namespace = ?",
                workspace,
                namespace,
            )
        )

    def out_of(self, memos: Iterable[Record]) -> list[Tie]:
        """The relations that begin at these memos."""
        return self._found(self._catalog.rows_in(f"{STATED} where r.path in", (memo.path for memo in memos)))

    def into(self, memos: Collection[Record]) -> list[Tie]:
        """The relations that lead to these memos."""
        stated = [
            *self._catalog.rows_in(f"{STATED} where r.target in", {memo.id for memo in memos}),
            *self._catalog.rows_in(
                f"{STATED} where r.target is null and r.stem in", {stem(memo.path) for memo in memos}
            ),
        ]
        asked = {memo.path for memo in memos}
        return [tie for tie in self._found(stated) if tie.target.path in asked]

    def _found(self, stated: Iterable[Sequence[Any]]) -> list[Tie]:
        """Those of what is stated that have both ends, in the order of notes and entries."""
        rows = sorted(stated, key=lambda row: (row[0], row[1]))
        sources = {memo.path: memo for memo in self._records("path", {row[0] for row in rows})}
        targets = self._by_id({row[3] for row in rows if row[3] is not None})
        named = self._by_name({row[2] for row in rows if row[3] is None})
        ties: dict[tuple[str, str, str], Tie] = {}
        for path, _, name, id, *rest in rows:
            source = sources.get(path)
            if source is None:
                continue
            target = named.get((source.workspace, name)) if id is None else targets.get(id)
            if target and _together(source, target):
                tie = Tie(source, target, MemoRelation(id, *rest))
                ties.setdefault(tie.key, tie)
        return list(ties.values())

    def _records(self, column: str, values: Collection[str]) -> list[Record]:
        return [record(row) for row in self._catalog.rows_in(f"{RECORDS} where {column} in", values)]

    def _by_id(self, ids: Collection[str]) -> dict[str, Record]:
        found = [*self._records("claimed", ids), *self._records("key", ids)]
        return {memo.id: memo for memo in found if memo.id in ids}

    def _by_name(self, names: Collection[str]) -> dict[tuple[str, str], Record]:
        """The memos that links mean, by workspace and name: of several, the one with the best right to it."""
        if not names:
            return {}
        paths = [path for path in list(self._paths()) if stem(path) in names]
        alike: dict[tuple[str, str], list[Record]] = {}
        for memo in self._records("key", [path_id(path) for path in paths]):
            alike.setdefault((memo.workspace, stem(memo.path)), []).append(memo)
        return {
            key: next(memo for memo in memos if memo.path == owner(one.path for one in memos))
            for key, memos in alike.items()
        }


def _together(source: Record, target: Record) -> bool:
    same = (source.workspace, source.namespace) == (target.workspace, target.namespace)
    return same and "entity" not in (source.type, target.type)
