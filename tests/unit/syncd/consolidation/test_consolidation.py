"""Consolidation on a real vault: reports that are written once, boxes that are carried out once, and nothing that was not ticked."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import threading
import time

import pytest

from index.errors import Unavailable
from syncd.consolidation.proposal_execution import KINDS
from syncd.graph.node_request import NewNode
from syncd.history.change_journal import ChangeJournal, MovePlan, written
from tests.support.paths import ROOT
from tests.support.sample_captures import Inbox
from tests.support.world import World

DAY = time.strftime("%Y-%m-%d")


@pytest.fixture
def inbox(tmp_path):
    made = Inbox(tmp_path)
    yield made
    made.world.close()


def test_without_anything_to_propose_no_report_is_written(inbox):
    inbox.capture("alone")
    told = inbox.run()
    assert (told["proposals"], told["report"]) == (0, None)
    assert inbox.reports() == []


def test_a_second_run_writes_nothing_and_a_new_find_replaces_the_report_of_the_day(inbox):
    first, second, third = (inbox.capture(text) for text in ("hybrid search", "hybrid search!", "old things"))
    inbox.say(inbox.finding("merge-duplicates", first.id, second.id))
    told = inbox.run()
    assert told["report"] == f"Captures/Reports/{DAY} Consolidation.md"
    before = {path: (inbox.read(path), (inbox.world.vault / path).stat().st_mtime_ns) for path in inbox.reports()}
    assert inbox.run()["report"] is None
    inbox.reopen()
    assert inbox.run() | {"report": None} == inbox.run()
    assert {
        path: (inbox.read(path), (inbox.world.vault / path).stat().st_mtime_ns) for path in inbox.reports()
    } == before
    inbox.say(inbox.finding("merge-duplicates", first.id, second.id), inbox.finding("archive", third.id))
    assert inbox.run()["new"] == 1
    assert inbox.reports() == list(before)
    assert "Put [[Captures/default/old things|old things]] into the archive" in inbox.read(*inbox.reports())


def test_a_report_that_a_person_has_touched_stays_and_a_second_one_is_written(inbox):
    first, second = inbox.capture("one"), inbox.capture("two")
    inbox.say(inbox.finding("archive", first.id))
    (path,) = [inbox.run()["report"]]
    (inbox.world.vault / path).write_text(inbox.read(path) + "\nmy own words\n")
    mine = inbox.read(path)
    inbox.say(inbox.finding("archive", first.id), inbox.finding("archive", second.id))
    assert inbox.run()["report"] == f"Captures/Reports/{DAY} Consolidation 2.md"
    assert inbox.read(path) == mine
    assert len(inbox.reports()) == 2
    assert inbox.run()["report"] is None


def test_a_report_that_was_deleted_comes_back_only_when_it_is_asked_for(inbox):
    one = inbox.capture("one")
    inbox.say(inbox.finding("archive", one.id))
    (path,) = [inbox.run()["report"]]
    text = inbox.read(path)
    (inbox.world.vault / path).unlink()
    consolidation = inbox.app.services.consolidation
    assert consolidation.run(threading.Event())["report"] is None, "each night it would be in the way again"
    assert consolidation.facts()["report"] == "", "nobody is sent to what is not there"
    assert inbox.run()["report"] == path
    assert inbox.read(path) == text
    (inbox.world.vault / path).rename(inbox.world.vault / "Captures/Reports/Mine.md")
    assert inbox.run()["report"] is None, "it is asked there"


def test_a_dry_run_and_one_of_a_workspace_write_nothing(inbox):
    one = inbox.capture("one")
    inbox.say(inbox.finding("archive", one.id))
    for given in ({"dry_run": True}, {"workspace": "default"}):
        told = inbox.run(**given)
        assert told["report"] is None
        assert "Put [[Captures/default/one|one]] into the archive" in told["text"]
    assert inbox.reports() == []
    assert inbox.app.services.proposals.counts()["open"] == 0


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
    index = inbox.app.builds.scopes["captures"].index
    assert index.record(copy.id) is None
    assert inbox.look() == {}
    assert inbox.run()["proposals"] == 0, "it is done, and not proposed again"
    last = inbox.app.audit.last(kept.path)
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


def test_what_a_crash_broke_off_is_taken_back_where_a_person_came_in_between(inbox):
    one = inbox.capture("nobody reads this")
    inbox.say(inbox.finding("archive", one.id))
    (path,) = [inbox.run()["report"]]
    key = inbox.tick(path, "into the archive")
    raw, target = inbox.read(one.path).encode(), "Captures/Archive/default/nobody reads this.md"
    steps = [written(target, None, raw), written(one.path, raw, None)]
    about = {"said": "moved", "subject": "Archive it", "ids": [one.id]}
    journal = ChangeJournal(inbox.app.ledger, inbox.app.vault, KINDS)
    journal.begin(MovePlan("archive", key, "", "", steps, about), by="Ada", at=1)
    inbox.app.vault.create(target, raw)
    (inbox.world.vault / one.path).write_bytes(raw + b"and more by hand\n")
    assert "taken back" in inbox.look()[key]
    assert not (inbox.world.vault / target).exists()
    assert inbox.read(one.path).endswith("and more by hand\n")
    assert [entry.state for entry in journal.of(key)] == ["torn"]
    told = inbox.app.operations["status"]({}, lambda _: None)["promotion"]
    assert told["torn"] == [{"path": "", "what": "Archive it", "left": [one.path]}]


def test_what_a_crash_broke_off_is_ended_without_a_tick(inbox):
    one = inbox.capture("nobody reads this")
    raw, target = inbox.read(one.path).encode(), "Captures/Archive/default/nobody reads this.md"
    steps = [written(target, None, raw), written(one.path, raw, None)]
    about = {"said": "moved", "subject": "Archive it", "ids": [one.id]}
    journal = ChangeJournal(inbox.app.ledger, inbox.app.vault, KINDS)
    journal.begin(MovePlan("archive", "k", "", "", steps, about), by="Ada", at=1)
    inbox.reopen()
    inbox.app.services.carrying.tend()
    assert not (inbox.world.vault / one.path).exists()
    assert "Approved-By: Ada" in inbox.world.git("log", "-1", "--format=%B")


def test_a_proposal_keeps_its_own_commit_when_git_does_not_allow_it_at_once(inbox):
    one = inbox.capture("nobody reads this")
    inbox.say(inbox.finding("archive", one.id))
    (path,) = [inbox.run()["report"]]
    inbox.tick(path, "into the archive")
    inbox.world.git("checkout", "-q", "--detach")
    assert inbox.look()
    inbox.world.git("checkout", "-q", "main")
    commits = inbox.app.services.commits
    planned = inbox.app.operations["commit"]({"dry_run": True}, lambda _: None)["commits"]
    assert "Archive nobody reads this" in [made["subject"] for made in planned]
    assert one.path not in {path for made in commits.flushed() for path in made.paths}
    told = inbox.app.operations["commit"]({}, lambda _: None)["commits"]
    assert "Archive nobody reads this" in [made["subject"] for made in told]
    said = inbox.world.git("log", "--format=%B")
    assert "Approved-By: Ada <ada@example.org>" in said
    assert inbox.app.services.carrying.facts()["uncommitted"] == 0


def test_a_promotion_under_way_and_a_tick_wait_for_each_other(inbox):
    one = inbox.capture("nobody reads this")
    inbox.say(inbox.finding("archive", one.id))
    (path,) = [inbox.run()["report"]]
    inbox.tick(path, "into the archive")
    with inbox.app.services.promotions.lock:
        ticking = threading.Thread(target=inbox.look)
        ticking.start()
        ticking.join(1)
        assert ticking.is_alive()
        assert (inbox.world.vault / one.path).exists()
    ticking.join(60)
    assert not (inbox.world.vault / one.path).exists()


def test_a_note_that_says_already_what_takes_its_place_is_left_alone(inbox):
    older, newer = inbox.capture("the port is 80"), inbox.capture("the port is 8080")
    inbox.say(inbox.finding("supersede", newer.id, older.id))
    (path,) = [inbox.run()["report"]]
    file = inbox.world.vault / older.path
    file.write_text(file.read_text().replace("\n---\n", '\nsuperseded_by: "[[Mine]]"\n---\n', 1))
    inbox.world.run()
    key = inbox.tick(path, "as superseded by")
    assert "already" in inbox.look()[key]
    assert "[[Mine]]" in file.read_text()


def test_the_older_note_says_which_one_takes_its_place(inbox):
    older, newer = inbox.capture("the port is 80"), inbox.capture("the port is 8080")
    inbox.say(inbox.finding("supersede", newer.id, older.id))
    (path,) = [inbox.run()["report"]]
    inbox.tick(path, "as superseded by")
    before = inbox.read(older.path)
    (said,) = inbox.look().values()
    assert "takes its place" in said
    assert inbox.read(older.path) == before.replace("\n---\n", '\nsuperseded_by: "[[the port is 8080]]"\n---\n', 1)


def test_a_relation_and_a_summary_go_through_the_graph(inbox):
    nodes = inbox.app.agent_access.workspace("default").nodes
    ada, bab = nodes.create([NewNode("Ada", "person", ("wrote",)), NewNode("Bab", "person", ("built",))])
    inbox.say(inbox.finding("relate", ada.id, bab.id))
    (path,) = [inbox.run()["report"]]
    inbox.tick(path, "Relate [[")
    assert list(inbox.look().values()) == ["Ada related_to Bab"]
    assert [(edge.source, edge.type, edge.target) for edge in nodes.between("Ada", "Bab")] == [
        ("Ada", "related_to", "Bab")
    ]
    said = inbox.world.git("log", "-1", "--format=%B")
    assert said.startswith("Relate: Ada related_to Bab")
    assert "Approved-By: Ada <ada@example.org>" in said
    assert "Memex-Tool: consolidation" in said
    assert {f"Capture-Id: {ada.id}", f"Capture-Id: {bab.id}"} <= set(said.splitlines())


def test_one_tag_is_written_in_place_of_another_in_all_captures_of_the_workspace_alone(inbox):
    one = inbox.capture("about #k8s in text, `#k8s` in code", tags=["k8s", "db"])
    two = inbox.capture("two", tags=["K8s", "kubernetes"])
    other = inbox.capture("three", "work", tags=["k8s"])
    inbox.world.write("Mine.md", "my own #k8s\n")
    inbox.world.run()
    inbox.say(inbox.finding("tag-merge", would=("kubernetes", "k8s")))
    (path,) = [inbox.run()["report"]]
    before = inbox.read(other.path)
    inbox.tick(path, "in place of “k8s”")
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
        inbox.finding("supersede", newer.id, older.id),
    )
    (path,) = [inbox.run()["report"]]
    for words in ("in place of “k8s”", "Keep [[", "as superseded by"):
        inbox.tick(path, words)
    said = list(inbox.look().values())
    assert len(said) == 3
    assert not [one for one in said if "changed since" in one]
    assert "superseded_by" in inbox.read(older.path)
    assert "#k8s" not in inbox.read(older.path) + inbox.read(newer.path)


def test_an_unused_capture_goes_to_the_archive_where_no_agent_sees_it(inbox):
    one = inbox.capture("nobody reads this")
    inbox.say(inbox.finding("archive", one.id))
    (path,) = [inbox.run()["report"]]
    inbox.tick(path, "into the archive")
    assert list(inbox.look().values()) == [f"it is at Captures/Archive/default/{one.path.rpartition('/')[2]}"]
    assert inbox.app.builds.scopes["captures"].index.record(one.id) is None
    assert (
        inbox.app.builds.scopes["vault"].index.at(f"Captures/Archive/default/{one.path.rpartition('/')[2]}") is not None
    )


def test_what_is_struck_out_is_never_proposed_again(inbox):
    one = inbox.capture("leave me")
    inbox.say(inbox.finding("archive", one.id))
    (path,) = [inbox.run()["report"]]
    inbox.tick(path, "into the archive", "-")
    mine = inbox.read(path)
    assert inbox.look() == {}
    assert inbox.run()["proposals"] == 0
    assert inbox.read(path) == mine
    assert inbox.app.services.proposals.counts()["dismissed"] == 1


def test_a_tick_that_is_set_while_another_is_carried_out_is_not_missed(inbox):
    one, two = inbox.capture("first"), inbox.capture("second")
    inbox.say(inbox.finding("archive", one.id), inbox.finding("archive", two.id))
    (path,) = [inbox.run()["report"]]
    inbox.tick(path, "first")
    proposals = inbox.app.services.proposals
    carry, proposals.carry = proposals.carry, lambda stopping: (inbox.tick(path, "second"), carry(stopping))[1]
    assert len(inbox.look()) == 1
    proposals.carry = carry
    assert len(inbox.look()) == 1
    assert proposals.counts()["carried"] == 2


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
    inbox.tick(path, "into the archive")
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

    proposals.on("archive", waiting)
    busy.append(True)
    inbox.tick(path, "into the archive")
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
    inbox.tick(path, "into the archive")
    assert len(inbox.look()) == 1


def test_one_report_tells_of_all_workspaces_and_status_says_where_it_lies(inbox):
    one, two = inbox.capture("mine"), inbox.capture("theirs", "work")
    inbox.say(inbox.finding("archive", one.id))
    inbox.say(inbox.finding("archive", two.id), workspace="work")
    (path,) = [inbox.run()["report"]]
    text = inbox.read(path)
    assert "default: Put [[Captures/default/mine|mine]]" in text
    assert "work: Put [[Captures/work/theirs|theirs]]" in text
    facts = inbox.app.health.facts()["consolidation"]
    assert (facts["waiting"], facts["report"], facts["problem"]) == (2, path, "")
    assert abs(facts["at"] - time.time() * 1000) < 60_000
    assert "consolidation" not in json.dumps(inbox.app.health.status(["default"]))


def test_the_numbers_are_those_of_the_tool_and_what_it_drafts_is_what_is_proposed(tmp_path):
    world = World(tmp_path)
    try:
        nodes = world.app.agent_access.workspace("default").nodes
        facts = ("Ada Lovelace wrote the first program for the Analytical Engine.", "It computes Bernoulli numbers.")
        nodes.create(
            [NewNode("Note G", "text", facts), NewNode("Analytical Engine", "machine", ("It was never built.",))]
        )
        nodes.create([NewNode("Ada Lovelace", "person", ("She corresponded with Babbage.",))])
        told = world.app.operations["consolidate"]({}, lambda _: None)
        (counted,) = told["workspaces"]
        report = nodes.report()
        assert counted["stale_summaries"] == report.of["stale_summaries"] == 3
        assert counted["orphaned_nodes"] == report.of["orphaned_nodes"] == 3
        assert counted["relations"] == report.of["relation_candidates"] > 0
        text = (world.vault / told["report"]).read_text()
        for stale in report.stale:
            assert f"Give [[Captures/default/Entities/{stale.name}|{stale.name}]] this summary: “{stale.draft}”" in text
        (world.vault / told["report"]).write_text(
            text.replace(
                "- [ ] Give [[Captures/default/Entities/Note G", "- [x] Give [[Captures/default/Entities/Note G"
            )
        )
        (done,) = world.app.services.consolidation.tick().values()
        assert done.done
        draft = next(stale.draft for stale in report.stale if stale.name == "Note G")
        assert nodes.get("Note G").summary == draft
    finally:
        world.close()


@pytest.mark.parametrize("own", [False, True])
def test_a_duplicate_that_is_brought_back_is_no_longer_superseded_unless_its_owner_says_so(inbox, own):
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
    inbox.app.operations["unarchive"]({"ids": [copy.id]}, lambda _: None)
    text = inbox.read(copy.path)
    assert ("superseded_by" in text) is own
    assert text.replace("review: keep\n", "").replace('superseded_by: "[[Mine]]"\n', "") == before
    assert inbox.record(copy.id).superseded_by == ("Mine" if own else None)


def test_what_two_notes_say_against_each_other_is_found_reported_and_carried_out(tmp_path):
    world = World(tmp_path)
    try:
        workspace = world.app.agent_access.workspace("default")
        older = workspace.capture("The staging server of project Atlas listens on port 8080 since March.").record
        newer = workspace.capture(
            "The staging server of project Atlas listens on port 9090 now, as 8080 was taken."
        ).record
        report = world.vault / world.app.operations["consolidate"]({}, lambda _: None)["report"]
        report.write_text(report.read_text().replace("- [ ] Mark", "- [x] Mark"))
        told = world.app.operations["consolidate"]({}, lambda _: None)
        assert [one["done"] for one in told["carried"]] == [True]
        assert told["new"] == 0
        stem = newer.path.rpartition("/")[2].removesuffix(".md")
        assert f'superseded_by: "[[{stem}]]"' in (world.vault / older.path).read_text()
    finally:
        world.close()


def test_the_report_in_the_readme_is_what_is_written(tmp_path):
    world = World(tmp_path)
    try:
        workspace = world.app.agent_access.workspace("default")
        workspace.capture("# Staging\n\nThe staging server listens on port 8080.", metadata={"tags": ["kubernetes"]})
        workspace.capture("# Pods\n\nA pod holds containers.", metadata={"tags": ["kubernetes"]})
        text = "# Staging has moved\n\nThe staging server listens on port 9090 since March."
        workspace.capture(text, metadata={"tags": ["k8s"]})
        written = (world.vault / world.app.operations["consolidate"]({}, lambda _: None)["report"]).read_text()
    finally:
        world.close()
    readme = (ROOT / "README.md").read_text()
    (told,) = (block for block in re.findall(r"```markdown\n(.*?)```", readme, re.DOTALL) if "# Consolidation" in block)
    told, written = (re.sub(r"\^p-[0-9a-f]{16}|\d{4}-\d\d-\d\d", "", text) for text in (told, written))
    at = [written.index(f"{line}\n") for line in told.splitlines() if line]
    assert at == sorted(at)


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_a_kill_at_any_write_leaves_what_was_ticked_to_be_done_once(tmp_path):
    """The files, the history and the ledger end as they would have without it."""
    made, saved = Inbox(tmp_path / "here"), tmp_path / "saved"
    kept = made.capture("# Search\n\nBoth legs count.\n", tags=["search"])
    copy = made.capture("# Search\n\nBoth legs count.\n\nAnd a third thing.\n", tags=["legs"])
    made.world.write("Notes/Mine.md", f"see [[{copy.path.removesuffix('.md')}#Search]]\n")
    made.world.run()
    made.world.git("add", "-A")
    made.world.git("commit", "-q", "-m", "captures")
    made.say(made.finding("merge-duplicates", kept.id, copy.id), made.finding("tag-merge", would=("search", "legs")))
    (path,) = [made.run()["report"]]
    made.tick(path, "Keep [[")
    made.tick(path, "in place of")
    made.world.close()
    shutil.copytree(tmp_path / "here", saved, symlinks=True)

    def outcome(at):
        folder = tmp_path / "here"
        shutil.rmtree(folder)
        shutil.copytree(saved, folder, symlinks=True)
        command = [sys.executable, "-m", "tests.support.proposal_crash", str(folder), str(at)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode in (0, -9), done.stderr
        world = World(folder)
        try:
            assert world.app.services.consolidation.tick() is not None
            world.app.services.commits.flush()
            assert world.app.services.consolidation.tick() == {}
            vault = world.vault
            files = {
                str(file.relative_to(vault)): file.read_bytes()
                for file in sorted(vault.rglob("*"))
                if file.is_file() and ".git/" not in str(file)
            }
            merges = (
                world.git("log", "--format=%s")
                .splitlines()
                .count("Merge " + copy.path.rpartition("/")[2][:-3] + " into " + kept.path.rpartition("/")[2][:-3])
            )
            return files, world.app.services.proposals.counts(), merges, done
        finally:
            world.close()

    whole, counts, merges, done = outcome(0)
    assert counts["carried"] == 2
    assert merges == 1
    for at in range(1, int(done.stdout), 4):
        files, others, times, killed = outcome(at)
        assert killed.returncode == -9
        assert sorted(name for name in files.keys() | whole.keys() if files.get(name) != whole.get(name)) == [], at
        assert others == counts, at
        assert times <= 1, at
