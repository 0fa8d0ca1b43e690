"""Each promotion is one commit of its own, with real Git."""

from __future__ import annotations

import os
import subprocess
import time
import tracemalloc

import pytest

from index.timings import now_ms
from syncd.commits.commit_builder import CommitBuilder
from syncd.git import command, repository
from syncd.history.audit_log import Author, acting_as
from syncd.notes.front_matter import split
from syncd.settings.automation import GitSettings
from tests.support.promotion_vault import capture, consistent, files, marked, promotions
from tests.support.world import World, promote


@pytest.fixture
def begun(monkeypatch):
    """The Git commands that were started."""
    commands = []

    def counting(run):
        return lambda words, *given, **more: commands.append(words) or run(words, *given, **more)

    for module in (command, repository):
        monkeypatch.setattr(module, "run", counting(module.run))
    return commands


def test_a_promotion_after_another_starts_few_git_processes(world, begun):
    world.write("Captures/default/Crane.md", capture().replace("c1", "c2").replace("heron", "crane"))
    world.run()
    promote(world, "c1")
    begun.clear()
    assert promote(world, "c2")["commit"]
    assert len(begun) <= 15, "two more if the index was written a moment ago"
    assert world.git("status", "--porcelain") == ""


def test_it_is_one_commit_that_says_who_and_what(world):
    done = promote(world, "c1", to="Birds")
    head = world.git("log", "-1", "--format=%H%n%an%n%B").split("\n", 2)
    assert head[0] == done["commit"]
    assert "Promote Heron" in head[2]
    trailers = subprocess.run(
        ["git", "interpret-trailers", "--parse"], input=head[2], capture_output=True, text=True, check=True
    )
    assert trailers.stdout.splitlines() == [
        "Capture-Id: c1",
        "Source: claude-code",
        "Approved-By: Ann <ann@example.org>",
        "Memex-Tool: promote",
    ]
    assert sorted(world.git("show", "--name-status", "--no-renames", "--format=", "HEAD").split()) == sorted(
        ["A", "Birds/Heron.md", "D", "Captures/default/Heron.md", "M", "Areas/Pond.md", "M", "Daily/Today.md"]
    )
    assert world.git("status", "--porcelain") == ""


def test_a_persons_unsaved_work_in_git_stays_out_of_the_commit(world):
    today = world.vault / "Daily/Today.md"
    today.write_text(today.read_text() + "a thought of mine\n")
    world.write("Staged.md", "staged by hand\n")
    world.git("add", "Staged.md")
    world.run()
    done = promote(world, "c1", to="Birds")
    assert done["left_out"] == ["Daily/Today.md"]
    assert today.read_text() == "Saw [[Birds/Heron|one]] and [[Heron]].\na thought of mine\n"
    assert "Daily/Today.md" not in world.git("show", "--name-only", "--format=", "HEAD")
    assert world.git("status", "--porcelain").splitlines() == [" M Daily/Today.md", "A  Staged.md"]


def test_a_vault_without_git_promotes_too(tmp_path):
    world = World(tmp_path)
    world.write("Captures/default/Heron.md", capture())
    world.run()
    done = promote(world, "c1")
    assert (done["target"], done["commit"]) == ("Notes/Heron.md", "")
    promotions(world).unpromote("c1")
    world.close()


def test_with_commits_off_a_promotion_its_way_back_and_an_undo_need_no_commit(tmp_path):
    world = World(tmp_path, git=GitSettings(commit=False))
    world.git("init", "-q")
    world.write("Home.md", "See [[Heron]].\n")
    world.git("add", "Home.md")
    world.git("commit", "-qm", "begin")
    head = world.git("rev-parse", "HEAD")
    heron = world.write("Captures/default/Heron.md", capture())
    world.run()
    before = heron.read_text()
    try:
        done = promote(world, "c1")
        assert (done["target"], done["commit"]) == ("Notes/Heron.md", "")
        assert "Notes/" in world.git("status", "--porcelain")
        assert promotions(world).facts()["uncommitted"] == 0, "nothing is owed"
        assert promotions(world).unpromote("c1")["commit"] == ""
        assert heron.read_text() == before
        agents = world.app.agent_access.workspace("default")
        with acting_as(Author("mcp", "delete_thought", "k1", "claude-code")):
            agents.delete("c1")
        assert not heron.exists()
        report = world.app.operations["undo"]({"id": "c1"}, lambda _: None)
        assert report["skipped"] == []
        assert heron.read_text() == before
        assert world.git("rev-parse", "HEAD") == head
        assert world.app.services.commits.flush() == 0
    finally:
        world.close()


