"""syncd/captures/note_update.py: a note is given another text in place, whole or not at all, on the real stores."""

import os
import threading

import pytest

from index.errors import Conflict, InvalidArgument, NotFound, ResourceExhausted, Unavailable
from syncd.captures import writer
from syncd.notes.front_matter import split
from syncd.vault.disk_errors import NameTaken
from tests.support.fakes import FakeEncoder, fake_embedder
from tests.support.world import World


@pytest.fixture
def world(tmp_path):
    opened = World(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def space(world):
    return world.app.agent_access.workspace("default")


def files(world):
    return {path: path.read_bytes() for path in sorted(world.vault.rglob("*.md"))}


def test_an_update_keeps_id_path_and_time_of_making_and_moves_version_and_time(world, space):
    first = space.capture("alpha beta", source="cli", metadata={"title": "T", "tags": ["x"], "n": 1}).record
    record, changed = space.update_note(first.id, "gamma delta")
    assert changed
    kept = ("id", "path", "created_at", "title", "tags", "collection", "source", "metadata", "namespace")
    assert {name: getattr(record, name) for name in kept} == {name: getattr(first, name) for name in kept}
    assert (record.version, first.version) == (2, 1)
    assert record.updated_at >= first.created_at
    assert space.get(first.id).content == "gamma delta"
    assert world.found("gamma", mode="text", scope="captures") == [first.path]
    assert world.found("alpha", mode="text", scope="captures") == []
    assert space.update_note(first.id, "epsilon")[0].version == 3
    assert world.dump() == world.rebuilt(world.state.parent / "again")


def test_what_is_the_same_already_is_not_written(world, space):
    first = space.capture("alpha", metadata={"title": "T", "tags": ["x"]}).record
    before, dump, calls = files(world), world.dump(), list(world.encoder.calls)
    same = space.update_note(first.id, "alpha", title="T", tags=["x"], collection="documents", version=1)
    assert same == (first, False)
    assert space.update_note(first.id, None) == (first, False)
    assert (files(world), world.dump(), world.encoder.calls) == (before, dump, calls)


def test_title_tags_and_collection_change_without_the_text(world, space):
    first = space.capture("alpha #inline", metadata={"tags": ["x"]}).record
    calls = len(world.encoder.calls)
    record, changed = space.update_note(first.id, None, tags=["#new tag", "b", "b"], collection="memory")
    assert changed
    assert (record.tags, record.collection, record.version) == (("new-tag", "b", "inline"), "memory", 2)
    assert space.get(first.id).content == "alpha #inline"
    assert len(world.encoder.calls) == calls, "nothing of the text changed"
    assert space.update_note(first.id, None, title="Another name")[0].title == "Another name"
    assert space.update_note(first.id, None, tags=[])[0].tags == ("inline",)


def test_the_text_comes_back_byte_for_byte_and_other_lines_stay(world, space):
    front = "\ufeff---\r\nid: mine\r\ncreated_at: 2026-01-02\r\n# a comment\r\ntags: [ a,  b ]\r\n'odd':   \"x\"   # kept\r\n---\r\n"
    file = world.write("Captures/default/Tidy.md", front + "old\r\n")
    world.run()
    for text in ("---\nno: front matter\n---\n", "\r\n\n  x", "no end of line", "日本\u2028語\n\n\n", "---"):
        record, changed = space.update_note("mine", text)
        assert changed
        assert space.get("mine").content == text
        kept = [line for line in split(file.read_bytes().decode())[0].splitlines() if "updated_at" not in line]
        assert [line for line in kept if "version" not in line] == front.splitlines()
    assert record.version == 6


def test_a_note_that_was_as_old_as_its_file_stays_so(world, space):
    file = world.write("Captures/default/Undated.md", "---\nid: mine\n---\nold")
    os.utime(file, ns=(10**18, 10**18))
    world.run()
    record, _ = space.update_note("mine", "new")
    assert record.created_at == 10**12
    assert record.updated_at > 10**12
    world.run()
    assert space.get("mine").record == record


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_properties_that_end_the_file_stay_properties(world, space, ending):
    file = world.write("Captures/default/Bare.md", f"---\nid: bare\ncreated_at: 2026-01-02\n---{ending}")
    world.run()
    record, _ = space.update_note("bare", "now with a text")
    assert (record.id, record.version, space.get("bare").content) == ("bare", 2, "now with a text")
    assert split(file.read_bytes().decode())[1] == "now with a text"


def test_a_version_is_compared_and_set(space):
    first = space.capture("one").record
    assert space.update_note(first.id, "two", version=1)[0].version == 2
    with pytest.raises(Conflict, match="version 2, not 1") as caught:
        space.update_note(first.id, "three", version=1)
    assert caught.value.details["version"] == 2
    assert space.get(first.id).content == "two"


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"text": ""}, InvalidArgument),
        ({"text": "\ud800"}, InvalidArgument),
        ({"text": "x" * 1_000_001}, ResourceExhausted),
        ({"text": "x", "title": " "}, InvalidArgument),
        ({"text": "x", "title": "a\nb"}, InvalidArgument),
        ({"text": "x", "title": "t" * 501}, InvalidArgument),
        ({"text": "x", "collection": "memeory"}, InvalidArgument),
    ],
)
def test_what_can_t_be_is_refused_and_nothing_changes(world, space, given, error):
    first = space.capture("one").record
    before = files(world)
    with pytest.raises(error):
        space.update_note(first.id, **given)
    assert files(world) == before


