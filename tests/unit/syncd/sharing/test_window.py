"""The window on real files: what agents read through it, and that it fails closed."""

from __future__ import annotations

import os
import threading
import time
import unicodedata
from contextlib import suppress
from pathlib import Path

import pytest

from index.document_ids import path_id
from index.errors import MemexError, NotFound, PermissionDenied, Unavailable
from index.model import Answer, Query
from index.search.reranker import Reranker
from syncd.indexes import shared_index
from syncd.settings.access import ShareSettings
from syncd.sharing.window import CHANGED
from syncd.workspaces.window_search import search_scopes
from tests.support.fakes import FakeJudge
from tests.support.until import until
from tests.support.world import World


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path, share=ShareSettings(never=("Private",)))
    world.write("References/Heron.md", "---\nid: heron-1\ntags: [birds]\n---\nThe heron stands in zanzibar water.\n")
    world.write("References/Private/Safe.md", "The zanzibar code is 4711.\n")
    world.write("References/Marked.md", "---\nshare: false\n---\nA marked zanzibar note.\n")
    world.write("Diary/Secret.md", "A secret zanzibar note.\n")
    world.write("Captures/Reports/Report.md", "A zanzibar report.\n")
    world.run()
    yield world
    world.close()


def share(world, *paths, workspace="default"):
    world.app.operations["share.add"]({"workspace": workspace, "paths": list(paths)}, lambda _: None)
    world.run()


def unshare(world, *paths, workspace="default"):
    world.app.operations["share.remove"]({"workspace": workspace, "paths": list(paths)}, lambda _: None)


def workspace(world, name="default", namespace=None):
    return world.app.agent_access.workspace(name, namespace)


def seen(world, text="zanzibar", *, name="default", scope="vault", mode="hybrid", limit=10):
    hits = workspace(world, name).search(Query(text, mode=mode, limit=limit), scope=scope).hits
    return sorted(hit.record.path for hit in hits)


def shared_files(world):
    return sorted(file.name for file in Path(world.state).rglob("shared*"))


def test_without_a_share_there_is_nothing_and_it_costs_nothing(world):
    assert seen(world) == []
    assert workspace(world).window is None
    assert shared_files(world) == []
    with world.app.opened.builds.shared.read() as index:
        assert index is None


def test_agents_read_what_is_shared_and_nothing_else(world):
    share(world, "References")
    for mode in ("hybrid", "vector", "text"):
        assert seen(world, mode=mode) == ["References/Heron.md"]
    mine = workspace(world).capture("a zanzibar capture").record
    assert seen(world, scope="all") == sorted([mine.path, "References/Heron.md"])
    assert seen(world, scope="captures") == [mine.path]
    (hit,) = workspace(world).search(Query("zanzibar"), scope="vault").hits
    assert hit.record.scope == "vault"
    kept = workspace(world).get(hit.record.id)
    assert kept.content == "The heron stands in zanzibar water.\n"
    assert workspace(world).document_at("References/Heron.md", shared=True).id == hit.record.id
    for path in ("References/Private/Safe.md", "References/Marked.md", "Diary/Secret.md", "Captures/Reports/Report.md"):
        with pytest.raises(NotFound):
            workspace(world).document_at(path, shared=True)
    with pytest.raises(NotFound):
        workspace(world).get("heron-1")


def test_a_shared_note_is_found_by_its_path_before_captures_whose_paths_have_another_unicode_form(world, monkeypatch):
    world.write("References/Grüße.md", "A zanzibar greeting.\n")
    share(world, "References")
    here, listed = workspace(world), []
    capture = here.capture("Einmal Ärger", metadata={"title": "Ärger"}).record
    paths = here._paths
    monkeypatch.setattr(here, "_paths", lambda: [listed.append(1), *paths()][1:])
    assert here.document_at("References/Grüße.md", shared=True).path == "References/Grüße.md"
    assert not listed
    form = unicodedata.normalize("NFD", "References/Grüße.md")
    assert here.document_at(form, shared=True).path == "References/Grüße.md"
    assert here.document_at(unicodedata.normalize("NFD", "Ärger.md"), shared=True).id == capture.id
    assert listed
    with pytest.raises(NotFound, match="in workspace 'default'; a search returns the id and the path"):
        here.document_at("Öde.md", shared=True)


def test_nothing_is_embedded_for_the_window(world):
    before = len(world.encoder.calls)
    share(world, "References")
    with world.app.opened.builds.shared.read() as index:
        assert len(index.words_only_paths()) == 0
        assert index.counts[0] == 1
    assert len(world.encoder.calls) == before


