"""Which note its owner means by a path, an id, the beginning of one, or a name."""

from __future__ import annotations

import pytest

from index.errors import InvalidArgument
from index.model import Record
from syncd.cli.main import run_command
from syncd.indexes.note_lookup import Candidate, choose
from tests.support.world import World, answering

ONE, TWO, THREE = (f"{head}-0000-4000-8000-000000000000" for head in ("6f1c1c52", "6f1c9999", "dead0000"))


def note(id, path, made=0, home="default", title=""):
    blank = dict.fromkeys(Record.__dataclass_fields__)
    return Candidate(id, path, made, home, Record(**blank | {"id": id, "path": path, "title": title}))


NOTES = [
    note(ONE, "Captures/default/Heron.md"),
    note(TWO, "Captures/default/Reed.md"),
    note(THREE, "Captures/work/Pond.md", home="work"),
    note("todo", "Captures/work/Todo.md", home="work"),
    note("todo-2", "Captures/work/Other.md", home="work"),
]


@pytest.mark.parametrize(
    ("given", "path"),
    [
        pytest.param(ONE, "Captures/default/Heron.md", id="a whole id"),
        pytest.param("6f1c1", "Captures/default/Heron.md", id="the beginning of one"),
        pytest.param("dead", "Captures/work/Pond.md", id="four characters"),
        pytest.param("Captures/work/Pond.md", "Captures/work/Pond.md", id="a path"),
        pytest.param("Captures/work/Pond", "Captures/work/Pond.md", id="a path without its ending"),
        pytest.param("todo", "Captures/work/Todo.md", id="a whole id that is the beginning of another"),
    ],
)
def test_a_note_is_meant_by(given, path):
    assert choose(given, NOTES).path == path


def test_several_are_named_and_none_is_taken():
    with pytest.raises(
        InvalidArgument, match=r"matches 2 notes: .*Heron\.md.*Reed\.md.*more characters of the id"
    ) as told:
        choose("6f1c", NOTES[:2])
    assert told.value.details == {"candidates": ["Captures/default/Heron.md", "Captures/default/Reed.md"]}


TITLED = note("t", "Captures/default/Heron 2.md", title="Why, Heron?")


def test_a_title_is_a_name_of_a_note_whose_file_has_another():
    assert choose("why, heron?", [TITLED]) is TITLED


@pytest.mark.parametrize(
    "title",
    [
        "Captures/default/Gone.md",
        "Captures/default/Gone",
        "Gone.md",
        "dead0000",
        "dead0000-0000-4000-8000-000000000000",
    ],
)
def test_a_title_like_a_path_or_an_id_means_no_note(title):
    assert choose(title, [note("t", "Captures/default/Heron 2.md", title=title)]) is None


def test_a_path_comes_before_a_title_and_a_file_name_does_not():
    root, titled = note("r", "Readme.md", title="Readme", home=""), note("t", "Captures/a/Readme 2.md", title="Readme")
    below = note("b", "Sub/Readme.md", title="Readme", home="")
    assert choose("Readme.md", [root, titled]) is root
    assert choose("Readme", [root, below]) is root
    assert choose("Readme", [titled]) is titled
    for there in ([root, titled], [below, titled]):
        with pytest.raises(InvalidArgument, match="matches 2 notes"):
            choose("Readme", there)


def test_an_id_that_an_agent_chose_is_no_abbreviation_of_one_that_it_did_not():
    with pytest.raises(InvalidArgument, match="matches 2 notes"):
        choose("6f1c", [NOTES[0], note("6f1c", "Captures/default/Squatter.md")])


def test_an_id_that_memex_made_means_the_note_that_had_it_first():
    later = note(ONE, "Captures/a/S.md", made=5, home="a")
    assert choose(ONE, [later, NOTES[0]]).path == "Captures/default/Heron.md"
    assert choose("6f1c", [later, NOTES[0]]).path == "Captures/default/Heron.md"
    gone = Candidate(ONE, "Captures/default/Gone.md", -1, "default")
    assert choose(ONE, [later, gone]) is gone


def test_of_two_copies_in_a_workspace_the_shortest_path_has_the_id():
    assert choose("x1", [note("x1", "Captures/a/Note copy.md"), note("x1", "Captures/a/Note.md")]).path.endswith(
        "Note.md"
    )


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    for number, id in enumerate((ONE, TWO, THREE)):
        world.write(
            f"Captures/default/Note {number}.md",
            f"---\nid: {id}\ncreated_at: 2026-11-20T14:32:05.120Z\n---\nThe text of {number}.\n",
        )
    world.run()
    with answering(world):
        yield world


