"""The whole pipe on real files and real stores, only the model faked: what it finds, what it holds, what it survives."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from index.encoders.embedder import Embedder, EmbedSettings
from index.encoders.settings import BundledSettings
from index.errors import Conflict, InvalidArgument, Unavailable
from index.model import Query
from syncd.settings.settings import SyncSettings
from syncd.sync import change_plan, index_pass, pipeline, removal_rules
from syncd.vault.path_rules import find_collisions, to_printable
from tests.support.fakes import FakeEncoder, fake_embedder
from tests.support.index_dump import dump_index
from tests.support.parsed_notes import parse
from tests.support.world import World, until
from vault_fixtures import gnarly
from vault_fixtures.zoo import BOMBS


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.close()


@contextmanager
def quick(module, **values):
    """Constants of a module, set to other values for a while."""
    before = {name: getattr(module, name) for name in values}
    for name, value in values.items():
        setattr(module, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


def manifest(root: Path) -> dict[bytes, str]:
    """The digest of every file below `root`, links and devices by what they are."""
    found = {}
    for path in root.rglob("*"):
        there = path.lstat()
        regular = stat.S_ISREG(there.st_mode) and there.st_size < 1 << 30
        found[os.fsencode(path)] = (
            hashlib.sha256(path.read_bytes()).hexdigest() if regular else f"{there.st_mode:o} {there.st_size}"
        )
    return found


def indexed(world: World) -> set[str]:
    return {
        path for scope_index in world.app.opened.builds.scopes.values() for path in list(scope_index.index.manifest)
    }


def defects(world: World) -> dict[str, list[str]]:
    told: dict[str, list[str]] = {}
    for one in world.app.health.status(None)["defects"]:
        told.setdefault(one["path"], []).append(one["defect"])
    return told


def ids(world: World) -> dict[str, str]:
    """The id that each document answers to, by path."""
    slots = world.app.opened.builds.scopes.values()
    return {
        path: scope_index.index.record_at(path).id for scope_index in slots for path in list(scope_index.index.manifest)
    }


def documents(encoder: FakeEncoder) -> int:
    """How many texts of notes the encoder was asked for."""
    return sum(count for kind, _, count in encoder.calls if kind == "document")


# (a) every shape that a file can have


def test_the_gnarly_vault_goes_through_the_whole_pipe(world, tmp_path):
    gnarly.build(world.vault)
    shapes = gnarly.existing_shapes(world.vault)
    before = manifest(world.vault)
    world.run()
    world.app.opened.sync.run()
    told = defects(world)
    files = {shape.path for shape in shapes if shape.outcome == "indexed"}
    readable = {shape.path for shape in shapes if shape.outcome == "unreadable" and os.geteuid() == 0}
    assert indexed(world) == files | readable
    paired = {path for path, why in told.items() if any(one.startswith("twin:") for one in why)}
    assert paired == {path for group in find_collisions(files | readable) for path in group} != set()
    told = {path: kept for path, why in told.items() if (kept := [one for one in why if not one.startswith("twin:")])}
    wanted = [shape for shape in shapes if shape.outcome == "indexed" and shape.word]
    unfound = []
    for start in range(0, len(wanted), 10):  # ten words to a search: any of them will do
        some = wanted[start : start + 10]
        found = world.found(" ".join(shape.word for shape in some), mode="text", limit=50, hidden=True)
        unfound += [shape.path for shape in some if shape.path not in found]
    assert unfound == ["Bodies/open html.md"]  # what an open comment hides is no text
    for shape in shapes:
        if shape.outcome in ("skipped", "unreadable") and shape.path not in readable:
            assert shape.reason in " ".join(told[to_printable(shape.path)]), shape.path
        elif shape.outcome == "indexed" and shape.defect:
            assert any(one.startswith(shape.defect) for one in told[shape.path]), (shape.path, told.get(shape.path))
        elif shape.outcome == "indexed" and shape.defect == "":
            assert shape.path not in told, (shape.path, told.get(shape.path))
        elif shape.outcome == "ignored":
            assert to_printable(shape.path) not in told
    # Dropped notes of the inbox have got their ids; no other byte of the vault has changed.
    changed = {os.fsdecode(path) for path, digest in manifest(world.vault).items() if before.get(path) != digest}
    assert {os.path.relpath(path, world.vault) for path in changed} == set()
    assert manifest(world.vault).keys() == before.keys()
    assert world.dump() == world.rebuilt(tmp_path / "other")


@pytest.mark.slow
def test_no_bomb_takes_a_second(world):
    beasts = {f"Frontmatter/{beast.name}.md" for beast in BOMBS}
    bombs = [one for one in gnarly.SHAPES if one.path in beasts or one.path.startswith(("Bodies/", "Encodings/"))]
    gnarly.build(world.vault, bombs)
    world.app.opened.sync.run([""])
    slowest = 0.0
    for shape in bombs:
        file = world.vault / shape.path
        os.utime(file, ns=(1, 1))
        begun = time.thread_time()
        world.app.opened.sync.run([shape.path])
        slowest = max(slowest, time.thread_time() - begun)
        assert slowest < 1.0, shape.path
        assert shape.path in indexed(world)


# One poisoned note, and other things that must not stop the rest


@pytest.mark.parametrize("year", [1700, 1969, 2300, 2446])
def test_a_note_of_any_time_is_indexed_and_a_later_change_of_it_too(world, year):
    """A file system may hold times of 64-bit seconds; nanoseconds of 64 bits, as SQLite stores them, end in 2262."""
    seconds = int((datetime(year, 1, 1, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
    file = world.vault / "Notes/Odd.md"
    file.parent.mkdir()
    for text in (b"weir", b"another weir"):
        file.write_bytes(text)
        os.utime(file, ns=(seconds * 10**9, seconds * 10**9))
        world.app.opened.sync.run([""])
        assert (
            world.app.opened.builds.scopes["vault"].index.manifest["Notes/Odd.md"].digest
            == hashlib.sha256(text).hexdigest()
        )


class Poison(FakeEncoder):
    """Fails on one word in a way that nobody expected."""

    def count_tokens(self, texts):
        if any("poison" in text for text in texts):
            raise ZeroDivisionError
        return super().count_tokens(texts)


@pytest.mark.slow
def test_one_poisoned_note_stops_no_other_and_is_named(tmp_path):
    world = World(tmp_path, embedder=fake_embedder(Poison()))
    try:
        for number in range(120):
            world.write(f"n/{number:03}.md", f"note {number} about the gannet" + (" poison" if number == 60 else ""))
        outcome = world.run()
        assert (outcome.added, outcome.failed) == (119, 1)
        assert "ZeroDivisionError" in defects(world)["n/060.md"][0]
        with world.serving():
            world.write("n/060.md", "note 60, mended, about the gannet\n")
            until(lambda: "n/060.md" in indexed(world))
        assert "n/060.md" not in defects(world)
    finally:
        world.close()


class Saving(FakeEncoder):
    """While it embeds a heavy note, somebody saves another."""

    save = None

    def encode(self, texts, *, kind, urgent):
        if self.save and any("heavy" in text for text in texts):
            self.save()
            self.save = None
        if len(texts) == self.batch:
            time.sleep(0.03)  # until the editor is quiet
        return super().encode(texts, kind=kind, urgent=urgent)


@pytest.mark.slow
def test_a_save_waits_for_no_heavy_note(tmp_path):
    """One may take minutes to embed, and many of them together much memory."""
    encoder = Saving()
    world = World(tmp_path, embedder=fake_embedder(encoder))
    try:
        world.write("edited.md", "the puffin")
        world.run()
        for number in range(4):
            world.write(f"{number}.md", " ".join(f"heavy {n % 999 * number}" for n in range(60_000)))
        encoder.save = lambda: (
            world.write("edited.md", "the gannet"),
            world.app.opened.sync.hint(["edited.md", "3.md"]),
        )
        index, committed = world.app.opened.builds.scopes["vault"].index, []
        index.on_commit = committed.append
        world.run()
        assert committed == [["edited.md"], ["3.md"], ["2.md"], ["1.md"], ["0.md"]]
        assert "edited.md" in world.found("gannet", mode="text")
        assert len(world.app.opened.sync.pending_paths) <= 1  # the heavy note in hand is looked at again
    finally:
        world.close()


def test_a_save_waits_for_no_notes_that_are_slow_to_read(world):
    world.write("edited.md", "the puffin")
    world.run()
    for number in range(4):
        world.write(f"{number}.md", f"note {number} about the heron")
    sync, committed, saved = world.app.opened.sync, [], []

    def save_after_listing(*_):
        if not saved:
            saved.append("edited.md")
            world.write("edited.md", "the gannet")
            sync.hint(saved)
            with sync._pending_paths.processing_due():
                pass  # begins its quiet time
            time.sleep(0.1)

    sync.on_listing(save_after_listing)
    world.app.opened.builds.scopes["vault"].index.on_commit = committed.append
    with quick(index_pass, READING_S=0.0):
        world.run()
    assert [sorted(paths) for paths in committed] == [["edited.md"], ["0.md", "1.md", "2.md", "3.md"]]


def test_a_note_whose_new_file_is_not_quiet_yet_is_not_removed_before(world):
    world.write("Old/a.md", "the dunlin")
    world.write("Gone.md", "the puffin")
    world.run()
    sync, asked = world.app.opened.sync, documents(world.encoder)
    world.write("New/a.md", "the dunlin")
    (world.vault / "Old/a.md").unlink()
    (world.vault / "Gone.md").unlink()
    sync._pending_paths.recheck("New/a.md", 60.0)  # a program still writes to it
    with quick(removal_rules, FINAL=0.0):
        sync.run(["Old/a.md", "Gone.md"])
        sync.run(["Old/a.md", "Gone.md"])
        assert indexed(world) == {"Old/a.md"}
        sync.run(["New/a.md"])
        sync._pending_paths._later.clear()
        sync.run(["Old/a.md"])
    assert indexed(world) == {"New/a.md"}
    assert documents(world.encoder) == asked


@pytest.mark.parametrize("embedded", [True, False])
def test_a_note_is_removed_while_its_indexed_copy_is_still_to_be_checked(world, embedded):
    world.write("Old/a.md", "the dunlin")
    world.write("New/a.md", "the dunlin")
    world.run()
    sync = world.app.opened.sync
    sync._pending_paths.recheck("New/a.md", 60.0)  # as a capture does until it gets an id
    manifest = world.app.opened.builds.scopes["vault"].index.manifest
    manifest["New/a.md"] = replace(manifest["New/a.md"], embedded=embedded)
    (world.vault / "Old/a.md").unlink()
    with quick(removal_rules, FINAL=0.0):
        sync.run(["Old/a.md"])
    assert indexed(world) == {"New/a.md"}


def test_notes_whose_old_files_go_while_the_new_ones_are_processed_are_not_embedded_again(world):
    def copy(number, folder):
        world.write(f"{folder}/{number:03}.md", f"the dunlin {number}\n")

    for number in range(120):
        copy(number, "Old")
    world.write("Gone.md", "the puffin")
    world.run()
    for number in range(120):
        copy(number, "New")
    sync, asked, committed, removed = world.app.opened.sync, documents(world.encoder), [], []

    def remove_after_two_windows(paths):
        committed.append(set(paths))
        if len(committed) == 2:
            removed.extend(["Gone.md", *(f"Old/{number:03}.md" for number in range(120))])
            for path in removed:
                (world.vault / path).unlink()
            sync.hint(removed)
            with sync._pending_paths.processing_due():
                pass  # begins its quiet time
            time.sleep(0.1)

    world.app.opened.builds.scopes["vault"].index.on_commit = remove_after_two_windows
    with quick(removal_rules, FINAL=0.0):
        outcome = world.run()
        assert committed[2] == {"Gone.md", *removed} - {f"Old/{path[4:]}" for path in committed[3]}
        assert documents(world.encoder) == asked
        outcome.add(world.run())
    assert (outcome.moved + outcome.added, outcome.embedded) == (120, 0)
    assert indexed(world) == {f"New/{number:03}.md" for number in range(120)}


def test_a_row_that_the_catalog_refuses_stops_no_other(world):
    real = world.app.opened.builds.scopes["vault"].index.catalog

    class Refusing:
        def __getattr__(self, name):
            return getattr(real, name)

        def write(self, *, upserts=(), **others):
            if any(document.path == "b.md" for document, *_ in upserts):
                raise ValueError("b")
            return real.write(upserts=upserts, **others)

    world.app.opened.builds.scopes["vault"].index.catalog = Refusing()
    for name in "abc":
        world.write(f"{name}.md", f"the {name} gannet")
    world.run()
    assert indexed(world) == {"a.md", "c.md"}
    assert "b.md" in defects(world)
    world.app.opened.builds.scopes["vault"].index.catalog = real
    world.run()
    assert sorted(world.found("gannet")) == ["a.md", "b.md", "c.md"]
    assert "b.md" not in defects(world)
    assert world.app.opened.builds.scopes["vault"].index._store.count() == 3


def store_version(world: World) -> int:
    """The version of the captures' table of chunks."""
    store = world.app.opened.builds.scopes["captures"].index._store
    store.flush()
    return store._run(store._table.version())


