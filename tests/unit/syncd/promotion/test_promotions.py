"""Promotion and its way back, on real files, real Git and a real index."""

from __future__ import annotations

import os
import subprocess

import pytest

from index.errors import Conflict, NotFound
from syncd.documents.owner_marks import marks
from syncd.notes.checkboxes import answers
from syncd.notes.front_matter import properties, split
from syncd.promotion import marked_captures as marked_job
from syncd.promotion.plan import Taken
from syncd.promotion.promoted_note import Problem, Rule
from syncd.promotion.promotions import Promotions
from syncd.settings.automation import PromoteSettings
from tests.support.world import World, promote

CAPTURE = (
    "---\nid: c1\ncreated_at: 2026-11-20T14:32:05.120Z\nsource: claude-code\ncollection: documents\ntags: [herons]\n"
    "{marks}---\nThe heron stands in the reeds, see [[Pond]] and ![[Pond#Depth|deep]].\n"
)


def capture(marks=""):
    return CAPTURE.format(marks=marks)


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.git("init", "-q")
    world.git("config", "user.name", "Ann")
    world.git("config", "user.email", "ann@example.org")
    world.write("Areas/Pond.md", "---\nid: pond\n---\n# Depth\n\nshallow, [heron](../Captures/default/Heron.md#x)\n")
    world.write("Daily/Today.md", "Saw [[Captures/default/Heron|one]] and [[Heron]].\n")
    world.write("Captures/default/Heron.md", capture())
    world.git("add", "-A")
    world.git("commit", "-qm", "before")
    world.run()
    world.app.sync.ready.set()
    yield world
    world.close()


def promotions(world):
    return world.app.services.promotions


def files(world):
    found = (file for file in world.vault.rglob("*") if file.is_file() and ".git" not in file.parts)
    return {str(file.relative_to(world.vault)): file.read_bytes() for file in found}


def consistent(world, tmp_path):
    assert world.app.sync.run(accept=True).changes == 0, "nothing was left to index"
    assert world.dump() == world.rebuilt(tmp_path / "other")


def test_a_capture_becomes_a_note_with_all_its_links(world, tmp_path):
    before = files(world)
    done = promote(world, "c1", to="Birds")
    assert done["target"] == "Birds/Heron.md"
    now = files(world)
    assert now.keys() == before.keys() - {"Captures/default/Heron.md"} | {"Birds/Heron.md"}
    text = now["Birds/Heron.md"].decode()
    assert split(text)[1] == split(capture())[1]
    said = properties(split(text)[0])
    assert list(said) == ["id", "created_at", "source", "tags", "promoted_at"]
    assert now["Areas/Pond.md"].decode().endswith("[heron](../Birds/Heron.md#x)\n")
    assert now["Daily/Today.md"] == b"Saw [[Birds/Heron|one]] and [[Heron]].\n"
    assert sorted(done["relinked"]) == ["Areas/Pond.md", "Daily/Today.md"]
    assert world.found("heron reeds")[0] == "Birds/Heron.md"
    with pytest.raises(NotFound):
        world.app.agent_access.workspace("default").get("c1")
    consistent(world, tmp_path)


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
    assert properties(split(back)[0]) == properties(split(capture())[0])
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


def test_nothing_at_the_destination_is_overwritten(world):
    world.write("Birds/heron.md", "mine\n")  # not even indexed, and spelled otherwise
    with pytest.raises(Taken, match=r"Birds/heron\.md"):
        promote(world, "c1", to="birds")
    assert (world.vault / "Birds/heron.md").read_text() == "mine\n"
    assert (world.vault / "Captures/default/Heron.md").read_text() == capture()


