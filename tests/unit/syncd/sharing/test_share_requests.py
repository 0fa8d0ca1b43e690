"""`memex share`: what the owner asks for, what the commands print, and that a preview is the truth."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from index.errors import InvalidArgument, NotFound
from index.model import Query
from syncd.cli.main import run_command
from syncd.cli.notes.shares import OFF, preview_text
from syncd.settings.access import ShareSettings
from tests.support.world import World, answering


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path, share=ShareSettings(never=("Private",)))
    world.write("References/Heron.md", "The heron stands in zanzibar water.\n")
    world.write("References/Private/Safe.md", "zanzibar\n")
    world.write("References/Marked.md", "---\nshare: false\n---\nzanzibar\n")
    world.write("References/Broken.md", "---\nbroken: [\n---\nzanzibar\n")
    world.write("References/Picture.png", "zanzibar\n")
    world.write("Notes/Plan.md", "zanzibar plan\n")
    world.write("Notes/Other.md", "another zanzibar plan\n")
    world.run()
    with answering(world):
        yield world


def ask(world, name, **arguments):
    return world.app.operations[f"share.{name}"](arguments, lambda _: None)


def readable(world):
    hits = world.app.agent_access.workspace("default").search(Query("zanzibar", limit=50), scope="vault").hits
    return sorted(hit.record.path for hit in hits)


@pytest.mark.parametrize("paths", [["References"], ["References/Heron.md", "Notes"], ["Notes/Plan.md"], ["Nowhere"]])
def test_a_preview_lists_exactly_what_agents_can_read_then(world, paths):
    preview = ask(world, "preview", paths=paths)
    assert readable(world) == []
    assert ask(world, "list") == []
    assert ask(world, "add", paths=paths)["shared"] == preview["shared"]
    world.run()
    assert readable(world) == preview["shared"]
    assert ask(world, "preview") == preview


def test_withheld_notes_are_named_with_the_reason(world):
    withheld = ask(world, "preview", paths=["References"])["withheld"]
    assert list(withheld) == ["References/Broken.md", "References/Marked.md", "References/Private/Safe.md"]
    assert "can't be read" in withheld["References/Broken.md"]
    assert "`share`" in withheld["References/Marked.md"]
    assert "share.never" in withheld["References/Private/Safe.md"]


def test_what_is_shared_can_be_listed_and_removed(world):
    (world.vault / "Captures/work").mkdir()
    ask(world, "add", paths=["References", "Notes/Plan.md"])
    ask(world, "add", paths=["Notes"], workspace="work")
    assert ask(world, "list") == [
        {"workspace": "default", "entries": ["Notes/Plan.md", "References/**"]},
        {"workspace": "work", "entries": ["Notes/**"]},
    ]
    assert ask(world, "list", workspace="work") == [{"workspace": "work", "entries": ["Notes/**"]}]
    assert ask(world, "remove", paths=["References/"])["shared"] == ["Notes/Plan.md"]
    assert ask(world, "remove", paths=["Notes/Plan.md"])["shared"] == []
    world.run()
    assert readable(world) == []


def test_mistakes_are_named(world):
    with pytest.raises(NotFound):
        ask(world, "add", paths=["References"], workspace="nowhere")
    with pytest.raises(InvalidArgument):
        ask(world, "add", paths=["**"])
    with pytest.raises(NotFound):
        ask(world, "remove", paths=["References"])
    assert ask(world, "list") == []


@pytest.mark.parametrize(
    ("path", "reason"),
    [("Captures", "in the inbox"), ("captures/default/x.md", "in the inbox"), ("References/Private", "share.never")],
)
def test_what_can_never_be_shared_has_no_preview(world, path, reason):
    for name in ("preview", "add"):
        with pytest.raises(InvalidArgument, match=reason):
            ask(world, name, paths=["Notes", path])
    assert ask(world, "list") == []


def test_a_share_that_is_excluded_since_can_be_looked_at_and_removed(tmp_path):
    with closing(World(tmp_path)) as world:
        world.write("Notes/Plan.md", "plan\n")
        ask(world, "add", paths=["Notes"])
    with closing(World(tmp_path, share=ShareSettings(never=("Notes",)))) as world:
        preview = ask(world, "preview", paths=["Notes"])
        assert (preview["shared"], preview["withheld"]) == ([], {"Notes/Plan.md": "share.never covers it"})
        ask(world, "remove", paths=["Notes"])
        assert ask(world, "list") == []


def test_a_share_of_a_removed_workspace_can_still_be_removed(world):
    (world.vault / "Captures/work").mkdir()
    ask(world, "add", paths=["Notes"], workspace="work")
    (world.vault / "Captures/work").rmdir()
    assert ask(world, "list") == [{"workspace": "work", "entries": ["Notes/**"]}]
    ask(world, "remove", paths=["Notes"], workspace="work")
    assert ask(world, "list") == []


def test_the_commands(world, capsys):
    def memex(*words):
        code = run_command([*words, "--vault", str(world.vault), "--state", str(world.state)])
        return code, capsys.readouterr().out

    assert memex("share", "list") == (0, f"{OFF}\n")
    assert memex("share", "preview") == (0, f"{OFF}\n")
    code, text = memex("share", "preview", "References", "Notes")
    assert code == 0
    assert "can read 3 notes in Notes/**, References/**" in text
    assert "withheld: 3" in text
    code, text = memex("share", "add", "References", "--json")
    assert code == 0
    assert json.loads(text)["shared"] == ["References/Heron.md"]
    code, text = memex("share", "list")
    assert "References/**" in text
    assert "can read 1 note in" in memex("share", "preview", "References")[1]
    assert "check the spelling" in memex("share", "preview", "references")[1]
    assert memex("share", "add", "../outside")[0] == 2
    assert memex("share", "remove", "Notes")[0] == 4
    assert memex("share", "remove", "References") == (0, f"{OFF}\n")


def test_a_path_cannot_control_the_terminal():
    text = preview_text(
        {"workspace": "w", "entries": ["a"], "shared": ["a/\x1b[2Jb.md"], "withheld": {"c\u202e.md": "x\x07"}}
    )
    assert not {"\x1b", "\u202e", "\x07"} & set(text)


@pytest.mark.parametrize("request_name", ["list", "preview"])
def test_an_unknown_workspace_is_reported_unless_something_is_shared_with_it(world, request_name):
    with pytest.raises(NotFound, match="no workspace 'nope'"):
        ask(world, request_name, workspace="nope")
    (world.vault / "Captures/work").mkdir()
    ask(world, "add", paths=["Notes"], workspace="work")
    (world.vault / "Captures/work").rmdir()
    assert "Notes/**" in str(ask(world, request_name, workspace="work"))
    assert ask(world, "remove", paths=["Notes"], workspace="work")["shared"] == []


def test_an_entry_that_covers_no_note_is_named_when_others_cover_some(world, capsys):
    where = ("--vault", str(world.vault), "--state", str(world.state))
    assert run_command(["share", "add", "References/", "Notes/**", "Notes/Plan.md", *where]) == 0
    assert "check the spelling" not in "".join(capsys.readouterr())
    assert run_command(["share", "add", "Notes", "notes", *where]) == 0
    assert "memex: notes has no note yet; check the spelling" in capsys.readouterr().err