MARKED = "---\nid: m1\ncreated_at: 2026-01-01T10:00:00Z\n{}---\nThe heron stood at the weir.\n"


@pytest.mark.parametrize(
    ("before", "after", "writes"),
    [
        pytest.param("", "promote: false\n", False, id="a mark"),
        pytest.param("summary: A heron.\n", "summary: A bird.\nstatus: done\n", False, id="a summary and metadata"),
        pytest.param("tags: [a]\n", "tags: [b]\n", True, id="tags"),
        pytest.param("title: One\n", "title: Two\n", True, id="the title"),
        pytest.param("aliases: [One]\n", "aliases: [Two]\n", True, id="another name"),
        pytest.param("source: a\n", "source: b\n", True, id="the source"),
    ],
)
def test_rows_are_replaced_only_where_they_differ(world, tmp_path, before, after, writes):
    world.write("Captures/default/Heron.md", MARKED.format(before))
    world.run()
    version = store_version(world)
    world.write("Captures/default/Heron.md", MARKED.format(after))
    outcome = world.run()
    assert (outcome.modified, outcome.chunks, outcome.embedded) == (1, 1, int(after.startswith(("title", "alias"))))
    assert (store_version(world) > version) == writes
    assert world.dump() == world.rebuilt(tmp_path / "fresh")