def test_the_command_says_what_can_be_done_where_the_name_is_taken(world):
    world.write("Birds/Heron.md", "mine\n")
    (failed,) = world.app.operations["promote"]({"ids": ["c1"], "to": "Birds"}, lambda _: None)["failed"]
    assert failed["error"]["code"] == "CONFLICT"
    assert "--to" in failed["error"]["message"]
    assert "promote: true" in failed["error"]["message"]


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
    "Captures/default/Entities/4.md": ("---\nid: x4\ntype: entity\n---\n", "node"),
    "Captures/default/5.md": ("---\nid: x5\n---\nghp_a8Fk29dKq0Zx7Vb3Nm5Lp1Rt6Ys4Wc2Eh9Uj\n", "secret"),
    "Captures/default/6.md": ("---\n{id: x6, promote: true}\n---\nx\n", "line by line"),
    "Captures/default/7.md": ("---\nid: x7\npromote_to: ../out\n---\nx\n", "one name between slashes"),
    "Captures/default/8.md": ("---\nid: x8\npromote_to: Captures/work\n---\nx\n", "inbox"),
    "Captures/default/9.md": ("---\nid: x9\npromote_to: Areas/Pond.md\n---\nx\n", "name of a note"),
    "Captures/default/10.md": ("---\nid: x10\npromote_to: Link\n---\nx\n", "link or a file"),
    "Captures/default/12.md": ("---\nid: x12\npromote_to: [[Areas]]\n---\nx\n", "no folder"),
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


def test_rules_and_names_are_the_owners(tmp_path):
    own = PromoteSettings(folder="Inbox/Sorted", name="{date} {title}", rules=(Rule("Birds", tag="herons"),))
    world = World(tmp_path, promote=own)
    world.write("Captures/default/Heron.md", capture())
    world.write("Captures/default/Other.md", capture().replace("c1", "c2").replace("herons", "ducks"))
    world.run()
    assert promote(world, "c1")["target"] == "Birds/2026-11-20 Heron.md"
    assert promote(world, "c2")["target"] == "Inbox/Sorted/2026-11-20 Other.md"
    world.close()


# Marks


def marked(world):
    world.app.services.marked.run()


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


def test_a_problem_is_told_in_the_capture_once_and_goes_when_it_is_solved(world):
    file = world.write("Captures/default/Heron.md", capture("promote: true\npromote_to: ../out\n"))
    world.run()
    marked(world)
    text = file.read_text()
    assert "one name between slashes" in (marks(text).promote_problem or "")
    assert text.replace(next(line for line in text.splitlines(True) if "promote_problem" in line), "") == capture(
        "promote: true\npromote_to: ../out\n"
    )
    facts = world.app.services.marked.facts()
    assert [one["path"] for one in facts["problems"]] == ["Captures/default/Heron.md"]
    seq = world.app.audit.head.seq
    world.run()
    marked(world)
    marked(world)
    assert world.app.audit.head.seq == seq, "told once"
    file.write_text(file.read_text().replace("../out", "Birds"))
    world.run()
    marked(world)
    assert "promote_problem" not in (world.vault / "Birds/Heron.md").read_text()
    assert world.app.services.marked.facts()["problems"] == []


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
    assert told in (marks(file.read_text()).promote_problem or "")
    assert [told in one["problem"] for one in world.app.services.marked.facts()["problems"]] == [True]
    file.write_text(file.read_text().replace(front, "promote: true\n"))
    world.run()
    marked(world)
    assert "promote_problem" not in (world.vault / "Notes/Heron.md").read_text()


def test_a_mark_that_is_there_twice_is_told_although_nothing_can_be_written(world):
    file = world.write("Captures/default/Heron.md", capture("promote: true\npromote: false\n"))
    world.run()
    marked(world)
    assert file.read_text() == capture("promote: true\npromote: false\n")
    assert "twice" in world.app.services.marked.facts()["problems"][0]["problem"]


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
    world.app.sync.ready.set()
    odd = "---\nid: odd\ncreated_at: 9999-12-31T23:59:59-14:00\npromote: true\n---\nwords\n"
    world.write("Captures/default/Early.md", odd)
    world.write("Captures/default/Heron.md", capture("promote: true\n"))
    world.run()
    world.app.services.marked.run()
    assert not (world.vault / "Captures/default/Heron.md").exists()
    assert not (world.vault / "Captures/default/Early.md").exists()
    world.close()


