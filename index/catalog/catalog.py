"""The catalog keeps everything that Memex knows about each indexed file, except its text, in one SQLite file per scope.

Rows are keyed by path. Law, tested: the content of the catalog, and so each answer, depends on the documents and not
on the order in which they were written."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from index.catalog import sqlite_file
from index.catalog.schema import CHANGED, CONTESTED, FILED, RECORD, insert_statements, to_record, to_signed, to_unsigned
from index.catalog.sqlite_file import Database
from index.document_ids import path_id
from index.errors import InvalidArgument
from index.graph.vertex import Vertex
from index.model import Defect, Document, DocumentOverview, Entry, Observation, Record, Stat, Statement
from index.names import stem

RECORDS: Final = f"select {', '.join(RECORD)} from records"  # noqa: S608 - column names of our own

# What `tag_uses` has for a workspace, for one namespace of it.
_TAGS_OF_NAMESPACE: Final = """(select key, tag, count(*) as documents from tags where workspace = ?1
  and path in (select path from documents where workspace = ?1 and namespace = ?3) group by key, tag)"""


class Catalog(Database):
    """Holds what Memex knows about the files of one scope; safe to use from any thread. A read never waits for a write."""

    # Reading

    def manifest(self) -> dict[str, Entry]:
        """Return all indexed files by path."""
        rows = self.rows("select path, coalesce(claimed, key), digest, size, mtime_ns, ino, embedded from documents")
        return {
            path: Entry(path, id, digest, Stat(size, mtime_ns, to_unsigned(ino)), bool(embedded))
            for path, id, digest, size, mtime_ns, ino, embedded in rows
        }

    def get(self, id: str, workspace: str | None = None) -> Record | None:
        """Return the document of `workspace` with this id; without a workspace, the one with the shortest path of all."""
        here, values = ("", (id,)) if workspace is None else (" and workspace = ?", (id, workspace))
        record = self._first_record(f"claimed = ?{here} order by length(path), path limit 1", *values)
        record = record or self._first_record(f"key = ?{here}", *values)
        return record if record and record.id == id else None

    def record_at(self, path: str) -> Record | None:
        """Return the document at `path`."""
        return self._first_record("path = ?", path)

    def records_of_file(self, path: str) -> list[Record]:
        """Return the documents whose stored file is at `path`, ordered by path."""
        return [to_record(values) for values in self.rows(f"{RECORDS} where file = ? order by path", path)]

    def stored_files(self, workspace: str | None = None) -> list[tuple[str, str]]:
        """Return the stored files that documents of a workspace, or of all, refer to, each with the path of its note."""
        query = "select file, path from documents where file is not null and workspace = coalesce(?, workspace)"
        return self.rows(f"{query} order by file, path", workspace)

    def notes_without_file(self, workspace: str) -> list[str]:
        """Return the paths of the notes of files in a workspace that name no stored file of it."""
        query = "select path from documents where type = 'file' and file is null and workspace = ? order by path"
        return [path for (path,) in self.rows(query, workspace)]

    def records(self, keys: Collection[str]) -> dict[str, Record]:
        """Return the documents with these keys (`path_id` of their paths), by key."""
        return {
            path_id(document.path): document
            for document in map(to_record, self.rows_in(f"{RECORDS} where key in", keys))
        }

    def superseded(self, keys: Collection[str]) -> list[Record]:
        """Return those of the documents with these keys that a newer document supersedes, ordered by path."""
        query = "select key from documents indexed by documents_superseded where superseded_by is not null"
        # The index contains no other documents, so it is small, and often empty.
        if not self.rows(f"{query} limit 1"):
            return []
        older = [key for (key,) in self.rows_in(f"{query} and key in", keys)]
        return sorted(self.records(older).values(), key=lambda record: record.path)

    def find_capture(
        self, workspace: str, content_hash: str, collection: str | None = None, *, notes_of: str | None = None
    ) -> Record | None:
        """Return the oldest document of `workspace`, or of one of its collections, that has exactly this content and is no entity.

        `notes_of`: only a note of this namespace."""
        return self._first_record(
            "workspace = ? and content_hash = ? and type <> 'entity' and coalesce(collection = ?, 1) "
            "and coalesce(namespace || type = ? || 'note', 1) order by created_at, path limit 1",
            *(workspace, content_hash, collection, notes_of),
        )

    def recent(
        self, *, workspace: str | None, limit: int, before: int | None = None, namespace: str | None = None
    ) -> list[Record]:
        """Return the newest documents by creation time, older than `before`; documents of one time are ordered by path."""
        conditions = {"workspace = ?": workspace, "created_at < ?": before, "namespace = ?": namespace}
        asked = {condition: value for condition, value in conditions.items() if value is not None}
        condition = f"where {' and '.join(asked)}" if asked else ""
        query = f"{RECORDS} {condition} order by created_at desc, path limit ?"
        return [to_record(values) for values in self.rows(query, *asked.values(), limit)]

    def list_documents(self, workspace: str) -> list[DocumentOverview]:
        """Return all documents of `workspace` in order of their ids, without their texts."""
        rows = self.rows(
            "select id, key, path, title, type, tags, created_at, updated_at, content_hash from records "
            "where workspace = ? order by id",
            workspace,
        )
        return [
            DocumentOverview(id, key, path, title, type, tuple(json.loads(tags)), *rest)
            for id, key, path, title, type, tags, *rest in rows
        ]

    def newest_paths(
        self, workspace: str, limit: int, ids: Collection[str] | None = None, *, without: str = ""
    ) -> list[str]:
        """Return the paths of the `limit` documents of `workspace` that changed last, of all or of those with these `ids`.

        Documents of the type `without` are left out, and those of one time are in order of their ids. Without `ids`, only
        `limit` rows are read, however many there are."""
        if ids is None:
            query = f"select path from records where workspace = ? and type <> ? order by {CHANGED} desc, id limit ?"  # noqa: S608 - a constant
            return [path for (path,) in self.rows(query, workspace, without, limit)]
        order = {
            path: (-changed, id)
            for column in ("claimed", "key")  # an id is one of both
            for path, id, where, kind, changed in self.rows_in(
                f"select path, id, workspace, type, {CHANGED} from records where {column} in",  # noqa: S608 - constants
                ids,
            )
            if where == workspace and kind != without and id in ids
        }
        return sorted(order, key=order.__getitem__)[:limit]

    def linked_names(self, but: Sequence[str] = ()) -> set[str]:
        """Return the names, folded by `stem`, to which notes link; links to themselves and notes below the folders `but` are left out."""
        rows = self.rows("select distinct path, target from links where target <> ''")
        memo_rows = self.rows("select distinct path, link from memo_relations where link <> ''")
        folders = tuple(f"{folder}/" for folder in but)
        return {stem(to) for path, to in (*rows, *memo_rows) if stem(to) != stem(path) and not path.startswith(folders)}

    def owner_marks(self, paths: Collection[str] | None = None) -> Iterator[tuple[str, str, str, str]]:
        """Path, digest, type and the owner's marks of the documents at `paths`, or of all."""
        query = "select path, digest, type, owner_marks from documents"
        return iter(self.rows(query)) if paths is None else self.rows_in(f"{query} where path in", paths)

    def count_owner_marks(self) -> list[tuple[str, str, int]]:
        """Count the documents of each type and owner's marks; those whose bytes are unknown are left out."""
        query = "select type, owner_marks, count(*) from documents where digest <> '' group by type, owner_marks"
        return self.rows(query)

    def records_at(self, paths: Collection[str]) -> Iterator[Record]:
        """Return the documents at these paths."""
        return map(to_record, self.rows_in(f"{RECORDS} where path in", paths))

    def skipped_files(self) -> dict[str, str]:
        """Return the files that are not indexed, and why."""
        return dict(self.rows("select path, reason from skipped order by path"))

    def defects(self, workspace: str | None = None) -> list[tuple[str, Defect]]:
        """Return the defects of files in `workspace`, or everywhere, ordered by path."""
        rows = self.rows("select path, workspace, defects from documents where defects <> '[]'")
        pairs = [
            (path, Defect(*defect))
            for path, where, defects in rows
            if workspace in (None, where)
            for defect in json.loads(defects)
        ]
        rows = self.rows("select path, workspace, reason from skipped")
        pairs += [(path, Defect("not-indexed", reason)) for path, where, reason in rows if workspace in (None, where)]
        return sorted(pairs, key=lambda pair: (pair[0], pair[1].name, pair[1].detail))

    def vocabulary(self, workspace: str, limit: int, namespace: str | None = None) -> list[tuple[str, int]]:
        """Return the most frequent tags of `workspace`, or of one namespace, in their most frequent spelling, with the number of documents."""
        spellings = "tag_uses where workspace = ?1" if namespace is None else _TAGS_OF_NAMESPACE
        rows = self.rows(
            f"select tag, max(documents), sum(documents) as used from {spellings} "  # noqa: S608 - constants
            "group by key order by used desc, key limit ?2",
            workspace,
            limit,
            *([] if namespace is None else [namespace]),
        )
        return [(tag, used) for tag, _, used in rows]

    def unlabelled_paths(self, workspace: str | None = None, summed: Collection[tuple[str, str]] = ()) -> list[str]:
        """Return the paths of notes and files in `workspace`, or everywhere, that lack a summary or tags and may get them.

        `summed`: workspace ("" = any) and claimed id of notes that Memex has read for a summary; their first sentence counts as
        a summary."""
        rows = self.rows(
            "select path, workspace, claimed, summary is null or tags = '[]' from documents where (summary is null or summary_derived or tags = '[]') and type in ('note', 'file') and writable "
            "and claimed is not null and (? is null or workspace = ?) order by created_at, path",
            workspace,
            workspace,
        )
        return [
            path
            for path, space, claimed, lacking in rows
            if lacking or not ((space, claimed) in summed or ("", claimed) in summed)
        ]

    def contested_paths(self) -> set[str]:
        """Return the paths of writable documents that name several collections."""
        return {path for (path,) in self.rows(CONTESTED)}

    def vertices(self) -> Iterator[tuple[str, Vertex]]:
        """Yield every entity with its workspace."""
        stated: dict[str, list[Statement]] = {}
        shared: dict[str, str] = {}  # each target, so that it is in memory once
        for path, kind, target in self.rows("select path, type, target from relations order by path, ord"):
            stated.setdefault(path, []).append(Statement(sys.intern(kind), shared.setdefault(target, target)))
        rows = self.rows(
            """select workspace, path, coalesce(claimed, key), name, entity_type, summary, own_tags, aliases, created_at, updated_at,
            version, observations, last_ordinal, unsettled, summary_updated_at, observed_at from nodes join documents using (path)"""
        )
        for workspace, path, id, name, kind, summary, tags, aliases, *numbers in rows:
            created, updated, version, observations, last, unsettled, summarised, observed = numbers
            yield (
                workspace,
                Vertex(
                    path=path,
                    id=id,
                    name=name,
                    entity_type=sys.intern(kind),
                    summary=summary,
                    tags=tuple(map(sys.intern, json.loads(tags))),
                    aliases=tuple(json.loads(aliases)),
                    created_at=created,
                    updated_at=updated,
                    version=version,
                    observations=observations,
                    last_ordinal=last,
                    unsettled=bool(unsettled),
                    summary_updated_at=summarised,
                    observed_at=observed,
                    relations=tuple(stated.get(path, ())),
                ),
            )

    def observations(self, paths: Collection[str]) -> dict[str, tuple[Observation, ...]]:
        """Return the observations of the nodes at these paths, in order of their ordinals."""
        by_path: dict[str, list[Observation]] = {path: [] for path in paths}
        for path, ordinal, content in self.rows_in(
            "select path, ordinal, content from observations where path in", paths
        ):
            by_path[path].append(Observation(ordinal, content))
        return {
            path: tuple(sorted(observations, key=lambda observation: observation.ordinal))
            for path, observations in by_path.items()
        }

    def facet_counts(self) -> dict[str, int]:
        """Return the number of rows of each entity's observations, by key; `Observations.row_counts` must agree."""
        return dict(self.rows("select key, rows from facets join documents using (path)"))

    def stored_perspectives(self) -> list[tuple[str, str]]:
        """Return each workspace that has observations, and the perspectives that some of them are stored under."""
        return self.rows("select distinct workspace, perspectives from facets order by workspace, perspectives")

    def paths_embedded_under(self, workspace: str, perspectives: str) -> list[str]:
        """Return the paths of the nodes of `workspace` that are stored under these perspectives."""
        query = "select path from facets where workspace = ? and perspectives = ? order by path"
        return [path for (path,) in self.rows(query, workspace, perspectives)]

    def node_paths(self, workspace: str) -> dict[str, str]:
        """Return the paths of the nodes of `workspace` that have observations, by key."""
        query = "select key, path from facets join documents using (path) where facets.workspace = ?"
        return dict(self.rows(query, workspace))

    def is_embedded(self, workspace: str, perspectives: str) -> bool:
        """Return whether all observations of `workspace` are embedded under these perspectives; fast for any number of them."""
        # SQLite would read all entities of the workspace for "<>", "or" or an index that it chooses itself.
        lacking = self.rows(
            "select 1 from facets where workspace = ?1 and perspectives < ?2 union all "
            "select 1 from facets where workspace = ?1 and perspectives > ?2 union all "
            "select 1 from facets indexed by facets_lacking where workspace = ?1 and embedded < observations limit 1",
            workspace,
            perspectives,
        )
        return not lacking

    def embedded_counts(self, workspace: str, perspectives: str) -> tuple[int, int]:
        """Return how many observations of `workspace` are embedded under these perspectives, and how many there are."""
        [(done, there)] = self.rows(
            "select coalesce(sum(case when perspectives = ? then embedded end), 0), coalesce(sum(observations), 0) "
            "from facets where workspace = ?",
            perspectives,
            workspace,
        )
        return done, there

    def counts(self) -> tuple[int, int]:
        """Return how many documents and chunks there are."""
        [(documents, chunks)] = self.rows("select count(*), coalesce(sum(chunks), 0) from documents")
        return documents, chunks

    def chunk_counts(self) -> dict[str, int]:
        """Return the number of chunks of each document, by key; `ChunkStore.row_counts` must agree, except for zeros."""
        return dict(self.rows("select key, chunks from documents"))

    # Writing

    def write(
        self,
        *,
        upserts: Sequence[tuple[Document, Stat, int, bool]] = (),
        removes: Collection[str] = (),
        facets: Mapping[str, tuple[str, int, int]] = MappingProxyType({}),
        unsettled: Collection[str] = (),
    ) -> int:
        """Write documents, each with its stat, its number of chunks and whether these have vectors, and remove paths, in one transaction.

        `facets` describe entities with observations, by path: the perspectives under which they are stored, the number
        of observations with all vectors, and the number of rows. `unsettled`: the keys of those whose rows a store keeps only
        in memory for now. Returns the generation, which grows with every change."""
        if not upserts and not removes:
            return self.generation
        with self.transaction() as writer:
            paths = [*removes, *(document.path for document, *_ in upserts)]
            writer.executemany("delete from documents where path = ?", [(path,) for path in paths])
            writer.executemany("delete from unsettled where key = ?", [(path_id(path),) for path in paths])
            writer.executemany("insert or ignore into unsettled values (?)", [(key,) for key in unsettled])
            for document, stat, chunks, embedded in upserts:
                try:
                    for statement, values in insert_statements(document, stat, chunks, embedded=embedded):
                        writer.executemany(statement, values)
                except UnicodeEncodeError as error:
                    raise InvalidArgument(f"{document.path!a}: a property holds half a character") from error
                if facet := facets.get(document.path):
                    assert document.node is not None, "facets of a note that is no node"
                    perspectives, done, rows = facet
                    about = (document.path, document.workspace, perspectives, len(document.node.observations))
                    writer.execute("insert into facets values (?, ?, ?, ?, ?, ?)", (*about, done, rows))
            writer.execute(
                "insert into meta values ('generation', '1') on conflict do update set value = cast(value as integer) + 1"
            )
        return self.generation

    def touch(self, stats: Mapping[str, Stat]) -> None:
        """Store the new stat of files whose bytes are unchanged."""
        with self.transaction() as writer:
            writer.executemany(
                "update documents set size = ?, mtime_ns = ?, ino = ? where path = ?",
                [(stat.size, stat.mtime_ns, to_signed(stat.ino), path) for path, stat in stats.items()],
            )

    def replace_skipped(self, skipped: Mapping[str, str], *, workspace: Callable[[str], str] = lambda _: "") -> None:
        """Replace the list of files that are not indexed, with reasons. `workspace` returns the workspace of a path."""
        with self.transaction() as writer:
            writer.execute("delete from skipped")
            rows = [(path, workspace(path), reason) for path, reason in skipped.items()]
            writer.executemany("insert into skipped values (?, ?, ?)", rows)

    def mark_unsettled(self, keys: Collection[str]) -> None:
        """Record that the rows of these documents in the stores are being replaced, until the documents are written."""
        if keys:
            with self.transaction() as writer:
                writer.executemany("insert or ignore into unsettled values (?)", [(key,) for key in keys])

    def settle(self, keys: Collection[str]) -> None:
        """Record that the rows of these documents are in the stores."""
        if keys:
            with self.transaction() as writer:
                writer.executemany("delete from unsettled where key = ?", [(key,) for key in keys])

    def take_unsettled(self) -> set[str]:
        """Return the documents whose rows were being replaced when the process ended or the write failed; their digests become unknown."""
        keys = {key for (key,) in self.rows("select key from unsettled")}
        if keys:
            self.forget(keys)  # first: after a crash in between this runs again
            with self.transaction() as writer:
                writer.execute("delete from unsettled")
        return keys

    def forget(self, keys: Iterable[str] | None = None) -> None:
        """Mark the digests of these documents (None: of all) as unknown, so that the next listing treats their files as changed."""
        unknown = "update documents set digest = '', size = -1, mtime_ns = -1, ino = -1"
        with self.transaction() as writer:
            if keys is None:
                writer.execute(unknown)
            else:
                writer.executemany(f"{unknown} where key = ?", [(key,) for key in keys])

    def forget_refiled(self, known: Sequence[str]) -> list[str]:
        """Mark the digests of documents as unknown whose collection depends on the `known` collections; return their paths.

        Does nothing if the known collections are the same as at the last call."""
        names = json.dumps(list(known))
        if self._read_meta("collections", "") == names:
            return []
        paths = [path for (path,) in self.rows(FILED)]
        self.forget(map(path_id, paths))  # first: after a crash in between it runs again
        self._write_meta("collections", names)
        return paths

    @property
    def generation(self) -> int:
        """Return a number that grows by one with each change of the documents."""
        return int(self._read_meta("generation", "0"))

    def continue_generation(self, generation: int) -> None:
        """Continue counting from `generation`, the number of the catalog that this one replaces."""
        self._write_meta("generation", str(max(self.generation, generation) + 1))

    @property
    def is_complete(self) -> bool:
        """Return whether the owner of the catalog has marked it as complete."""
        return self._read_meta("complete", "") == "yes"

    @is_complete.setter
    def is_complete(self, value: bool) -> None:
        self._write_meta("complete", "yes" if value else "no")

    # Helpers

    def _read_meta(self, name: str, otherwise: str) -> str:
        rows = self.rows("select value from meta where name = ?", name)
        return str(rows[0][0]) if rows else otherwise

    def _write_meta(self, name: str, value: str) -> None:
        with self.transaction() as writer:
            writer.execute("insert or replace into meta values (?, ?)", (name, value))

    def _first_record(self, condition: str, *values: Any) -> Record | None:
        rows = self.rows(f"{RECORDS} where {condition}", *values)
        return to_record(rows[0]) if rows else None


def read_row_counts(path: Path) -> tuple[dict[str, int], dict[str, int], set[str]]:
    """Read the number of chunks and of facets of each document from the catalog at `path`, without changing it.

    The third result: the keys of documents whose rows may not be in the stores yet; the next start reads their files again.
    Raises Unavailable with the reason if the catalog can't be read."""
    chunks, facets, unsettled = sqlite_file.query_read_only(
        path,
        "select key, chunks from documents",
        "select key, rows from facets join documents using (path)",
        "select key from unsettled",
    )
    return dict(chunks), dict(facets), {key for (key,) in unsettled}


def read_paths(path: Path) -> list[str]:
    """Read the path of each document from the catalog at `path`, without changing it. Raises Unavailable with the reason if that fails."""
    (rows,) = sqlite_file.query_read_only(path, "select path from documents")
    return [document for (document,) in rows]