def test_rows_that_were_to_be_kept_and_changed_meanwhile_are_replaced(world, tmp_path):
    note = world.write("Captures/default/Heron.md", MARKED.format(""))
    world.run()
    index, vault = world.app.opened.builds.scopes["captures"].index, world.app.opened.vault

    def prepared(text: str):
        note.write_text(text)
        raw, stat = vault.read("Captures/default/Heron.md")
        return index.prepare([(parse(raw, "Captures/default/Heron.md", mtime_ms=0), stat)])

    marked = prepared(MARKED.format("promote: false\n"))
    index.commit(prepared(MARKED.format("title: Gannet\n")))
    note.write_text(MARKED.format("promote: false\n"))
    index.commit(marked)
    assert dump_index(index) == world.rebuilt(tmp_path / "fresh")["captures"]


@pytest.mark.slow
def test_a_large_note_that_is_as_it_was_indexed_is_not_parsed_again(world):
    note = world.write("Captures/default/Large.md", MARKED.format("") + "The heron stood still. " * 30_000)
    world.run()
    parsed, real = [], index_pass.parse

    def parse_counted(raw, path, **given):
        parsed.append(path)
        return real(raw, path, **given)

    with quick(index_pass, parse=parse_counted):
        os.utime(note, (time.time() - 5, time.time() - 5))
        world.run()
        assert (parsed, world.run().unchanged) == ([], 1)  # its stat is known now: the second look reads nothing
        note.write_text(note.read_text("utf-8") + "A gannet came by.")
        assert world.run().modified == 1
    assert set(parsed) == {"Captures/default/Large.md"}
    assert world.found("gannet", mode="text") == ["Captures/default/Large.md"]


def test_a_removal_that_failed_halfway_leaves_the_note_findable(world):
    workspace = world.app.agent_access.workspace("default")
    kept = workspace.capture("kept heron").record
    index = world.app.opened.builds.scopes["captures"].index
    real = index.catalog

    class Failing:
        def __getattr__(self, name):
            if name == "write":
                raise Unavailable("the disk is full")
            return getattr(real, name)

    index.catalog = Failing()
    with pytest.raises(Unavailable):
        workspace.delete(kept.id)
    with pytest.raises(Unavailable):
        workspace.capture("lost stork")
    index.catalog = real
    world.app.opened.sync.run()
    assert [hit.record.id for hit in workspace.search(Query("heron")).hits] == [kept.id]
    assert index._store.count() == 1


def test_a_failed_pass_leaves_its_paths_pending_until_they_are_found(world):
    index = world.app.opened.builds.scopes["vault"].index
    real = index._store

    class Full:
        def __getattr__(self, name):
            if name == "replace":
                raise Unavailable("the search index can't be written: the disk is full")
            return getattr(real, name)

    with quick(pipeline, PAUSE=(0.3, 0.3)), world.serving():
        world.settled()
        index._store = Full()
        world.write("Late.md", "the fulmar came late\n")
        until(lambda: any("disk is full" in told for told in world.app.health.status(None)["degraded"]))
        for _ in range(10):
            assert len(world.app.opened.sync.pending_paths) > 0
            time.sleep(0.05)
        assert world.found("heron") == []  # searches go on
        index._store = real
        until(lambda: world.found("fulmar") == ["Late.md"])
        world.settled()
        until(lambda: not world.app.opened.sync.problems)


@pytest.mark.slow
def test_a_file_that_can_never_be_read_does_not_stay_pending(world):
    real = world.app.opened.vault.read

    def read(path):
        if path == "Bad.md":
            raise Unavailable("Bad.md: Input/output error")
        return real(path)

    world.app.opened.vault.read = read
    with quick(index_pass, FINAL=0.05), world.serving():
        world.write("Bad.md", "x")
        world.write("Good.md", "the skua\n")
        until(lambda: world.found("skua") == ["Good.md"])
        until(lambda: "Bad.md" in world.app.opened.sync.failures)
        world.settled()
        assert "Input/output error" in defects(world)["Bad.md"][0]
        world.app.opened.vault.read = real
        world.app.opened.sync.request_listing()
        until(lambda: "Bad.md" in indexed(world))
        assert "Bad.md" not in defects(world)


