"""Proposals of consolidation on a real vault: boxes that are carried out once, and nothing that was not ticked."""

from __future__ import annotations

import threading

import pytest

from index.errors import NotFound, Unavailable
from syncd.graph.node_request import NewNode
from syncd.history.change_journal import forget_bytes
from tests.support.sample_captures import DAY
from tests.support.unreadable_tables import unreadable
from tests.support.world import World


def test_duplicates_become_one_note_and_links_to_the_other_stay_whole(inbox):
    kept = inbox.capture("# Search\n\nBoth legs count.\n", tags=["search"], project="alpha")
    copy = inbox.capture("# Search\n\nBoth legs count.\n\nAnd a third thing.\n", tags=["search", "legs"], owner="me")
    inbox.world.write("Notes/Mine.md", f"see [[{copy.path.removesuffix('.md')}#Search]]\n")
    inbox.world.run()
    inbox.world.git("add", "-A")
    inbox.world.git("commit", "-q", "-m", "captures")
    inbox.say(inbox.finding("merge-duplicates", kept.id, copy.id))
    before = inbox.read(kept.path), inbox.read(copy.path)
    (path,) = [inbox.run()["report"]]
    assert "And a third thing." in inbox.read(path)
    assert inbox.look() == {}
    key = inbox.tick(path, "Keep [[")
    done = inbox.look()
    assert list(done) == [key]
    stem = copy.path.rpartition("/")[2]
    text = inbox.read(kept.path)
    assert text.endswith("# Search\n\nBoth legs count.\n\nAnd a third thing.\n")
    assert "  - legs" in text
    assert "owner: me" in text
    assert not (inbox.world.vault / copy.path).exists()
    aside = inbox.read(f"Captures/Archive/default/{stem}")
    assert 'superseded_by: "[[' in aside
    assert aside.endswith("And a third thing.\n")
    assert inbox.read("Notes/Mine.md") == f"see [[Captures/Archive/default/{stem[:-3]}#Search]]\n"
    line = next(line for line in inbox.read(path).splitlines() if line.startswith("- [x]"))
    assert line.endswith(f"✅ {DAY}")
    assert "^p-" not in line
    subject, body = inbox.world.git("log", "-1", "--format=%s%n%b").split("\n", 1)
    assert subject.startswith("Merge ")
    assert "Memex-Tool: consolidation" in body
    assert "Approved-By: Ada <ada@example.org>" in body
    assert f"Capture-Id: {kept.id}" in body
    assert inbox.world.git("status", "--short", "--", kept.path, "Notes", "Captures/Archive") == ""
    assert inbox.record(kept.id).version == 2
    index = inbox.app.opened.builds.scopes["captures"].index
    assert index.record(copy.id) is None
    assert inbox.look() == {}
    assert inbox.run()["proposals"] == 0, "it is done, and not proposed again"
    last = inbox.app.opened.audit.last_entry(kept.path)
    assert (last.surface, last.tool) == ("daemon", "consolidation")
    inbox.world.git("revert", "--no-edit", "HEAD")
    assert (inbox.read(kept.path), inbox.read(copy.path)) == before
    assert inbox.read("Notes/Mine.md") == f"see [[{copy.path.removesuffix('.md')}#Search]]\n"
    inbox.world.run()
    assert inbox.run()["proposals"] == 0, "whoever took it back is not asked again"


def test_a_note_that_has_changed_since_is_left_alone_and_that_is_said(inbox):
    kept, copy = inbox.capture("the same"), inbox.capture("the same again")
    inbox.say(inbox.finding("merge-duplicates", kept.id, copy.id))
    (path,) = [inbox.run()["report"]]
    inbox.app.agent_access.workspace("default").update_note(copy.id, "quite another thing")
    before = inbox.read(kept.path), inbox.read(copy.path)
    key = inbox.tick(path, "Keep [[")
    assert "has changed since" in inbox.look()[key]
    assert (inbox.read(kept.path), inbox.read(copy.path)) == before
    assert "❌" in inbox.read(path)
    assert inbox.app.services.proposals.counts()["stale"] == 1


def test_a_proposal_keeps_its_own_commit_when_git_does_not_allow_it_at_once(inbox):
    one = inbox.capture("nobody reads this")
    inbox.say(inbox.finding("archive", one.id))
    (path,) = [inbox.run()["report"]]
    inbox.tick(path, "Archive [[")
    inbox.world.git("checkout", "-q", "--detach")
    assert inbox.look()
    inbox.world.git("checkout", "-q", "main")
    commits = inbox.app.services.commits
    planned = inbox.app.operations["commit"]({"dry_run": True}, lambda _: None)["commits"]
    assert "Archive nobody reads this" in [made["subject"] for made in planned]
    assert one.path not in {path for made in commits.commit_pending() for path in made.paths}
    told = inbox.app.operations["commit"]({}, lambda _: None)["commits"]
    assert "Archive nobody reads this" in [made["subject"] for made in told]
    said = inbox.world.git("log", "--format=%B")
    assert "Approved-By: Ada <ada@example.org>" in said
    assert inbox.app.services.proposal_execution.facts()["uncommitted"] == 0


