"""Promotion and its way back, on real files, real Git and a real index."""

from __future__ import annotations

import shutil
from contextlib import suppress

import pytest

from index.errors import Conflict, NotFound, Unavailable
from syncd.git.repository import Repository
from syncd.history.change_journal import forget_bytes
from syncd.notes.front_matter import read_properties, split
from syncd.promotion.plan import TakenDestination
from syncd.promotion.promoted_note import Problem, PromotionRule
from syncd.settings.automation import PromoteSettings
from tests.support import agent_writes as writes
from tests.support.promotion_vault import capture, consistent, files, promotions
from tests.support.unreadable_tables import unreadable
from tests.support.world import World, promote

LATER = 1 << 50  # a time after all others


def test_a_capture_becomes_a_note_with_all_its_links(world, tmp_path):
    before = files(world)
    done = promote(world, "c1", to="Birds")
    assert done["target"] == "Birds/Heron.md"
    now = files(world)
    assert now.keys() == before.keys() - {"Captures/default/Heron.md"} | {"Birds/Heron.md"}
    text = now["Birds/Heron.md"].decode()
    assert split(text)[1] == split(capture())[1]
    said = read_properties(split(text)[0])
    assert list(said) == ["id", "created_at", "source", "tags", "promoted_at"]
    assert now["Areas/Pond.md"].decode().endswith("[heron](../Birds/Heron.md#x)\n")
    assert now["Daily/Today.md"] == b"Saw [[Birds/Heron|one]] and [[Heron]].\n"
    assert sorted(done["relinked"]) == ["Areas/Pond.md", "Daily/Today.md"]
    assert world.found("heron reeds")[0] == "Birds/Heron.md"
    with pytest.raises(NotFound):
        world.app.agent_access.workspace("default").get("c1")
    consistent(world, tmp_path)


def test_unpromote_gives_every_byte_back(world, tmp_path):
    before = files(world)
    promote(world, "c1", to="Birds")
    done = promotions(world).unpromote("c1")
    assert done["target"] == "Captures/default/Heron.md"
    assert files(world) == before
    assert world.app.agent_access.workspace("default").get("c1").record.path == "Captures/default/Heron.md"
    assert world.git("status", "--porcelain") == ""
    assert world.git("diff", "HEAD~2", "HEAD", "--stat") == ""
    assert "Memex-Tool: unpromote" in world.git("log", "-1", "--format=%B")
    consistent(world, tmp_path)
    with pytest.raises(NotFound):
        promotions(world).unpromote("c1")
    assert promote(world, "c1")["target"] == "Notes/Heron.md"


@pytest.mark.parametrize("kept", ["in past", "in Git"])
def test_a_promotion_whose_bytes_the_journal_forgot_is_taken_back_with_those_kept_elsewhere(world, kept):
    before = files(world)
    promote(world, "c1", to="Birds")
    forget_bytes(world.app.opened.ledger, before=LATER, most=1 << 30)
    if kept == "in Git":
        world.app.opened.overwritten.prune(LATER)
    promotions(world).unpromote("c1")
    assert files(world) == before


def test_a_promotion_whose_bytes_nobody_has_any_more_stays(world):
    world.write("Captures/default/Later.md", capture().replace("id: c1", "id: c2"))  # never committed
    world.run()
    promote(world, "c2", to="Birds")
    before = files(world)
    forget_bytes(world.app.opened.ledger, before=LATER, most=1 << 30)
    world.app.opened.overwritten.prune(LATER)
    with pytest.raises(NotFound, match=r"Later\.md is no longer kept .* so this can't be undone"):
        promotions(world).unpromote("c2")
    assert files(world) == before


def test_the_job_that_removes_old_versions_removes_those_of_promotions(world):
    promote(world, "c1", to="Birds")
    ledger = world.app.opened.ledger
    world.app.operations["job.run"]({"name": "old versions", "wait": True}, lambda _: None)
    assert ledger.query("SELECT 1 FROM promoted_files WHERE before IS NOT NULL")
    with ledger.transaction():
        ledger.execute("UPDATE promotions SET at = at - ?", (31 * 24 * 3600 * 1000,))
    world.app.operations["job.run"]({"name": "old versions", "wait": True}, lambda _: None)
    assert not ledger.query("SELECT 1 FROM promoted_files WHERE before IS NOT NULL OR after IS NOT NULL")