@pytest.mark.slow
def test_what_grew_too_large_is_named_at_once(world):
    world.write("Grown.md", "small\n")
    with world.serving():
        world.settled()
        with (world.vault / "Grown.md").open("r+b") as file:
            file.truncate(6_000_000)
        until(lambda: "too large" in " ".join(defects(world).get("Grown.md", [])))
        until(lambda: "Grown.md" not in indexed(world))
        world.write("Grown.md", "small again\n")
        until(lambda: "Grown.md" in indexed(world) and "Grown.md" not in defects(world))


# (b) the shapes of a save


def by_truncation(world, path, text):
    with (world.vault / path).open("w") as file:
        file.flush()
        time.sleep(0.3)  # somebody may look just now
        file.write(text)


def by_rename(world, path, text):
    world.write(path + ".tmp", text).rename(world.vault / path)


def as_vim(world, path, text):
    file = world.vault / path
    probe = file.with_name("4913")
    probe.touch()
    probe.unlink()
    file.rename(file.with_name(file.name + "~"))
    file.write_text(text)
    file.with_name(file.name + "~").unlink()


def test_every_way_to_save_is_indexed_once_with_the_final_text(world, tmp_path):
    ways = {"Direct": World.write, "Truncated": by_truncation, "Renamed": by_rename, "Vim": as_vim}
    for name in ways:
        world.write(f"{name}.md", f"the old linnet of {name}\n")
    with world.serving():
        world.settled()
        for name, way in ways.items():
            way(world, f"{name}.md", f"the new linnet of {name.lower()}\n")
        world.write("a/b/c/Made.md", "the new linnet in a folder\n")
        outside = tmp_path / "outside"
        (outside / "in").mkdir(parents=True)
        (outside / "in" / "Moved.md").write_text("the new linnet from outside\n")
        outside.rename(world.vault / "came")
        (world.vault / "Copy.md").write_bytes((world.vault / "Direct.md").read_bytes())
        expected = {*(f"{name}.md" for name in ways), "a/b/c/Made.md", "came/in/Moved.md", "Copy.md"}
        until(lambda: indexed(world) == expected)
        world.settled()
        assert sorted(world.found("new linnet", mode="text", limit=50)) == sorted(expected)
        assert world.found("old", mode="text") == []
        # Out again, and written to there: none of it enters.
        (world.vault / "came").rename(outside)
        (outside / "in" / "Moved.md").write_text("changed outside, a wryneck\n")
        (outside / "in" / "New.md").write_text("made outside, a wryneck\n")
        until(lambda: "came/in/Moved.md" not in indexed(world))
        world.settled()
        assert world.found("wryneck", mode="text") == []
        # The case of a name.
        (world.vault / "Direct.md").rename(world.vault / "direct.md")
        until(lambda: "direct.md" in indexed(world) and "Direct.md" not in indexed(world))
        world.settled()
    assert indexed(world) == (expected - {"came/in/Moved.md", "Direct.md"}) | {"direct.md"}
    assert world.dump() == world.rebuilt(tmp_path / "other")


@pytest.mark.slow
def test_a_root_that_goes_and_comes_back_loses_nothing(world):
    for number in range(3):
        world.write(f"{number}.md", f"the pipit {number}\n")
    with quick(pipeline, AGAIN=pipeline.AGAIN | {"root": 0.1}), world.serving():
        world.settled()
        aside = world.vault.with_name("aside")
        world.vault.rename(aside)
        world.app.jobs.run("root")
        until(lambda: any("vault missing" in told for told in world.app.opened.sync.problems))
        assert len(world.found("pipit")) == 3
        with pytest.raises(Unavailable):
            world.app.agent_access.workspace("default").capture("nowhere to put it")
        (aside / "1.md").write_text("the meadow pipit\n")
        aside.rename(world.vault)
        until(lambda: not world.app.opened.sync.problems)
        until(lambda: world.found("meadow", mode="text") == ["1.md"])
        assert len(world.found("pipit")) == 3
        # Another folder in its place.
        world.vault.rename(aside)
        world.write("Captures/default/x.md", "---\nid: x\n---\nthe other ouzel\n")
        world.app.jobs.run("root")
        until(lambda: world.found("ouzel", mode="text") == ["Captures/default/x.md"])
        until(lambda: indexed(world) == {"Captures/default/x.md"})


# (c) notes dropped into the inbox


DROPPED = {
    "plain.md": b"dropped by hand, no final newline",
    "crlf.md": b"---\r\n# mine\r\ntags:   [ b , a ]\r\n---\r\nbody\r\n",
    "bom.md": b"\xef\xbb\xbf---\nx: 1\n---\nbody\n",
    "dated.md": b"---\ncreated_at: 2020-01-02\n---\nbody\n",
    "made.md": b"---\nCreated: 2019-05-06T07:08\ndate: 2020-01-02\n---\nbody\n",
    "diary.md": b"---\ncreated: soon\ndate: 2018-03-04\n---\nbody\n",
}
LEFT = {
    "broken.md": b"---\nbroken: [\n---\nbody\n",
    "open.md": b"---\nnever: closed\n",
    "bad id.md": b"---\nid: ../../etc/passwd\n---\nbody\n",
    "known.md": b"---\nid: my-own-id\n---\nbody\n",
    "Plan.sync-conflict-20261120-143205-ABCDEF7.md": b"conflict\n",
    "utf16.md": "utf16\n".encode("utf-16"),
    "latin.md": b"caf\xe9\n",
}


def without_ids(raw: bytes) -> bytes:
    lines = raw.splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith((b"id:", b"created_at:", b"---", b"\xef\xbb\xbf---"))]
    return b"".join(kept)


