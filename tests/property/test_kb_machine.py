"""Agents and a person at one knowledge base, crashes anywhere: each job ends once, and all is as a plain model says.

`MEMEX_MACHINE=200x30` sets examples × steps of the long run."""

from __future__ import annotations

import base64
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pydantic import ValidationError

from index.errors import MemexError
from index.model import COLLECTIONS
from index.timings import now_ms
from mcp_server.operations.caller import CALLER, Caller
from mcp_server.operations.wire_format import encode_payload
from mcp_server.tools import kb, thoughts
from syncd.notes.front_matter import decode, edit, encode, split
from syncd.settings.settings import EnrichSettings
from tests.support.state_machine import run_machine
from tests.support.world import World

TOOLS = {one.name: one for one in (*kb.OPERATIONS, *kb.ROUTED, *thoughts.OPERATIONS)}
TEXTS = st.one_of(
    st.sampled_from(["the stove is cold", "the stove is hot", "日本語の本文", "# A heading\n\nand a body", "two\r\nlines\r\n"]),
    st.text(st.sampled_from("abc αβ日🍀\n"), min_size=1, max_size=30).filter(lambda text: bool(text.strip())),
)  # fmt: skip
TAGS = st.lists(st.sampled_from(["home", "a/b", "日本", "heating"]), max_size=3, unique=True).map(sorted)
COLLECTION = st.sampled_from([None, *COLLECTIONS])
NAMES = st.sampled_from(["report.txt", "report.md", "../odd name.txt", "table.csv", "日本.txt", "note.md"])
PICK = st.integers(0, 1_000)


class Died(BaseException):
    """The process has been killed."""


class Mortal:
    """Stands before a part that writes. From the `left`-th write on nothing is written: before it, or just after."""

    WRITES = frozenset(["create", "replace", "remove", "create_from_file", "write", "run"])

    def __init__(self, real: Any, fate: Fate) -> None:
        self._real, self._fate = real, fate

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if name not in self.WRITES:
            return found

        def write(*given: Any, **named: Any) -> Any:
            return self._fate.met(lambda: found(*given, **named))

        return write


@dataclass
class Fate:
    """When the process dies."""

    left: int
    after: bool
    dead: bool = False

    def met(self, write: Callable[[], Any]) -> Any:
        if self.dead:
            raise Died
        self.left -= 1
        if self.left > 0:
            return write()
        if self.after:
            with suppress(MemexError):
                write()
        self.dead = True
        raise Died


@dataclass
class Doc:
    """A document as the model has it."""

    id: str
    text: str | None  # None: a file's, which the converter knows
    tags: set[str]
    collection: str
    version: int = 1
    file: bytes | None = None


@dataclass
class Accepted:
    """A job that was accepted."""

    id: str
    text: str | None
    tags: set[str]
    collection: str
    file: bytes | None = None
    document: str | None = None  # once it has ended well
    ended: str = ""


@dataclass
class Begun:
    """An upload under way."""

    name: str
    data: bytes
    tags: list[str]
    collection: str
    held: dict[int, bytes] = field(default_factory=dict)


