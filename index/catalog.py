"""Keep what is known of each indexed file, its text aside, in one SQLite file of a scope.

Rows are keyed by path. Law, tested: what the catalog holds, and so each answer, depends on the documents and not on the
order in which they were written.

All of it is derived from the files, so a damaged or outdated catalog is dropped and made again; for the same reason
`synchronous=NORMAL` will do: a power cut may cost the newest rows, and the next listing finds those files changed."""

from __future__ import annotations

import itertools
import json
import logging
import sqlite3
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from index.errors import InvalidArgument, Unavailable
from index.identity import fold, path_id
from index.model import Defect, Document, Entry, Observation, Record, Stat, Statement
from index.schema import RECORD, SCHEMA, VERSION, record, row, signed, unsigned
from index.vertex import Vertex

TERMS: Final = 500  # values in one IN list
IDLE: Final = 4  # connections that are kept for the next reader
DAMAGE: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
RECORDS: Final = f"select {', '.join(RECORD)} from records"  # noqa: S608 - column names of our own

log = logging.getLogger(__name__)


class Catalog:
    """What is known of the files of one scope; safe to use from any thread. A read never waits for a write."""

    fresh: bool  # made just now: empty, whatever the store holds

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writing = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._writer, self.fresh = _opened(path)

    @classmethod
    def open(cls, path: Path) -> Catalog:
        """Open or make the catalog at `path`; a damaged one, or one of another version, is dropped first."""
        return cls(path)

    # What it holds

    def manifest(self) -> dict[str, Entry]:
        """All indexed files by path."""
        rows = self._all("select path, coalesce(claimed, key), digest, size, mtime_ns, ino, embedded from documents")
        return {
            path: Entry(path, own, digest, Stat(size, mtime_ns, unsigned(ino)), bool(embedded))
            for path, own, digest, size, mtime_ns, ino, embedded in rows
        }

    def get(self, id: str) -> Record | None:
        """The document that answers to `id`."""
        record = self._one("claimed = ? order by length(path), path limit 1", id) or self._one("key = ?", id)
        return record if record and record.id == id else None

    def at(self, path: str) -> Record | None:
        """The document at `path`."""
        return self._one("path = ?", path)

    def records(self, keys: Collection[str]) -> dict[str, Record]:
        """The documents with these keys (`path_id` of their paths), by key."""
        return {path_id(found.path): found for found in map(record, self._in(f"{RECORDS} where key in", keys))}

    def captured(self, workspace: str, content_hash: str) -> Record | None:
        """The document of `workspace` with exactly this content; the oldest, if there are several."""
        return self._one(
            "workspace = ? and content_hash = ? order by created_at, path limit 1", workspace, content_hash
        )

    def recent(
        self,
        *,
        workspace: str | None,
        limit: int,
        before: int | None = None,
        namespace: str | None = None,
        collection: str | None = None,
        type: str | None = None,
    ) -> list[Record]:
        """The newest documents by creation, made before `before`; of equal age, by path."""
        given = {
            "workspace = ?": workspace,
            "created_at < ?": before,
            "namespace = ?": namespace,
            "collection = ?": collection,
            "type = ?": type,
        }
        asked = {condition: value for condition, value in given.items() if value is not None}
        condition = f"where {' and '.join(asked)}" if asked else ""
        query = f"{RECORDS} {condition} order by created_at desc, path limit ?"
        return [record(values) for values in self._all(query, *asked.values(), limit)]

    def skipped(self) -> dict[str, str]:
        """The files that are not indexed, and why."""
        return dict(self._all("select path, reason from skipped order by path"))

    def defects(self, workspace: str | None = None) -> list[tuple[str, Defect]]:
        """What is wrong with which file, by path: in `workspace`, or everywhere."""
        rows = self._all("select path, workspace, defects from documents where defects <> '[]'")
        found = [
            (path, Defect(*defect))
            for path, where, defects in rows
            if workspace in (None, where)
            for defect in json.loads(defects)
        ]
        rows = self._all("select path, workspace, reason from skipped")
        found += [(path, Defect("not-indexed", reason)) for path, where, reason in rows if workspace in (None, where)]
        return sorted(found, key=lambda pair: (pair[0], pair[1].name, pair[1].detail))

    def vocabulary(self, workspace: str, limit: int) -> list[tuple[str, int]]:
        """The tags most used in `workspace`, as mostly written there, with the number of documents that have them."""
        rows = self._all(
            """select tag, max(written), sum(written) as used from (select key, tag, count(*) as written from tags
            where workspace = ? group by key, tag) group by key order by used desc, key limit ?""",
            workspace,
            limit,
        )
        return [(tag, used) for tag, _, used in rows]

    def unlabelled(self, workspace: str | None = None) -> list[str]:
        """The paths of the notes and files that lack a summary or tags and can be given them: in `workspace`, or everywhere."""
        rows = self._all(
            "select path from documents where (summary is null or tags = '[]') and type <> 'entity' and writable "
            "and claimed is not null and (? is null or workspace = ?) order by created_at, path",
            workspace,
            workspace,
        )
        return [path for (path,) in rows]

    def vertices(self) -> Iterator[tuple[str, Vertex]]:
        """The workspace and the node of every note of one."""
        stated: dict[str, list[Statement]] = {}
        for path, kind, target in self._all("select path, type, target from relations order by path, ord"):
            stated.setdefault(path, []).append(Statement(sys.intern(kind), target))
        rows = self._all(
            """select workspace, path, coalesce(claimed, key), name, entity_type, summary, tags, aliases, created_at, updated_at,
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
                    entity_type=kind,
                    summary=summary,
                    tags=tuple(json.loads(tags)),
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
        """The observations of the nodes at these paths, in order of their ordinals."""
        found: dict[str, list[Observation]] = {path: [] for path in paths}
        for path, ordinal, content in self._in("select path, ordinal, content from observations where path in", paths):
            found[path].append(Observation(ordinal, content))
        return {path: tuple(sorted(own, key=lambda one: one.ordinal)) for path, own in found.items()}

    def counts(self) -> tuple[int, int]:
        """How many documents and chunks there are."""
        [(documents, chunks)] = self._all("select count(*), coalesce(sum(chunks), 0) from documents")
        return documents, chunks

    def chunks(self) -> dict[str, int]:
        """How many chunks each document has, by key: what `Store.documents` must say as well, but for zeros."""
        return dict(self._all("select key, chunks from documents"))

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        """All that it holds of the documents (not of the files' times), in one order however it was written."""
        queries = {
            "documents": "select * from records order by path",
            "tags": "select path, workspace, key, tag from tags order by path, key, tag",
            "links": "select * from links order by path, ord",
            "nodes": "select * from nodes order by path",
            "observations": "select * from observations order by path, ordinal",
            "relations": "select * from relations order by path, ord",
            "skipped": "select * from skipped order by path",
        }
        return {name: list(map(tuple, self._all(query))) for name, query in queries.items()}

    # Changing it

    def write(self, *, upserts: Sequence[tuple[Document, Stat, int, bool]] = (), removes: Collection[str] = ()) -> int:
        """Take in documents with their stat, number of chunks and whether these have vectors, and let paths go, as one step.

        Returns the generation, which grows if there was anything to do."""
        if not upserts and not removes:
            return self.generation
        with self._transaction() as writer:
            paths = [*removes, *(document.path for document, *_ in upserts)]
            writer.executemany("delete from documents where path = ?", [(path,) for path in paths])
            for document, stat, chunks, embedded in upserts:
                try:
                    _insert(writer, document, stat, chunks, embedded=embedded)
                except UnicodeEncodeError as error:
                    raise InvalidArgument(f"{document.path!a}: a property holds half a character") from error
            writer.execute(
                "insert into meta values ('generation', '1') on conflict do update set value = cast(value as integer) + 1"
            )
        return self.generation

    def touch(self, stats: Mapping[str, Stat]) -> None:
        """Remember that these files have the same bytes and a new stat."""
        with self._transaction() as writer:
            writer.executemany(
                "update documents set size = ?, mtime_ns = ?, ino = ? where path = ?",
                [(stat.size, stat.mtime_ns, signed(stat.ino), path) for path, stat in stats.items()],
            )

    def skip(self, skipped: Mapping[str, str], *, workspace: Callable[[str], str] = lambda _: "") -> None:
        """Remember which files are not indexed, and why, in place of the list before. `workspace` tells whose a path is."""
        with self._transaction() as writer:
            writer.execute("delete from skipped")
            rows = [(path, workspace(path), reason) for path, reason in skipped.items()]
            writer.executemany("insert into skipped values (?, ?, ?)", rows)

    def forget(self, keys: Iterable[str] | None = None) -> None:
        """Take the digests of these documents as unknown (None: of all): the next listing finds their files changed."""
        unknown = "update documents set digest = '', size = -1, mtime_ns = -1, ino = -1"
        with self._transaction() as writer:
            if keys is None:
                writer.execute(unknown)
            else:
                writer.executemany(f"{unknown} where key = ?", [(key,) for key in keys])

    @property
    def generation(self) -> int:
        """Grows by one with each change of the documents."""
        return int(self._meta("generation", "0"))

    def succeed(self, generation: int) -> None:
        """Go on counting from `generation`, that of the catalog which this one replaces."""
        self._note("generation", str(max(self.generation, generation) + 1))

    @property
    def complete(self) -> bool:
        """Whether its owner has called it complete."""
        return self._meta("complete", "") == "yes"

    @complete.setter
    def complete(self, value: bool) -> None:
        self._note("complete", "yes" if value else "no")

    def close(self) -> None:
        """Let go of the file; nobody may be reading."""
        with self._writing:
            for connection in (*self._idle, self._writer):
                connection.close()
            self._idle.clear()

    # How

    def _meta(self, name: str, otherwise: str) -> str:
        rows = self._all("select value from meta where name = ?", name)
        return str(rows[0][0]) if rows else otherwise

    def _note(self, name: str, value: str) -> None:
        with self._transaction() as writer:
            writer.execute("insert or replace into meta values (?, ?)", (name, value))

    def _one(self, condition: str, *values: Any) -> Record | None:
        rows = self._all(f"{RECORDS} where {condition}", *values)
        return record(rows[0]) if rows else None

    def _in(self, query: str, values: Iterable[str]) -> Iterator[Any]:
        remaining = iter(sorted(values))
        while terms := list(itertools.islice(remaining, TERMS)):
            yield from self._all(f"{query} ({','.join('?' * len(terms))})", *terms)

    def _all(self, query: str, *values: Any) -> list[Any]:
        try:
            connection = self._idle.pop()  # atomic: no lock
        except IndexError:
            connection = _connection(self._path)
        try:
            return connection.execute(query, values).fetchall()
        except UnicodeEncodeError:  # half a character: nothing that is stored equals it
            return []
        except sqlite3.Error as error:
            raise unavailable(error) from error
        finally:
            if len(self._idle) < IDLE:
                self._idle.append(connection)
            else:
                connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._writing:
            try:
                self._writer.execute("begin immediate")
                try:
                    yield self._writer
                except BaseException:
                    self._writer.rollback()
                    raise
                self._writer.commit()
            except sqlite3.Error as error:
                raise unavailable(error) from error


def unavailable(error: sqlite3.Error) -> Unavailable:
    """What callers are told of a failure in SQLite."""
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        return Unavailable("the catalog can't be written: the disk is full; free some space and try again")
    return Unavailable("the catalog can't be used; if it stays so, make it anew: memex index --full")


def examined(path: Path) -> dict[str, int]:
    """How many chunks each document of the catalog at `path` has, read without changing it; Unavailable says what is wrong."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=10.0)) as reader:
            [(version,)] = reader.execute("pragma user_version")
            if version != VERSION:
                raise Unavailable(f"the catalog {path.name} is of another version")
            if reader.execute("pragma integrity_check(1)").fetchall() != [("ok",)]:
                raise Unavailable(f"the catalog {path.name} is damaged")
            return dict(reader.execute("select key, chunks from documents"))
    except sqlite3.Error as error:
        raise Unavailable(f"the catalog {path.name} can't be read: {error}") from error


def _opened(path: Path) -> tuple[sqlite3.Connection, bool]:
    try:
        writer = _connection(path)
        [(version,)] = writer.execute("pragma user_version").fetchall()
        if version == VERSION and writer.execute("pragma quick_check(1)").fetchall() == [("ok",)]:
            return writer, False
        writer.close()
        if version:
            log.warning("%s is damaged or of another version, and made again from the files", path)
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode not in DAMAGE:
            raise unavailable(error) from error
        log.warning("%s is damaged, and made again from the files: %s", path, error)
    for leftover in ("", "-wal", "-shm"):
        path.with_name(path.name + leftover).unlink(missing_ok=True)
    writer = _connection(path)
    writer.executescript(f"begin; {SCHEMA} pragma user_version = {VERSION}; commit;")
    return writer, True


def _connection(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=10.0, isolation_level=None, check_same_thread=False)
    try:
        for pragma in ("journal_mode = wal", "synchronous = normal", "foreign_keys = on", "temp_store = memory"):
            connection.execute(f"pragma {pragma}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _insert(writer: sqlite3.Connection, document: Document, stat: Stat, chunks: int, *, embedded: bool) -> None:
    values = row(document, stat, chunks, embedded=embedded)
    names = ", ".join(f":{name}" for name in values)
    writer.execute(f"insert into documents ({', '.join(values)}) values ({names})", values)  # noqa: S608 - our columns
    tags = {(document.workspace, fold(tag), tag, document.path) for tag in document.tags}
    writer.executemany("insert into tags values (?, ?, ?, ?)", tags)
    if node := document.node:
        writer.execute(
            "insert into nodes values (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                document.path, node.name, node.entity_type, len(node.observations), node.last_ordinal, node.unsettled,
                node.summary_updated_at, node.observed_at,
            ),
        )  # fmt: skip
        facts = [(document.path, one.ordinal, one.content) for one in node.observations]
        writer.executemany("insert into observations values (?, ?, ?)", facts)
        stated = [(document.path, n, one.type, one.target) for n, one in enumerate(node.relations)]
        writer.executemany("insert into relations values (?, ?, ?, ?)", stated)
    links = [
        (document.path, n, link.kind, link.target, link.subpath, link.display, link.line)
        for n, link in enumerate(document.links)
    ]
    writer.executemany("insert into links values (?, ?, ?, ?, ?, ?, ?)", links)