@pytest.mark.slow
def test_a_note_dropped_into_the_inbox_is_adopted_once_it_is_quiet_and_git_sees_no_more(tmp_path):
    world = World(tmp_path, sync=SyncSettings(quiet_s=0.05, patience_s=0.2, adopt_s=3.0, listing_s=3600.0))
    try:
        world.write("Own.md", "no property is given to a note of the vault\n")
        world.git("init", "-q")
        world.git("add", "-A")
        world.git("commit", "-qm", "mine")
        with world.serving():
            world.settled()
            for name, raw in {**DROPPED, **LEFT}.items():
                world.write(f"Captures/default/{name}", raw)
            typed = world.vault / "Captures/default/typed.md"
            text = ""
            for number in range(9):  # a person types for longer than the quiet time
                text += f"word{number} "
                typed.write_text(text)
                time.sleep(0.4)
                assert typed.read_text() == text
            until(lambda: b"id:" in typed.read_bytes())
            until(lambda: all(b"id:" in (world.vault / "Captures/default" / name).read_bytes() for name in DROPPED))
            world.settled()
            adopted = {name: (world.vault / "Captures/default" / name).read_bytes() for name in (*DROPPED, "typed.md")}
            passes = world.app.opened.sync.passes["done"]
            world.app.opened.sync.request_listing()
            until(lambda: world.app.opened.sync.passes["done"] > passes)
            world.settled()
            world.app.opened.sync.run()
        for name, raw in adopted.items():
            assert (world.vault / "Captures/default" / name).read_bytes() == raw  # once
        for name, raw in DROPPED.items():
            now = adopted[name]
            assert without_ids(now) == without_ids(raw), name
            assert now.startswith(b"\xef\xbb\xbf") == raw.startswith(b"\xef\xbb\xbf")
            assert (b"\r\n" in now) == (b"\r\n" in raw)
            assert b"\n" not in now.replace(b"\r\n", b"") or b"\r\n" not in raw
            assert now.count(b"created_at:") == 1
        assert b"created_at: 2019-05-06T07:08:00.000Z\n" in adopted["made.md"]
        assert b"created_at: 2018-03-04T00:00:00.000Z\n" in adopted["diary.md"]
        for name, raw in LEFT.items():
            assert (world.vault / "Captures/default" / name).read_bytes() == raw, name
        claimed = ids(world)
        assert all(f"id: {claimed[f'Captures/default/{name}']}".encode() in adopted[name] for name in adopted)
        assert claimed["Captures/default/known.md"] == "my-own-id"
        assert world.dump() == world.rebuilt(tmp_path / "other")
        changed = world.git("status", "--porcelain", "-z", "-uall").split("\0")
        assert {line[3:] for line in changed if line} == {
            f"Captures/default/{name}" for name in (*DROPPED, *LEFT, "typed.md")
        }
    finally:
        world.close()


def test_a_note_dropped_while_the_daemon_was_down_or_busy_is_adopted(tmp_path):
    world = World(tmp_path, sync=SyncSettings(quiet_s=0.05, patience_s=0.2, adopt_s=1.0, listing_s=3600.0))
    try:
        file = world.write("Captures/default/n.md", "the siskin\n")
        world.app.opened.sync.run()
        assert world.found("siskin") == ["Captures/default/n.md"]
        assert file.read_text() == "the siskin\n"
        world.reopen()  # before it was quiet
        time.sleep(1.0)
        world.app.opened.sync.run()
        assert "id:" in file.read_text()
    finally:
        world.close()


def test_a_note_that_can_not_be_adopted_is_found_all_the_same(world):
    real = world.app.opened.vault.replace

    def full(path, raw, *, digest):
        raise Unavailable(f"{path}: the disk is full")

    world.app.opened.vault.replace = full
    file = world.write("Captures/default/n.md", "the siskin\n")
    world.app.opened.sync.run()
    assert world.found("siskin") == ["Captures/default/n.md"]
    assert file.read_text() == "the siskin\n"
    world.app.opened.vault.replace = real
    world.app.opened.sync.run()
    assert "id:" in file.read_text()


# (d) the brake on mass removals


def many(world: World, count: int = 40) -> None:
    for number in range(count):
        world.write(f"n/{number:03}.md", f"note {number} about the stork, word{number}\n")


def held(world: World) -> bool:
    return any("removals held" in told for told in world.app.opened.sync.problems)


def remove(world: World, count: int = 25) -> None:
    for number in range(count):
        (world.vault / f"n/{number:03}.md").unlink()


def test_a_mass_removal_is_held_over_a_restart_and_while_the_daemon_was_down(world):
    many(world)
    world.run()
    world.reopen()
    aside = world.vault / "n"
    aside.rename(world.vault.with_name("n"))
    world.app.opened.sync.run()  # the first listing after a start
    assert held(world)
    assert len(indexed(world)) == 40
    world.reopen()
    world.app.opened.sync.run()
    assert held(world)
    assert len(world.found("stork", limit=50)) == 40
    world.vault.with_name("n").rename(aside)
    world.app.opened.sync.run()
    assert not held(world)
    assert len(indexed(world)) == 40


def test_what_is_held_is_let_go_when_a_person_agrees(world):
    many(world)
    with world.serving():
        world.settled()
        remove(world)
        until(lambda: held(world))
        world.settled()  # what is held is not pending: it is as findable as it will be
        assert len(indexed(world)) == 40
        told = world.app.operations["index"]({"accept_removals": True}, lambda _: None)
        assert told["removed"] == 25
        assert not held(world)
        assert len(indexed(world)) == 15


@pytest.mark.slow
def test_what_is_held_comes_back_in_parts_and_the_rest_goes(world):
    many(world)
    with world.serving():
        world.settled()
        away = world.vault.with_name("away")
        (world.vault / "n").rename(away)
        until(lambda: held(world))
        (world.vault / "n").mkdir()
        for number in range(30):
            (away / f"{number:03}.md").rename(world.vault / f"n/{number:03}.md")
        until(lambda: not held(world))
        until(lambda: len(indexed(world)) == 30)
        world.settled()


@pytest.mark.slow
def test_what_is_held_goes_after_the_time_of_certainty(world):
    many(world)
    with quick(removal_rules, CERTAIN=2.5), world.serving():
        world.settled()
        remove(world)
        until(lambda: held(world))
        assert len(indexed(world)) == 40
        until(lambda: len(indexed(world)) == 15)
        assert not held(world)


@pytest.mark.slow
def test_a_checkout_is_let_through_though_git_moves_head_last(world):
    world.write("Base.md", "base\n")
    world.git("init", "-q")
    world.git("add", "-A")
    world.git("commit", "-qm", "base")
    many(world)
    world.git("add", "-A")
    world.git("commit", "-qm", "many")
    with world.serving():
        world.settled()
        head = world.vault / ".git/HEAD"
        branch = head.read_bytes()
        base = world.git("rev-parse", "HEAD~1").strip()
        (world.vault / "n").rename(world.vault.with_name("n"))  # as a checkout that is still at work
        until(lambda: held(world))
        head.write_text(base + "\n")
        until(lambda: indexed(world) == {"Base.md"})
        assert not held(world)
        head.write_bytes(branch)
        world.vault.with_name("n").rename(world.vault / "n")
        until(lambda: len(indexed(world)) == 41)