def test_the_window_of_one_workspace_is_not_that_of_another(world):
    (world.vault / "Captures/home").mkdir()
    share(world, "References")
    assert seen(world, name="home") == []
    share(world, "Diary", workspace="home")
    assert seen(world, name="home") == ["Diary/Secret.md"]
    assert seen(world) == ["References/Heron.md"]
    assert workspace(world, "home").search(Query("zanzibar"), scope="all").hits[0].record.path == "Diary/Secret.md"


def test_a_note_that_is_shared_after_a_search_is_found_by_the_next_beside_another_workspace(world):
    (world.vault / "Captures/home").mkdir()
    share(world, "References")
    share(world, "Diary", workspace="home")
    assert seen(world) == ["References/Heron.md"]
    world.write("References/Stork.md", "A zanzibar stork.\n")
    world.run()
    assert seen(world) == ["References/Heron.md", "References/Stork.md"]


def test_the_next_note_takes_the_place_of_one_that_is_withheld_now(world):
    world.write("References/Stork.md", "A zanzibar stork.\n")
    share(world, "References")
    (best,) = seen(world, limit=1)
    (other,) = {"References/Heron.md", "References/Stork.md"} - {best}
    world.write(best, "---\nshare: false\n---\n")
    assert seen(world, limit=1) == [other]


@pytest.mark.parametrize(("commits", "answer"), [(1, ("state 1",)), (99, (CHANGED,))])
def test_an_answer_comes_from_one_state_of_the_index(world, commits, answer):
    class Busy:
        generation = 0

        def search(self, query):
            self.generation = min(self.generation + 1, commits)
            return Answer((), query.mode, (f"state {self.generation}",))

    share(world, "References")
    assert workspace(world).window._search_one_state(Busy(), Query("zanzibar")).degraded == answer


def test_a_note_of_another_workspace_answers_like_a_missing_one(world):
    (world.vault / "Captures/home").mkdir()
    share(world, "References")
    share(world, "Diary", workspace="home")
    secret, missing = (f"vault:{path_id(path)}" for path in ("Diary/Secret.md", "Diary/Missing.md"))
    (world.vault / "Diary/Secret.md").write_text("An edited secret.\n")
    for read in (workspace(world).get, workspace(world).record):
        messages = []
        for id in (secret, missing):
            with pytest.raises(NotFound, match=id) as refused:
                read(id)
            messages.append(str(refused.value).replace(id, ""))
        assert messages[0] == messages[1]


def test_a_note_that_is_withheld_now_is_refused_by_the_name_that_the_caller_gave(world):
    share(world, "References")
    (hit,) = workspace(world).search(Query("zanzibar"), scope="vault").hits
    (world.vault / "References/Heron.md").write_text("---\nshare: false\n---\nzanzibar\n")
    with pytest.raises(NotFound, match=hit.record.id) as refused:
        workspace(world).get(hit.record.id)
    assert "Heron" not in str(refused.value)


def test_a_key_for_one_namespace_has_no_window(world):
    (world.vault / "Captures/default/sub").mkdir()
    share(world, "References")
    assert workspace(world, namespace="sub").window is None
    assert workspace(world, namespace="sub").search(Query("zanzibar"), scope="vault").hits == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    "closed",
    [
        pytest.param(lambda world, _: unshare(world, "References"), id="unshared"),
        pytest.param(lambda _, file: file.unlink(), id="deleted"),
        pytest.param(lambda world, file: file.rename(world.vault / "Diary/Heron.md"), id="moved"),
        pytest.param(lambda world, file: file.parent.rename(world.vault / "Private"), id="its folder moved"),
        pytest.param(lambda _, file: file.write_text("---\nshare: false\n---\nzanzibar\n"), id="marked"),
        pytest.param(lambda _, file: file.write_text("---\nbroken: [\n---\nzanzibar\n"), id="broken"),
        pytest.param(lambda _, file: file.write_text("another text about zanzibar\n"), id="edited"),
        pytest.param(lambda _, file: (file.unlink(), file.symlink_to("../Diary/Secret.md")), id="a link"),
        pytest.param(lambda _, file: (file.unlink(), file.mkdir()), id="a folder"),
    ],
)
def test_what_was_closed_a_moment_ago_is_not_told(world, closed):
    """No pass runs in between, as when a mass removal is held back."""
    share(world, "References")
    (hit,) = workspace(world).search(Query("zanzibar"), scope="vault").hits
    record = hit.record
    closed(world, world.vault / "References/Heron.md")
    assert seen(world) == []
    for read in (
        lambda: workspace(world).get(record.id),
        lambda: workspace(world).record(record.id),
        lambda: workspace(world).read_content(record),
        lambda: workspace(world).document_at(record.path, shared=True),
    ):
        with pytest.raises((NotFound, Unavailable)):
            read()