def ask(world, *words):
    return run_command([*words, "--vault", str(world.vault), "--state", str(world.state)])


def test_every_command_takes_the_beginning_of_an_id_a_name_and_a_path(world, capsys):
    def told(*words):
        assert ask(world, *words) == 0, words
        return capsys.readouterr().out

    path = "Captures/default/Note 0.md"
    for name in ("6f1c1", "Note 0", "note 0", path):
        assert told("get", name) == "The text of 0.\n"
    assert told("updatenote", "6f1c1", "text, again").startswith(ONE)
    assert told("get", "6f1c1") == "text, again"
    assert told("promote", "6f1c1", "--to", "Notes").startswith(f"{path} → Notes/Note 0.md")
    assert "promoted" in told("log", "6f1c1")
    assert "promoted" in told("log", "Note 0")
    assert told("unpromote", "6f1c1").startswith(f"Notes/Note 0.md → {path}")
    assert told("review", "dismiss", "6f1c1").startswith(f"{path} → Captures/Archive")
    assert told("unarchive", "6f1c1").startswith("Captures/Archive")
    assert told("review", "approve", "6f1c1").startswith(path)
    assert told("updatenote", "6f1c9", "--title", "Other").startswith(TWO)
    assert told("undo", "--yes", "6f1c9").startswith("restored  Captures/default/Note 1.md")
    assert "deleted" in told("delete", "6f1c9", "--yes")
    capsys.readouterr()
    assert ask(world, "promote", "6f1") == 4
    assert ask(world, "get", "dea") == 4
    assert told("enrich", "dead").strip()


def test_every_command_finds_a_capture_by_its_title(world, capsys):
    def told(*words, status=0):
        assert ask(world, *words) == status, words
        out, err = capsys.readouterr()
        return err if status else out

    told("capture", "The seal is worn.", "--title", "Why does the pump fail?")
    for words in (("get",), ("log",), ("promote", "--dry-run"), ("enrich", "--dry-run")):
        assert told(*words, "why does the PUMP fail?"), words
    assert told("updatenote", "Why does the pump fail?", "The seal was worn.")
    assert "restored" in told("undo", "--yes", "Why does the pump fail?")
    assert "deleted" in told("delete", "--yes", "Why does the pump fail?")
    world.write("Readme.md", "The vault.\n")
    world.write("Captures/default/Readme 2.md", f"---\nid: {ONE[:-1]}9\ntitle: Readme\n---\nThe capture.\n")
    world.run()
    assert "matches 2 notes" in told("get", "Readme", status=2)
    assert (told("get", "Readme.md"), told("get", "Readme 2")) == ("The vault.\n", "The capture.\n")
    assert told("promote", "Readme", "--to", "Notes").startswith("Captures/default/Readme 2.md")


def test_a_misspelt_path_is_answered_with_the_nearest_path(world, capsys):
    world.write("Projects/Heron.md", "Batteries.\n")
    world.run()
    for words in (("get",), ("log",), ("promote",)):
        assert ask(world, *words, "Captures/default/Nota 0.md") == 4, words
        assert 'Did you mean "Captures/default/Note 0.md"? To ' in capsys.readouterr().err, words
    assert ask(world, "get", "Capture/Note 0.md") == 4
    assert 'Did you mean "Captures/default/Note 0.md"? To ' in capsys.readouterr().err
    assert ask(world, "get", "Nothing/Ther.md") == 4
    assert "Did you mean" not in capsys.readouterr().err, "neither the folder nor the name is nearly one that exists"
    assert ask(world, "get", "Herno.md") == 4
    assert 'Did you mean "Projects/Heron.md"? To ' in capsys.readouterr().err
    assert ask(world, "get", "Captures/default/Zebra.md") == 4
    assert "Did you mean" not in capsys.readouterr().err, "a note is not near because it is in the same folder"
    assert ask(world, "get", "Elsewhere/Nothing alike.md") == 4
    err = capsys.readouterr().err
    assert err.startswith("memex: no note 'Elsewhere/Nothing alike.md'; to find notes: memex ")
    assert err.endswith(" search WORDS\n")


def test_what_is_ambiguous_changes_nothing_and_exits_with_2(world, capsys):
    for words in (("promote",), ("get",), ("delete", "--yes"), ("log",), ("undo", "--yes"), ("review", "dismiss")):
        assert ask(world, *words, "6f1c") == 2, words
        assert "Captures/default/Note 0.md" in capsys.readouterr().err
    assert (world.vault / "Captures/default/Note 0.md").exists()