def test_a_commit_does_not_release_the_brake_for_notes_that_it_did_not_take(world):
    many(world)
    world.git("init", "-q")
    world.git("add", "-A")
    world.git("commit", "-qm", "all")
    world.run()
    world.write("n/000.md", "an edit\n")
    world.git("commit", "-qam", "an edit, committed by a plug-in a moment before the accident")
    remove(world)
    world.app.opened.sync.run()
    assert held(world)
    assert len(indexed(world)) == 40
    world.git("commit", "-qam", "and the removal as well")
    world.app.opened.sync.run()
    assert not held(world)


# (e) renames


@pytest.mark.slow
def test_a_moved_folder_embeds_nothing_and_trips_no_brake(tmp_path):
    world = World(tmp_path)
    try:
        for number in range(300):
            world.write(f"Old/{number:03}.md", f"---\nid: note-{number}\n---\nthe dunlin {number} word{number}\n")
        world.write("Stays.md", "stays\n")
        with world.serving():
            world.settled()
            before = {path.rpartition("/")[2]: own for path, own in ids(world).items()}
            asked = documents(world.encoder)
            (world.vault / "Old").rename(world.vault / "New")
            until(lambda: sum(path.startswith("New/") for path in indexed(world)) == 300)
            until(lambda: not any(path.startswith("Old/") for path in indexed(world)))
            world.settled()
            assert not held(world)
            assert documents(world.encoder) == asked
            assert {path.rpartition("/")[2]: own for path, own in ids(world).items()} == before
            # A copy, then the original goes, as programs move between disks.

            (world.vault / "Third").mkdir()
            for file in sorted((world.vault / "New").iterdir()):
                copy = shutil.copy(file, world.vault / f"Third/{file.name}.tmp")
                copy.rename(copy.with_suffix(""))
            shutil.rmtree(world.vault / "New")
            until(lambda: not any(path.startswith("New/") for path in indexed(world)))
            world.settled()
            assert len(indexed(world)) == 301
            assert documents(world.encoder) == asked
        world.reopen()
        asked = documents(world.encoder)
        (world.vault / "Third").rename(world.vault / "Fourth")  # while the daemon is down
        outcome = world.app.opened.sync.run()
        assert (outcome.moved, outcome.removed, outcome.embedded) == (300, 0, 0)
        assert documents(world.encoder) == asked
        assert {path.rpartition("/")[2]: own for path, own in ids(world).items()} == before
        assert world.dump() == world.rebuilt(tmp_path / "other")
    finally:
        world.close()


def test_of_two_notes_with_one_id_the_better_one_answers_to_it(world):
    world.write("A.md", "---\nid: same\n---\none\n")
    world.write("A copy.md", "---\nid: same\n---\ntwo\n")
    world.run()
    claimed = ids(world)
    assert claimed["A.md"] == "same" != claimed["A copy.md"]
    (world.vault / "A.md").unlink()
    world.run()
    assert ids(world) == {"A copy.md": "same"}


# (f) rebuilding while life goes on


def capturing(world: World, stop: threading.Event, kept: dict[str, str], errors: list[BaseException]) -> None:
    workspace = world.app.agent_access.workspace("default")
    number = 0
    while not stop.is_set():
        text = f"capture {number} while the index is built: a merlin, unique{number}"
        try:
            kept[workspace.capture(text).record.path] = text
        except Exception as error:
            errors.append(error)
        number += 1
        time.sleep(0.03)


def test_a_rebuild_under_captures_loses_nothing_and_searches_go_on(world, tmp_path):
    for number in range(100):
        world.write(f"n/{number:03}.md", f"# Head\n\nnote {number} about the merlin, word{number}\n")
    with world.serving():
        world.settled()
        stop, kept, errors = threading.Event(), {}, []
        writer = threading.Thread(target=capturing, args=(world, stop, kept, errors))
        writer.start()
        built: list[object] = []
        builder = threading.Thread(
            target=lambda: built.append(world.app.operations["index"]({"full": True}, lambda _: None))
        )
        builder.start()
        edits = 0
        try:
            while builder.is_alive():
                assert "n/007.md" in world.found("word7", mode="text")
                world.write(f"edit/{edits}.md", f"an edit {edits} meanwhile\n")
                edits += 1
                time.sleep(0.03)
        finally:
            builder.join()
            stop.set()
            writer.join()
        assert built and built[0]["failed"] == 0
        assert errors == []
        assert kept
        for path, text in kept.items():
            assert (world.vault / path).read_bytes().endswith(text.encode())
            number = text.rpartition("unique")[2]
            assert path in world.found(f"unique{number}", mode="text"), path
        world.settled()
        until(lambda: len(indexed(world)) == 100 + edits + len(kept))
        assert not any("index:" in told for told in world.app.health.degraded())
    assert world.dump() == world.rebuilt(tmp_path / "other")
    world.app.opened.builds.drop_retired(grace=0)
    assert len([one for one in (world.state / "index").iterdir() if one.is_dir()]) == 1


@pytest.mark.parametrize(
    ("twin", "refusal"),
    [("w\u00f6rk", pytest.raises((Conflict, InvalidArgument))), ("Wo\u0308rk", contextlib.nullcontext())],
    ids=["another letter case", "another Unicode form"],
)
def test_a_workspace_gets_no_twin_that_would_share_its_folder_elsewhere(world, twin, refusal):
    world.app.agent_access.create_workspace("W\u00f6rk")
    with refusal:
        world.app.agent_access.create_workspace(twin)
    world.app.agent_access.create_workspace("W\u00f6rk")
    assert world.app.agent_access.workspaces() == ["W\u00f6rk", "default"]


def test_the_generation_grows_over_a_rebuild(world):
    for number in range(4):
        world.write("A.md", f"version {number}\n")
        world.run()
    before = world.app.health.status(None)["generation"]
    world.app.opened.sync.rebuild(fresh=True)
    assert world.app.health.status(None)["generation"] > before
    world.reopen()
    assert world.app.health.status(None)["generation"] > before


class Slow(FakeEncoder):
    """Takes its time over documents in bulk, until it is let go."""

    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        self.pause = 0.0
        self.urgent = 0.0

    def encode(self, texts, *, kind, urgent):
        if kind == "document" and not urgent and len(texts) > 4:
            time.sleep(self.pause)
        return super().encode(texts, kind=kind, urgent=urgent)


