"""A capture that a person marks is promoted, or its problem is written into it, on real files and a real index."""

from __future__ import annotations

import subprocess

import pytest

from syncd.documents.owner_marks import read_marks
from syncd.notes.front_matter import read_properties, split
from syncd.promotion.plan import make_due_commit
from syncd.promotion.promoted_note import Problem
from syncd.promotion.promotions import Promotions
from syncd.settings.automation import PromoteSettings
from tests.support.promotion_vault import capture, consistent, files, marked, promotions
from tests.support.world import World, promote


def test_a_tick_is_carried_out_once_it_is_quiet(world, tmp_path):
    world.write("Captures/default/Heron.md", capture("promote: true\npromote_to: Birds\n"))
    world.run()
    before = files(world)
    marked(world)
    assert "Birds/Heron.md" in files(world)
    head = world.git("log", "-1", "--format=%B")
    assert "Memex-Tool: mark" in head
    assert "Approved-By: Ann <ann@example.org>" in head
    assert world.git("status", "--porcelain") == ""
    promotions(world).unpromote("c1")
    back = {path: raw.replace(b"promote: true", b"promote: false") for path, raw in before.items()}
    assert files(world) == back
    marked(world)
    assert files(world) == back, "the tick is off"
    consistent(world, tmp_path)


def test_nothing_is_done_while_git_or_somebody_is_at_work(world):
    world.write("Captures/default/Heron.md", capture("promote: true\n"))
    world.run()
    merging = world.vault / ".git/MERGE_HEAD"
    merging.write_text("0" * 40)
    marked(world)
    assert (world.vault / "Captures/default/Heron.md").exists()
    merging.unlink()
    marked(world)
    assert (world.vault / "Notes/Heron.md").exists()


def test_an_edited_capture_is_promoted_after_its_edit_has_got_its_stamp(world):
    world.write("Captures/default/Heron.md", capture("promote: true\n") + "An edit.\n")
    lock = world.write(".git/index.lock", "")
    world.run()
    lock.unlink()
    marked(world)
    assert (world.vault / "Captures/default/Heron.md").exists()
    world.run()
    marked(world)
    assert (world.vault / "Notes/Heron.md").exists()


def test_a_problem_is_told_in_the_capture_once_and_goes_when_it_is_solved(world):
    file = world.write("Captures/default/Heron.md", capture("promote: true\npromote_to: ../out\n"))
    world.run()
    marked(world)
    text = file.read_text()
    assert "one name between slashes" in (read_marks(text).promote_problem or "")
    assert text.replace(next(line for line in text.splitlines(True) if "promote_problem" in line), "") == capture(
        "promote: true\npromote_to: ../out\n"
    )
    facts = world.app.services.marked_captures.facts()
    assert [one["path"] for one in facts["problems"]] == ["Captures/default/Heron.md"]
    seq = world.app.opened.audit.head.seq
    world.run()
    marked(world)
    marked(world)
    assert world.app.opened.audit.head.seq == seq, "told once"
    file.write_text(file.read_text().replace("../out", "Birds"))
    world.run()
    marked(world)
    assert "promote_problem" not in (world.vault / "Birds/Heron.md").read_text()
    assert world.app.services.marked_captures.facts()["problems"] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("front", "told"),
    [
        ("promote: yes\n", "neither true nor false"),
        ("promote: True\n", "neither true nor false"),
        ("promote: true\nPromote: false\n", "two spellings"),
    ],
)
def test_what_a_person_meant_as_a_mark_is_answered(world, front, told):
    file = world.write("Captures/default/Heron.md", capture(front))
    world.run()
    marked(world)
    assert told in (read_marks(file.read_text()).promote_problem or "")
    assert [told in one["problem"] for one in world.app.services.marked_captures.facts()["problems"]] == [True]
    file.write_text(file.read_text().replace(front, "promote: true\n"))
    world.run()
    marked(world)
    assert "promote_problem" not in (world.vault / "Notes/Heron.md").read_text()


def test_a_mark_that_is_there_twice_is_told_although_nothing_can_be_written(world):
    file = world.write("Captures/default/Heron.md", capture("promote: true\npromote: false\n"))
    world.run()
    marked(world)
    assert file.read_text() == capture("promote: true\npromote: false\n")
    assert "twice" in world.app.services.marked_captures.facts()["problems"][0]["problem"]


def test_new_folders_that_differ_in_letter_case_or_unicode_are_one(world):
    for name, folder in {"A": "Über/Ideas", "B": "u\u0308ber/ideas", "C": "ÜBER"}.items():
        text = f"---\nid: {name}1\npromote: true\npromote_to: {folder}\n---\n{name}\n"
        world.write(f"Captures/default/{name}.md", text)
    world.run()
    marked(world)
    made = {path for path in files(world) if path.endswith(("/A.md", "/B.md", "/C.md"))}
    assert made == {"Über/Ideas/A.md", "Über/Ideas/B.md", "Über/C.md"}