@pytest.mark.slow
def test_many_at_once_are_one_look_and_a_commit_each(world, tmp_path, request):
    many = 6
    for number in range(many):
        world.write(
            f"Captures/default/N{number}.md",
            f"---\nid: n{number}\ncreated_at: 2026-11-20\npromote: true\n---\n"
            f"[[Captures/default/N{(number + 1) % many}]] [[N{(number + 2) % many}]] [x](N{(number + 3) % many}.md)\n",
        )
    links = " ".join(f"[[Captures/default/N{number}|{number}]]" for number in range(many))
    world.write("Overview.md", f"{links}\n")
    world.git("add", "-A")
    world.git("commit", "-qm", "many")
    world.run()
    before = files(world)
    listed = []
    everything = world.app.opened.vault.walk_files
    world.app.opened.vault.walk_files = lambda *given: listed.append(given) or everything(*given)
    request.addfinalizer(lambda: setattr(world.app.opened.vault, "walk_files", everything))
    marked(world)
    assert len(listed) <= 3, "not one for each"
    now = files(world)
    assert now["Overview.md"].decode() == links.replace("Captures/default", "Notes") + "\n"
    for number in range(many):
        one, two, three = ((number + ahead) % many for ahead in (1, 2, 3))
        body = split(now[f"Notes/N{number}.md"].decode())[1]
        # A capture that is still in the inbox is told no folder of the vault: its link names the note alone.
        link = f"[[N{one}]]" if one < number else f"[[Notes/N{one}]]"
        assert body == f"{link} [[N{two}]] [x](N{three}.md)\n"
    told = world.git("log", f"-{many}", "--format=%s").splitlines()
    assert sorted(told) == [f"Promote N{number}" for number in range(many)]
    assert world.git("status", "--porcelain") == ""
    consistent(world, tmp_path)
    for number in reversed(range(many)):
        promotions(world).unpromote(f"n{number}")
    now = files(world)
    assert now.keys() == before.keys()
    assert now["Overview.md"] == before["Overview.md"]
    consistent(world, tmp_path)


def mark_many(world, many, *, later=False):
    """Commit captures that are marked for promotion and linked from nowhere, N0, N1 and so on; `later`: and edit them."""
    for number in range(many):
        world.write(f"Captures/default/N{number}.md", f"---\nid: n{number}\npromote: true\n---\nAlone {number}\n")
    world.git("add", "-A")
    world.git("commit", "-qm", "many")
    for number in range(many if later else 0):
        file = world.vault / f"Captures/default/N{number}.md"
        file.write_text(f"{file.read_text()}More\n")
        os.utime(file, (time.time() + 5,) * 2)
    world.run()


@pytest.fixture
def one_series(monkeypatch):
    """However long the promotions take, they are one series."""
    monkeypatch.setattr("syncd.promotion.promotions.KNOWN_S", float("inf"))


@pytest.mark.usefixtures("one_series")
@pytest.mark.parametrize("later", [False, True])
def test_many_promotions_move_head_once_and_start_few_git_processes(world, begun, later):
    many = 10
    mark_many(world, many, later=later)
    head, moves = world.git("rev-parse", "HEAD").strip(), len(world.git("reflog").splitlines())
    begun.clear()
    marked(world)
    assert len(begun) <= 20, "few more than for one"
    assert len(world.git("reflog").splitlines()) == moves + 1
    told = world.git("log", "--reverse", "--format=%s", "--name-only", f"{head}..").split("\n\n")
    assert len(world.git("rev-list", f"{head}..").split()) == many
    for number in range(many):
        assert f"Promote N{number}" in "\n".join(told)
        changed = world.git(
            "log", "--format=", "--name-only", "--no-renames", f"--grep=Capture-Id: n{number}$", f"{head}.."
        )
        assert sorted(changed.split()) == [f"Captures/default/N{number}.md", f"Notes/N{number}.md"]
    assert world.git("status", "--porcelain") == ""


def test_each_of_many_commits_has_the_links_of_its_own_promotion(world):
    for number in range(3):
        world.write(f"Captures/default/N{number}.md", f"---\nid: n{number}\npromote: true\n---\nAlone {number}\n")
    links = [f"[[Captures/default/N{number}]]" for number in range(3)]
    world.write("Overview.md", "\n".join(links))
    world.git("add", "-A")
    world.git("commit", "-qm", "many")
    world.run()
    marked(world)
    for number in range(3):
        made = world.git("log", "--format=%H", f"--grep=Capture-Id: n{number}$").strip()
        links[number] = f"[[Notes/N{number}]]"
        assert world.git("show", f"{made}:Overview.md") == "\n".join(links)
    assert world.git("status", "--porcelain") == ""