def test_another_encoder_is_embedded_beside_resumed_and_switched_to(tmp_path):
    world = World(tmp_path)
    try:
        for number in range(300):
            world.write(f"n/{number:03}.md", f"note {number} about the whinchat, word{number}\n")
        world.run()
        old = world.app.opened.builds.live.folder
        slow = Slow(32, identity="new")
        slow.pause = 0.3
        world.reopen(embedder=fake_embedder(slow))
        with world.serving():
            until(lambda: any("another encoder" in sentence for sentence in world.app.health.degraded()))
            answer = world.app.operations["search"]({"query": "word7", "scope": "vault"}, lambda _: None)
            assert answer["mode"] == "text"
            assert answer["degraded"]
            assert answer["hits"][0]["path"] == "n/007.md"
            until(lambda: documents(slow) > 100)
            # What is saved meanwhile is found before it is done; captures wait for it.
            world.write("Saved.md", "saved in between, a stonechat\n")
            until(lambda: world.found("stonechat", mode="text") == ["Saved.md"])
            with pytest.raises(Unavailable):
                world.app.agent_access.workspace("default").capture("not embedded as the index asks for")
            assert world.app.opened.builds.live.folder == old
        done = documents(slow)
        assert done < 300
        resumed = Slow(32, identity="new")
        world.reopen(embedder=fake_embedder(resumed))  # interrupted, and resumed
        assert world.app.opened.builds.live.folder == old
        with world.serving():
            until(lambda: world.app.opened.builds.live.made.identity == "new")
            until(lambda: not world.app.health.degraded())
            world.settled()
            assert documents(resumed) < 301 - 50
            answer = world.app.operations["search"]({"query": "word7", "scope": "vault"}, lambda _: None)
            assert (answer["mode"], answer["degraded"]) == ("hybrid", [])
            assert world.app.agent_access.workspace("default").capture("embedded again").created
        world.app.opened.builds.drop_retired(grace=0)
        assert not old.exists()
    finally:
        world.close()


class Ordered(FakeEncoder):
    """Records in which order it gets these documents."""

    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        self.order: list[str] = []
        self.on_large = lambda: None

    def encode(self, texts, *, kind, urgent):
        if kind == "document":
            time.sleep(0.1)  # a saved file settles meanwhile
        for text in texts if kind == "document" else ():
            for name in re.findall(r"large\d|stonechat", text):
                if name not in self.order:
                    self.order.append(name)
                    if name != "stonechat":
                        self.on_large()
        return super().encode(texts, kind=kind, urgent=urgent)


@pytest.mark.slow
def test_a_saved_note_waits_for_at_most_one_large_note(tmp_path, monkeypatch):
    monkeypatch.setattr(change_plan, "WINDOW_BYTES", 1_000)
    monkeypatch.setattr(index_pass, "LARGE_TEXT", 1_000)
    encoder = Ordered(32, batch=4)
    world = World(tmp_path, embedder=fake_embedder(encoder))
    try:
        with world.serving():
            world.settled()

            def save(name, text):
                world.write(name, text)
                world.app.opened.sync.hint([name])

            def on_large():
                if encoder.order == ["large0"]:  # the others come while the first is embedded
                    for number in range(1, 8):
                        save(f"Large {number}.md", " ".join(f"large{number} {n}" for n in range(3_000)))
                elif len(encoder.order) == 2:
                    save("Saved.md", "a stonechat\n")

            encoder.on_large = on_large
            world.write("Large 0.md", " ".join(f"large0 {n}" for n in range(3_000)))
            until(lambda: len(encoder.order) == 9)
            assert encoder.order.index("stonechat") <= 4, encoder.order
            world.settled()
            assert world.found("stonechat", mode="text") == ["Saved.md"]
            assert len(indexed(world)) == 9
    finally:
        world.close()


@pytest.mark.slow
def test_a_build_that_can_not_be_made_keeps_no_edit_out(world, tmp_path):
    many(world)
    world.run()
    world.reopen(embedder=fake_embedder(FakeEncoder(32, identity="new")))
    remove(world)  # held: so no new index may be made
    with world.serving():
        until(lambda: held(world))
        world.write("Edit.md", "the whimbrel\n")
        until(lambda: world.found("whimbrel", mode="text") == ["Edit.md"])
        world.app.operations["index"]({"accept_removals": True}, lambda _: None)
        assert world.app.opened.builds.live.made.identity == "new"
        assert len(indexed(world)) == 16


def test_a_rebuild_without_an_encoder_does_not_throw_the_vectors_away(world):
    world.write("a.md", "the whimbrel\n")
    world.run()
    world.app.opened.embedder.close()
    with pytest.raises(Unavailable, match="no vectors"):
        world.app.operations["index"]({"full": True}, lambda _: None)
    assert len(world.app.opened.builds.scopes["vault"].index.words_only_paths()) == 0


# (g) an encoder that breaks


class Breakable(FakeEncoder):
    broken = False

    def encode(self, texts, *, kind, urgent):
        if self.broken:
            raise Unavailable("the model server is away")
        return super().encode(texts, kind=kind, urgent=urgent)


@pytest.mark.slow
def test_with_a_broken_encoder_words_are_searched_and_it_comes_back(tmp_path):
    encoder = Breakable()
    embedder = Embedder(
        EmbedSettings(encoders=(BundledSettings(),)), cache=Path("unused"), load=lambda *_: encoder, retry_s=(0.2, 0.2)
    )
    embedder.start()
    assert embedder.wait(60)
    world = World(tmp_path, embedder=embedder)
    try:
        world.write("Early.md", "the dotterel\n")
        with world.serving():
            world.settled()
            encoder.broken = True
            answer = world.app.operations["search"]({"query": "dotterel", "scope": "all"}, lambda _: None)
            assert answer["mode"] == "text"
            assert any("model server is away" in told for told in answer["degraded"])
            assert [hit["path"] for hit in answer["hits"]] == ["Early.md"]
            before = manifest(world.vault)
            with pytest.raises(Unavailable):
                world.app.agent_access.workspace("default").capture("refused")
            assert manifest(world.vault) == before
            world.write("Late.md", "the dotterel, late\n")
            until(lambda: len(world.found("dotterel", mode="text")) == 2)
            world.settled()
            assert any("by words find" in told for told in world.app.health.degraded())
            encoder.broken = False
            until(lambda: not world.app.health.degraded())
            answer = world.app.operations["search"]({"query": "dotterel", "scope": "all"}, lambda _: None)
            assert (answer["mode"], answer["degraded"], len(answer["hits"])) == ("hybrid", [], 2)
            assert world.app.agent_access.workspace("default").capture("taken").created
        assert world.dump() == world.rebuilt(tmp_path / "other")
    finally:
        world.close()