def test_a_note_with_merge_markers_does_not_return(world):
    promote(world, "c1", to="Birds")
    note = world.vault / "Birds/Heron.md"
    note.write_text(f"{note.read_text()}<<<<<<< HEAD\nhere\n=======\nthere\n>>>>>>> other\n")
    world.run()
    before = files(world)
    with pytest.raises(Problem, match="it contains merge markers"):
        promotions(world).unpromote("c1")
    assert files(world) == before
    note.write_text(note.read_text().partition("<<<<<<<")[0])
    assert promotions(world).unpromote("c1")["target"] == "Captures/default/Heron.md"


def test_taken_suggestions_are_in_the_same_commit_and_go_with_the_way_back(world):
    note = world.vault / "Captures/default/Heron.md"
    suggesting = 'suggested_tags:\n  - wading\nsuggested_links:\n  - "[[Today]]"\n---\n'
    note.write_text(note.read_text().replace("---\n", suggesting, 2).replace(suggesting, "---\n", 1))
    world.run()
    before = files(world)
    own, snapshot = promotions(world), world.app.services.snapshot
    plan = own.make_plan(snapshot.find_capture("c1"), to="Birds", taken=["wading", "[[Today]]"])
    (done,) = own.carry_out([plan])
    text = (world.vault / "Birds/Heron.md").read_text()
    assert "wading" in read_properties(split(text)[0])["tags"]
    assert text.endswith("\n\n[[Today]]\n")
    assert "[[Today]]" in world.git("show", done["commit"])
    own.unpromote("c1")
    assert files(world) == before


@pytest.mark.parametrize("table", ["promotions", "promoted_files"])
def test_an_interrupted_promotion_is_finished_although_the_ledger_could_not_be_read_at_first(world, table):
    service = promotions(world)
    plan = service.make_move_plan(service.make_plan(world.app.services.snapshot.find_capture("c1")))
    service.journal.begin(plan, by="Ann", at=1)  # and then a crash
    world.reopen()
    service = promotions(world)
    with unreadable(world.app.opened.ledger, table), suppress(Unavailable):
        service.finish_pending()
    assert (world.vault / "Captures/default/Heron.md").exists()
    service.finish_pending(at_once=True)
    assert (world.vault / "Notes/Heron.md").exists()
    assert service.facts()["begun"] == 0


def test_without_plans_git_is_not_asked(world, monkeypatch):
    monkeypatch.setattr(Repository, "query", lambda *_: pytest.fail("Git was asked"))
    assert promotions(world).carry_out([]) == []


def test_an_edited_note_comes_back_with_its_edits(world, tmp_path):
    promote(world, "c1", to="Birds")
    note = world.vault / "Birds/Heron.md"
    note.write_text(note.read_text().replace("stands in", "left") + "More, see [[Today]].\n")
    world.write("Late.md", "[[Birds/Heron]]\n")
    (world.vault / "Daily/Today.md").write_text("Saw [[Birds/Heron|one]] again.\n")
    world.run()
    done = promotions(world).unpromote("Birds/Heron.md")
    back = (world.vault / done["target"]).read_text()
    assert back.endswith("The heron left the reeds, see [[Pond]] and ![[Pond#Depth|deep]].\nMore, see [[Today]].\n")
    made = read_properties(split(back)[0])
    assert made == read_properties(split(capture())[0]) | {"updated_at": made["updated_at"], "version": 2}
    assert (world.vault / "Late.md").read_text() == "[[Captures/default/Heron]]\n"
    assert (world.vault / "Daily/Today.md").read_text() == "Saw [[Captures/default/Heron|one]] again.\n"
    consistent(world, tmp_path)