@pytest.mark.parametrize("scope", ["vault", "all"])
def test_what_is_unshared_while_the_reranker_is_at_work_is_left_out(world, scope):
    share(world, "References")
    here = workspace(world)

    class Slow:
        """A reranker during whose work the owner stops sharing."""

        def search(self, query, search):
            answer = search(query)
            assert [hit.record.path for hit in answer.hits] == ["References/Heron.md"]
            unshare(world, "References")
            return answer

    assert search_scopes(Query("zanzibar"), scope, lambda _: Answer((), "hybrid"), here.window, Slow()).hits == ()


def test_a_reranker_that_prefers_shared_notes_hides_no_capture(world, tmp_path):
    for number in range(6):
        world.write(f"References/Gold {number}.md", f"zanzibar gold gold gold, note {number}\n")
        world.write(f"Captures/default/Plain {number}.md", f"zanzibar zanzibar, capture {number}\n")
    share(world, "References")
    judge = FakeJudge("gold")
    reranker = Reranker(str(tmp_path), 30, 20.0, load=lambda *_: judge)
    reranker.start()
    assert reranker.wait(30)
    here = workspace(world)

    def places(limit):
        answer = search_scopes(
            Query("zanzibar", limit), "all", world.app.opened.captures.index.search, here.window, reranker
        )
        assert len(answer.hits) == limit
        return ["capture" if hit.record.scope == "captures" else "shared" for hit in answer.hits]

    try:
        assert places(3) == ["shared", "shared", "capture"]
        assert places(6) == ["shared", "shared", "capture", "shared", "capture", "shared"]
    finally:
        reranker.close()
    assert judge.asked


def test_a_note_that_was_edited_is_told_again_after_the_pass(world):
    share(world, "References")
    file = world.vault / "References/Heron.md"
    file.write_text("another text about zanzibar\n")
    answer = workspace(world).search(Query("zanzibar"), scope="vault")
    assert any("changed a moment ago" in line for line in answer.degraded)
    world.run()
    answer = workspace(world).search(Query("zanzibar"), scope="vault")
    assert [hit.chunk.strip() for hit in answer.hits] == ["another text about zanzibar"]
    assert answer.degraded == ()


