"""Reports of consolidation on a real vault: written once, kept where a person touched them, and shown in status and on the page."""

from __future__ import annotations

import json
import re
import threading
import time

from index.errors import Unavailable
from syncd.graph.node_request import NewNode
from tests.support.paths import ROOT
from tests.support.sample_captures import DAY
from tests.support.world import World


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
    assert "Archive [[Captures/default/old things|old things]]" in inbox.read(*inbox.reports())


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


def test_a_report_that_can_not_be_written_keeps_no_other_from_its_outcome(inbox, monkeypatch):
    one, two = inbox.capture("one"), inbox.capture("two")
    inbox.say(inbox.finding("archive", one.id))
    (other,) = [inbox.run()["report"]]
    (inbox.world.vault / other).write_text(inbox.read(other) + "\nmy own words\n")
    inbox.say(inbox.finding("archive", one.id), inbox.finding("archive", two.id))
    (first,) = [inbox.run()["report"]]  # the first whose outcomes are written
    assert inbox.reports() == [first, other]
    key = inbox.tick(other, "Archive [[Captures/default/one")
    vault = inbox.app.services.consolidation._snapshot.vault
    replace = vault.replace

    def replace_unless_full(path, data, **named):
        if path == first and "✅".encode() in data:
            raise Unavailable("the disk is full")
        return replace(path, data, **named)

    with monkeypatch.context() as patch:
        patch.setattr(vault, "replace", replace_unless_full)
        assert set(inbox.look()) == {key}
    assert ["✅" in inbox.read(path) for path in (first, other)] == [False, True]
    inbox.look()
    assert "✅" in inbox.read(first), "it is written as soon as that is possible"


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
        assert "Archive [[Captures/default/one|one]]" in told["text"]
    assert inbox.reports() == []
    assert inbox.app.services.proposals.counts()["open"] == 0


def test_what_is_struck_out_is_never_proposed_again(inbox):
    one = inbox.capture("leave me")
    inbox.say(inbox.finding("archive", one.id))
    (path,) = [inbox.run()["report"]]
    inbox.tick(path, "Archive [[", "-")
    mine = inbox.read(path)
    assert inbox.look() == {}
    assert inbox.run()["proposals"] == 0
    assert inbox.read(path) == mine
    assert inbox.app.services.proposals.counts()["dismissed"] == 1


def test_one_report_tells_of_all_workspaces_and_status_says_where_it_lies(inbox):
    one, two = inbox.capture("mine"), inbox.capture("theirs", "work")
    inbox.say(inbox.finding("archive", one.id))
    inbox.say(inbox.finding("archive", two.id), workspace="work")
    (path,) = [inbox.run()["report"]]
    text = inbox.read(path)
    assert "default: Archive [[Captures/default/mine|mine]]" in text
    assert "work: Archive [[Captures/work/theirs|theirs]]" in text
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
        (done,) = world.app.services.consolidation.carry_out_ticked().values()
        assert done.done
        draft = next(stale.draft for stale in report.stale if stale.name == "Note G")
        assert nodes.get("Note G").summary == draft
    finally:
        world.close()


def test_the_report_on_the_page_is_what_is_written(tmp_path):
    world = World(tmp_path)
    try:
        workspace = world.app.agent_access.workspace("default")
        text = "The staging server listens on port 8080, and its logs are kept for 30 days."
        workspace.capture(f"# Staging\n\n{text}", metadata={"tags": ["kubernetes"]})
        workspace.capture("# Pods\n\nA pod holds containers.", metadata={"tags": ["kubernetes"]})
        more = f"# Staging server\n\n{text} Ask Ada for access to the machine."
        workspace.capture(more, metadata={"tags": ["k8s"]})
        written = (world.vault / world.app.operations["consolidate"]({}, lambda _: None)["report"]).read_text()
    finally:
        world.close()
    page = (ROOT / "docs" / "guides" / "consolidation.md").read_text()
    (told,) = (block for block in re.findall(r"```markdown\n(.*?)```", page, re.DOTALL) if "# Consolidation" in block)
    told, written = (re.sub(r"\^p-[0-9a-f]{16}|\d{4}-\d\d-\d\d", "", text) for text in (told, written))
    at = [written.index(f"{line}\n") for line in told.splitlines() if line]
    assert at == sorted(at)
