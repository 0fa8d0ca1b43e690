"""Law 8, state by state: each way in which Memex can be unwell is told in every answer to a search, of agents and owner."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing, contextmanager

import pytest

from index.errors import NotFound, Unavailable
from index.model import Query
from syncd.daemon import health
from syncd.graph.node_request import NewNode
from tests.support.fakes import FakeEncoder, fake_embedder
from tests.support.world import World, until

NOTES = 40


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    for number in range(NOTES):
        made.write(f"Private/Secret plan {number}.md", f"words of a private note {number}")
    made.write("Captures/default/C.md", "words of a capture")
    yield made
    made.close()


def answers(world):
    """What the owner and an agent are told with the answer to a search."""
    owner = world.app.operations["search"]({"query": "words", "scope": "all", "mode": "text"}, lambda _: None)
    return {
        "status": world.app.health.status(None)["degraded"],
        "owner": owner["degraded"],
        "agent": list(world.app.agent_access.workspace("default").search(Query("words", mode="text")).degraded),
        "agent's status": world.app.health.status(("default",))["degraded"],
    }


@contextmanager
def first_listing(world):
    yield answers(world)


@contextmanager
def no_encoder(world):
    world.run()
    world.app.opened.embedder.close()
    yield answers(world)


@contextmanager
def another_encoder(world):
    world.run()
    world.reopen(fake_embedder(FakeEncoder(identity="another")))
    yield answers(world)


class Flaky(FakeEncoder):
    """A model that fails at long texts while it is told to."""

    failing = False

    def encode(self, texts, *, kind, urgent):
        if self.failing and not urgent:
            raise Unavailable("the model server is away")
        return super().encode(texts, kind=kind, urgent=urgent)


@contextmanager
def words_only(world):
    world.run()
    flaky = Flaky()
    world.reopen(fake_embedder(flaky))
    world.write("Captures/default/Late.md", "words of a late capture")
    flaky.failing = True
    world.run()
    flaky.failing = False
    yield answers(world)


def test_notes_without_vectors_are_counted_only_for_who_may_see_them(world):
    with words_only(world):
        health = world.app.health
        counted = [
            [text for text in health.degraded(of) if "by words find" in text]
            for of in (None, ("default",), ("other", "default"), ("other",), ())
        ]
    sentence = "index: only searches by words find {}"
    assert counted == [[sentence.format("1 note")]] * 3 + [[], [sentence.format("some notes")]]


@contextmanager
def no_watcher(world):
    with world.serving():
        world.settled()
        world.app.watch.stop()
        yield answers(world)


@contextmanager
def removals_held(world, folder="Captures/default"):
    for number in range(3 * NOTES):
        world.write(f"{folder}/A note {number}.md", f"words of note {number}")
    with world.serving():
        world.settled()
        for note in (world.vault / folder).glob("A note *.md"):
            note.unlink()
        until(lambda: world.app.opened.sync.held_paths)
        yield answers(world)


@contextmanager
def pass_failed(world):
    world.run()
    world.app.opened.sync._record_failure("indexing: the disk is full", 0.0, [])
    yield answers(world)


@contextmanager
def folder_unread(world):
    world.run()
    world.app.opened.sync._index_pass.unseen = True  # root, who runs some of these tests, may read every folder
    yield answers(world)


@contextmanager
def rebuilding(world):
    world.run()
    told = []
    world.app.operations["index"]({"full": True}, lambda _: told.append(answers(world)))
    yield told[0]


@contextmanager
def damaged(world):
    world.run()
    world.app.close()
    build = world.state / "index" / (world.state / "index/current").read_text().strip()
    shutil.rmtree(build / "captures.lance/chunks.lance/data")
    world.app = world._open()
    yield answers(world)


@contextmanager
def not_writable(world):
    world.run()
    vault = world.app.opened.vault
    vault.can_write = lambda folder="": folder != "Captures/default"
    yield answers(world)
    del vault.can_write


@pytest.mark.parametrize(
    ("unwell", "words"),
    [
        (first_listing, "index: the vault is being read for the first time"),
        (no_encoder, "encoder: "),
        (another_encoder, "index: built with another encoder"),
        (words_only, "index: only searches by words find "),
        (no_watcher, "watch: the watcher is not running"),
        (removals_held, "removals held: "),
        (pass_failed, "indexing: the disk is full"),
        (folder_unread, "vault: some folders can't be read"),
        (rebuilding, "index: being rebuilt"),
        (damaged, "index: it was "),
    ],
)
def test_each_degraded_state_is_in_every_answer(world, unwell, words):
    with unwell(world) as told:
        for who, sentences in told.items():
            assert any(words in sentence for sentence in sentences), (who, sentences)
        for who in ("agent", "agent's status"):  # law 1: what an agent is told names no note and no place
            text = " ".join(told[who])
            assert "Secret plan" not in text
            assert "Private" not in text
            assert str(world.vault.parent) not in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "shared", "informed"),
    [
        ("Captures/default", (), True),
        ("Captures/other", (), False),
        ("Private", (), False),
        ("Private", ("default",), True),
        ("Private", ("other",), False),
    ],
)
def test_an_agent_hears_of_held_removals_only_where_it_may_read(world, folder, shared, informed):
    (world.vault / "Captures/other").mkdir()
    for workspace in shared:
        world.app.operations["share.add"]({"paths": ["Private"], "workspace": workspace}, lambda _: None)
    with removals_held(world, folder) as told:
        hearing = {who for who, sentences in told.items() if any("removals held" in one for one in sentences)}
    assert hearing == ({*told} if informed else {who for who in told if "agent" not in who})


def test_an_inbox_that_can_not_be_written_to_is_told_by_status_alone(world):
    with not_writable(world) as told:
        saying = {who for who, sentences in told.items() if any("Memex can't write to" in one for one in sentences)}
    assert saying == {who for who in told if "status" in who}


def test_a_missing_vault_is_told_to_whoever_can_still_ask(world):
    world.run()
    world.vault.rename(world.vault.with_name("away"))
    world.app.opened.sync.run()
    told = "vault missing: its folder is gone"
    assert any(told in sentence for sentence in world.app.health.status(None)["degraded"])
    found = world.app.operations["search"]({"query": "words", "scope": "all", "mode": "text"}, lambda _: None)
    assert found["hits"]
    assert any(told in sentence for sentence in found["degraded"])
    whole = world.app.operations["status"]({"coverage": True}, lambda _: None)
    assert whole["coverage"]["vault"]["of"] is None
    world.vault.with_name("away").rename(world.vault)


def test_what_is_well_is_told_as_well(world):
    world.run()
    assert all(sentences == [] for sentences in answers(world).values())


def test_an_inbox_without_a_workspace_is_told_with_the_way_out(world):
    world.run()
    shutil.rmtree(world.vault / "Captures")
    told = world.app.health.status(None)["degraded"]
    assert any("inbox: " in one and "`memex workspace create default`" in one for one in told)
    with pytest.raises(NotFound, match="create it with `memex workspace create default`"):
        world.app.agent_access.workspace("default")
    world.app.agent_access.create_workspace("default")
    assert not [one for one in world.app.health.status(None)["degraded"] if one.startswith("inbox")]


@pytest.mark.parametrize("kind", ["a link", "a file"])
def test_the_status_answers_where_something_takes_the_place_of_the_inbox(world, kind):
    world.run()
    inbox, away = world.vault / "Captures", world.state / "away"
    inbox.rename(away)
    if kind == "a link":
        inbox.symlink_to(away)
    else:
        inbox.write_text("no folder")
    status = world.app.operations["status"]({}, lambda _: None)
    assert status["degraded"] == [health.BLOCKED]
    assert status["contexts"] == {"strays": []}
    assert world.app.operations["workspace.list"]({}, lambda _: None) == []
    failed = {name: run.error for name in world.app.jobs.states() if (run := world.app.jobs.run(name)) and run.error}
    assert failed == {}
    with pytest.raises(NotFound):
        world.app.agent_access.workspace("default")
    inbox.unlink()
    away.rename(inbox)
    assert world.app.operations["status"]({}, lambda _: None)["degraded"] == []


def test_observations_that_vanish_are_made_anew(tmp_path):
    """Their table is made with the first of them, so nobody has seen it when the index is opened."""
    world = World(tmp_path)
    with world.serving():
        space = world.app.agent_access.workspace("default")
        space.nodes.create([NewNode("Ada", "person", ["wrote of zebras"])])
        (table,) = world.state.rglob("captures-observations.lance")
        until(
            lambda: (
                not world.app.opened.builds.is_lost() and world.app.opened.builds.live.marks.get(table / "chunks.lance")
            )
        )
        shutil.rmtree(table)

        def answered():
            try:
                return space.nodes.search("zebras", 5).hits
            except Unavailable:
                return ()

        until(lambda: world.app.opened.builds.is_lost())
        until(lambda: not world.app.opened.builds.is_lost() and answered())
        assert space.nodes.add_observations([("Ada", ["and of quaggas"])])[0][1]
    world.close()


def test_a_catalog_that_is_cut_while_the_daemon_runs_is_rebuilt(world):
    with world.serving():
        until(lambda: world.app.opened.builds.is_complete and world.app.opened.sync.ready.is_set())
        builds = world.app.opened.builds
        folder = builds.live.folder
        with closing(sqlite3.connect(folder / "captures.db")) as other:
            other.execute("pragma wal_checkpoint(truncate)")
        os.truncate(folder / "captures.db", 100)
        with pytest.raises(Unavailable):
            builds.indexes["captures"].counts  # noqa: B018 - the property asks the catalog
        world.write("Captures/default/D.md", "words of another capture")
        until(lambda: builds.live.folder != folder and builds.facts()["captures"]["documents"] == 2)
        assert not [one for one in answers(world)["status"] if one.startswith("index")]