def test_a_capture_with_an_impossible_time_keeps_no_other_from_being_promoted(world, tmp_path):
    world.close()
    world = World(tmp_path, promote=PromoteSettings(name="{date} {title}"))
    world.app.opened.sync.ready.set()
    odd = "---\nid: odd\ncreated_at: 9999-12-31T23:59:59-14:00\npromote: true\n---\nwords\n"
    world.write("Captures/default/Early.md", odd)
    world.write("Captures/default/Heron.md", capture("promote: true\n"))
    world.run()
    world.app.services.marked_captures.run()
    assert not (world.vault / "Captures/default/Heron.md").exists()
    assert not (world.vault / "Captures/default/Early.md").exists()
    world.close()


@pytest.mark.parametrize("where", ["make_plan", "_move_files"])
def test_a_mistake_of_ours_in_one_capture_keeps_no_other_from_being_promoted(world, monkeypatch, caplog, where):
    world.write("Captures/default/Early.md", "---\nid: odd\npromote: true\n---\nwords\n")
    world.write("Captures/default/Heron.md", capture("promote: true\n"))
    world.run()
    sound = getattr(Promotions, where)

    def mistaken(self, one, *rest, **more):
        if "Early.md" in str(one):
            raise RuntimeError("a defect")
        return sound(self, one, *rest, **more)

    monkeypatch.setattr(Promotions, where, mistaken)
    marked(world)
    assert (world.vault / "Notes/Heron.md").exists()
    assert "a bug in Memex" in (world.vault / "Captures/default/Early.md").read_text()
    assert [one["path"] for one in world.app.services.marked_captures.facts()["problems"]] == [
        "Captures/default/Early.md"
    ]
    assert "a defect" in caplog.text


@pytest.mark.slow
def test_a_mistake_of_ours_in_one_commit_keeps_no_other_from_being_promoted_and_committed(world, monkeypatch, caplog):
    for number in range(25):  # more than a series
        world.write(f"Captures/default/N{number}.md", f"---\nid: n{number}\npromote: true\n---\nAlone {number}\n")
    world.git("add", "-A")
    world.git("commit", "-qm", "many")
    world.run()

    def mistaken(journal, entry, steps):
        if entry.document_id == "n3":
            raise RuntimeError("a defect")
        return make_due_commit(journal, entry, steps)

    with monkeypatch.context() as patch:
        patch.setattr("syncd.promotion.promotions.make_due_commit", mistaken)
        marked(world)
    assert len(list((world.vault / "Notes").glob("N*.md"))) == 25
    assert world.git("log", "--format=%s").count("Promote N") == 24
    assert "a defect" in caplog.text
    own = promotions(world)
    assert own.facts()["uncommitted"] == 1
    own._unfinished._not_before = float("-inf")  # as if it were half a minute later
    own.finish_pending()
    assert world.git("log", "-1", "--format=%s").strip() == "Promote N3"


def test_a_problem_goes_with_the_mark(world):
    file = world.write("Captures/default/Heron.md", capture("promote: true\npromote_to: .x\n"))
    world.run()
    marked(world)
    file.write_text(file.read_text().replace("promote: true", "promote: false"))
    world.run()
    marked(world)
    assert file.read_text() == capture("promote: false\npromote_to: .x\n")


def test_a_marked_capture_that_can_get_no_id_is_reported(world):
    world.write("Captures/default/Pool.md", "---\n{promote: true}\n---\nA pool.\n")
    world.run()
    marked(world)
    problems = {entry["path"]: entry["problem"] for entry in world.app.services.marked_captures.facts()["problems"]}
    assert "one `{…}` block" in problems.get("Captures/default/Pool.md", "")


def test_an_empty_capture_is_refused_with_its_reason(world):
    world.write("Captures/default/Pool.md", "")
    world.run()
    with pytest.raises(Problem, match="it is empty"):
        promote(world, "Pool")


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", [capture("promote: true\n"), "---\npromote: true\n---\nFrom the phone.\n"], ids=["adopted", "without an id"]
)
def test_two_daemons_that_see_the_same_mark_write_the_same_bytes(world, tmp_path, text):
    world.write("Captures/default/Heron.md", text)
    world.git("add", "-A")
    world.git("commit", "-qm", "ticked on the phone", "--date=2026-11-21T08:00:00Z")
    worlds = []
    for name in ("one", "two"):
        subprocess.run(["git", "clone", "-q", str(world.vault), str(tmp_path / name / "vault")], check=True)
        other = World(tmp_path / name)
        other.run()
        other.run()
        other.app.opened.sync.ready.set()
        other.app.services.marked_captures.run()
        worlds.append(other)
    one, two = map(files, worlds)
    assert one == two
    assert "Notes/Heron.md" in one
    moment = world.git("log", "-1", "--format=%cI").strip()
    assert read_properties(split(one["Notes/Heron.md"].decode())[0])["promoted_at"][:19] == moment[:19]
    for other in worlds:
        other.close()


def test_a_vault_that_is_away_fails_no_job(world):
    world.write("Captures/default/Heron.md", capture("promote: true\n"))
    world.run()
    world.vault.rename(world.vault.with_name("away"))
    marked(world)
    world.vault.with_name("away").rename(world.vault)
    marked(world)
    assert (world.vault / "Notes/Heron.md").exists()