def test_a_note_that_was_moved_since_is_found_by_its_id(world):
    promote(world, "c1", to="Birds")
    (world.vault / "Grey heron.md").write_bytes((world.vault / "Birds/Heron.md").read_bytes())
    (world.vault / "Birds/Heron.md").unlink()
    world.run()
    assert promotions(world).unpromote("c1")["target"] == "Captures/default/Heron.md"
    assert not (world.vault / "Grey heron.md").exists()


def test_of_two_copies_of_a_moved_note_none_returns(world):
    promote(world, "c1", to="Birds")
    raw = (world.vault / "Birds/Heron.md").read_bytes()
    (world.vault / "Birds/Heron.md").unlink()
    for name in ("A.md", "B.md"):
        world.write(name, raw)
    world.run()
    before = files(world)
    with pytest.raises(Problem, match="2 notes have the `id` c1"):
        promotions(world).unpromote("c1")
    assert files(world) == before


def test_a_note_does_not_return_to_a_workspace_that_is_gone(world):
    world.write("Captures/work/Stork.md", capture().replace("id: c1", "id: c2"))
    world.run()
    promote(world, "c2", to="Birds")
    shutil.rmtree(world.vault / "Captures/work")
    world.run()
    before = files(world)
    with pytest.raises(Conflict, match="the workspace 'work' no longer exists"):
        promotions(world).unpromote("c2")
    assert files(world) == before


@pytest.mark.parametrize("id", ["", "id: mine\n"])
def test_another_note_at_the_path_of_a_promoted_one_does_not_enter_the_inbox(world, id):
    promote(world, "c1", to="Birds")
    (world.vault / "Birds/Heron.md").write_text(f"---\n{id}tags: [private]\n---\nMine alone.\n")
    world.run()
    before = files(world)
    with pytest.raises(NotFound, match=r"not at Birds/Heron\.md any more"):
        promotions(world).unpromote("c1")
    assert files(world) == before


def test_a_promoted_note_whose_properties_can_not_be_read_stays_and_says_so(world):
    promote(world, "c1", to="Birds")
    note = world.vault / "Birds/Heron.md"
    note.write_text(note.read_text().replace("tags: [herons]", "tags: [herons"))
    world.run()
    before = files(world)
    with pytest.raises(Problem, match="its properties can't be read: repair them"):
        promotions(world).unpromote("c1")
    assert files(world) == before


def test_nothing_at_the_destination_is_overwritten(world):
    world.write("Birds/heron.md", "mine\n")  # not even indexed, and spelled otherwise
    with pytest.raises(TakenDestination, match=r"Birds/heron\.md"):
        promote(world, "c1", to="birds")
    assert (world.vault / "Birds/heron.md").read_text() == "mine\n"
    assert (world.vault / "Captures/default/Heron.md").read_text() == capture()


def test_the_command_says_what_can_be_done_where_the_name_is_taken(world):
    world.write("Birds/Heron.md", "mine\n")
    (failed,) = world.app.operations["promote"]({"ids": ["c1"], "to": "Birds"}, lambda _: None)["failed"]
    assert failed["error"]["code"] == "CONFLICT"
    assert "--to" in failed["error"]["message"]
    assert "promote: true" in failed["error"]["message"]


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_capture_that_is_named_twice_is_promoted_once_without_a_failure(world, dry_run):
    names = {"ids": ["c1", "Captures/default/Heron.md"], "to": "Birds", "dry_run": dry_run}
    result = world.app.operations["promote"](names, lambda _: None)
    assert result["failed"] == []
    assert [entry["source"] for entry in result["planned" if dry_run else "promoted"]] == ["Captures/default/Heron.md"]


def test_a_capture_that_is_named_twice_is_archived_and_brought_back_once_without_a_failure(world):
    operations = world.app.operations
    result = operations["review.dismiss"]({"ids": ["c1", "Captures/default/Heron.md"]}, lambda _: None)
    assert (len(result["archived"]), result["failed"]) == (1, [])
    result = operations["unarchive"]({"ids": [result["archived"][0]["target"], "c1"]}, lambda _: None)
    assert (len(result["returned"]), result["failed"]) == (1, [])


