"""syncd/cli/notes/notes.py: a note is given another text by command, over the owner's door, on real notes."""

from __future__ import annotations

import io
import json
import os
import shlex
import sys
import tempfile
from pathlib import Path

import click
import pytest

from syncd.cli.main import memex, run_command
from tests.support.known_vault import make_default_vault
from tests.support.paths import ROOT
from tests.support.world import World, answering


class Terminal(io.StringIO):
    """Where somebody sits."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def clean(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("MEMEX_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "drafts"))
    (tmp_path / "drafts").mkdir()


@pytest.fixture
def world(tmp_path, monkeypatch):
    (tmp_path / "state").mkdir(mode=0o700)
    opened = World(tmp_path)
    (opened.vault / "Captures/work").mkdir()
    opened.run()
    make_default_vault(monkeypatch, tmp_path / "home", opened.vault, opened.state)
    with answering(opened):
        yield opened


@pytest.fixture
def note(world):
    return world.app.agent_access.workspace("default").capture("old text\r\n", metadata={"title": "T"}).record


def content(world, note):
    return world.app.agent_access.workspace("default").get(note.id).content


def editor(monkeypatch, tmp_path, script):
    """Sit somebody down at a terminal whose editor does this to the file `$1`."""
    file = tmp_path / "editor"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(file))
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setattr(sys, "stdin", Terminal())


def drafts(tmp_path):
    return [path.read_bytes() for path in (tmp_path / "drafts").iterdir()]


def test_a_text_on_the_line_takes_the_place_of_all_there_is(world, note, capfd):
    assert run_command(["updatenote", note.id, "new text"]) == 0
    assert capfd.readouterr().out == f"{note.id}  {note.path}  version 2\n"
    assert content(world, note) == "new text"
    assert run_command(["updatenote", note.id, "new text"]) == 0
    assert "(unchanged)" in capfd.readouterr().out


@pytest.mark.parametrize("words", [[], ["-"]], ids=["without a word", "with a dash"])
def test_a_text_from_a_pipe_comes_byte_for_byte(world, note, monkeypatch, words):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("é\r\n\n日本".encode())))
    assert run_command(["updatenote", note.id, *words]) == 0
    assert content(world, note) == "é\r\n\n日本"


def test_a_blank_text_replaces_none(world, note, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n")))
    for words in ([" "], ["-"], []):
        assert run_command(["updatenote", note.id, *words]) == 2
        assert "the new text is blank, so the note was not changed" in capfd.readouterr().err
    editor(monkeypatch, tmp_path, 'echo > "$1"')
    assert run_command(["updatenote", note.id]) == 2
    assert drafts(tmp_path) == [b"\n"]
    assert content(world, note) == "old text\r\n"


def test_options_alone_leave_the_text(world, note, capfd):
    words = ["--title", "U", "--tag", "a", "-t", "b", "--collection", "memory", "--version", "1", "--json"]
    assert run_command(["updatenote", note.id, *words]) == 0
    told = json.loads(capfd.readouterr().out)
    assert (told["title"], told["tags"], told["collection"], told["version"], told["changed"]) == (
        "U", ["a", "b"], "memory", 2, True,
    )  # fmt: skip
    assert content(world, note) == "old text\r\n"


@pytest.mark.parametrize(
    "words",
    [["--tags", "a,b/c"], ["--tag", "a", "--tags", " b/c ,"], ["-t", "a", "-t", "b/c"]],
    ids=["one", "mixed", "short"],
)
def test_tags_may_be_given_apart_or_with_commas(world, note, capfd, words):
    assert run_command(["updatenote", note.id, *words, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["tags"] == ["a", "b/c"]
    assert run_command(["updatenote", note.id, "--tags", ","]) == 2  # no tag is not all tags


def test_each_command_that_takes_tags_takes_both_spellings():
    with click.Context(memex) as ctx:
        options = [option for command in _commands(memex, ctx) for option in command.params]
    named = [set(option.opts) for option in options if {"--tag", "--tags"} & set(option.opts)]
    assert len(named) >= 6
    assert all({"--tag", "--tags"} <= names for names in named)


def _commands(group, ctx):
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        yield from _commands(command, ctx) if isinstance(command, click.Group) else [command]


def test_what_can_t_be_is_refused_with_its_exit_code(world, note, capfd):
    assert run_command(["updatenote", note.id, "x", "--version", "7"]) == 5
    assert run_command(["updatenote", "nothing", "x"]) == 4
    assert run_command(["updatenote", note.id, "x", "--workspace", "work"]) == 4
    assert run_command(["updatenote", note.id, "x", "--collection", "memeory"]) == 2
    assert run_command(["updatenote", note.id, ""]) == 2
    assert content(world, note) == "old text\r\n"


def test_in_an_editor_the_bytes_are_the_person_s(world, note, monkeypatch, tmp_path, capfd):
    editor(monkeypatch, tmp_path, "printf 'and more' >> \"$1\"")
    assert run_command(["updatenote", note.id]) == 0
    assert content(world, note) == "old text\r\nand more"
    assert drafts(tmp_path) == []
    editor(monkeypatch, tmp_path, "true")
    assert run_command(["updatenote", note.id]) == 0
    assert "no changes" in capfd.readouterr().err
    assert drafts(tmp_path) == []


def test_what_was_typed_is_kept_when_an_agent_was_faster(world, note, monkeypatch, tmp_path, capfd):
    python, root = shlex.quote(sys.executable), shlex.quote(str(ROOT))
    faster = f"{python} -m syncd.cli updatenote {note.id} 'an agent was here'"
    editor(monkeypatch, tmp_path, f"cd {root} && {faster}; printf 'typed' >> \"$1\"")
    assert run_command(["updatenote", note.id]) == 5
    assert content(world, note) == "an agent was here"
    assert drafts(tmp_path) == [b"old text\r\ntyped"]
    assert str(tmp_path / "drafts") in capfd.readouterr().err


@pytest.mark.parametrize("script", ["printf '\\377' > \"$1\"", "exit 3"], ids=["no text", "an editor that fails"])
def test_what_an_editor_leaves_that_is_no_text_is_kept_and_told(world, note, monkeypatch, tmp_path, capfd, script):
    editor(monkeypatch, tmp_path, script)
    assert run_command(["updatenote", note.id]) == 2
    assert content(world, note) == "old text\r\n"
    assert len(drafts(tmp_path)) == 1
    assert str(tmp_path / "drafts") in capfd.readouterr().err


def test_recent_goes_by_the_last_change(world, note, capfd):
    world.app.agent_access.workspace("work").capture("another")
    assert run_command(["updatenote", note.id, "changed"]) == 0
    capfd.readouterr()
    assert run_command(["recent", "--limit", "1", "--json"]) == 0
    assert [one["id"] for one in json.loads(capfd.readouterr().out)] == [note.id]
    assert run_command(["recent", "--workspace", "work"]) == 0
    assert "another" in capfd.readouterr().out


def test_a_file_s_document_is_filed_otherwise_and_keeps_its_text(world, capfd):
    folder = world.vault / "Captures/default/Files"
    folder.mkdir()
    (folder / "a.pdf").write_bytes(b"%PDF-")
    (folder / "a.pdf.md").write_text(
        '---\nid: f1\ntype: file\nfile: "[[Captures/default/Files/a.pdf]]"\n---\nits text\n'
    )
    world.run()
    capfd.readouterr()
    assert run_command(["updatenote", "f1", "--tag", "a", "--collection", "memory", "--title", "T", "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert (told["type"], told["title"], told["tags"], told["collection"]) == ("file", "T", ["a"], "memory")
    assert world.app.agent_access.workspace("default").get("f1").content == "its text\n"
    assert run_command(["updatenote", "f1", "another"]) == 2
    assert "it contains the text of a file" in capfd.readouterr().err


@pytest.mark.parametrize(
    "words",
    [("Nope",), ("T", "--workspace", "work"), ("Mine",)],
    ids=["no note", "another workspace", "a note of the vault"],
)
def test_a_capture_to_delete_is_looked_up_before_the_confirmation(world, note, monkeypatch, capfd, words):
    world.write("Mine.md", "a note of the vault\n")
    world.run()
    for stdin in (Terminal("y\n"), io.StringIO()):  # also where nobody can be asked
        monkeypatch.setattr(sys, "stdin", stdin)
        assert run_command(["delete", *words]) == 4
        assert capfd.readouterr().err.startswith(f"memex: no capture '{words[0]}'")
    assert content(world, note) == "old text\r\n"


def test_the_confirmation_of_a_deletion_names_the_capture(world, note, monkeypatch, capfd):
    world.write("T.md", "a note of the vault with the same title\n")
    world.run()
    for answer, code in (("n\n", 130), ("y\n", 0)):
        monkeypatch.setattr(sys, "stdin", Terminal(answer))
        assert run_command(["delete", "T"]) == code
        assert capfd.readouterr().err.startswith(f"Delete the capture 'T' ({note.path})? [y/N]: ")
    assert not (world.vault / note.path).exists()
    assert (world.vault / "T.md").exists()


@pytest.mark.parametrize(
    ("days", "expected"),
    [("30", "to undo this: memex undo "), ("0", "Memex kept no copy (git.past_days = 0); to undo this if Git has")],
)
@pytest.mark.parametrize("words", [("delete", "T"), ("node", "remove", "Weir")], ids=" ".join)
def test_a_deletion_promises_only_an_undo_that_can_work(world, note, monkeypatch, capfd, words, days, expected):
    assert run_command(["node", "add", "Weir", "--type", "place"]) == 0
    monkeypatch.setenv("MEMEX_GIT__PAST_DAYS", days)
    capfd.readouterr()
    assert run_command([*words, "--yes"]) == 0
    assert capfd.readouterr().out.splitlines()[-1].startswith(expected)


@pytest.mark.parametrize(
    ("words", "remark"),
    [
        ((), ""),
        (("--title", "T", "--tag", "#Salt"), ""),
        (("--title", "U", "--tag", "sun"), "; unchanged: its title, tags; to change a note: memex updatenote"),
        (("--metadata", '{"a": 1}'), "; unchanged: its metadata; to change a note: memex updatenote"),
        (("--tag", "Sea Salt"), ""),
        (("--metadata", '{"color": "red", "ratio": [1, 2.5], "on": "2026-01-01", "none": null, "title": null}'), ""),
        (("--metadata", '{"tags": "salt,#sea-salt"}'), ""),
        (("--metadata", '{"color": "blue"}'), "; unchanged: its metadata; to change a note: memex updatenote"),
    ],
)
def test_a_repeated_capture_names_what_it_did_not_change(world, capfd, words, remark):
    metadata = '{"color": "red", "ratio": [1, 2.5], "on": "2026-01-01"}'
    first = ["--title", "T", "--tag", "salt", "--tag", "Sea Salt", "--metadata", metadata]
    assert run_command(["capture", "the text", *first]) == 0
    capfd.readouterr()
    assert run_command(["capture", "the text", *words]) == 0
    assert capfd.readouterr().out.endswith(f"  (existed already{remark})\n")


def test_merge_markers_in_a_written_text_are_reported(world, note, capfd):
    torn = "q\n<<<<<<< HEAD\nmine\n=======\ntheirs\n>>>>>>> other\n"
    for words in (["capture", torn], ["updatenote", note.id, torn]):
        assert run_command(words) == 0
        assert "memex: merge-conflict: the text contains merge markers" in capfd.readouterr().err


FRUITLESS = {
    "a folder": (("--folder", "Projetcs/"), "memex: no notes in a folder 'Projetcs'. Did you mean \"Projects\"?\n"),
    "no near folder": (("--folder", "Nope"), "memex: no notes in a folder 'Nope'\n"),
    "a namespace": (("--namespace", "travle"), "memex: no notes in a namespace 'travle'. Did you mean \"travel\"?\n"),
    "both exist": (("--folder", "Projects", "--namespace", "travel"), ""),
    "a tag": (("--tag", "Nope"), "memex: no note has the tag 'nope'\n"),
    "a near tag": (("--tag", "heatign"), "memex: no note has the tag 'heatign'. Did you mean \"heating\"?\n"),
    "a tag of notes": (("--tag", "heating", "--collection", "memory"), ""),
    "a nested tag": (("--tag", "Heating/Pump", "--until", "9d"), ""),
    "a tag of another scope": (("--tag", "heating", "--scope", "captures"), ""),
    "neither": (("--type", "file"), ""),
}


def test_a_search_without_hits_reports_a_folder_or_tag_that_no_note_has(world, capfd):
    world.write("Projects/Pump.md", "heat #heating/pump\n")
    world.write("Captures/default/travel/Bag.md", "heat\n")
    world.run()
    for what, (words, message) in FRUITLESS.items():
        for shown, nothing in (((), "nothing found\n"), (("--json",), "[]\n")):
            assert run_command(["search", "heat", *words, *shown]) == 0, what
            assert capfd.readouterr() == (nothing, message), what


def test_a_list_of_captures_that_is_cut_says_so(world, note, capfd):
    for text in ("a second capture", "a third capture"):
        world.app.agent_access.workspace("default").capture(text)
    assert run_command(["recent", "--limit", "10000"]) == 0
    assert capfd.readouterr().err == ""
    assert run_command(["recent", "--limit", "2", "--json"]) == 0
    out, err = capfd.readouterr()
    assert len(json.loads(out)) == 2
    assert err == "memex: there are more captures; this list ends after 2; to list more: --limit\n"


def test_a_note_can_be_named_by_a_path_of_the_disk(world, note, tmp_path, monkeypatch, capfd):
    link = tmp_path / "link"
    link.symlink_to(world.vault)
    monkeypatch.chdir(world.vault / "Captures/default")
    for reference in (
        str(world.vault / note.path),
        str(link / note.path),
        f"./{Path(note.path).name}",
        f"../default/{Path(note.path).name}",
    ):
        assert run_command(["get", reference]) == 0, reference
        assert "old text" in capfd.readouterr().out
    assert run_command(["get", "/etc/passwd"]) == 4
    assert "no note '/etc/passwd'" in capfd.readouterr().err


@pytest.mark.parametrize("title", ["A/B", "Plan.md"])
def test_a_title_that_looks_like_a_path_leads_to_the_path(world, capfd, title):
    record = world.app.agent_access.workspace("default").capture("text", metadata={"title": title}).record
    assert run_command(["get", title]) == 4
    assert f"a note with this title is at {record.path!r}" in capfd.readouterr().err
    assert run_command(["get", record.path]) == 0