@pytest.mark.parametrize("where", ["planned", "_gone"])
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
    assert "a mistake of Memex" in (world.vault / "Captures/default/Early.md").read_text()
    assert [one["path"] for one in world.app.services.marked.facts()["problems"]] == ["Captures/default/Early.md"]
    assert "a defect" in caplog.text


def test_a_problem_goes_with_the_mark(world):
    file = world.write("Captures/default/Heron.md", capture("promote: true\npromote_to: .x\n"))
    world.run()
    marked(world)
    file.write_text(file.read_text().replace("promote: true", "promote: false"))
    world.run()
    marked(world)
    assert file.read_text() == capture("promote: false\npromote_to: .x\n")


def asked(world):
    (note,) = (world.vault / "Captures/Reports").glob("Merge *.md")
    return note


def taken(world, text="An old note, ```` and all.\r\n"):
    world.write("Notes/Heron.md", text)
    world.write("Captures/default/Heron.md", capture("promote: true\n"))
    world.run()
    marked(world)
    world.run()


def tick(world, choice):
    note = asked(world)
    lines = [line for line in note.read_text().splitlines() if line.startswith("- [ ]")]
    (line,) = [line for line in lines if choice in line]
    note.write_text(note.read_text().replace(line, line.replace("[ ]", "[x]")))
    proposals = world.app.services.proposals
    assert len(proposals.answered(answers([note.read_text()]))) == 1
    (done,) = proposals.carry().values()
    return done


def test_a_taken_destination_is_asked_about_in_a_note(world):
    before = files(world)
    taken(world)
    text = asked(world).read_text()
    assert text.count("- [ ]") == 3
    assert "`````diff" in text
    assert "-An old note, ```` and all." in text
    assert files(world)["Notes/Heron.md"] == b"An old note, ```` and all.\r\n"
    problem = marks((world.vault / "Captures/default/Heron.md").read_text()).promote_problem
    assert problem == "Notes/Heron.md is there already, and is not overwritten; see [[Merge Heron]]"
    (told,) = world.app.services.marked.facts()["problems"]
    assert told["problem"] == problem
    marked(world)
    world.run()
    marked(world)
    assert asked(world).read_text() == text, "asked once"
    assert before.keys() < files(world).keys()


def test_a_capture_that_was_just_written_is_not_asked_about_again(world, monkeypatch):
    taken(world)
    text = asked(world).read_text()
    monkeypatch.setattr(
        marked_job, "restless", lambda *_: True
    )  # what is wrong with it was written into it a moment ago
    marked(world)
    monkeypatch.undo()
    world.run()
    marked(world)
    assert asked(world).read_text() == text, "asked once"
    assert tick(world, "Append").done


def test_ticking_another_name_promotes_under_it(world, tmp_path):
    taken(world)
    done = tick(world, "Promote the capture as")
    assert (done.done, done.said) == (True, "promoted as Notes/Heron 2.md")
    assert (world.vault / "Notes/Heron 2.md").exists()
    assert not (world.vault / "Captures/default/Heron.md").exists()
    assert (
        world.vault / "Daily/Today.md"
    ).read_text() == "Saw [[Notes/Heron 2|one]] and [[Heron]].\n"  # which led to the other
    consistent(world, tmp_path)