@pytest.mark.parametrize("names", [["c1", "Birds/Heron.md"], ["Birds/Heron.md", "Heron", "c1"]])
def test_a_promoted_note_that_is_named_twice_returns_once_without_a_failure(world, names):
    promote(world, "c1", to="Birds")
    result = world.app.operations["unpromote"]({"ids": [*names, "nothing"]}, lambda _: None)
    assert [entry["target"] for entry in result["returned"]] == ["Captures/default/Heron.md"]
    assert [entry["id"] for entry in result["failed"]] == ["nothing"]


def test_a_promotion_that_fails_while_others_are_carried_out_is_named_as_the_caller_named_it(world):
    paths = ["Captures/default/First.md", "Captures/default/Second.md"]
    for number, path in enumerate(paths):
        world.write(path, f"---\nid: n{number}\n---\nIts text is number {number}.\n")
    world.run()

    def edit_second(progress):
        if progress["done"] == 1:
            world.write(paths[1], "---\nid: n1\n---\nMine.\n")

    result = world.app.operations["promote"]({"ids": paths, "to": "Birds"}, edit_second)
    assert [entry["source"] for entry in result["promoted"]] == paths[:1]
    assert [entry["id"] for entry in result["failed"]] == paths[1:]


@pytest.mark.parametrize("folder", ["what?", "a|b", "Areas/x#y", "[[z]]"])
def test_a_new_folder_has_a_name_that_links_and_other_systems_can_hold(world, folder):
    with pytest.raises(Problem):
        promote(world, "c1", to=folder)
    if "[" not in folder:
        (world.vault / folder).mkdir(parents=True)
        assert promote(world, "c1", to=folder)["target"] == f"{folder}/Heron.md"


def test_a_name_that_another_note_has_elsewhere_is_not_given_twice(world):
    world.write("Captures/default/Pond 2.md", "---\nid: p2\ntitle: Pond\n---\nanother pond\n")
    world.run()
    assert promote(world, "p2")["target"] == "Notes/Pond 2.md"


REFUSED = {
    "Captures/default/1.md": ("---\nid: c1\n---\nx\n", "same `id`"),
    "Captures/default/2.md": ("---\nid: x2\na: [\n---\nx\n", "can't be read"),
    "Captures/default/3 (conflicted copy 2026-11-20).md": ("---\nid: x3\n---\nx\n", "sync program"),
    "Captures/default/Entities/4.md": ("---\nid: x4\ntype: entity\n---\n", "entity"),
    "Captures/default/5.md": ("---\nid: x5\n---\nghp_a8Fk29dKq0Zx7Vb3Nm5Lp1Rt6Ys4Wc2Eh9Uj\n", "secret"),
    "Captures/default/6.md": ("---\n{id: x6, promote: true}\n---\nx\n", "line by line"),
    "Captures/default/7.md": ("---\nid: x7\npromote_to: ../out\n---\nx\n", "one name between slashes"),
    "Captures/default/8.md": ("---\nid: x8\npromote_to: Captures/work\n---\nx\n", "inbox"),
    "Captures/default/9.md": ("---\nid: x9\npromote_to: Areas/Pond.md\n---\nx\n", "name of a note"),
    "Captures/default/10.md": ("---\nid: x10\npromote_to: Link\n---\nx\n", "link or a file"),
    "Captures/default/12.md": ("---\nid: x12\npromote_to: [[Areas]]\n---\nx\n", "not a folder"),
    "Captures/default/11.md": ("---\nid: x11\npromote_to: Link/in\n---\nx\n", "can't be used"),
}


def test_what_can_not_be_promoted_stays_as_it_is(world, tmp_path):
    (tmp_path / "outside").mkdir()
    (world.vault / "Link").symlink_to(tmp_path / "outside", target_is_directory=True)
    for path, (text, _) in REFUSED.items():
        world.write(path, text)
    world.run()
    before = files(world)
    for path, (_, word) in REFUSED.items():
        with pytest.raises(Problem, match=word):
            promote(world, path)
    assert files(world) == before
    assert not list((tmp_path / "outside").iterdir())


