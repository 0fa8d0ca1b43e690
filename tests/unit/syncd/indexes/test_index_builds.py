"""What the builds state of themselves: numbers of both indexes, and what keeps searches from finding notes."""

from __future__ import annotations

import errno
import shutil

import pytest

from index.encoders.embedder import Embedder, EmbedSettings
from syncd.indexes import index_builds
from syncd.indexes.build_inputs import build_in_use
from syncd.indexes.index_builds import IndexBuilds
from syncd.settings.settings import IndexSettings
from tests.support.fakes import FakeEncoder, fake_embedder
from tests.support.world import World


def filled(world):
    world.write("Captures/default/Heron.md", "a heron at the pond")
    world.write("Birds/Reed.md", "a warbler in the reed")
    world.write("Birds/Bad.md", "---\n: [\n---\nx")
    world.run()
    return world.app.opened.builds


def count_documents(encoder):
    return sum(texts for kind, _, texts in encoder.calls if kind == "document")


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    yield made
    made.close()


def test_the_numbers_are_those_of_both_scopes(world):
    builds = world.app.opened.builds
    assert (builds.documents, builds.is_complete) == (0, False)
    before = builds.generation
    filled(world)
    assert (builds.documents, builds.is_complete) == (3, True)
    assert builds.generation > before
    assert {scope: facts["documents"] for scope, facts in builds.facts().items()} == {"captures": 1, "vault": 2}
    assert {scope: sorted(paths) for scope, paths in builds.paths().items()} == {
        "captures": ["Captures/default/Heron.md"],
        "vault": ["Birds/Bad.md", "Birds/Reed.md"],
    }
    assert [path for path, _ in builds.defects()] == ["Birds/Bad.md"]


def test_a_vault_that_was_not_read_yet_is_stated_unless_a_repair_says_why(world):
    builds = world.app.opened.builds
    assert builds.degraded() == ["index: the vault is being read for the first time; until then searches miss notes"]
    builds.rebuilt_because = "index: it was damaged"
    assert builds.degraded() == ["index: it was damaged"]
    filled(world)
    assert builds.degraded() == []


@pytest.mark.slow
@pytest.mark.parametrize("where", ["data", "_versions", "_indices", "_deletions", "catalog"])
def test_an_index_whose_bytes_flipped_is_set_aside_and_made_again(world, where):
    filled(world)
    world.app.opened.builds.scopes["captures"].index.maintain(force=True)
    build = world.app.opened.builds.live.folder
    world.close()
    files = [build / "captures.db"] if where == "catalog" else build.glob(f"captures.lance/chunks.lance/{where}/**/*")
    for file in files:
        if file.is_file():
            raw = bytearray(file.read_bytes())
            raw[len(raw) // 3 :: max(1, len(raw) // 50)] = bytes(len(raw[len(raw) // 3 :: max(1, len(raw) // 50)]))
            file.write_bytes(raw)
    world.app = world._open()
    builds = world.app.opened.builds
    world.run()
    assert world.found("heron", mode="text") == ["Captures/default/Heron.md"]
    assert world.found("warbler", mode="text") == ["Birds/Reed.md"]
    assert builds.degraded() == []


@pytest.mark.slow
def test_an_index_that_cannot_be_opened_is_kept_beside_until_it_is_swept(world):
    builds = filled(world)
    folder = builds.live.folder
    world.close()
    shutil.rmtree(folder / "captures.lance")
    (folder / "captures.lance").write_text("no folder at all")
    folder.chmod(0o500)
    world.app = world._open()
    builds = world.app.opened.builds
    assert builds.degraded() == ["index: it was damaged and is being rebuilt; until then searches miss notes"]
    assert (folder.parent / "damaged-1/captures.lance").read_text() == "no folder at all"
    assert (folder.parent / "damaged-1").stat().st_mode & 0o777 == 0o700
    assert builds.live.folder != folder.parent / "damaged-1"
    world.run()
    assert builds.degraded() == []
    assert builds.drop_unused(older_s=-1) == ["damaged-1"]


def test_an_encoder_that_is_away_is_stated_before_the_notes_that_lack_vectors(tmp_path):
    none = Embedder(EmbedSettings(encoders=()), cache=tmp_path)
    none.start()
    world = World(tmp_path, embedder=none)
    builds = filled(world)
    encoder, captures = builds.degraded(("captures",))
    assert encoder.startswith("encoder: no encoder is configured")
    assert captures == "index: only searches by words find 1 note"
    assert builds.degraded() == [encoder, "index: only searches by words find 3 notes"]
    world.close()


def test_another_encoder_is_stated_until_the_index_is_made_with_it(world):
    filled(world)
    world.reopen(fake_embedder(FakeEncoder(identity="other")))
    (sentence,) = world.app.opened.builds.degraded()
    assert sentence.startswith("index: built with another encoder; ")
    world.app.opened.sync.rebuild(fresh=False)
    assert world.app.opened.builds.degraded() == []


def test_a_switch_that_the_disk_refuses_leaves_the_build_in_use_and_is_repeated(world, monkeypatch):
    builds = filled(world)
    old = builds.live.folder
    world.reopen(fake_embedder(encoder := FakeEncoder(identity="other")))
    builds = world.app.opened.builds
    with monkeypatch.context() as full:

        def refuse(path, text):
            raise OSError(errno.ENOSPC, "No space left on device", str(path))

        full.setattr(index_builds, "write_private", refuse)
        with pytest.raises(OSError, match="No space left"):
            world.app.opened.sync.rebuild(fresh=False)
    assert builds.live.folder == old
    assert all(builds.scopes[scope].index is index for scope, index in builds.live.indexes.items())
    assert builds.is_outdated()
    builds.drop_retired(grace=0)
    assert builds.drop_unused(older_s=-1) == []
    assert world.found("heron", mode="text") == ["Captures/default/Heron.md"]

    def fail(paths):
        raise RuntimeError("a callback fails")

    builds.scopes["captures"].listeners.append(fail)
    embedded = count_documents(encoder)
    with pytest.raises(RuntimeError, match="a callback fails"):
        world.app.opened.sync.rebuild(fresh=False)
    assert count_documents(encoder) == embedded > 0
    assert builds.live.folder != old
    assert all(builds.scopes[scope].index is index for scope, index in builds.live.indexes.items())
    assert build_in_use(old.parent)[0] == builds.live.folder
    assert not builds.is_outdated()


def test_a_command_that_needs_no_index_leaves_none_behind(tmp_path):
    root, embedder = tmp_path / "index", fake_embedder()
    IndexBuilds(root, embedder, IndexSettings(), perspectives=lambda _: (), later=True).close()
    assert [*root.iterdir()] == []
    embedder.close()