def test_a_node_and_a_file_name_what_changes_them(world, space):
    world.write("Captures/default/Entities/Ada.md", "---\nid: ada\n---\n- fact ^o1\n")
    world.write("Captures/default/Files/r.pdf.md", "---\nid: report\n---\ntext\n")
    world.run()
    with pytest.raises(InvalidArgument, match="replace_observation"):
        space.update_note("ada", "x")
    with pytest.raises(InvalidArgument, match="kb_upload_start"):
        space.update_note("report", "x")


def test_what_lies_elsewhere_is_not_found(world, space):
    other = world.app.agent_access.create_workspace("other")
    theirs = other.capture("theirs").record
    world.write("Note.md", "---\nid: vault-note\n---\nmine")
    world.run()
    for id in (theirs.id, "vault-note", "nothing"):
        with pytest.raises(NotFound) as caught:
            space.update_note(id, "x", version=1)
        assert caught.value.message == (
            f"no document {id!r} in workspace 'default'; a search returns the id and the path of each document"
        )


@pytest.mark.slow
def test_a_paragraph_of_a_long_note_embeds_that_paragraph_alone(world, space):
    parts = [f"## Part {n}\n\n" + f"word{n} " * 180 for n in range(40)]
    first = space.capture("\n\n".join(parts)).record
    world.app.opened.enricher.by = "off"
    before = len(world.encoder.calls)
    assert first.chunks > 30
    space.update_note(first.id, "\n\n".join([*parts[:20], parts[20] + "and more", *parts[21:]]))
    embedded = sum(count for _, _, count in world.encoder.calls[before:])
    assert 1 <= embedded <= 2
    assert world.dump() == world.rebuilt(world.state.parent / "again")


# All or nothing


class Broken(FakeEncoder):
    """An encoder that fails from the moment it is told to, in the middle of its work."""

    failing = False

    def encode(self, texts, *, kind, urgent):
        vectors = super().encode(texts, kind=kind, urgent=urgent)
        if self.failing:
            raise Unavailable("the encoder broke")
        return vectors


def test_an_encoder_that_fails_leaves_the_old_note_whole(tmp_path):
    encoder = Broken()
    world = World(tmp_path, embedder=fake_embedder(encoder))
    try:
        space = world.app.agent_access.workspace("default")
        first = space.capture("the old text").record
        before, dump = files(world), world.dump()
        encoder.failing = True
        with pytest.raises(Unavailable):
            space.update_note(first.id, "the new text, of other words")
        assert (files(world), world.dump()) == (before, dump)
        assert space.get(first.id).content == "the old text"
    finally:
        world.close()


@pytest.mark.slow
@pytest.mark.parametrize("part", ["_store", "catalog"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_index_that_fails_leaves_the_old_note_whole(world, space, part, after):
    first = space.capture("the old text").record
    before = files(world)
    index = world.app.opened.builds.scopes["captures"].index
    real = getattr(index, part)
    setattr(index, part, Failing(real, after=after))
    try:
        with pytest.raises(Unavailable):
            space.update_note(first.id, "the new text")
    finally:
        setattr(index, part, real)
    assert files(world) == before
    world.run()
    record = space.get(first.id).record
    assert (record.version, record.updated_at) == (1, None)
    assert world.dump() == world.rebuilt(world.state.parent / "again")


class Failing:
    """Stands before a part of the index and fails its next change, before it or just after."""

    def __init__(self, real, *, after):
        self.real, self.after = real, after

    def __getattr__(self, name):
        if name not in ("replace", "write"):
            return getattr(self.real, name)

        def failing(*args, **named):
            if self.after:
                getattr(self.real, name)(*args, **named)
            raise Unavailable("the disk is full")

        return failing


@pytest.mark.slow
def test_of_many_that_compare_the_version_one_wins_each_time(world, space):
    first = space.capture("0").record
    won = []

    def work(name):
        while True:
            kept = space.get(first.id)
            if kept.record.version > 20:
                return
            try:
                space.update_note(first.id, kept.content + f"\n{name}", version=kept.record.version)
            except Conflict:
                continue
            won.append(name)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    kept = space.get(first.id)
    assert kept.record.version == len(won) + 1 == len(kept.content.splitlines())
    assert sorted(kept.content.splitlines()[1:]) == sorted(won)


@pytest.mark.parametrize(("limit", "value", "tries"), [("ROUNDS", 3, 3), ("WRITING_S", -1.0, 1)])
def test_a_capture_whose_every_name_is_taken_gives_up(world, space, monkeypatch, limit, value, tries):
    asked = []

    def create(path, _):
        asked.append(path)
        raise NameTaken(f"{path} exists already")

    monkeypatch.setattr(writer, limit, value)
    monkeypatch.setattr(world.app.opened.vault, "create", create)
    with pytest.raises(Conflict, match="kept taking the names") as caught:
        space.capture("a heron")
    assert caught.value.retryable
    assert len(asked) == len(set(asked)) == tries
    assert files(world) == {}


def test_a_note_whose_properties_cannot_be_read_is_left_alone_and_the_way_out_is_named(world, space):
    first = space.capture("alpha").record
    world.write(first.path, "---\ntags:\n\t- a\n---\nalpha\n")
    world.run()
    (record,) = space.recent(10)
    before = files(world)
    with pytest.raises(Conflict, match="`memex status`, which names the mistake"):
        space.update_note(record.id, "beta")
    assert files(world) == before