def stored(world):
    world.write("Captures/default/Files/report.pdf", b"%PDF the bytes")
    world.write(
        "Captures/default/Files/report.pdf.md",
        '---\nid: f1\ntype: file\nfile: "[[Captures/default/Files/report.pdf]]"\nfile_sha256: x\n---\nThe text.\n',
    )
    world.write("Refers.md", "![[report.pdf]] and [r](Captures/default/Files/report.pdf) and [[report.pdf.md]]\n")
    world.run()


def test_a_stored_file_goes_along_and_comes_back(world, tmp_path):
    stored(world)
    before = files(world)
    done = promote(world, "f1", to="Papers")
    now = files(world)
    assert done["target"] == "Papers/report.pdf.md"
    assert now["Papers/report.pdf"] == b"%PDF the bytes"
    assert not {"Captures/default/Files/report.pdf", "Captures/default/Files/report.pdf.md"} & now.keys()
    assert b'file: "[[Papers/report.pdf]]"' in now["Papers/report.pdf.md"]
    assert now["Refers.md"] == b"![[report.pdf]] and [r](Papers/report.pdf) and [[report.pdf.md]]\n"
    assert "Papers/report.pdf" in world.git("show", "--name-only", "--format=", "HEAD")
    promotions(world).unpromote("f1")
    assert files(world) == before
    consistent(world, tmp_path)


def test_a_note_returns_without_a_stored_file_that_is_gone(world):
    stored(world)
    before = files(world)
    promote(world, "f1", to="Papers")
    (world.vault / "Papers/report.pdf").unlink()
    promotions(world).unpromote("f1")
    assert files(world).keys() == before.keys() - {"Captures/default/Files/report.pdf"}


def test_a_note_returns_to_its_stored_file_that_is_in_its_old_place_again(world, tmp_path):
    stored(world)
    before = files(world)
    promote(world, "f1", to="Papers")
    (world.vault / "Captures/default/Files").mkdir(exist_ok=True)
    (world.vault / "Papers/report.pdf").rename(world.vault / "Captures/default/Files/report.pdf")
    promotions(world).unpromote("f1")
    assert files(world).keys() == before.keys()
    assert files(world)["Captures/default/Files/report.pdf"] == before["Captures/default/Files/report.pdf"]


def test_a_note_does_not_return_to_a_file_that_is_not_its_own(world):
    stored(world)
    promote(world, "f1", to="Papers")
    world.write("Captures/default/Files/report.pdf", b"%PDF another")
    before = files(world)
    with pytest.raises(Conflict, match=r"Files/report\.pdf is another file now"):
        promotions(world).unpromote("f1")
    assert files(world) == before


def test_a_stored_file_goes_to_the_folder_of_the_settings(tmp_path):
    world = World(tmp_path, promote=PromoteSettings(attachments="Assets"))
    stored(world)
    promote(world, "f1", to="Papers")
    assert {"Papers/report.pdf.md", "Assets/report.pdf"} < files(world).keys()
    world.close()


def test_a_capture_whose_title_followed_its_text_is_called_by_the_new_title(world):
    record = writes.capture(world, "The zebra has stripes.")
    writes.update(world, record.id, "The tax is due in May.")
    assert promote(world, record.id)["target"] == "Notes/The tax is due in May.md"


def test_a_stored_file_that_another_note_needs_stays(world):
    stored(world)
    world.write(
        "Captures/default/Files/again.md",
        '---\nid: f2\ntype: file\nfile: "[[Captures/default/Files/report.pdf]]"\n---\nIts text.\n',
    )
    world.run()
    promote(world, "f1", to="Papers")
    assert (world.vault / "Captures/default/Files/report.pdf").exists()
    assert b"[[Captures/default/Files/report.pdf]]" in (world.vault / "Papers/report.pdf.md").read_bytes()