@pytest.mark.parametrize("choice", ["Promote the capture as", "Append", "Leave"])
def test_an_answer_settles_the_other_boxes_of_the_note(world, choice):
    taken(world)
    assert "is to be promoted" not in asked(world).read_text(), "which would not be so for long"
    note = asked(world)
    note.write_text(note.read_text().replace(f"- [ ] {choice}", f"- [x] {choice}"))
    os.utime(note, (1, 1))
    services = world.app.services
    (done,) = services.consolidation.tick().values()
    assert done.done
    lines = [line for line in note.read_text().splitlines() if line.startswith("- [")]
    assert sorted(line[:5] for line in lines) == ["- [-]", "- [-]", "- [x]"]
    assert sum("another answer was carried out ❌" in line for line in lines) == 2
    assert "^p-" not in note.read_text()
    assert (services.proposals.counts()["open"], services.proposals.counts()["stale"]) == (0, 2)


def test_ticking_append_puts_the_text_behind_the_note_that_is_there(world, tmp_path):
    taken(world)
    assert tick(world, "Append").done
    raw = (world.vault / "Notes/Heron.md").read_bytes()
    assert raw == b"An old note, ```` and all.\r\n\r\n" + split(capture())[1].encode()
    assert not (world.vault / "Captures/default/Heron.md").exists()
    assert (world.vault / "Daily/Today.md").read_text() == "Saw [[Notes/Heron|one]] and [[Heron]].\n"
    consistent(world, tmp_path)


@pytest.mark.parametrize("text", ["```\ncode", "<!-- aside", "%%\naside"])
def test_nothing_is_appended_where_it_would_be_code_or_a_comment(world, text):
    taken(world, text)
    done = tick(world, "Append")
    assert not done.done
    assert "not closed" in done.said
    assert (world.vault / "Notes/Heron.md").read_text() == text
    assert (world.vault / "Captures/default/Heron.md").exists()


@pytest.mark.parametrize("last", ["remove", "note"])
def test_appending_that_a_crash_broke_off_is_ended_and_told_as_done(world, monkeypatch, last):
    taken(world)
    promotions, proposals = world.app.services.promotions, world.app.services.proposals

    class Killed(BaseException):
        pass

    def die(*_, **__):
        raise Killed

    monkeypatch.setattr(promotions, "_taken_back", lambda *_: None)
    note = asked(world)
    line = next(line for line in note.read_text().splitlines() if "Append" in line)
    note.write_text(note.read_text().replace(line, line.replace("[ ]", "[x]")))
    proposals.answered(answers([note.read_text()]))
    monkeypatch.setattr(
        world.app.vault if last == "remove" else proposals, {"remove": "remove", "note": "_note"}[last], die
    )
    with pytest.raises(Killed):
        proposals.carry()
    monkeypatch.undo()
    world.reopen()
    world.run()
    (done,) = world.app.services.proposals.carry().values()
    assert (done.done, done.said) == (True, "appended to Notes/Heron.md")
    raw = (world.vault / "Notes/Heron.md").read_bytes()
    assert raw == b"An old note, ```` and all.\r\n\r\n" + split(capture())[1].encode()
    assert not (world.vault / "Captures/default/Heron.md").exists()
    assert world.app.services.promotions.facts() == {"torn": [], "begun": 0, "uncommitted": 0}


def test_ticking_leave_takes_the_mark_off(world):
    taken(world)
    assert tick(world, "Leave").done
    assert (world.vault / "Captures/default/Heron.md").read_text() == capture("promote: false\n")


def test_what_was_changed_since_it_was_shown_is_not_merged(world):
    taken(world)
    (world.vault / "Notes/Heron.md").write_text("edited since\n")
    done = tick(world, "Append")
    assert (done.done, done.said) == (False, "Notes/Heron.md was changed since")
    assert (world.vault / "Notes/Heron.md").read_text() == "edited since\n"
    assert (world.vault / "Captures/default/Heron.md").exists()