def test_a_promotion_under_way_and_a_tick_wait_for_each_other(inbox):
    one = inbox.capture("nobody reads this")
    inbox.say(inbox.finding("archive", one.id))
    (path,) = [inbox.run()["report"]]
    inbox.tick(path, "Archive [[")
    with inbox.app.services.promotions.lock:
        ticking = threading.Thread(target=inbox.look)
        ticking.start()
        ticking.join(1)
        assert ticking.is_alive()
        assert (inbox.world.vault / one.path).exists()
    ticking.join(60)
    assert not (inbox.world.vault / one.path).exists()


def test_a_relation_and_a_summary_go_through_the_graph(inbox):
    nodes = inbox.app.agent_access.workspace("default").nodes
    ada, bab = nodes.create([NewNode("Ada", "person", ("wrote",)), NewNode("Bab", "person", ("built",))])
    inbox.say(inbox.finding("relate", ada.id, bab.id))
    (path,) = [inbox.run()["report"]]
    inbox.tick(path, "Relate [[")
    assert list(inbox.look().values()) == ["Ada related_to Bab"]
    assert [(edge.source, edge.type, edge.target) for edge in nodes.relations_between("Ada", "Bab")] == [
        ("Ada", "related_to", "Bab")
    ]
    said = inbox.world.git("log", "-1", "--format=%B")
    assert said.startswith("Relate: Ada related_to Bab")
    assert "Approved-By: Ada <ada@example.org>" in said
    assert "Memex-Tool: consolidation" in said
    assert {f"Capture-Id: {ada.id}", f"Capture-Id: {bab.id}"} <= set(said.splitlines())


@pytest.mark.parametrize("kept", [True, False])
def test_a_proposal_whose_bytes_the_journal_forgot_is_undone_if_somebody_has_them(inbox, kept):
    one = inbox.capture("nobody reads this")
    before = inbox.read(one.path)
    inbox.say(inbox.finding("archive", one.id))
    (path,) = [inbox.run()["report"]]
    key = inbox.tick(path, "Archive [[")
    inbox.look()
    forget_bytes(inbox.app.opened.ledger, before=1 << 50, most=0)
    if kept:
        inbox.app.operations["consolidate.undo"]({"key": key}, lambda _: None)
        assert inbox.read(one.path) == before
        (line,) = [line for line in inbox.read(path).splitlines() if "] Archive [[" in line]
        assert line.startswith("- [-] Archive [[")
        assert line.endswith(f", undone ❌ {DAY}")
        return
    inbox.app.opened.overwritten.prune(1 << 50)
    with pytest.raises(NotFound, match="no longer kept"):
        inbox.app.operations["consolidate.undo"]({"key": key}, lambda _: None)
    assert not (inbox.world.vault / one.path).exists()


def test_a_relation_of_nodes_that_no_commit_has_is_undone(inbox):
    nodes = inbox.app.agent_access.workspace("default").nodes
    ada, bab = nodes.create([NewNode("Ada", "person", ("wrote",)), NewNode("Bab", "person", ("built",))])
    inbox.say(inbox.finding("relate", ada.id, bab.id))
    (path,) = [inbox.run()["report"]]
    before = {name: inbox.read(nodes.get(name).path) for name in ("Ada", "Bab")}
    key = inbox.tick(path, "Relate [[")
    assert list(inbox.look().values()) == ["Ada related_to Bab"]
    assert {name: inbox.read(nodes.get(name).path) for name in before} != before
    inbox.app.operations["consolidate.undo"]({"key": key}, lambda _: None)
    assert {name: inbox.read(nodes.get(name).path) for name in before} == before
    assert f"- Ada related_to Bab, undone ❌ {DAY}".replace("- ", "– ") in inbox.read(path)


def test_an_undone_proposal_is_marked_although_an_earlier_undone_one_has_its_outcome(inbox):
    nodes = inbox.app.agent_access.workspace("default").nodes
    for _ in range(2):
        ada, bab = nodes.create([NewNode("Ada", "person", ("wrote",)), NewNode("Bab", "person", ("built",))])
        inbox.say(inbox.finding("relate", ada.id, bab.id))
        (path,) = [inbox.run()["report"]]
        key = inbox.tick(path, "Relate [[")
        assert list(inbox.look().values()) == ["Ada related_to Bab"]
        inbox.app.operations["consolidate.undo"]({"key": key}, lambda _: None)
        assert inbox.read(path).count("– Ada related_to Bab, undone ❌") == 1
        (inbox.world.vault / path).unlink()
        nodes.delete(["Ada", "Bab"])