def test_many_promotions_whose_process_dies_before_their_commits_get_one_each_at_the_next_start(world, monkeypatch):
    mark_many(world, 3)

    def die(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(world.app.services.commits, "commit_series", die)
        with pytest.raises(KeyboardInterrupt):
            marked(world)
    assert world.git("log", "-1", "--format=%s").strip() == "many"
    world.reopen()
    world.run()
    world.app.opened.sync.ready.set()
    marked(world)
    told = world.git("log", "-3", "--format=%s").splitlines()
    assert sorted(told) == ["Promote N0", "Promote N1", "Promote N2"]
    assert [(world.vault / f"Notes/N{number}.md").exists() for number in range(3)] == [True] * 3
    assert world.git("status", "--porcelain") == ""


@pytest.mark.slow
def test_no_large_file_is_ever_whole_in_memory(world):
    size, own, find_capture = 6_000_000, promotions(world), world.app.services.snapshot.find_capture
    for name in ("a", "b"):
        file = f"Captures/default/Files/{name}.bin"
        world.write(file, b"\0" * size)
        world.write(f"{file}.md", f'---\nid: {name}\ntype: file\nfile: "[[{file}]]"\n---\nText {name}\n')
    world.git("add", "-A")
    world.git("commit", "-qm", "files")
    world.run()
    tracemalloc.start()
    try:
        own.journal.begin(own.make_move_plan(own.make_plan(find_capture("a"))), by="Ann", at=now_ms())  # a crash
        assert len(own.finish_pending(at_once=True)) == 1
        world.run()
        assert own.unpromote("a")["commit"]
        done = own.carry_out([own.make_plan(find_capture(name)) for name in ("a", "b")])
        assert all(outcome["commit"] for outcome in done)
        assert tracemalloc.get_traced_memory()[1] < size
    finally:
        tracemalloc.stop()
    for name in ("a", "b"):
        assert world.git("cat-file", "-s", f"HEAD:Notes/{name}.bin").strip() == str(size)
    assert world.git("status", "--porcelain") == ""


@pytest.mark.parametrize("attributes", ["working-tree-encoding=UTF-16", "filter=broken"])
def test_what_git_refuses_of_one_of_many_holds_up_only_its_commit_and_is_reported(world, attributes):
    mark_many(world, 5)
    world.git("config", "filter.broken.clean", "/bin/false")
    world.git("config", "filter.broken.required", "true")
    world.write(".gitattributes", f"Notes/N1.md {attributes}\n")
    world.run()
    own, commits = promotions(world), world.app.services.commits
    marked(world)
    assert {f"Promote N{number}" for number in (0, 2, 3, 4)} <= set(world.git("log", "--format=%s").splitlines())
    assert "can't commit its changes now" in commits.problem
    for number in (5, 6):
        world.write(f"Captures/default/N{number}.md", f"---\nid: n{number}\npromote: true\n---\nAlone {number}\n")
    world.run()
    own._unfinished._not_before = float("-inf")  # as if it were half a minute later
    marked(world)
    assert {"Promote N5", "Promote N6"} <= set(world.git("log", "--format=%s").splitlines())
    assert own.facts()["uncommitted"] == 1
    (world.vault / ".gitattributes").unlink()
    own._unfinished._not_before = float("-inf")
    own.finish_pending()
    assert world.git("log", "-1", "--format=%s").strip() == "Promote N1"
    assert (own.facts()["uncommitted"], commits.problem) == (0, "")


def test_a_filter_that_fails_on_one_of_many_holds_up_only_its_commit(world):
    for number in range(3):
        world.write(f"Captures/default/N{number}.md", f"---\nid: n{number}\npromote: true\n---\nAlone {number}\n")
    world.git("add", "-A")
    world.git("commit", "-qm", "many")
    world.git("config", "filter.broken.clean", "/bin/false")
    world.git("config", "filter.broken.required", "true")
    world.write(".gitattributes", "Notes/N1.md filter=broken\n")
    world.run()
    own = promotions(world)
    marked(world)
    assert (world.vault / "Notes/N1.md").exists()
    assert sorted(world.git("log", "-2", "--format=%s").splitlines()) == ["Promote N0", "Promote N2"]
    assert own.facts()["uncommitted"] == 1
    world.git("config", "filter.broken.clean", "cat")
    own._unfinished._not_before = float("-inf")  # as if it were half a minute later
    own.finish_pending()
    assert world.git("log", "-1", "--format=%s").strip() == "Promote N1"
    assert own.facts()["uncommitted"] == 0


def test_a_commit_that_git_does_not_allow_is_made_up_for(world):
    world.git("checkout", "-q", "--detach")
    own = promotions(world)
    assert promote(world, "c1")["commit"] == ""
    assert own.facts()["uncommitted"] == 1
    world.git("checkout", "-q", "-")
    own._unfinished._not_before = float("-inf")  # as if it were half a minute later
    own.finish_pending()
    assert "Capture-Id: c1" in world.git("log", "-1", "--format=%B")
    assert world.git("status", "--porcelain") == ""
    assert own.facts()["uncommitted"] == 0


def test_what_is_committed_meanwhile_leaves_a_promotion_its_own_commit(world, monkeypatch):
    monkeypatch.setattr("syncd.commits.committer.PATIENCE_S", 0.0)
    own, lock = promotions(world), world.vault / ".git/index.lock"
    world.app.agent_access.workspace("default").capture("another thing")
    lock.touch()
    assert promote(world, "c1")["commit"] == ""
    lock.unlink()
    commits = world.app.services.commits
    planned = world.app.operations["commit"]({"dry_run": True}, lambda _: None)["commits"]
    assert [(one["commit"], one["subject"]) for one in planned] == [
        ("", "Memex: 1 note added"),
        ("", "Promote Heron"),
    ]
    assert {"Notes/Heron.md", "Captures/default/Heron.md"} <= set(planned[1]["paths"])
    assert own.facts()["uncommitted"] == 1
    assert [made.subject for made in commits.commit_pending()] == ["Memex: 1 note added"]
    assert world.git("status", "--porcelain") != ""
    told = world.app.operations["commit"]({}, lambda _: None)["commits"]
    assert [one["subject"] for one in told] == ["Promote Heron"]
    assert {"Notes/Heron.md", "Captures/default/Heron.md"} <= set(told[0]["paths"])
    said = world.git("log", "-1", "--format=%B")
    assert "Approved-By: Ann <ann@example.org>" in said
    assert "Memex-Tool: promote" in said
    assert world.git("status", "--porcelain") == ""
    assert commits.commit_pending() == []
    assert own.facts()["uncommitted"] == 0


def test_a_promotion_that_was_undone_by_hand_holds_no_commit_up(world):
    world.git("checkout", "-q", "--detach")
    own, before = promotions(world), files(world)
    promote(world, "c1")
    world.git("stash", "-uq")
    world.git("checkout", "-q", "-")
    assert files(world) == before
    assert world.app.operations["commit"]({"dry_run": True}, lambda _: None)["commits"] == []
    world.app.operations["commit"]({}, lambda _: None)
    assert own.facts()["uncommitted"] == 0


def test_what_a_person_commits_while_a_promotion_is_committed_stays_as_they_wrote_it(world, monkeypatch):
    move_head, tries = CommitBuilder.move_head, []

    def after_a_person(builder):
        tries.append(builder.base)
        if len(tries) == 1:
            note = world.vault / "Birds/Heron.md"
            note.write_text(note.read_text("utf-8") + "Mine.\n", "utf-8")
            world.git("add", "-A")
            world.git("commit", "-qm", "mine")
        move_head(builder)

    monkeypatch.setattr(CommitBuilder, "move_head", after_a_person)
    assert promote(world, "c1", to="Birds")["id"] == "c1"
    assert len(tries) == 2
    assert "Mine.\n" in world.git("show", "HEAD:Birds/Heron.md")
    assert world.git("status", "--porcelain") == ""


@pytest.mark.usefixtures("one_series")
def test_what_a_person_commits_while_many_promotions_are_committed_stays_as_they_wrote_it(world, monkeypatch):
    mark_many(world, 3)
    move_head, tries = CommitBuilder.move_head, []

    def after_a_person(builder):
        tries.append(builder.base)
        if len(tries) == 1:
            for number in (0, 2):
                note = world.vault / f"Notes/N{number}.md"
                note.write_text(note.read_text("utf-8") + "Mine.\n", "utf-8")
                world.git("add", str(note))
            world.git("commit", "-qm", "mine")
        move_head(builder)

    monkeypatch.setattr(CommitBuilder, "move_head", after_a_person)
    marked(world)
    assert len(tries) == 2
    assert [("Mine.\n" in world.git("show", f"HEAD:Notes/N{number}.md")) for number in range(3)] == [True, False, True]
    assert world.git("log", "-p", "--format=").count("-Mine.") == 0
    assert world.git("status", "--porcelain") == ""