def test_an_edit_that_leaves_the_stat_unchanged_reaches_the_window_with_the_vaults_index(world):
    share(world, "References")
    file = world.vault / "References/Heron.md"
    before, text = file.stat(), file.read_text()
    with file.open("r+") as stream:
        stream.write(text.replace("heron stands", "egret stands"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    world.app.opened.sync.run(["References/Heron.md"])
    assert seen(world, "egret") == ["References/Heron.md"]


def test_a_note_can_be_marked_and_unmarked(world):
    share(world, "References")
    marked = world.vault / "References/Marked.md"
    marked.write_text("---\nshare: true\n---\nA marked zanzibar note.\n")
    world.run()
    assert seen(world) == ["References/Heron.md", "References/Marked.md"]
    marked.write_text("---\nshare: false\n---\nA marked zanzibar note.\n")
    world.run()
    with world.app.opened.builds.shared.read() as index:
        assert list(index.manifest) == ["References/Heron.md"]


def test_a_held_removal_of_the_vault_is_no_removal_that_is_held_for_the_window(world):
    for n in range(40):
        world.write(f"References/{n}.md", f"zanzibar {n}\n")
    world.run()
    share(world, "References")
    world.app.opened.sync.ready.set()
    assert len(seen(world, limit=50)) == 41
    for n in range(40):
        (world.vault / f"References/{n}.md").unlink()
    (world.vault / "References/Heron.md").unlink()
    assert seen(world, limit=50) == []
    world.app.opened.sync.run()
    assert world.app.opened.sync.held_paths
    with world.app.opened.builds.shared.read() as index:
        assert index.counts[0] == 0


def test_writes_to_a_shared_note_are_refused(world):
    share(world, "References")
    here = workspace(world)
    id = here.document_at("References/Heron.md", shared=True).id
    before = (world.vault / "References/Heron.md").read_bytes()
    for write in (
        lambda: here.update_note(id, "text"),
        lambda: here.set_tags(id, ["a"]),
        lambda: here.delete(id),
    ):
        with pytest.raises(PermissionDenied):
            write()
    assert (world.vault / "References/Heron.md").read_bytes() == before
    unshare(world, "References")
    with pytest.raises(NotFound):
        here.delete(id)


def test_its_tags_enter_no_vocabulary(world):
    share(world, "References")
    assert workspace(world).tags(10) == []
    assert "birds" not in workspace(world).capture("The heron stands in zanzibar water, all day.").record.tags


def test_the_window_survives_a_restart_and_a_new_index(world):
    share(world, "References")
    world.reopen()
    world.run()
    assert seen(world) == ["References/Heron.md"]
    world.app.opened.sync.rebuild(fresh=True)
    world.run()
    assert seen(world) == ["References/Heron.md"]


def test_a_process_that_dies_while_it_stops_sharing_shows_nothing_afterwards(world):
    share(world, "References", "Diary/Secret.md")
    world.app.opened.shares.remove("default", ["Diary/Secret.md"])  # the index does not follow
    world.reopen()
    assert seen(world) == ["References/Heron.md"]
    world.run()
    assert world.app.opened.builds.shared.place.mark.exists()
    world.app.opened.shares.remove("default", ["References"])
    world.reopen()
    assert seen(world) == []
    assert shared_files(world) != []
    world.run()
    assert shared_files(world) == []


def test_a_reader_that_stays_inside_fails_when_the_index_is_removed_and_leaves_no_file(world, monkeypatch):
    share(world, "References")
    monkeypatch.setattr(shared_index, "DRAIN_S", 0.05)
    shared = world.app.opened.builds.shared
    with shared.read() as index:
        record = index.record_at("References/Heron.md")
        removal = threading.Thread(target=shared.discard)
        removal.start()
        removal.join(60)
        for read in (
            lambda: index.search(Query("zanzibar")),
            lambda: index.search(Query("zanzibar", mode="text")),
            lambda: index.record_at(record.path),
            lambda: index.catalog.records([path_id(record.path)]),
            lambda: index.passages(record),
        ):
            with pytest.raises(MemexError):
                read()
        assert seen(world) == []
    assert shared_files(world) == []
    assert not shared.discard()


def test_a_damaged_index_is_replaced_and_leaves_the_vaults_own_alone(world):
    share(world, "References")
    world.app.close()
    for file in Path(world.state).rglob("shared.db"):
        file.write_bytes(b"no database" * 1000)
    world.app = world._open()
    world.run()
    assert seen(world) == ["References/Heron.md"]
    assert "References/Heron.md" in world.found("zanzibar", scope="vault")


def test_a_workspace_that_is_created_again_has_no_window(world):
    (world.vault / "Captures/home").mkdir()
    share(world, "References", workspace="home")
    (world.vault / "Captures/home").rmdir()
    world.app.operations["workspace.create"]({"name": "home"}, lambda _: None)
    world.run()
    assert seen(world, name="home") == []
    assert shared_files(world) == []


def test_nothing_of_an_unshared_note_is_left_on_disk(world):
    share(world, "References", "Diary/Secret.md")
    until(lambda: b"zanzibar" in bytes_of(world))
    unshare(world, "Diary/Secret.md")
    world.run()
    assert seen(world) == ["References/Heron.md"]
    assert b"secret zanzibar" not in bytes_of(world)
    assert b"Diary/Secret" not in bytes_of(world)
    unshare(world, "References")
    assert shared_files(world) == []


@pytest.mark.parametrize("made_s", [-86_400, 86_400], ids=["long ago", "while the clock was ahead"])
def test_nothing_of_a_withheld_note_is_left_after_the_maintenance(world, made_s):
    share(world, "References")
    world.write("References/Other.md", "Another note.\n")
    world.run()
    (world.vault / "References/Heron.md").write_text("---\nshare: false\n---\nThe heron stands in zanzibar water.\n")
    world.run()
    mark = world.app.opened.builds.shared.place.mark
    assert mark.exists()
    assert not world.app.opened.builds.shared.maintain()  # not at once, because all shared notes are read again
    os.utime(mark, (time.time() + made_s,) * 2)
    assert world.app.opened.builds.shared.maintain()
    assert b"zanzibar" not in bytes_of(world)
    world.run()
    assert b"zanzibar" not in bytes_of(world)
    assert seen(world, "another") == ["References/Other.md"]
    assert not mark.exists()


def bytes_of(world):
    """All bytes of the files of the shared index at a moment when no temporary file of a late write becomes a file of it."""
    for _ in range(100):
        files = [
            file for top in Path(world.state).rglob("shared*") for file in (top, *top.rglob("*")) if file.is_file()
        ]
        with suppress(FileNotFoundError):
            return b"\n".join([str(file).encode() + file.read_bytes() for file in files])
    raise AssertionError("files come and go all the time")