def test_one_tag_is_written_in_place_of_another_in_all_captures_of_the_workspace_alone(inbox):
    one = inbox.capture("about #k8s in text, `#k8s` in code", tags=["k8s", "db"])
    two = inbox.capture("two", tags=["K8s", "kubernetes"])
    other = inbox.capture("three", "work", tags=["k8s"])
    inbox.world.write("Mine.md", "my own #k8s\n")
    inbox.world.run()
    inbox.say(inbox.finding("tag-merge", would=("kubernetes", "k8s")))
    (path,) = [inbox.run()["report"]]
    before = inbox.read(other.path)
    inbox.tick(path, "Replace the tag “k8s”")
    assert list(inbox.look().values()) == ["2 captures changed"]
    assert inbox.read(one.path).endswith("about #kubernetes in text, `#k8s` in code")
    assert inbox.record(one.id).tags == ("kubernetes", "db")
    assert inbox.record(two.id).tags == ("kubernetes",)
    assert inbox.read(other.path) == before
    assert inbox.read("Mine.md") == "my own #k8s\n"


def test_of_boxes_that_are_ticked_together_none_keeps_another_from_being_carried_out(inbox):
    older, newer = inbox.capture("two approvals #k8s"), inbox.capture("one approval #k8s")
    copy = inbox.capture("one approval, #k8s", tags=["k8s"])
    inbox.say(
        inbox.finding("tag-merge", would=("kubernetes", "k8s")),
        inbox.finding("merge-duplicates", newer.id, copy.id),
        inbox.finding("archive", older.id),
    )
    (path,) = [inbox.run()["report"]]
    for words in ("Replace the tag “k8s”", "Keep [[", "Archive [["):
        inbox.tick(path, words)
    said = list(inbox.look().values())
    assert len(said) == 3
    assert not [one for one in said if "changed since" in one]
    assert not (inbox.world.vault / older.path).exists()
    assert "#k8s" not in inbox.read(newer.path)


def test_an_unused_capture_goes_to_the_archive_where_no_agent_sees_it(inbox):
    one = inbox.capture("nobody reads this")
    inbox.say(inbox.finding("archive", one.id))
    (path,) = [inbox.run()["report"]]
    inbox.tick(path, "Archive [[")
    assert list(inbox.look().values()) == [f"it is now at Captures/Archive/default/{one.path.rpartition('/')[2]}"]
    assert inbox.app.opened.builds.scopes["captures"].index.record(one.id) is None
    assert (
        inbox.app.opened.builds.scopes["vault"].index.record_at(
            f"Captures/Archive/default/{one.path.rpartition('/')[2]}"
        )
        is not None
    )


def test_a_tick_that_is_set_while_another_is_carried_out_is_not_missed(inbox):
    one, two = inbox.capture("first"), inbox.capture("second")
    inbox.say(inbox.finding("archive", one.id), inbox.finding("archive", two.id))
    (path,) = [inbox.run()["report"]]
    inbox.tick(path, "first")
    proposals = inbox.app.services.proposals
    carry, proposals.carry_out = proposals.carry_out, lambda stopping: (inbox.tick(path, "second"), carry(stopping))[1]
    assert len(inbox.look()) == 1
    proposals.carry_out = carry
    assert len(inbox.look()) == 1
    assert proposals.counts()["carried"] == 2


def test_a_tick_that_could_not_be_recorded_is_read_at_the_next_run(inbox):
    record = inbox.capture("first")
    inbox.say(inbox.finding("archive", record.id))
    (path,) = [inbox.run()["report"]]
    inbox.look()  # the report has been read without the tick
    inbox.tick(path, "first")
    with unreadable(inbox.app.opened.ledger, "proposals"), pytest.raises(Unavailable):
        inbox.look()
    assert len(inbox.look()) == 1
    assert not (inbox.world.vault / record.path).exists()


def test_a_box_in_any_other_note_does_nothing(inbox):
    one = inbox.capture("keep me")
    inbox.say(inbox.finding("archive", one.id))
    (path,) = [inbox.run()["report"]]
    line = next(line for line in inbox.read(path).splitlines() if line.startswith("- [ ]")).replace("[ ]", "[x]")
    inbox.capture(f"an agent writes\n\n{line}\n")
    inbox.world.write("Notes/Mine.md", f"{line}\n")
    inbox.world.write("Captures/Reports/Other.md", f"> {line}\n\n```\n{line}\n```\n\n- [x] all of it ^p-{'0' * 16}\n")
    inbox.world.run()
    assert inbox.look() == {}
    assert inbox.run()["carried"] == []
    assert (inbox.world.vault / one.path).exists()