# (h) nobody waits behind a bulk run


@pytest.mark.slow
def test_captures_and_saves_do_not_wait_behind_a_bulk_run(tmp_path):
    slow = Slow()
    slow.pause = 1.5
    world = World(tmp_path, embedder=fake_embedder(slow))
    try:
        for number in range(480):
            world.write(f"n/{number:03}.md", f"note {number} about the garganey, word{number}\n")
        with ended(world):
            until(lambda: documents(slow) > 48)
            begun = time.monotonic()
            captured = world.app.agent_access.workspace("default").capture("a capture in a hurry, a smew")
            took = time.monotonic() - begun
            world.write("Saved.md", "a save in a hurry, a goosander\n")
            until(lambda: world.found("goosander", mode="text") == ["Saved.md"])
            assert world.found("smew", mode="text", scope="captures") == [captured.record.path]
            assert not world.app.opened.sync.ready.is_set(), "the bulk run was over too soon to tell"
            assert len(world.app.opened.sync.pending_paths) > 0
            slow.pause = 0.0
        assert took < 1.5, "not even for one batch of it"
        assert len(indexed(world)) == 482
    finally:
        world.close()


@contextmanager
def ended(world: World):
    """The pipe running, from before its first listing until it has nothing left to do."""

    with ExitStack() as running:
        world.app._start_parts(running)
        yield
        assert world.app.opened.sync.ready.wait(60)
        world.settled()


# Rest


def test_a_pipe_with_nothing_to_do_does_nothing(world):
    """Also with notes that can't be given vectors, a vault that is away, and removals that are held."""
    many(world)
    world.run()
    late = fake_embedder(FakeEncoder())
    late.close()
    world.reopen(embedder=late)
    world.write("Words.md", "by words only\n")
    world.run()
    world.reopen()

    def passes(seconds: float) -> int:
        count = 0
        real = world.app.opened.vault.list_notes

        def listing(under=""):
            nonlocal count
            count += 1
            return real(under)

        world.app.opened.vault.list_notes = listing
        time.sleep(seconds)
        world.app.opened.vault.list_notes = real
        return count

    remove(world, 30)
    (world.vault / "Words.md").unlink()
    with world.serving():
        until(lambda: held(world))
        assert len(world.app.opened.builds.scopes["vault"].index.words_only_paths()) == 1
        assert passes(1.5) <= 2
        assert len(world.app.opened.sync.pending_paths) == 0
        world.vault.rename(world.vault.with_name("away"))
        world.app.jobs.run("root")
        until(lambda: any("vault missing" in told for told in world.app.health.degraded()))
        begun = time.process_time()
        assert passes(1.5) <= 2
        assert time.process_time() - begun < 0.5
        world.vault.with_name("away").rename(world.vault)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["", "vault.lance", "vault.db", "captures.lance"])
def test_an_index_taken_away_under_the_daemon_is_built_anew_and_never_answers_with_nothing(world, part):

    many(world)
    with world.serving():
        world.settled()
        live = world.app.opened.builds.live.folder
        ((live / part) if part else live.parent).rename(world.state / "taken")
        shutil.rmtree(world.state / "taken", ignore_errors=True)
        seen = []
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                answer = world.app.operations["search"]({"query": "stork", "scope": "all", "limit": 50}, lambda _: None)
            except Unavailable as error:
                seen.append(error.message)
                continue
            assert len(answer["hits"]) == 40 or answer["degraded"]
            if len(answer["hits"]) == 40 and not answer["degraded"] and world.app.opened.builds.live.is_intact():
                break
            time.sleep(0.05)
        assert world.app.opened.builds.live.is_intact()
        assert world.app.agent_access.workspace("default").capture("kept in the new one").created
        world.settled()
    world.reopen()
    assert len(indexed(world)) == 41


@pytest.mark.slow
def test_an_index_whose_searches_fail_while_the_daemon_runs_is_built_anew(world):
    many(world)
    with world.serving():
        world.settled()
        world.app.opened.builds.scopes["vault"].index.maintain()  # writes the rows that only memory has
        broken = world.app.opened.builds.live.folder
        for file in (broken / "vault.lance").rglob("*"):
            if file.is_file() and "_versions" not in file.parts:
                file.unlink()  # one by one: the folders that were opened stay where they were

        def searched():
            with suppress(Unavailable):
                return len(world.found("stork", mode="text", limit=50)) == 40 and not world.app.health.degraded()

        until(searched, 60)
        assert world.app.opened.builds.live.folder != broken


@pytest.mark.slow
@pytest.mark.parametrize(
    "harm",
    ["vault.lance", "vault.db", "vault.lance and vault.db", "current", "torn current", "made.json", "everything"],
)
def test_an_index_harmed_before_the_start_is_mended_and_says_so(world, harm):

    many(world)
    world.run()
    live = world.app.opened.builds.live.folder
    world.close()
    for part in harm.split(" and "):
        match part:
            case "everything":
                shutil.rmtree(live.parent)
            case "current":
                (live.parent / "current").unlink()
            case "torn current":
                (live.parent / "current").write_bytes(b"\xff\0")
            case "made.json":
                (live / "made.json").write_text('{"iden')
            case _:
                shutil.rmtree(live / part) if (live / part).is_dir() else (live / part).write_bytes(b"torn" * 9)
    world.app = world._open()
    before = world.app.operations["search"]({"query": "stork", "scope": "all", "limit": 50}, lambda _: None)
    assert len(before["hits"]) == 40 or before["degraded"], harm
    world.app.opened.sync.run()
    after = world.app.operations["search"]({"query": "stork", "scope": "all", "limit": 50}, lambda _: None)
    assert len(after["hits"]) == 40
    assert not after["degraded"]
    world.reopen()
    world.app.opened.sync.run()
    assert not world.app.health.degraded()
    assert len(world.found("stork", limit=50)) == 40
