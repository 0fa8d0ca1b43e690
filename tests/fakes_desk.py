"""An honest small desk for the rim's tests: notes as files in a folder, search by counting words."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import threading
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from index.errors import InvalidArgument, NotFound
from index.model import Answer, Hit, Query, Record
from syncd.keys import Keys

OWNED = {"id", "created_at", "promote", "review"}


@dataclass(frozen=True, slots=True)
class Captured:
    record: Record
    created: bool


@dataclass(frozen=True, slots=True)
class Kept:
    record: Record
    content: str
    chunks: tuple[str, ...]


class FakeWorkspace:
    def __init__(self, name: str, folder: Path, clock: Callable[[], int]) -> None:
        self.name, self.folder, self.clock = name, folder, clock
        self.lock = threading.Lock()
        self.records: dict[str, Record] = {}
        self.degraded: tuple[str, ...] = ()
        self.slow = 0.0

    def capture(
        self,
        content: str,
        *,
        source: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        namespace: str = "default",
    ) -> Captured:
        time.sleep(self.slow)
        given = dict(metadata or {})
        if wrong := OWNED & given.keys():
            raise InvalidArgument(f"metadata key {min(wrong)!r} belongs to Memex; leave it out")
        digest = hashlib.sha256(content.encode()).hexdigest()
        with self.lock:
            for known in self.records.values():
                if known.content_hash == digest:
                    self.records[known.id] = replace(known, updated_at=self.clock())
                    return Captured(self.records[known.id], created=False)
            record = self._record(content, digest, source, given, namespace)
            (self.folder / f"{record.id}.md").write_bytes(content.encode())
            self.records[record.id] = record
        return Captured(record, created=True)

    def _record(self, content: str, digest: str, source: str | None, given: dict[str, Any], namespace: str) -> Record:
        lines = content.strip().splitlines()
        return Record(
            id=str(uuid.uuid4()),
            path=f"Captures/{self.name}/x.md",
            scope="captures",
            workspace=self.name,
            namespace=namespace,
            type="note",
            title=str(given.pop("title", lines[0][:60] if lines else "Untitled")),
            digest=digest,
            content_hash=digest,
            collection="documents",
            tags=tuple(given.pop("tags", ())),
            aliases=(),
            summary=None,
            source=source,
            metadata=given,
            created_at=self.clock(),
            updated_at=None,
            version=1,
            chunks=len(self._chunks(content)),
            defects=(),
            writable=True,
        )

    def search(self, query: Query) -> Answer:
        time.sleep(self.slow)
        words = set(re.findall(r"\w+", query.text.casefold()))
        hits = []
        for record in list(self.records.values()):
            chunks = self._chunks(self.content(record))
            values = [len(words & set(re.findall(r"\w+", chunk.casefold()))) / max(1, len(words)) for chunk in chunks]
            best = max(range(len(chunks)), key=lambda at: values[at])
            if values[best] and self._passes(record, query):
                hits.append(Hit(record, best, "", chunks[best], values[best]))
        hits.sort(key=lambda hit: -hit.score)
        return Answer(tuple(hits[: query.limit]), query.mode, self.degraded)

    def _passes(self, record: Record, query: Query) -> bool:
        wanted = query.filter
        return all(
            (
                set(wanted.tags) <= set(record.tags),
                wanted.source in (None, record.source),
                wanted.namespace in (None, record.namespace),
                wanted.collection in (None, record.collection),
                wanted.since is None or record.created_at >= wanted.since,
                wanted.until is None or record.created_at < wanted.until,
            )
        )

    @staticmethod
    def _chunks(content: str) -> list[str]:
        return [part for part in content.split("\n\n") if part] or [content]

    def get(self, id: str) -> Kept:
        record = self.records.get(id)
        if record is None:
            raise NotFound(f"no thought {id[:64]!r}")
        content = self.content(record)
        return Kept(record, content, tuple(self._chunks(content)))

    def content(self, record: Record) -> str:
        try:
            return (self.folder / f"{record.id}.md").read_bytes().decode()
        except FileNotFoundError:
            raise NotFound(f"no thought {record.id!r}") from None

    def delete(self, id: str) -> Record:
        with self.lock:
            record = self.get(id).record
            del self.records[id]
            (self.folder / f"{id}.md").unlink()
        return record

    def recent(self, limit: int = 20, *, before: int | None = None) -> list[Record]:
        found = [one for one in self.records.values() if before is None or one.created_at < before]
        return sorted(found, key=lambda one: (-one.created_at, one.id))[:limit]


class FakeDesk:
    def __init__(self, folder: Path, keys: Keys, names: Collection[str] = ("default", "work", "secret")) -> None:
        self.keys = keys
        self.ticks = itertools.count(1_700_000_000_000)
        self.broken: list[str] = []
        self.ready = True
        self._spaces: dict[str, FakeWorkspace] = {}
        for name in names:
            (folder / name).mkdir(parents=True)
            self._spaces[name] = FakeWorkspace(name, folder / name, lambda: next(self.ticks))

    def workspace(self, name: str) -> FakeWorkspace:
        if name not in self._spaces:
            raise NotFound(f"no workspace {name!r}")
        return self._spaces[name]

    def workspaces(self) -> list[str]:
        return sorted(self._spaces)

    def status(self, workspaces: Collection[str] | None) -> dict[str, Any]:
        seen = self.workspaces() if workspaces is None else sorted(workspaces)
        documents = sum(len(space.records) for space in self._spaces.values())
        return json.loads(
            json.dumps(
                {
                    "ready": self.ready,
                    "pending": 0,
                    "generation": 1,
                    "captures": {"documents": documents, "chunks": documents},
                    "vault": {"documents": 0, "chunks": 0},
                    "defects": [{"path": f"Captures/{name}/bad.md", "defect": "bad-frontmatter"} for name in seen],
                    "degraded": self.broken,
                }
            )
        )