def test_rules_and_names_are_the_owners(tmp_path):
    own = PromoteSettings(folder="Inbox/Sorted", name="{date} {title}", rules=(PromotionRule("Birds", tag="herons"),))
    world = World(tmp_path, promote=own)
    world.write("Captures/default/Heron.md", capture())
    world.write("Captures/default/Other.md", capture().replace("c1", "c2").replace("herons", "ducks"))
    world.run()
    assert promote(world, "c1")["target"] == "Birds/2026-11-20 Heron.md"
    assert promote(world, "c2")["target"] == "Inbox/Sorted/2026-11-20 Other.md"
    world.close()


def test_a_change_that_comes_in_between_is_never_lost(world):
    """An agent's write, or a person's, that comes after the plan was made: nothing of the promotion has come about then."""
    own = promotions(world)
    plan = own.make_plan(world.app.services.snapshot.find_capture("c1"), to="Birds")
    (world.vault / "Captures/default/Heron.md").write_text("a person's own words\n")
    before = files(world)
    (outcome,) = own.carry_out([plan])
    assert isinstance(outcome, Conflict)
    assert files(world) == before
    with pytest.raises(Conflict):
        own.make_plan(world.app.services.snapshot.find_capture("c1"))


def test_a_link_that_is_written_while_others_are_promoted_is_updated_too(world):
    own, find_capture = promotions(world), world.app.services.snapshot.find_capture
    world.write("Captures/default/Owl.md", capture().replace("c1", "c2"))
    world.run()

    def write_links(done, *_):
        if done == 1:
            world.write("Areas/Trees.md", "See [[Captures/default/Owl]], [owl](../Captures/default/Owl.md).\n")
            world.write("Areas/Pond.md", "See [[Captures/default/Owl]] and [[Heron]].\n")

    own.carry_out([own.make_plan(find_capture(id), to="Birds") for id in ("c1", "c2")], progress=write_links)
    assert files(world)["Areas/Trees.md"].decode() == "See [[Birds/Owl]], [owl](../Birds/Owl.md).\n"
    assert files(world)["Areas/Pond.md"].decode() == "See [[Birds/Owl]] and [[Heron]].\n"


def test_agents_see_that_what_they_related_to_is_gone(world):
    space = world.app.agent_access.workspace("default")
    for name in ("one", "two"):
        space.memos.save(f"memo {name}", memo_id=name)
    space.memo_graph.save("one", "two", "extends")
    assert len(space.memo_graph.list().ties) == 1
    promote(world, "two", to="Secret folder")
    assert space.memo_graph.list().ties == ()
    with pytest.raises(NotFound):
        space.get("two")
    assert "Secret folder" not in (world.vault / space.get("one").record.path).read_text()
    promotions(world).unpromote("two")
    assert space.get("two").content == "memo two"
    assert len(space.memo_graph.list().ties) == 1


def test_a_capture_that_is_unticked_during_a_batch_stays(world):
    """An earlier promotion of the batch has rewritten a link in it, so its plan is renewed."""
    head = "created_at: 2026-01-01T00:00:00.000Z\npromote: true\n---\n"
    world.write("Captures/default/Alpha.md", f"---\nid: a1\n{head}Alpha.\n")
    for name in ("Beta", "Gamma"):
        world.write(f"Captures/default/{name}.md", f"---\nid: {name}\n{head}{name}, see [[Captures/default/Alpha]].\n")
    world.run()
    own, snapshot = promotions(world), world.app.services.snapshot
    plans = [own.make_plan(snapshot.find_capture(id), tool="mark") for id in ("a1", "Beta", "Gamma")]
    beta = world.vault / "Captures/default/Beta.md"

    def untick(done, *_):
        if done == 1:
            beta.write_text(beta.read_text().replace("promote: true", "promote: false") + "Not yet.\n")

    outcomes = own.carry_out(plans, progress=untick)
    assert isinstance(outcomes[1], Conflict)
    assert outcomes[1].retryable, "a capture that is still marked is promoted later"
    assert not isinstance(outcomes[2], Conflict), "an updated link alone is no change by its owner"
    assert beta.read_text().endswith("see [[Alpha]].\nNot yet.\n")