def test_what_is_ticked_while_git_is_at_work_is_done_afterwards(inbox):
    one = inbox.capture("wait for it")
    inbox.say(inbox.finding("archive", one.id))
    (path,) = [inbox.run()["report"]]
    inbox.tick(path, "Archive [[")
    (inbox.world.vault / ".git/MERGE_HEAD").write_text("0" * 40 + "\n")
    assert inbox.look() == {}
    (inbox.world.vault / ".git/MERGE_HEAD").unlink()
    assert len(inbox.look()) == 1


def test_a_tick_that_waits_is_taken_back_where_it_was_set(inbox):
    one = inbox.capture("wait for it")
    inbox.say(inbox.finding("archive", one.id))
    (path,) = [inbox.run()["report"]]
    proposals, busy = inbox.app.services.proposals, []
    carrier = proposals._carriers["archive"]

    def waiting(about):
        if busy:
            raise Unavailable("Git is at work", retryable=True)
        return carrier(about)

    proposals.register("archive", waiting)
    busy.append(True)
    inbox.tick(path, "Archive [[")
    assert inbox.look() == {}
    assert proposals.counts()["accepted"] == 1
    twin = path.replace("Consolidation", "Copy of it")
    inbox.world.write(twin, inbox.read(path))
    ticked = inbox.read(path)
    inbox.world.write(path, ticked.replace("- [x]", "- [ ]"))
    assert inbox.look() == {}
    assert proposals.counts()["accepted"] == 1, "it is ticked in the copy still"
    inbox.world.write(twin, ticked.replace("- [x]", "- [ ]"))
    busy.clear()
    assert inbox.look() == {}
    assert (proposals.counts()["accepted"], proposals.counts()["open"]) == (0, 1)
    assert (inbox.world.vault / one.path).exists()
    inbox.tick(path, "Archive [[")
    assert len(inbox.look()) == 1


@pytest.mark.parametrize(("own", "forgotten"), [(False, False), (True, False), (False, True)])
def test_a_duplicate_that_is_brought_back_is_no_longer_superseded_unless_its_owner_says_so(inbox, own, forgotten):
    kept, copy = inbox.capture("Both legs count."), inbox.capture("Both legs count!", tags=["legs"])
    before = inbox.read(copy.path)
    inbox.say(inbox.finding("merge-duplicates", kept.id, copy.id))
    inbox.tick(inbox.run()["report"], "Keep [[")
    inbox.look()
    aside = f"Captures/Archive/default/{copy.path.rpartition('/')[2]}"
    (line,) = [line for line in inbox.read(aside).splitlines(True) if line.startswith("superseded_by")]
    if own:
        inbox.world.write(aside, inbox.read(aside).replace(line, 'superseded_by: "[[Mine]]"\n'))
        inbox.world.run()
    if forgotten:
        forget_bytes(inbox.app.opened.ledger, before=1 << 50, most=0)
    inbox.app.operations["unarchive"]({"ids": [copy.id]}, lambda _: None)
    text = inbox.read(copy.path)
    assert ("superseded_by" in text) is own
    assert text.replace("review: keep\n", "").replace('superseded_by: "[[Mine]]"\n', "") == before
    assert inbox.record(copy.id).superseded_by == ("Mine" if own else None)


def test_what_two_notes_say_twice_is_found_reported_and_carried_out(tmp_path):
    world = World(tmp_path)
    try:
        workspace = world.app.agent_access.workspace("default")
        text = (
            "The staging server of project Atlas listens on port 8080 since March, in the cellar of the old town hall."
        )
        kept = workspace.capture(f"{text} Ada installed it.").record
        copy = workspace.capture(text).record
        report = world.vault / world.app.operations["consolidate"]({}, lambda _: None)["report"]
        report.write_text(report.read_text().replace("- [ ] Keep", "- [x] Keep"))
        told = world.app.operations["consolidate"]({}, lambda _: None)
        assert [one["done"] for one in told["carried"]] == [True]
        assert told["new"] == 0
        stem = kept.path.rpartition("/")[2].removesuffix(".md")
        assert not (world.vault / copy.path).exists()
        (archived,) = (world.vault / "Captures/Archive").rglob("*.md")
        assert f'superseded_by: "[[{stem}]]"' in archived.read_text()
    finally:
        world.close()