class Base(RuleBasedStateMachine):
    """A knowledge base under an agent, a person, and a process that dies."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="memex-kb-"))
        self.world = World(self.folder, enrich=EnrichSettings(by="off"))
        key, _ = self.world.app.opened.keys.create("agent", workspaces=("default",), now=now_ms())
        self.caller = Caller(key)
        self.docs: dict[str, Doc] = {}
        self.gone: set[str] = set()  # ids that were deleted
        self.jobs: dict[str, Accepted] = {}
        self.uploads: dict[str, Begun] = {}
        self.finished: dict[str, str] = {}  # upload → job
        self.restarted: tuple[list[str], list[str]] = ([], [])  # what was under way at the last restart

    @initialize(texts=st.lists(TEXTS, min_size=3, max_size=3, unique=True), tags=TAGS)
    def begin(self, texts: list[str], tags: list[str]) -> None:
        """Some documents, so that there is something to change."""
        for text, collection in zip(texts, [None, *COLLECTIONS[1:]], strict=True):
            self.add_note(text, tags, collection, by_tag=False)
        self.drain(self.waiting())
        self.upload("first.txt", texts[0], tags, None, whole=True)

    def teardown(self) -> None:
        self.world.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # The tools, as the rim runs them

    def ask(self, tool: str, **arguments: Any) -> Any:
        """What a tool tells, or the code of its refusal."""
        operation = TOOLS[tool]
        before = CALLER.set(self.caller)
        try:
            asked = operation.given.model_validate(arguments)
            workspace = self.world.app.agent_access.workspace("default")
            return encode_payload(operation.run(workspace, asked, self.world.app.settings))[0]
        except ValidationError:
            return "INVALID_ARGUMENT"
        except MemexError as error:
            return error.code
        finally:
            CALLER.reset(before)

    def some(self, pick: int) -> Doc:
        return list(self.docs.values())[pick % len(self.docs)]  # in the order made: ids are other ones each time

    def path(self, doc: Doc) -> Path:
        record = self.world.app.opened.builds.scopes["captures"].index.record(doc.id, "default")
        assert record is not None, doc
        return self.world.vault / record.path

    # Jobs

    @rule(text=TEXTS, tags=TAGS, collection=COLLECTION, by_tag=st.booleans())
    def add_note(self, text: str, tags: list[str], collection: str | None, by_tag: bool) -> None:
        given = {"text": text, "tags": tags}
        if collection and by_tag:
            given["tags"] = [*tags, f"collection:{collection}"]
        elif collection:
            given["collection"] = collection
        told = self.ask("kb_addnote", **given)
        self.jobs[told["job_id"]] = Accepted(told["job_id"], text, set(tags), collection or "documents")

    @rule(
        text=TEXTS, wrong=st.sampled_from([{"collection": "secrets"}, {"tags": ["collection:secrets"]}, {"text": ""}])
    )
    def add_what_is_refused(self, text: str, wrong: dict[str, Any]) -> None:
        assert self.ask("kb_addnote", **{"text": text, **wrong}) == "INVALID_ARGUMENT"

    @precondition(lambda self: self.waiting())
    @rule(count=st.integers(1, 4))
    def work(self, count: int) -> None:
        self.drain(self.waiting()[:count])

    def waiting(self) -> list[str]:
        return [job for job, one in self.jobs.items() if not one.ended]

    def drain(self, ids: list[str]) -> None:
        self.world.app.worker.drain(ids, lambda _: None)
        for id in ids:
            self.end(self.jobs[id])

    def end(self, job: Accepted) -> None:
        """Take over what became of a job."""
        (told,) = self.ask("kb_jobs", job_id=job.id)["jobs"]
        assert told["status"] == "done", told
        job.ended, job.document = told["status"], told["document_id"]
        same = [
            doc
            for doc in self.docs.values()
            if (doc.text, doc.collection) == (job.text, job.collection)
            and self.ask("get_document", id=doc.id)["doc_type"] == "note"  # an edited text of a file is its file's
        ]
        if job.file is None and same:
            assert job.document in {doc.id for doc in same}, "the text was there already"
            doc = self.docs[job.document]
            if not job.tags <= doc.tags:
                doc.tags |= job.tags
                doc.version += 1
            return
        assert job.document not in self.docs, "a document of its own"
        assert job.document not in self.gone
        self.docs[job.document] = Doc(job.document, job.text, set(job.tags), job.collection, file=job.file)

    # Uploads

    @rule(name=NAMES, text=TEXTS, tags=TAGS, collection=COLLECTION, whole=st.booleans())
    def upload(self, name: str, text: str, tags: list[str], collection: str | None, whole: bool) -> None:
        """Begin one; and, if it is to be `whole`, end it."""
        data = text.encode()
        told = self.ask(
            "kb_upload_start", filename=name, total_size=len(data), tags=tags, **({"collection": collection} if collection else {})
        )  # fmt: skip
        self.uploads[told["upload_id"]] = Begun(name, data, tags, collection or "documents")
        if whole:
            at = list(self.uploads).index(told["upload_id"])
            for index in (2, 0, 1):
                self.send(at, index)
            self.finish(at)

    @precondition(lambda self: self.uploads)
    @rule(pick=PICK, index=st.integers(0, 2))
    def send(self, pick: int, index: int) -> None:
        """A third of the file, in any order, once more too."""
        id, begun = list(self.uploads.items())[pick % len(self.uploads)]
        third = -(-len(begun.data) // 3)
        piece = begun.data[index * third : (index + 1) * third]
        told = self.ask("kb_upload_chunk", upload_id=id, chunk_index=index, data=base64.b64encode(piece).decode())
        if not piece:
            assert told == "INVALID_ARGUMENT", "a short file has fewer"
            return
        begun.held[index] = piece
        assert told["received_bytes"] == sum(map(len, begun.held.values()))

    @precondition(lambda self: self.uploads)
    @rule(pick=PICK)
    def finish(self, pick: int) -> None:
        id, begun = list(self.uploads.items())[pick % len(self.uploads)]
        told = self.ask("kb_upload_finish", upload_id=id)
        if b"".join(piece for _, piece in sorted(begun.held.items())) != begun.data:
            assert told == "INVALID_ARGUMENT"
            return
        del self.uploads[id]
        self.finished[id] = told["job_id"]
        self.jobs[told["job_id"]] = Accepted(told["job_id"], None, set(begun.tags), begun.collection, file=begun.data)

    @precondition(lambda self: self.finished)
    @rule(pick=PICK)
    def finish_again(self, pick: int) -> None:
        id, job = sorted(self.finished.items())[pick % len(self.finished)]
        assert self.ask("kb_upload_finish", upload_id=id)["job_id"] == job

    # Changes

    @precondition(lambda self: self.docs)
    @rule(pick=PICK, text=TEXTS, version=st.sampled_from([None, 0, 1]))
    def update(self, pick: int, text: str, version: int | None) -> None:
        """With `version`, that of the document plus it."""
        doc = self.some(pick)
        given = {} if version is None else {"version": doc.version + version}
        told = self.ask("kb_update_note", id=doc.id, text=text, **given)
        if self.ask("get_document", id=doc.id)["doc_type"] != "note":
            assert told == "INVALID_ARGUMENT"
        elif version:
            assert told == "CONFLICT"
        else:
            changed = doc.text != text
            doc.text, doc.version = text, doc.version + changed
            assert (told["changed"], told["version"]) == (changed, doc.version)

    @precondition(lambda self: self.docs)
    @rule(pick=PICK, tags=TAGS, collection=COLLECTION)
    def set_tags(self, pick: int, tags: list[str], collection: str | None) -> None:
        doc = self.some(pick)
        given = [*tags, *([f"collection:{collection}"] if collection else [])]
        told = self.ask("set_document_tags", id=doc.id, tags=given)
        doc.tags, doc.collection, doc.version = set(tags), collection or doc.collection, told["version"]
        assert (set(told["tags"]), told["collection"]) == (doc.tags, doc.collection)

    @precondition(lambda self: self.docs)
    @rule(pick=PICK)
    def delete(self, pick: int) -> None:
        doc = self.some(pick)
        assert self.ask("delete_thought", id=doc.id)["deleted"]
        self.forget(doc)

    def forget(self, doc: Doc) -> None:
        del self.docs[doc.id]
        self.gone.add(doc.id)
        assert self.ask("get_document", id=doc.id) == "NOT_FOUND"

    # The person

    @precondition(lambda self: self.docs)
    @rule(pick=PICK, text=TEXTS)
    def edit_by_hand(self, pick: int, text: str) -> None:
        """An edit of the text counts as an update, and no agent that has not seen it overwrites it."""
        doc = self.some(pick)
        path = self.path(doc)
        front, body = split(decode(path.read_bytes()))
        path.write_bytes(encode(front + text))
        if body == text:
            return
        if self.ask("get_document", id=doc.id)["doc_type"] == "note":
            assert self.ask("kb_update_note", id=doc.id, text="an agent's own", version=doc.version) == "CONFLICT"
        self.world.run()
        doc.text, doc.version = text, doc.version + 1

    @precondition(lambda self: self.docs)
    @rule(pick=PICK, collection=st.sampled_from(COLLECTIONS))
    def file_by_hand(self, pick: int, collection: str) -> None:
        """The last collection that is set wins."""
        doc = self.some(pick)
        path = self.path(doc)
        tags = [*sorted(doc.tags), f"collection:{collection}"]
        path.write_bytes(encode(edit(decode(path.read_bytes()), {"tags": tags})))
        self.world.run()
        doc.collection = collection
        told = self.ask("get_document", id=doc.id)
        assert (told["collection"], set(told["tags"])) == (collection, doc.tags)
        doc.version = told["version"]

    @precondition(lambda self: self.docs)
    @rule(pick=PICK)
    def move_by_hand(self, pick: int) -> None:
        path = self.path(self.some(pick))
        target = path.with_name(f"moved {len(list(path.parent.iterdir()))} {path.name}")
        path.rename(target)
        self.world.run()

    @precondition(lambda self: self.docs)
    @rule(pick=PICK)
    def remove_by_hand(self, pick: int) -> None:
        doc = self.some(pick)
        self.path(doc).unlink()
        self.world.run()
        self.forget(doc)

    # The process

    @precondition(lambda self: self.under_way() not in (([], []), self.restarted))
    @rule()
    def restart(self) -> None:
        self.world.reopen()
        self.restarted = self.under_way()

    def under_way(self) -> tuple[list[str], list[str]]:
        return self.waiting(), [*self.uploads]

    @precondition(lambda self: self.waiting())
    @rule(left=st.integers(1, 12), after=st.booleans())
    def die_at_work(self, left: int, after: bool) -> None:
        """Killed at any write of a job; the next life carries it out."""
        app, fate = self.world.app, Fate(left, after)
        index, vault, run = (
            app.opened.builds.scopes["captures"].index,
            app.agent_access._inbox.vault,
            app.opened.ledger.execute,
        )
        parts = (index, "catalog"), (index, "_store"), (app.opened.ledger, "execute")
        reals = [getattr(holder, name) for holder, name in parts]
        for (holder, name), real in zip(parts, reals, strict=True):
            setattr(
                holder, name, Mortal(real, fate) if name != "execute" else lambda *given: fate.met(lambda: run(*given))
            )
        for name in Mortal.WRITES & set(dir(vault)):
            setattr(vault, name, getattr(Mortal(vault, fate), name))
        try:
            with suppress(Died):
                app.worker.drain(self.waiting(), lambda _: None)
        finally:
            for (holder, name), real in zip(parts, reals, strict=True):
                setattr(holder, name, real)
            for name in Mortal.WRITES & set(vars(vault)):
                delattr(vault, name)
        self.world.reopen()
        self.world.run()
        self.drain(self.waiting())

    # What must hold

    @invariant()
    def every_document_is_in_one_collection_and_as_it_was_left(self) -> None:
        listed, cursor = [], None
        while True:
            told = self.ask("list_documents", limit=50, **({"cursor": cursor} if cursor else {}))
            listed += told["documents"]
            if (cursor := told["next_cursor"]) is None:
                break
        assert sorted(one["document_id"] for one in listed) == sorted(self.docs)
        for one in listed:
            doc = self.docs[one["document_id"]]
            assert (one["collection"], set(one["tags"])) == (doc.collection, doc.tags), (one, doc)
        counts = self.ask("kb_status")["documents"]
        assert counts["total"] == len(self.docs) == sum(counts["by_collection"].values())

    def check(self) -> None:
        """Everything has ended, nothing is lost, and the index is what the files say."""
        self.drain(self.waiting())
        self.world.run()
        self.every_document_is_in_one_collection_and_as_it_was_left()
        for job in self.jobs.values():
            (told,) = self.ask("kb_jobs", job_id=job.id)["jobs"]
            assert (told["status"], told["document_id"]) == ("done", job.document)
        for doc in self.docs.values():
            told = self.ask("get_document", id=doc.id)
            assert told["version"] == doc.version, (told, doc)
            if doc.text is not None:
                assert split(decode(self.path(doc).read_bytes()))[1] == doc.text
            if doc.file is not None and told["doc_type"] == "file":
                stored = self.path(doc).with_suffix("")
                assert not stored.exists() or stored.read_bytes() == doc.file
        notes = list((self.world.vault / "Captures/default").rglob("*.md"))
        assert len(notes) == len(self.docs)
        kept, made = self.world.dump(), self.world.rebuilt(self.folder / "other")
        for scope in kept:
            for part in kept[scope]:
                assert kept[scope][part] == made[scope][part], (scope, part)


def test_whatever_agents_and_a_person_do_every_job_ends_once_and_nothing_is_lost():
    run_machine(Base, Base.check, 3, 25)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_whatever_agents_and_a_person_do_for_long():
    examples, steps = (int(n) for n in os.environ.get("MEMEX_MACHINE", "200x30").split("x"))
    run_machine(Base, Base.check, examples, steps)