def test_two_daemons_that_see_the_same_mark_write_the_same_bytes(world, tmp_path):
    world.write("Captures/default/Heron.md", capture("promote: true\n"))
    world.git("add", "-A")
    world.git("commit", "-qm", "ticked on the phone", "--date=2026-11-21T08:00:00Z")
    worlds = []
    for name in ("one", "two"):
        subprocess.run(["git", "clone", "-q", str(world.vault), str(tmp_path / name / "vault")], check=True)
        other = World(tmp_path / name)
        other.run()
        other.app.sync.ready.set()
        other.app.services.marked.run()
        worlds.append(other)
    one, two = map(files, worlds)
    assert one == two
    assert "Notes/Heron.md" in one
    moment = world.git("log", "-1", "--format=%cI").strip()
    assert properties(split(one["Notes/Heron.md"].decode())[0])["promoted_at"][:19] == moment[:19]
    for other in worlds:
        other.close()


def test_a_change_that_comes_in_between_is_never_lost(world):
    """An agent's write, or a person's, that comes after the plan was made: nothing of the promotion has come about then."""
    own = promotions(world)
    plan = own.planned(world.app.services.snapshot.capture("c1"), to="Birds")
    (world.vault / "Captures/default/Heron.md").write_text("a person's own words\n")
    before = files(world)
    (outcome,) = own.carry([plan])
    assert isinstance(outcome, Conflict)
    assert files(world) == before
    with pytest.raises(Conflict):
        own.planned(world.app.services.snapshot.capture("c1"))


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
    everything = world.app.vault.everything
    world.app.vault.everything = lambda *given: listed.append(given) or everything(*given)
    request.addfinalizer(lambda: setattr(world.app.vault, "everything", everything))
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


def test_a_commit_that_git_does_not_allow_is_made_up_for(world):
    world.git("checkout", "-q", "--detach")
    own = promotions(world)
    assert promote(world, "c1")["commit"] == ""
    assert own.facts()["uncommitted"] == 1
    world.git("checkout", "-q", "-")
    own._not_before = float("-inf")  # as if it were half a minute later
    own.tend()
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
        ("", "Capture 1 note (memex)"),
        ("", "Promote Heron"),
    ]
    assert {"Notes/Heron.md", "Captures/default/Heron.md"} <= set(planned[1]["paths"])
    assert own.facts()["uncommitted"] == 1
    assert [made.subject for made in commits.flushed()] == ["Capture 1 note (memex)"]
    assert world.git("status", "--porcelain") != ""
    told = world.app.operations["commit"]({}, lambda _: None)["commits"]
    assert [one["subject"] for one in told] == ["Promote Heron"]
    assert {"Notes/Heron.md", "Captures/default/Heron.md"} <= set(told[0]["paths"])
    said = world.git("log", "-1", "--format=%B")
    assert "Approved-By: Ann <ann@example.org>" in said
    assert "Memex-Tool: promote" in said
    assert world.git("status", "--porcelain") == ""
    assert commits.flushed() == []
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


def test_a_vault_that_is_away_fails_no_job(world):
    world.write("Captures/default/Heron.md", capture("promote: true\n"))
    world.run()
    world.vault.rename(world.vault.with_name("away"))
    marked(world)
    world.vault.with_name("away").rename(world.vault)
    marked(world)
    assert (world.vault / "Notes/Heron.md").exists()


def test_agents_see_that_what_they_related_to_is_gone(world):
    agent_access = world.app.agent_access.workspace("default")
    for name in ("one", "two"):
        agent_access.memos.save(f"memo {name}", memo_id=name)
    agent_access.memo_graph.save("one", "two", "extends")
    assert len(agent_access.memo_graph.list().ties) == 1
    promote(world, "two", to="Secret folder")
    assert agent_access.memo_graph.list().ties == ()
    with pytest.raises(NotFound):
        agent_access.get("two")
    assert "Secret folder" not in (world.vault / agent_access.get("one").record.path).read_text()
    promotions(world).unpromote("two")
    assert agent_access.get("two").content == "memo two"
    assert len(agent_access.memo_graph.list().ties) == 1
